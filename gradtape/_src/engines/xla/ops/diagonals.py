"""Diagonals and bands of matrices on XLA."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax


def matrix_diag(x: Array, k: int) -> Array:
    """Square matrices with the last axis of `x` on diagonal k."""
    size = x.shape[-1] + abs(k)
    rows = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(max(-k, 0), max(k, 0))])
    return jnp.where(_above(size, size) == k, rows[..., None], jnp.zeros((), x.dtype))


def matrix_diag_part(x: Array, k: int) -> Array:
    """Diagonal k of the matrices."""
    return jnp.diagonal(x, k, -2, -1)


def band_part(x: Array, num_lower: int, num_upper: int) -> Array:
    """Zeros below `num_lower` subdiagonals and above `num_upper` superdiagonals; a negative number keeps all."""
    above = _above(*x.shape[-2:])
    if num_lower >= 0:
        x = jnp.where(above >= -num_lower, x, jnp.zeros((), x.dtype))
    if num_upper >= 0:
        x = jnp.where(above <= num_upper, x, jnp.zeros((), x.dtype))
    return x


def _above(rows: int, columns: int) -> Array:
    """How far each element of a matrix is above the main diagonal."""
    i, j = (lax.broadcasted_iota(jnp.int32, (rows, columns), axis) for axis in (0, 1))
    return j - i
