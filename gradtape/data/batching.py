"""Elements put together and taken apart: batch, unbatch, rebatch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, cycle
from typing import Any

import numpy as np

from gradtape._src import ops
from gradtape._src.base import dtypes, nest
from gradtape._src.base.shape import TensorSpec
from gradtape._src.tensors import text
from gradtape.data import rows
from gradtape.data.base import INFINITE, UNKNOWN, Run, invalid, number
from gradtape.data.dataset import Unary
from gradtape.data.failures import Failure, Guarded, Raising, attempt, flattened, gathered, resumable
from gradtape.data.structure import (
    batched_spec,
    columns,
    is_composite,
    is_spec_of_composite,
    is_tensor,
    packer,
    row_spec,
)


def batch_size_of(value: Any, op: str) -> int:
    """A batch size: a positive integer."""
    size = number(value, op, "batch_size")
    if size < 1:
        raise invalid(f"Dataset.{op}: Batch size must be greater than zero; got {size}.")
    return size


def stack(parts: Sequence[Any], spec: Any = None) -> Any:
    """One part of several elements as a part of a batch. `spec` is the known spec of the part."""
    first = parts[0]
    if is_composite(first):
        specs = [p._type_spec for p in parts]
        spec = specs[0].most_specific_common_supertype(specs[1:])
        if spec is None:
            raise invalid(f"Cannot batch values of different kinds: {', '.join(map(str, specs))}.")
    if is_spec_of_composite(spec):
        return spec._stacked(parts)
    if is_tensor(first):
        for part in parts:
            if part._dims != first._dims:
                raise invalid(
                    "Cannot add tensor to the batch: number of elements does not match. Shapes are: [tensor]: "
                    f"{list(part.shape)}, [batch]: {list(first.shape)}. Hint: padded_batch, or map elements to one shape."
                )
        if first.dtype is dtypes.string:
            return text.make(np.stack([text.array_of(p) for p in parts]))
        return ops.stack(list(parts))
    return None if first is None else first._type_spec._stacked(parts)


class Batches(Unary):
    """The common part of `batch` and `padded_batch`: the number and sizes of batches."""

    _op = "batch"

    def __init__(self, source: Any, batch_size: Any, drop_remainder: Any) -> None:
        super().__init__(source)
        self._count = batch_size_of(batch_size, self._op)
        self._batch_size = self._count  # packages read it to see whether elements are batches
        self._drop = bool(drop_remainder)

    def _size(self) -> int:
        n = self._input._size()
        if n < 0:
            return n
        return n // self._count if self._drop else -(-n // self._count)

    def _sizes(self) -> list[int] | None:
        """The sizes of the batches, the usual one first; None if not all are known."""
        n = self._input._size()
        if self._drop or n == INFINITE:
            return [self._count]
        if n == UNKNOWN:
            return None
        return [s for s in (self._count if n >= self._count else 0, n % self._count) if s] or [self._count]


class _BatchDataset(Batches):
    """Elements stacked."""

    def _spec(self, look: bool = False) -> Any:
        spec = self._input._spec(look)
        first = self._count if self._drop else None
        return None if spec is None else batched_spec(spec, first)

    def _of(self, spec: Any, size: int | None) -> Any:
        return batched_spec(spec, size)

    def _likely(self) -> Any:
        likely = self._input._likely()
        sizes = self._sizes() or [self._count]
        return None if likely is None else self._of(likely, sizes[0])

    def _kinds(self) -> list | None:
        kinds, sizes = self._input._kinds(), self._sizes()
        if kinds is None or sizes is None or len(kinds) != 1:
            return None
        return [self._of(kinds[0], size) for size in sizes]

    def _elements(self, run: Run) -> Iterator[Any]:
        table = self._input._table()
        if table is not None:
            cuts = rows.cut(self._input._chunks(run), self._count, self._drop)
            return Raising(self._of_rows(table, cuts)) if table.is_computed else rows.batches(table, cuts)
        texts = self._input._texts(run)
        if texts is not None:
            return by_count(texts, self._count, self._drop, text.of_list)
        return by_count(self._input._elements(run), self._count, self._drop, self._stacked)

    def _at(self, index: int) -> Any:
        first = index * self._count
        elements = [self._input._at(i) for i in range(first, min(first + self._count, self._input._size()))]
        return self._stacked(elements)

    def _stacked(self, elements: list) -> Any:
        spec = self._input._spec()
        specs = [None] if spec is None else nest.flatten(spec)
        return stacked(elements, specs if any(map(is_spec_of_composite, specs)) else None)

    def _of_rows(self, table: Any, cuts: Iterator[Any]) -> Iterator[Any]:
        for at in cuts:
            batch = attempt(table.rows, at)
            if type(batch) is Failure:
                if batch.interrupts:
                    yield batch
                # A row cannot be made: a batch begins after it. From here on rows are read one by one.
                left = Raising(rows.elements(table, chain((at,), cuts)))
                yield from Guarded(by_count(left, self._count, self._drop, self._stacked))
                return
            yield table.pack(batch)


@resumable
def by_count(source: Guarded, count: int, drop_remainder: bool, make: Callable[[list], Any]) -> Iterator[Any]:
    """`make` applied to every `count` elements; the last ones may be fewer unless they are dropped."""
    while True:
        elements = gathered(source, count)
        if type(elements) is Failure:
            yield elements
        elif not elements or (drop_remainder and len(elements) < count):
            return
        else:
            yield attempt(make, elements)


def stacked(elements: list, specs: list | None = None) -> Any:
    parts = columns(elements)
    return packer(elements[0])(list(map(stack, parts, specs) if specs else map(stack, parts)))


class _UnbatchDataset(Unary):
    """The rows of elements."""

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        spec = source._spec()
        if spec is not None:
            _want_rows(spec)

    def _spec(self, look: bool = False) -> Any:
        spec = self._input._spec(look)
        return None if spec is None else _rows_of(spec)

    def _likely(self) -> Any:
        likely = self._input._likely()
        return None if likely is None else _rows_of(likely)

    def _kinds(self) -> list | None:
        kinds = self._input._kinds()
        if kinds is None:
            return None
        rows = [_rows_of(k) for k in kinds]
        return [r for i, r in enumerate(rows) if r not in rows[:i]]

    def _size(self) -> int:
        n, spec = self._input._size(), self._input._spec()
        if n <= 0 or spec is None:
            return n
        shapes = [getattr(s, "shape", None) for s in nest.flatten(spec)]
        sizes = {s[0] for s in shapes if s is not None and s.rank}
        size = next((s for s in sizes if s is not None), None)
        return UNKNOWN if size is None else n * size

    def _elements(self, run: Run) -> Iterator[Any]:
        return flattened(self._input._iterate(run), _rows_in)


def _rows_in(element: Any) -> Iterator[Any]:
    return map(packer(element), zip(*_unstacked(nest.flatten(element)), strict=True))


def _want_rows(spec: Any) -> None:
    sizes = []
    for s in nest.flatten(spec):
        if isinstance(s, TensorSpec) and s.shape.rank is not None:
            if s.shape.rank == 0:
                raise ValueError("Cannot unbatch an input with scalar components.")
            sizes += [] if s.shape[0] is None else [s.shape[0]]
    for size in sizes[1:]:
        if size != sizes[0]:
            raise ValueError(
                "`unbatch()` is only supported for datasets of elements whose components have a matching leading "
                f"dimension. Encountered both {sizes[0]} and {size}."
            )


def _rows_of(spec: Any) -> Any:
    _want_rows(spec)
    return row_spec(spec)


def _unstacked(parts: Sequence[Any]) -> list[Sequence[Any]]:
    """The rows of each part."""
    if any(is_tensor(p) and not p.ndim for p in parts):
        raise invalid(
            "Input element must have a non-scalar value in each component: unbatch takes their rows."
        )
    sizes = [rows.count(p) for p in parts if p is not None]
    for i, size in enumerate(sizes):
        if size != sizes[0]:
            raise invalid(
                "Input element must have the same batch size in each component. Component 0 had size "
                f"{sizes[0]} but component {i} had size, {size}."
            )
    return [rows.unstack(p, sizes[0]) for p in parts]


class _RebatchDataset(Unary):
    """Batches regrouped into other sizes."""

    def __init__(self, source: Any, batch_size: Any, drop_remainder: Any) -> None:
        super().__init__(source)
        given = batch_size.numpy().tolist() if hasattr(batch_size, "numpy") else batch_size
        sizes = list(given) if isinstance(given, (list, tuple)) else [given]
        self._sizes = [batch_size_of(s, "rebatch") for s in sizes]
        self._drop = bool(drop_remainder)
        spec = source._spec()
        if spec is not None and any(
            isinstance(s, TensorSpec) and s.shape.rank == 0 for s in nest.flatten(spec)
        ):
            raise ValueError(
                "Invalid `batch_sizes`. Expected dataset with rank of >= 1 but found a dataset with scalar elements. Fix "
                "the issue by adding the `batch` transformation to the dataset."
            )

    def _spec(self, look: bool = False) -> Any:
        spec = self._input._spec(look)
        same = len(set(self._sizes)) == 1 and self._drop
        first = self._sizes[0] if same else None
        return None if spec is None else batched_spec(row_spec(spec), first)

    def _likely(self) -> Any:
        likely = self._input._likely()
        size = self._sizes[0]
        return None if likely is None else batched_spec(row_spec(likely), size)

    def _kinds(self) -> list | None:
        return [self._likely()] if self._drop and len(set(self._sizes)) == 1 and self._likely() else None

    def _size(self) -> int:
        return INFINITE if self._input._size() == INFINITE else UNKNOWN

    def _elements(self, run: Run) -> Iterator[Any]:
        return _cut_anew(self._input._iterate(run), self._sizes, self._drop)


@resumable
def _cut_anew(source: Guarded, sizes: list[int], drop_remainder: bool) -> Iterator[Any]:
    parts: list = []  # rows that are left over, as flat batches
    have, pack = 0, None
    for size in cycle(sizes):
        while have < size:
            element = next(source, None)
            if element is None:
                break
            if type(element) is Failure:
                parts, have = [], 0
                yield element
                continue
            pack = pack or packer(element)
            parts.append(nest.flatten(element))
            have += len(parts[-1][0])
        if not have or pack is None or (have < size and drop_remainder):
            return
        whole = [_joined(column) for column in zip(*parts, strict=True)]
        yield pack([c[:size] for c in whole])
        parts, have = ([[c[size:] for c in whole]], have - size) if have > size else ([], 0)


def _joined(parts: Sequence[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    return ops.concat(list(parts), 0)
