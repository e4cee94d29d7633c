"""`tf.compat.v1.Dimension`, the elements of `TensorShape.dims`; and the message that stores a shape."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np


def size_of(value: Any, who: str = "Dimension") -> int | None:
    """A given size, checked: a non-negative int, or None.

    Raises:
      TypeError: if it is not an integer.
      ValueError: if it is negative.
    """
    if value is None:
        return None
    if isinstance(value, Dimension):
        return value.value
    try:
        size = operator.index(value)
    except TypeError:
        raise TypeError(
            f"{who}: Dimension value must be integer or None or have an __index__ method, got value '{value!r}' "
            f"with type '{type(value)!r}'. Hint: a shape is a list such as [2, None]."
        ) from None
    if size < 0:
        raise ValueError(
            f"{who}: Dimension {size} must be >= 0; expected a size or None. Hint: an unknown size is None; -1 "
            "means 'what is left' in reshape only."
        )
    return size


def _comparison(compare: Callable) -> Any:
    def method(self: Dimension, other: Any) -> Any:
        try:
            other = Dimension(other)
        except (TypeError, ValueError):
            return NotImplemented
        return None if self.value is None or other.value is None else compare(self.value, other.value)

    return method


def _arithmetic(compute: Callable) -> tuple[Any, Any]:
    def method(self: Dimension, other: Any) -> Any:
        try:
            other = Dimension(other)
        except (TypeError, ValueError):
            return NotImplemented
        if self.value is None or other.value is None:
            return Dimension(None)
        return Dimension(compute(self.value, other.value))

    def reflected(self: Dimension, other: Any) -> Any:
        try:
            other = Dimension(other)
        except (TypeError, ValueError):
            return NotImplemented
        return method(other, self)

    return method, reflected


class Dimension:
    """The size of one dimension of a shape; if it is unknown, comparisons return None.

    >>> from gradtape._src.base.dimension import Dimension
    >>> Dimension(3) + 1, Dimension(None) * 2, Dimension(3) == 3, Dimension(None) == 3
    (Dimension(4), Dimension(None), True, None)
    """

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = size_of(value)

    @property
    def value(self) -> int | None:
        """The size, or None if it is not known."""
        return self._value

    def is_compatible_with(self, other: Any) -> bool:
        """Whether both could be the same size."""
        return (self == Dimension(other)) is not False

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError unless `is_compatible_with(other)`."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {other} are not compatible")

    def merge_with(self, other: Any) -> Dimension:
        """The size that is known to either; ValueError if they contradict each other."""
        other = Dimension(other)
        self.assert_is_compatible_with(other)
        return other if self._value is None else self

    __eq__ = _comparison(operator.eq)
    __ne__ = _comparison(operator.ne)
    __lt__ = _comparison(operator.lt)
    __le__ = _comparison(operator.le)
    __gt__ = _comparison(operator.gt)
    __ge__ = _comparison(operator.ge)
    __hash__ = None  # type: ignore[assignment]

    __add__, __radd__ = _arithmetic(operator.add)
    __sub__, __rsub__ = _arithmetic(operator.sub)
    __mul__, __rmul__ = _arithmetic(operator.mul)
    __floordiv__, __rfloordiv__ = _arithmetic(operator.floordiv)
    __mod__, __rmod__ = _arithmetic(operator.mod)

    def __truediv__(self, other: Any) -> Any:
        raise TypeError(
            f"unsupported operand type(s) for /: 'Dimension' and '{type(other).__name__}', please use // instead"
        )

    def __rtruediv__(self, other: Any) -> Any:
        raise TypeError(
            f"unsupported operand type(s) for /: '{type(other).__name__}' and 'Dimension', please use // instead"
        )

    def __int__(self) -> Any:
        return self._value

    def __index__(self) -> Any:
        return self._value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self._value is None:
            raise ValueError("Cannot convert unknown Dimension ? to a Tensor.")
        return np.array(self._value, dtype or np.int32)

    def __str__(self) -> str:
        return "?" if self._value is None else str(self._value)

    def __repr__(self) -> str:
        return f"Dimension({self._value})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Dimension, (self._value,)


class TensorShapeProto:
    """A shape as TensorFlow's message: `dim`, each with a `size` (-1: unknown), or `unknown_rank`."""

    class Dim:
        """One dimension."""

        def __init__(self, size: int = 0, name: str = "") -> None:
            self.size, self.name = size, name

        def __eq__(self, other: Any) -> bool:
            return (self.size, self.name) == (getattr(other, "size", None), getattr(other, "name", None))

        __hash__ = None  # type: ignore[assignment]

    def __init__(self, dim: Any = (), unknown_rank: bool = False) -> None:
        self.dim, self.unknown_rank = list(dim), unknown_rank

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, TensorShapeProto) and str(self) == str(other)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        dims = "".join(f"dim {{\n  size: {d.size}\n}}\n" if d.size else "dim {\n}\n" for d in self.dim)
        return dims + ("unknown_rank: true\n" if self.unknown_rank else "")

    __repr__ = __str__
