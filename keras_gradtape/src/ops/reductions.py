"""The functions of `keras.ops.numpy` that reduce, and those that accumulate along an axis.

Small integers are summed in 32 bits; means and variances are floats.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import gradtape as tf
from keras_gradtape.src.ops.core import convert_to_tensor
from keras_gradtape.src.ops.elementwise import isnan
from keras_gradtape.src.ops.types import (
    INTEGERS,
    Tensor,
    common,
    countable,
    dtype_of,
    floating,
)

# ---- sums, products, means ----------------------------------------------------------------------

_SUMMED_AS = {"bool": tf.int32, "int8": tf.int32, "int16": tf.int32, "uint8": tf.uint32, "uint16": tf.uint32}


def summable(x: Any) -> Any:
    """An operand in the type its elements are added up in."""
    if type(x) is not Tensor:
        x = convert_to_tensor(x)
    wide = _SUMMED_AS.get(x.dtype.name)
    return x if wide is None else tf.cast(x, wide)


def _reducing(name: str, prepare: Callable, op: Callable) -> Callable:
    def function(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        if type(x) is Tensor and x.dtype.is_floating:
            return op(x, axis, keepdims)
        return op(prepare(x), axis, keepdims)

    function.__name__ = function.__qualname__ = name
    return function


def _truth(x: Any) -> Any:
    return convert_to_tensor(x, "bool")


sum = _reducing("sum", summable, tf.reduce_sum)
mean = _reducing("mean", floating, tf.reduce_mean)
var = _reducing("var", floating, tf.math.reduce_variance)
std = _reducing("std", floating, tf.math.reduce_std)


def all(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return tf.reduce_all(_truth(x), axis, keepdims)


def any(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return tf.reduce_any(_truth(x), axis, keepdims)


def prod(x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:
    x = summable(x) if dtype is None else tf.cast(convert_to_tensor(x), dtype_of(dtype))
    return tf.reduce_prod(x, axis, keepdims)


def count_nonzero(x: Any, axis: Any = None) -> Any:
    return tf.reduce_sum(tf.cast(_truth(x), tf.int32), axis)


def average(x: Any, axis: Any = None, weights: Any = None) -> Any:
    if weights is None:
        return mean(common(x, also=(float,))[0], axis)
    x, weights = common(x, weights, also=(float,))
    if axis is not None and weights.ndim == 1 and x.ndim > 1:
        along = [1] * x.ndim
        along[axis] = -1
        weights = tf.reshape(weights, along)
    weights = tf.broadcast_to(weights, x.shape)
    return tf.reduce_sum(x * weights, axis) / tf.reduce_sum(weights, axis)


# ---- extremes -----------------------------------------------------------------------------------


def _extreme(name: str, op: Callable, of_truths: Callable, between: Callable) -> Callable:
    def function(x: Any, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Any:
        x = convert_to_tensor(x)
        if x.dtype.is_bool:
            out = of_truths(x, axis, keepdims)
            if initial is not None:
                out = tf.cast(between(tf.cast(out, tf.int32), convert_to_tensor(initial, "int32")), tf.bool)
            return out
        if initial is None and not builtins.all(x.shape):
            _refuse_empty(name, x, axis)
        out = op(x, axis, keepdims)
        return out if initial is None else between(out, convert_to_tensor(initial, x.dtype.name))

    function.__name__ = function.__qualname__ = name
    return function


def _refuse_empty(name: str, x: Any, axis: Any) -> None:
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    if not builtins.all(x.shape[a] for a in axes):
        raise ValueError(
            f"{name}: no elements to choose from; got x of shape {tuple(x.shape)} with axis={axis}"
        )


max = _extreme("max", tf.reduce_max, tf.reduce_any, tf.maximum)
min = _extreme("min", tf.reduce_min, tf.reduce_all, tf.minimum)


def amax(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return max(x, axis, keepdims)


def amin(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return min(x, axis, keepdims)


def ptp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    x = convert_to_tensor(x)
    return max(x, axis, keepdims) - min(x, axis, keepdims)


def _place(name: str, op: Callable) -> Callable:
    def function(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        x = convert_to_tensor(x)
        if axis is not None:
            out = op(x, axis, output_type=tf.int32)
            return tf.expand_dims(out, axis) if keepdims else out
        out = op(tf.reshape(x, [-1]), 0, output_type=tf.int32)
        return tf.reshape(out, [1] * x.ndim) if keepdims else out

    function.__name__ = function.__qualname__ = name
    return function


argmax = _place("argmax", tf.argmax)
argmin = _place("argmin", tf.argmin)


# ---- along an axis ------------------------------------------------------------------------------


def _running(name: str, op: Callable) -> Callable:
    def function(x: Any, axis: int | None = None, dtype: Any = None) -> Any:
        x = countable(x) if dtype is None else tf.cast(convert_to_tensor(x), dtype_of(dtype))
        if x.dtype.is_bool:
            raise TypeError(f"{name}: booleans cannot be added up or multiplied; got dtype={dtype}")
        return op(tf.reshape(x, [-1]), 0) if axis is None else op(x, axis)

    function.__name__ = function.__qualname__ = name
    return function


cumsum = _running("cumsum", tf.cumsum)
cumprod = _running("cumprod", tf.math.cumprod)


def along(x: Any, axis: int, start: int | None, stop: int | None) -> Any:
    """A slice along one axis."""
    return x[(slice(None),) * (axis % x.ndim) + (slice(start, stop),)]


def diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    a = convert_to_tensor(a)
    for _ in range(n):
        after, before = along(a, axis, 1, None), along(a, axis, None, -1)
        a = tf.not_equal(after, before) if a.dtype.is_bool else after - before
    return a


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    if x is None:
        y, width = common(y, dx, also=(float,))
    else:
        y, x = common(y, x, also=(float,))
        width = diff(x, axis=axis if x.ndim > 1 else 0)
        if x.ndim == 1:
            width = tf.reshape(width, [-1] + [1] * (y.ndim - 1 - axis % y.ndim))
    return tf.reduce_sum(width * (along(y, axis, 1, None) + along(y, axis, None, -1)), axis) * 0.5


# ---- ignoring NaN --------------------------------------------------------------------------------


def _filled(x: Any, value: Any) -> tuple[Any, Any]:
    """`x` with `value` in place of gaps, and where they are; None for types that have none."""
    x = convert_to_tensor(x)
    if x.dtype.name in INTEGERS:
        return x, None
    gaps = isnan(x)
    return tf.where(gaps, tf.constant(value, x.dtype), x), gaps


def nansum(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return sum(_filled(x, 0)[0], axis, keepdims)


def nanprod(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return prod(_filled(x, 1)[0], axis, keepdims)


def nancumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Any:
    return cumsum(_filled(x, 0)[0], axis, dtype)


def nancumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Any:
    return cumprod(_filled(x, 1)[0], axis, dtype)


def _count(gaps: Any, dtype: Any, axis: Any, keepdims: bool) -> Any:
    return tf.reduce_sum(tf.cast(tf.logical_not(gaps), dtype), axis, keepdims)


def nanmean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    x, gaps = _filled(x, 0)
    if gaps is None:
        return mean(x, axis, keepdims)
    return tf.reduce_sum(x, axis, keepdims) / _count(gaps, x.dtype, axis, keepdims)


def nanvar(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    x, gaps = _filled(x, 0)
    if gaps is None:
        return var(x, axis, keepdims)
    apart = x - tf.reduce_sum(x, axis, True) / _count(gaps, x.dtype, axis, True)
    squares = tf.where(gaps, tf.zeros_like(x), apart * tf.math.conj(apart))
    if x.dtype.is_complex:
        squares = tf.math.real(squares)
    return tf.reduce_sum(squares, axis, keepdims) / _count(gaps, squares.dtype, axis, keepdims)


def nanstd(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return tf.sqrt(nanvar(x, axis, keepdims))


def _nan_extreme(name: str, whole: Callable, value: float) -> Callable:
    def function(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        x, gaps = _filled(x, value)
        out = whole(x, axis, keepdims)
        if gaps is None:
            return out
        return tf.where(tf.reduce_all(gaps, axis, keepdims), tf.constant(math.nan, x.dtype), out)

    function.__name__ = function.__qualname__ = name
    return function


nanmax = _nan_extreme("nanmax", max, -math.inf)
nanmin = _nan_extreme("nanmin", min, math.inf)


def _nan_place(name: str, whole: Callable, value: float) -> Callable:
    """-1 where all elements are NaN."""

    def function(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        x, gaps = _filled(x, value)
        out = whole(x, axis, keepdims)
        if gaps is None:
            return out
        return tf.where(tf.reduce_all(gaps, axis, keepdims), tf.constant(-1), out)

    function.__name__ = function.__qualname__ = name
    return function


nanargmax = _nan_place("nanargmax", argmax, -math.inf)
nanargmin = _nan_place("nanargmin", argmin, math.inf)
