"""Blocks of images: patches, space to depth and to the batch, and morphological ops."""

from __future__ import annotations

import itertools
import math

import numpy as np

from gradtape._src.base.errors import InvalidArgumentError, UnimplementedError
from gradtape._src.ops.casting import cast
from gradtape._src.ops.movement import pad, reshape, reverse, transpose
from gradtape._src.ops.pooling import max_pool
from gradtape._src.ops.samples import call
from gradtape._src.ops.static import array_of, ints_of
from gradtape._src.ops.table import ANY, NUMBER, composite, contraction, movement
from gradtape._src.ops.windows import paddings, resolved, results_of
from gradtape._src.tensors.conversion import as_tensor, as_tensors

__all__ = [
    "batch_to_space", "depth_to_space", "dilation2d", "erosion2d", "patches", "required_space_to_batch_paddings",
    "space_to_batch", "space_to_depth", "unpatches",
]  # fmt: skip

# ---- patches --------------------------------------------------------------------------------------


def _places(shape, sizes, strides, rates, pads):
    """The indices, in the patches and in the image, of each pixel of each patch that is inside the image."""
    low = resolved(pads, shape, sizes, strides, rates)[::2]
    for place in itertools.product(*map(range, _counts(shape, sizes, strides, rates, pads))):
        first = [p * s - n for p, s, n in zip(place, strides, low, strict=True)]
        for tap, offset in enumerate(itertools.product(*map(range, sizes))):
            at = tuple(x + t * r for x, t, r in zip(first, offset, rates, strict=True))
            if all(0 <= a < n for a, n in zip(at, shape, strict=True)):
                yield (slice(None), *place, tap), (slice(None), *at)


def _counts(*window):
    return [max(0, n) for n in results_of(*window)]


def _numpy_patches(x, sizes, strides, rates, paddings):
    window = (x.shape[1:-1], sizes, strides, rates, paddings)
    out = np.zeros((x.shape[0], *_counts(*window), math.prod(sizes), x.shape[-1]), x.dtype)
    for to, at in _places(*window):
        out[to] = x[at]
    return out.reshape(*out.shape[:-2], math.prod(sizes) * x.shape[-1])


def _numpy_unpatches(g, shape, sizes, strides, rates, paddings):
    out = np.zeros(shape, g.dtype)
    g = g.reshape(*g.shape[:-1], math.prod(sizes), shape[-1])
    for to, at in _places(shape[1:-1], sizes, strides, rates, paddings):
        out[at] += g[to]
    return out


def _fold(x):
    return reshape(x, [x.shape[0] * x.shape[1], *x.shape[2:]])


