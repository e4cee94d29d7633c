"""Normalisation in `tf.nn`: batch_normalization, layer_norm, rms_norm, batch_norm, group_norm, lrn."""

from __future__ import annotations

import math

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes, errors
from gradtape._src.ops import movement
from gradtape._src.ops.arithmetic import fma, pow_, rsqrt, square
from gradtape._src.ops.batchnorm import batch_norm_op, layer_norm_op, rms_norm_op
from gradtape._src.ops.contraction import matmul
from gradtape._src.ops.creation import fill as filled
from gradtape._src.ops.moments import as_type, in_float, moments_op
from gradtape._src.ops.movement import stop_gradient
from gradtape._src.ops.reduction import reduce_mean
from gradtape._src.ops.static import axis_of
from gradtape._src.ops.table import composite
from gradtape._src.tensors.conversion import as_tensor

__all__ = [
    "batch_norm", "batch_norm_with_global_normalization", "batch_normalization", "fused_batch_norm", "group_norm",
    "layer_norm", "local_response_normalization", "rms_norm",
]  # fmt: skip


_DIRECT = (dtypes.float32, dtypes.float64)  # types that the native ops take


@composite("nn.batch_normalization")
def batch_normalization(x, mean, variance, offset, scale, variance_epsilon, name=None):
    """`scale · (x - mean) / sqrt(variance + variance_epsilon) + offset`. `offset` and `scale` may be None."""
    x = as_tensor(x)
    inverse = rsqrt(as_tensor(variance, x) + variance_epsilon)
    if scale is not None:
        mean, scale = as_tensor(mean, x), as_tensor(scale, x)
        if mean.dtype == inverse.dtype == scale.dtype == x.dtype and _spreads(inverse.shape, scale.shape):
            out = (x - mean) * inverse * scale
            return out if offset is None else out + offset
        inverse = inverse * scale
    shift = -mean * inverse if offset is None else offset - mean * inverse
    return fma(x, as_type(inverse, x.dtype), as_type(shift, x.dtype))


def _spreads(x, y):
    """Whether the product of values of these shapes is larger than both, like that of a column and a row."""
    if x == y:
        return False
    return math.prod(np.broadcast_shapes(tuple(x), tuple(y))) > max(math.prod(x), math.prod(y))


@composite("nn.batch_norm_with_global_normalization")
def batch_norm_with_global_normalization(
    input, mean, variance, beta, gamma, variance_epsilon, scale_after_normalization, name=None
):
    """As `batch_normalization`, with `gamma` used only if `scale_after_normalization`."""
    scale = gamma if scale_after_normalization else None
    return batch_normalization(input, mean, variance, beta, scale, variance_epsilon)


def _like(value, size, fill, x):
    """A parameter as a vector of the type of `x`; `fill` everywhere if it is None."""
    if value is None:
        return filled([size], as_tensor(fill, x))
    return movement.reshape(as_type(as_tensor(value, x), x.dtype), [size])


def _last_axes(op, x, axis):
    """`x` with the given axes moved to the end, the permutation back, and the number of elements along them."""
    axes_ = [axis] if isinstance(axis, (int, np.integer)) else list(axis)
    axes = sorted(axis_of(op, a, x.ndim) for a in axes_)
    others = [i for i in range(x.ndim) if i not in axes]
    perm = [*others, *axes]
    size = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
    moved = x if perm == sorted(perm) else movement.transpose(x, perm)

    def back(y):
        y = movement.reshape(y, moved.shape)
        return y if moved is x else movement.transpose(y, np.argsort(perm).tolist())

    rows = [x.shape[i] for i in others]
    return movement.reshape(moved, [*rows, size]) if len(axes) != 1 else moved, back, size


@composite("nn.layer_norm")
def layer_norm(x, scale=None, offset=None, axis=-1, epsilon=1e-3, name=None):
    """`(x - mean) / sqrt(variance + epsilon) · scale + offset`, with the mean and the variance of `x` over `axis`.

    Args:
      scale, offset: tensors of the shape of these axes; None for 1 and 0.
      axis: an axis, or several.
      epsilon: a number added to the variance.

    >>> import gradtape as tf
    >>> tf.nn.layer_norm([[1.0, 3.0]], epsilon=0.0).numpy()
    array([[-1.,  1.]], dtype=float32)
    """
    if (
        type(x) is _core.Tensor
        and axis == -1
        and x.dtype in _DIRECT
        and scale is not None
        and offset is not None
    ):
        return layer_norm_op(x, scale, offset, epsilon)[0]
    x = as_tensor(x)
    rows, back, size = _last_axes("layer_norm", in_float(x), axis)
    out = layer_norm_op(rows, _like(scale, size, 1.0, rows), _like(offset, size, 0.0, rows), epsilon)[0]
    return as_type(back(out), x.dtype)


@composite("nn.rms_norm")
def rms_norm(x, scale=None, axis=-1, epsilon=1e-6, name=None):
    """`x / sqrt(mean(x²) + epsilon) · scale`, with the mean over `axis`."""
    if type(x) is _core.Tensor and axis == -1 and x.dtype in _DIRECT and scale is not None:
        return rms_norm_op(x, scale, epsilon)[0]
    x = as_tensor(x)
    rows, back, size = _last_axes("rms_norm", in_float(x), axis)
    return as_type(back(rms_norm_op(rows, _like(scale, size, 1.0, rows), epsilon)[0]), x.dtype)


