"""Pooling over windows of 1, 2 and 3 spatial axes: the rows, and the functions of `tf.nn`.

The gradient of a maximum goes to the first of equal elements. `max_unpool`, which puts values at the
positions of the maxima of x, and `max_pool_pick`, which takes them from there, are transposes of each
other; so are `avg_pool` and `avg_unpool`.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError, UnimplementedError
from gradtape._src.ops.casting import cast
from gradtape._src.ops.movement import broadcast_to, reshape
from gradtape._src.ops.samples import at, call
from gradtape._src.ops.static import ints_of
from gradtape._src.ops.table import FLOAT, REAL, composite, contraction, opaque
from gradtape._src.ops.windows import (
    FORMATS,
    PADDINGS,
    channels_first,
    on_images,
    paddings,
    per_axis,
    resolved,
    results_of,
    steps_of,
)
from gradtape._src.tensors.conversion import as_tensor

__all__ = [
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "avg_pool_nd", "max_pool1d", "max_pool2d", "max_pool3d",
    "max_pool_nd", "max_pool_with_argmax", "pool",
]  # fmt: skip

# ---- NumPy references -----------------------------------------------------------------------------


def _windows(shape, sizes, strides, dilations, paddings):
    """For each window, the index of its result and the indices of its elements along the spatial axes."""
    low = resolved(paddings, shape, sizes, strides, dilations)[::2]
    for place in itertools.product(*map(range, results_of(shape, sizes, strides, dilations, paddings))):
        first = [p * s - n for p, s, n in zip(place, strides, low, strict=True)]
        elements = [
            tuple(x + t * d for x, t, d in zip(first, tap, dilations, strict=True))
            for tap in itertools.product(*map(range, sizes))
        ]
        yield place, [e for e in elements if all(0 <= x < n for x, n in zip(e, shape, strict=True))]


def _zeros(x, window, dtype=np.float64):
    return np.zeros((x.shape[0], *results_of(x.shape[1:-1], *window), x.shape[-1]), dtype)


def _first_largest(stack):
    return np.where(np.isnan(stack).any(0), np.isnan(stack).argmax(0), stack.argmax(0))


def _numpy_places(x, *window):
    """The flat index of the largest element of each window in x."""
    numbers = np.arange(x.size).reshape(x.shape)
    out = _zeros(x, window, np.int64)
    for place, elements in _windows(x.shape[1:-1], *window):
        stack = np.stack([x[(slice(None), *e)] for e in elements])
        which = np.stack([numbers[(slice(None), *e)] for e in elements])
        out[(slice(None), *place)] = np.take_along_axis(which, _first_largest(stack)[None], 0)[0]
    return out


def _numpy_argmax(x, sizes, strides, dilations, paddings, batch=True):
    places = _numpy_places(x, sizes, strides, dilations, paddings)
    return places if batch else places % max(1, x[:1].size)


def _numpy_pick(x, t, sizes, strides, dilations, paddings):
    return t.reshape(-1)[_numpy_places(x, sizes, strides, dilations, paddings)]


def _numpy_max(x, sizes, strides, dilations, paddings):
    return _numpy_pick(x, x, sizes, strides, dilations, paddings)


def _numpy_unpool(x, g, sizes, strides, dilations, paddings):
    out = np.zeros(x.size)
    np.add.at(out, _numpy_places(x, sizes, strides, dilations, paddings).reshape(-1), g.reshape(-1))
    return out.reshape(x.shape)


def _numpy_avg(x, sizes, strides, dilations, paddings):
    window = (sizes, strides, dilations, paddings)
    out = _zeros(x, window)
    for place, elements in _windows(x.shape[1:-1], *window):
        out[(slice(None), *place)] = np.mean([x[(slice(None), *e)] for e in elements], 0)
    return out


def _numpy_avg_unpool(g, shape, sizes, strides, dilations, paddings):
    out = np.zeros(shape)
    for place, elements in _windows(shape[1:-1], sizes, strides, dilations, paddings):
        for e in elements:
            out[(slice(None), *e)] += g[(slice(None), *place)] / len(elements)
    return out


# ---- rows -----------------------------------------------------------------------------------------
# A window is given by sizes, strides, dilations and paddings. One more leading axis means more images.


def _fold(x):
    return reshape(x, [x.shape[0] * x.shape[1], *x.shape[2:]])


def _batch(op):
    def rule(size, batched, operands, attrs):
        xs = [x if b else broadcast_to(x, [size, *x.shape]) for x, b in zip(operands, batched, strict=True)]
        out = op()(*map(_fold, xs), *attrs)
        return reshape(out, [size, out.shape[0] // size, *out.shape[1:]])

    return rule


def _batch_avg_unpool(size, batched, operands, attrs):
    (g,), (shape, *window) = operands, attrs
    return reshape(avg_unpool(_fold(g), [size * shape[0], *shape[1:]], *window), [size, *shape])


def _batch_argmax(size, batched, operands, attrs):
    *window, batch = attrs
    (x,) = operands
    if batch:
        return None  # indices start again for each slice: loop
    out = max_pool_argmax(_fold(x), *window, False)
    return reshape(out, [size, out.shape[0] // size, *out.shape[1:]])


def _window(sizes, strides=None, dilations=None, paddings=None):
    dims = len(sizes)
    return {
        "sizes": sizes, "strides": strides or sizes, "dilations": dilations or [1] * dims,
        "paddings": paddings or [],
    }  # fmt: skip


_CASES: list[tuple] = [
    ((2, 4, 6, 3), _window([2, 3])),
    ((1, 5, 7, 2), _window([2, 3], [2, 2], paddings=[-1])),  # "SAME"
    ((1, 5, 4, 2), _window([3, 2], [2, 1], paddings=[1, 1, 0, 1])),
    ((1, 5, 7, 1), _window([2, 2], [3, 3])),
    ((1, 3, 3, 17), _window([2, 2], [1, 1])),
    ((1, 7, 6, 2), _window([2, 3], [1, 1], [3, 2])),
    ((2, 5, 3), _window([3], [2], paddings=[1, 1])),
    ((1, 3, 4, 3, 2), _window([2, 2, 2], [1, 2, 1], paddings=[0, 1, 0, 0, 0, 0])),
    ((0, 4, 4, 2), _window([2, 2])),
    ((1, 2, 4, 3), _window([3, 2], [1, 2])),  # no results
]
_INVALID = "InvalidArgumentError"
_BAD = [
    (call((1, 4, 4, 1), **_window([6, 2], [1, 1])), _INVALID, "Computed output size would be negative: -1"),
    (call((1, 4, 4, 1), **_window([0, 2], [1, 1])), _INVALID, "ksize must be positive"),
    (call((1, 4, 4, 1), **_window([2, 2], [0, 1])), _INVALID, "Stride must be > 0, but got 0"),
    (call((4, 4, 1), **_window([2, 2])), _INVALID, "needs an input of rank 4, got 3"),
    (
        call((1, 4, 4, 1), **_window([2, 2], paddings=[2, 0, 0, 0])),
        _INVALID,
        "smaller than the window size 2",
    ),
    (call((1, 4, 4, 1), **_window([2, 2], paddings=[-1, 0, 0, 0])), _INVALID, "must be non-negative"),
]
_ARGS = "sizes:Ints strides:Ints dilations:Ints paddings:Ints"


def _out_of(shape, window):
    return (shape[0], *results_of(shape[1:-1], *window.values()), shape[-1])


def _tied(window, gradient):
    """An image with equal elements, and TensorFlow's gradient of the sum of its maxima."""
    image = [[1.0, 2, 2, 1], [2, 2, 0, 0], [3, 1, 1, 3], [1, 3, 3, 1]]
    gradient = [[[[float(v)] for v in row] for row in gradient]]
    return call(at([[[[v] for v in row] for row in image]]), **window), (gradient,)


