"""Combines several ragged tensors: `tf.concat`, `tf.stack`, `tf.where`, `tf.add_n`."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as tf
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError
from gradtape.ragged import rows
from gradtape.ragged.elementwise import broadcast, same_partitions
from gradtape.ragged.making import as_values
from gradtape.ragged.moving import as_ragged, size_of, take
from gradtape.ragged.tensor import RaggedTensor, make, match_splits, positive_axis, splits_dtype


def _all(values: Any) -> list:
    """The operands of a concatenation, which must have the same rank."""
    tensors = list(values) if isinstance(values, (list, tuple)) else [values]
    if not tensors:
        raise ValueError("rt_inputs may not be empty.")
    tensors = list(match_splits(*map(as_values, tensors)))
    for x in tensors[1:]:
        if x.shape.rank != tensors[0].shape.rank:
            raise ValueError(f"Shape {x.shape} must have rank {tensors[0].shape.rank}")
    return tensors


@one_call
def concat(values: Any, axis: Any, name: str | None = None) -> Any:
    """`tf.concat`: the rows of all operands, or each row joined with those of the others."""
    tensors = _all(values)
    if isinstance(axis, (tf.Tensor, np.ndarray)):
        axis = int(rows.array_of(axis))
    axis = positive_axis(axis, tensors[0].shape.rank)
    return tensors[0] if len(tensors) == 1 else _concat(tensors, axis)


def _concat(tensors: list, axis: int) -> Any:
    if not any(isinstance(x, RaggedTensor) for x in tensors):
        return tf.concat(tensors, axis)
    dtype = splits_dtype(*tensors).as_numpy_dtype
    ragged_rank = max(x.ragged_rank for x in tensors if isinstance(x, RaggedTensor))
    tensors = [as_ragged(x, ragged_rank, dtype) for x in tensors]
    if axis == 0:
        return rows_after_rows(tensors)
    if axis > 1:
        splits = tensors[0]._row_partition.array()
        for i, x in enumerate(tensors[1:], 1):
            if not np.array_equal(splits, x._row_partition.array()):
                raise InvalidArgumentError(
                    f"Inputs must have identical ragged splits\nCondition x == y did not hold: {splits.tolist()} and, of "
                    f"input {i}, {x._row_partition.array().tolist()}."
                )
        return make(_concat([x._values for x in tensors], axis - 1), splits)
    merged = _alternately(tensors)
    return make(merged._values, merged._row_partition.array()[:: len(tensors)])


def rows_after_rows(tensors: list) -> Any:
    """The rows of all tensors, which have the same ragged rank."""
    if not isinstance(tensors[0], RaggedTensor):
        return tf.concat(tensors, 0)
    lengths = [np.diff(x._row_partition.array()) for x in tensors]
    return make(rows_after_rows([x._values for x in tensors]), rows.splits_of(np.concatenate(lengths)))


def _alternately(tensors: list) -> RaggedTensor:
    """The first row of each tensor, then the second row of each, ..."""
    n = size_of(tensors[0])
    for i, x in enumerate(tensors[1:], 1):
        if size_of(x) != n:
            raise InvalidArgumentError(
                f"Input tensors at index 0 (=x) and {i} (=y) have incompatible shapes.\nCondition x == y did not hold: "
                f"they have {n} and {size_of(x)} rows."
            )
    order = np.arange(n * len(tensors)).reshape(len(tensors), n).T.reshape(-1)
    return take(rows_after_rows(tensors), order)


@one_call
def stack(values: Any, axis: Any = 0, name: str | None = None) -> Any:
    """Stacks tensors and ragged tensors of one rank along a new axis; unlike for `tf.stack` their shapes may differ.

    Args:
      values: a list of tensors and ragged tensors.
      axis: the position of the new axis.

    >>> import gradtape as tf
    >>> tf.ragged.stack([[1, 2], [3]])
    <tf.RaggedTensor [[1, 2], [3]]>
    """
    tensors = _all(values)
    ndims = tensors[0].shape.rank
    axis = positive_axis(axis, ndims + 1)
    dense = not any(isinstance(x, RaggedTensor) for x in tensors)
    if ndims == 0:
        return tf.stack(tensors)
    if dense and ndims == 1 and axis == 0:
        lengths = np.array([x.shape[0] for x in tensors], np.int32)
        return make(tf.concat(tensors, 0), rows.splits_of(lengths))
    if dense and axis in (ndims, ndims - 1):
        return tf.stack(tensors, axis)
    dtype = splits_dtype(*tensors).as_numpy_dtype
    ragged_rank = max([1, *[x.ragged_rank for x in tensors if isinstance(x, RaggedTensor)]])
    return _stack([as_ragged(x, ragged_rank, dtype) for x in tensors], axis, dtype)


def _stack(tensors: list, axis: int, dtype: Any) -> Any:
    if not isinstance(tensors[0], RaggedTensor):
        if axis == 0:
            lengths = np.array([x.shape[0] for x in tensors], dtype)
            return make(tf.concat(tensors, 0), rows.splits_of(lengths))
        return tf.stack(tensors, axis)
    if axis == 0:
        lengths = np.array([size_of(x) for x in tensors], dtype)
        return make(rows_after_rows(tensors), rows.splits_of(lengths))
    if axis == 1:
        n = len(tensors)
        return make(_alternately(tensors), np.arange(size_of(tensors[0]) + 1, dtype=dtype) * n)
    splits = tensors[0]._row_partition.array()
    if any(not np.array_equal(splits, x._row_partition.array()) for x in tensors[1:]):
        raise InvalidArgumentError("Inputs must have identical ragged splits")
    return make(_stack([x._values for x in tensors], axis - 1, dtype), splits)


@one_call
def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """`tf.where`: coordinates of true values, or values of `x` and `y`."""
    if (x is None) != (y is None):
        raise ValueError("x and y must be either both None or both non-None")
    if x is None:
        return rows.tensor_of(_coordinates(condition))
    condition = as_values(condition)
    operands = [condition, _operand(x, y), _operand(y, x)]
    match_splits(*operands)
    like = next(v for v in operands if isinstance(v, RaggedTensor))
    for v in operands:
        if v is not like and not (isinstance(v, RaggedTensor) and same_partitions(v, like)):
            like = _fitted(like, v)
    flat = [_fitted(v, like).flat_values for v in operands]
    return like.with_flat_values(tf.where(*flat))


def _operand(value: Any, other: Any) -> Any:
    if isinstance(value, RaggedTensor):
        return value
    return tf.convert_to_tensor(value, dtype_hint=getattr(other, "dtype", None))


def _fitted(x: Any, y: Any) -> Any:
    """`x` broadcast to the rows that it has together with `y`."""
    same = isinstance(x, RaggedTensor) and isinstance(y, RaggedTensor) and same_partitions(x, y)
    return x if same else broadcast(x, y)[0]


def _coordinates(condition: Any) -> np.ndarray:
    if not isinstance(condition, RaggedTensor):
        return np.argwhere(rows.array_of(condition))
    inner = _coordinates(condition._values)
    splits = condition._row_partition.array()
    row = rows.ids_of(splits)[inner[:, 0]]
    return np.concatenate([row[:, None], (inner[:, 0] - splits[row])[:, None], inner[:, 1:]], 1)


def add_n(inputs: Any, name: str | None = None) -> Any:
    """`tf.add_n`."""
    total = inputs[0]
    for x in inputs[1:]:
        total = total + x
    return total
