"""Sorting, the largest elements and binary search on XLA. NaN comes last in both directions."""

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
    """The `k` largest elements of each row, and their indices; of equal elements, the first."""
    _, at = lax.top_k(_ranked(x), k)
    return jnp.take_along_axis(x, at, -1, mode="clip"), at


def searchsorted(sequence: Array, values: Array, right: bool) -> Array:
    """The positions at which `values` would have to be inserted, row by row."""

    def places(row: Array, some: Array) -> Array:
        return jnp.searchsorted(row, some, side="right" if right else "left")

    for _ in range(sequence.ndim - 1):
        places = jax.vmap(places)
    return places(sequence, values)


def _turned(x: Array) -> Array:
    """The elements mapped so that their order is reversed, except for NaN; applied twice, it is the identity."""
    return -x if jnp.issubdtype(x.dtype, jnp.floating) else ~x


def _ranked(x: Array) -> Array:
    """Numbers mapped so that NaN comes first, where XLA has it last, and -0 equals 0.

    Moving every negative number up to the next one makes room below -inf.
    """
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x
    x = x.astype(jnp.float32) if x.dtype in (jnp.float16, jnp.bfloat16) else x
    zero = jnp.zeros((), x.dtype)
    moved = jnp.where(x < 0, lax.nextafter(x, jnp.zeros_like(x)), jnp.where(x == 0, zero, x))
    return jnp.where(jnp.isnan(x), -jnp.inf, moved)
