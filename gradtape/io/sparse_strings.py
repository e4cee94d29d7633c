"""Sparse tensors as strings: serialize_sparse and its relatives, in TensorFlow's format.

A sparse tensor becomes three strings: its serialised indices, values and dense shape.
"""

from __future__ import annotations

from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError, UnimplementedError, Untraceable
from gradtape._src.tensors.conversion import as_tensor
from gradtape.io.raw import parse_tensor, serialize_tensor
from gradtape.sparse import SparseTensor


def _want_strings(out_type: Any) -> None:
    if dtypes.as_dtype(out_type) is not dtypes.string:
        raise UnimplementedError(None, None, f"sparse tensors become strings, not {out_type}.")


def _has_values(*tensors: Any) -> None:
    if any(t._symbol is not None for t in tensors):
        raise Untraceable("the number of elements of a sparse tensor depends on values")


@one_call
def serialize_sparse(sp_input: Any, out_type: Any = dtypes.string, name: str | None = None) -> _core.Tensor:
    """A sparse tensor as three strings: its indices, values and dense shape, as `serialize_tensor` writes them.

    >>> import gradtape as tf
    >>> one = tf.io.serialize_sparse(tf.SparseTensor([[1]], [2.0], [3]))
    >>> tf.sparse.to_dense(tf.io.deserialize_many_sparse([one, one], tf.float32)).numpy()
    array([[0., 2., 0.],
           [0., 2., 0.]], dtype=float32)
    """
    if not isinstance(sp_input, SparseTensor):
        raise TypeError(f"Input must be a SparseTensor, got {type(sp_input).__name__}.")
    _want_strings(out_type)
    return ops.stack([serialize_tensor(t) for t in (sp_input.indices, sp_input.values, sp_input.dense_shape)])


@one_call
def serialize_many_sparse(
    sp_input: Any, out_type: Any = dtypes.string, name: str | None = None
) -> _core.Tensor:
    """The rows of a sparse tensor as strings, three for each row, like a batch of results of `serialize_sparse`.

    Raises:
      InvalidArgumentError: if it has fewer than two dimensions.
    """
    if not isinstance(sp_input, SparseTensor):
        raise TypeError(f"Input must be a SparseTensor, got {type(sp_input).__name__}.")
    _want_strings(out_type)
    indices, values, shape = sp_input.indices, sp_input.values, sp_input.dense_shape
    _has_values(indices, values, shape)
    if shape.shape[0] < 2:
        raise InvalidArgumentError(
            None, None, f"Rank of input SparseTensor should be > 1, but saw rank: {shape.shape[0]}"
        )
    count = int(shape[0])
    if not count:
        return ops.zeros([0, 3], dtypes.string)
    rows = []
    for i in range(count):
        in_row = indices[:, 0] == i
        row = SparseTensor(
            ops.boolean_mask(indices, in_row)[:, 1:], ops.boolean_mask(values, in_row), shape[1:]
        )
        rows.append(serialize_sparse(row))
    return ops.stack(rows)


@one_call
def deserialize_many_sparse(
    serialized_sparse: Any, dtype: Any, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """The sparse tensor with the rows written by `serialize_sparse` or `serialize_many_sparse`.

    Args:
      serialized_sparse: strings of shape `[rows, 3]`.
      dtype: the type of the values.
      rank: the rank of the result, if known.

    Raises:
      InvalidArgumentError: if the strings are not sparse tensors of this type, or have different ranks. ValueError:
      if the result has another rank.
    """
    written = as_tensor(serialized_sparse)
    _has_values(written)
    if written.ndim != 2 or written.shape[1] != 3:
        raise InvalidArgumentError(
            None, None, f"Serialized sparse should have shape [rows, 3], but got shape {list(written.shape)}"
        )
    indices, values, shapes = [], [], []
    for i in range(written.shape[0]):
        at = parse_tensor(written[i, 0], dtypes.int64)
        first = ops.fill([at.shape[0], 1], ops.constant(i, dtypes.int64))
        indices.append(ops.concat([first, at], 1))
        values.append(parse_tensor(written[i, 1], dtype))
        shapes.append(parse_tensor(written[i, 2], dtypes.int64))
        if shapes[i].shape != shapes[0].shape:
            raise InvalidArgumentError(
                None, None, f"Inconsistent rank across SparseTensors: rank prior to SparseTensor[{i}] was: "
                f"{shapes[0].shape[0]} but rank of SparseTensor[{i}] is: {shapes[i].shape[0]}",
            )  # fmt: skip
    if not shapes:
        raise InvalidArgumentError(None, None, "Must have at least 1 serialized SparseTensor")
    if rank is not None and shapes[0].shape[0] + 1 != rank:
        raise ValueError(
            f"Tensor's rank {shapes[0].shape[0] + 1} is not compatible with the supplied rank {rank}."
        )
    largest = ops.reduce_max(ops.stack(shapes), 0)
    count = ops.constant([len(shapes)], dtypes.int64)
    return SparseTensor(ops.concat(indices, 0), ops.concat(values, 0), ops.concat([count, largest], 0))
