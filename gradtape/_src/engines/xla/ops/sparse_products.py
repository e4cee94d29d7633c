"""Products of a sparse and a dense matrix on XLA: rows are gathered, scaled and summed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array

from gradtape._src.engines.xla.ops.indexed import inside

_Check = Callable[[Any], None]


def sparse_matmul(
    places: Array,
    values: Array,
    b: Array,
    a_shape: Sequence[int],
    transpose_a: bool = False,
    *,
    check: _Check,
) -> Array:
    """The product of a sparse matrix, or its transpose, and a dense one."""
    check(inside(places[:, 0], a_shape[0]) & inside(places[:, 1], a_shape[1]))
    to, of = (1, 0) if transpose_a else (0, 1)
    out = jnp.zeros((a_shape[to], b.shape[1]), b.dtype)
    if not b.size:
        return out
    rows = jnp.take(b, places[:, of], axis=0, mode="clip")
    return out.at[places[:, to]].add(values[:, None] * rows, mode="drop")


def sparse_matmul_rows(
    places: Array,
    starts: Array,
    columns: Array,
    values: Array,
    b: Array,
    a_shape: Sequence[int],
    *,
    check: _Check,
) -> Array:
    """The same for elements in row order; XLA has no use for where the rows start."""
    check(inside(columns, a_shape[1]))
    check(starts[1:] >= starts[:-1])
    return sparse_matmul(places, values, b, a_shape, check=check)


def sparse_dots(places: Array, x: Array, y: Array, *, check: _Check) -> Array:
    """For each pair, the dot product of a row of `x` and a row of `y`."""
    check(inside(places[:, 0], x.shape[0]) & inside(places[:, 1], y.shape[0]))
    if not x.size or not y.size:
        return jnp.zeros(places.shape[:1], x.dtype)
    rows = (jnp.take(z, places[:, k], axis=0, mode="clip") for k, z in enumerate((x, y)))
    first, second = rows
    return (first * second).sum(-1, dtype=x.dtype)
