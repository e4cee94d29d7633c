"""Dropout on XLA."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from gradtape._src.engines.xla.ops.philox import uniform


def dropout(x: Array, state: Array, rate: float) -> Array:
    """`x / (1 - rate)` where the uniform floats of the stream are at least `rate`, else 0."""
    kept = uniform(state, x.shape, jnp.float32) >= jnp.float32(rate)
    return jnp.where(kept, x * (1 / (1 - rate)), jnp.zeros((), x.dtype))
