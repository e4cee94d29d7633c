"""Sums, means, extrema, ... of ragged tensors along axes; running sums, softmax; sums of segments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as tf
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.room import want_room
from gradtape._src.ops.runs import add_runs
from gradtape.ragged import rows
from gradtape.ragged.arrays import expand_dims
from gradtape.ragged.conversion import from_tensor
from gradtape.ragged.elementwise import binary
from gradtape.ragged.making import as_values
from gradtape.ragged.tensor import RaggedTensor, make, match_splits, positive_axis, rank_of

# By kind: for a dense tensor, and for rows that share an id.
_DENSE = {"sum": tf.reduce_sum, "prod": tf.reduce_prod, "min": tf.reduce_min, "max": tf.reduce_max}
_SEGMENTS = {
    "sum": tf.math.unsorted_segment_sum,
    "prod": tf.math.unsorted_segment_prod,
    "min": tf.math.unsorted_segment_min,
    "max": tf.math.unsorted_segment_max,
}


@one_call
def _reduce(kind: str, x: Any, axis: Any, keepdims: Any) -> Any:
    if not isinstance(x, RaggedTensor):
        return _DENSE[kind](x, axis, keepdims=bool(keepdims))
    if isinstance(axis, (tf.Tensor, np.ndarray)):
        axis = rows.array_of(axis).tolist()
    if axis is None:
        result = _DENSE[kind](x.flat_values)
        return tf.reshape(result, [1] * rank_of(x)) if keepdims else result
    rank = rank_of(x)
    if isinstance(axis, (list, tuple)):
        axes = sorted(
            positive_axis(a, rank, f"axis[{i}]" if len(axis) > 1 else "axis", "rank(input_tensor)")
            for i, a in enumerate(axis)
        )
        for a in reversed(axes):
            x = _reduce(kind, x, a, keepdims)
        return x
    axis = positive_axis(axis, rank, bound="rank(input_tensor)")
    if axis > 1:
        return x.with_values(_reduce(kind, x._values, axis - 1, keepdims))
    splits = x._row_partition.array()
    if axis == 1:
        result = _segments(kind, x._values, x._row_partition.value_rowids(), len(splits) - 1)
    else:
        lengths = np.diff(splits)
        count = int(lengths.max(initial=0))
        if kind == "sum" and not isinstance(x._values, RaggedTensor):
            result = add_runs(x._values, splits[:-1], lengths, np.zeros_like(lengths), count)
        else:
            result = _segments(kind, x._values, rows.offsets_of(splits), count)
    return expand_dims(result, axis) if keepdims else result


def _segments(kind: str, data: Any, ids: Any, count: int) -> Any:
    """Combines rows of data with the same id; rows that are ragged themselves, element by element."""
    if isinstance(ids, RaggedTensor):
        if not isinstance(data, RaggedTensor):
            raise ValueError(
                "segment_ids.shape must be a prefix of data.shape, but segment_ids is ragged and data is not."
            )
        if not np.array_equal(ids._row_partition.array(), data._row_partition.array()):
            raise InvalidArgumentError(
                "segment_ids.shape must be a prefix of data.shape\nCondition x == y did not hold: their row splits differ."
            )
        return _segments(kind, data._values, ids._values, count)
    if not isinstance(data, RaggedTensor):
        return _SEGMENTS[kind](data, ids, count)
    array = rows.array_of(ids)
    splits = data._row_partition.array()
    if array.ndim != 1 or len(array) != len(splits) - 1:
        raise InvalidArgumentError(
            f"segment_ids.shape must be a prefix of data.shape; got {array.shape}, and {len(splits) - 1} rows."
        )
    if (array >= count).any():
        at = rows.first(array >= count)
        raise InvalidArgumentError(f"segment_ids[{at}] = {array[at]} is out of range [0, {count})")
    lengths = np.diff(splits)
    out = np.zeros(want_room(count), splits.dtype)
    used = array >= 0
    np.maximum.at(out, array[used], lengths[used])
    out_splits = rows.splits_of(out)
    starts = np.where(used, out_splits[np.maximum(array, 0)], 0) if count else np.zeros_like(array)
    inner = np.where(np.repeat(used, lengths), rows.ranges(starts, lengths), -1)
    return make(_segments(kind, data._values, inner, int(out_splits[-1])), out_splits)


def _segment_arguments(data: Any, segment_ids: Any, num_segments: Any) -> tuple[Any, Any, int]:
    data, ids = match_splits(as_values(data), as_values(segment_ids))
    if ids.dtype not in (tf.int32, tf.int64):
        raise ValueError("segment_ids must have dtype int32 or int64.")
    return data, ids, int(rows.array_of(num_segments))


def unsorted_segment(kind: str) -> Callable:
    """One of `tf.math.unsorted_segment_...` for ragged data."""

    @one_call
    def reduced(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
        return _segments(kind, *_segment_arguments(data, segment_ids, num_segments))

    return reduced


def _segment_share(root: Callable) -> Callable:
    @one_call
    def reduced(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
        data, ids, count = _segment_arguments(data, segment_ids, num_segments)
        total = _segments("sum", data, ids, count)
        number = _segments("sum", _ones(data), ids, count)
        return _divided(total, number, root)

    return reduced


unsorted_segment_mean = _segment_share(lambda n: n)
unsorted_segment_sqrt_n = _segment_share(tf.sqrt)


def _ones(x: Any) -> Any:
    return x.with_flat_values(tf.ones_like(x.flat_values))


def _divided(total: Any, number: Any, root: Callable = lambda n: n) -> Any:
    if isinstance(total, RaggedTensor):
        return total.with_flat_values(total.flat_values / root(number.flat_values))
    return total / root(number)


# ---- reductions -----------------------------------------------------------------------------------


def reduce_sum(input_tensor: Any, axis: Any = None, keepdims: Any = False, name: str | None = None) -> Any:
    """`tf.reduce_sum`."""
    return _reduce("sum", input_tensor, axis, keepdims)


def reduce_prod(input_tensor: Any, axis: Any = None, keepdims: Any = False, name: str | None = None) -> Any:
    """`tf.reduce_prod`."""
    return _reduce("prod", input_tensor, axis, keepdims)


def reduce_min(input_tensor: Any, axis: Any = None, keepdims: Any = False, name: str | None = None) -> Any:
    """`tf.reduce_min`."""
    return _reduce("min", input_tensor, axis, keepdims)


def reduce_max(input_tensor: Any, axis: Any = None, keepdims: Any = False, name: str | None = None) -> Any:
    """`tf.reduce_max`."""
    return _reduce("max", input_tensor, axis, keepdims)


def reduce_mean(input_tensor: Any, axis: Any = None, keepdims: Any = False, name: str | None = None) -> Any:
    """`tf.reduce_mean`; NaN for a row without values."""
    total = _reduce("sum", input_tensor, axis, keepdims)
    return _divided(total, _count(input_tensor, axis, keepdims))


@one_call
def _count(x: RaggedTensor, axis: Any, keepdims: Any) -> Any:
    """The number of values that are summed."""
    if isinstance(axis, int) and axis == 1 and not isinstance(x._values, RaggedTensor) and not keepdims:
        lengths = tf.cast(x.row_lengths(), x.dtype)
        return tf.reshape(lengths, [-1, *[1] * (x._values.shape.rank - 1)])
    return _reduce("sum", _ones(x), axis, keepdims)


def reduce_variance(
    input_tensor: Any, axis: Any = None, keepdims: Any = False, name: str | None = None
) -> Any:
    """`tf.math.reduce_variance`: the mean of the squares minus the square of the mean."""
    x = as_values(input_tensor)
    if x.dtype.is_complex:
        raise ValueError("reduce_variance is not supported for RaggedTensors with complex dtypes.")
    squares = reduce_mean(x.with_flat_values(tf.square(x.flat_values)), axis, keepdims)
    mean = reduce_mean(x, axis, keepdims)
    if isinstance(mean, RaggedTensor):
        return mean.with_flat_values(
            tf.maximum(squares.flat_values - tf.square(mean.flat_values), tf.cast(0, mean.dtype))
        )
    return tf.maximum(squares - tf.square(mean), tf.cast(0, mean.dtype))


def reduce_std(input_tensor: Any, axis: Any = None, keepdims: Any = False, name: str | None = None) -> Any:
    """`tf.math.reduce_std`."""
    return _mapped(tf.sqrt, reduce_variance(input_tensor, axis, keepdims))


def reduce_all(input_tensor: Any, axis: Any = None, keepdims: Any = False, name: str | None = None) -> Any:
    """`tf.reduce_all`."""
    return _logical("prod", input_tensor, axis, keepdims)


def reduce_any(input_tensor: Any, axis: Any = None, keepdims: Any = False, name: str | None = None) -> Any:
    """`tf.reduce_any`."""
    return _logical("max", input_tensor, axis, keepdims)


def _logical(kind: str, x: Any, axis: Any, keepdims: Any) -> Any:
    numbers = x.with_flat_values(tf.cast(x.flat_values, tf.int32))
    # The maximum of no numbers is below zero, so an empty row gives False.
    return _mapped(lambda v: tf.greater(v, 0), _reduce(kind, numbers, axis, keepdims))


def _mapped(function: Callable, x: Any) -> Any:
    return x.with_flat_values(function(x.flat_values)) if isinstance(x, RaggedTensor) else function(x)


def reduce_logsumexp(
    input_tensor: Any, axis: Any = None, keepdims: Any = False, name: str | None = None
) -> Any:
    """`tf.reduce_logsumexp`; minus infinity for a row without values."""
    highest = _mapped(_finite, reduce_max(input_tensor, axis, keepdims=True))
    powers = _mapped(tf.exp, binary(tf.subtract, input_tensor, highest))
    total = _mapped(tf.math.log, reduce_sum(powers, axis, keepdims))
    if not keepdims:
        highest = _mapped(_finite, reduce_max(input_tensor, axis))
    return binary(tf.add, total, highest) if isinstance(total, RaggedTensor) else total + highest


def _finite(x: Any) -> Any:
    return tf.stop_gradient(tf.where(tf.math.is_finite(x), x, tf.zeros_like(x)))


# ---- along rows -----------------------------------------------------------------------------------


def softmax(logits: Any, axis: Any = None, name: str | None = None) -> Any:
    """`tf.nn.softmax` of each row."""
    axis = -1 if axis is None else axis
    highest = reduce_max(logits, axis, keepdims=True)
    powers = _mapped(tf.exp, binary(tf.subtract, logits, highest))
    return binary(tf.divide, powers, reduce_sum(powers, axis, keepdims=True))


@one_call
def cumsum(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Any:
    """`tf.cumsum`: along rows, or across them."""
    axis = positive_axis(axis, x.shape.rank, bound="rank")
    if axis > x.ragged_rank:
        return x.with_flat_values(tf.cumsum(x.flat_values, axis - x.ragged_rank, exclusive, reverse))
    if axis < x.ragged_rank:
        dense = tf.cumsum(x.to_tensor(), axis, exclusive, reverse)
        return from_tensor(dense, lengths=x.nested_row_lengths())
    partition = x._nested_row_partitions[-1]
    splits = partition.array()
    flat = x.flat_values
    if not flat.shape[0]:
        return x
    before = tf.cumsum(flat, exclusive=True, reverse=reverse)
    ends = splits[1:] - 1 if reverse else splits[:-1]
    sums = before - tf.gather(before, np.repeat(ends, np.diff(splits)))
    return x.with_flat_values(sums if exclusive else sums + flat)
