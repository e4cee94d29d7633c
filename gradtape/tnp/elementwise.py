"""Element-wise functions and reductions: each is a name and an op."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as _tf
from gradtape._src import ops
from gradtape.tnp.arrays import array, as_inexact, axes_of, meet

tf: Any = _tf  # as Any: type checkers may read modules in another order

# ---- families of one-line functions ----------------------------------------------------------------


def in_order(name: str, named: dict[str, Any]) -> list:
    """Operands that were passed by NumPy's parameter names: `x`, or `x1` and `x2`.

    Raises:
      TypeError: for other names.
    """
    operands = [named.pop(k) for k in ("x", "x1", "x2") if k in named]
    if named:
        raise TypeError(f"{name}() got an unexpected keyword argument {next(iter(named))!r}")
    return operands


def _each(prepare: Callable, names: dict[str, Any]) -> None:
    """Element-wise functions of any number of operands."""

    def make(name: str, op: Any) -> Callable:
        def function(*args: Any, **named: Any) -> Any:
            return op(*prepare(*args, *in_order(name, named)))

        function.__name__ = function.__qualname__ = name
        function.__doc__ = f"NumPy's `{name}`, element by element."
        return function

    for name, op in names.items():
        globals()[name] = make(name, op)


def _exp2(x: Any) -> Any:
    return tf.pow(tf.constant(2, x.dtype), x)


def _logarithm_of_sum(power: Callable, unit: float) -> Callable:
    """`log(b**x + b**y)` to the base `b`: `power(x)` is `b**x`, `unit` the natural logarithm of `b`.

    Where x equals y, each has half of the gradient.
    """

    def function(x: Any, y: Any) -> Any:
        first = tf.greater_equal(x, y)
        high, low = tf.where(first, x, y), tf.where(first, y, x)
        both_infinite = tf.logical_and(tf.math.is_inf(high), tf.math.is_inf(low))
        distance = tf.where(both_infinite, tf.zeros_like(high), low - high)
        return high + tf.math.log1p(power(distance)) / unit

    return function


def _heaviside(x: Any, y: Any) -> Any:
    """The step of x, which is y at 0 and NaN at NaN. It has no gradient with respect to x."""
    x = tf.stop_gradient(x)
    step = tf.where(tf.equal(x, x), tf.cast(tf.greater(x, 0), x.dtype), x)
    return tf.where(tf.equal(x, 0), y + tf.zeros_like(x), step)


_each(as_inexact, {
    "exp": tf.exp, "expm1": tf.math.expm1, "log": tf.math.log, "log1p": tf.math.log1p, "sqrt": tf.sqrt,
    "sin": tf.sin, "cos": tf.cos, "tan": tf.tan, "arcsin": tf.asin, "arccos": tf.acos, "arctan": tf.atan,
    "sinh": tf.sinh, "cosh": tf.cosh, "tanh": tf.tanh, "arcsinh": tf.asinh, "arccosh": tf.acosh,
    "arctanh": tf.atanh, "arctan2": tf.atan2, "true_divide": tf.truediv, "divide": tf.truediv,
    "reciprocal": tf.math.reciprocal, "floor": tf.floor, "ceil": tf.math.ceil,
    "exp2": _exp2, "log2": lambda x: tf.math.log(x) / np.log(2),
    "log10": lambda x: tf.math.log(x) / np.log(10), "cbrt": lambda x: tf.sign(x) * tf.pow(tf.abs(x), 1 / 3),
    "deg2rad": lambda x: x * (np.pi / 180), "rad2deg": lambda x: x * (180 / np.pi),
    "hypot": ops.hypot, "fabs": tf.abs, "float_power": tf.pow,
    "sinc": lambda x: tf.where(tf.equal(x, 0), tf.ones_like(x),
                               tf.math.divide_no_nan(tf.sin(np.pi * x), np.pi * x)),
    "logaddexp": _logarithm_of_sum(tf.exp, 1.0), "logaddexp2": _logarithm_of_sum(_exp2, np.log(2)),
    "isnan": tf.math.is_nan, "isinf": tf.math.is_inf, "isfinite": tf.math.is_finite,
})  # fmt: skip
_each(meet, {
    "add": lambda x, y: tf.logical_or(x, y) if x.dtype == tf.bool else tf.add(x, y), "subtract": tf.subtract,
    "multiply": lambda x, y: tf.logical_and(x, y) if x.dtype == tf.bool else tf.multiply(x, y), "negative": tf.negative,
    "power": tf.pow, "maximum": tf.maximum, "minimum": tf.minimum, "floor_divide": tf.math.floordiv,
    "mod": tf.math.floormod, "remainder": tf.math.floormod, "square": tf.square, "sign": tf.sign, "abs": tf.abs,
    "absolute": tf.abs, "positive": tf.identity, "conj": tf.math.conj, "conjugate": tf.math.conj,
    "real": tf.math.real, "imag": tf.math.imag, "angle": tf.math.angle, "equal": tf.equal,
    "not_equal": tf.not_equal, "less": tf.less, "less_equal": tf.less_equal, "greater": tf.greater,
    "greater_equal": tf.greater_equal, "heaviside": _heaviside,
    "divmod": lambda x, y: (tf.math.floordiv(x, y), tf.math.floormod(x, y)),
})  # fmt: skip
_each(lambda *xs: [tf.cast(array(x), tf.bool) for x in xs], {
    "logical_and": tf.logical_and, "logical_or": tf.logical_or, "logical_not": tf.logical_not,
    "logical_xor": tf.math.logical_xor,
})  # fmt: skip


def _reductions(names: dict[str, tuple[Any, Callable]]) -> None:
    """Functions `(a, axis=None, dtype=None, keepdims=False)`."""

    def make(name: str, op: Any, prepare: Callable) -> Callable:
        def function(
            a: Any, axis: Any = None, dtype: Any = None, keepdims: builtins.bool = False, **_: Any
        ) -> Any:
            a = prepare(array(a, dtype))
            return op(a, axis=axes_of(a, axis), keepdims=keepdims)

        function.__name__ = function.__qualname__ = name
        function.__doc__ = f"NumPy's `{name}`: over all elements, or along `axis`."
        return function

    for name, (op, prepare) in names.items():
        globals()[name] = make(name, op, prepare)


def _wide(a: Any) -> Any:
    """Small integers and bools as int64, in which NumPy adds them up."""
    small = a.dtype == tf.bool or (a.dtype.is_integer and a.dtype.size < 8)
    return tf.cast(a, (tf.uint64 if a.dtype.is_unsigned else tf.int64) if small else a.dtype)


_reductions({
    "sum": (tf.reduce_sum, _wide), "prod": (tf.reduce_prod, _wide),
    "mean": (tf.reduce_mean, lambda a: as_inexact(a)[0]), "std": (tf.math.reduce_std, lambda a: as_inexact(a)[0]),
    "var": (tf.math.reduce_variance, lambda a: as_inexact(a)[0]), "max": (tf.reduce_max, array),
    "amax": (tf.reduce_max, array), "min": (tf.reduce_min, array), "amin": (tf.reduce_min, array),
    "all": (tf.reduce_all, lambda a: tf.cast(a, tf.bool)), "any": (tf.reduce_any, lambda a: tf.cast(a, tf.bool)),
    "count_nonzero": (tf.math.count_nonzero, array),
    "ptp": (lambda a, axis, keepdims: tf.reduce_max(a, axis, keepdims) - tf.reduce_min(a, axis, keepdims), array),
})  # fmt: skip
