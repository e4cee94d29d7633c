"""Convolutions of `keras.ops.nn` and what else moves windows over images.

All are one or two calls of the native `conv` and its transpose, which take 1 to 3 spatial axes, strides,
dilations and groups together.
"""

from __future__ import annotations

from typing import Any

from keras.src.backend.common.backend_utils import (
    check_conv_input_channels,
    check_conv_transpose_input_channels,
    compute_conv_transpose_output_shape,
)

import gradtape as tf
from gradtape.backend import op, to_first, to_last
from keras_gradtape.src.ops.core import convert_to_tensor
from keras_gradtape.src.ops.nn_pool import channels_are_first, paddings_of, per_axis
from keras_gradtape.src.ops.types import Tensor, floats

_conv = op("conv")
_conv_input = op("conv_input")
_patches = op("patches")
_unpatches = op("unpatches")

__all__ = [
    "conv", "conv_transpose", "depth_to_space", "depthwise_conv", "fold", "separable_conv", "space_to_depth",
    "unfold",
]  # fmt: skip


def _operands(inputs: Any, kernel: Any, least: int = 3, most: int = 5) -> tuple[Any, Any, int]:
    """Images and filters as tensors of one type of floats, and the number of spatial axes."""
    if not (type(inputs) is Tensor and type(kernel) is Tensor and inputs.dtype is kernel.dtype):
        inputs, kernel = convert_to_tensor(inputs), convert_to_tensor(kernel)
    if inputs.dtype is not kernel.dtype or not inputs.dtype.is_floating:
        inputs, kernel = floats(inputs, kernel)
    if not least <= inputs.ndim <= most:
        raise ValueError(
            f"`inputs` rank must be {least} to {most}, for {least - 2} to {most - 2} spatial axes. Received: "
            f"inputs.shape={tuple(inputs.shape)}"
        )
    return inputs, kernel, inputs.ndim - 2


def _window(
    strides: Any, dilation_rate: Any, padding: str, dims: int
) -> tuple[list[int], list[int], list[int]]:
    return per_axis(strides, dims), per_axis(dilation_rate, dims), paddings_of(padding)


def _convolved(x: Any, w: Any, window: tuple, first: bool) -> Any:
    try:
        out = to_first(_conv(to_last(x), w, *window)) if first else _conv(x, w, *window)
    except tf.errors.InvalidArgumentError as error:
        raise ValueError(str(error)) from None
    if not out._numel and x._numel:
        raise ValueError(
            "The convolution operation resulted in an empty output. "
            f"Output shape: {tuple(out.shape)}. This can happen if the input is too small for the given kernel "
            "size, strides, dilation rate, and padding mode. Please check the input shape and convolution "
            "parameters."
        )
    return out


def conv(
    inputs: Any,
    kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Any:
    x, w, dims = _operands(inputs, kernel)
    return _convolved(x, w, _window(strides, dilation_rate, padding, dims), channels_are_first(data_format))


def _each_channel(x: Any, w: Any, first: bool) -> Any:
    """Filters `[k..., channels, multiplier]`, each for one channel, as those of a convolution in groups."""
    check_conv_input_channels(x, w, "channels_first" if first else "channels_last")
    return tf.reshape(w, (*w.shape[:-2], 1, w.shape[-2] * w.shape[-1]))


def depthwise_conv(
    inputs: Any,
    kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Any:
    x, w, dims = _operands(inputs, kernel, 3, 4)
    first = channels_are_first(data_format)
    return _convolved(x, _each_channel(x, w, first), _window(strides, dilation_rate, padding, dims), first)


def separable_conv(
    inputs: Any,
    depthwise_kernel: Any,
    pointwise_kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Any:
    between = depthwise_conv(inputs, depthwise_kernel, strides, padding, data_format, dilation_rate)
    return conv(between, pointwise_kernel, 1, "valid", data_format, 1)


def conv_transpose(
    inputs: Any,
    kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    output_padding: Any = None,
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Any:
    x, w, dims = _operands(inputs, kernel)
    first = channels_are_first(data_format)
    layout = "channels_first" if first else "channels_last"
    check_conv_transpose_input_channels(x, w, layout)
    steps, rates, _ = _window(strides, dilation_rate, padding, dims)
    sizes = compute_conv_transpose_output_shape(
        tuple(x.shape), w.shape[:-2], w.shape[-2], steps, padding, output_padding, layout, rates
    )
    sizes = [int(n) for n in (sizes[2:] if first else sizes[1:-1])]
    if first:
        x = to_last(x)
    # Output of the filters beyond the requested size is cut off, half of it at the start; if there is less, the
    # rest is zero.
    pads: list[int] = []
    reached, missing = [], []
    for n, k, s, d, size in zip(x.shape[1:-1], w.shape[:-2], steps, rates, sizes, strict=True):
        over = (n - 1) * s + (k - 1) * d + 1 - size
        pads += (max(over, 0) // 2, max(over, 0) - max(over, 0) // 2)
        reached.append(size + min(over, 0))
        missing.append(max(-over, 0))
    out = _conv_input(x, w, [*reached, w.shape[-2]], steps, rates, pads)
    if any(missing):
        out = tf.pad(out, [(0, 0), *((0, m) for m in missing), (0, 0)])
    return to_first(out) if first else out


# ---- windows and blocks of images -------------------------------------------------------------------


def unfold(input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """The windows of images `[n, channels, height, width]` as columns `[n, channels * kernel, windows]`."""
    x = convert_to_tensor(input)
    kernel, rates, steps = per_axis(kernel_size, 2), per_axis(dilation, 2), per_axis(stride, 2)
    below, beside = per_axis(padding, 2)
    n, c = x.shape[:2]
    patches = _patches(to_last(x), kernel, steps, rates, [below, below, beside, beside])
    area, windows = kernel[0] * kernel[1], patches.shape[1] * patches.shape[2]
    columns = tf.transpose(tf.reshape(patches, [n, windows, area, c]), [0, 3, 2, 1])
    return tf.reshape(columns, [n, c * area, windows])


def fold(
    x: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """The transpose of `unfold`: images in which each pixel is the sum of its copies."""
    x = convert_to_tensor(x)
    kernel, rates, steps = per_axis(kernel_size, 2), per_axis(dilation, 2), per_axis(stride, 2)
    size, (below, beside) = per_axis(output_size, 2), per_axis(padding, 2)
    n, rows, windows = x.shape
    area = kernel[0] * kernel[1]
    c = rows // area
    counts = [
        (o + 2 * p - d * (k - 1) - 1) // s + 1
        for o, p, d, k, s in zip(size, (below, beside), rates, kernel, steps, strict=True)
    ]
    patches = tf.transpose(tf.reshape(x, [n, c, area, windows]), [0, 3, 2, 1])
    patches = tf.reshape(patches, [n, *counts, area * c])
    return to_first(_unpatches(patches, [n, *size, c], kernel, steps, rates, [below, below, beside, beside]))


def depth_to_space(x: Any, block_size: int, data_format: str | None = "channels_last") -> Any:
    x = convert_to_tensor(x)
    if channels_are_first(data_format):
        return to_first(tf.nn.depth_to_space(to_last(x), block_size))
    return tf.nn.depth_to_space(x, block_size)


def space_to_depth(x: Any, block_size: int, data_format: str | None = "channels_last") -> Any:
    x = convert_to_tensor(x)
    if channels_are_first(data_format):
        return to_first(tf.nn.space_to_depth(to_last(x), block_size))
    return tf.nn.space_to_depth(x, block_size)
