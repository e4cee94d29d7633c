"""Rows of arrays in memory: pipelines over row numbers instead of elements.

A dataset of such rows has a *table*, and for each iteration the row numbers in order. `shuffle`, `repeat`, `take`
and so on change only the numbers; `batch` then copies the rows of a batch in one go, or shares their memory if they
are contiguous. No tensor is made per element.

Row numbers come in chunks: a `range`, or an int64 tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.tensors import text
from gradtape.data.structure import is_composite, packer

_INT64 = dtypes.int64._code
_PART = 1 << 16  # row numbers that are shuffled or counted at a time
_BLOCK_ROWS, _BLOCK_BYTES = 64, 1 << 15  # rows that are copied together for single elements

Chunk = Any  # range | int64 tensor


# ---- columns ------------------------------------------------------------------------------------


class TensorColumn:
    """A tensor whose rows are parts of elements."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.row_bytes = tensor.dtype.size * (tensor._numel // max(1, tensor.shape[0]))

    def slice(self, start: int, stop: int) -> Any:
        return self.tensor[start:stop]

    def take(self, at: Any) -> Any:
        return ops.gather(self.tensor, at)


class TextColumn:
    """A tensor of strings whose rows are parts of elements."""

    row_bytes = 64

    def __init__(self, tensor: Any) -> None:
        self._array = text.array_of(tensor)

    def slice(self, start: int, stop: int) -> Any:
        return text.make(self._array[start:stop])

    def take(self, at: Any) -> Any:
        return text.make(self._array[np.asarray(at)])


class NumberColumn:
    """The numbers `start + i * step`, which are not stored."""

    row_bytes = 8

    def __init__(self, start: Any, step: Any, dtype: Any) -> None:
        self.start, self.step, self.dtype = start, step, dtype

    def slice(self, start: int, stop: int) -> Any:
        return self._numbers(np.arange(start, stop))

    def take(self, at: Any) -> Any:
        return self._numbers(np.asarray(at))

    def _numbers(self, at: np.ndarray) -> Any:
        numbers = self.start + at * self.step
        return ops.convert_to_tensor(numbers.astype(self.dtype.as_numpy_dtype))


class CompositeColumn:
    """A value made of several tensors whose rows are parts of elements."""

    row_bytes = 64

    def __init__(self, value: Any) -> None:
        self._value, self._spec = value, value._type_spec

    def slice(self, start: int, stop: int) -> Any:
        return self._spec._rows_at(self._value, slice(start, stop))

    def take(self, at: Any) -> Any:
        return self._spec._rows_at(self._value, at)


class NoneColumn:
    """A part that is None in every element."""

    row_bytes = 0

    def slice(self, start: int, stop: int) -> None:
        return None

    def take(self, at: Any) -> None:
        return None


def column_of(part: Any) -> Any:
    """A part of a batch as a column."""
    if part is None:
        return NoneColumn()
    if is_composite(part):
        return CompositeColumn(part)
    return TextColumn(part) if text.is_text(part) else TensorColumn(part)


def count(part: Any) -> int:
    """The number of rows of a part of a batch."""
    if hasattr(part, "shape"):
        return part.shape[0]
    return part._type_spec._to_batched_tensor_list(part)[0].shape[0]


def unstack(part: Any, n: int) -> Sequence[Any]:
    """The `n` rows of a part of a batch."""
    if part is None:
        return [None] * n
    if is_composite(part):
        spec = part._type_spec
        return [spec._row_at(part, i) for i in range(n)]
    if text.is_text(part):
        return [text.make(text.array(row.reshape(-1), row.shape)) for row in _rows(text.array_of(part))]
    return ops.unstack(part)


def _rows(array: np.ndarray) -> Iterator[np.ndarray]:
    """The rows of an array of objects, as arrays even if a row is a single object."""
    return (array[i, ...] for i in range(len(array)))


# ---- tables -------------------------------------------------------------------------------------


