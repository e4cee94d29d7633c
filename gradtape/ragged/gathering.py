"""`tf.gather` and `tf.gather_nd` with ragged params or ragged indices."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as tf
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError
from gradtape.ragged import rows
from gradtape.ragged.arrays import expand_dims, tile
from gradtape.ragged.conversion import to_tensor
from gradtape.ragged.making import as_values
from gradtape.ragged.moving import as_ragged, size_of, take, uniform
from gradtape.ragged.tensor import RaggedTensor, make, match_splits, positive_axis


@one_call
def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: Any = 0,
    name: str | None = None,
) -> Any:
    """`tf.gather`: rows, or values of rows, by index."""
    params, indices = match_splits(as_values(params), as_values(indices))
    rank = indices.shape.rank
    if batch_dims is None:
        batch_dims = 0
    if batch_dims != rank:
        batch_dims = positive_axis(batch_dims, rank, "batch_dims", "rank(indices)")
    if batch_dims >= params.shape.rank:
        raise ValueError("batch_dims must be less than rank(params)")
    axis = batch_dims if axis is None else axis
    axis = positive_axis(axis, params.shape.rank, bound="rank(params)")
    if axis < batch_dims:
        raise ValueError("axis must be greater than or equal to batch_dims")
    return _gather(params, indices, axis, batch_dims)


def _gather(params: Any, indices: Any, axis: int, batch_dims: int) -> Any:
    if not (isinstance(params, RaggedTensor) or isinstance(indices, RaggedTensor)):
        return tf.gather(params, indices, axis=axis, batch_dims=batch_dims)
    if batch_dims > 0:
        return _batch_gather(params, indices, axis, batch_dims)
    if axis > 1:
        params = as_ragged(params, 1, _splits_type(indices))
        return params.with_values(_gather(params._values, indices, axis - 1, 0))
    if axis == 1:
        return _columns(params, indices)
    if isinstance(indices, RaggedTensor):
        return indices.with_values(_gather(params, indices._values, 0, 0))
    array = rows.array_of(indices)
    _check_range(array, size_of(params))
    result = take(params, array.reshape(-1))
    if array.ndim == 0:
        return result._values
    dtype = params._row_partition.array().dtype
    for a in range(array.ndim - 1, 0, -1):
        result = make(result, np.arange(int(np.prod(array.shape[:a])) + 1, dtype=dtype) * array.shape[a])
    return result


def _splits_type(value: Any) -> Any:
    return value._row_partition.array().dtype if isinstance(value, RaggedTensor) else np.int64


def _check_range(array: np.ndarray, limit: Any) -> None:
    wrong = (array < 0) | (array >= limit)
    if wrong.any():
        at = tuple(int(i[0]) for i in np.nonzero(wrong))
        top = np.broadcast_to(limit, array.shape)[at]
        raise InvalidArgumentError(f"indices{list(at) if at else ''} = {array[at]} is not in [0, {top})")


def _starts_and_lengths(params: Any) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(params, RaggedTensor):
        splits = params._row_partition.array()
        return splits[:-1], np.diff(splits)
    n, m = params.shape[0], params.shape[1]
    return np.arange(n) * m, np.full(n, m)


def _values(params: Any) -> Any:
    """The first two dimensions merged into one."""
    if isinstance(params, RaggedTensor):
        return params._values
    return tf.reshape(params, [params.shape[0] * params.shape[1], *params.shape[2:]])


def _columns(params: Any, indices: Any) -> Any:
    """Gathers the same indices in each row."""
    n = size_of(params)
    dtype = _splits_type(params if isinstance(params, RaggedTensor) else indices)
    if isinstance(indices, RaggedTensor):
        repeated = take(uniform(indices, size_of(indices), 1, dtype), np.zeros(n, np.int64))
    else:
        repeated = tf.broadcast_to(indices, [n, *indices.shape])
    return _batch_gather(params, repeated, 1, 1)


def _batch_gather(params: Any, indices: Any, axis: int, batch_dims: int) -> Any:
    if not params.shape[:batch_dims].is_compatible_with(indices.shape[:batch_dims]):
        raise ValueError(
            f"batch shape from indices {indices.shape[:batch_dims]} does not match params shape {params.shape}"
        )
    if batch_dims > 1:
        words = (
            "batch shape from indices does not match params shape: ragged {} dimension corresponds to uniform {} "
            "dimension"
        )
        if not isinstance(params, RaggedTensor):
            if indices.uniform_row_length is None:
                raise ValueError(words.format("indices", "params"))
            params = as_ragged(params, 1, _splits_type(indices))
        if not isinstance(indices, RaggedTensor):
            if params.uniform_row_length is None:
                raise ValueError(words.format("params", "indices"))
            indices = as_ragged(indices, 1, _splits_type(params))
        if not np.array_equal(params._row_partition.array(), indices._row_partition.array()):
            raise InvalidArgumentError(
                "batch shape from indices does not match params shape: rows have other lengths"
            )
        return params.with_values(_gather(params._values, indices._values, axis - 1, batch_dims - 1))
    starts, lengths = _starts_and_lengths(params)
    if axis > 1:
        params = as_ragged(params, 1, _splits_type(indices))
        repeated = take(indices, np.repeat(np.arange(len(lengths)), lengths))
        return _batch_gather(params, params.with_values(repeated), axis, 2)
    row, index = _flat_with_rows(indices)
    if len(lengths) != size_of(indices):
        raise InvalidArgumentError(
            f"batch shape from indices does not match params shape: {size_of(indices)} and {len(lengths)} rows"
        )
    limits = lengths[row].reshape(-1, *[1] * (index.ndim - 1))
    _check_range(index, limits)
    adjusted = rows.tensor_of(index + starts[row].reshape(limits.shape))
    adjusted = indices.with_flat_values(adjusted) if isinstance(indices, RaggedTensor) else adjusted
    return _gather(_values(params), adjusted, 0, 0)


def _flat_with_rows(indices: Any) -> tuple[np.ndarray, np.ndarray]:
    """For each flat index, its outermost row; and the flat indices."""
    row = np.arange(size_of(indices))
    while isinstance(indices, RaggedTensor):
        row = row[rows.ids_of(indices._row_partition.array())] if len(row) else row
        if indices.ragged_rank:
            indices = indices._values
    return row, rows.array_of(indices)


@one_call
def gather_nd(
    params: Any, indices: Any, batch_dims: Any = 0, name: str | None = None, bad_indices_policy: str = ""
) -> Any:
    """`tf.gather_nd`: values by all of their coordinates."""
    if not isinstance(batch_dims, int) or batch_dims != 0:
        raise ValueError("batch_dims != 0 is not supported for ragged gather yet.")
    if bad_indices_policy not in ("", "DEFAULT"):
        raise ValueError("non-default bad_indices_policy not supported for ragged gather")
    params, indices = match_splits(as_values(params), as_values(indices))
    rank = indices.shape.rank
    if rank == 0:
        raise ValueError("indices.rank must be at least 1.")
    if isinstance(indices, RaggedTensor) and rank == indices.ragged_rank + 1:
        raise ValueError("The innermost dimension of indices may not be ragged")
    if not isinstance(params, RaggedTensor):
        return indices.with_flat_values(tf.gather_nd(params, indices.flat_values))
    if rank > 2:
        dense = not isinstance(indices, RaggedTensor)
        indices = as_ragged(indices, rank - 2, params._row_partition.array().dtype)
        result = indices.with_flat_values(gather_nd(params, indices.flat_values))
        if dense and isinstance(result, RaggedTensor) and result.ragged_rank == rank - 2:
            return to_tensor(result)
        return result
    array = rows.array_of(indices)
    if array.shape[-1] == 0:
        for _ in range(rank - 1):
            params = expand_dims(params, 0)
        return tile(params, [*array.shape[:-1], *[1] * (params.shape.rank - rank + 1)])
    if array.shape[-1] == 1:
        return _gather(params, tf.reshape(indices, [-1]), 0, 0)
    at = array[..., 0]
    _check_range(at, size_of(params))
    for dim in range(1, array.shape[-1]):
        if not isinstance(params, RaggedTensor):
            return tf.gather_nd(params, np.concatenate([at[..., None], array[..., dim:]], -1))
        splits = params._row_partition.array()
        _check_range(array[..., dim], np.diff(splits)[at])
        at = splits[at] + array[..., dim]
        params = params._values
    if isinstance(params, RaggedTensor):
        return _gather(params, tf.constant(at), 0, 0)
    return tf.gather(params, at)
