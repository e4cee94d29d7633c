"""The functions of one operand of `keras.ops.numpy` that work element by element.

Most differ only in the op and in the treatment of integers: those are generated from tables. A call on a tensor of
floats goes directly to the op.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

from keras.src.backend import config

import gradtape as tf
from gradtape.backend import op
from keras_gradtape.src.ops.core import convert_to_tensor
from keras_gradtape.src.ops.types import (
    INTEGERS,
    UNSIGNED,
    Tensor,
    countable,
    dtype_of,
    floating,
    result_type,
)

_clip = op("clip")
_trunc = op("trunc")

# ---- in floats ----------------------------------------------------------------------------------


def _of_floats(name: str, op: Callable) -> Callable:
    def function(x: Any) -> Any:
        if type(x) is Tensor and x.dtype.is_floating:
            return op(x)
        return op(floating(x))

    function.__name__ = function.__qualname__ = name
    return function


def _log2(x: Any) -> Any:
    return tf.math.log(x) * (1 / math.log(2))


def _log10(x: Any) -> Any:
    return tf.math.log(x) * (1 / math.log(10))


def exp2_of(x: Any) -> Any:
    return tf.exp(x * math.log(2))


def _cbrt(x: Any) -> Any:
    return tf.sign(x) * tf.pow(tf.abs(x), 1 / 3)


def _sinc(x: Any) -> Any:
    y = x * math.pi
    at_zero = tf.equal(y, 0)
    safe = tf.where(at_zero, tf.ones_like(y), y)
    return tf.where(at_zero, tf.ones_like(y), tf.sin(safe) / safe)


def _angle(x: Any) -> Any:
    if x.dtype.is_complex:
        return tf.math.angle(x)
    # The sign decides; NaN is preserved.
    return tf.where(x < 0, tf.fill(x.shape, tf.constant(math.pi, x.dtype)), x * 0)


def _i0(x: Any) -> Any:
    return tf.math.bessel_i0(x)


for _name, _op in {
    "arccos": tf.acos, "arccosh": tf.acosh, "arcsin": tf.asin, "arcsinh": tf.asinh, "arctan": tf.atan,
    "arctanh": tf.atanh, "cos": tf.cos, "cosh": tf.cosh, "exp": tf.exp, "exp2": exp2_of,
    "expm1": tf.math.expm1, "log": tf.math.log, "log10": _log10, "log1p": tf.math.log1p, "log2": _log2,
    "sin": tf.sin, "sinh": tf.sinh, "sqrt": tf.sqrt, "tan": tf.tan, "tanh": tf.tanh, "ceil": tf.math.ceil,
    "floor": tf.floor, "sinc": _sinc, "angle": _angle, "i0": _i0, "cbrt": _cbrt, "fabs": tf.abs,
    "reciprocal": tf.math.reciprocal, "rad2deg": lambda x: x * (180 / math.pi),
    "deg2rad": lambda x: x * (math.pi / 180),
}.items():  # fmt: skip
    globals()[_name] = _of_floats(_name, _op)


# ---- in the type of the operand -----------------------------------------------------------------


def absolute(x: Any) -> Any:
    x = convert_to_tensor(x)
    return x if x.dtype.is_bool or x.dtype.is_unsigned else tf.abs(x)


def abs(x: Any) -> Any:
    return absolute(x)


def negative(x: Any) -> Any:
    return tf.negative(convert_to_tensor(x))


def positive(x: Any) -> Any:
    return convert_to_tensor(x)


def sign(x: Any) -> Any:
    x = convert_to_tensor(x)
    return x if x.dtype.is_bool else tf.sign(x)


def square(x: Any) -> Any:
    return tf.square(countable(x))


def round(x: Any, decimals: int = 0) -> Any:
    x = countable(x)
    if decimals == 0 or (x.dtype.is_integer and decimals > 0):
        return x if x.dtype.is_integer else tf.round(x)
    y = tf.cast(x, config.floatx()) if x.dtype.is_integer else x
    # Powers of ten with negative exponents are not exact: divide by the positive ones.
    power = 10.0 ** builtins.abs(decimals)
    y = tf.round(y * power) / power if decimals > 0 else tf.round(y / power) * power
    return tf.cast(y, x.dtype) if x.dtype.is_integer else y


def trunc(x: Any) -> Any:
    x = convert_to_tensor(x)
    return x if x.dtype.name in INTEGERS else _trunc(x)


def real(x: Any) -> Any:
    return tf.math.real(convert_to_tensor(x))


def imag(x: Any) -> Any:
    x = convert_to_tensor(x)
    return tf.math.imag(x) if x.dtype.is_complex else tf.zeros_like(x)


def conjugate(x: Any) -> Any:
    return tf.math.conj(convert_to_tensor(x))


def conj(x: Any) -> Any:
    return conjugate(x)


def copy(x: Any) -> Any:
    return tf.identity(convert_to_tensor(x))


def clip(x: Any, x_min: Any, x_max: Any) -> Any:
    x = countable(x)
    if x.dtype.is_floating and type(x_min) in (int, float) and type(x_max) in (int, float):
        return _clip(x, x_min, x_max)
    # Limits outside the range of an integer type still count.
    wide = x.dtype.name
    if x.dtype.is_integer:
        low, high = convert_to_tensor(x_min), convert_to_tensor(x_max)
        wide = result_type(wide, low.dtype.name, high.dtype.name)
    y = tf.maximum(tf.cast(x, wide), convert_to_tensor(x_min, wide))
    return tf.cast(tf.minimum(y, convert_to_tensor(x_max, wide)), x.dtype)


def nan_to_num(x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    x = convert_to_tensor(x)
    if x.dtype.name in INTEGERS:
        return x
    if x.dtype.is_complex:
        parts = (nan_to_num(p, nan, posinf, neginf) for p in (tf.math.real(x), tf.math.imag(x)))
        return tf.complex(*parts)
    high = float(x.dtype.max) if posinf is None else posinf
    low = float(x.dtype.min) if neginf is None else neginf
    for mask, value in ((isnan(x), nan), (isposinf(x), high), (isneginf(x), low)):
        x = tf.where(mask, convert_to_tensor(value, x.dtype.name), x)
    return x


def view(x: Any, dtype: Any = None) -> Any:
    """The same bits as numbers of another type: the last axis becomes longer or shorter, as in NumPy."""
    x = convert_to_tensor(x)
    if dtype is None:
        return x
    target = dtype_of(dtype)
    if x.dtype.size == target.size:
        return _same_bits(x, target)
    if not x.ndim:
        raise ValueError("view: a scalar cannot become a type of another size; got a tensor without axes")
    if x.dtype.size > target.size:
        return tf.reshape(_same_bits(x, target), (*x.shape[:-1], x.shape[-1] * (x.dtype.size // target.size)))
    parts = target.size // x.dtype.size
    if x.shape[-1] % parts:
        raise ValueError(
            f"view: the last axis must hold whole elements of {target.name}; expected a multiple of {parts}; "
            f"got x: {x.dtype.name}{list(x.shape)}."
        )
    return _same_bits(tf.reshape(x, (*x.shape[:-1], x.shape[-1] // parts, parts)), target)


def _same_bits(x: Any, target: Any) -> Any:
    """`tf.bitcast`, which has no booleans."""
    if x.dtype.is_bool:
        x = tf.cast(x, tf.uint8)
    if target.is_bool:
        return tf.cast(x if x.dtype is tf.uint8 else tf.bitcast(x, tf.uint8), tf.bool)
    return x if x.dtype is target else tf.bitcast(x, target)


# ---- predicates---------------------------------------------------------------------------------


def _asked(name: str, op: Callable, otherwise: bool) -> Callable:
    """Of integers the answer is always the same."""

    def function(x: Any) -> Any:
        x = convert_to_tensor(x)
        if x.dtype.name in INTEGERS:
            return tf.fill(x.shape, otherwise)
        if x.dtype.is_complex:
            parts = op(tf.math.real(x)), op(tf.math.imag(x))
            return tf.logical_and(*parts) if otherwise else tf.logical_or(*parts)
        return op(x)

    function.__name__ = function.__qualname__ = name
    return function


isfinite = _asked("isfinite", tf.math.is_finite, True)
isinf = _asked("isinf", tf.math.is_inf, False)
isnan = _asked("isnan", tf.math.is_nan, False)
isposinf = _asked("isposinf", lambda x: tf.equal(x, math.inf), False)
isneginf = _asked("isneginf", lambda x: tf.equal(x, -math.inf), False)


def isreal(x: Any) -> Any:
    x = convert_to_tensor(x)
    return tf.equal(tf.math.imag(x), 0) if x.dtype.is_complex else tf.fill(x.shape, True)


_BITS = {2: tf.int16, 4: tf.int32, 8: tf.int64}


def signbit(x: Any) -> Any:
    x = convert_to_tensor(x)
    if x.dtype.is_bool or x.dtype.name in UNSIGNED:
        return tf.fill(x.shape, False)
    if x.dtype.is_floating:  # zeros have a sign, too
        x = tf.bitcast(x, _BITS[x.dtype.size])
    return x < 0


def logical_not(x: Any) -> Any:
    return tf.logical_not(convert_to_tensor(x, "bool"))


def bitwise_invert(x: Any) -> Any:
    x = convert_to_tensor(x)
    return tf.logical_not(x) if x.dtype.is_bool else tf.bitwise.invert(x)


def bitwise_not(x: Any) -> Any:
    return bitwise_invert(x)
