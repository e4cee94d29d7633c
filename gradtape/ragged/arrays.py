"""Axes and rows: new axes, axes of size 1, reversed and repeated rows, masks, splits, one-hot rows."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as tf
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.room import want_room
from gradtape.ragged import rows
from gradtape.ragged.making import as_values
from gradtape.ragged.moving import as_ragged, size_of, take, take_ranges, uniform
from gradtape.ragged.tensor import RaggedTensor, make, match_splits, positive_axis, rank_of, splits_dtype


@one_call
def expand_dims(input: Any, axis: Any, name: str | None = None) -> Any:  # noqa: A002
    """`tf.expand_dims`."""
    x = input
    if not isinstance(x, RaggedTensor):
        return tf.expand_dims(x, axis)
    if isinstance(axis, (tf.Tensor, np.ndarray)):
        axis = int(rows.array_of(axis))
    axis = positive_axis(axis, rank_of(x) + 1, bound="rank(input)")
    if axis > 1:
        return x.with_values(expand_dims(x._values, axis - 1))
    n = size_of(x)
    length, count = (n, 1) if axis == 0 else (1, n)
    return uniform(x, length, count, x._row_partition.array().dtype)


@one_call
def squeeze(input: Any, axis: Any = None, name: str | None = None) -> Any:  # noqa: A002
    """`tf.squeeze`; the axes must be given."""
    x = input
    if axis is None:
        raise ValueError("Ragged.squeeze must have an axis argument.")
    axes = [axis] if isinstance(axis, int) else axis
    if not isinstance(axes, (list, tuple)) or not all(isinstance(a, int) for a in axes):
        raise TypeError("Axis must be a list or tuple of integers.")
    rank = x.shape.rank
    squeezed = {positive_axis(a, rank, f"axis[{i}]", "rank(input)") for i, a in enumerate(axes)}
    partitions = list(x._nested_row_partitions)
    for a in squeezed:
        if a == 0 and len(partitions[0].array()) != 2:
            raise InvalidArgumentError(
                "the given axis (axis = 0) is not squeezable!: it has more or less than one row."
            )
        if 0 < a <= len(partitions) and (np.diff(partitions[a - 1].array()) != 1).any():
            raise InvalidArgumentError(
                f"the given axis (axis = {a}) is not squeezable!: not all rows have one value."
            )
    ragged = len(partitions)
    flat = x.flat_values
    dense = [a - ragged for a in squeezed if a > ragged]
    result = tf.squeeze(flat, dense) if dense else flat
    remaining = [p for i, p in enumerate(partitions) if i + 1 not in squeezed]
    everything = squeezed >= set(range(ragged + 1))
    if remaining and 0 in squeezed:
        remaining.pop(0)
    result = RaggedTensor._from_nested_row_partitions(result, remaining)
    return tf.squeeze(result, [0]) if everything else result


def size(input: Any, out_type: Any = tf.int32, name: str | None = None) -> Any:  # noqa: A002
    """`tf.size`: the number of values."""
    return tf.size(input.flat_values, out_type=out_type)


def rank(input: Any, name: str | None = None) -> Any:  # noqa: A002
    """`tf.rank`."""
    return input.ragged_rank + tf.rank(input.flat_values)


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: Any = None,
    dtype: Any = None,
    name: str | None = None,
) -> Any:
    """`tf.one_hot`; the new axis must come after the ragged ones."""
    if isinstance(axis, int) and axis >= 0:
        if axis <= indices.ragged_rank:
            raise ValueError(
                f"axis ({axis}) must be greater than indices.ragged_rank ({indices.ragged_rank})."
            )
        axis -= indices.ragged_rank
    return indices.with_flat_values(tf.one_hot(indices.flat_values, depth, on_value, off_value, axis, dtype))


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Any:
    """`tf.reverse`: rows, or the values of each row, in reverse order."""
    if isinstance(axis, tf.Tensor):
        axis = rows.array_of(axis).tolist()
    if not (isinstance(axis, (list, tuple)) and all(isinstance(a, int) for a in axis)):
        raise TypeError(
            "`axis` must be a list of int or a constant tensor when reversing axes in a ragged tensor"
        )
    axes = [positive_axis(a, tensor.shape.rank, f"axis[{i}]", "rank(tensor)") for i, a in enumerate(axis)]
    keys = [slice(None)] * (max(axes) + 1 if axes else 0)
    for a in axes:
        keys[a] = slice(None, None, -1)
    return tensor[tuple(keys)]


@one_call
def tile(input: Any, multiples: Any, name: str | None = None) -> Any:  # noqa: A002
    """`tf.tile`: repeats rows, and the values of each row."""
    counts = rows.array_of(multiples)
    if counts.ndim != 1:
        raise ValueError(f"Shape {counts.shape} must have rank 1")
    if len(counts) != input.shape.rank:
        raise InvalidArgumentError(
            f"Expected multiples argument to be a vector of length {input.shape.rank} but got length {len(counts)}"
        )
    return _tile(input, counts.tolist())


def _tile(x: Any, multiples: list) -> Any:
    if not isinstance(x, RaggedTensor):
        return tf.tile(x, multiples)
    first, second, *inner = multiples
    if first != 1:
        want_room(size_of(x), first)
        x = take(x, np.tile(np.arange(size_of(x)), first))
    splits, values = x._row_partition.array(), x._values
    if second != 1:
        want_room(len(splits), second)
        starts, lengths = np.repeat(splits[:-1], second), np.repeat(np.diff(splits), second)
        values, splits = take_ranges(values, starts, lengths), splits * second
    return make(_tile(values, [1, *inner]), splits)


@one_call
def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: Any = None, name: str | None = None
) -> list:
    """`tf.split`, along a uniform dimension."""
    axis = positive_axis(axis, value.shape.rank)
    sizes = rows.array_of(num_or_size_splits)
    if sizes.dtype.kind not in "iu":
        raise TypeError("`num_or_size_splits` must be an `int` or 1-D list or `Tensor` of integers.")
    if sizes.ndim == 0 and int(sizes) == 1:
        return [value]
    length = size_of(value) if axis == 0 else value.shape[axis]
    if length is None:
        raise ValueError(
            f"Cannot split a ragged dimension. Got `value` with shape {value.shape} and `axis` {axis}."
        )
    if sizes.ndim > 1:
        raise TypeError(
            f"`num_or_size_splits` must be an `int` or 1-D list or `Tensor`. Received {num_or_size_splits}."
        )
    if sizes.ndim == 0:
        if sizes < 1:
            raise ValueError(f"`num_or_size_splits` must be >=1 if it is an `int`. Received {sizes}.")
        sizes = np.full(int(sizes), length // int(sizes))
    elif num is not None and num != len(sizes):
        raise ValueError(
            "`num` does not match the size of `num_or_size_split`. "
            f"Received `num`: {num} and size of `num_or_size_split`: {len(sizes)}."
        )
    if (sizes < 0).any():
        raise InvalidArgumentError("`num_or_size_splits` must be non-negative.")
    if sizes.sum() != length:
        raise InvalidArgumentError(
            "Cannot exactly split the `axis` dimension of `value` with the given `num_or_size_split`: "
            f"{sizes.tolist()} of {length}."
        )
    ends = np.cumsum([0, *sizes]).tolist()
    before = (slice(None),) * axis
    return [value[(*before, slice(a, b))] for a, b in zip(ends[:-1], ends[1:], strict=True)]


@one_call
def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """The values where a mask is true; rows are kept, so the result for a mask of several dimensions is ragged.

    Args:
      data: a tensor or ragged tensor.
      mask: booleans, of the shape of the first dimensions of `data`.

    >>> import gradtape as tf
    >>> tf.ragged.boolean_mask([[1, 2, 3], [4, 5, 6]], [[True, False, True], [False, False, True]])
    <tf.RaggedTensor [[1, 3], [6]]>
    """
    data = as_values(data)
    mask = mask if isinstance(mask, RaggedTensor) else tf.convert_to_tensor(mask, tf.bool)
    if mask.dtype != tf.bool:
        raise ValueError(
            f"Tensor conversion requested dtype bool for RaggedTensor with dtype {mask.dtype.name}: {mask}."
        )
    dtype = splits_dtype(data, mask).as_numpy_dtype
    if mask.shape.rank == 0:
        raise ValueError("mask cannot be scalar.")
    if mask.shape.rank > data.shape.rank:
        raise ValueError(f"mask.shape {mask.shape} has more dimensions than data.shape {data.shape}")
    return _masked(data, mask, dtype)


def _masked(data: Any, mask: Any, dtype: Any) -> Any:
    rank = mask.shape.rank
    if rank == 1:
        chosen = rows.array_of(mask)
        if len(chosen) != size_of(data):
            raise ValueError(f"Shapes ({size_of(data)},) and ({len(chosen)},) are incompatible")
        return take(data, np.flatnonzero(chosen))
    mask, data = as_ragged(mask, rank - 1, dtype), as_ragged(data, 1, dtype)
    splits = mask._row_partition.array()
    if not np.array_equal(splits, data._row_partition.array()):
        raise InvalidArgumentError(
            f"Inputs must have identical ragged splits\nCondition x == y did not hold: {splits.tolist()} and "
            f"{data._row_partition.array().tolist()}."
        )
    if rank > 2:
        return make(_masked(data._values, mask._values, dtype), splits)
    chosen = rows.array_of(mask._values)
    before = np.concatenate([[0], np.cumsum(chosen)])
    return make(take(data._values, np.flatnonzero(chosen)), before[splits].astype(dtype))


@one_call
def stack_dynamic_partitions(data: Any, partitions: Any, num_partitions: Any, name: str | None = None) -> Any:
    """A ragged tensor whose row i contains the values of `data` where `partitions` is i.

    Args:
      data: a tensor or ragged tensor.
      partitions: integers from 0 to `num_partitions`, of the shape of the first dimensions of `data`.
      num_partitions: the number of rows of the result.

    >>> import gradtape as tf
    >>> tf.ragged.stack_dynamic_partitions([10, 20, 30], [1, 0, 1], 3)
    <tf.RaggedTensor [[20], [10, 30], []]>
    """
    data, parts = match_splits(as_values(data), as_values(partitions))
    dtype = splits_dtype(data, parts) if isinstance(data, RaggedTensor) else parts.dtype
    count = rows.array_of(num_partitions)
    if count.ndim:
        raise ValueError(f"Shape {count.shape} must have rank 0")
    depth = parts.shape.rank
    parts.shape.assert_is_compatible_with(data.shape[:depth])
    if depth == 0:
        data, parts = expand_dims(data, 0), tf.reshape(parts, [1])
    while parts.shape.rank > 1:
        data = as_ragged(data, 1, dtype.as_numpy_dtype)
        parts = as_ragged(parts, 1, dtype.as_numpy_dtype)
        if not np.array_equal(data._row_partition.array(), parts._row_partition.array()):
            raise InvalidArgumentError("data and partitions have incompatible ragged shapes")
        data, parts = data._values, parts._values
    indices = rows.array_of(parts)
    for wrong, words in ((indices >= count, "less than num_partitions"), (indices < 0, "non-negative")):
        if wrong.any():
            at = rows.first(wrong)
            raise InvalidArgumentError(f"partitions must be {words}\ngot partitions[{at}] = {indices[at]}")
    lengths = rows.lengths_of(indices, int(count)).astype(dtype.as_numpy_dtype)
    return make(take(data, np.argsort(indices, kind="stable")), rows.splits_of(lengths))


def dynamic_partition(data: Any, partitions: Any, num_partitions: int, name: str | None = None) -> list:
    """`tf.dynamic_partition`."""
    if not isinstance(num_partitions, int) or num_partitions < 0:
        raise TypeError("num_partitions must be a non-negative integer")
    stacked = stack_dynamic_partitions(data, partitions, num_partitions)
    return [stacked[i] for i in range(num_partitions)]
