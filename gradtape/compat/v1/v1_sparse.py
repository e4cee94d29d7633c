"""`tf.compat.v1.sparse`: functions of sparse tensors whose arguments changed in version 2, or that it removed."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as _tf
from gradtape._src.base import dtypes
from gradtape._src.ops.static import array_of as _array_of
from gradtape._src.public import absent as _absent
from gradtape._src.tensors.conversion import as_tensor as _as_tensor
from gradtape.sparse import arranging as _arranging
from gradtape.sparse.tensor import SparseTensor as SparseTensor
from gradtape.sparse.tensor import as_sparse as _as_sparse
from gradtape.sparse.tensor import make_sparse as _make_sparse
from gradtape.sparse.tensor import places_of as _places_of
from gradtape.sparse.tensor import sizes_of as _sizes_of


def add(a: Any, b: Any, threshold: Any = None, thresh: Any = None) -> Any:
    """Like `tf.sparse.add`; `thresh` is the old name of `threshold`."""
    limit = threshold if thresh is None else thresh
    return _tf.sparse.add(a, b, 0 if limit is None else limit)


def concat(
    axis: Any = None, sp_inputs: Any = None, name: str | None = None, expand_nonconcat_dim: bool = False,
    concat_dim: Any = None, expand_nonconcat_dims: bool | None = None,
) -> Any:  # fmt: skip
    """Like `tf.sparse.concat`, with old names of its arguments."""
    expand = expand_nonconcat_dim if expand_nonconcat_dims is None else expand_nonconcat_dims
    return _tf.sparse.concat(concat_dim if axis is None else axis, sp_inputs, expand)


def split(
    keyword_required: Any = None, sp_input: Any = None, num_split: Any = None, axis: Any = None,
    name: str | None = None, split_dim: Any = None,
) -> Any:  # fmt: skip
    """Like `tf.sparse.split`; the arguments are given by name."""
    if keyword_required is not None:
        raise ValueError("Keyword arguments are required for this function.")
    return _tf.sparse.split(sp_input, num_split, split_dim if axis is None else axis)


def _reduction(function: str, sparse: bool) -> Any:
    def reduce(
        sp_input: Any, axis: Any = None, keepdims: Any = None, reduction_axes: Any = None, keep_dims: Any = None
    ) -> Any:  # fmt: skip
        axes, keep = (
            axis if reduction_axes is None else reduction_axes,
            keepdims if keep_dims is None else keep_dims,
        )
        return getattr(_tf.sparse, function)(sp_input, axes, keep, sparse)

    reduce.__name__ = function + "_sparse" * sparse
    reduce.__doc__ = (
        f"As `tf.sparse.{function}`, with old names of its arguments" + "; it is sparse." * sparse
    )
    return reduce


reduce_sum = _reduction("reduce_sum", False)
reduce_max = _reduction("reduce_max", False)
reduce_sum_sparse = _reduction("reduce_sum", True)
reduce_max_sparse = _reduction("reduce_max", True)


def merge(
    sp_ids: Any, sp_values: Any, vocab_size: Any, name: str | None = None, already_sorted: bool = False
) -> SparseTensor:
    """The values at places whose last coordinate is taken from `sp_ids`."""
    ids, values = _as_sparse(sp_ids), _as_sparse(sp_values)
    places = np.column_stack([_places_of(ids)[:, :-1], _array_of(ids.values)])
    out = _make_sparse(places, values.values, [*_sizes_of(ids)[:-1], int(_array_of(vocab_size))])
    return out if already_sorted else _arranging.reorder(out)


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Any:
    """Raises RuntimeError, as TensorFlow does in eager mode."""
    raise RuntimeError("`sparse_placeholder` is not compatible with eager execution.")


def to_dense_at(
    sparse_indices: Any, output_shape: Any, sparse_values: Any, default_value: Any = 0, validate_indices: bool = True,
    name: str | None = None,
) -> Any:  # fmt: skip
    """`tf.compat.v1.sparse_to_dense`: values (or one value) at places of a tensor that is `default_value` elsewhere."""
    places, values = _array_of(_as_tensor(sparse_indices)), _as_tensor(sparse_values)
    sizes = _array_of(_as_tensor(output_shape)).tolist()
    places = places.reshape(-1, 1) if places.ndim < 2 else places
    if values.ndim == 0:
        values = _tf.fill([len(places)], values)
    default = _tf.convert_to_tensor(default_value, values.dtype)
    return _arranging.to_dense(_make_sparse(places, values, sizes), default, validate_indices)


def convert_to_tensor_or_sparse_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A sparse tensor unchanged, anything else as a tensor; RuntimeError if a sparse one has another type."""
    if not isinstance(value, (SparseTensor, _tf.compat.v1.SparseTensorValue)):
        return _tf.convert_to_tensor(value, dtype)
    x = _as_sparse(value)
    if dtype is not None and dtypes.as_dtype(dtype) != x.dtype:
        raise RuntimeError(
            f"Sparse dtype mismatch. Requested: {dtypes.as_dtype(dtype).name},  Actual: {x.dtype.name}"
        )
    return x


def matmul(
    a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, a_is_sparse: bool = False,
    b_is_sparse: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """The product of dense matrices; the hints that they have many zeros are ignored."""
    return _tf.matmul(a, b, transpose_a, transpose_b)


def __getattr__(name: str) -> Any:
    return getattr(_tf.sparse, name)


def __dir__() -> list[str]:
    return _absent.names_beside(globals(), "sparse")
