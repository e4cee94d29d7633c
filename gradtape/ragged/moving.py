"""Gathers rows of dense and ragged tensors by arrays of indices; merges and slices dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as tf
from gradtape._src.base.calls import one_call
from gradtape._src.ops.runs import take_runs
from gradtape.ragged import rows
from gradtape.ragged.partitions import INTERNAL, RowPartition
from gradtape.ragged.tensor import RaggedTensor, make, positive_axis


def size_of(value: Any) -> int:
    """The number of rows, as a Python number."""
    if isinstance(value, RaggedTensor):
        return len(value._row_partition.array()) - 1
    return value.shape[0]


def take(value: Any, index: np.ndarray) -> Any:
    """The rows of a dense or ragged tensor at these positions."""
    if not isinstance(value, RaggedTensor):
        return tf.gather(value, index)
    splits = value._row_partition.array()
    lengths = np.diff(splits)[index]
    return _in_rows(value, take_ranges(value._values, splits[:-1][index], lengths), lengths)


def take_ranges(value: Any, starts: np.ndarray, lengths: np.ndarray) -> Any:
    """The rows of several ranges, one range after the other: `lengths[i]` rows from `starts[i]` on."""
    if not isinstance(value, RaggedTensor):
        splits = rows.splits_of(lengths)
        return take_runs(value, starts, lengths, splits[:-1], int(splits[-1]))
    splits = value._row_partition.array()
    begin = splits[starts]  # their values are ranges, too
    values = take_ranges(value._values, begin, splits[starts + lengths] - begin)
    return _in_rows(value, values, np.diff(splits)[rows.ranges(starts, lengths)])


def _in_rows(value: RaggedTensor, values: Any, lengths: np.ndarray) -> RaggedTensor:
    """Other values in rows of these lengths, which are some rows of `value`; uniform if those are."""
    length = value._row_partition.static_uniform_row_length
    if length is not None:
        return uniform(values, length, len(lengths), lengths.dtype)
    return make(values, rows.splits_of(lengths))


def cut(value: Any, start: int, stop: int) -> Any:
    """The rows from `start` to `stop`, without copying values."""
    if not isinstance(value, RaggedTensor):
        return value[start:stop]
    splits = value._row_partition.array()[start : max(start, stop) + 1]
    return _in_rows(value, cut(value._values, int(splits[0]), int(splits[-1])), np.diff(splits))


def uniform(values: Any, length: int, nrows: int, dtype: Any = np.int64) -> RaggedTensor:
    """Rows of equal length."""
    numbers = [np.asarray(n, dtype) for n in (length, nrows)]
    splits = np.arange(nrows + 1, dtype=dtype) * numbers[0]
    partition = RowPartition(
        rows.tensor_of(splits),
        uniform_row_length=rows.tensor_of(numbers[0]),
        nrows=rows.tensor_of(numbers[1]),
        internal=INTERNAL,
    )
    return RaggedTensor(values, partition, internal=INTERNAL)


def with_partition(values: Any, partition: RowPartition) -> RaggedTensor:
    """Values in a partition that is known to fit."""
    return RaggedTensor(values, partition, internal=INTERNAL)


@one_call
def merge_dims(value: Any, outer_axis: int, inner_axis: int) -> Any:
    """Merges a range of dimensions into one.

    >>> import gradtape as tf
    >>> tf.ragged.constant([[[1, 2], [3]], [[4]]]).merge_dims(1, 2)
    <tf.RaggedTensor [[1, 2, 3], [4]]>
    """
    rank = value.shape.rank
    outer = positive_axis(outer_axis, rank, "outer_axis", "rank(self)")
    inner = positive_axis(inner_axis, rank, "inner_axis", "rank(self)")
    if outer > inner:
        raise ValueError(f"Expected outer_axis ({outer}) to be less than or equal to inner_axis ({inner}).")
    return _merge(value, outer, inner)


def _merge(value: Any, outer: int, inner: int) -> Any:
    if outer == inner:
        return value
    if not isinstance(value, RaggedTensor):
        shape = list(value.shape)
        return tf.reshape(value, [*shape[:outer], -1, *shape[inner + 1 :]])
    if outer == 0:
        return _merge(value._values, 0, inner - 1)
    if outer > 1:
        return value.with_values(_merge(value._values, outer - 1, inner - 1))
    splits, values = value._row_partition.array(), value._values
    for axis in range(1, inner):
        if not isinstance(values, RaggedTensor):
            shape = list(values.shape)
            count = inner - axis + 1
            factor = int(np.prod(shape[1:count]))
            return make(tf.reshape(values, [shape[0] * factor, *shape[count:]]), splits * factor)
        splits, values = values._row_partition.array()[splits], values._values
    return make(values, splits)


def as_ragged(value: Any, ragged_rank: int, dtype: Any = np.int64) -> Any:
    """A dense tensor as a ragged tensor with uniform rows; a ragged tensor with more ragged dimensions."""
    if isinstance(value, RaggedTensor):
        if value.ragged_rank >= ragged_rank:
            return value
        return value.with_values(
            as_ragged(value._values, ragged_rank - 1, value._row_partition.array().dtype)
        )
    if ragged_rank == 0:
        return value
    shape = list(value.shape)
    flat: Any = tf.reshape(value, [int(np.prod(shape[: ragged_rank + 1])), *shape[ragged_rank + 1 :]])
    for axis in range(ragged_rank, 0, -1):
        flat = uniform(flat, shape[axis], int(np.prod(shape[:axis])), dtype)
    return flat
