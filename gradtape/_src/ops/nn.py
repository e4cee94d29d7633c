"""Functions of `tf.nn`: l2_normalize, dropout, bias_add, log_sigmoid, crelu."""

from __future__ import annotations

import math
import numbers

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes, errors
from gradtape._src.ops import philox
from gradtape._src.ops.activations import relu, softplus
from gradtape._src.ops.arithmetic import complex_, imag, maximum, real, rsqrt, square
from gradtape._src.ops.comparison import greater_equal, select
from gradtape._src.ops.creation import convert_to_tensor, ones
from gradtape._src.ops.join import concat
from gradtape._src.ops.movement import reshape
from gradtape._src.ops.random import random_uniform, stateless_uniform
from gradtape._src.ops.reduction import reduce_sum, sum_squares
from gradtape._src.ops.samples import call, ints
from gradtape._src.ops.table import WIDE, composite, opaque
from gradtape._src.tensors import random as _state
from gradtape._src.tensors.conversion import as_tensor

__all__ = ["bias_add", "crelu", "dropout", "l2_normalize", "log_sigmoid"]


@composite("nn.l2_normalize math.l2_normalize linalg.l2_normalize")
def l2_normalize(x, axis=None, epsilon=1e-12, name=None, dim=None):
    """`x / sqrt(max(Σ x², epsilon))` over `axis`: `x` scaled to L2 norm 1, and 0 where `x` is 0."""
    x = convert_to_tensor(x)
    axis = dim if axis is None else axis
    if x.dtype.is_complex:
        total = reduce_sum(square(real(x)) + square(imag(x)), axis, True)
        inverse = rsqrt(maximum(total, epsilon))
        return complex_(real(x) * inverse, imag(x) * inverse)
    return x * rsqrt(maximum(sum_squares(x, axis, True), epsilon))


def _np_dropout(x, state, rate):
    return np.where(philox.uniform(state, x.shape) >= np.float32(rate), x / (1 - rate), 0)


def _batched_dropout(size, batched, operands, attrs):
    """The batching rule: every element of the batch loses the same elements."""
    x, state = operands
    return None if batched[1] else x * dropout_op(ones(x.shape[1:], x.dtype), state, *attrs)


dropout_op = opaque(
    "dropout", WIDE, "x state:Index rate:Float", batch=_batched_dropout, linear="x", pattern="aligned", xla="nn.dropout",
    rule=(lambda g, x, state, out, rate: dropout_op(g, state, rate), None), numpy=_np_dropout,
    samples=[
        call((2, 3), ints([42, 7, 3], "int64"), rate=0.4), call((), ints([1, 2, -1], "int64"), rate=0.5),
        call((0, 3), ints([42, 7, 3], "int64"), rate=0.4), call((67, 33), ints([42, 7, 3], "int64"), rate=0.0),
    ],
    bad=[
        (call((3,), ints([1], "int64"), rate=0.4), "InvalidArgumentError", "must be int64[3]"),
        (call((3,), ints([1, 2, 3], "int64"), rate=1.0), "InvalidArgumentError", "rate must be in [0, 1)"),
    ],
    doc="`x / (1 - rate)` where the uniform floats of the stream `state` are at least `rate`, else 0.",
)  # fmt: skip


@composite("nn.dropout")
def dropout(x, rate, noise_shape=None, seed=None, name=None):
    """Sets elements of `x` to 0 with probability `rate`, and scales the others by `1 / (1 - rate)`.

    Args:
      rate: the probability that an element is dropped, in [0, 1).
      noise_shape: the shape of the random choices, which broadcasts to that of `x`; by default the shape of `x`.
      seed: the op seed, see `tf.random.set_seed`.

    Raises:
      ValueError: if `rate` is not in [0, 1), or `x` is not floating point.
    """
    x = as_tensor(x)
    rate = _checked_rate(x, rate)
    if isinstance(rate, float) and rate == 0:
        _state.next_seeds(seed)  # as in TensorFlow: the rate does not change what is drawn later
        return x
    shape = x.shape if noise_shape is None else _noise_shape(x, noise_shape)
    stream = _state.op_stream("uniform", x.dtype, seed, 256 * math.prod(shape))
    if noise_shape is None and isinstance(rate, float) and x.dtype is dtypes.float32:
        return dropout_op(x, stream, rate)
    return _dropped(x, rate, random_uniform(stream, list(shape), x.dtype))


