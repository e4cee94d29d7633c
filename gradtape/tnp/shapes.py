"""Changing shapes, and joining arrays."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

import gradtape as tf
from gradtape.tnp.arrays import array, axes_of, meet

# ---- shapes -----------------------------------------------------------------------------------------


def shape(a: Any) -> tuple[int, ...]:
    """The shape."""
    return tuple(array(a).shape)


def ndim(a: Any) -> int:
    """The number of axes."""
    return len(array(a).shape)


def size(x: Any, axis: int | None = None) -> int:
    """The number of elements."""
    sizes = shape(x)
    return int(np.prod(sizes)) if axis is None else sizes[axis]


def reshape(a: Any, newshape: Any, order: str = "C") -> Any:
    """The same elements in another shape."""
    if order != "C":
        raise ValueError(f"reshape: only order 'C' is supported; got {order!r}.")
    return tf.reshape(array(a), [newshape] if isinstance(newshape, int) else newshape)


def ravel(a: Any) -> Any:
    """The elements as a vector."""
    return tf.reshape(array(a), [-1])


flatten = ravel


def expand_dims(a: Any, axis: Any) -> Any:
    """Inserts an axis of size one."""
    return tf.expand_dims(array(a), axis)


def squeeze(a: Any, axis: Any = None) -> Any:
    """Removes axes of size one."""
    return tf.squeeze(array(a), axis)


def transpose(a: Any, axes: Any = None) -> Any:
    """Permutes the axes; by default reverses them."""
    return tf.transpose(array(a), axes)


def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """Exchanges two axes."""
    a = array(a)
    perm = list(range(len(a.shape)))
    perm[axis1], perm[axis2] = perm[axis2], perm[axis1]
    return tf.transpose(a, perm)


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Moves axes to other positions."""
    a = array(a)
    rank = len(a.shape)
    sources, places = ([int(i) % rank for i in np.atleast_1d(axes)] for axes in (source, destination))
    perm = [i for i in range(rank) if i not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        perm.insert(place, axis)
    return tf.transpose(a, perm)


def broadcast_to(array_: Any, shape: Any) -> Any:
    """Broadcasts to a shape."""
    return tf.broadcast_to(array(array_), shape)


def concatenate(arys: Sequence[Any], axis: int | None = 0) -> Any:
    """Joins arrays along an axis."""
    parts = meet(*arys)
    return tf.concat([ravel(p) for p in parts] if axis is None else parts, axis or 0)


def stack(arrays: Any, axis: int = 0) -> Any:
    """Joins arrays along a new axis."""
    return tf.stack(meet(*arrays), axis)


def vstack(tup: Sequence[Any]) -> Any:
    """Joins arrays along the first axis, vectors as rows."""
    return concatenate([atleast_2d(t) for t in tup], 0)


def hstack(tup: Sequence[Any]) -> Any:
    """Joins arrays along the second axis (the first of vectors)."""
    parts = [atleast_1d(t) for t in tup]
    return concatenate(parts, 0 if len(parts[0].shape) == 1 else 1)


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Splits into equal parts, or at given indices."""
    ary = array(ary)
    if isinstance(indices_or_sections, int):
        return list(tf.split(ary, indices_or_sections, axis))
    places = [0, *map(int, indices_or_sections), int(ary.shape[axis])]
    return list(tf.split(ary, list(np.diff(places)), axis))


def atleast_1d(*arys: Any) -> Any:
    """Arrays with at least one axis."""
    out = [array(a, ndmin=1) for a in arys]
    return out[0] if len(out) == 1 else out


def atleast_2d(*arys: Any) -> Any:
    """Arrays with at least two axes."""
    out = [array(a, ndmin=2) for a in arys]
    return out[0] if len(out) == 1 else out


def tile(a: Any, reps: Any) -> Any:
    """Repeats a whole array."""
    a, times = array(a), [reps] if isinstance(reps, int) else list(reps)
    rank = builtins.max(len(a.shape), len(times))
    return tf.tile(array(a, ndmin=rank), [1] * (rank - len(times)) + times)


def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """Repeats each element."""
    return tf.repeat(array(a), repeats, axis)


def flip(m: Any, axis: Any = None) -> Any:
    """Reverses the order of elements along axes."""
    m = array(m)
    axes = axes_of(m, axis)
    return tf.reverse(m, [axes] if isinstance(axes, int) else axes)


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Shifts elements along axes, cyclically."""
    a = array(a)
    return tf.reshape(tf.roll(ravel(a), shift, 0), a.shape) if axis is None else tf.roll(a, shift, axis)


def pad(array_: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Any:
    """Pads an array at its edges."""
    a = array(array_)
    return tf.pad(
        a, np.broadcast_to(pad_width, (len(a.shape), 2)), mode.upper(), tf.cast(constant_values, a.dtype)
    )
