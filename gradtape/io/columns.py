"""Features of many examples as tensors: dense, sparse and ragged columns.

A column declares its results before examples exist (`specs`), reads them (`parts`), and converts them (`result`).
Rows are nested lists of arrays: a batch of examples, the steps of a sequence, or a batch of those.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

import gradtape
from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.control.text_ops import elements, is_ragged, tensor
from gradtape._src.tensors.conversion import as_tensor
from gradtape.io.features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    RowLengths,
    RowLimits,
    RowSplits,
    RowStarts,
    SparseFeature,
    UniformRowLength,
    VarLenFeature,
)
from gradtape.io.messages import equal_rows, values

# Ragged and sparse tensors are imported on first use.
_tf: Any = gradtape

_INT64 = dtypes.int64
Example = dict[str, bytes]


def dtype_of(key: str, spec: Any) -> Any:
    """The type of a feature, which must be one that examples can hold."""
    dtype = dtypes.as_dtype(spec.dtype)
    if dtype not in (dtypes.int64, dtypes.float32, dtypes.string):
        raise InvalidArgumentError(
            f"Key: {key}.  Value for attr of {dtype.name} is not in the list of allowed values: float, int64, string. "
            "Hint: tf.cast after parsing."
        )
    return dtype


def shape_of(key: str, spec: Any) -> tuple[int, ...]:
    """The shape of a feature, which must be known."""
    shape = spec.shape
    shape = tuple(
        shape.as_list() if hasattr(shape, "as_list") else shape if hasattr(shape, "__iter__") else [shape]
    )
    if None in shape:
        raise ValueError(
            f"First dimension of shape for feature {key} unknown. Consider using FixedLenSequenceFeature. Received "
            f"feature={spec}."
        )
    return tuple(int(d) for d in shape)


def column_for(key: str, spec: Any, batch: int | None) -> Column:
    """The column of a feature.

    Args:
      batch: the number of examples; None for a single example without a batch axis.
    """
    for kind, column in _COLUMNS:
        if isinstance(spec, kind):
            return column(key, spec, batch)
    raise ValueError(f"Invalid feature {key}:{spec}.")


class Column:
    """One feature of all examples."""

    def __init__(self, key: str, spec: Any, batch: int | None) -> None:
        self.key, self.spec, self.dtype = key, spec, dtype_of(key, spec)
        self.front: tuple = () if batch is None else (batch,)

    def specs(self) -> list[tuple]:
        """The shapes and types of its parts."""
        raise NotImplementedError

    def parts(self, examples: list[Example]) -> list:
        """The parts, for these examples."""
        raise NotImplementedError

    def result(self, parts: list) -> Any:
        """The value that the user gets."""
        return parts[0]

    def read(self, example: Example, key: str | None = None, dtype: Any = None) -> Any:
        """The values of a feature; None if there are none."""
        key = key or self.key
        return values(key, example.get(key), dtype or self.dtype)


# ---- dense ------------------------------------------------------------------------------------------


def joined(rows: list, shape: tuple, dtype: Any) -> Any:
    """The values of all rows, one after the other, as one tensor."""
    if dtype is dtypes.string:
        return tensor(itertools.chain.from_iterable(rows), shape, dtype)
    kind = dtype.as_numpy_dtype
    flat = np.concatenate([np.empty(0, kind), *rows], dtype=kind, casting="same_kind")
    return _core.from_buffer(flat.reshape(shape), dtype._code)


class Fixed(Column):
    """FixedLenFeature."""

    def __init__(self, key: str, spec: FixedLenFeature, batch: int | None) -> None:
        super().__init__(key, spec, batch)
        self.shape = shape_of(key, spec)
        self.size = math.prod(self.shape)
        self.default = None if spec.default_value is None else elements(as_tensor(spec.default_value))
        if self.default is not None and len(self.default) != self.size:
            raise InvalidArgumentError(
                f"Key: {key}.  Its default must have {self.size} values for the shape {list(self.shape)}; got "
                f"{len(self.default)}."
            )

    def specs(self) -> list[tuple]:
        return [((*self.front, *self.shape), self.dtype)]

    def parts(self, examples: list[Example]) -> list:
        shape = (*self.front, *self.shape)
        whole = equal_rows(tuple([example.get(self.key) for example in examples]), self.dtype, self.size)
        if whole is not None:
            return [_core.from_buffer(whole.reshape(shape), self.dtype._code)]
        return [joined([self.row(self.read(e), k) for k, e in enumerate(examples)], shape, self.dtype)]

    def row(self, values: Any, k: int) -> Any:
        """The values of one example."""
        if values is None:
            if self.default is None:
                raise InvalidArgumentError(
                    f"Feature: {self.key} (data type: {self.dtype.name}) is required but could not be found. (example {k})"
                )
            return self.default
        if len(values) != self.size:
            raise InvalidArgumentError(
                f"Key: {self.key}, Index: {k}.  Can't parse serialized Example: Number of {self.dtype.name} values != "
                f"expected.  Values size: {len(values)} but output shape: {list(self.shape)}"
            )
        return values


class Filled(Column):
    """FixedLenSequenceFeature: a batch is padded to the longest."""

    def __init__(self, key: str, spec: FixedLenSequenceFeature, batch: int | None) -> None:
        super().__init__(key, spec, batch)
        if not spec.allow_missing:
            raise ValueError("Unsupported: FixedLenSequenceFeature requires allow_missing to be True.")
        self.shape = shape_of(key, spec)

    def specs(self) -> list[tuple]:
        return [((*self.front, None, *self.shape), self.dtype)]

    def parts(self, examples: list[Example]) -> list:
        rows = [self.read(example) for example in examples]
        return [filled(self.key, self.spec, self.dtype, rows, self.shape, bool(self.front))]


def filled(key: str, spec: Any, dtype: Any, rows: list, shape: tuple, batch: bool) -> Any:
    """Rows of any lengths as one tensor, padded to the longest."""
    size = math.prod(shape)
    lengths = [0 if row is None else len(row) for row in rows]
    for k, n in enumerate(lengths):
        if size and n % size:
            raise InvalidArgumentError(
                f"Error while parsing feature with key {key}: number of elements should be divisible by {size}; got {n} in "
                f"example {k}."
            )
    longest = max(lengths, default=0)
    default = None if spec.default_value is None else elements(as_tensor(spec.default_value))[0]
    if default is None:
        default = b"" if dtype is dtypes.string else 0
    flat = [
        v
        for row, n in zip(rows, lengths, strict=True)
        for v in itertools.chain([] if row is None else row, itertools.repeat(default, longest - n))
    ]
    front = (len(rows),) if batch else ()
    return tensor(flat, (*front, longest // size if size else 0, *shape), dtype)


# ---- sparse -----------------------------------------------------------------------------------------


def sparse_parts(rows: Any, depth: int, dtype: Any) -> list:
    """The positions, values and shape of nested lists as a sparse tensor."""
    places: list[tuple[int, ...]] = []
    flat: list = []
    sizes = [0] * depth

    def walk(row: Any, at: tuple[int, ...]) -> None:
        count = 0 if row is None else len(row)
        sizes[len(at)] = max(sizes[len(at)], count)
        if len(at) + 1 == depth:
            places.extend((*at, k) for k in range(count))
            flat.extend(row if count else ())
            return
        for k in range(count):
            walk(row[k], (*at, k))

    walk(rows, ())
    return [
        tensor(itertools.chain.from_iterable(places), (len(places), depth), _INT64),
        tensor(flat, (len(flat),), dtype),
        tensor(sizes, (depth,), _INT64),
    ]


def sparse_specs(depth: int, dtype: Any) -> list[tuple]:
    """The shapes and types of the parts of a sparse tensor."""
    return [((None, depth), _INT64), ((None,), dtype), ((depth,), _INT64)]


def sparse(parts: list) -> Any:
    """The sparse tensor from its parts."""
    return _tf.SparseTensor(*parts)


class Varied(Column):
    """VarLenFeature."""

    def specs(self) -> list[tuple]:
        return sparse_specs(1 + len(self.front), self.dtype)

    def parts(self, examples: list[Example]) -> list:
        rows = [self.read(example) for example in examples]
        return sparse_parts(rows if self.front else rows[0], 1 + len(self.front), self.dtype)

    def result(self, parts: list) -> Any:
        return sparse(parts)


class Placed(Column):
    """SparseFeature."""

    def __init__(self, key: str, spec: SparseFeature, batch: int | None) -> None:
        super().__init__(key, spec, batch)
        several = isinstance(spec.index_key, (list, tuple))
        self.keys = list(spec.index_key) if several else [spec.index_key]
        self.sizes = [int(n) for n in spec.size] if isinstance(spec.size, (list, tuple)) else [int(spec.size)]
        if len(self.keys) != len(self.sizes):
            raise ValueError(f"index_key and size must have the same length: {spec}")

    def specs(self) -> list[tuple]:
        return sparse_specs(len(self.keys) + len(self.front), self.dtype)

    def parts(self, examples: list[Example]) -> list:
        entries = []
        for k, example in enumerate(examples):
            values = self.read(example, self.spec.value_key)
            columns = [self.read(example, key, _INT64) for key in self.keys]
            lengths = {0 if c is None else len(c) for c in (values, *columns)}
            if len(lengths) > 1:
                raise InvalidArgumentError(
                    f"Key: {self.key}: its values and places have different numbers: {sorted(lengths)} in example {k}."
                )
            row = (
                list(zip(zip(*map(list, columns), strict=True), values, strict=True))
                if lengths != {0}
                else []
            )
            for place, _ in row:
                if any(not 0 <= p < n for p, n in zip(place, self.sizes, strict=True)):
                    raise InvalidArgumentError(
                        f"Key: {self.key}: the place {[int(p) for p in place]} is outside of {self.sizes} in example {k}."
                    )
            if not self.spec.already_sorted:
                row.sort(key=lambda pair: pair[0])
            front = (k,) if self.front else ()
            entries += [((*front, *place), v) for place, v in row]
        depth = len(self.keys) + len(self.front)
        return [
            tensor(itertools.chain.from_iterable(p for p, _ in entries), (len(entries), depth), _INT64),
            tensor([v for _, v in entries], (len(entries),), self.dtype),
            tensor([*self.front, *self.sizes], (depth,), _INT64),
        ]

    def result(self, parts: list) -> Any:
        return sparse(parts)


# ---- ragged -----------------------------------------------------------------------------------------


def nested_lengths(rows: Any, depth: int) -> tuple[list[list[int]], list]:
    """The lengths of the rows of nested lists, level by level, and their values."""
    lengths, level = [], rows
    for _ in range(depth):
        lengths.append([0 if row is None else len(row) for row in level])
        level = [x for row in level if row is not None for x in row]
    return lengths, level


def ragged(flat: Any, splits: list) -> Any:
    """A ragged tensor from values and the splits of its rows, outermost first."""
    for s in reversed(splits):
        flat = _tf.RaggedTensor.from_row_splits(flat, s, validate=False)
    return flat


def splits_of(lengths: list[int], dtype: Any) -> Any:
    """The positions where rows begin, and where the last one ends."""
    ends = [0, *itertools.accumulate(lengths)]
    return tensor(ends, (len(ends),), dtype)


class Ragged(Column):
    """RaggedFeature."""

    def __init__(self, key: str, spec: RaggedFeature, batch: int | None) -> None:
        super().__init__(key, spec, batch)
        self.splits_dtype = dtypes.as_dtype(spec.row_splits_dtype)
        self.partitions = list(spec.partitions)

    def specs(self) -> list[tuple]:
        outer = [((n + 1,), self.splits_dtype) for n in self.front]
        return [((None,), self.dtype), *outer, *[((None,), self.splits_dtype) for _ in self.partitions]]

    def parts(self, examples: list[Example]) -> list:
        flat: list = []
        outer: list[int] = []
        inner: list[list[int]] = [[] for _ in self.partitions]
        for k, example in enumerate(examples):
            values = self.read(example, self.spec.value_key)
            values = [] if values is None else values
            flat.extend(values)
            count = len(values)
            for level in range(len(self.partitions) - 1, -1, -1):
                lengths = self.row_lengths(self.partitions[level], example, count, k)
                inner[level].extend(lengths)
                count = len(lengths)
            outer.append(count)
        rows = [splits_of(outer, self.splits_dtype)] if self.front else []
        inside = [splits_of(lengths, self.splits_dtype) for lengths in inner]
        return [tensor(flat, (len(flat),), self.dtype), *rows, *inside]

    def row_lengths(self, partition: Any, example: Example, count: int, k: int) -> list[int]:
        """The lengths of the rows that an example divides `count` values into."""
        if isinstance(partition, UniformRowLength):
            rows, rest = divmod(count, partition.length)
            if rest:
                raise InvalidArgumentError(
                    f"Key: {self.key}: {count} values are not rows of {partition.length} in example {k}."
                )
            return [partition.length] * rows
        values = self.read(example, partition.key, _INT64)
        if values is None:
            return []
        given = np.asarray(values)
        if isinstance(partition, RowSplits):
            lengths = np.diff(given)
        elif isinstance(partition, RowLengths):
            lengths = given
        elif isinstance(partition, RowStarts):
            lengths = np.diff(given, append=count)
        elif isinstance(partition, RowLimits):
            lengths = np.diff(given, prepend=0)
        else:
            lengths = np.bincount(given) if len(given) else given
        if (lengths < 0).any() or lengths.sum() != count:
            raise InvalidArgumentError(
                f"Key: {self.key}: the rows of {partition.key} do not fit {count} values in example {k}."
            )
        return lengths.tolist()

    def result(self, parts: list) -> Any:
        flat, *splits = parts
        outer, inner = splits[: len(self.front)], splits[len(self.front) :]
        for partition, s in zip(reversed(self.partitions), reversed(inner), strict=True):
            if not isinstance(partition, UniformRowLength):
                flat = ragged(flat, [s])
            elif is_ragged(flat):
                flat = _tf.RaggedTensor.from_uniform_row_length(flat, partition.length)
            else:
                flat = ops.reshape(flat, [-1, partition.length, *flat._dims[1:]])
        return ragged(flat, outer)


_COLUMNS: tuple[tuple[type, type[Column]], ...] = (
    (FixedLenFeature, Fixed),
    (FixedLenSequenceFeature, Filled),
    (VarLenFeature, Varied),
    (SparseFeature, Placed),
    (RaggedFeature, Ragged),
)
