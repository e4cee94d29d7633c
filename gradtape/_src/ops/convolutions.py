"""The convolutions of `tf.nn`, with TensorFlow's arguments, over the three rows of `conv`.

They take 1 to 3 spatial axes, any combination of strides, dilations and groups, padding as "SAME", "VALID"
or numbers, channels first or last, and any number of batch axes.
"""

from __future__ import annotations

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops.casting import cast
from gradtape._src.ops.conv import conv, conv_filter, conv_input
from gradtape._src.ops.movement import reshape
from gradtape._src.ops.static import ints_of
from gradtape._src.ops.table import composite
from gradtape._src.ops.windows import (
    PADDINGS,
    channels_first,
    is_tensor,
    on_images,
    paddings,
    per_axis,
    steps_of,
    to_first,
    to_last,
)
from gradtape._src.tensors.conversion import as_tensor, as_tensors

__all__ = [
    "atrous_conv2d", "atrous_conv2d_transpose", "conv1d", "conv1d_transpose", "conv2d", "conv2d_transpose",
    "conv3d", "conv3d_transpose", "conv_transpose", "convolution", "depthwise_conv2d",
    "depthwise_conv2d_backprop_filter", "depthwise_conv2d_backprop_input", "separable_conv2d",
]  # fmt: skip


def _operands(x, w):
    return (x, w) if is_tensor(x) and is_tensor(w) else as_tensors(x, w)


def _want_filters(op, w, dims):
    if w.ndim != dims + 2:
        raise InvalidArgumentError(
            f"{op}: filter must be {dims + 2}-dimensional: {w.shape.as_list()}; expected "
            f"[{'size, ' * dims}in_channels, out_channels]."
        )


def _convolve(op, x, w, strides, padding, data_format, dilations, dims):
    x, w = _operands(x, w)
    _want_filters(op, w, dims)
    first = channels_first(op, data_format, dims)
    strides = per_axis(op, strides, dims, first, "strides")
    dilations = per_axis(op, dilations, dims, first, "dilations")
    if x.dtype is dtypes.int32 and w.dtype is dtypes.int32:  # exact as long as sums are below 2**53
        wide = _convolve(
            op, cast(x, "float64"), cast(w, "float64"), strides, padding, data_format, dilations, dims
        )
        return cast(wide, "int32")

    pads = paddings(op, padding, dims, first)
    return on_images(op, x, dims, first, lambda x: conv(x, w, strides, dilations, pads))


@composite("nn.conv1d")
def conv1d(input, filters, stride, padding, data_format="NWC", dilations=None, name=None):
    """The convolution of sequences `[..., width, channels]` with filters `[width, channels, out]`.

    Args:
      stride: the step of the window, in elements.
      padding: "SAME", "VALID" or `[[0, 0], [before, after], [0, 0]]`.
      data_format: "NWC" or "NCW".
      dilations: the spacing between the taps of a filter, 1 by default.
    """
    return _convolve("conv1d", input, filters, stride, padding, data_format, dilations, 1)


@composite("nn.conv2d")
def conv2d(input, filters, strides, padding, data_format="NHWC", dilations=None, name=None):
    """The convolution of images `[..., height, width, channels]` with filters `[h, w, channels, out]`.

    If filters have fewer input channels than the images, these are divided into groups of that many channels.

    Args:
      strides: one number, one for height and one for width, or one for each axis.
      padding: "SAME", "VALID" or `[[0, 0], [top, bottom], [left, right], [0, 0]]`.
      data_format: "NHWC" or "NCHW"; filters are the same for both.
      dilations: the spacing between the taps of a filter, 1 by default.

    Raises:
      InvalidArgumentError: if channels, sizes or paddings do not match.

    Example:
      >>> import gradtape as tf
      >>> edge = tf.constant([[-1.0, 1.0]])[:, :, tf.newaxis, tf.newaxis]
      >>> image = tf.constant([[0.0, 0.0, 5.0, 5.0]])[tf.newaxis, :, :, tf.newaxis]
      >>> tf.nn.conv2d(image, edge, strides=1, padding="VALID").numpy().ravel()
      array([0., 5., 0.], dtype=float32)
    """
    if type(input) is _core.Tensor and type(padding) is str and data_format == "NHWC" and dilations is None:
        # A shortcut for the usual arguments.
        steps = steps_of(strides)
        if steps and padding in PADDINGS and input.ndim == 4 and input.dtype is not dtypes.int32:
            return conv(input, filters, steps, [1, 1], PADDINGS[padding])
    return _convolve("conv2d", input, filters, strides, padding, data_format, dilations, 2)


