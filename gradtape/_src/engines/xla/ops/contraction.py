"""Matrix products on XLA, which accumulates products of half floats in float32 and rounds once, as natively."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array


def matmul(a: Array, b: Array, transpose_a: bool, transpose_b: bool) -> Array:
    """`a @ b`; XLA fuses transposes into the product."""
    a = jnp.swapaxes(a, -1, -2) if transpose_a else a
    b = jnp.swapaxes(b, -1, -2) if transpose_b else b
    return jnp.matmul(a, b)


def matmul_int8(a: Array, b: Array, transpose_a: bool, transpose_b: bool) -> Array:
    """`a @ b` of int8, accumulated in int32."""
    return matmul(a.astype(jnp.int32), b.astype(jnp.int32), transpose_a, transpose_b)
