"""Moments, normalisation and attention of `keras.ops.nn`."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from keras.src.backend import config

import gradtape as tf
from gradtape.backend import current_replica, op
from keras_gradtape.src.ops.core import convert_to_tensor
from keras_gradtape.src.ops.pairwise import add, multiply
from keras_gradtape.src.ops.types import Tensor, common, floating, result_type

_clip = op("clip")
_fma = op("fma")
_moments = op("moments")
_select = op("select")

__all__ = [
    "batch_normalization", "dot_product_attention", "layer_normalization", "moments", "rms_normalization",
]  # fmt: skip

_DIRECT = ("float32", "float64")


def moments(x: Any, axes: Any, keepdims: bool = False, synchronized: bool = False) -> tuple[Any, Any]:
    """Mean and variance; `synchronized`, those of all replicas of a strategy together."""
    x = x if type(x) is Tensor and x.dtype.is_floating else floating(x)
    axes = axes if axes is None or isinstance(axes, (int, list)) else list(axes)
    replica = current_replica() if synchronized else None
    if replica is not None:
        return _moments_of_all(replica, x, axes, keepdims)
    if x.dtype.name in _DIRECT:
        return tuple(_moments(x, axes, keepdims))
    # 16 bits are too few for squares: computed in 32 bits, and limited to the largest number.
    wide = _moments(tf.cast(x, "float32"), axes, keepdims)
    low, high = float(x.dtype.min), float(x.dtype.max)
    return tuple(tf.cast(_clip(v, low, high), x.dtype) for v in wide)


def _moments_of_all(replica: Any, x: Any, axes: Any, keepdims: bool) -> tuple[Any, Any]:
    """The moments of the parts of all replicas, which may have different numbers of rows."""
    wide = tf.cast(x, "float32") if x.dtype.size < 4 else x
    sums = [tf.reduce_sum(v, axes, keepdims) for v in (wide, tf.square(wide), tf.ones_like(wide))]
    total, squares, count = replica.all_reduce("SUM", sums)
    mean = tf.math.divide_no_nan(total, count)
    variance = tf.maximum(tf.math.divide_no_nan(squares, count) - tf.square(mean), 0.0)
    return tf.cast(mean, x.dtype), tf.cast(variance, x.dtype)


def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    axis: int,
    offset: Any = None,
    scale: Any = None,
    epsilon: float = 1e-3,
) -> Any:
    x = x if type(x) is Tensor else convert_to_tensor(x)
    shape = None
    if axis != -1 and axis != x.ndim - 1:
        shape = [1] * x.ndim
        shape[axis] = x.shape[axis]
    mean, variance = _parameter(mean, shape), _parameter(variance, shape)
    inverse = tf.math.rsqrt(variance + epsilon)
    if scale is not None:
        inverse = multiply(inverse, _parameter(scale, shape))
    shift = -multiply(mean, inverse)
    if offset is not None:
        shift = add(_parameter(offset, shape), shift)
    if inverse.dtype is not x.dtype or shift.dtype is not x.dtype:
        x, inverse, shift = common(x, inverse, shift)
    return _fma(x, inverse, shift)


def _parameter(value: Any, shape: list[int] | None) -> Any:
    """A parameter of the channels in a shape that broadcasts."""
    value = value if type(value) is Tensor else convert_to_tensor(value)
    return value if shape is None else tf.reshape(value, shape)


def _fits(parameter: Any, x: Any, axes: Any) -> bool:
    """Whether a parameter has one number for each element of the normalised axes."""
    return parameter is None or parameter._numel == math.prod(x.shape[a] for a in axes)


def layer_normalization(
    x: Any, gamma: Any = None, beta: Any = None, axis: Any = -1, epsilon: float | None = None
) -> Any:
    """Required of a backend since Keras 3.16; earlier versions use `moments`."""
    x = floating(x)
    epsilon = config.epsilon() if epsilon is None else epsilon
    gamma, beta = (v if v is None else convert_to_tensor(v, x.dtype.name) for v in (gamma, beta))
    axes = [axis] if isinstance(axis, int) else list(axis)
    if _fits(gamma, x, axes) and _fits(beta, x, axes):
        return tf.nn.layer_norm(x, gamma, beta, axes[0] if len(axes) == 1 else axes, epsilon)
    out = tf.nn.layer_norm(x, None, None, axes, epsilon)
    out = out if gamma is None else out * gamma
    return out if beta is None else out + beta


def rms_normalization(x: Any, scale: Any = None, axis: Any = -1, epsilon: float | None = None) -> Any:
    x = floating(x)
    epsilon = config.epsilon() if epsilon is None else epsilon
    scale = scale if scale is None else convert_to_tensor(scale, x.dtype.name)
    if not x.ndim:
        x = tf.reshape(x, [1])
    axes = [axis] if isinstance(axis, int) else list(axis)
    if _fits(scale, x, axes):
        return tf.nn.rms_norm(x, scale, axes[0] if len(axes) == 1 else axes, epsilon)
    return tf.nn.rms_norm(x, None, axes, epsilon) * scale


# ---- attention ----------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def _lower_triangle(rows: int, columns: int) -> np.ndarray:
    return np.tri(rows, columns, dtype=bool)


def _is_fused(q: Any, k: Any) -> bool:
    """Whether attention is one op: where scores do not stay in the cache, and with products of bfloat16.

    Not for float16: its scores are float32, and no float16 number is far below all of them, as masks need.
    """
    name, rows, columns = q.dtype.name, q.shape[2], k.shape[2]
    if rows is None or columns is None:
        return False
    return name == "bfloat16" or (name in ("float32", "float64") and rows * columns > 1 << 16)


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    scale: float | None = None,
    is_causal: bool = False,
    flash_attention: bool | None = None,
    attn_logits_soft_cap: float | None = None,
) -> Any:
    """`softmax(scale · query keyᵀ + bias) value` for tensors `[batch, length, heads, size]`.

    If there are fewer heads of keys and values than of queries, each serves a group of neighbouring queries. Logits
    have at least 32 bits. There is only one implementation: `flash_attention` has no effect.
    """
    query, key, value = common(query, key, value)
    if query.ndim != 4:
        raise ValueError(
            "`dot_product_attention` only supports 4D inputs. Received: "
            f"query.shape={tuple(query.shape)}, key.shape={tuple(key.shape)}, value.shape={tuple(value.shape)}."
        )
    heads, served = query.shape[2], key.shape[2]
    if 1 < served < heads:
        key, value = (tf.repeat(v, heads // served, axis=2) for v in (key, value))
    scale = 1 / math.sqrt(key.shape[-1]) if scale is None else scale
    q, k, v = (tf.transpose(t, [0, 2, 1, 3]) for t in (query, key, value))
    mask = mask if mask is None else convert_to_tensor(mask, "bool")
    if is_causal and mask is not None:
        mask, is_causal = tf.logical_and(mask, _lower_triangle(q.shape[2], k.shape[2])), False
    if bias is None and attn_logits_soft_cap is None and _is_fused(q, k):
        # A row without keys gets equal weights; without infinities, whose difference would be NaN.
        far = None if mask is None else _select(mask, tf.zeros((), q.dtype), -0.7 * float(q.dtype.max))
        out = tf.nn.scaled_dot_product_attention(q, k, v, far, is_causal, scale)
        return tf.transpose(out, [0, 2, 1, 3])
    wide = result_type(query.dtype.name, "float32")
    logits = tf.matmul(convert_to_tensor(q, wide), convert_to_tensor(k, wide), transpose_b=True) * scale
    if attn_logits_soft_cap is not None:
        logits = attn_logits_soft_cap * tf.tanh(logits / attn_logits_soft_cap)
    if bias is not None:
        logits = logits + convert_to_tensor(bias, wide)
    if is_causal:
        mask = tf.constant(_lower_triangle(*logits.shape[-2:]))
    if mask is not None:
        logits = _select(mask, logits, -0.7 * float(logits.dtype.max))
    out = tf.matmul(convert_to_tensor(tf.nn.softmax(logits), query.dtype.name), v)
    return tf.transpose(out, [0, 2, 1, 3])