class Table:
    """Columns of equal length, whose rows are elements with the structure `structure`."""

    is_computed = False  # whether reading rows costs more than copying them

    def __init__(self, columns: Sequence[Any], structure: Any) -> None:
        self.columns = list(columns)
        self.row_bytes = sum(c.row_bytes for c in self.columns)
        self.structure = structure
        self.pack: Callable = packer(structure)

    def rows(self, at: Chunk) -> list:
        """The columns of the given rows."""
        if type(at) is range:
            if at.step == 1:
                return [c.slice(at.start, at.stop) for c in self.columns]
            at = as_tensor(at)
        return [c.take(at) for c in self.columns]

    def each(self, chunk: Chunk) -> Iterator[Any]:
        """Yields the elements one by one."""
        for at in blocks(chunk, _BLOCK_ROWS, _BLOCK_BYTES, self.row_bytes):
            yield from self._elements(at)

    def _elements(self, at: Chunk) -> Iterator[Any]:
        lists = [unstack(p, len(at)) for p in self.rows(at)]
        return map(self.pack, zip(*lists, strict=True))


def elements(table: Table, chunks: Iterable[Chunk]) -> Iterator[Any]:
    """The rows with these numbers."""
    each = table.each
    for chunk in chunks:
        yield from each(chunk)


def batches(table: Table, chunks: Iterable[Chunk]) -> Iterator[Any]:
    """The rows with these numbers, a batch for each chunk."""
    rows, pack = table.rows, table.pack
    for at in chunks:
        yield pack(rows(at))


# ---- chunks -------------------------------------------------------------------------------------


def as_tensor(chunk: Chunk) -> Any:
    """Row numbers as a tensor."""
    if type(chunk) is range:
        return _core.from_buffer(np.arange(chunk.start, chunk.stop, chunk.step), _INT64)
    return chunk


def _join(a: Chunk, b: Chunk) -> Chunk:
    if type(a) is range and type(b) is range and a.step == b.step == 1 and a.stop == b.start:
        return range(a.start, b.stop)
    return ops.concat([as_tensor(a), as_tensor(b)], 0)


def blocks(chunk: Chunk, most: int, most_bytes: int, row_bytes: int) -> Iterator[Chunk]:
    """A chunk split into parts of at most `most` rows and `most_bytes` bytes."""
    size = max(1, min(most, most_bytes // max(1, row_bytes)))
    for start in range(0, len(chunk), size):
        yield chunk[start : start + size]


def cut(chunks: Iterable[Chunk], size: int, drop_remainder: bool) -> Iterator[Chunk]:
    """The same row numbers in chunks of `size`."""
    rest: Chunk = None
    for chunk in chunks:
        n, start = len(chunk), 0
        if rest is not None:
            start = size - len(rest)
            rest = _join(rest, chunk[:start])
            if len(rest) < size:
                continue
            yield rest
            rest = None
        stop = n - (n - start) % size
        for at in range(start, stop, size):
            yield chunk[at : at + size]
        if stop < n:
            rest = chunk[stop:]
    if rest is not None and len(rest) and not drop_remainder:
        yield rest


def take(chunks: Iterable[Chunk], count: int) -> Iterator[Chunk]:
    """The first `count` of the row numbers."""
    if count:
        for chunk in chunks:
            if len(chunk) >= count:
                yield chunk[:count]
                return
            yield chunk
            count -= len(chunk)


def skip(chunks: Iterable[Chunk], count: int) -> Iterator[Chunk]:
    """All but the first `count` of the row numbers."""
    for chunk in chunks:
        if count < len(chunk):
            yield chunk[count:]
        count = max(0, count - len(chunk))


def shard(chunks: Iterable[Chunk], num_shards: int, index: int) -> Iterator[Chunk]:
    """Every `num_shards`-th of the row numbers, from `index` on."""
    for chunk in chunks:
        if index < len(chunk):
            yield chunk[index::num_shards]
        index = (index - len(chunk)) % num_shards


def shuffle(chunks: Iterable[Chunk], room: int, seeds: tuple[int, int]) -> Iterator[Chunk]:
    """The row numbers in the order of TensorFlow's shuffle with a buffer of `room` elements."""
    buffer = np.empty(room, np.int64)
    cursor = np.zeros(3, np.int64)
    parts = _parts(chunks)
    part = next(parts, None)
    while part is not None:
        following = next(parts, None)
        out = _core.shuffle_indices(buffer, cursor, as_tensor(part), *seeds, following is None)
        if len(out):
            yield out
        part = following


def _parts(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    for chunk in chunks:
        yield from blocks(chunk, _PART, 8 * _PART, 8)


def counting() -> Iterator[Chunk]:
    """All numbers from 0 on, endlessly."""
    start = 0
    while True:
        yield range(start, start + _PART)
        start += _PART
