"""Crops boxes from images and resizes them: crop_and_resize, extract_glimpse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError, OutOfRangeError
from gradtape._src.ops.random import normal, uniform
from gradtape._src.ops.static import ints_of
from gradtape.image.arguments import as_tensor, float_of
from gradtape.image.sampling import sample_grid


def crop_and_resize(
    image: Any,
    boxes: Any,
    box_indices: Any,
    crop_size: Any,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    name: str | None = None,
) -> Any:
    """Crops boxes from images and resizes them to one size: `[boxes, height, width, channels]`, float32.

    Differentiable with respect to `image` and, if bilinear, to `boxes`. The corners of a box are pixel centres, and
    a box may be reversed, or reach outside its image.

    Args:
      image: `[batch, height, width, channels]`.
      boxes: `[boxes, 4]` with `[y1, x1, y2, x2]`, where 0 and 1 are the first and the last pixel.
      box_indices: `[boxes]`, the index of the image of each box.
      crop_size: `[height, width]` of the result.
      method: "bilinear" or "nearest".
      extrapolation_value: the value outside of the image.
    """
    x, boxes, at = as_tensor(image), as_tensor(boxes), as_tensor(box_indices)
    if method not in ("bilinear", "nearest"):
        raise InvalidArgumentError(
            f"crop_and_resize: method must be 'bilinear' or 'nearest'; got {method!r}."
        )
    if x.ndim != 4 or boxes.ndim != 2 or boxes.shape[1] != 4 or tuple(at.shape) != (boxes.shape[0],):
        raise InvalidArgumentError(
            "crop_and_resize: wrong shapes; expected image: [batch, height, width, channels], boxes: [n, 4], "
            f"box_indices: [n]; got image: {list(x.shape)}, boxes: {list(boxes.shape)}, "
            f"box_indices: {list(at.shape)}."
        )
    height, width = _two_sizes(crop_size)
    if min(height, width) <= 0 or 0 in tuple(x.shape)[1:3]:
        raise InvalidArgumentError(
            f"crop_and_resize: sizes must be positive; got image: {list(x.shape)}, crop_size: {[height, width]}."
        )
    if at._symbol is None and at._numel and not _all_within(at.numpy(), x.shape[0]):
        raise OutOfRangeError(
            f"crop_and_resize: box_indices has values outside [0, batch_size); got a batch of {x.shape[0]}."
        )
    out = sampled(
        float_of(x), ops.cast(boxes, float_of(x).dtype), at, height, width, method, extrapolation_value
    )
    return ops.cast(out, dtypes.float32)


def _all_within(values: np.ndarray, limit: int) -> bool:
    return bool(values.min() >= 0 and values.max() < limit)


def _two_sizes(size: Any) -> tuple[int, int]:
    sizes = ints_of(size)
    if len(sizes) != 2:
        raise InvalidArgumentError(f"crop_size must be two integers [height, width]; got {sizes}.")
    return sizes[0], sizes[1]


def _places(first: Any, last: Any, count: int, size: int) -> Any:
    """`count` positions, evenly spaced from `first` to `last` (fractions of an image of `size` pixels)."""
    if count == 1:
        return ops.expand_dims(0.5 * (first + last) * (size - 1), 1)
    step = ops.expand_dims((last - first) * ((size - 1) / (count - 1)), 1)
    steps = ops.convert_to_tensor(np.arange(count, dtype=np.float64), first.dtype)
    return ops.expand_dims(first * (size - 1), 1) + steps * step


def sampled(
    x: _core.Tensor, boxes: Any, at: Any, height: int, width: int, method: str, outside: float
) -> _core.Tensor:
    """`crop_and_resize` in the float type of its operands."""
    rows, columns = tuple(x.shape)[1:3]
    y1, x1, y2, x2 = ops.unstack(boxes, axis=1)
    ys, xs = _places(y1, y2, height, rows), _places(x1, x2, width, columns)
    nearest = method == "nearest"
    out = sample_grid(x, at, _nearest(ys, rows) if nearest else ys, _nearest(xs, columns) if nearest else xs)
    if outside == 0:
        return out
    inside = ops.logical_and(
        ops.logical_and(ys >= 0, ys <= rows - 1)[:, :, None, None],
        ops.logical_and(xs >= 0, xs <= columns - 1)[:, None, :, None],
    )
    return ops.select(inside, out, ops.cast(as_tensor(float(outside)), x.dtype))


def _nearest(places: Any, size: int) -> Any:
    """Positions rounded to pixels; those outside the image stay outside."""
    inside = ops.logical_and(places >= 0, places <= size - 1)
    return ops.stop_gradient(ops.select(inside, ops.floor(places + 0.5), places))


def extract_glimpse(
    input: Any,
    size: Any,
    offsets: Any,
    centered: bool = True,
    normalized: bool = True,
    noise: str = "uniform",
    name: str | None = None,
) -> Any:
    """A window of `size` from each image; outside of the image it contains noise.

    Args:
      input: images `[batch, height, width, channels]`.
      size: the `[height, width]` of the windows.
      offsets: `[batch, 2]`, the position of each window: `[y, x]`.
      centered: `[0, 0]` is the middle of the image, not its upper left corner.
      normalized: offsets are fractions of the image (from -1 to 1 when centered, else from 0 to 1), not pixels.
        As in TensorFlow, an offset is the middle of the window if both are set, else its upper left corner.
      noise: "uniform", "gaussian" or "zero".
    """
    x = float_of(as_tensor(input))
    where = as_tensor(offsets)
    height, width = _two_sizes(size)
    if x.ndim != 4 or tuple(where.shape) != (x.shape[0], 2):
        raise InvalidArgumentError(
            "extract_glimpse: wrong shapes; expected input: [batch, height, width, channels], offsets: [batch, 2]; "
            f"got input: {list(x.shape)}, offsets: {list(where.shape)}."
        )
    batch, _, _, channels = x.shape
    firsts = []
    for k, (whole, part) in enumerate(((x.shape[1], height), (x.shape[2], width))):
        at = where[:, k]
        if normalized:
            at = (at + 1) * (whole / 2) - part / 2 if centered else at * whole
        elif centered:
            at = at + whole / 2
        firsts.append(ops.cast(ops.trunc(at), dtypes.int64)[:, None] + np.arange(part, dtype=np.int64))
    rows, columns = firsts
    row, column = ops.clip(rows, 0, x.shape[1] - 1), ops.clip(columns, 0, x.shape[2] - 1)
    inside = ops.logical_and(
        ops.equal(row, rows)[:, :, None, None], ops.equal(column, columns)[:, None, :, None]
    )
    images = ops.reshape(ops.convert_to_tensor(np.arange(batch)), [batch, 1, 1]) * (x.shape[1] * x.shape[2])
    pixels = ops.reshape(x, [math.prod(tuple(x.shape)[:3]), channels])
    out = ops.gather(pixels, images + row[:, :, None] * x.shape[2] + column[:, None, :])
    return ops.select(inside, out, _noise(noise, list(out.shape), x.dtype))


def _noise(kind: str, shape: list[int], dtype: Any) -> Any:
    if kind == "zero":
        return ops.zeros(shape, dtype)
    if kind == "uniform":
        return uniform(shape, 0, 1, dtype)
    if kind == "gaussian":
        return normal(shape, 0.5, 0.5, dtype)
    raise ValueError(f"extract_glimpse: noise must be 'uniform', 'gaussian' or 'zero'; got {kind!r}.")
