"""Element-wise functions: operands are broadcast to the same rows, then the function is applied to the flat values.

Dimensions are aligned from the last one. Two dimensions match if all rows have the same lengths, or if one of them
is uniform and has size 1, which is then repeated. A ragged dimension whose rows happen to have length 1 is not repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as tf
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError
from gradtape.ragged import rows
from gradtape.ragged.making import as_values
from gradtape.ragged.moving import uniform, with_partition
from gradtape.ragged.partitions import RowPartition
from gradtape.ragged.tensor import RaggedTensor, make, splits_dtype


def unary(function: Callable, x: RaggedTensor, *args: Any, **kwargs: Any) -> RaggedTensor:
    """Applies a function to each value."""
    return x.with_flat_values(function(x.flat_values, *args, **kwargs))


def binary(function: Callable, x: Any, y: Any) -> Any:
    """Applies a function of two values, one of each operand."""
    x, y = operands(x, y)
    flat_x, flat_y, like = aligned(x, y)
    return like.with_flat_values(function(flat_x, flat_y))


def operands(x: Any, y: Any) -> tuple[Any, Any]:
    """Both operands as tensors or ragged tensors; numbers are left for the function to convert."""
    if isinstance(x, RaggedTensor) and isinstance(y, RaggedTensor):
        splits_dtype(x, y)
    elif not isinstance(x, (RaggedTensor, int, float, complex)):
        x = _converted(x, y)
    elif not isinstance(y, (RaggedTensor, int, float, complex)):
        y = _converted(y, x)
    return x, y


def _converted(x: Any, other: Any) -> Any:
    if isinstance(x, (tf.Tensor, tf.Variable)):
        return x
    return tf.convert_to_tensor(x, dtype_hint=other.dtype)


def aligned(x: Any, y: Any) -> tuple[Any, Any, RaggedTensor]:
    """The flat values of two broadcast operands, and a ragged tensor with their rows."""
    if not isinstance(y, RaggedTensor):
        if isinstance(y, (int, float, complex)) or y.shape.rank < x.flat_values.shape.rank:
            return x.flat_values, y, x
    elif not isinstance(x, RaggedTensor):
        if isinstance(x, (int, float, complex)) or x.shape.rank < y.flat_values.shape.rank:
            return x, y.flat_values, y
    elif same_partitions(x, y):
        return x.flat_values, y.flat_values, x
    new_x, new_y = broadcast(x, y)
    return new_x.flat_values, new_y.flat_values, new_x


def same_partitions(x: RaggedTensor, y: RaggedTensor) -> bool:
    """Whether two ragged tensors are known to have the same rows, without reading symbols."""
    if x.flat_values.shape.rank != y.flat_values.shape.rank:
        return False
    ours, theirs = x._nested_row_partitions, y._nested_row_partitions
    return len(ours) == len(theirs) and all(map(_same_splits, ours, theirs))


def _same_splits(p: RowPartition, q: RowPartition) -> bool:
    a, b = p.row_splits(), q.row_splits()
    if a is b:
        return True
    if not (rows.is_known(a) and rows.is_known(b)):
        return False
    return np.array_equal(rows.array_of(a), rows.array_of(b))


@one_call
def broadcast(x: Any, y: Any) -> tuple[RaggedTensor, RaggedTensor]:
    """Two operands broadcast to the same rows in all dimensions that are ragged in one of them.

    Raises:
      InvalidArgumentError: if they do not match.
    """
    dtype = splits_dtype(x, y).as_numpy_dtype
    x, y = as_values(x), as_values(y)
    rank = max(x.shape.rank, y.shape.rank)
    ragged_rank = max(rank - v.shape.rank + v.ragged_rank for v in (x, y) if isinstance(v, RaggedTensor))
    a, b = _Operand(x, rank, ragged_rank), _Operand(y, rank, ragged_rank)
    if a.count != b.count and 1 not in (a.count, b.count):
        raise InvalidArgumentError(
            f"Cannot broadcast\nCondition x == y did not hold: the operands have {a.count} and {b.count} rows."
        )
    nrows = b.count if a.count == 1 else a.count
    a.start(nrows)
    b.start(nrows)
    levels = []
    for axis in range(ragged_rank):
        lengths = _common_lengths(a, b, axis)
        ours, theirs = a.size(axis), b.size(axis)
        length = None if ours is None or theirs is None else theirs if ours == 1 else ours
        a.descend(axis, lengths)
        b.descend(axis, lengths)
        levels.append((lengths, length))
    flat = [a.flat(), b.flat()]
    for lengths, length in reversed(levels):
        if length is not None:
            flat = [uniform(f, length, len(lengths), dtype) for f in flat]
        else:
            first = make(flat[0], rows.splits_of(lengths.astype(dtype)))
            flat = [first, with_partition(flat[1], first._row_partition)]
    return flat[0], flat[1]


class _Operand:
    """An operand during broadcasting: which of its rows the rows of the result come from."""

    def __init__(self, value: Any, rank: int, ragged_rank: int) -> None:
        missing = rank - value.shape.rank
        partitions = list(value._nested_row_partitions) if isinstance(value, RaggedTensor) else []
        flat = value.flat_values if partitions else value
        dims = list(flat.shape)
        # Partitions of the dimensions after the first: arrays of splits, or one size for all rows.
        levels: list[Any] = [1] * (missing - 1)
        if missing:
            levels.append(len(partitions[0].array()) - 1 if partitions else dims[0] if dims else 1)
            self.count = 1
        elif partitions:
            self.count = len(partitions[0].array()) - 1
        else:
            self.count = dims[0]
        for p in partitions:
            length = p.static_uniform_row_length
            levels.append(p.array() if length is None else length)
        more = ragged_rank - len(levels)
        levels.extend(dims[1 : 1 + more])
        self.levels = levels
        merged = max(more, 0) + 1
        self.values = tf.reshape(flat, [int(np.prod(dims[:merged])), *dims[merged:]])
        self.rows: np.ndarray | None = None

    def start(self, nrows: int) -> None:
        if self.count != nrows:
            self.rows = np.zeros(nrows, np.int64)

    def size(self, axis: int) -> int | None:
        """The size of a uniform dimension."""
        level = self.levels[axis]
        return level if isinstance(level, int) else None

    def lengths(self, axis: int, nrows: int) -> np.ndarray:
        """The lengths of the rows that the rows of the result come from."""
        level = self.levels[axis]
        if isinstance(level, int):
            return np.full(nrows, level)
        lengths = np.diff(level)
        return lengths if self.rows is None else lengths[self.rows]

    def descend(self, axis: int, lengths: np.ndarray) -> None:
        """Goes from the rows of one dimension to those of the next, of which the result has these numbers."""
        level = self.levels[axis]
        size = self.size(axis)
        repeated = size == 1 and not (lengths == 1).all()
        if self.rows is None and not repeated:
            return
        at = np.arange(len(lengths)) if self.rows is None else self.rows
        starts = at * level if size is not None else level[:-1][at]
        self.rows = np.repeat(starts, lengths) if repeated else rows.ranges(starts, lengths)

    def flat(self) -> Any:
        return self.values if self.rows is None else tf.gather(self.values, self.rows)


def _common_lengths(a: _Operand, b: _Operand, axis: int) -> np.ndarray:
    nrows = a.count if a.rows is None else len(a.rows)
    if axis:
        nrows = _rows_now(a, b, axis)
    ours, theirs = a.lengths(axis, nrows), b.lengths(axis, nrows)
    if a.size(axis) == 1:
        return theirs
    if b.size(axis) == 1 or np.array_equal(ours, theirs):
        return ours
    at = rows.first(ours != theirs)
    raise InvalidArgumentError(
        f"Cannot broadcast\nCondition x == y did not hold: the operands have different row lengths in dimension {axis + 1}; "
        f"row {at} has {ours[at]} and {theirs[at]} values. Hint: only uniform dimensions of size 1 are repeated."
    )


def _rows_now(a: _Operand, b: _Operand, axis: int) -> int:
    for operand in (a, b):
        if operand.rows is not None:
            return len(operand.rows)
        level = operand.levels[axis]
        if not isinstance(level, int):
            return len(level) - 1
    return int(np.prod([a.count, *a.levels[:axis]]))