@composite("nn.batch_norm")
def batch_norm(x, scale=None, offset=None, axis=-1, epsilon=1e-3, name=None):
    """Normalises each channel (along `axis`) of `x` by its mean and variance over the batch.

    Returns:
      `(x - mean) / sqrt(variance + epsilon) · scale + offset`, the means and the variances, which a layer of
      batch normalisation averages during training.
    """
    x = as_tensor(x)
    wide = in_float(x)
    axis = axis_of("batch_norm", axis, x.ndim)
    size = x.shape[axis]
    out, mean, variance = batch_norm_op(
        wide, _like(scale, size, 1.0, wide), _like(offset, size, 0.0, wide), epsilon, axis
    )
    return as_type(out, x.dtype), mean, variance


@composite("compat.v1.nn.fused_batch_norm")
def fused_batch_norm(
    x, scale, offset, mean=None, variance=None, epsilon=0.001, data_format="NHWC", is_training=True, name=None,
    exponential_avg_factor=1.0,
):  # fmt: skip
    """Batch normalisation as TensorFlow 1 has it: the result, and new running means and variances.

    The running variance is updated with the unbiased estimate: the sum of squares divided by n - 1.
    """
    x = as_tensor(x)
    if data_format not in ("NHWC", "NCHW", "NDHWC", "NCDHW"):
        raise ValueError(f"fused_batch_norm: unknown data_format {data_format!r}.")
    axis = data_format.index("C")
    if not is_training:
        shape = [-1 if i == axis else 1 for i in range(x.ndim)]
        scale, offset, m, v = (movement.reshape(as_tensor(t), shape) for t in (scale, offset, mean, variance))
        return batch_normalization(x, m, v, offset, scale, epsilon), mean, variance
    out, m, v = batch_norm(x, scale, offset, axis, max(epsilon, 1.001e-5))
    m, v = stop_gradient(m), stop_gradient(v)
    n = x._numel // max(x.shape[axis], 1)
    v = v * (n / max(n - 1, 1))
    if exponential_avg_factor != 1.0:
        keep = 1 - exponential_avg_factor
        m, v = keep * mean + exponential_avg_factor * m, keep * variance + exponential_avg_factor * v
    return out, m, v


@composite("nn.group_norm")
def group_norm(x, groups, scale=None, offset=None, axis=-1, epsilon=1e-3, name=None):
    """Normalises each group of channels of each example by its own mean and variance.

    Args:
      groups: the number of groups of adjacent channels.
      scale, offset: one number for each channel; None for 1 and 0.
      axis: the axis of the channels. The first axis is the batch.
    """
    x = as_tensor(x)
    axis = axis_of("group_norm", axis, x.ndim)
    channels = x.shape[axis]
    if x.ndim < 2 or axis == 0 or groups < 1 or channels % groups:
        raise errors.InvalidArgumentError(
            f"group_norm: {channels} channels on axis {axis} cannot be divided into {groups} groups; got x: "
            f"{x.dtype.name}{list(x.shape)}."
        )
    wide = in_float(x)
    others = [i for i in range(1, x.ndim) if i != axis]
    mean, variance = moments_op(wide, others, False)  # [examples, channels]
    # Channels have equally many elements: the variance of a group is that of its means plus the mean of its variances.
    parts = [x.shape[0], groups, channels // groups]
    m, v = moments_op(movement.reshape(mean, parts), -1, True)
    v = v + reduce_mean(movement.reshape(variance, parts), -1, True)
    r = movement.broadcast_to(rsqrt(v + epsilon), parts)
    a = movement.reshape(r, mean.shape) * _like(scale, channels, 1.0, wide)
    b = _like(offset, channels, 0.0, wide) - movement.reshape(movement.broadcast_to(m, parts), mean.shape) * a
    shape = [channels if i == axis else x.shape[0] if i == 0 else 1 for i in range(x.ndim)]
    return as_type(fma(wide, movement.reshape(a, shape), movement.reshape(b, shape)), x.dtype)


@composite("nn.local_response_normalization nn.lrn")
def local_response_normalization(input, depth_radius=5, bias=1, alpha=1, beta=0.5, name=None):
    """`x / (bias + alpha · Σ x²)^beta`, summed over the channel and `depth_radius` channels on either side."""
    x = as_tensor(input)
    if x.ndim != 4:
        raise errors.InvalidArgumentError(
            f"local_response_normalization: in must be 4-dimensional; got {x.shape}."
        )
    channels = np.arange(x.shape[-1])
    window = (abs(channels[:, None] - channels) <= int(depth_radius)).astype(np.float64)
    squares = movement.reshape(square(x), [-1, x.shape[-1]]) if x._numel else square(x)
    total = matmul(squares, as_type(as_tensor(window), x.dtype)) if x._numel else squares
    return x * pow_(bias + alpha * movement.reshape(total, x.shape), -beta)
