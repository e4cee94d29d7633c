"""Runs functions of one row over many rows at once.

`map` and `filter` over rows of a table do not call the function row by row: the traced function is batched
(`gradtape._src.batching.batch`), and a batch of its results is one run of a program. This works only for pure
functions: no prints, no random numbers, no Python code, no ops without a batching rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import nest
from gradtape._src.batching.batch import broadcast_rows
from gradtape._src.graph.ir import Callback
from gradtape._src.tensors.conversion import read
from gradtape.data.failures import Failure, attempt
from gradtape.data.functions import DataFunction, arguments
from gradtape.data.rows import Chunk, Table, blocks, unstack

_FEW = 8  # up to this many rows run one by one, without compiling
_MOST_SIZES = 4  # limit on the numbers of rows with a program
_BLOCK, _BLOCK_BYTES = 64, 1 << 18  # rows computed together for single elements
_PART, _PART_BYTES = 1024, 1 << 22  # rows tested together by a predicate


class RowFunction:
    """A function of rows over columns."""

    def __init__(self, concrete: Any) -> None:
        self._concrete = concrete
        self.pure = not any(isinstance(e, _core.Variable) for e in concrete.externals)
        self._sizes: dict[int, tuple[Any, list[bool]]] = {}

    @staticmethod
    def of(function: DataFunction, spec: Any) -> RowFunction | None:
        """The function for rows of a spec, if it can run over many at once."""
        concrete = None if spec is None else function.concrete(arguments(spec))
        if (
            concrete is None
            or concrete._assigned
            or not concrete.gives_tensors
            or _is_python(concrete.graph_function.graph)
        ):
            return None
        row_function = RowFunction(concrete)
        return None if _is_python(row_function._batched(2)[0].graph) else row_function

    def _batched(self, n: int) -> tuple[Any, list[bool]]:
        marks = (
            *(True for _ in range(self._concrete.n_arguments)),
            *(False for _ in self._concrete.externals),
        )
        return self._concrete.graph_function.batched(marks, n)

    def __call__(self, columns: Sequence[Any], n: int) -> list:
        """The columns of the results for `n` rows."""
        if n in self._sizes or (n >= _FEW and len(self._sizes) < _MOST_SIZES):
            return self._run(columns, n)
        parts, at = [], 0
        for size in sorted(self._sizes, reverse=True):
            while n - at >= size:
                parts.append(self._run([c[at : at + size] for c in columns], size))
                at += size
        if at < n:
            rows = zip(*(unstack(c[at:], n - at) for c in columns), strict=True)
            results = [self._one(list(row)) for row in rows]
            parts.append([ops.stack(list(column)) for column in zip(*results, strict=True)])
        if len(parts) == 1:
            return parts[0]
        return [ops.concat(list(column), 0) for column in zip(*parts, strict=True)]

    def _run(self, columns: Sequence[Any], n: int) -> list:
        cached = self._sizes.get(n)
        if cached is None:
            cached = self._sizes[n] = self._batched(n)
        function, marks = cached
        outs = function.program.run([*columns, *self._externals()])
        outs = [o if m else broadcast_rows(o, n) for o, m in zip(outs, marks, strict=True)]
        return self._concrete._unplaced(outs)

    def _one(self, row: list) -> list:
        outs = self._concrete.graph_function.program.run([*row, *self._externals()])
        return self._concrete._unplaced(outs)

    def _externals(self) -> list:
        return [read(e) for e in self._concrete.externals]


def _is_python(graph: Any) -> bool:
    """Whether part of it is Python code, such as functions of strings."""
    return any(isinstance(n.op, Callback) or n.is_held for n in graph.nodes)


class MappedTable(Table):
    """The rows of a table with a function applied to them."""

    is_computed = True

    def __init__(self, table: Table, function: RowFunction, structure: Any) -> None:
        super().__init__([], structure)
        self._source, self._function = table, function
        self.row_bytes = sum(s.dtype.size * math.prod(s.shape) for s in nest.flatten(structure))

    def rows(self, at: Chunk) -> list:
        return self._function(self._source.rows(at), len(at))

    def each(self, chunk: Chunk) -> Iterator[Any]:
        # A variable must be read when the element is requested, not before.
        for at in blocks(chunk, _BLOCK if self._function.pure else 1, _BLOCK_BYTES, self.row_bytes):
            try:
                elements = self._elements(at)
            except Exception:
                # One row fails: the rows before it come first, and the error is raised only if that row is requested.
                for k in range(len(at)):
                    row = attempt(self._elements, at[k : k + 1])
                    yield row if type(row) is Failure else next(row)
            else:
                yield from elements


def filtered(table: Table, chunks: Iterator[Chunk], predicate: RowFunction) -> Iterator[Chunk]:
    """The numbers of the rows for which a function is true."""
    for chunk in chunks:
        for at in blocks(chunk, _PART, _PART_BYTES, table.row_bytes):
            try:
                chosen = _true(table, at, predicate)
            except Exception:
                for k in range(len(at)):
                    row = at[k : k + 1]
                    try:
                        table.rows(row)
                    except Exception:
                        yield row  # it cannot be made; the error is raised when it is requested
                    else:
                        yield from _true(table, row, predicate)
            else:
                yield from chosen


def _true(table: Table, at: Chunk, predicate: RowFunction) -> list[Chunk]:
    (keep,) = predicate(table.rows(at), len(at))
    numbers = np.asarray(at)[np.asarray(keep)]
    return [ops.convert_to_tensor(numbers)] if len(numbers) else []
