"""Convolutions over 1, 2 and 3 spatial axes: three rows that are transposes of one another.

`conv(x, w)`, `conv_input(g, w)` and `conv_filter(x, g)` are the derivatives of one form that is linear
in x, w and g. So the gradient of each, to any order, consists of the other two. The functions
of `tf.nn` that call them are in `convolutions`.
"""

from __future__ import annotations

import itertools

import numpy as np

from gradtape._src.ops.movement import reshape, transpose
from gradtape._src.ops.samples import call
from gradtape._src.ops.table import FLOAT, contraction
from gradtape._src.ops.windows import resolved, results_of

__all__: list[str] = []

# ---- NumPy references -----------------------------------------------------------------------------


def _taps(kernel, out, strides, dilations):
    """Each tap of a filter, with the part of the padded x that it is multiplied with."""
    for tap in itertools.product(*map(range, kernel)):
        yield tap, (slice(None), *(
            slice(t * d, t * d + (o - 1) * s + 1 if o else 0, s)
            for t, o, s, d in zip(tap, out, strides, dilations, strict=True)
        ))  # fmt: skip


def _grouped(x, groups):
    return x.reshape(*x.shape[:-1], groups, x.shape[-1] // groups)


def _padded(x, kernel, strides, dilations, paddings):
    pads = resolved(paddings, x.shape[1:-1], kernel, strides, dilations)
    return np.pad(x, [(0, 0), *zip(pads[::2], pads[1::2], strict=True), (0, 0)])


def _numpy_conv(x, w, strides, dilations, paddings):
    kernel, out = w.shape[:-2], results_of(x.shape[1:-1], w.shape[:-2], strides, dilations, paddings)
    groups = x.shape[-1] // w.shape[-2]
    x = _padded(x, kernel, strides, dilations, paddings)
    y = np.zeros((x.shape[0], *out, groups, w.shape[-1] // groups))
    for tap, part in _taps(kernel, out, strides, dilations):
        y += np.einsum("...gc,cgo->...go", _grouped(x[part], groups), _grouped(w[tap], groups))
    return y.reshape(*y.shape[:-2], w.shape[-1])


def _numpy_conv_input(g, w, sizes, strides, dilations, paddings):
    groups = sizes[-1] // w.shape[-2]
    pads = resolved(paddings, sizes[:-1], w.shape[:-2], strides, dilations)
    low, high = pads[::2], pads[1::2]
    spatial = [n + a + b for n, a, b in zip(sizes[:-1], low, high, strict=True)]
    x = np.zeros((g.shape[0], *spatial, sizes[-1]))
    for tap, part in _taps(w.shape[:-2], g.shape[1:-1], strides, dilations):
        y = np.einsum("...go,cgo->...gc", _grouped(g, groups), _grouped(w[tap], groups))
        x[part] += y.reshape(*y.shape[:-2], sizes[-1])
    return x[(slice(None), *(slice(a, a + n) for a, n in zip(low, sizes[:-1], strict=True)))]


def _numpy_conv_filter(x, g, sizes, strides, dilations, paddings):
    *kernel, c = sizes
    groups = x.shape[-1] // c
    x = _padded(x, kernel, strides, dilations, paddings)
    w = np.zeros((*kernel, c, groups, g.shape[-1] // groups))
    for tap, part in _taps(kernel, g.shape[1:-1], strides, dilations):
        xs, gs = _grouped(x[part], groups), _grouped(g, groups)
        w[tap] = np.einsum("pgc,pgo->cgo", xs.reshape(-1, *xs.shape[-2:]), gs.reshape(-1, *gs.shape[-2:]))
    return w.reshape(*kernel, c, g.shape[-1])


# ---- one more leading axis ------------------------------------------------------------------------
# If only the images are batched, the batch gets larger. If both operands are, the filters become groups. If only the
# filters are, the new axis joins the channels that the other operand does not have.


def _folded(x):
    return reshape(x, [x.shape[0] * x.shape[1], *x.shape[2:]])


def _unfolded(x, size):
    return reshape(x, [size, x.shape[0] // size, *x.shape[1:]])


def _inward(x, at, groups=1):
    """Moves the leading axis into axis `at` of a slice, inside the groups of channels and before the rest."""
    size, *shape = x.shape
    row = [*shape[:at], groups, shape[at] // groups, *shape[at + 1 :]]
    perm = [*range(1, at + 2), 0, *range(at + 2, len(row) + 1)]
    shape[at] *= size
    return reshape(transpose(reshape(x, [size, *row]), perm), shape)


def _outward(x, at, size, groups=1):
    """The inverse of `_inward`."""
    shape = list(x.shape)
    shape[at] //= size
    parts = [*shape[:at], groups, size, shape[at] // groups, *shape[at + 1 :]]
    perm = [at + 1, *range(at + 1), *range(at + 2, len(parts))]
    return reshape(transpose(reshape(x, parts), perm), [size, *shape])


def _batch_conv(size, batched, operands, attrs):
    x, w = operands
    if not batched[1]:
        return _unfolded(conv(_folded(x), w, *attrs), size)
    last = x.ndim - 1 - batched[0]
    if batched[0]:
        return _outward(conv(_inward(x, last), _inward(w, last), *attrs), last, size)
    groups = x.shape[-1] // w.shape[-2]
    return _outward(conv(x, _inward(w, last, groups), *attrs), last, size, groups)


def _batch_input(size, batched, operands, attrs):
    (g, w), (sizes, *rest) = operands, attrs
    if not batched[1]:
        return _unfolded(conv_input(_folded(g), w, sizes, *rest), size)
    last, longer = g.ndim - 1 - batched[0], [*sizes[:-1], sizes[-1] * size]
    if batched[0]:
        return _outward(conv_input(_inward(g, last), _inward(w, last), longer, *rest), last, size)
    groups = sizes[-1] // w.shape[-2]
    return _outward(conv_input(g, _inward(w, last - 1), longer, *rest), last, size, groups)


def _batch_filter(size, batched, operands, attrs):
    (x, g), (sizes, *rest) = operands, attrs
    last = x.ndim - 1 - batched[0]
    if all(batched):
        return _outward(conv_filter(_inward(x, last), _inward(g, last), sizes, *rest), last, size)
    groups = x.shape[-1] // sizes[-1]
    if batched[1]:
        return _outward(conv_filter(x, _inward(g, last, groups), sizes, *rest), last, size, groups)
    longer = [*sizes[:-1], sizes[-1] * size]
    return _outward(conv_filter(_inward(x, last, groups), g, longer, *rest), last - 1, size)


# ---- rows -----------------------------------------------------------------------------------------


def _window(strides=1, dilations=1, paddings=0, dims=2):
    def each(v):
        return [v] * dims if isinstance(v, int) else v

    return {
        "strides": each(strides),
        "dilations": each(dilations),
        "paddings": [paddings] * (2 * dims) if isinstance(paddings, int) else paddings,
    }


_CASES: list[tuple] = [  # x, filter, window
    ((2, 4, 5, 3), (3, 3, 3, 2), _window(paddings=1)),
    ((1, 4, 4, 2), (2, 2, 2, 3), _window()),
    ((1, 5, 6, 2), (3, 2, 2, 3), _window(strides=2, paddings=[1, 0, 0, 1])),
    ((1, 7, 6, 1), (3, 2, 1, 2), _window(dilations=[2, 3], paddings=[2, 2, 1, 0])),
    ((1, 6, 7, 2), (2, 3, 2, 2), _window(strides=[3, 2], dilations=[2, 1], paddings=1)),
    ((2, 3, 3, 1), (1, 1, 1, 1), _window(strides=2)),
    ((2, 3, 4, 4), (2, 2, 2, 6), _window(paddings=[1, 0, 0, 1])),  # 2 groups
    ((1, 4, 4, 3), (3, 3, 1, 3), _window(paddings=1)),  # depthwise
    ((1, 4, 5, 2), (2, 3, 1, 4), _window(strides=2, paddings=1)),  # depthwise, two filters per channel
    ((1, 4, 3, 17), (3, 3, 17, 2), _window(paddings=1)),  # more than a few channels
    ((1, 4, 5, 2), (2, 2, 2, 35), _window(strides=[1, 2], paddings=[0, 1, 0, 1])),  # more than one panel
    ((1, 3, 3, 18), (3, 3, 1, 18), _window(paddings=1)),
    ((2, 6, 2), (3, 2, 3), _window(strides=2, paddings=1, dims=1)),
    ((1, 3, 4, 3, 2), (2, 2, 3, 2, 2), _window(strides=[1, 2, 1], paddings=1, dims=3)),
    ((1, 4, 7, 2), (3, 2, 2, 3), _window(strides=[1, 3], dilations=[2, 1], paddings=[-1])),  # "SAME"
    ((1, 5, 4, 20), (1, 3, 20, 3), _window(strides=2, paddings=[])),  # "VALID"
    ((0, 4, 4, 2), (3, 3, 2, 3), _window(paddings=1)),
    ((1, 2, 2, 1), (3, 3, 1, 2), _window()),  # no results
    ((1, 3, 3, 2), (1, 1, 2, 2), _window(paddings=2)),  # pixels that no window covers
]


def _out_of(x, w, window):
    return (x[0], *results_of(x[1:-1], w[:-2], **window), w[-1])


_INVALID = "InvalidArgumentError"
_DEPTHS = (_INVALID, "input depth must be evenly divisible by filter depth: 3 vs 2")


conv = contraction(
    "conv", FLOAT, "input filters strides:Ints dilations:Ints paddings:Ints", xla="conv.conv",
    transposes=(
        lambda g, x, w, out, *window: conv_input(g, w, x.shape[1:], *window),
        lambda g, x, w, out, *window: conv_filter(x, g, w.shape[:-1], *window),
    ),
    batch=_batch_conv, numpy=_numpy_conv, tolerance=4.0,
    samples=[call(x, w, **window) for x, w, window in _CASES],
    bad=[
        (call((1, 4, 4, 3), (3, 3, 2, 2), **_window()), *_DEPTHS),
        (call((1, 4, 4, 4), (3, 3, 2, 3), **_window()), _INVALID, "number of groups: 3 vs 2"),
        (call((4, 4, 3), (3, 3, 3, 2), **_window()), _INVALID, "input must be 4-dimensional: [4,4,3]"),
        (call((1, 4, 4, 3), (3, 3, 2), **_window()), _INVALID, "filter must be 4-dimensional: [3,3,2]"),
        (call((1, 4, 4, 3), (3, 3, 3, 0), **_window()), _INVALID, "must not have zero elements"),
        (call((1, 4, 4, 3), (6, 6, 3, 2), **_window()), _INVALID, "output size would be negative: -1"),
        (call((1, 4, 4, 3), (3, 3, 3, 2), **_window(strides=0)), _INVALID, "Stride must be > 0, but got 0"),
        (call((1, 4, 4, 3), (3, 3, 3, 2), **_window(dilations=0)), _INVALID, "should be larger than 0"),
        (call((1, 4, 4, 3), (3, 3, 3, 2), **_window(paddings=[-1, 1] * 2)), _INVALID, "must be non-negative"),
    ],
    doc="""The convolution of images `[n, in..., channels]` with filters `[k..., channels, out]`.

`paddings` are the numbers of zeros before and after each spatial axis; [] means none, [-1] as many as
give ceil(size / stride) results. If filters have fewer channels than the images, these are divided into
groups of that many channels.
""",
)  # fmt: skip

conv_input = contraction(
    "conv_input", FLOAT, "g filters sizes:Ints strides:Ints dilations:Ints paddings:Ints",
    xla="conv.conv_input",
    transposes=(
        lambda gg, g, w, out, sizes, *window: conv(gg, w, *window),
        lambda gg, g, w, out, sizes, *window: conv_filter(gg, g, w.shape[:-1], *window),
    ),
    batch=_batch_input, numpy=_numpy_conv_input, tolerance=4.0,
    samples=[call(_out_of(x, w, window), w, sizes=list(x[1:]), **window) for x, w, window in _CASES],
    bad=[
        (call((1, 2, 2, 2), (3, 3, 3, 2), sizes=[4, 5, 3], **_window()), _INVALID, "actual = 2, computed = 3"),
        (call((1, 2, 2, 3), (3, 3, 3, 2), sizes=[4, 4, 3], **_window()), _INVALID, "same out_depth: 2 vs 3"),
        (call((1, 2, 2, 2), (3, 3, 2, 2), sizes=[4, 4, 3], **_window()), *_DEPTHS),
        (call((1, 2, 2, 2), (3, 3, 3, 2), sizes=[4, 3], **_window()), _INVALID, "expected 3 sizes, got 2"),
    ],
    doc="The gradient of `conv` with respect to its images, of `sizes` (without the number of images): a transposed "
        "convolution.",
)  # fmt: skip

conv_filter = contraction(
    "conv_filter", FLOAT, "input g sizes:Ints strides:Ints dilations:Ints paddings:Ints",
    xla="conv.conv_filter",
    transposes=(
        lambda gw, x, g, out, sizes, *window: conv_input(g, gw, x.shape[1:], *window),
        lambda gw, x, g, out, sizes, *window: conv(x, gw, *window),
    ),
    batch=_batch_filter, numpy=_numpy_conv_filter, tolerance=4.0,
    samples=[call(x, _out_of(x, w, window), sizes=list(w[:-1]), **window) for x, w, window in _CASES],
    bad=[
        (call((1, 4, 5, 3), (1, 2, 2, 2), sizes=[3, 3, 3], **_window()), _INVALID, "actual = 2, computed = 3"),
        (call((1, 4, 4, 3), (2, 2, 2, 2), sizes=[3, 3, 3], **_window()), _INVALID, "same batch size"),
        (call((1, 4, 4, 3), (1, 2, 2, 2), sizes=[3, 3, 2], **_window()), *_DEPTHS),
    ],
    doc="The gradient of `conv` with respect to its filters, of `sizes` (without the number of results).",
)  # fmt: skip