@composite("nn.conv3d")
def conv3d(input, filters, strides, padding, data_format="NDHWC", dilations=None, name=None):
    """The convolution of volumes `[..., depth, height, width, channels]` with `[d, h, w, channels, out]`."""
    return _convolve("conv3d", input, filters, strides, padding, data_format, dilations, 3)


@composite("nn.convolution")
def convolution(input, filters, strides=None, padding="VALID", data_format=None, dilations=None, name=None):
    """A convolution over 1, 2 or 3 spatial axes: as many as the filters have."""
    _, w = _operands(input, filters)
    dims = _dims_of("convolution", w.ndim - 2)
    return _convolve("convolution", input, filters, strides, padding, data_format, dilations, dims)


def _dims_of(op, dims):
    if not 1 <= dims <= 3:
        raise ValueError(f"{op}: `num_spatial_dims` must be 1, 2, or 3. Received: num_spatial_dims={dims}.")
    return dims


@composite("nn.atrous_conv2d")
def atrous_conv2d(value, filters, rate, padding, name=None):
    """`conv2d` with filter taps `rate` pixels apart (a dilated convolution)."""
    if rate < 1:
        raise ValueError(f"atrous_conv2d: rate {rate} cannot be less than one")
    return _convolve("atrous_conv2d", value, filters, 1, padding, "NHWC", rate, 2)


# ---- transposed -----------------------------------------------------------------------------------


def _transposed(op, g, w, output_shape, strides, padding, data_format, dilations, dims):
    g, w = _operands(g, w)
    _want_filters(op, w, dims)
    first = channels_first(op, data_format, dims)
    strides = per_axis(op, strides, dims, first, "strides")
    dilations = per_axis(op, dilations, dims, first, "dilations")
    if g.ndim != dims + 2:
        raise InvalidArgumentError(f"{op}: input must be {dims + 2}-dimensional; got {g.shape}.")
    shape = ints_of(output_shape)
    if len(shape) == dims:
        sizes, channels = shape, w.shape[-2]
    elif len(shape) == dims + 2:
        sizes, channels = (shape[2:], shape[1]) if first else (shape[1:-1], shape[-1])
        if shape[0] != g.shape[0]:
            raise InvalidArgumentError(
                f"{op}: input and output_shape must have the same batch size: {g.shape[0]} vs {shape[0]}."
            )
    else:
        raise ValueError(
            f"{op}: output_shape should be of length {dims} or {dims + 2}. Received: output_shape={shape}"
        )
    pads = paddings(op, padding, dims, first)
    integers = g.dtype is dtypes.int32 and w.dtype is dtypes.int32  # exact as long as sums are below 2**53
    if integers:
        g, w = cast(g, "float64"), cast(w, "float64")
    out = conv_input(to_last(g) if first else g, w, [*sizes, channels], strides, dilations, pads)
    if integers:
        out = cast(out, "int32")
    return to_first(out) if first else out


@composite("nn.conv1d_transpose")
def conv1d_transpose(
    input, filters, output_shape, strides, padding="SAME", data_format="NWC", dilations=None, name=None
):
    """The transpose of `conv1d`; see `conv2d_transpose`."""
    return _transposed(
        "conv1d_transpose", input, filters, output_shape, strides, padding, data_format, dilations, 1
    )


@composite("nn.conv2d_transpose")
def conv2d_transpose(
    input, filters, output_shape, strides, padding="SAME", data_format="NHWC", dilations=None, name=None
):
    """The transpose of `conv2d`, also called deconvolution.

    Args:
      filters: `[height, width, out_channels, in_channels]`.
      output_shape: the shape of the result, or its height and width alone. `conv2d` of such a tensor, with
        the same strides and padding, must give the shape of `input`.
    """
    return _transposed(
        "conv2d_transpose", input, filters, output_shape, strides, padding, data_format, dilations, 2
    )


@composite("nn.conv3d_transpose")
def conv3d_transpose(
    input, filters, output_shape, strides, padding="SAME", data_format="NDHWC", dilations=None, name=None
):
    """The transpose of `conv3d`; see `conv2d_transpose`."""
    return _transposed(
        "conv3d_transpose", input, filters, output_shape, strides, padding, data_format, dilations, 3
    )


