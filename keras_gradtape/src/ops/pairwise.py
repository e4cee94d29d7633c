"""The functions of two operands of `keras.ops.numpy` that work element by element, and choices.

Operands are converted to Keras' common type. A call on two tensors of one type, or on a tensor of floats and a
Python number, goes directly to the op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradtape as tf
from gradtape.backend import op
from keras_gradtape.src.ops.core import convert_to_tensor
from keras_gradtape.src.ops.elementwise import absolute, exp2_of, isfinite, isnan, signbit, trunc
from keras_gradtape.src.ops.types import INTEGERS, Tensor, common, floats, numbers, together

_div = op("div")
_select = op("select")

# ---- factories------------------------------------------------------------------------------------


def _of_two(name: str, op: Callable, of_truths: Callable | None = None) -> Callable:
    """An op on the common type; booleans are for `of_truths`, or become integers if there is none."""

    def function(x1: Any, x2: Any) -> Any:
        if type(x1) is Tensor:
            if type(x2) is Tensor:
                if x1.dtype is x2.dtype and not x1.dtype.is_bool:
                    return op(x1, x2)
            elif type(x2) in _NUMBERS and (
                x1.dtype.is_floating or (x1.dtype is tf.int32 and type(x2) is int)
            ):
                return op(x1, x2)
        elif type(x2) is Tensor and x2.dtype.is_floating and type(x1) in _NUMBERS:
            return op(x1, x2)
        x1, x2 = together(x1, x2)
        if not x1.dtype.is_bool:
            return op(x1, x2)
        return (
            of_truths(x1, x2) if of_truths is not None else op(tf.cast(x1, tf.int32), tf.cast(x2, tf.int32))
        )

    function.__name__ = function.__qualname__ = name
    return function


_NUMBERS = frozenset((int, float))


def _of_floats(name: str, op: Callable) -> Callable:
    """An op on the common type with fractions."""

    def function(x1: Any, x2: Any) -> Any:
        return op(*floats(x1, x2))

    function.__name__ = function.__qualname__ = name
    return function


def _of_truths(name: str, op: Callable) -> Callable:
    def function(x1: Any, x2: Any) -> Any:
        return op(convert_to_tensor(x1, "bool"), convert_to_tensor(x2, "bool"))

    function.__name__ = function.__qualname__ = name
    return function


# ---- arithmetic ---------------------------------------------------------------------------------

add = _of_two("add", tf.add, tf.logical_or)
subtract = _of_two("subtract", tf.subtract)
multiply = _of_two("multiply", tf.multiply, tf.logical_and)
maximum = _of_two("maximum", tf.maximum, tf.logical_or)
minimum = _of_two("minimum", tf.minimum, tf.logical_and)
power = _of_two("power", tf.pow)
mod = remainder = _of_two("mod", tf.math.floormod)
floor_divide = _of_two("floor_divide", tf.math.floordiv)


def divide(x1: Any, x2: Any) -> Any:
    if type(x1) is not Tensor or type(x2) not in _NUMBERS or not x1.dtype.is_floating:
        x1, x2 = floats(x1, x2)
    return _div(x1, x2)


def true_divide(x1: Any, x2: Any) -> Any:
    return divide(x1, x2)


def fmod(x1: Any, x2: Any) -> Any:
    x1, x2 = numbers(x1, x2)
    return tf.truncatemod(x1, x2) if x1.dtype.is_integer else x1 - x2 * trunc(x1 / x2)


def _extreme(name: str, op: Callable) -> Callable:
    """The larger or smaller one, or the one that is not NaN."""

    def function(x1: Any, x2: Any) -> Any:
        x1, x2 = together(x1, x2)
        if not x1.dtype.is_floating:
            return op(x1, x2)
        return tf.where(isnan(x1), x2, tf.where(isnan(x2), x1, op(x1, x2)))

    function.__name__ = function.__qualname__ = name
    return function


def _copysign(x1: Any, x2: Any) -> Any:
    return tf.where(signbit(x2), -tf.abs(x1), tf.abs(x1))


def _nextafter(x1: Any, x2: Any) -> Any:
    if x1.dtype.size > 2:
        return tf.math.nextafter(x1, x2)
    # The bits of neighbouring numbers differ by one, and grow with the distance from zero.
    outward = tf.equal(x2 > x1, x1 > 0)
    step = tf.where(outward, tf.constant(1, tf.int16), tf.constant(-1, tf.int16))
    near = tf.bitcast(tf.bitcast(x1, tf.int16) + step, x1.dtype)
    smallest = tf.bitcast(
        tf.where(x2 > 0, tf.constant(1, tf.int16), tf.constant(-0x7FFF, tf.int16)), x1.dtype
    )
    near = tf.where(tf.equal(x1, 0), smallest, near)
    return tf.where(isnan(x1) | isnan(x2), x1 + x2, tf.where(tf.equal(x1, x2), x2, near))


def _of_numpy(name: str) -> Callable:
    """The op of this name in tf.experimental.numpy, which is imported when one is called."""
    return _of_floats(name, lambda x1, x2: getattr(tf.experimental.numpy, name)(x1, x2))


fmax = _extreme("fmax", maximum)
fmin = _extreme("fmin", minimum)

for _name, _op in {
    "arctan2": tf.atan2, "copysign": _copysign, "divide_no_nan": tf.math.divide_no_nan, "float_power": tf.pow,
    "nextafter": _nextafter,
}.items():  # fmt: skip
    globals()[_name] = _of_floats(_name, _op)
for _name in "heaviside", "hypot", "logaddexp", "logaddexp2":
    globals()[_name] = _of_numpy(_name)


def ldexp(x1: Any, x2: Any) -> Any:
    x2 = convert_to_tensor(x2)
    if x2.dtype.name not in INTEGERS:
        raise TypeError(f"ldexp exponent must be an integer type. Received: x2 dtype={x2.dtype.name}")
    x1, x2 = floats(x1, x2)
    return x1 * exp2_of(x2)


# ---- comparison and truth -----------------------------------------------------------------------

equal = _of_two("equal", tf.equal, tf.equal)
not_equal = _of_two("not_equal", tf.not_equal, tf.not_equal)
greater = _of_two("greater", tf.greater)
greater_equal = _of_two("greater_equal", tf.greater_equal)
less = _of_two("less", tf.less)
less_equal = _of_two("less_equal", tf.less_equal)

logical_and = _of_truths("logical_and", tf.logical_and)
logical_or = _of_truths("logical_or", tf.logical_or)
logical_xor = _of_truths("logical_xor", tf.math.logical_xor)


def isclose(x1: Any, x2: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    x1, x2 = floats(x1, x2)
    near = tf.abs(x1 - x2) <= atol + rtol * tf.abs(x2)
    close = tf.where(isfinite(x1) & isfinite(x2), near, tf.equal(x1, x2))
    return close | (isnan(x1) & isnan(x2)) if equal_nan else close


def allclose(x1: Any, x2: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    return tf.reduce_all(isclose(x1, x2, rtol, atol, equal_nan))


# ---- bits and divisors --------------------------------------------------------------------------


def _of_bits(name: str, op: Callable, of_truths: Callable | None = None) -> Callable:
    """Like `_of_two`; Keras calls the operands `x` and `y` here."""
    of_two = _of_two(name, op, of_truths)

    def function(x: Any, y: Any) -> Any:
        return of_two(x, y)

    function.__name__ = function.__qualname__ = name
    return function


bitwise_and = _of_bits("bitwise_and", tf.bitwise.bitwise_and, tf.logical_and)
bitwise_or = _of_bits("bitwise_or", tf.bitwise.bitwise_or, tf.logical_or)
bitwise_xor = _of_bits("bitwise_xor", tf.bitwise.bitwise_xor, tf.math.logical_xor)
bitwise_left_shift = left_shift = _of_bits("left_shift", tf.bitwise.left_shift)
bitwise_right_shift = right_shift = _of_bits("right_shift", tf.bitwise.right_shift)


def gcd(x1: Any, x2: Any) -> Any:
    """Euclid's algorithm on all elements at once."""
    x1, x2 = together(x1, x2)
    if x1.dtype.is_bool:
        return tf.logical_or(x1, x2)
    a, b = absolute(x1), absolute(x2)
    shape = tf.broadcast_static_shape(a.shape, b.shape)
    a, b = tf.broadcast_to(a, shape), tf.broadcast_to(b, shape)

    def step(a: Any, b: Any) -> tuple:
        done = tf.equal(b, 0)
        rest = tf.math.floormod(a, tf.where(done, tf.ones_like(b), b))
        return tf.where(done, a, b), tf.where(done, b, rest)

    return tf.while_loop(lambda a, b: tf.reduce_any(tf.not_equal(b, 0)), step, (a, b))[0]


def lcm(x1: Any, x2: Any) -> Any:
    x1, x2 = together(x1, x2)
    if x1.dtype.is_bool:
        return tf.logical_and(x1, x2)
    divisor = gcd(x1, x2)
    safe = tf.where(tf.equal(divisor, 0), tf.ones_like(divisor), divisor)
    return absolute(tf.math.floordiv(x1, safe) * x2)


# ---- choices ------------------------------------------------------------------------------------


def where(condition: Any, x1: Any = None, x2: Any = None) -> Any:
    condition = convert_to_tensor(condition, "bool")
    if x1 is None or x2 is None:
        return nonzero(condition)
    return _select(condition, *together(x1, x2))


def nonzero(x: Any) -> tuple:
    """The positions of nonzero elements, axis by axis."""
    places = tf.cast(tf.where(convert_to_tensor(x, "bool")), tf.int32)
    return tuple(tf.unstack(places, axis=1))


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