def _batch_patches(size, batched, operands, attrs):
    out = patches(_fold(operands[0]), *attrs)
    return reshape(out, [size, out.shape[0] // size, *out.shape[1:]])


def _batch_unpatches(size, batched, operands, attrs):
    (g,), (shape, *window) = operands, attrs
    return reshape(unpatches(_fold(g), [size * shape[0], *shape[1:]], *window), [size, *shape])


def _window(sizes, strides=None, rates=None, paddings=None):
    dims = len(sizes)
    return {
        "sizes": sizes, "strides": strides or sizes, "rates": rates or [1] * dims,
        "paddings": paddings or [],
    }  # fmt: skip


_CASES: list[tuple] = [
    ((2, 4, 6, 3), _window([2, 3])), ((1, 3, 4, 2), _window([2, 2], [1, 2], paddings=[1, 0, 0, 1])),
    ((1, 5, 5, 1), _window([2, 2], [1, 1], [2, 3])), ((2, 5, 2), _window([3], [1], paddings=[1, 1])),
    ((1, 2, 3, 2, 2), _window([2, 2, 2], [1, 1, 1])), ((0, 3, 3, 1), _window([2, 2])),
    ((1, 1, 3, 2), _window([2, 2])),
]  # fmt: skip


def _out_of(shape, window):
    return (shape[0], *_counts(shape[1:-1], *window.values()), math.prod(window["sizes"]) * shape[-1])


patches = movement(
    "patches", ANY, "images sizes:Ints strides:Ints rates:Ints paddings:Ints", xla="patches.patches",
    transpose=lambda g, x, out, *window: unpatches(g, x.shape, *window),
    batch=_batch_patches, numpy=_numpy_patches,
    samples=[call(x, **window) for x, window in _CASES],
    bad=[
        (call((3, 3, 1), **_window([2, 2])), "InvalidArgumentError", "input must be 4-dimensional"),
        (call((1, 3, 3, 1), **_window([2, 0], [1, 1])), "InvalidArgumentError", "must be positive"),
    ],
    doc="Patches of images `[n, in..., channels]`: each result has the pixels of one window along the last axis.",
)  # fmt: skip

unpatches = contraction(
    "unpatches", NUMBER, "g shape:Ints sizes:Ints strides:Ints rates:Ints paddings:Ints", pattern="adds",
    xla="patches.unpatches",
    transposes=(lambda gg, g, out, shape, *window: patches(gg, *window),),
    batch=_batch_unpatches, numpy=_numpy_unpatches,
    samples=[call(_out_of(x, window), shape=list(x), **window) for x, window in _CASES],
    bad=[(
        call((1, 2, 2, 4), shape=[1, 5, 6, 1], **_window([2, 2])), "InvalidArgumentError",
        "g must have the shape [1,2,3,4]",
    )],
    doc="The transpose of `patches`: images of `shape` in which each pixel is the sum of its copies.",
)  # fmt: skip


# ---- space, depth and batch -------------------------------------------------------------------------


def _block_of(op, x, block_size, data_format):
    if data_format not in ("NHWC", "NCHW"):
        raise InvalidArgumentError(
            f"{op}: Value for attr 'data_format' of \"{data_format}\" is not in the list of allowed values: "
            f'"NHWC", "NCHW"'
        )
    if block_size < 2:
        raise InvalidArgumentError(
            f"{op}: Value for attr 'block_size' of {block_size} must be at least minimum 2"
        )
    if x.ndim != 4:
        raise InvalidArgumentError(f"{op}: Input rank should be 4 instead of {x.ndim}")
    return int(block_size)


@composite("nn.space_to_depth")
def space_to_depth(input, block_size, data_format="NHWC", name=None):
    """Rearranges blocks of `block_size` by `block_size` pixels into the channels of one pixel each."""
    x = as_tensor(input)
    b = _block_of("space_to_depth", x, block_size, data_format)
    first = data_format == "NCHW"
    n, h, w, c = [x.shape[0], x.shape[2], x.shape[3], x.shape[1]] if first else x.shape
    if h % b or w % b:
        raise InvalidArgumentError(
            f"space_to_depth: Image width {w} and height {h} should be divisible by block_size: {b}"
        )
    if first:
        x = transpose(reshape(x, [n, c, h // b, b, w // b, b]), [0, 3, 5, 1, 2, 4])
        return reshape(x, [n, b * b * c, h // b, w // b])
    x = transpose(reshape(x, [n, h // b, b, w // b, b, c]), [0, 1, 3, 2, 4, 5])
    return reshape(x, [n, h // b, w // b, b * b * c])


@composite("nn.depth_to_space")
def depth_to_space(input, block_size, data_format="NHWC", name=None):
    """Rearranges channels into blocks of `block_size` by `block_size` pixels: the inverse of `space_to_depth`."""
    x = as_tensor(input)
    b = _block_of("depth_to_space", x, block_size, data_format)
    first = data_format == "NCHW"
    n, h, w, c = [x.shape[0], x.shape[2], x.shape[3], x.shape[1]] if first else x.shape
    if c % (b * b):
        raise InvalidArgumentError(
            f"depth_to_space: Input depth dimension {c} should be divisible by: {b * b}"
        )
    c //= b * b
    if first:
        x = transpose(reshape(x, [n, b, b, c, h, w]), [0, 3, 4, 1, 5, 2])
        return reshape(x, [n, c, h * b, w * b])
    x = transpose(reshape(x, [n, h, w, b, b, c]), [0, 1, 3, 2, 4, 5])
    return reshape(x, [n, h * b, w * b, c])


def _blocks_of(op, x, block_shape, edges, name):
    blocks = array_of(block_shape)
    if blocks.ndim != 1:
        raise InvalidArgumentError(f"{op}: block_shape rank should be 1 instead of {blocks.ndim}")
    sizes, pairs = [int(b) for b in blocks], array_of(edges)
    if pairs.shape != (len(sizes), 2):
        raise InvalidArgumentError(
            f"{op}: {name} should have shape [{len(sizes)}, 2] instead of {list(pairs.shape)}"
        )
    if x.ndim < len(sizes) + 1:
        raise InvalidArgumentError(f"{op}: input rank should be >= {len(sizes) + 1} instead of {x.ndim}")
    if min(sizes, default=1) < 1:
        raise InvalidArgumentError(f"{op}: All values in block_shape must be positive; got {sizes}")
    if pairs.size and pairs.min() < 0:
        raise InvalidArgumentError(f"{op}: {name.capitalize()} must be non-negative; got {pairs.tolist()}")
    return sizes, pairs.tolist()


@composite("space_to_batch space_to_batch_nd nn.space_to_batch")
def space_to_batch(input, block_shape, paddings, name=None):
    """Makes every `block_shape`-th element of the spatial axes an image of its own, in a larger batch.

    Args:
      block_shape: the step along each axis after the batch.
      paddings: the numbers of zeros before and after each of these axes, `[[before, after], ...]`.
    """
    x = as_tensor(input)
    sizes, pads = _blocks_of("space_to_batch", x, block_shape, paddings, "paddings")
    dims = len(sizes)
    if any(a or b for a, b in pads):
        x = pad(x, [[0, 0], *pads, *([[0, 0]] * (x.ndim - dims - 1))])
    n, *rest = x.shape
    for i, (size, block) in enumerate(zip(rest, sizes, strict=False)):
        if size % block:
            raise InvalidArgumentError(
                f"space_to_batch: padded_shape[{i}]={size} is not divisible by block_shape[{i}]={block}"
            )
    parts = [v for size, block in zip(rest, sizes, strict=False) for v in (size // block, block)]
    tail = rest[dims:]
    x = reshape(x, [n, *parts, *tail])
    order = [*range(2, 2 * dims + 1, 2), 0, *range(1, 2 * dims + 1, 2), *range(2 * dims + 1, x.ndim)]
    return reshape(transpose(x, order), [n * math.prod(sizes), *parts[::2], *tail])


@composite("required_space_to_batch_paddings")
def required_space_to_batch_paddings(input_shape, block_shape, base_paddings=None, name=None):
    """The paddings that make sizes multiples of the blocks, and the crops with which `batch_to_space` removes them.

    Args:
      base_paddings: the least paddings, `[[before, after], ...]`.
    """
    sizes, blocks = array_of(input_shape).astype(np.int64), array_of(block_shape).astype(np.int64)
    if sizes.ndim != 1 or sizes.shape != blocks.shape:
        raise ValueError(
            f"required_space_to_batch_paddings: Shapes {sizes.shape} and {list(blocks.shape)} are incompatible"
        )
    base = np.zeros((len(sizes), 2), np.int64) if base_paddings is None else array_of(base_paddings)
    if base.shape != (len(sizes), 2):
        raise ValueError(
            f"required_space_to_batch_paddings: Shapes {base.shape} and {[len(sizes), 2]} are incompatible"
        )
    missing = -(sizes + base.sum(-1)) % blocks
    crops = np.stack([np.zeros_like(missing), missing], -1)
    return as_tensor((base + crops).astype(np.int32)), as_tensor(crops.astype(np.int32))


@composite("batch_to_space")
def batch_to_space(input, block_shape, crops, name=None):
    """The inverse of `space_to_batch`; `crops` is the number of elements to remove before and after each axis."""
    x = as_tensor(input)
    edges = array_of(crops)
    if not array_of(block_shape).ndim:
        block_shape = [int(array_of(block_shape))] * len(edges)
    sizes, cuts = _blocks_of("batch_to_space", x, block_shape, edges, "crops")
    dims = len(sizes)
    n, *rest = x.shape
    block_size = math.prod(sizes)
    if n % block_size:
        raise InvalidArgumentError(
            f"batch_to_space: Input batch dimension ({n}) is not divisible by product of block sizes ({block_size})"
        )
    x = reshape(x, [*sizes, n // block_size, *rest])
    order = [dims, *(v for i in range(dims) for v in (dims + 1 + i, i)), *range(2 * dims + 1, x.ndim)]
    spatial = [size * block for size, block in zip(rest, sizes, strict=False)]
    x = reshape(transpose(x, order), [n // block_size, *spatial, *rest[dims:]])
    for i, (size, (a, b)) in enumerate(zip(spatial, cuts, strict=True)):
        if size < a + b:
            raise InvalidArgumentError(
                f"batch_to_space: cropped_shape[{i}]={size - a - b} must be non-negative"
            )
    if not any(a or b for a, b in cuts):
        return x
    return x[(slice(None), *(slice(a, size - b) for size, (a, b) in zip(spatial, cuts, strict=True)))]


# ---- morphology -------------------------------------------------------------------------------------


def _inner(op, value, name):
    sizes = ints_of(value)
    if len(sizes) != 4 or sizes[0] != 1 or sizes[3] != 1:
        raise UnimplementedError(f"{op}: {name} must be [1, rows, columns, 1]; got {sizes}.")
    return sizes[1:3]


def _dilated(op, value, filters, strides, padding, data_format, dilations):
    if data_format != "NHWC":
        raise ValueError(
            f"{op}: `data_format` values other than 'NHWC' are not supported. Received: "
            f"data_format={data_format}"
        )
    x, f = as_tensors(value, filters)
    if x.dtype.is_integer:
        out = _dilated(op, cast(x, "float64"), cast(f, "float64"), strides, padding, data_format, dilations)
        return cast(out, x.dtype)
    if x.ndim != 4 or f.ndim != 3 or x.shape[-1] != f.shape[-1]:
        raise InvalidArgumentError(
            f"{op}: expected images [n, height, width, channels] and filters [height, width, channels]; got "
            f"{x.shape} and {f.shape}."
        )
    strides, rates = _inner(op, strides, "strides"), _inner(op, dilations, "dilations")
    sizes = list(f.shape[:2])
    pads = resolved(paddings(op, padding, 2, False), x.shape[1:-1], sizes, strides, rates)
    if any(pads):  # padding is never the largest
        x = pad(x, [[0, 0], pads[:2], pads[2:], [0, 0]], constant_values=float(x.dtype.min))
    taps, c = math.prod(sizes), f.shape[-1]
    every = patches(x, sizes, strides, rates, [])
    n, h, w, _ = every.shape
    sums = reshape(every, [n * h * w, taps, c]) + reshape(f, [taps, c])
    return reshape(max_pool(sums, [taps], [1], [1], []), [n, h, w, c])


@composite("nn.dilation2d")
def dilation2d(input, filters, strides, padding, data_format, dilations, name=None):
    """Greyscale dilation: the largest sum of a pixel and its filter element, for each window and channel.

    Args:
      filters: `[height, width, channels]`.
      strides, dilations: `[1, rows, columns, 1]`.
      data_format: "NHWC".
    """
    return _dilated("dilation2d", input, filters, strides, padding, data_format, dilations)


@composite("nn.erosion2d")
def erosion2d(value, filters, strides, padding, data_format, dilations, name=None):
    """Greyscale erosion: the smallest difference of a pixel and its filter element, for each window and channel."""
    x, f = as_tensors(value, filters)
    return -_dilated("erosion2d", -x, reverse(f, [0, 1]), strides, padding, data_format, dilations)
