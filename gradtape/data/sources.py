"""Datasets of values: tensors, their rows, ranges, counters, random numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes, errors, nest
from gradtape._src.base.shape import TensorSpec
from gradtape.data import rows
from gradtape.data.base import INFINITE, Run, invalid, number
from gradtape.data.dataset import Dataset
from gradtape.data.rows import NumberColumn, Table, column_of
from gradtape.data.seeds import SeedGenerator, bits
from gradtape.data.structure import is_tensor, normalise, row_spec, spec_of

_BLOCK = 256


def as_element(tensors: Any, op: str) -> Any:
    """User values as an element; it must have at least one part, and parts with values."""
    element = normalise(tensors)
    flat = nest.flatten(element)
    if all(part is None for part in flat):
        if op == "from_tensor_slices":
            raise ValueError("Invalid `element`. `element` should not be empty.")
        raise invalid(f"Invalid `element`. `element` should not be empty; got {tensors!r}.")
    if any(is_tensor(t) and t._symbol is not None for t in flat):
        raise errors.Untraceable(f"Dataset.{op}: a dataset is made of tensors of the traced function")
    return element


class _TensorDataset(Dataset):
    """One element."""

    def __init__(self, tensors: Any) -> None:
        super().__init__()
        self._element = as_element(tensors, "from_tensors")

    def _spec(self, look: bool = False) -> Any:
        return spec_of(self._element)

    def _size(self) -> int:
        return 1

    def _observable(self) -> bool:
        return False

    def _at(self, index: int) -> Any:
        return self._element

    def _elements(self, run: Run) -> Iterator[Any]:
        return iter((self._element,))


class RowDataset(Dataset):
    """All rows of a table, from the first to the last."""

    _all: Table
    _count: int

    def _size(self) -> int:
        return self._count

    def _observable(self) -> bool:
        return False

    def _at(self, index: int) -> Any:
        return next(self._all.each(range(index, index + 1)))

    def _table(self) -> Table:
        return self._all

    def _chunks(self, run: Run) -> Iterator[Any]:
        return iter((range(self._count),) if self._count else ())


class _TensorSliceDataset(RowDataset):
    """The rows of tensors."""

    def __init__(self, tensors: Any) -> None:
        super().__init__()
        element = as_element(tensors, "from_tensor_slices")
        flat = nest.flatten(element)
        for part in flat:
            if is_tensor(part) and part.shape.rank == 0:
                raise ValueError(
                    "Unbatching a tensor is only supported for rank >= 1: from_tensor_slices takes the rows of its "
                    f"tensors; got {part!r}. Hint: from_tensors makes one element of a value."
                )
        self._element = row_spec(spec_of(element))
        counts = [rows.count(p) for p in flat if p is not None]
        self._count = counts[0]
        for count in counts[1:]:
            if count != self._count:
                raise ValueError(
                    f"Dimensions {self._count} and {count} are not compatible: from_tensor_slices needs as many rows in "
                    f"every tensor; got {', '.join(map(str, counts))} rows."
                )
        self._all = Table([column_of(p) for p in flat], element)

    def _spec(self, look: bool = False) -> Any:
        return self._element


def _scalar(value: Any, op: str) -> Any:
    """A bound of a range as a Python number."""
    if isinstance(value, (_core.Tensor, _core.Variable)):
        if isinstance(value, _core.Tensor) and value._symbol is not None:
            raise errors.Untraceable(f"Dataset.{op}: its bounds are tensors of the traced function")
        value = value.numpy()
    return number(value, op, "a bound")


class _RangeDataset(RowDataset):
    """Equally spaced integers."""

    def __init__(self, args: tuple, output_type: Any) -> None:
        super().__init__()
        if not 1 <= len(args) <= 3:
            raise ValueError(
                f"Invalid `args`. The length of `args` should be between 1 and 3 but was {len(args)}."
            )
        bounds = [_scalar(a, "range") for a in args]
        if len(bounds) == 3 and bounds[2] == 0:
            raise invalid("Dataset.range: step must be a non-zero integer.")
        numbers = range(*bounds)
        self._count = len(numbers)
        self._dtype = dtypes.as_dtype(output_type)
        self._all = Table([NumberColumn(numbers.start, numbers.step, self._dtype)], self._spec())

    def _spec(self, look: bool = False) -> Any:
        return TensorSpec((), self._dtype)


class _CounterDataset(Dataset):
    """Counts endlessly."""

    def __init__(self, start: Any, step: Any, dtype: Any) -> None:
        super().__init__()
        self._dtype = dtypes.as_dtype(dtype)
        first, step = (_scalar(v, "counter") if self._dtype.is_integer else float(v) for v in (start, step))
        self._all = Table([NumberColumn(first, step, self._dtype)], self._spec())

    def _spec(self, look: bool = False) -> Any:
        return TensorSpec((), self._dtype)

    def _size(self) -> int:
        return INFINITE

    def _observable(self) -> bool:
        return False

    def _at(self, index: int) -> Any:
        return next(self._all.each(range(index, index + 1)))

    def _table(self) -> Table:
        return self._all

    def _chunks(self, run: Run) -> Iterator[Any]:
        return rows.counting()


class _RandomDataset(Dataset):
    """Random 32-bit numbers, endlessly."""

    def __init__(self, seed: Any, rerandomize: bool | None) -> None:
        super().__init__()
        self._seeds = SeedGenerator(seed, bool(rerandomize), "random")

    def _spec(self, look: bool = False) -> Any:
        return TensorSpec((), dtypes.int64)

    def _size(self) -> int:
        return INFINITE

    def _observable(self) -> bool:
        return False

    def _elements(self, run: Run) -> Iterator[Any]:
        return self._draw(run.draw(self, self._seeds))

    @staticmethod
    def _draw(seeds: tuple[int, int]) -> Iterator[Any]:
        drawn = 0
        while True:
            yield from ops.unstack(ops.convert_to_tensor(bits(seeds, drawn, _BLOCK)))
            drawn += _BLOCK
