"""Sample inputs of rows: short descriptions that the contract test converts to arrays.

An operand is described by
  * a tuple of ints: the shape of random numbers between -2 and 2 (or the range of the row),
  * `at(...)`: exactly these values, for ties, poles and edges,
  * `ints(...)`: integers, for indices,
  * `bools(...)`: booleans,
  * `inside(lo, hi, *shape)`: random numbers between lo and hi,
  * `regular(*shape)`: random well-conditioned matrices,
  * `definite(*shape)`: random self-adjoint positive definite matrices. Such an operand stays self-adjoint
    when derivatives are checked.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Inside(NamedTuple):
    """Random numbers between lo and hi."""

    lo: float
    hi: float
    shape: tuple[int, ...]


class At(NamedTuple):
    """Given values."""

    values: Any
    dtype: str


class Matrices(NamedTuple):
    """Random well-conditioned matrices."""

    shape: tuple[int, ...]
    definite: bool


class Sample(NamedTuple):
    """The operands and attributes of one call."""

    operands: tuple
    attrs: dict[str, Any]


def inside(lo: float, hi: float, *shape: int) -> Inside:
    return Inside(lo, hi, shape)


def regular(*shape: int) -> Matrices:
    return Matrices(shape, False)


def definite(*shape: int) -> Matrices:
    return Matrices(shape, True)


def at(values: Any, dtype: str = "float") -> At:
    return At(values, dtype)


def ints(values: Any, dtype: str = "int32") -> At:
    return At(values, dtype)


def bools(values: Any) -> At:
    return At(values, "bool")


def call(*operands: Any, **attrs: Any) -> Sample:
    return Sample(operands, attrs)


_SHAPES = ((), (3,), (2, 3), (0, 3))
_PAIRS = (((), ()), ((3,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((2, 3), ()), ((0, 3), (1, 3)))


def floats(lo: float = -2, hi: float = 2) -> list[Sample]:
    """Samples of a unary element-wise op."""
    return [call(inside(lo, hi, *shape)) for shape in _SHAPES]


def pairs(lo: float = -2, hi: float = 2, lo2: float | None = None, hi2: float | None = None) -> list[Sample]:
    """Samples of a binary element-wise op, broadcasting included."""
    lo2, hi2 = lo if lo2 is None else lo2, hi if hi2 is None else hi2
    return [call(inside(lo, hi, *a), inside(lo2, hi2, *b)) for a, b in _PAIRS]
