"""The element-wise functions of `keras.ops.numpy`.

Most differ in what becomes of integers and in the op alone: those are made by the tables at the
end of each part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradtape as tf
import numpy as np
from keras.src.backend import config

from keras_gradtape.src.ops.core import convert_to_tensor
from keras_gradtape.src.ops.types import INTEGERS, common, countable, floating, result_type, together

# ---- of one operand, in floats ------------------------------------------------------------------


def _of_floats(name: str, op: Callable) -> Callable:
    def function(x: Any) -> Any:
        return op(floating(x))

    function.__name__ = function.__qualname__ = name
    return function


def _log2(x: Any) -> Any:
    return tf.math.log(x) * tf.cast(1 / np.log(2), x.dtype)


def _log10(x: Any) -> Any:
    return tf.math.log(x) * tf.cast(1 / np.log(10), x.dtype)


def _exp2(x: Any) -> Any:
    return tf.exp(x * tf.cast(np.log(2), x.dtype))


def _cbrt(x: Any) -> Any:
    return tf.sign(x) * tf.pow(tf.abs(x), tf.cast(1 / 3, x.dtype))


def _sinc(x: Any) -> Any:
    y = x * tf.cast(np.pi, x.dtype)
    safe = tf.where(y == 0, tf.ones_like(y), y)
    return tf.where(y == 0, tf.ones_like(y), tf.sin(safe) / safe)


def _angle(x: Any) -> Any:
    if x.dtype.is_complex:
        return tf.math.angle(x)
    return tf.where(x < 0, tf.cast(np.pi, x.dtype), tf.where(x == x, tf.zeros([], x.dtype), x))


def _degrees(x: Any) -> Any:
    return x * tf.cast(180 / np.pi, x.dtype)


def _radians(x: Any) -> Any:
    return x * tf.cast(np.pi / 180, x.dtype)


for _name, _op in {
    "arccos": tf.acos, "arccosh": tf.acosh, "arcsin": tf.asin, "arcsinh": tf.asinh, "arctan": tf.atan,
    "arctanh": tf.atanh, "cos": tf.cos, "cosh": tf.cosh, "exp": tf.exp, "exp2": _exp2,
    "expm1": tf.math.expm1, "log": tf.math.log, "log10": _log10, "log1p": tf.math.log1p, "log2": _log2,
    "sin": tf.sin, "sinh": tf.sinh, "sqrt": tf.sqrt, "tan": tf.tan, "tanh": tf.tanh, "ceil": tf.math.ceil,
    "floor": tf.floor, "sinc": _sinc, "angle": _angle, "fabs": tf.abs, "i0": lambda x: tf.math.bessel_i0(x),
    "cbrt": _cbrt, "rad2deg": _degrees, "deg2rad": _radians,
}.items():  # fmt: skip
    globals()[_name] = _of_floats(_name, _op)


# ---- of one operand, in its own type ------------------------------------------------------------


def absolute(x: Any) -> Any:
    x = convert_to_tensor(x)
    return x if x.dtype.is_bool or x.dtype.name.startswith("uint") else tf.abs(x)


def abs(x: Any) -> Any:
    return absolute(x)


def negative(x: Any) -> Any:
    return -convert_to_tensor(x)


def positive(x: Any) -> Any:
    return convert_to_tensor(x)


def sign(x: Any) -> Any:
    x = convert_to_tensor(x)
    if x.dtype.is_bool:
        return x
    return tf.cast(x != 0, x.dtype) if x.dtype.name.startswith("uint") else tf.sign(x)


def square(x: Any) -> Any:
    return tf.square(countable(x))


def reciprocal(x: Any) -> Any:
    return tf.math.reciprocal(floating(x))


def round(x: Any, decimals: int = 0) -> Any:
    x = convert_to_tensor(x)
    if x.dtype.is_bool:
        x = tf.cast(x, "int32")
    if not decimals:
        return tf.round(x) if not x.dtype.is_integer else x
    if x.dtype.is_integer:
        if decimals > 0:
            return x
        factor = tf.constant(10.0**decimals, config.floatx())
        return tf.cast(tf.round(tf.cast(x, config.floatx()) * factor) / factor, x.dtype)
    factor = tf.cast(10.0**decimals, x.dtype)
    return tf.round(x * factor) / factor


def trunc(x: Any) -> Any:
    x = convert_to_tensor(x)
    return x if x.dtype.name in INTEGERS else tf.sign(x) * tf.floor(tf.abs(x))


def real(x: Any) -> Any:
    return tf.math.real(convert_to_tensor(x))


def imag(x: Any) -> Any:
    return tf.math.imag(convert_to_tensor(x))


def conjugate(x: Any) -> Any:
    return tf.math.conj(convert_to_tensor(x))


def conj(x: Any) -> Any:
    return conjugate(x)


def copy(x: Any) -> Any:
    return tf.identity(convert_to_tensor(x))


def clip(x: Any, x_min: Any, x_max: Any) -> Any:
    x = countable(x)
    low, high = convert_to_tensor(x_min), convert_to_tensor(x_max)
    wide = result_type(x.dtype.name, low.dtype.name, high.dtype.name)
    if wide == x.dtype.name or (x.dtype.is_floating and not low.dtype.is_complex):
        wide = x.dtype.name
    y = tf.maximum(tf.cast(x, wide), tf.cast(low, wide))
    return tf.cast(tf.minimum(y, tf.cast(high, wide)), x.dtype)


def nan_to_num(x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    x = convert_to_tensor(x)
    if x.dtype.name in INTEGERS:
        return x
    high = x.dtype.max if posinf is None else posinf
    low = x.dtype.min if neginf is None else neginf
    x = tf.where(tf.math.is_nan(x), tf.cast(nan, x.dtype), x)
    x = tf.where(isposinf(x), tf.cast(high, x.dtype), x)
    return tf.where(isneginf(x), tf.cast(low, x.dtype), x)


# ---- questions ----------------------------------------------------------------------------------


def _asked(op: Callable, otherwise: bool) -> Callable:
    """Of numbers without infinities and gaps the answer is always the same."""

    def function(x: Any) -> Any:
        x = convert_to_tensor(x)
        if x.dtype.name in INTEGERS:
            return tf.fill(x.shape, otherwise)
        return op(x)

    return function


isfinite = _asked(tf.math.is_finite, True)
isinf = _asked(tf.math.is_inf, False)
isnan = _asked(tf.math.is_nan, False)
isposinf = _asked(lambda x: x == tf.cast(np.inf, x.dtype), False)
isneginf = _asked(lambda x: x == tf.cast(-np.inf, x.dtype), False)


def isreal(x: Any) -> Any:
    x = convert_to_tensor(x)
    return tf.math.imag(x) == 0 if x.dtype.is_complex else tf.ones(x.shape, "bool")


def signbit(x: Any) -> Any:
    x = convert_to_tensor(x)
    if x.dtype.is_bool or x.dtype.name.startswith("uint"):
        return tf.zeros(x.shape, "bool")
    if x.dtype.is_integer:
        return x < 0
    wide = tf.cast(x, "float64")
    return tf.bitcast(wide, "int64") < 0


def isclose(x1: Any, x2: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    x1, x2 = together(x1, x2, float)
    near = tf.abs(x1 - x2) <= tf.cast(atol, x1.dtype) + tf.cast(rtol, x1.dtype) * tf.abs(x2)
    found = tf.where(isfinite(x1) & isfinite(x2), near, x1 == x2)
    return found | (isnan(x1) & isnan(x2)) if equal_nan else found


def logical_not(x: Any) -> Any:
    return tf.logical_not(convert_to_tensor(x, "bool"))


# ---- of two operands ----------------------------------------------------------------------------


def _of_two(name: str, op: Callable, *more: Any) -> Callable:
    """An op on the common type of the operands and `more`."""

    def function(x1: Any, x2: Any) -> Any:
        return op(*together(x1, x2, *more))

    function.__name__ = function.__qualname__ = name
    return function


def add(x1: Any, x2: Any) -> Any:
    x1, x2 = together(x1, x2)
    return tf.logical_or(x1, x2) if x1.dtype.is_bool else x1 + x2


def multiply(x1: Any, x2: Any) -> Any:
    x1, x2 = together(x1, x2)
    return tf.logical_and(x1, x2) if x1.dtype.is_bool else x1 * x2


def _numbers(x1: Any, x2: Any) -> tuple:
    """Two operands of one type in which one can count."""
    x1, x2 = together(x1, x2)
    return (tf.cast(x1, "int32"), tf.cast(x2, "int32")) if x1.dtype.is_bool else (x1, x2)


def mod(x1: Any, x2: Any) -> Any:
    return tf.math.floormod(*_numbers(x1, x2))


def remainder(x1: Any, x2: Any) -> Any:
    return mod(x1, x2)


def fmod(x1: Any, x2: Any) -> Any:
    x1, x2 = _numbers(x1, x2)
    return tf.math.truncatemod(x1, x2) if x1.dtype.is_integer else x1 - x2 * trunc(x1 / x2)


def floor_divide(x1: Any, x2: Any) -> Any:
    return tf.math.floordiv(*_numbers(x1, x2))


def power(x1: Any, x2: Any) -> Any:
    return tf.pow(*_numbers(x1, x2))


def float_power(x1: Any, x2: Any) -> Any:
    return tf.pow(*together(x1, x2, float))


def true_divide(x1: Any, x2: Any) -> Any:
    return divide(x1, x2)


def divide(x1: Any, x2: Any) -> Any:
    x1, x2 = together(x1, x2)
    if x1.dtype.name in INTEGERS:
        x1, x2 = together(x1, x2, float)
    return x1 / x2


def divide_no_nan(x1: Any, x2: Any) -> Any:
    return tf.math.divide_no_nan(*together(x1, x2, float))


def _logaddexp(x1: Any, x2: Any) -> Any:
    high = tf.maximum(x1, x2)
    gap = -tf.abs(x1 - x2)
    return tf.where(tf.math.is_nan(gap), x1 + x2, high + tf.math.log1p(tf.exp(gap)))


def _logaddexp2(x1: Any, x2: Any) -> Any:
    two = tf.cast(np.log(2), x1.dtype)
    return _logaddexp(x1 * two, x2 * two) / two


def _fmax(x1: Any, x2: Any) -> Any:
    return tf.where(isnan(x1), x2, tf.where(isnan(x2), x1, tf.maximum(x1, x2)))


def _fmin(x1: Any, x2: Any) -> Any:
    return tf.where(isnan(x1), x2, tf.where(isnan(x2), x1, tf.minimum(x1, x2)))


def _hypot(x1: Any, x2: Any) -> Any:
    a, b = tf.abs(x1), tf.abs(x2)
    large, small = tf.maximum(a, b), tf.minimum(a, b)
    ratio = small / tf.where(large == 0, tf.ones_like(large), large)
    return large * tf.sqrt(1 + tf.square(ratio))


def _copysign(x1: Any, x2: Any) -> Any:
    return tf.where(signbit(x2), -tf.abs(x1), tf.abs(x1))


def _heaviside(x1: Any, x2: Any) -> Any:
    return tf.where(x1 < 0, tf.zeros([], x1.dtype), tf.where(x1 == 0, x2, tf.where(x1 == x1, tf.ones([], x1.dtype), x1)))


def heaviside(x1: Any, x2: Any) -> Any:
    return _heaviside(*together(x1, x2, float))


def ldexp(x1: Any, x2: Any) -> Any:
    x2 = convert_to_tensor(x2)
    if x2.dtype.name not in INTEGERS or x2.dtype.is_bool:
        raise TypeError(f"ldexp exponent must be an integer type. Received: x2 dtype={x2.dtype.name}")
    x1, x2 = together(x1, x2, float)
    return x1 * _exp2(x2)


subtract = _of_two("subtract", lambda a, b: a - b)
maximum = _of_two("maximum", lambda a, b: tf.logical_or(a, b) if a.dtype.is_bool else tf.maximum(a, b))
minimum = _of_two("minimum", lambda a, b: tf.logical_and(a, b) if a.dtype.is_bool else tf.minimum(a, b))
fmax = _of_two("fmax", lambda a, b: maximum(a, b) if a.dtype.name in INTEGERS else _fmax(a, b))
fmin = _of_two("fmin", lambda a, b: minimum(a, b) if a.dtype.name in INTEGERS else _fmin(a, b))
arctan2 = _of_two("arctan2", tf.atan2, float)
hypot = _of_two("hypot", _hypot, float)
copysign = _of_two("copysign", _copysign, float)
logaddexp = _of_two("logaddexp", _logaddexp, float)
logaddexp2 = _of_two("logaddexp2", _logaddexp2, float)
nextafter = _of_two("nextafter", tf.math.nextafter, float)
equal = _of_two("equal", tf.equal)
not_equal = _of_two("not_equal", tf.not_equal)
greater = _of_two("greater", lambda a, b: tf.greater(*_numbers(a, b)))
greater_equal = _of_two("greater_equal", lambda a, b: tf.greater_equal(*_numbers(a, b)))
less = _of_two("less", lambda a, b: tf.less(*_numbers(a, b)))
less_equal = _of_two("less_equal", lambda a, b: tf.less_equal(*_numbers(a, b)))


def _of_truths(op: Callable) -> Callable:
    def function(x1: Any, x2: Any) -> Any:
        return op(convert_to_tensor(x1, "bool"), convert_to_tensor(x2, "bool"))

    return function


logical_and = _of_truths(tf.logical_and)
logical_or = _of_truths(tf.logical_or)
logical_xor = _of_truths(tf.math.logical_xor)


# ---- bits ---------------------------------------------------------------------------------------


def _of_bits(op: Callable, of_truths: Callable | None) -> Callable:
    def function(x: Any, y: Any) -> Any:
        x, y = together(x, y)
        if x.dtype.is_bool:
            return of_truths(x, y) if of_truths is not None else op(tf.cast(x, "int32"), tf.cast(y, "int32"))
        return op(x, y)

    return function


bitwise_and = _of_bits(tf.bitwise.bitwise_and, tf.logical_and)
bitwise_or = _of_bits(tf.bitwise.bitwise_or, tf.logical_or)
bitwise_xor = _of_bits(tf.bitwise.bitwise_xor, tf.math.logical_xor)
bitwise_left_shift = left_shift = _of_bits(tf.bitwise.left_shift, None)
bitwise_right_shift = right_shift = _of_bits(tf.bitwise.right_shift, None)


def bitwise_invert(x: Any) -> Any:
    x = convert_to_tensor(x)
    return tf.logical_not(x) if x.dtype.is_bool else tf.bitwise.invert(x)


def bitwise_not(x: Any) -> Any:
    return bitwise_invert(x)


def gcd(x1: Any, x2: Any) -> Any:
    """Euclid's algorithm on all elements; as many rounds as the widest type can need."""
    x1, x2 = together(x1, x2)
    if x1.dtype.is_bool:
        return tf.logical_or(x1, x2)
    a, b = absolute(x1), absolute(x2)
    a, b = tf.broadcast_to(a, (a + b).shape), tf.broadcast_to(b, (a + b).shape)
    one, zero = tf.ones([], a.dtype), tf.zeros([], a.dtype)

    def round_(a: Any, b: Any) -> tuple:
        rest = tf.where(b == 0, zero, tf.math.floormod(a, tf.where(b == 0, one, b)))
        return tf.where(b == 0, a, b), rest

    return tf.while_loop(lambda a, b: tf.reduce_any(b != 0), round_, (a, b))[0]


def lcm(x1: Any, x2: Any) -> Any:
    x1, x2 = together(x1, x2)
    if x1.dtype.is_bool:
        return tf.logical_and(x1, x2)
    common_divisor = gcd(x1, x2)
    safe = tf.where(common_divisor == 0, tf.ones_like(common_divisor), common_divisor)
    return absolute(tf.math.floordiv(x1, safe) * x2)


# ---- choices ------------------------------------------------------------------------------------


def where(condition: Any, x1: Any = None, x2: Any = None) -> Any:
    condition = convert_to_tensor(condition, "bool")
    if x1 is None or x2 is None:
        return tuple(tf.unstack(tf.cast(tf.where(condition), "int32"), axis=1))
    return tf.where(condition, *together(x1, x2))


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if len(condlist) != len(choicelist):
        raise ValueError(
            "condlist and choicelist must have the same length. "
            f"Received: len(condlist)={len(condlist)}, len(choicelist)={len(choicelist)}"
        )
    *choices, out = common(*choicelist, default)
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        out = tf.where(convert_to_tensor(condition, "bool"), choice, out)
    return out


def view(x: Any, dtype: Any = None) -> Any:
    x = convert_to_tensor(x)
    return x if dtype is None else tf.bitcast(x, dtype)
