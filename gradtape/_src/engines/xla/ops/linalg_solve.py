"""Systems of linear equations, inverses and determinants on XLA, by LU factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array, ShapeDtypeStruct, lax

_Check = Callable[[Any], None]


def adjoint_of(x: Array) -> Array:
    """The conjugate transposes of matrices."""
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def eyes(spec: ShapeDtypeStruct) -> Array:
    """Ones on the main diagonals of matrices, zeros elsewhere."""
    rows, columns = spec.shape[-2:]
    return jnp.broadcast_to(jnp.eye(rows, columns, dtype=spec.dtype), spec.shape)


def product(a: Array, b: Array) -> Array:
    """`a @ b` in full precision; accelerators would round numbers to 10 bits of mantissa."""
    return jnp.matmul(a, b, precision=lax.Precision.HIGHEST)


def factors(x: Array, check: _Check) -> tuple[Array, Array]:
    """The LU factors of matrices that can be inverted, and the order of their rows."""
    lu, _, order = lax.linalg.lu(x)
    check(jnp.abs(jnp.diagonal(lu, axis1=-2, axis2=-1)) > 0)
    return lu, order


def triangular_solve(
    a: Array, b: Array, lower: bool, adjoint: bool, *, results: list[ShapeDtypeStruct]
) -> Array:
    """Solves triangular systems; batch dimensions broadcast."""
    shape = results[0].shape
    if 0 in shape:
        return jnp.zeros(shape, b.dtype)
    a = jnp.broadcast_to(a, (*shape[:-2], *a.shape[-2:]))
    return _triangular(a, jnp.broadcast_to(b, shape), lower, adjoint)


def solve(a: Array, b: Array, adjoint: bool, *, check: _Check) -> Array:
    """Solves general systems."""
    if not b.size:
        return b
    lu, order = factors(adjoint_of(a) if adjoint else a, check)
    b = jnp.take_along_axis(b, order[..., None], -2, mode="clip")
    return _triangular(lu, _triangular(lu, b, True, unit=True), False)


def inv(x: Array, adjoint: bool, *, check: _Check) -> Array:
    """The inverses of square matrices."""
    return solve(x, eyes(ShapeDtypeStruct(x.shape, x.dtype)), adjoint, check=check)


def det(x: Array) -> Array:
    """The determinants of square matrices."""
    return jnp.linalg.det(x)


def slogdet(x: Array) -> tuple[Array, Array]:
    """The sign of the determinants and the logarithms of their absolute values."""
    sign, log = jnp.linalg.slogdet(x)
    return sign, log


def _triangular(a: Array, b: Array, lower: bool, adjoint: bool = False, unit: bool = False) -> Array:
    return lax.linalg.triangular_solve(
        a, b, left_side=True, lower=lower, transpose_a=adjoint, conjugate_a=adjoint, unit_diagonal=unit
    )
