"""Rolls and borders on XLA: the rows of `ops/movement.py` that JAX has in another form."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array, ShapeDtypeStruct, lax


def reshaped(x: Array, *attributes: object, results: list[ShapeDtypeStruct]) -> Array:
    """The same elements in the shape of the result."""
    return jnp.reshape(x, results[0].shape)


def roll(x: Array, shift: Sequence[int], axis: Sequence[int]) -> Array:
    """Each axis cut in two, and the parts swapped."""
    for by, along in zip(shift, axis, strict=True):
        n = x.shape[along]
        cut = -by % n if n else 0
        if cut:
            parts = lax.split(x, [cut, n - cut], along)
            x = lax.concatenate(parts[::-1], along)
    return x


def pad(x: Array, value: Array, paddings: Sequence[int]) -> Array:
    """`x` with borders of `value`; `paddings` are the widths before and after, axis by axis."""
    return lax.pad(x, value, [(a, b, 0) for a, b in _pairs(paddings)])


def mirror_pad(x: Array, paddings: Sequence[int], mode: int) -> Array:
    """Mode 0 leaves the edge out, mode 1 repeats it."""
    return jnp.pad(x, _pairs(paddings), mode="symmetric" if mode else "reflect")


def mirror_unpad(g: Array, paddings: Sequence[int], mode: int) -> Array:
    """The borders of each axis, reversed, are added to the elements they came from."""
    edge = 0 if mode else 1
    for axis, (before, after) in enumerate(_pairs(paddings)):
        n = g.shape[axis] - before - after
        left, g, right = lax.split(g, [before, n, after], axis)
        g = g + _placed(lax.rev(left, [axis]), axis, edge, n)
        g = g + _placed(lax.rev(right, [axis]), axis, n - after - edge, n)
    return g


def _placed(x: Array, axis: int, start: int, size: int) -> Array:
    """`x` from `start` on along an axis of `size` elements, with zeros around it."""
    widths = [(0, 0, 0)] * x.ndim
    widths[axis] = (start, size - start - x.shape[axis], 0)
    return lax.pad(x, jnp.zeros((), x.dtype), widths)


def _pairs(paddings: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(paddings[::2], paddings[1::2], strict=True))
