"""`tf.ragged.map_flat_values`, `tf.ragged.range`, segment ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as tf
from gradtape._src.base import dtypes
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.room import want_room
from gradtape.ragged import rows
from gradtape.ragged.making import as_values
from gradtape.ragged.partitions import as_partition, row_splits_to_ids
from gradtape.ragged.tensor import RaggedTensor, make


def map_flat_values(op: Callable, *args: Any, **kwargs: Any) -> Any:
    """`op` applied to the flat values of ragged tensors, in the same rows.

    Args:
      op: a function of tensors that preserves the size of the first dimension.
      *args, **kwargs: its arguments; ragged tensors among them, also in lists and dicts, must have the same rows.

    >>> import gradtape as tf
    >>> rt = tf.ragged.constant([[1, 2], [], [3]])
    >>> tf.ragged.map_flat_values(lambda x: x * x, rt)
    <tf.RaggedTensor [[1, 4], [], [9]]>
    """
    ragged: list[RaggedTensor] = []
    inner_args, inner_kwargs = _flat(args, ragged), _flat(kwargs, ragged)
    if not ragged:
        return op(*args, **kwargs)
    sizes = {x.flat_values.shape[0] for x in ragged} - {None}
    if len(sizes) > 1:
        raise ValueError(
            "Input RaggedTensors' flat_values must all have the same outer-dimension size.  Got sizes: "
            f"{sizes}"
        )
    if len({x._row_partition.dtype for x in ragged}) > 1:
        raise ValueError(
            "Input RaggedTensors have mismatched row partition dtypes; use RaggedTensor.with_row_splits_dtype() to convert "
            "them to compatible dtypes."
        )
    like = ragged[0]
    for x in ragged[1:]:
        _check_same(like, x)
    out = as_values(op(*inner_args, **inner_kwargs))
    for size in sizes:
        if not out.shape[:1].is_compatible_with([size]):
            raise ValueError(
                "tf.ragged.map_flat_values requires that the output of `op` have the same outer-dimension size as "
                f"flat_values of any ragged inputs. (output shape: {out.shape}; expected outer dimension size: {size})"
            )
    return like.with_flat_values(out)


def _check_same(x: RaggedTensor, y: RaggedTensor) -> None:
    if x.ragged_rank != y.ragged_rank:
        raise ValueError("All ragged inputs must have the same ragged_rank.")
    for ours, theirs in zip(x._nested_row_partitions, y._nested_row_partitions, strict=True):
        words = "RowPartition._merge_precomputed_encodings: partitions have incompatible row_splits"
        a, b = ours.row_splits(), theirs.row_splits()
        if not a.shape.is_compatible_with(b.shape):
            raise ValueError(words)
        if a is b:
            continue
        if not (rows.is_known(a) and rows.is_known(b)):
            tf.debugging.assert_equal(a, b, message=words)
        elif not np.array_equal(rows.array_of(a), rows.array_of(b)):
            raise InvalidArgumentError(
                f"{words}\nCondition x == y did not hold: {rows.array_of(a).tolist()} and {rows.array_of(b).tolist()}."
            )


def _flat(value: Any, ragged: list[RaggedTensor]) -> Any:
    if isinstance(value, RaggedTensor):
        ragged.append(value)
        return value.flat_values
    if isinstance(value, (list, tuple)):
        return type(value)(_flat(v, ragged) for v in value)
    if isinstance(value, dict):
        return {k: _flat(v, ragged) for k, v in value.items()}
    return value


_RANGE_TYPES = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)


@one_call
def range_(
    starts: Any,
    limits: Any = None,
    deltas: Any = 1,
    dtype: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> RaggedTensor:
    """Ranges of numbers, one in each row.

    Args:
      starts: the start of each range; its end if there are no `limits`.
      limits: the end of each range.
      deltas: the steps. A number instead of a list is used for all ranges.

    >>> import gradtape as tf
    >>> tf.ragged.range([0, 5, 8], [3, 3, 12], [1, -1, 2])
    <tf.RaggedTensor [[0, 1, 2], [5, 4], [8, 10]]>
    """
    if limits is None:
        starts, limits = 0, starts
    tensors = [tf.convert_to_tensor(t, dtype) for t in (starts, limits, deltas)]
    if dtype is None:
        dtype = max((t.dtype for t in tensors), key=_RANGE_TYPES.index)
    else:
        dtype = dtypes.as_dtype(dtype)
    first, last, step = (rows.array_of(t).astype(dtype.as_numpy_dtype) for t in tensors)
    for array, word in ((first, "starts"), (last, "limits"), (step, "deltas")):
        if array.ndim > 1:
            raise InvalidArgumentError(f"{word} must be a scalar or vector; got shape {array.shape}.")
    if len({a.size for a in (first, last, step) if a.ndim}) > 1:
        raise InvalidArgumentError("starts, limits, and deltas must have the same shape")
    if (step == 0).any():
        raise InvalidArgumentError("Requires delta != 0")
    first, last, step = (np.atleast_1d(a) for a in np.broadcast_arrays(first, last, step))
    if dtype.is_integer:
        counts = rows.counts(first.astype(np.int64), last.astype(np.int64), step.astype(np.int64))
    else:
        counts = np.maximum(np.ceil(np.abs((last - first) / step)), 0)
        counts = np.where((last > first) == (step > 0), counts, 0).astype(np.int64)
    splits = rows.splits_of(counts)
    want_room(splits[-1])
    if not dtype.is_integer:
        # As in TensorFlow, by repeated addition, with the rounding errors of a loop.
        values = np.concatenate([np.zeros(0, first.dtype), *_added(first, step, counts)])
    else:
        values = rows.ranges(first, counts, np.repeat(step, counts)).astype(dtype.as_numpy_dtype)
    return make(rows.tensor_of(values), splits, dtypes.as_dtype(row_splits_dtype))


def _added(first: np.ndarray, step: np.ndarray, counts: np.ndarray) -> list[np.ndarray]:
    parts = []
    for start, delta, count in zip(first, step, counts, strict=True):
        part = np.full(count, delta, first.dtype)
        part[:1] = start
        parts.append(np.cumsum(part, dtype=first.dtype))
    return parts


def row_splits_to_segment_ids(splits: Any, name: str | None = None, out_type: Any = None) -> Any:
    """The row of each value.

    >>> import gradtape as tf
    >>> tf.ragged.row_splits_to_segment_ids([0, 3, 3, 5]).numpy().tolist()
    [0, 0, 0, 2, 2]
    """
    partition = as_partition(splits, "splits", hint=out_type)
    if partition.shape.rank != 1:
        raise ValueError(f"Shape {partition.shape} must have rank 1")
    if partition.shape[0] == 0:
        raise ValueError("Invalid row_splits: []")
    ids = row_splits_to_ids(partition)
    return ids if out_type is None else tf.cast(ids, out_type)


@one_call
def segment_ids_to_row_splits(
    segment_ids: Any, num_segments: Any = None, out_type: Any = None, name: str | None = None
) -> Any:
    """The positions at which rows begin and end, from the row of each value.

    >>> import gradtape as tf
    >>> tf.ragged.segment_ids_to_row_splits([0, 0, 0, 2, 2]).numpy().tolist()
    [0, 3, 3, 5]
    """
    ids = as_partition(segment_ids, "segment_ids", hint=out_type)
    if ids.shape.rank != 1:
        raise ValueError(f"Shape {ids.shape} must have rank 1")
    array = rows.array_of(ids)
    count = int(array[-1]) + 1 if array.size else 0
    if num_segments is not None:
        count = int(rows.array_of(num_segments))
        array = array[array < count]
    splits = rows.tensor_of(rows.splits_of(rows.lengths_of(array, count)))
    return splits if out_type is None else tf.cast(splits, out_type)
