"""Ordinary datasets whose elements are the parts of replicas: how batches are cut, and shared between processes.

An element is a tuple with a part for each replica of this process, or the part itself if there is one replica.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradtape._src import ops
from gradtape._src.base import nest
from gradtape._src.base.contexts import aside
from gradtape._src.base.shape import TensorShape, TensorSpec
from gradtape._src.control import collective
from gradtape.data import kinds
from gradtape.data.base import INFINITE, UNKNOWN, Run
from gradtape.data.dataset import Unary
from gradtape.data.functions import arguments
from gradtape.data.readers import FileDataset


def _with_shapes(spec: Any, change: Callable[[TensorShape], TensorShape]) -> Any:
    """A spec with the shapes of its tensors changed."""

    def leaf(s: Any) -> Any:
        if not isinstance(s, TensorSpec):
            raise TypeError(f"experimental_distribute_dataset: expected elements of tensors; got {s!r}.")
        return TensorSpec(change(s.shape), s.dtype)

    return nest.map_structure(leaf, spec)


class Cut(Unary):
    """Batches of `n` rows cut into parts of `ceil(n / parts)`, of which this process has some."""

    def __init__(self, source: Any, parts: int, own: range) -> None:
        super().__init__(source)
        self._parts, self._own = parts, own

    def _range(self, rows: int, r: int) -> tuple[int, int]:
        size = -(-rows // self._parts)
        return min(r * size, rows), min((r + 1) * size, rows)

    def _mapped(self, part: Any) -> Any:
        """An element of the results of `part(r)`: a tuple, or the only one itself."""
        return part(self._own[0]) if len(self._own) == 1 else tuple(part(r) for r in self._own)

    def _spec_of_parts(self, spec: Any) -> Any:
        def part(r: int) -> Any:
            def shape(s: TensorShape) -> TensorShape:
                if s.rank is None:
                    return s
                rows = s[0] if s.rank else None
                if rows is None:
                    return TensorShape([None, *s[1:]])
                first, last = self._range(rows, r)
                return TensorShape([last - first, *s[1:]])

            return _with_shapes(spec, shape)

        return self._mapped(part)

    def _spec(self, look: bool = False) -> Any:
        spec = self._input._spec(look)
        return None if spec is None else self._spec_of_parts(spec)

    def _likely(self) -> Any:
        likely = self._input._likely()
        return None if likely is None else self._spec_of_parts(likely)

    def _kinds(self) -> list | None:
        kinds = self._input._kinds()
        return None if kinds is None else [self._spec_of_parts(kind) for kind in kinds]

    def _elements(self, run: Run) -> Iterator[Any]:
        for element in self._input._iterate(run):
            yield self.parts(element)

    def parts(self, element: Any) -> Any:
        """The parts of one batch."""
        rows = _rows(element)

        def part(r: int) -> Any:
            first, last = self._range(rows, r)
            return nest.map_structure(lambda x: x if x is None else x[first:last], element)

        return self._mapped(part)


class InTurns(Unary):
    """`count` elements at a time, one for each replica; if the dataset ends, the last ones have no rows."""

    def __init__(self, source: Any, count: int) -> None:
        super().__init__(source)
        self._count = count

    def _is_even(self) -> bool:
        size = self._input._size()
        return size == INFINITE or (size >= 0 and size % self._count == 0)

    def _spec(self, look: bool = False) -> Any:
        spec = self._input._spec(look)
        return None if spec is None else (spec,) * self._count

    def _likely(self) -> Any:
        likely = self._input._likely()
        return None if likely is None else (likely,) * self._count

    def _kinds(self) -> list | None:
        kinds, n = self._input._kinds(), self._count
        if kinds is None or len(kinds) > 1 or not self._is_even():
            return None
        return [(kinds[0],) * n]

    def _size(self) -> int:
        size = self._input._size()
        return size if size < 0 else -(-size // self._count)

    def _elements(self, run: Run) -> Iterator[Any]:
        elements = self._input._iterate(run)
        while taken := list(itertools.islice(elements, self._count)):
            if len(taken) < self._count:
                _rows(taken[0])
                none = nest.map_structure(lambda x: x if x is None else x[:0], taken[0])
                taken += [none] * (self._count - len(taken))
            yield tuple(taken)


def _rows(element: Any) -> int:
    """The number of rows of a batch.

    Raises:
      ValueError: if it is not a batch.
    """
    sizes = {tuple(x.shape)[:1] for x in nest.flatten(element) if x is not None}
    if sizes and () not in sizes and len(sizes) == 1:
        return int(next(iter(sizes))[0])
    shapes = [list(x.shape) for x in nest.flatten(element) if x is not None]
    raise ValueError(
        "experimental_distribute_dataset: an element is not a batch that can be split; expected tensors with the same "
        f"number of rows; got shapes {shapes}. Hint: dataset.batch(global_batch_size)."
    )


class Rebatched(Unary):
    """All data of a dataset, in batches of the size of a replica's part of a full batch."""

    def __init__(self, source: Any, replicas: int) -> None:
        super().__init__(source)
        self._replicas = replicas

    def _spec(self, look: bool = False) -> Any:
        spec = self._input._spec(look)
        if spec is None:
            return None
        return _with_shapes(spec, lambda s: TensorShape(None if s.rank is None else [None, *s[1:]]))

    def _likely(self) -> Any:
        return None

    def _kinds(self) -> list | None:
        return None

    def _size(self) -> int:
        return UNKNOWN

    def _elements(self, run: Run) -> Iterator[Any]:
        first = next(iter(self._input._iterate(Run(run.ordered))), None)
        if first is None:
            return iter(())
        size = -(-_rows(first) // self._replicas)
        return kinds._RebatchDataset(self._input, size, False)._iterate(run)


# ---- shares of processes -----------------------------------------------------------------------------------


class InStep(Unary):
    """The same number of elements in all processes: one that runs out continues with elements without rows.

    Otherwise a process that ends its loop early would leave the others waiting in their next exchange.
    """

    def __init__(self, source: Any, group: Any) -> None:
        super().__init__(source)
        self._group = group

    def _kinds(self) -> list | None:
        return None  # there may be elements without rows

    def _elements(self, run: Run) -> Iterator[Any]:
        sizes = self._gathered(self._input._size())
        elements = iter(self._input._iterate(run))
        none = None
        for step in itertools.count():
            element = next(elements, _END)
            if INFINITE in sizes:
                last = element is _END
            elif UNKNOWN in sizes:
                last = not any(self._gathered(element is not _END))
            else:
                last = step >= max(sizes)
            if last:
                return
            if element is _END:
                none = self._without_rows() if none is None else none
                element = none
            elif none is None:
                none = nest.map_structure(lambda x: x if x is None else x[:0], element)
            yield element

    def _gathered(self, number: int) -> list[int]:
        with aside():
            return np.asarray(collective.all_gather(self._group, [ops.constant([int(number)])])[0]).tolist()

    def _without_rows(self) -> Any:
        def leaf(spec: Any) -> Any:
            if not isinstance(spec, TensorSpec):
                return None
            dims = [0, *(d or 0 for d in spec.shape[1:])] if spec.shape.rank else [0]
            return ops.zeros(dims, spec.dtype)

        return nest.map_structure(leaf, self._input.element_spec)


_END: Any = object()


def of_files(dataset: Any, count: int, index: int) -> Any:
    """The dataset of every `count`th file, from index `index` on; None if there are too few files."""
    if isinstance(dataset, FileDataset) and dataset._given is not None:
        if len(dataset._given) < count:
            return None
        return _with(dataset, _given=dataset._given[index::count])
    makes_readers = isinstance(dataset, kinds._FlatMapDataset) and isinstance(
        _first_inner(dataset), FileDataset
    )
    if isinstance(dataset, FileDataset) or makes_readers:
        names = dataset._inputs[0]
        if 0 <= names._size() < count:
            return None
        names = names.shard(count, index)
        return _with(dataset, _inputs=(names,), **{"_input" if makes_readers else "_names": names})
    if not isinstance(dataset, Unary):
        return None
    source = of_files(dataset._input, count, index)
    return None if source is None else _with(dataset, _inputs=(source,), _input=source)


def _first_inner(dataset: Any) -> Any:
    """The dataset that `flat_map` or `interleave` creates from its first element."""
    with aside():
        return dataset._function(*arguments(dataset._input._first()))


def _with(dataset: Any, **changes: Any) -> Any:
    copied = object.__new__(type(dataset))
    vars(copied).update({**vars(dataset), "_cached_spec": None, "_cached_key": None, **changes})
    return copied
