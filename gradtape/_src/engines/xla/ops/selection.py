"""Masks with a known number of true elements, one_hot and permutations on XLA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

_Check = Callable[[Any], None]


def boolean_mask(x: Array, mask: Array, axis: int, count: int, *, check: _Check) -> Array:
    """The slices of `x` at the `count` positions where the mask is true."""
    check(jnp.sum(mask) == count)
    flat = x.reshape(*x.shape[:axis], mask.size, *x.shape[axis + mask.ndim :])
    return (
        jnp.take(flat, _places(mask, count), axis, mode="clip")
        if count
        else lax.slice_in_dim(flat, 0, 0, 1, axis)
    )


def boolean_unmask(g: Array, mask: Array, axis: int, shape: Sequence[int], *, check: _Check) -> Array:
    """Zeros of `shape` with `g` where the mask is true."""
    check(jnp.sum(mask) == g.shape[axis])
    if not g.size:
        return jnp.zeros(shape, g.dtype)
    # Each position takes the slice whose index is the number of true elements before it.
    flat = mask.reshape(-1)
    taken = jnp.take(g, jnp.cumsum(flat) - 1, axis, mode="clip")
    kept = flat.reshape(-1, *[1] * (g.ndim - axis - 1))
    return jnp.where(kept, taken, jnp.zeros((), g.dtype)).reshape(shape)


def one_hot(indices: Array, on: Array, off: Array, depth: int, axis: int) -> Array:
    """`on` at the position that each index gives along a new axis, `off` elsewhere."""
    shape = [1] * (indices.ndim + 1)
    shape[axis] = depth
    places = jnp.arange(depth, dtype=indices.dtype).reshape(shape)
    return jnp.where(jnp.expand_dims(indices, axis) == places, on, off)


def invert_permutation(x: Array, *, check: _Check) -> Array:
    """`out[x[i]] = i`; positions that no element names keep a mark."""
    out = (
        jnp.full_like(x, -1)
        .at[jnp.where(x < 0, x.size, x)]
        .set(jnp.arange(x.size, dtype=x.dtype), mode="drop")
    )
    check(out >= 0)
    return out


def _places(mask: Array, count: int) -> Array:
    return jnp.nonzero(mask.reshape(-1), size=count)[0]
