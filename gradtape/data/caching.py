"""Cached elements: `cache` in memory or in a file, `snapshot` in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from gradtape._src.base import nest
from gradtape._src.base.locks import Lock
from gradtape.data import storage
from gradtape.data.base import Run
from gradtape.data.batching import stack
from gradtape.data.dataset import Unary
from gradtape.data.failures import Failure, Guarded, Raising
from gradtape.data.paths import strings
from gradtape.data.rows import Table, column_of
from gradtape.data.structure import columns, is_tensor


class _CacheDataset(Unary):
    """Caches the elements of the first full iteration.

    Elements of one shape are stored as a table, so that later steps work on row numbers.
    """

    def __init__(self, source: Any, filename: Any) -> None:
        super().__init__(source)
        names = strings(filename) if filename else [""]
        self._path = names[0]
        self._lock = Lock()
        self._kept: tuple[Table, list] | None = None
        self._list: list | None = None
        self._by_index: dict[int, Any] = {}  # the elements that were accessed by index

    def _at(self, index: int) -> Any:
        with self._lock:
            if index not in self._by_index:
                self._by_index[index] = self._input._at(index)
            return self._by_index[index]

    def _table(self) -> Table | None:
        if self._path or self._list is not None:
            return None
        if self._kept is not None:
            return self._kept[0]
        table = self._input._table()
        # Computed rows are to be cached, not computed again.
        return None if table is None or table.is_computed else table

    def _chunks(self, run: Run) -> Iterator[Any]:
        if self._kept is not None:
            return iter(self._kept[1])
        return self._keep_chunks(self._input._table(), self._input._chunks(run))

    def _keep_chunks(self, table: Table, chunks: Iterator[Any]) -> Iterator[Any]:
        taken = []
        for chunk in chunks:
            taken.append(chunk)
            yield chunk
        with self._lock:
            if self._kept is None:
                self._kept = (table, taken)

    def _elements(self, run: Run) -> Iterator[Any]:
        if self._list is not None:
            return iter(self._list)
        if self._path:
            file = self._path + ".elements"
            if os.path.exists(file):
                return storage.read_elements(file)
            return storage.write_through(self._input._iterate(run), file)
        return Raising(self._keep_elements(Guarded(self._input._iterate(run))))

    def _keep_elements(self, source: Iterator[Any]) -> Iterator[Any]:
        taken = []
        for element in source:
            if type(element) is not Failure:
                taken.append(element)
            yield element
        with self._lock:
            if self._list is None and self._kept is None:
                table = _as_table(taken)
                if table is None:
                    self._list = taken
                else:
                    self._kept = (table, [range(len(taken))])


def _as_table(elements: list) -> Table | None:
    """Elements of one shape as a table; None if shapes differ, or there are none."""
    if not elements:
        return None
    parts = columns(elements)
    first = [p[0] for p in parts]
    if not all(map(is_tensor, first)):
        return None
    if any(x.shape != f.shape for p, f in zip(parts, first, strict=True) for x in p):
        return None
    return Table([column_of(stack(p)) for p in parts], nest.map_structure(lambda _: None, elements[0]))


class _SnapshotDataset(_CacheDataset):
    """The same as `cache` in a file, in a separate folder."""

    def __init__(self, source: Any, path: Any) -> None:
        folder = strings(path)[0]
        os.makedirs(folder, exist_ok=True)
        super().__init__(source, os.path.join(folder, "snapshot"))