@composite("nn.experimental.stateless_dropout")
def stateless_dropout(x, rate, seed, rng_alg=None, noise_shape=None, name=None):
    """As `dropout`, with random numbers from `tf.random.stateless_uniform(seed=seed)`."""

    def sample(shape, dtype):
        return stateless_uniform(shape, seed, dtype=dtype)

    return general_dropout(x, rate, sample, noise_shape)


@composite("nn.experimental.general_dropout")
def general_dropout(x, rate, uniform_sampler, noise_shape=None, name=None):
    """As `dropout`, with random numbers from `uniform_sampler(shape=..., dtype=...)`."""
    x = as_tensor(x)
    rate = _checked_rate(x, rate)
    if isinstance(rate, float) and rate == 0:
        return x
    shape = x.shape if noise_shape is None else _noise_shape(x, noise_shape)
    return _dropped(x, rate, uniform_sampler(shape=shape, dtype=x.dtype))


def _checked_rate(x, rate):
    """`rate` as a float, or as a tensor if it is one."""
    if isinstance(rate, numbers.Real) and not isinstance(rate, _core.Tensor):
        if not 0 <= rate < 1:
            raise ValueError(
                f"dropout: `rate` must be a scalar tensor or a float in the range [0, 1). Received: rate={rate}"
            )
        rate = float(rate)
    elif not isinstance(rate, (_core.Tensor, _core.Variable)):
        raise ValueError(f"dropout: `rate` must be a scalar or scalar tensor. Received: rate={rate}")
    elif rate.dtype is not x.dtype and x.dtype.is_floating:
        raise ValueError(
            f"dropout: `x.dtype` must be compatible with `rate.dtype`. Received: x.dtype={x.dtype} "
            f"and rate.dtype={rate.dtype}"
        )
    if not x.dtype.is_floating:
        raise ValueError(
            f"dropout: `x.dtype` must be a floating point tensor as `x` will be scaled. Received: x_dtype={x.dtype}"
        )
    return rate


def _dropped(x, rate, noise):
    keep = greater_equal(noise, rate)
    return select(keep, x * (1 / (1 - rate)) if isinstance(rate, float) else x / (1 - rate), 0)


def _noise_shape(x, noise_shape):
    sizes = list(noise_shape)
    if len(sizes) == x.ndim:
        sizes = [size if d is None else int(d) for d, size in zip(sizes, x.shape, strict=True)]
    return sizes


@composite("nn.bias_add")
def bias_add(value, bias, data_format=None, name=None):
    """`value + bias`, with one bias per channel. Channels are the last axis, or axis 1 for data_format "NC...".

    Raises:
      ValueError: if `data_format` is neither "N...C" nor "NC...".
      InvalidArgumentError: if the number of biases is not that of channels.
    """
    x = convert_to_tensor(value)
    b = convert_to_tensor(bias, dtype_hint=x.dtype)
    first = data_format is not None and data_format.startswith("NC")
    if (
        data_format is not None
        and not first
        and not (data_format.startswith("N") and data_format.endswith("C"))
    ):
        raise ValueError(
            f"bias_add: `data_format` must be of the form `N...C` or `NC...`. Received: data_format={data_format}"
        )
    if x.ndim < 2:
        raise errors.InvalidArgumentError(f"bias_add: Input tensor must be at least 2D: {x.shape.as_list()}")
    axis = 1 if first else x.ndim - 1
    if b.ndim != 1 or b.shape[0] != x.shape[axis]:
        axis_name = "channel" if first else "last"
        raise errors.InvalidArgumentError(
            f"bias_add: Must provide as many biases as the {axis_name} dimension of the input tensor: "
            f"{b.shape.as_list()} vs. {x.shape.as_list()}"
        )
    if axis != x.ndim - 1:
        b = reshape(b, [-1] + [1] * (x.ndim - 2))
    return x + b


@composite("nn.crelu")
def crelu(features, axis=-1, name=None):
    """`relu(x)` and `relu(-x)`, joined along `axis`."""
    x = convert_to_tensor(features)
    return relu(concat([x, -x], axis))


@composite("math.log_sigmoid")
def log_sigmoid(x, name=None):
    """`log(sigmoid(x))`, without overflow."""
    return -softplus(-convert_to_tensor(x))