@composite("nn.conv_transpose")
def conv_transpose(
    input, filters, output_shape, strides, padding="SAME", data_format=None, dilations=None, name=None
):
    """The transpose of a convolution over 1, 2 or 3 spatial axes: as many as the filters have."""
    _, w = _operands(input, filters)
    dims = _dims_of("conv_transpose", w.ndim - 2)
    return _transposed(
        "conv_transpose", input, filters, output_shape, strides, padding, data_format, dilations, dims
    )


@composite("nn.atrous_conv2d_transpose")
def atrous_conv2d_transpose(value, filters, output_shape, rate, padding, name=None):
    """The transpose of `atrous_conv2d`."""
    return _transposed("atrous_conv2d_transpose", value, filters, output_shape, 1, padding, "NHWC", rate, 2)


# ---- depthwise ------------------------------------------------------------------------------------


def _as_groups(op, w):
    """The filters `[h, w, channels, multiplier]` of a depthwise convolution as filters of a grouped one."""
    if w.ndim != 4:
        raise InvalidArgumentError(f"{op}: filter must be 4-dimensional: {w.shape.as_list()}.")
    h, v, c, m = w.shape
    return reshape(w, [h, v, 1, c * m])


def _want_depth(op, x, w, first):
    depth = x.shape[1 if first else -1]
    if depth != w.shape[2]:
        raise InvalidArgumentError(
            f"{op}: input depth must be evenly divisible by filter depth: {depth} vs {w.shape[2]}."
        )


@composite("nn.depthwise_conv2d")
def depthwise_conv2d(input, filter, strides, padding, data_format=None, dilations=None, name=None):
    """A convolution of each channel with its own filters.

    Args:
      filter: `[height, width, channels, multiplier]`, for `multiplier` results per channel.
      strides: `[1, vertical, horizontal, 1]`.
      dilations: the spacing between filter taps, vertical and horizontal.
    """
    x, w = _operands(input, filter)
    if type(strides) is int:
        raise TypeError(f"depthwise_conv2d: Expected list for 'strides' argument, not {strides}.")
    grouped = _as_groups("depthwise_conv2d", w)
    if x.ndim == 4:
        _want_depth("depthwise_conv2d", x, w, channels_first("depthwise_conv2d", data_format, 2))
    return _convolve("depthwise_conv2d", x, grouped, strides, padding, data_format, dilations, 2)


@composite("nn.depthwise_conv2d_backprop_input")
def depthwise_conv2d_backprop_input(
    input_sizes, filter, out_backprop, strides, padding, data_format="NHWC", dilations=(1, 1, 1, 1), name=None
):
    """The gradient of `depthwise_conv2d` with respect to its input, of the shape `input_sizes`."""
    g, w = _operands(out_backprop, filter)
    op = "depthwise_conv2d_backprop_input"
    return _transposed(op, g, _as_groups(op, w), input_sizes, strides, padding, data_format, dilations, 2)


@composite("nn.depthwise_conv2d_backprop_filter")
def depthwise_conv2d_backprop_filter(
    input, filter_sizes, out_backprop, strides, padding, data_format="NHWC", dilations=(1, 1, 1, 1), name=None
):
    """The gradient of `depthwise_conv2d` with respect to its filter, of the shape `filter_sizes`."""
    op = "depthwise_conv2d_backprop_filter"
    x, g = _operands(input, out_backprop)
    first = channels_first(op, data_format, 2)
    strides = per_axis(op, strides, 2, first, "strides")
    dilations = per_axis(op, dilations, 2, first, "dilations")
    sizes = ints_of(filter_sizes)
    if len(sizes) != 4:
        raise InvalidArgumentError(f"{op}: filter_sizes must be of length 4; got {sizes}.")
    x, g = (to_last(x), to_last(g)) if first else (as_tensor(x), as_tensor(g))
    pads = paddings(op, padding, 2, first)
    return reshape(conv_filter(x, g, [*sizes[:2], 1], strides, dilations, pads), sizes)


@composite("nn.separable_conv2d")
def separable_conv2d(
    input, depthwise_filter, pointwise_filter, strides, padding, data_format=None, dilations=None, name=None
):
    """A depthwise convolution, followed by a pointwise one with `[1, 1, channels * multiplier, out]` filters."""
    _, w = _operands(input, pointwise_filter)
    if w.ndim != 4 or w.shape[0] != 1 or w.shape[1] != 1:
        raise ValueError(
            f"separable_conv2d: pointwise_filter must be of shape [1, 1, channels, out]; got {w.shape}."
        )
    between = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return _convolve("separable_conv2d", between, pointwise_filter, 1, "VALID", data_format, None, 2)