_EDGES = [
    _tied(_window([2, 2]), [[0, 1, 1, 0], [0, 0, 0, 0], [1, 0, 0, 1], [0, 0, 0, 0]]),
    _tied(_window([2, 2], [1, 1]), [[0, 2, 1, 0], [0, 1, 0, 0], [2, 0, 0, 2], [0, 1, 0, 0]]),
    _tied(
        _window([3, 3], [1, 1], paddings=[1] * 4), [[0, 3, 1, 0], [0, 0, 0, 0], [6, 0, 0, 6], [0, 0, 0, 0]]
    ),
    _tied(_window([2, 2], paddings=[1] * 4), [[1, 1, 0, 1], [0, 1, 0, 0], [1, 0, 0, 1], [1, 1, 0, 1]]),
]

max_pool = opaque(
    "max_pool", REAL, f"input {_ARGS}", xla="pooling.max_pool",
    rule=lambda g, x, out, *window: max_unpool(x, g, *window),
    batch=_batch(lambda: max_pool), numpy=_numpy_max,
    samples=[call(x, **window) for x, window in _CASES], bad=_BAD, edges=_EDGES,
    doc="The largest element of each window of images `[n, in..., channels]`. Elements outside of the image are "
        "ignored; NaN counts as larger than any number.",
)  # fmt: skip

