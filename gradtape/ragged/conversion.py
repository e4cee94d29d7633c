"""Conversion to and from dense and sparse tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import gradtape as tf
from gradtape._src.base import dtypes
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.room import want_room
from gradtape._src.base.shape import TensorShape
from gradtape._src.ops.runs import take_runs
from gradtape.ragged import rows
from gradtape.ragged.moving import as_ragged, take_ranges, uniform
from gradtape.ragged.partitions import as_partition
from gradtape.ragged.tensor import RaggedTensor, make, rank_of


@one_call
def to_tensor(rt: Any, default_value: Any = None, name: str | None = None, shape: Any = None) -> Any:
    """A dense tensor, with a default value at the ends of short rows.

    Args:
      default_value: the value that pads short rows; zeros if None.
      shape: a shape, with None or -1 for the longest row; longer rows are cut off.

    >>> import gradtape as tf
    >>> rt = tf.ragged.constant([[1, 2], [], [3]])
    >>> rt.to_tensor(default_value=-1).numpy().tolist()
    [[1, 2], [-1, -1], [3, -1]]
    >>> rt.to_tensor(shape=[None, 1]).numpy().tolist()
    [[1], [0], [3]]
    """
    flat = rt.flat_values
    inner = list(flat.shape[1:])
    sizes, starts, lengths, places = _places(rt, _wanted(rt, shape, inner))
    want_room(*sizes, *inner, item=rt.dtype.size)
    count, copied = math.prod(sizes), int(lengths.sum())
    if default_value is not None:
        default = tf.convert_to_tensor(default_value, rt.dtype)
        if rank_of(default) > len(inner):
            raise InvalidArgumentError(
                f"RaggedTensor.to_tensor: default_value.shape={default.shape} and rt_input.flat_values.shape="
                f"{flat.shape} are incompatible: default_value.rank = {default.shape.rank} must be less than "
                f"rt_input.flat_values.rank = {flat.shape.rank}"
            )
        default = tf.broadcast_to(default, inner)
    if count == copied == flat.shape[0]:
        return tf.reshape(flat, [*sizes, *inner])
    dense = tf.reshape(take_runs(flat, starts, lengths, places, count), [*sizes, *inner])
    if default_value is None or count == copied:
        return dense
    filled = take_runs(np.ones(flat.shape[:1], bool), starts, lengths, places, count)
    return tf.where(tf.reshape(filled, [*sizes, *[1] * len(inner)]), dense, default)


def _wanted(rt: RaggedTensor, shape: Any, inner: list) -> list:
    """The requested sizes, None for the longest row."""
    rank = rt.ragged_rank + 1
    if shape is None:
        return [None] * rank
    if isinstance(shape, (list, tuple)) and any(isinstance(v, tf.Tensor) for v in shape):
        shape = [None if v is None else int(rows.array_of(v)) for v in shape]
    if isinstance(shape, tf.Tensor):
        array = rows.array_of(shape)
        shape = None if array.ndim == 0 and array == -1 else array.tolist()
    if isinstance(shape, TensorShape):
        shape = None if shape.rank is None else shape.as_list()
    if shape is None:
        return [None] * rank
    sizes = [None if v is None or v == -1 else int(v) for v in shape]
    if len(sizes) != rank + len(inner):
        raise InvalidArgumentError(
            f"RaggedTensor.to_tensor: rt.shape={rt.shape} and shape={sizes} are incompatible: rt.rank = "
            f"{rank + len(inner)}, but shape.rank = {len(sizes)}"
        )
    negative = next((v for v in sizes if v is not None and v < 0), None)
    if negative is not None:
        raise ValueError(f"Dimension {negative} must be >= 0: shape={sizes} was asked for.")
    if any(w is not None and w != n for w, n in zip(sizes[rank:], inner, strict=True)):
        raise InvalidArgumentError(
            f"RaggedTensor.to_tensor: rt.shape={rt.shape} and shape={sizes} are incompatible: the inner dimensions of "
            f"the values are {inner}"
        )
    return sizes[:rank]


def _places(rt: RaggedTensor, given: list) -> tuple[list[int], np.ndarray, np.ndarray, np.ndarray]:
    """The sizes of the dense tensor; where its rows start in the flat values, their lengths, and their offsets in it."""
    partitions = [p.array() for p in rt._nested_row_partitions]
    n = len(partitions[0]) - 1
    sizes = [n if given[0] is None else given[0]]
    # The rows of a level that are in the dense tensor, and their offsets there.
    row: Any = slice(min(n, sizes[0]))
    place = starts = lengths = places = np.arange(row.stop)
    for level, (splits, size) in enumerate(zip(partitions, given[1:], strict=True)):
        if level:
            row, place = rows.ranges(starts, lengths), rows.ranges(places, lengths)
        starts, lengths = splits[:-1][row], np.diff(splits)[row]
        width = int(np.diff(splits).max(initial=0)) if size is None else size
        lengths, places = np.minimum(lengths, width), place * width
        sizes.append(width)
    return sizes, starts, lengths, places


@one_call
def from_tensor(
    tensor: Any,
    lengths: Any = None,
    padding: Any = None,
    ragged_rank: int = 1,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> Any:
    """A dense tensor as a ragged tensor.

    Args:
      lengths: the number of values to keep in each row; a tuple of lists of lengths, one for each ragged
        dimension.
      padding: a value that is removed at the ends of rows.
      ragged_rank: the number of dimensions that become ragged.

    >>> import gradtape as tf
    >>> tf.RaggedTensor.from_tensor([[1, 0, 0], [2, 3, 0]], padding=0)
    <tf.RaggedTensor [[1], [2, 3]]>
    """
    splits_dtype = dtypes.as_dtype(row_splits_dtype)
    if lengths is not None and padding is not None:
        raise ValueError("Specify argument `lengths` or `padding`, but not both.")
    if not isinstance(ragged_rank, int):
        raise TypeError(f"Argument `ragged_rank` must be an int. Received {ragged_rank}.")
    if ragged_rank <= 0:
        raise ValueError(f"Argument `ragged_rank` must be greater than 0. Received {ragged_rank}.")
    tensor = tf.convert_to_tensor(tensor)
    if tensor.shape.rank < 2:
        raise ValueError(
            "The rank of a RaggedTensor must be greater than 1, i.e., a list of scalars won't have ragged dimensions. "
            f"Received argument `tensor` with rank {tensor.shape.rank}."
        )
    tensor.shape.with_rank_at_least(ragged_rank + 1)
    if (
        isinstance(lengths, (list, tuple))
        and lengths
        and not isinstance(lengths[0], (int, float, np.integer))
    ):
        if ragged_rank not in (1, len(lengths)):
            raise ValueError(
                f"If Argument `lengths` is a tuple of row_lengths, argument `ragged_rank` must be len(lengths): "
                f"{len(lengths)}. Received ragged_rank: {ragged_rank}."
            )
        return _of_nested_lengths(tensor, lengths, splits_dtype)
    shape = list(tensor.shape)
    if ragged_rank > 1:
        flat = tf.reshape(tensor, [int(np.prod(shape[:ragged_rank])), *shape[ragged_rank:]])
        result = from_tensor(flat, lengths, padding, row_splits_dtype=splits_dtype)
        for axis in range(ragged_rank - 1, 0, -1):
            result = uniform(result, shape[axis], int(np.prod(shape[:axis])), splits_dtype.as_numpy_dtype)
        return result
    if padding is not None:
        is_value = _not_padding(tensor, padding)
        lengths = (is_value * np.arange(1, shape[1] + 1)).max(1, initial=0)
    if lengths is None:
        return as_ragged(tensor, 1, splits_dtype.as_numpy_dtype)
    given_lengths = rows.array_of(as_partition(lengths, "lengths", hint=splits_dtype))
    if given_lengths.ndim != 1:
        raise ValueError(f"Shape {given_lengths.shape} must have rank 1")
    if len(given_lengths) != shape[0]:
        raise ValueError(f"Shapes ({shape[0]},) and ({len(given_lengths)},) are incompatible")
    given_lengths = np.clip(given_lengths, 0, shape[1])
    flat = tf.reshape(tensor, [shape[0] * shape[1], *shape[2:]])
    values = take_ranges(flat, np.arange(shape[0]) * shape[1], given_lengths)
    return make(values, rows.splits_of(given_lengths), splits_dtype)


def _not_padding(tensor: Any, padding: Any) -> np.ndarray:
    """A mask of the columns of each row that are not padding."""
    padding = tf.convert_to_tensor(padding, tensor.dtype)
    if not padding.shape.is_compatible_with(tensor.shape[2:]):
        raise ValueError(f"Shapes {padding.shape} and {tensor.shape[2:]} are incompatible")
    same = rows.array_of(tensor) == rows.array_of(padding)
    return ~same.all(axis=tuple(range(2, same.ndim)))


def _of_nested_lengths(tensor: Any, lengths: Any, dtype: Any) -> Any:
    tensor.shape.with_rank_at_least(len(lengths) + 1)
    arrays = [rows.array_of(as_partition(v, "lengths", hint=dtype)) for v in lengths]
    shape = list(tensor.shape)
    rank = len(arrays)
    index = np.arange(shape[0])
    for size, row_lengths in zip(shape[1:], arrays[:-1], strict=False):
        index = rows.ranges(index[: len(row_lengths)] * size, row_lengths)
    flat: Any = tf.reshape(tensor, [math.prod(shape[: rank + 1]), *shape[rank + 1 :]])
    flat = take_ranges(flat, index[: len(arrays[-1])] * shape[rank], arrays[-1])
    for row_lengths in reversed(arrays):
        flat = make(flat, rows.splits_of(row_lengths))
    return flat


@one_call
def to_sparse(rt: Any, name: str | None = None) -> Any:
    """A sparse tensor with exactly the values of the rows.

    >>> import gradtape as tf
    >>> tf.ragged.constant([[1, 2], [], [3]]).to_sparse().indices.numpy().tolist()
    [[0, 0], [0, 1], [2, 0]]
    """
    partitions = [p.array() for p in rt._nested_row_partitions]
    columns = [np.arange(len(partitions[0]) - 1)]
    for splits in partitions:
        ids = rows.ids_of(splits)
        columns = [c[ids] for c in columns] + [rows.offsets_of(splits)]
    flat = rt.flat_values
    inner = list(flat.shape[1:])
    if inner:
        grid = np.stack(np.meshgrid(*map(np.arange, inner), indexing="ij"), -1).reshape(-1, len(inner))
        outer = np.repeat(np.stack(columns, -1), len(grid), 0)
        indices = np.concatenate([outer, np.tile(grid, (flat.shape[0], 1))], 1)
    else:
        indices = np.stack(columns, -1)
    shape = [len(partitions[0]) - 1, *[int(np.diff(s).max(initial=0)) for s in partitions], *inner]
    return tf.SparseTensor(
        tf.constant(indices.astype(np.int64)), tf.reshape(flat, [-1]), tf.constant(shape, tf.int64)
    )


def from_sparse(st_input: Any, name: str | None = None, row_splits_dtype: Any = dtypes.int64) -> Any:
    """The rows of a sparse matrix, which must have no gaps.

    >>> import gradtape as tf
    >>> st = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [1, 2, 3], [3, 4])
    >>> tf.RaggedTensor.from_sparse(st)
    <tf.RaggedTensor [[1, 2], [], [3]]>
    """
    if not isinstance(st_input, tf.SparseTensor):
        raise TypeError(
            f"Argument `st_input` must be of type SparseTensor, but is of type {type(st_input).__name__}."
        )
    if st_input.indices.shape[1] != 2:
        raise ValueError("rank(st_input) must be 2.")
    return _from_sparse(
        st_input.indices, st_input.values, st_input.dense_shape, dtypes.as_dtype(row_splits_dtype)
    )


@one_call
def _from_sparse(indices: Any, values: Any, dense_shape: Any, dtype: Any) -> Any:
    index = rows.array_of(indices)
    row, column = index[:, 0], index[:, 1]
    fits = np.where(row[1:] != row[:-1], column[1:] == 0, column[1:] == column[:-1] + 1)
    first = np.concatenate([column[:1] == 0, fits])
    if not first.all():
        at = rows.first(~first)
        raise InvalidArgumentError(
            f"SparseTensor is not right-ragged\nSparseTensor.indices = {index.tolist()}: indices[{at}] = "
            f"{index[at].tolist()} does not follow the one before."
        )
    lengths = rows.lengths_of(row, int(rows.array_of(dense_shape)[0]))
    return make(values, rows.splits_of(lengths), dtype)
