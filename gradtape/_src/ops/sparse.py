"""Sparse tensors as results: what sets and decoders return, and how to make them dense.

A `SparseTensor` is a list of places and their values. There are no ops on it besides those here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes, errors
from gradtape._src.base.shape import TensorShape
from gradtape._src.ops.casting import cast
from gradtape._src.ops.creation import fill
from gradtape._src.ops.indexed import gather, gather_nd, scatter_nd, tensor_scatter_update
from gradtape._src.ops.static import array_of
from gradtape._src.ops.table import composite
from gradtape._src.tensors.conversion import as_tensor

__all__ = ["SparseTensor"]


@composite("SparseTensor sparse.SparseTensor")
class SparseTensor:
    """The elements of a tensor that are not 0: `values[i]` at `indices[i]` of a tensor of shape `dense_shape`."""

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self.indices = _long(indices)
        self.values = as_tensor(values)
        self.dense_shape = _long(dense_shape)
        if self.indices.ndim != 2 or self.values.ndim != 1 or self.indices.shape[0] != self.values.shape[0]:
            raise ValueError(
                f"SparseTensor: expected indices [n, rank] and values [n]; got {self.indices.shape} and {self.values.shape}."
            )
        if tuple(self.dense_shape.shape) != (self.indices.shape[1],):
            raise ValueError(
                f"SparseTensor: expected dense_shape [rank]; got {self.dense_shape.shape} for indices {self.indices.shape}."
            )

    @property
    def dtype(self) -> dtypes.DType:
        """The type of the values."""
        return self.values.dtype

    @property
    def shape(self) -> TensorShape:
        """The shape of the dense tensor that it stands for."""
        return TensorShape([int(d) for d in array_of(self.dense_shape)])

    def get_shape(self) -> TensorShape:
        """As `shape`."""
        return self.shape

    def __repr__(self) -> str:
        return f"SparseTensor(indices={self.indices!s}, values={self.values!s}, dense_shape={self.dense_shape!s})"


def _long(value: Any) -> _core.Tensor:
    x = as_tensor(value) if not isinstance(value, TensorShape) else as_tensor(np.array(value.as_list()))
    return x if x.dtype is dtypes.int64 else cast(x, dtypes.int64)


def _want_sparse(value: Any) -> None:
    if not isinstance(value, SparseTensor):
        raise TypeError(f"Input must be a SparseTensor; got {value!r}.")


@composite("sparse.to_dense")
def to_dense(sp_input, default_value=None, validate_indices=True, name=None):
    """A sparse tensor as a dense one, with `default_value` (0) where it has no value."""
    _want_sparse(sp_input)
    if validate_indices and sp_input.indices._symbol is None:
        places = array_of(sp_input.indices)
        steps = np.diff(np.ravel_multi_index(tuple(places.T), sp_input.shape.as_list(), mode="clip"))
        if (steps <= 0).any():
            wrong = int(np.argmax(steps <= 0)) + 1
            raise errors.InvalidArgumentError(
                f"to_dense: indices[{wrong}] = {places[wrong].tolist()} is out of order or repeated. "
                "Hint: tf.sparse.reorder."
            )
    shape = sp_input.shape.as_list()
    if default_value is None:
        return scatter_nd(sp_input.indices, sp_input.values, shape)
    full = fill(shape, as_tensor(default_value, sp_input.values))
    return tensor_scatter_update(full, sp_input.indices, sp_input.values)


@composite("sparse.from_dense")
def from_dense(tensor, name=None):
    """The elements of a tensor that are not 0, as a sparse tensor."""
    x = as_tensor(tensor)
    indices = np.argwhere(array_of(x))
    return SparseTensor(indices, gather_nd(x, as_tensor(indices)), np.array(x.shape, np.int64))


@composite("sparse.reorder")
def reorder(sp_input, name=None):
    """A sparse tensor with its elements in row-major order."""
    _want_sparse(sp_input)
    places = array_of(sp_input.indices)
    order = np.lexsort(places.T[::-1])
    return SparseTensor(places[order], gather(sp_input.values, order), sp_input.dense_shape)


# ---- sets: the rows along the last axis, without order and repetitions ---------------------------


def _rows(value: Any) -> tuple[dict, tuple[int, ...], Any]:
    """For each row the set of its values; the shape of the rows; the type."""
    if isinstance(value, SparseTensor):
        shape = tuple(int(d) for d in array_of(value.dense_shape))[:-1]
        sets: dict = {place: set() for place in np.ndindex(*shape)}
        for place, v in zip(array_of(value.indices).tolist(), array_of(value.values).tolist(), strict=True):
            sets[tuple(place[:-1])].add(v)
        return sets, shape, value.dtype
    x = as_tensor(value)
    if x.ndim == 0:
        raise ValueError("sets: a set is the last axis of a tensor; got a scalar.")
    if not x.dtype.is_integer:
        raise TypeError(f"sets: expected integers; got {x.dtype.name}.")
    values = array_of(x)
    return (
        {place: set(values[place].tolist()) for place in np.ndindex(*values.shape[:-1])},
        values.shape[:-1],
        x.dtype,
    )


def _combined(a: Any, b: Any, how: Any) -> SparseTensor:
    first, shape, dtype = _rows(a)
    second, other, _ = _rows(b)
    if not shape:
        raise errors.InvalidArgumentError("sets: Shape has rank 1 < 2; expected rows of sets.")
    if shape != other:
        raise errors.InvalidArgumentError(f"sets: Mismatched group shape {list(shape)} vs {list(other)}.")
    out = {place: sorted(how(first[place], second[place])) for place in first}
    indices = [(*place, i) for place, row in out.items() for i in range(len(row))]
    values = [v for row in out.values() for v in row]
    most = max((len(row) for row in out.values()), default=0)
    return SparseTensor(
        np.array(indices, np.int64).reshape(len(indices), len(shape) + 1),
        np.array(values, dtype.as_numpy_dtype),
        np.array([*shape, most], np.int64),
    )


@composite("sets.intersection sets.set_intersection")
def intersection(a, b, validate_indices=True):
    """What is in both sets, for each pair of rows."""
    return _combined(a, b, lambda x, y: x & y)


@composite("sets.union sets.set_union")
def union(a, b, validate_indices=True):
    """What is in one of two sets, for each pair of rows."""
    return _combined(a, b, lambda x, y: x | y)


@composite("sets.difference sets.set_difference")
def difference(a, b, aminusb=True, validate_indices=True):
    """What is in `a` and not in `b` (or the other way round), for each pair of rows."""
    return _combined(a, b, (lambda x, y: x - y) if aminusb else (lambda x, y: y - x))


@composite("sets.size sets.set_size")
def size(a, validate_indices=True):
    """How many different values each row of a sparse tensor has."""
    if not isinstance(a, SparseTensor):
        raise TypeError(f"Expected `SparseTensor`, got {a!r}.")
    sets, shape, _ = _rows(a)
    return as_tensor(np.array([len(s) for s in sets.values()], np.int32).reshape(shape))