max_pool_argmax = opaque(
    "max_pool_argmax", REAL, f"input {_ARGS} batch:Bool=True", rule=None, xla="pooling.max_pool_argmax",
    batch=_batch_argmax, numpy=_numpy_argmax,
    samples=[
        *(call(x, **window) for x, window in _CASES),
        call((2, 4, 4, 2), **_window([2, 2]), batch=False),
    ],
    bad=_BAD,
    doc="The flat index of the largest element of each window in its image, or with `batch` in all images.",
)  # fmt: skip

max_pool_pick = opaque(
    "max_pool_pick", FLOAT, f"input t {_ARGS}", linear="t", xla="pooling.max_pool_pick",
    rule=(0, lambda g, x, t, out, *window: max_unpool(x, g, *window)),
    batch=_batch(lambda: max_pool_pick), numpy=_numpy_pick,
    samples=[call(x, x, **window) for x, window in _CASES],
    bad=[(call((1, 4, 4, 1), (1, 4, 4, 2), **_window([2, 2])), _INVALID, "t must have the shape")],
    doc="The elements of `t` at the positions of the largest elements of the windows of `input`.",
)  # fmt: skip

max_unpool = opaque(
    "max_unpool", FLOAT, f"input g {_ARGS}", linear="g", xla="pooling.max_unpool",
    rule=(0, lambda gg, x, g, out, *window: max_pool_pick(x, gg, *window)),
    batch=_batch(lambda: max_unpool), numpy=_numpy_unpool,
    samples=[call(x, _out_of(x, window), **window) for x, window in _CASES],
    bad=[(call((1, 4, 4, 1), (1, 4, 4, 1), **_window([2, 2])), _INVALID, "g must have the shape [1,2,2,1]")],
    doc="The transpose of `max_pool_pick`: zeros with `g` added at the positions of the largest elements.",
)  # fmt: skip

avg_pool = contraction(
    "avg_pool", FLOAT, f"input {_ARGS}", xla="pooling.avg_pool",
    transposes=(lambda g, x, out, *window: avg_unpool(g, x.shape, *window),),
    batch=_batch(lambda: avg_pool), numpy=_numpy_avg,
    samples=[call(x, **window) for x, window in _CASES], bad=_BAD,
    doc="The mean of each window of images `[n, in..., channels]`. Elements outside of the image are ignored.",
)  # fmt: skip

avg_unpool = contraction(
    "avg_unpool", FLOAT, f"g shape:Ints {_ARGS}", xla="pooling.avg_unpool",
    transposes=(lambda gg, g, out, shape, *window: avg_pool(gg, *window),),
    batch=_batch_avg_unpool, numpy=_numpy_avg_unpool,
    samples=[call(_out_of(x, window), shape=list(x), **window) for x, window in _CASES],
    bad=[(call((1, 3, 2, 1), shape=[1, 4, 4, 1], **_window([2, 2])), _INVALID, "g must have the shape [1,2,2,1]")],
    doc="The transpose of `avg_pool`: each element of `g` is divided equally among the elements of its window.",
)  # fmt: skip


# ---- tf.nn ----------------------------------------------------------------------------------------


