"""`tf.ragged.constant`: a ragged tensor from nested Python lists."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as tf
from gradtape._src.base import dtypes
from gradtape.ragged.tensor import RaggedTensor, make


def constant(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> Any:
    """A ragged tensor from nested lists.

    Args:
      pylist: a nested list, tuple or array, in which all numbers have the same depth.
      dtype: the type of the values; inferred if None.
      ragged_rank: the number of ragged dimensions; if None and there is no `inner_shape`, all but the outermost
        one.
      inner_shape: the shape of the values in the innermost ragged dimension.
      row_splits_dtype: int64, or int32.

    >>> import gradtape as tf
    >>> tf.ragged.constant([[1, 2], [], [3]])
    <tf.RaggedTensor [[1, 2], [], [3]]>
    >>> tf.ragged.constant([[[1, 2]], [[3, 4], [5, 6]]], ragged_rank=1).shape
    TensorShape([2, None, 2])
    """
    if isinstance(pylist, RaggedTensor):
        raise TypeError("pylist may not be a RaggedTensor or RaggedTensorValue.")
    splits_dtype = dtypes.as_dtype(row_splits_dtype)
    if not _is_list(pylist):
        if ragged_rank:
            raise ValueError(f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank}")
        if inner_shape:
            raise ValueError(
                f"Invalid pylist={pylist!r}: incompatible with dim(inner_shape)={len(inner_shape)}"
            )
        return tf.constant(pylist, dtype)
    if ragged_rank is not None and ragged_rank < 0:
        raise ValueError(f"Invalid ragged_rank={ragged_rank!r}: must be nonnegative")
    depth, deepest = _depths(pylist)
    _check_depths(pylist, depth, deepest, ragged_rank, inner_shape)
    inner_dims = 0 if inner_shape is None else len(inner_shape)
    if ragged_rank == 0 or (ragged_rank is None and (deepest < 2 or deepest - inner_dims < 2)):
        return tf.constant(pylist, dtype, shape=inner_shape)
    if inner_shape is None:
        inner_shape = () if ragged_rank is None else _inner_shape(pylist, ragged_rank)
    if ragged_rank is None:
        ragged_rank = max(1, deepest - 1 if depth is None else depth - 1 - len(inner_shape))
    nested, values = [], pylist
    for _ in range(ragged_rank):
        lengths = [len(row) for row in values]
        nested.append(np.cumsum([0, *lengths]).astype(np.int64))
        values = [item for row in values for item in row]
    result: Any = tf.constant(values, dtype, shape=(len(values), *inner_shape))
    for splits in reversed(nested):
        result = make(result, splits, splits_dtype)
    return result


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or np.ndim(value) != 0


def _depths(value: Any) -> tuple[int | None, int]:
    """The depth of the numbers, None if there are none; and the depth of the deepest list."""
    if not _is_list(value):
        return 0, 0
    depth, deepest = None, 1
    for child in value:
        child_depth, child_deepest = _depths(child)
        if child_depth is not None:
            if depth is not None and depth != child_depth + 1:
                raise ValueError("all scalar values must have the same nesting depth")
            depth = child_depth + 1
        deepest = max(deepest, child_deepest + 1)
    return depth, deepest


def _check_depths(
    pylist: Any, depth: int | None, deepest: int, ragged_rank: int | None, inner_shape: Any
) -> None:
    if depth is not None:
        if deepest > depth:
            raise ValueError(
                f"Invalid pylist={pylist!r}: empty list nesting is greater than scalar value nesting"
            )
        if ragged_rank is not None and deepest < ragged_rank:
            raise ValueError(f"Invalid pylist={pylist}, max depth smaller than ragged_rank={ragged_rank}")
    if inner_shape is not None and ragged_rank is not None:
        declared = ragged_rank + len(inner_shape) + 1
        if (depth is not None and declared != depth) or (depth is None and declared < deepest):
            raise ValueError(
                f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank} and "
                f"dim(inner_shape)={len(inner_shape)}"
            )


def _inner_shape(pylist: Any, ragged_rank: int) -> tuple[int, ...]:
    """The common shape of the items below the ragged dimensions."""
    items = pylist
    for dim in range(ragged_rank):
        if not all(map(_is_list, items)):
            raise ValueError(
                f"pylist has scalar values depth {dim + 1}, but ragged_rank={ragged_rank} requires scalar value depth "
                f"greater than {ragged_rank}"
            )
        items = [item for row in items for item in row]
    shape: tuple[int, ...] = ()
    first: Any = items
    while _is_list(first):
        shape += (len(first),)
        if not len(first):
            break
        first = first[0]
    _check_shape(items, shape)
    return shape[1:]


def _check_shape(item: Any, shape: tuple[int, ...]) -> None:
    if _is_list(item) != bool(shape) or (shape and shape[0] != len(item)):
        raise ValueError("inner values have inconsistent shape")
    if shape:
        for child in item:
            _check_shape(child, shape[1:])
