"""Banded systems on XLA: elimination row by row, for all matrices of a batch at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

_Row = tuple[Array, Array, Array]


def tridiagonal_solve(diagonals: Array, rhs: Array, partial_pivoting: bool, perturb_singular: bool) -> Array:
    """Solves tridiagonal systems, whose diagonals are given as rows, the upper one first."""
    if not rhs.size:
        return rhs
    # Row by row: [n, ..., 1] and [n, ..., k]. Elements outside of the matrix are zero.
    above, main, below = (jnp.moveaxis(diagonals[..., i, :], -1, 0)[..., None] for i in range(3))
    above = above.at[-1].set(0)
    b = jnp.moveaxis(rhs, -2, 0)
    least = jnp.finfo(rhs.dtype).tiny

    def fixed(pivot: Array) -> Array:
        return jnp.where(jnp.abs(pivot) < least, 2 * least, pivot) if perturb_singular else pivot

    def eliminate(row: _Row, following: tuple[Array, _Row]) -> tuple[_Row, tuple[Array, Array, Array, Array]]:
        """A row of the triangle, and the next row with its first element eliminated."""
        low, below_it = following
        third = jnp.zeros_like(low)
        if partial_pivoting:
            swap = jnp.abs(low) > jnp.abs(row[0])
            (a0, a1, right), (b0, b1, below_right) = row, below_it
            row = jnp.where(swap, low, a0), jnp.where(swap, b0, a1), jnp.where(swap, below_right, right)
            third, low = jnp.where(swap, b1, 0), jnp.where(swap, a0, low)
            below_it = jnp.where(swap, a1, b0), jnp.where(swap, 0, b1), jnp.where(swap, right, below_right)
        pivot = fixed(row[0])
        factor = jnp.where((low == 0) & (pivot != 0), 0, low / pivot)
        rest = (below_it[0] - factor * row[1], below_it[1] - factor * third, below_it[2] - factor * row[2])
        return rest, (pivot, row[1], third, row[2])

    def substitute(
        previous: tuple[Array, Array], row: tuple[Array, ...]
    ) -> tuple[tuple[Array, Array], Array]:
        pivot, second, third, right = row
        x = (right - second * previous[0] - third * previous[1]) / pivot
        return (x, previous[0]), x

    last, rows = lax.scan(eliminate, (main[0], above[0], b[0]), (below[1:], (main[1:], above[1:], b[1:])))
    x = last[2] / fixed(last[0])
    _, others = lax.scan(substitute, (x, jnp.zeros_like(x)), rows, reverse=True)
    return jnp.moveaxis(jnp.concatenate([others, x[None]]), 0, -2)


def banded_triangular_solve(
    bands: Array, rhs: Array, lower: bool, adjoint: bool, *, check: Callable[[Any], None]
) -> Array:
    """Solves triangular banded systems, whose diagonals are given as rows."""
    if not rhs.size:
        return rhs
    count, n = bands.shape[-2:]
    down = lower != adjoint
    # Diagonal j of the matrix that is solved with, as [n, ..., count, 1]: what row r has beside row r - j (or r + j).
    diagonals = bands if lower else jnp.flip(bands, -2)
    if adjoint:
        moved = [_moved(diagonals[..., j, :], j if down else -j) for j in range(count)]
        diagonals = jnp.conj(jnp.stack(moved, -2))
    place = jnp.arange(n) if down else n - 1 - jnp.arange(n)
    diagonals = jnp.where(place >= jnp.arange(count)[:, None], diagonals, 0)
    check(diagonals[..., 0, :] != 0)
    rows = jnp.moveaxis(diagonals, -1, 0)[..., None]

    def substitute(previous: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        """`known` holds the previous results, the nearest first."""
        coefficients, right = row
        x = (right - jnp.sum(coefficients[..., 1:, :] * previous, -2)) / coefficients[..., 0, :]
        return jnp.concatenate([x[..., None, :], previous], -2)[..., : count - 1, :], x

    b = jnp.moveaxis(rhs, -2, 0)
    nothing = jnp.zeros((*b.shape[1:-1], count - 1, b.shape[-1]), b.dtype)
    _, x = lax.scan(substitute, nothing, (rows, b), reverse=not down)
    return jnp.moveaxis(x, 0, -2)


def _moved(x: Array, by: int) -> Array:
    """The last axis shifted by some elements, filled with zeros."""
    return lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0)] * (x.ndim - 1) + [(by, -by, 0)])
