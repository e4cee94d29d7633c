"""The ops `sample_grid` and `unsample_grid`: images read at the points of grids, and the transpose.

A grid belongs to a box: its points are all pairs of a y and an x. Along each axis, both ops can return the value
between two pixels or the slope there, so the gradient with respect to the points is again one of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.ops.samples import at, call, ints
from gradtape._src.ops.table import opaque

_WIDE_FLOAT = 1 << dtypes.float32._code | 1 << dtypes.float64._code


def _matrix(places, size, slope):
    """[boxes, places, size]: the weight of each pixel for each position."""
    out = np.zeros((*places.shape, size))
    inside = (places >= 0) & (places <= size - 1)
    low = np.where(inside, np.floor(places), 0).astype(int)
    high = np.where(inside, np.ceil(places), 0).astype(int)
    part = np.where(inside, 1.0 if slope else places - low, 0.0)
    rest = np.where(inside, -1.0 if slope else 1.0 - part, 0.0)
    n, i = np.indices(places.shape)
    np.add.at(out, (n, i, low), rest)
    np.add.at(out, (n, i, high), part)
    return out


def _numpy_sample(x, at, ys, xs, dy=False, dx=False):
    rows, columns = _matrix(ys, x.shape[1], dy), _matrix(xs, x.shape[2], dx)
    return np.einsum("nhwc,nih,njw->nijc", x[at], rows, columns)


def _numpy_unsample(g, at, ys, xs, shape, dy=False, dx=False):
    out = np.zeros(shape)
    parts = np.einsum("nijc,nih,njw->nhwc", g, _matrix(ys, shape[1], dy), _matrix(xs, shape[2], dx))
    np.add.at(out, at, parts)
    return out


# A slope is constant between two pixels, so it has no gradient along its own axis.


def _sample_wrt_y(g, x, at, ys, xs, out, dy, dx):
    return ops.zeros_like(ys) if dy else ops.reduce_sum(g * sample_grid(x, at, ys, xs, True, dx), [2, 3])


def _sample_wrt_x(g, x, at, ys, xs, out, dy, dx):
    return ops.zeros_like(xs) if dx else ops.reduce_sum(g * sample_grid(x, at, ys, xs, dy, True), [1, 3])


def _unsample_wrt_y(gg, g, at, ys, xs, out, shape, dy, dx):
    return ops.zeros_like(ys) if dy else ops.reduce_sum(g * sample_grid(gg, at, ys, xs, True, dx), [2, 3])


def _unsample_wrt_x(gg, g, at, ys, xs, out, shape, dy, dx):
    return ops.zeros_like(xs) if dx else ops.reduce_sum(g * sample_grid(gg, at, ys, xs, dy, True), [1, 3])


def _unfolded(size, at, ys, xs, images):
    """Repeats the boxes for each row of a batch of `images` images, which are all one batch."""
    step = ops.convert_to_tensor(np.repeat(np.arange(size) * images, at.shape[0]), at.dtype)
    return ops.tile(at, [size]) + step, ops.tile(ys, [size, 1]), ops.tile(xs, [size, 1])


def _batch_sample(size, batched, operands, attrs):
    if any(batched[1:]):
        return None  # a loop
    x, *grid = operands
    shape = list(x.shape)
    out = sample_grid(
        ops.reshape(x, [shape[0] * shape[1], *shape[2:]]), *_unfolded(size, *grid, shape[1]), *attrs
    )
    return ops.reshape(out, [size, grid[0].shape[0], *out.shape[1:]])


def _batch_unsample(size, batched, operands, attrs):
    if any(batched[1:]):
        return None
    g, *grid = operands
    shape, *slopes = attrs
    g = ops.reshape(g, [size * grid[0].shape[0], *list(g.shape)[2:]])
    out = unsample_grid(g, *_unfolded(size, *grid, shape[0]), [size * shape[0], *shape[1:]], *slopes)
    return ops.reshape(out, [size, *shape])


_IMAGES, _AT = (2, 4, 3, 2), ints([1, 0, 1])
_YS = at([[0.2, 1.7], [2.6, 0.1], [-0.5, 3.4]])
_XS = at([[0.3, 1.1, 1.9], [1.6, 0.4, 2.7], [0.7, 1.2, 0.6]])
_SLOPES: tuple[dict[str, bool], ...] = ({}, {"dy": True}, {"dx": True}, {"dy": True, "dx": True})

sample_grid: Any = opaque(
    "sample_grid", _WIDE_FLOAT, "x at:Index ys xs dy:Bool=False dx:Bool=False", xla="image.sample_grid",
    rule=(
        lambda g, x, at, ys, xs, out, dy, dx: unsample_grid(g, at, ys, xs, x.shape, dy, dx),
        None, _sample_wrt_y, _sample_wrt_x,
    ),
    numpy=_numpy_sample, batch=_batch_sample, linear="x",
    samples=[
        *(call(_IMAGES, _AT, _YS, _XS, **slopes) for slopes in _SLOPES),
        call((1, 3, 3, 19), ints([0]), at([[0.5, 1.0]]), at([[2.0]])),
        call((2, 3, 3, 1), ints([]), (0, 2), (0, 3)), call((1, 2, 2, 0), ints([0]), at([[0.5]]), at([[0.5]])),
    ],
    gradient_samples=[call(_IMAGES, _AT, _YS, _XS, **slopes) for slopes in _SLOPES],
    bad=[
        (call((4, 3, 2), _AT, _YS, _XS), "InvalidArgumentError", "[batch, height, width, channels]"),
        (call(_IMAGES, ints([1, 2, 0]), _YS, _XS), "InvalidArgumentError", "box_indices[1] = 2 is not in [0, 2)"),
        (call(_IMAGES, ints([1]), _YS, _XS), "InvalidArgumentError", "[boxes, rows]"),
    ],
    doc="Images `x` at the points (ys, xs) of grids, between pixels interpolated; 0 outside the image.",
)  # fmt: skip

unsample_grid: Any = opaque(
    "unsample_grid", _WIDE_FLOAT, "g at:Index ys xs shape:Shape dy:Bool=False dx:Bool=False",
    xla="image.unsample_grid",
    rule=(
        lambda gg, g, at, ys, xs, out, shape, dy, dx: sample_grid(gg, at, ys, xs, dy, dx),
        None, _unsample_wrt_y, _unsample_wrt_x,
    ),
    numpy=_numpy_unsample, batch=_batch_unsample, linear="g",
    samples=[
        *(call((3, 2, 3, 2), _AT, _YS, _XS, shape=list(_IMAGES), **slopes) for slopes in _SLOPES),
        call((0, 2, 3, 1), ints([]), (0, 2), (0, 3), shape=[2, 3, 3, 1]),
    ],
    gradient_samples=[
        call((3, 2, 3, 2), _AT, _YS, _XS, shape=list(_IMAGES), **slopes) for slopes in _SLOPES
    ],
    bad=[
        (call((3, 2, 3, 1), _AT, _YS, _XS, shape=[2, 4, 3, 2]), "InvalidArgumentError", "g must have the shape [3,2,3,2]"),
        (
            call((3, 2, 3, 2), ints([0, 2, 0]), _YS, _XS, shape=[2, 4, 3, 2]), "InvalidArgumentError",
            "box_indices[1] = 2 is not in [0, 2)",
        ),
    ],
    doc="The transpose of `sample_grid`: images of `shape` with `g` spread over the pixels around its points.",
)  # fmt: skip
