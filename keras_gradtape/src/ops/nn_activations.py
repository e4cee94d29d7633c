"""The activation functions of `keras.ops.nn`.

A call on a tensor of floats goes directly to the op. Derivatives at kinks are TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradtape as tf
from gradtape.backend import op
from keras_gradtape.src.ops.core import convert_to_tensor
from keras_gradtape.src.ops.types import Tensor, countable, floating

_clip = op("clip")
_gelu = op("gelu")
_gelu_tanh = op("gelu_tanh")
_leaky_relu = op("leaky_relu")
_select = op("select")
_silu = op("silu")

__all__ = [
    "celu", "elu", "gelu", "glu", "hard_shrink", "hard_sigmoid", "hard_silu", "hard_tanh", "leaky_relu",
    "log_sigmoid", "log_softmax", "relu", "relu6", "selu", "sigmoid", "silu", "soft_shrink", "softmax",
    "softplus", "softsign", "sparse_plus", "sparse_sigmoid", "sparsemax", "squareplus", "tanh", "tanh_shrink",
    "threshold",
]  # fmt: skip


def _floats(x: Any) -> Any:
    return x if type(x) is Tensor and x.dtype.is_floating else floating(x)


# ---- plain ops ------------------------------------------------------------------------------------


def _of_floats(name: str, op: Callable) -> Callable:
    def function(x: Any) -> Any:
        if type(x) is Tensor and x.dtype.is_floating:
            return op(x)
        return op(floating(x))

    function.__name__ = function.__qualname__ = name
    return function


def _of_numbers(name: str, op: Callable) -> Callable:
    """As above, but integers stay what they are."""

    def function(x: Any) -> Any:
        return op(x) if type(x) is Tensor and x.dtype.is_floating else op(countable(x))

    function.__name__ = function.__qualname__ = name
    return function


relu = _of_numbers("relu", tf.nn.relu)
relu6 = _of_numbers("relu6", tf.nn.relu6)
tanh = _of_floats("tanh", tf.tanh)
softplus = _of_floats("softplus", tf.nn.softplus)
softsign = _of_floats("softsign", tf.nn.softsign)
silu = _of_floats("silu", _silu)
selu = _of_floats("selu", tf.nn.selu)


def gelu(x: Any, approximate: bool = True) -> Any:
    return _gelu_tanh(_floats(x)) if approximate else _gelu(_floats(x))


def leaky_relu(x: Any, negative_slope: Any = 0.2) -> Any:
    return _leaky_relu(_floats(x), negative_slope)


def elu(x: Any, alpha: float = 1.0) -> Any:
    x = _floats(x)
    out = tf.nn.elu(x)
    return out if alpha == 1 else _select(x > 0, out, alpha * out)


def log_sigmoid(x: Any) -> Any:
    return -tf.nn.softplus(-_floats(x))


# ---- with their logits ----------------------------------------------------------------------------
# The cross-entropies look up the logits of a probability, from which they are computed exactly.


def sigmoid(x: Any) -> Any:
    x = _floats(x)
    out = tf.sigmoid(x)
    out._keras_logits = x
    return out


def softmax(x: Any, axis: int | None = -1) -> Any:
    x = _floats(x)
    if axis == -1:
        out = tf.nn.softmax(x)
    elif axis is None:
        out = tf.reshape(tf.nn.softmax(tf.reshape(x, [x._numel])), x.shape)
    else:
        out = tf.nn.softmax(x, axis)
    out._keras_logits = x
    return out


def log_softmax(x: Any, axis: int | None = -1) -> Any:
    x = _floats(x)
    if axis == -1:
        return tf.nn.log_softmax(x)
    if axis is None:
        return tf.reshape(tf.nn.log_softmax(tf.reshape(x, [x._numel])), x.shape)
    return tf.nn.log_softmax(x, axis)


# ---- composites -----------------------------------------------------------------------------------


def sparse_sigmoid(x: Any) -> Any:
    x = _floats(x)
    return _select(x <= -1, 0, _select(x >= 1, 1, 0.5 * (x + 1)))


def sparse_plus(x: Any) -> Any:
    x = _floats(x)
    return _select(x <= -1, 0, _select(x < 1, 0.25 * tf.square(x + 1), x))


def tanh_shrink(x: Any) -> Any:
    x = _floats(x)
    return x - tf.tanh(x)


def soft_shrink(x: Any, threshold: float = 0.5) -> Any:
    x = _floats(x)
    return _select(x > threshold, x - threshold, _select(x < -threshold, x + threshold, 0))


def hard_shrink(x: Any, threshold: float = 0.5) -> Any:
    x = _floats(x)
    return _select(tf.abs(x) > threshold, x, 0)


def squareplus(x: Any, b: Any = 4) -> Any:
    x = _floats(x)
    return 0.5 * (x + tf.sqrt(tf.square(x) + convert_to_tensor(b, x.dtype.name)))


def hard_sigmoid(x: Any) -> Any:
    return tf.nn.relu6(_floats(x) + 3) * (1 / 6)


def hard_silu(x: Any) -> Any:
    x = _floats(x)
    return x * hard_sigmoid(x)


def hard_tanh(x: Any) -> Any:
    return _clip(_floats(x), -1, 1)


def celu(x: Any, alpha: float = 1.0) -> Any:
    x = _floats(x)
    return tf.maximum(x, 0) + alpha * tf.math.expm1(tf.minimum(x, 0) / alpha)


def glu(x: Any, axis: int = -1) -> Any:
    x = _floats(x)
    if x.shape[axis] % 2:
        raise ValueError(f"axis size must be divisible by 2. Received: x.shape={x.shape} with axis={axis}")
    values, gates = tf.split(x, 2, axis)
    return values * tf.sigmoid(gates)


def threshold(x: Any, threshold: Any, default_value: Any) -> Any:
    x = _floats(x)
    return _select(x > threshold, x, default_value)


def sparsemax(x: Any, axis: int = -1) -> Any:
    """The point of the simplex that is nearest to `x`: `max(x - tau, 0)` whose sum is 1.

    After sorting, the first k elements are above the threshold: those that exceed the mean of themselves and their
    predecessors, less 1 / k.
    """
    x = _floats(x)
    ordered = tf.sort(x, axis=axis, direction="DESCENDING")
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    counts = tf.reshape(tf.range(1, x.shape[axis] + 1, dtype=x.dtype), shape)
    above = 1 + counts * ordered > tf.cumsum(ordered, axis)
    k = tf.reduce_sum(tf.cast(above, x.dtype), axis, True)
    tau = (tf.reduce_sum(_select(above, ordered, 0), axis, True) - 1) / k
    return tf.maximum(x - tau, 0)
