"""Sums, products and extrema of the rows that share a segment id, on XLA: scatters into rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array

_Check = Callable[[Any], None]


def unsorted_segment_sum(x: Array, ids: Array, count: int, *, check: _Check) -> Array:
    """The sum of the rows of each segment."""
    return _combined("add", 0, x, ids, count, check)


def unsorted_segment_prod(x: Array, ids: Array, count: int, *, check: _Check) -> Array:
    """The product of the rows of each segment."""
    return _combined("multiply", 1, x, ids, count, check)


def unsorted_segment_max(x: Array, ids: Array, count: int, *, check: _Check) -> Array:
    """The largest of the rows of each segment; the lowest number for an empty one."""
    return _combined("max", _limits(x).min, x, ids, count, check)


def unsorted_segment_min(x: Array, ids: Array, count: int, *, check: _Check) -> Array:
    """The smallest of the rows of each segment; the highest number for an empty one."""
    return _combined("min", _limits(x).max, x, ids, count, check)


def _combined(how: str, start: Any, x: Array, ids: Array, count: int, check: _Check) -> Array:
    """A row with a negative id belongs to no segment: its id becomes `count`, which XLA drops."""
    check(ids < count)
    out = jnp.full((count, *x.shape[ids.ndim :]), start, x.dtype)
    places = jnp.where(ids < 0, jnp.asarray(count, ids.dtype), ids)
    return getattr(out.at[places], how)(x, mode="drop")


def _limits(x: Array) -> Any:
    return jnp.finfo(x.dtype) if jnp.issubdtype(x.dtype, jnp.floating) else jnp.iinfo(x.dtype)
