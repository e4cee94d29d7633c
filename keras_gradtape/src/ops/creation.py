"""The functions of `keras.ops.numpy` that make tensors: constants, ranges, grids, windows."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from keras.src.backend import config

import gradtape as tf
from keras_gradtape.src.ops.core import convert_to_tensor
from keras_gradtape.src.ops.types import common, countable, dtype_of, operand, result_type

# ---- one value ----------------------------------------------------------------------------------


def _sizes(shape: Any) -> list:
    return [int(shape)] if isinstance(shape, (int, np.integer)) else [int(d) for d in shape]


def zeros(shape: Any, dtype: Any = None) -> Any:
    return tf.zeros(_sizes(shape), dtype_of(dtype))


def ones(shape: Any, dtype: Any = None) -> Any:
    return tf.ones(_sizes(shape), dtype_of(dtype))


def empty(shape: Any, dtype: Any = None) -> Any:
    return zeros(shape, dtype)


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    return tf.broadcast_to(tf.cast(convert_to_tensor(fill_value), dtype_of(dtype)), _sizes(shape))


def zeros_like(x: Any, dtype: Any = None) -> Any:
    return tf.zeros_like(convert_to_tensor(x), None if dtype is None else dtype_of(dtype))


def ones_like(x: Any, dtype: Any = None) -> Any:
    return tf.ones_like(convert_to_tensor(x), None if dtype is None else dtype_of(dtype))


def empty_like(x: Any, dtype: Any = None) -> Any:
    return zeros_like(x, dtype)


def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Any:
    x = convert_to_tensor(x)
    return full(x.shape, fill_value, x.dtype if dtype is None else dtype)


def array(x: Any, dtype: Any = None) -> Any:
    return convert_to_tensor(x, dtype)


# ---- matrices -----------------------------------------------------------------------------------


def _matrix(values: np.ndarray, dtype: Any) -> Any:
    return tf.cast(tf.constant(values), dtype_of(dtype))


def eye(N: Any, M: Any = None, k: int = 0, dtype: Any = None) -> Any:  # noqa: N803
    rows = int(N)
    columns = rows if M is None else int(M)
    if k == 0:
        return tf.eye(rows, columns, dtype=dtype_of(dtype))
    return _matrix(np.eye(rows, columns, int(k), bool), dtype)


def identity(n: Any, dtype: Any = None) -> Any:
    return eye(n, dtype=dtype)


def tri(N: Any, M: Any = None, k: int = 0, dtype: Any = None) -> Any:  # noqa: N803
    return _matrix(np.tri(int(N), None if M is None else int(M), int(k), bool), dtype)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:  # noqa: N803
    x = countable(x)
    exponents = np.arange(x.shape[0] if N is None else N)
    return tf.pow(
        tf.expand_dims(x, -1), tf.cast(exponents if increasing else exponents[::-1].copy(), x.dtype)
    )


# ---- ranges -------------------------------------------------------------------------------------


def _number(x: Any) -> Any:
    """A Python number of something that is one, of any kind."""
    return x if isinstance(x, (int, float)) else convert_to_tensor(x).numpy().item()


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Any:
    if dtype is None:
        given = [v for v in (start, stop, step) if v is not None]
        dtype = result_type(*[getattr(v, "dtype", type(v)) for v in map(operand, given)])
    begin, end, by = (
        _number(start),
        None if stop is None else _number(stop),
        1 if step is None else _number(step),
    )
    if end is None:
        begin, end = 0, begin
    kind = dtype_of(dtype)
    values = np.arange(begin, end, by, dtype=kind.as_numpy_dtype if kind.is_integer else np.float64)
    return tf.cast(tf.constant(values), kind)


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: int = 0,
) -> Any:  # fmt: skip
    """The ends may be tensors, and have gradients."""
    num = int(num)
    if num < 0:
        raise ValueError(f"`num` must be a non-negative integer. Received: num={num}")
    result_type = None if dtype is None else dtype_of(dtype)
    start, stop = common(start, stop, also=(float,) if result_type is None else (float, result_type.name))
    steps = num - 1 if endpoint else num
    step = (
        (stop - start) / steps
        if steps > 0
        else tf.fill((stop - start).shape, tf.constant(math.nan, start.dtype))
    )
    # A weighted mean of the ends gives both of them exactly.
    share = np.arange(num) / builtins.max(steps, 1)
    share = tf.reshape(tf.cast(tf.constant(share), start.dtype), [num] + [1] * step.ndim)
    out = start * (1 - share) + stop * share
    if axis:
        order = [*range(1, out.ndim)]
        order.insert(axis if axis >= 0 else out.ndim + axis, 0)
        out = tf.transpose(out, order)
    if result_type is not None:
        out = tf.cast(tf.floor(out) if result_type.is_integer else out, result_type)
    return (out, step) if retstep else out


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    out = tf.pow(convert_to_tensor(base, exponents.dtype.name), exponents)
    return out if dtype is None else tf.cast(out, dtype_of(dtype))


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    """Equal ratios: equal steps of the logarithm."""
    start, stop = common(start, stop, also=(float,))
    sign = tf.sign(start)
    out = tf.exp(linspace(tf.math.log(tf.abs(start)), tf.math.log(tf.abs(stop)), num, endpoint, axis=axis))
    if sign.ndim:
        sign = tf.expand_dims(sign, axis)
    out = out * sign
    return out if dtype is None else tf.cast(out, dtype_of(dtype))


def meshgrid(*x: Any, indexing: str = "xy") -> list:
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for `indexing` are 'xy' and 'ij'. Received: indexing={indexing}")
    lines = [tf.reshape(convert_to_tensor(v), [-1]) for v in x]
    places = list(range(len(lines)))
    if indexing == "xy" and len(lines) > 1:
        places[:2] = 1, 0
    shape = [0] * len(lines)
    for line, place in zip(lines, places, strict=True):
        shape[place] = line.shape[0]
    grids = []
    for line, place in zip(lines, places, strict=True):
        along = [1] * len(lines)
        along[place] = -1
        grids.append(tf.broadcast_to(tf.reshape(line, along), shape))
    return grids


# ---- windows ------------------------------------------------------------------------------------


def _window(name: str, values: Callable) -> Callable:
    def function(x: Any) -> Any:
        return tf.cast(tf.constant(values(int(_number(x)))), config.floatx())

    function.__name__ = function.__qualname__ = name
    return function


bartlett = _window("bartlett", np.bartlett)
blackman = _window("blackman", np.blackman)
hamming = _window("hamming", np.hamming)
hanning = _window("hanning", np.hanning)


def kaiser(x: Any, beta: Any) -> Any:
    return tf.cast(tf.constant(np.kaiser(int(_number(x)), _number(beta))), config.floatx())
