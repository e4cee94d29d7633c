"""Cholesky, LU and QR factors on XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array, ShapeDtypeStruct, lax

from gradtape._src.engines.xla.ops.linalg_solve import eyes, factors

_Check = Callable[[Any], None]


def cholesky(x: Array, *, check: _Check) -> Array:
    """The lower triangular factor, NaN where a matrix is not positive definite."""
    if not x.size:
        return x
    out = lax.linalg.cholesky(x, symmetrize_input=False)
    check(~jnp.isnan(jnp.diagonal(out, axis1=-2, axis2=-1)))
    return out


def lu(x: Array, *dtype: Any, results: list[ShapeDtypeStruct], check: _Check) -> tuple[Array, Array]:
    """The LU factors in one matrix, and the order of the rows."""
    if not x.size:
        return x, jnp.zeros(results[1].shape, results[1].dtype)
    return factors(x, check)


def qr(x: Array, full_matrices: bool, *, results: list[ShapeDtypeStruct]) -> tuple[Array, Array]:
    """A factor with orthonormal columns and an upper triangular one."""
    if not x.size:
        return eyes(results[0]), jnp.zeros(results[1].shape, x.dtype)
    q, r = lax.linalg.qr(x, full_matrices=full_matrices)
    return q, r