def _pooled(name, row, x, ksize, strides, padding, data_format, dims, dilations=None):
    x = as_tensor(x)
    first = channels_first(name, data_format, dims)
    deep = _depth_window(name, row, x, ksize, strides, dims, first)
    if deep is not None:
        return deep
    sizes = per_axis(name, ksize, dims, first, "ksize")
    strides = per_axis(name, strides, dims, first, "strides")
    dilations = dilations or [1] * dims
    if x.ndim != dims + 2:
        raise InvalidArgumentError(
            f"{name}: Input must be {dims + 2}-dimensional; got {x.dtype.name}{x.shape.as_list()}."
        )

    pads = paddings(name, padding, dims, first)
    return on_images(name, x, dims, first, lambda x: row(x, sizes, strides, dilations, pads))


def _depth_window(name, row, x, ksize, strides, dims, first):
    """Max pooling over windows of adjacent channels."""
    if type(ksize) is int:
        return None
    sizes = ints_of(ksize)
    if len(sizes) != dims + 2:
        return None
    if sizes[0] != 1:
        raise UnimplementedError(f"{name}: Pooling is not yet supported on the batch dimension.")
    depth = sizes[1 if first else -1]
    if depth == 1:
        return None
    if row is not max_pool or sum(n != 1 for n in sizes) > 1:
        raise UnimplementedError(
            f"{name}: MaxPooling supports exactly one of pooling across depth or pooling across width/height."
        )
    steps = ints_of(strides)
    if first or x.shape[-1] % depth or (steps * (dims + 2))[-1] != depth:
        raise UnimplementedError(
            f"{name}: Depthwise max pooling requires the depth window to equal the depth stride and to evenly "
            f"divide the input depth; got a window of {depth} for {x.shape[-1]} channels."
        )
    *outer, c = x.shape
    flat = reshape(x, [-1 if x._numel else 0, c, 1])
    return reshape(max_pool(flat, [depth], [depth], [1], []), [*outer, c // depth])


def _dims_of(name, x):
    if not 3 <= x.ndim <= 5:
        raise ValueError(
            f"{name}: `input.shape.rank` must be 3, 4 or 5. Received: input.shape={x.shape} of rank {x.ndim}."
        )
    return x.ndim - 2


@composite("nn.max_pool1d")
def max_pool1d(input, ksize, strides, padding, data_format="NWC", name=None):
    """The largest element of each window of sequences `[batch, width, channels]`; see `max_pool2d`."""
    return _pooled("max_pool1d", max_pool, input, ksize, strides, padding, data_format, 1)


@composite("nn.max_pool2d")
def max_pool2d(input, ksize, strides, padding, data_format="NHWC", name=None):
    """The largest element of each window of images `[batch, height, width, channels]`.

    The gradient goes to the first of equal elements.

    Args:
      ksize: the size of the window: one number, one for height and one for width, or one for each axis.
      strides: the step from window to window, in the same forms.
      padding: "VALID" (only windows inside the image), "SAME" (windows may extend over the border, where
        elements outside are ignored), or `[[0, 0], [top, bottom], [left, right], [0, 0]]`.
      data_format: "NHWC" or "NCHW".
    """
    if type(input) is _core.Tensor and type(padding) is str and data_format == "NHWC":
        # A shortcut for the usual arguments.
        sizes, steps = steps_of(ksize), steps_of(strides)
        if sizes and steps and padding in PADDINGS and input.ndim == 4:
            return max_pool(input, sizes, steps, [1, 1], PADDINGS[padding])
    return _pooled("max_pool2d", max_pool, input, ksize, strides, padding, data_format, 2)


@composite("nn.max_pool3d")
def max_pool3d(input, ksize, strides, padding, data_format="NDHWC", name=None):
    """The largest element of each window of volumes `[batch, depth, height, width, channels]`."""
    return _pooled("max_pool3d", max_pool, input, ksize, strides, padding, data_format, 3)


@composite("nn.avg_pool1d")
def avg_pool1d(input, ksize, strides, padding, data_format="NWC", name=None):
    """The mean of each window of sequences `[batch, width, channels]`; see `avg_pool2d`."""
    return _pooled("avg_pool1d", avg_pool, input, ksize, strides, padding, data_format, 1)


@composite("nn.avg_pool2d")
def avg_pool2d(input, ksize, strides, padding, data_format="NHWC", name=None):
    """The mean of each window of images `[batch, height, width, channels]`.

    Windows that extend over the border (padding "SAME") average the elements inside the image. Arguments
    are those of `max_pool2d`.
    """
    return _pooled("avg_pool2d", avg_pool, input, ksize, strides, padding, data_format, 2)


@composite("nn.avg_pool3d")
def avg_pool3d(input, ksize, strides, padding, data_format="NDHWC", name=None):
    """The mean of each window of volumes `[batch, depth, height, width, channels]`."""
    return _pooled("avg_pool3d", avg_pool, input, ksize, strides, padding, data_format, 3)


@composite("nn.max_pool")
def max_pool_nd(input, ksize, strides, padding, data_format=None, name=None):
    """The largest element of each window over 1, 2 or 3 spatial axes: as many as `input` has."""
    x = as_tensor(input)
    return _pooled("max_pool", max_pool, x, ksize, strides, padding, data_format, _dims_of("max_pool", x))


@composite("nn.avg_pool")
def avg_pool_nd(input, ksize, strides, padding, data_format=None, name=None):
    """The mean of each window over 1, 2 or 3 spatial axes: as many as `input` has."""
    x = as_tensor(input)
    return _pooled("avg_pool", avg_pool, x, ksize, strides, padding, data_format, _dims_of("avg_pool", x))


@composite("nn.pool")
def pool(
    input,
    window_shape,
    pooling_type,
    strides=None,
    padding="VALID",
    data_format=None,
    dilations=None,
    name=None,
):
    """Max or average pooling, with optional dilation of the windows.

    Args:
      window_shape: one size for each spatial axis.
      pooling_type: "MAX" or "AVG".
      dilations: the spacing between the elements of a window, one for each spatial axis; it needs padding
        "VALID".
    """
    x = as_tensor(input)
    dims = len(window_shape)
    if dims not in FORMATS or x.ndim != dims + 2:
        raise ValueError(
            f"pool: `input.shape.rank` must be `len(window_shape) + 2`. Received: input.shape={x.shape}, "
            f"window_shape={window_shape}"
        )
    if pooling_type not in ("MAX", "AVG"):
        raise ValueError(f"pool: {dims}-D {pooling_type} pooling is not supported.")
    apart = per_axis("pool", dilations, dims, False, "dilations")
    if padding == "SAME" and any(d > 1 for d in apart):
        raise ValueError(
            f"pool: pooling with 'SAME' padding is not implemented for `dilation_rate` > 1. Received: "
            f"padding={padding} and dilation_rate={dilations}"
        )
    row = max_pool if pooling_type == "MAX" else avg_pool
    return _pooled("pool", row, x, window_shape, strides, padding, data_format, dims, apart)


class MaxPoolWithArgmax(NamedTuple):
    """What `max_pool_with_argmax` returns."""

    output: _core.Tensor
    argmax: _core.Tensor


@composite("nn.max_pool_with_argmax")
def max_pool_with_argmax(
    input, ksize, strides, padding, data_format="NHWC", output_dtype=dtypes.int64, include_batch_in_index=False,
    name=None,
):  # fmt: skip
    """The largest element of each window, and its index.

    Returns:
      The result of `max_pool2d`, and the flat index of each element, `(y * width + x) * channels + c`, or
      with `include_batch_in_index`, `((b * height + y) * width + x) * channels + c`.
    """
    if data_format != "NHWC":
        raise ValueError(
            f"max_pool_with_argmax: `data_format` values other than 'NHWC' are not supported. Received: "
            f"data_format={data_format}"
        )
    x = as_tensor(input)
    if x.ndim != 4:
        raise InvalidArgumentError(f"max_pool_with_argmax: tensor_in must be 4-dimensional; got {x.shape}.")
    sizes = per_axis("max_pool_with_argmax", ksize, 2, False, "ksize")
    strides = per_axis("max_pool_with_argmax", strides, 2, False, "strides")
    pads = paddings("max_pool_with_argmax", padding, 2, False)
    window = (sizes, strides, [1, 1], pads)
    places = max_pool_argmax(x, *window, bool(include_batch_in_index))
    return MaxPoolWithArgmax(max_pool(x, *window), cast(places, output_dtype))
