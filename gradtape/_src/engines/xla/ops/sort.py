"""Sorting, the largest elements and binary search on XLA. NaN is last in both directions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax


def argsort(x: Array, axis: int, descending: bool) -> Array:
    """The indices that sort; equal elements keep their order."""
    return jnp.argsort(_turned(x) if descending else x, axis=axis, stable=True)


def sort(x: Array, axis: int, descending: bool) -> Array:
    """The elements in order."""
    if descending:
        return _turned(jnp.sort(_turned(x), axis=axis))
    return jnp.sort(x, axis=axis)


def top_k(x: Array, k: int, sorted: bool) -> tuple[Array, Array]:
    """The `k` largest elements of each row, and where they are; of equal ones the first."""
    _, at = lax.top_k(_ranked(x), k)
    return jnp.take_along_axis(x, at, -1, mode="clip"), at


def searchsorted(sequence: Array, values: Array, right: bool) -> Array:
    """Where each of `values` would have to be put, row by row."""

    def places(row: Array, some: Array) -> Array:
        return jnp.searchsorted(row, some, side="right" if right else "left")

    for _ in range(sequence.ndim - 1):
        places = jax.vmap(places)
    return places(sequence, values)


def _turned(x: Array) -> Array:
    """The same elements in the opposite order, but for NaN; twice, they are what they were."""
    return -x if jnp.issubdtype(x.dtype, jnp.floating) else ~x


def _ranked(x: Array) -> Array:
    """Numbers in the same order, but with NaN before all others, where XLA has it last, and without -0.

    There is room below -inf when the negative numbers are each moved up to the next.
    """
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x
    x = x.astype(jnp.float32) if x.dtype in (jnp.float16, jnp.bfloat16) else x
    zero = jnp.zeros((), x.dtype)
    moved = jnp.where(x < 0, lax.nextafter(x, jnp.zeros_like(x)), jnp.where(x == 0, zero, x))
    return jnp.where(jnp.isnan(x), -jnp.inf, moved)
