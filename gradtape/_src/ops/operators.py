"""Python's operators as functions: tf.divide, tf.truediv, tf.pow, tf.equal, ..."""

from __future__ import annotations

from typing import Any

from gradtape import _core
from gradtape._src.ops import arithmetic, comparison
from gradtape._src.ops.table import composite
from gradtape._src.tensors.conversion import as_tensor, convert

__all__ = ["divide_no_nan", "multiply_no_nan", "realdiv", "truediv"]

# The rows themselves: `x == y` is False for unequal shapes, tf.equal raises.
composite("pow math.pow")(arithmetic.pow_)
composite("equal math.equal")(comparison.equal)
composite("not_equal math.not_equal")(comparison.not_equal)
realdiv = composite("realdiv")(arithmetic.divide)


@composite("divide math.divide truediv math.truediv")
def truediv(x: Any, y: Any, name: str | None = None) -> Any:
    """`x / y` as Python divides: integers give float64 (float32 for those of 8 and 16 bits)."""
    if not isinstance(x, (_core.Tensor, _core.Variable)):  # an array has an element type
        x = as_tensor(x, None if hasattr(x, "dtype") else y)
    return x / y


@composite("math.divide_no_nan")
def divide_no_nan(x: Any, y: Any, name: str | None = None) -> Any:
    """`x / y`, and 0 where `y` is 0. Integers are divided as floats."""
    return arithmetic.divide_no_nan(as_tensor(x, y), y)


@composite("math.multiply_no_nan")
def multiply_no_nan(x: Any, y: Any, name: str | None = None) -> Any:
    """`x * y`, and 0 where `y` is 0, even if `x` is infinite or NaN."""
    x = as_tensor(x, y)
    y = as_tensor(y, x)
    return arithmetic.multiply_no_nan(x, y if y.dtype is x.dtype else convert(y, x.dtype._code))
