"""The functions of `keras.ops.numpy` that move elements: shapes, splits, order of axes, padding."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

import gradtape as tf
from gradtape.backend import op
from keras_gradtape.src.ops.core import convert_to_tensor
from keras_gradtape.src.ops.reductions import summable
from keras_gradtape.src.ops.types import common

_take_along = op("take_along")

# ---- shapes -------------------------------------------------------------------------------------


def ndim(x: Any) -> int:
    return convert_to_tensor(x).ndim


def size(x: Any) -> int:
    return int(np.prod(convert_to_tensor(x).shape, dtype=np.int64))


def reshape(x: Any, newshape: Any) -> Any:
    return tf.reshape(convert_to_tensor(x), [newshape] if isinstance(newshape, int) else newshape)


def ravel(x: Any) -> Any:
    return tf.reshape(convert_to_tensor(x), [-1])


def broadcast_to(x: Any, shape: Any) -> Any:
    return tf.broadcast_to(convert_to_tensor(x), shape)


def expand_dims(x: Any, axis: Any) -> Any:
    x = convert_to_tensor(x)
    if isinstance(axis, int):
        return tf.expand_dims(x, axis)
    rank = x.ndim + len(axis)
    places = {a % rank for a in axis}
    if len(places) != len(axis):
        raise ValueError(f"expand_dims: an axis is named twice; got axis={axis}")
    old = iter(x.shape)
    return tf.reshape(x, [1 if d in places else next(old) for d in range(rank)])


def squeeze(x: Any, axis: Any = None) -> Any:
    x = convert_to_tensor(x)
    if axis is not None:
        axes = [axis] if isinstance(axis, int) else list(axis)
        if builtins.any(x.shape[a] != 1 for a in axes):
            raise ValueError(
                f"squeeze: only axes of length 1 can go; got axis={axis} of shape {tuple(x.shape)}"
            )
        if not axes:
            return x
        axis = axes
    return tf.squeeze(x, axis)


# ---- order of axes ------------------------------------------------------------------------------


def transpose(x: Any, axes: Any = None) -> Any:
    return tf.transpose(convert_to_tensor(x), axes)


def swapaxes(x: Any, axis1: int, axis2: int) -> Any:
    x = convert_to_tensor(x)
    order = list(range(x.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return tf.transpose(x, order)


def moveaxis(x: Any, source: Any, destination: Any) -> Any:
    x = convert_to_tensor(x)
    sources = [a % x.ndim for a in _listed(source)]
    places = [a % x.ndim for a in _listed(destination)]
    order = [a for a in range(x.ndim) if a not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return tf.transpose(x, order)


def _listed(axis: Any) -> list:
    return [axis] if isinstance(axis, int) else list(axis)


# ---- order of elements --------------------------------------------------------------------------


def flip(x: Any, axis: Any = None) -> Any:
    x = convert_to_tensor(x)
    return tf.reverse(x, list(range(x.ndim)) if axis is None else _listed(axis))


def fliplr(x: Any) -> Any:
    return flip(x, 1)


def flipud(x: Any) -> Any:
    return flip(x, 0)


def roll(x: Any, shift: Any, axis: Any = None) -> Any:
    x = convert_to_tensor(x)
    if axis is None:
        return tf.reshape(tf.roll(tf.reshape(x, [-1]), shift, 0), x.shape)
    shifts, axes = np.broadcast_arrays(shift, axis)
    return tf.roll(x, shifts.reshape(-1).tolist(), axes.reshape(-1).tolist())


def rot90(array: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Any:
    x = convert_to_tensor(array)
    if x.ndim < 2:
        raise ValueError(f"Input array must have at least 2 dimensions. Received: array.ndim={x.ndim}")
    if len(axes) != 2 or axes[0] % x.ndim == axes[1] % x.ndim:
        raise ValueError(f"Invalid axes: {axes}. Axes must be a tuple of two different dimensions.")
    first, second = axes
    turns = k % 4
    if turns == 2:
        return flip(x, [first, second])
    if turns == 1:
        return swapaxes(flip(x, second), first, second)
    return flip(swapaxes(x, first, second), second) if turns == 3 else x


# ---- joining ------------------------------------------------------------------------------------


def concatenate(xs: Any, axis: int | None = 0) -> Any:
    parts = common(*xs)
    return tf.concat([tf.reshape(p, [-1]) for p in parts], 0) if axis is None else tf.concat(parts, axis)


def append(x1: Any, x2: Any, axis: int | None = None) -> Any:
    return concatenate((x1, x2), axis)


def stack(x: Any, axis: int = 0) -> Any:
    return tf.stack(common(*x), axis)


def hstack(xs: Any) -> Any:
    parts = [_at_least(x, 1) for x in common(*xs)]
    return tf.concat(parts, 0 if parts[0].ndim == 1 else 1)


def vstack(xs: Any) -> Any:
    return tf.concat([_at_least(x, 2) for x in common(*xs)], 0)


def dstack(xs: Any) -> Any:
    return tf.concat([_at_least(x, 3) for x in common(*xs)], 2)


def _at_least(x: Any, rank: int) -> Any:
    """Adds axes as NumPy does before stacking: rows come first, depth comes last."""
    if x.ndim >= rank:
        return x
    shape = [1] * (builtins.min(rank, 2) - x.ndim) + list(x.shape)
    return tf.reshape(x, shape + [1] * (rank - len(shape)))


# ---- splitting ----------------------------------------------------------------------------------


def _cut(x: Any, places: Any, axis: int) -> list:
    length = x.shape[axis]
    ends = [builtins.min(p if p >= 0 else builtins.max(p + length, 0), length) for p in map(int, places)]
    sizes = [builtins.max(b - a, 0) for a, b in zip([0, *ends], [*ends, length], strict=True)]
    if builtins.sum(sizes) == length:
        return list(tf.split(x, sizes, axis))
    before = (slice(None),) * (axis % x.ndim)  # decreasing positions: chunks overlap or are empty
    return [x[(*before, slice(a, a + n))] for a, n in zip([0, *ends], sizes, strict=True)]


def split(x: Any, indices_or_sections: Any, axis: int = 0) -> list:
    x = convert_to_tensor(x)
    if not isinstance(indices_or_sections, (int, np.integer)):
        return _cut(x, np.asarray(indices_or_sections), axis)
    if x.shape[axis] % indices_or_sections:
        raise ValueError(
            f"split: an axis of length {x.shape[axis]} has no {indices_or_sections} equal parts; got "
            f"indices_or_sections={indices_or_sections}, axis={axis}"
        )
    return list(tf.split(x, int(indices_or_sections), axis))


def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> list:
    x = convert_to_tensor(x)
    if not isinstance(indices_or_sections, (int, np.integer)):
        return _cut(x, np.asarray(indices_or_sections), axis)
    count, rest = divmod(x.shape[axis], int(indices_or_sections))
    sizes = [count + 1] * rest + [count] * (int(indices_or_sections) - rest)
    return list(tf.split(x, sizes, axis))


def vsplit(x: Any, indices_or_sections: Any) -> list:
    return split(x, indices_or_sections, 0)


def hsplit(x: Any, indices_or_sections: Any) -> list:
    x = convert_to_tensor(x)
    return split(x, indices_or_sections, 0 if x.ndim == 1 else 1)


def dsplit(x: Any, indices_or_sections: Any) -> list:
    return split(x, indices_or_sections, 2)


# ---- repeating and edges --------------------------------------------------------------------------


def tile(x: Any, repeats: Any) -> Any:
    x = convert_to_tensor(x)
    times = [int(r) for r in np.asarray(repeats).reshape(-1)]
    rank = builtins.max(x.ndim, len(times))
    if rank > x.ndim:
        x = tf.reshape(x, [1] * (rank - x.ndim) + list(x.shape))
    return tf.tile(x, [1] * (rank - len(times)) + times)


def repeat(x: Any, repeats: Any, axis: int | None = None) -> Any:
    x = convert_to_tensor(x)
    if axis is None:
        x, axis = tf.reshape(x, [-1]), 0
    times = np.asarray(repeats)
    if times.size == 1:
        return tf.repeat(x, int(times.reshape(())), axis)
    return _rearranged(x, np.repeat(np.arange(x.shape[axis]), times), axis)


def _rearranged(x: Any, places: np.ndarray, axis: int) -> Any:
    """The elements at `places`, with a dense gradient: most elements take part."""
    return tf.gather(tf.identity(x), places.astype(np.int32), axis=axis)


_EDGES: dict[str, Any] = {"circular": "wrap", "empty": "edge", "replicate": "edge"}  # NumPy's names


def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = None) -> Any:
    x = convert_to_tensor(x)
    if mode != "constant" and constant_values is not None:
        raise ValueError(
            "Argument `constant_values` can only be provided when `mode == 'constant'`. "
            f"Received: mode={mode}"
        )
    widths = np.broadcast_to(np.asarray(pad_width, np.int64), (x.ndim, 2)).tolist()
    if mode == "constant":
        value = convert_to_tensor(0 if constant_values is None else constant_values, x.dtype.name)
        return tf.pad(x, widths, constant_values=value)
    edges = _EDGES.get(mode, mode)
    if edges not in ("edge", "reflect", "symmetric", "wrap"):
        raise ValueError(f"pad: expected a mode that repeats elements, or 'constant'; got mode={mode!r}")
    for axis, width in enumerate(widths):
        if builtins.any(width):  # NumPy computes the index of each element
            x = _rearranged(x, np.pad(np.arange(x.shape[axis]), width, edges), axis)
    return x


# ---- elements by their positions--------------------------------------------------------------------


def _places(indices: Any, length: int) -> Any:
    """Indices that may count from the end."""
    if isinstance(indices, (int, np.generic, np.ndarray)) and int(np.min(indices, initial=0)) >= 0:
        return convert_to_tensor(indices, "int32")
    indices = convert_to_tensor(indices)
    if indices.dtype.is_unsigned:
        return indices
    if indices.dtype.name not in ("int32", "int64"):
        indices = tf.cast(indices, tf.int32)
    return tf.where(indices < 0, indices + length, indices)


def take(x: Any, indices: Any, axis: int | None = None) -> Any:
    x = convert_to_tensor(x)
    if axis is None:
        x, axis = tf.reshape(x, [-1]), 0
    return tf.gather(x, _places(indices, x.shape[axis]), axis=axis)


def take_along_axis(x: Any, indices: Any, axis: int | None = None) -> Any:
    x, indices = convert_to_tensor(x), convert_to_tensor(indices)
    if axis is None:
        x, axis = tf.reshape(x, [-1]), 0
        indices = tf.reshape(indices, [-1])
    if x.ndim != indices.ndim:
        raise ValueError(
            "`x` and `indices` must have the same number of axes. "
            f"Received: x.shape={tuple(x.shape)}, indices.shape={tuple(indices.shape)}"
        )
    axis %= x.ndim
    # All axes but one broadcast.
    a, b = list(x.shape), list(indices.shape)
    a[axis] = b[axis] = 1
    shape = tf.broadcast_static_shape(a, b).as_list()
    places = _places(indices, x.shape[axis])
    places = tf.broadcast_to(places, [*shape[:axis], indices.shape[axis], *shape[axis + 1 :]])
    x = tf.broadcast_to(x, [*shape[:axis], x.shape[axis], *shape[axis + 1 :]])
    return _take_along(x, places, axis)


def unravel_index(indices: Any, shape: Any) -> tuple:
    indices = convert_to_tensor(indices)
    dtype = indices.dtype
    indices = _places(indices if dtype is tf.int64 else tf.cast(indices, tf.int32), int(np.prod(shape)))
    places = []
    for length in reversed([int(d) for d in shape]):
        places.append(tf.cast(tf.math.floormod(indices, length), dtype))
        indices = tf.math.floordiv(indices, length)
    return tuple(reversed(places))


# ---- diagonals ------------------------------------------------------------------------------------


def diag(x: Any, k: int = 0) -> Any:
    x = convert_to_tensor(x)
    if x.ndim == 1:
        return tf.linalg.diag(x, k=int(k))
    if x.ndim == 2:
        return diagonal(x, k)
    raise ValueError(f"`x` must be 1d or 2d, but received shape {tuple(x.shape)}.")


def diagflat(x: Any, k: int = 0) -> Any:
    return diag(ravel(x), k)


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    x = convert_to_tensor(x)
    if x.ndim < 2:
        raise ValueError(
            f"`diagonal` requires an array of at least two dimensions. Received: x.shape={tuple(x.shape)}"
        )
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    rows, columns = x.shape[-2:]
    if not -rows < offset < columns:
        return tf.zeros([*x.shape[:-2], 0], x.dtype)
    return tf.linalg.diag_part(x, k=int(offset))


def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return tf.reduce_sum(diagonal(summable(x), offset, axis1, axis2), -1)


def _triangle(x: Any, k: int, lower: bool) -> Any:
    x = convert_to_tensor(x)
    if lower and k >= 0:
        return tf.linalg.band_part(x, -1, k)
    if not lower and k <= 0:
        return tf.linalg.band_part(x, -k, -1)
    rows, columns = x.shape[-2:]
    mask = np.tri(rows, columns, k if lower else k - 1, dtype=bool)
    return tf.where(mask if lower else ~mask, x, tf.zeros([], x.dtype))


def tril(x: Any, k: int = 0) -> Any:
    return _triangle(x, int(k), True)


def triu(x: Any, k: int = 0) -> Any:
    return _triangle(x, int(k), False)
