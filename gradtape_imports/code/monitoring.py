"""`tensorflow.python.eager.monitoring`: numbers a program keeps about itself, which nothing collects here."""

from __future__ import annotations

from typing import Any


class _Cell:
    """One value of a metric."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def set(self, value: Any) -> None:
        self._value = value

    def increase_by(self, value: int) -> None:
        self._value += value

    def value(self) -> Any:
        return self._value


class _Metric:
    """A value for each combination of labels."""

    _begin: Any = 0

    def __init__(self, name: str, description: str, *labels: str) -> None:
        self._cells: dict[tuple[str, ...], _Cell] = {}

    def get_cell(self, *labels: str) -> _Cell:
        return self._cells.setdefault(labels, _Cell(self._begin))


class Counter(_Metric):
    """Counts upwards."""


class IntGauge(_Metric):
    """A number that is set."""


class BoolGauge(_Metric):
    """A truth that is set."""

    _begin = False


class StringGauge(_Metric):
    """A text that is set."""

    _begin = ""
