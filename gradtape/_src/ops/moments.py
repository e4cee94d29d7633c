"""Means and variances. `moments` is native, one pass over memory; the other functions are composites."""

from __future__ import annotations

import math

import numpy as np

from gradtape._src.base import dtypes
from gradtape._src.ops import casting, movement
from gradtape._src.ops.arithmetic import reciprocal, square, squared_difference
from gradtape._src.ops.creation import constant
from gradtape._src.ops.reduction import reduce_mean, reduce_sum, sum_squares
from gradtape._src.ops.samples import at, call
from gradtape._src.ops.table import WIDE, composite, opaque
from gradtape._src.tensors.conversion import as_tensor

__all__ = ["moments", "moments_op", "normalize_moments", "sufficient_statistics", "weighted_moments"]


def in_float(x):
    """16-bit floats as float32, in which sums and squares are computed."""
    return casting.cast(x, dtypes.float32) if x.dtype in (dtypes.float16, dtypes.bfloat16) else x


def as_type(x, dtype):
    return x if x.dtype is dtype else casting.cast(x, dtype)


def _keepdims(y, x, axes):
    """Reshapes a reduction of `x` so that it broadcasts with `x`."""
    shape = [1 if i in axes else d for i, d in enumerate(x.shape)]
    return y if list(y.shape) == shape else movement.reshape(y, shape)


def sum_of(*terms):
    """The sum of the terms that are not None."""
    some = [t for t in terms if t is not None]
    return None if not some else some[0] if len(some) == 1 else some[0] + sum_of(*some[1:])


def _moments_rule(g, x, out, axes, keepdims):
    n = max(math.prod(x.shape[a] for a in axes), 1)
    wrt_mean = None if g[0] is None else movement.broadcast_to(_keepdims(g[0] / n, x, axes), x.shape)
    if g[1] is None:
        return wrt_mean
    wrt_variance = _keepdims(g[1] * (2 / n), x, axes) * (x - _keepdims(out[0], x, axes))
    return sum_of(wrt_variance, wrt_mean)


def _np_moments(x, axis=None, keepdims=False):
    axis = tuple(axis) if isinstance(axis, list) else axis
    with np.errstate(all="ignore"):
        return np.mean(x, axis, keepdims=keepdims), np.var(x, axis, keepdims=keepdims)


moments_op = opaque(
    "moments", WIDE, "x axis:Axes=None keepdims:Bool=False", xla="moments.moments",
    many=True, gaps=True, batch="leading", each_row="moments",
    rule=_moments_rule, numpy=_np_moments,
    samples=[
        call(()), call((4,)), call((3, 4), axis=[1]), call((3, 4), axis=[0]), call((2, 3, 4), axis=[0, 2], keepdims=True),
        call((2, 3, 4), axis=[1]), call((2, 3, 2, 3), axis=[0, 2]), call((2, 3, 2, 3, 2), axis=[0, 2, 4]),
        call((0, 3), axis=[1]), call((40, 3), axis=[0]), call((3, 1), axis=-1),
        call(at([[1e4, 1e4 + 1], [3.0, 3.0]]), axis=1),
    ],
    bad=[(call((2, 3), axis=[2]), "InvalidArgumentError", "out of range")],
    doc="The mean and the variance of `x` over `axis`.",
)  # fmt: skip


@composite("nn.moments")
def moments(x, axes, shift=None, keepdims=False, name=None):
    """The mean and the variance of `x` over `axes`. `shift` is not used, as in TensorFlow."""
    x = as_tensor(x)
    if not x.dtype.is_floating:
        return _plain_moments(x, axes, keepdims)
    mean, variance = moments_op(in_float(x), axes, keepdims)
    return as_type(mean, x.dtype), as_type(variance, x.dtype)


def _plain_moments(x, axes, keepdims):
    """The moments of integers and complex numbers, computed as TensorFlow does."""
    mean = reduce_mean(x, axes, True)
    variance = reduce_mean(squared_difference(x, mean), axes, keepdims)
    return (mean if keepdims else movement.reshape(mean, variance.shape)), variance


@composite("nn.weighted_moments")
def weighted_moments(x, axes, frequency_weights, keepdims=False, name=None):
    """The weighted mean and variance of `x` over `axes`."""
    x = as_tensor(x)
    y = in_float(x)
    weights = as_type(as_tensor(frequency_weights, y), y.dtype)
    # A weight that broadcasts counts once per element that it applies to.
    weights = movement.broadcast_to(weights, (y * weights).shape)
    total = reduce_sum(weights, axes, True)
    mean = reduce_sum(y * weights, axes, True) / total
    variance = reduce_sum(weights * squared_difference(y, mean), axes, True) / total
    if not keepdims:
        shape = reduce_sum(weights, axes).shape
        mean, variance = movement.reshape(mean, shape), movement.reshape(variance, shape)
    return as_type(mean, x.dtype), as_type(variance, x.dtype)


@composite("nn.sufficient_statistics")
def sufficient_statistics(x, axes, shift=None, keepdims=False, name=None):
    """The number of elements, and the sum and the sum of squares of `x - shift`, over `axes`; and `shift`."""
    x = as_tensor(x)
    count = math.prod(x.shape[a] for a in np.atleast_1d(np.asarray(axes)).tolist())
    if shift is not None:
        shift = as_tensor(shift, x)
        x = x - shift
    counts = constant(count, x.dtype)
    return counts, reduce_sum(x, axes, keepdims), sum_squares(x, axes, keepdims), shift


@composite("nn.normalize_moments")
def normalize_moments(counts, mean_ss, variance_ss, shift, name=None):
    """The mean and the variance from the results of `sufficient_statistics`."""
    inverse = reciprocal(counts)
    shifted = mean_ss * inverse
    mean = shifted if shift is None else shifted + shift
    return mean, variance_ss * inverse - square(shifted)
