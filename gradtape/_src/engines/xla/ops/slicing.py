"""Regions of tensors on XLA: `begin`, `step` and `size` of each axis, where a step may be negative."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array, lax

_Ints = Sequence[int]


def index(x: Array, begin: _Ints, step: _Ints, size: _Ints, shape: _Ints) -> Array:
    """The elements at `begin + i * step`, in the given shape."""
    if 0 in size:
        return jnp.zeros(shape, x.dtype)
    first, step, turned = _ascending(begin, step, size)
    limit = [b + s * (n - 1) + 1 for b, s, n in zip(first, step, size, strict=True)]
    return jnp.reshape(lax.rev(lax.slice(x, first, limit, step), turned), shape)


def unindex(g: Array, begin: _Ints, step: _Ints, size: _Ints, shape: _Ints) -> Array:
    """Zeros of `shape` with `g` in the region."""
    if 0 in size:
        return jnp.zeros(shape, g.dtype)
    first, step, turned = _ascending(begin, step, size)
    widths = [
        (b, total - b - s * (n - 1) - 1, s - 1)
        for b, s, n, total in zip(first, step, size, shape, strict=True)
    ]
    return lax.pad(lax.rev(jnp.reshape(g, size), turned), jnp.zeros((), g.dtype), widths)


def index_update(x: Array, value: Array, begin: _Ints, step: _Ints, size: _Ints) -> Array:
    """`x` with `value` in the region: as a block if possible, otherwise by a mask."""
    if 0 in size:
        return x
    if all(s == 1 or n == 1 for s, n in zip(step, size, strict=True)):
        return lax.dynamic_update_slice(x, jnp.reshape(value, size), [jnp.int32(b) for b in begin])
    mask = unindex(jnp.ones(value.shape, bool), begin, step, size, x.shape)
    return jnp.where(mask, unindex(value, begin, step, size, x.shape), x)


def _ascending(begin: _Ints, step: _Ints, size: _Ints) -> tuple[list[int], list[int], list[int]]:
    """The same region with positive steps, and the axes to be reversed afterwards."""
    turned = [axis for axis, s in enumerate(step) if s < 0]
    first = [b + s * (n - 1) if s < 0 else b for b, s, n in zip(begin, step, size, strict=True)]
    return first, [abs(s) for s in step], turned
