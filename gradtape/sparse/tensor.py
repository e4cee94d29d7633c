"""`tf.SparseTensor`: the positions and values of nonzero elements; its spec, and its form in TensorFlow 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.room import want_room
from gradtape._src.base.shape import TensorShape, TensorSpec, as_shape
from gradtape._src.base.type_spec import BatchableTypeSpec
from gradtape._src.graph.static import get_static_value
from gradtape._src.ops.creation import convert_to_tensor
from gradtape._src.ops.indexed import gather
from gradtape._src.ops.join import concat
from gradtape._src.ops.sparse_products import sparse_rows
from gradtape._src.ops.static import array_of
from gradtape._src.tensors.composite import CompositeTensor
from gradtape.sparse import boxes


class SparseTensorValue(NamedTuple):
    """A sparse tensor whose parts are arrays, as returned by sessions of TensorFlow 1."""

    indices: Any
    values: Any
    dense_shape: Any


class SparseTensor(CompositeTensor):
    """The nonzero elements of a tensor: `values[i]` at `indices[i]` of a tensor of shape `dense_shape`.

    Functions expect the elements in row-major order; `tf.sparse.reorder` sorts them.

    Args:
      indices: int64 of shape `[n, rank]`.
      values: of any type, of shape `[n]`.
      dense_shape: int64 of shape `[rank]`.

    >>> import gradtape as tf
    >>> x = tf.SparseTensor([[0, 1], [1, 2]], [4.0, 5.0], [2, 3])
    >>> tf.sparse.to_dense(x * 2.0).numpy()
    array([[ 0.,  8.,  0.],
           [ 0.,  0., 10.]], dtype=float32)
    """

    _is_tensor = True

    # Otherwise NumPy would treat it as an object array and multiply element by element.
    __array_ufunc__ = None
    _rows: Any = None  # see rows_of

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self._indices = _tensor(indices, dtypes.int64)
        self._values = _tensor(values)
        self._dense_shape = _tensor(dense_shape, dtypes.int64)
        places, sizes = self._indices.shape.with_rank(2), self._dense_shape.shape.with_rank(1)
        _same_size(places[0], self._values.shape.with_rank(1)[0])
        _same_size(places[1], sizes[0])
        static = get_static_value(self._dense_shape)
        if static is None:
            rank = places[1] if sizes[0] is None else sizes[0]
            self._shape = TensorShape(None if rank is None else [None] * rank)
        else:
            self._shape = TensorShape([None if d < 0 else d for d in static.tolist()])

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """A SparseTensor from a SparseTensor or a `tf.compat.v1.SparseTensorValue`."""
        if not isinstance(sparse_tensor_value, (SparseTensor, SparseTensorValue)):
            raise TypeError(
                f"Argument sparse_tensor_value={sparse_tensor_value} is neither a SparseTensor nor SparseTensorValue."
            )
        x = sparse_tensor_value
        return SparseTensor(x.indices, x.values, x.dense_shape)

    @property
    def indices(self) -> _core.Tensor:
        """The positions of the values: int64 of shape `[n, rank]`."""
        return self._indices

    @property
    def values(self) -> _core.Tensor:
        """The values, of shape `[n]`."""
        return self._values

    @property
    def dense_shape(self) -> _core.Tensor:
        """The shape of the dense tensor, as an int64 vector."""
        return self._dense_shape

    @property
    def dtype(self) -> dtypes.DType:
        """The type of the values."""
        return self._values.dtype

    @property
    def shape(self) -> TensorShape:
        """The shape of the dense tensor, as far as it is known while a function is traced."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """The same as `shape`."""
        return self._shape

    def set_shape(self, shape: Any) -> None:
        """Merges a static shape into that of the tensor; ValueError if they contradict."""
        self._shape = self._shape.merge_with(shape)

    def with_values(self, new_values: Any) -> SparseTensor:
        """The same positions with other values, which may have another type."""
        out = SparseTensor(self._indices, new_values, self._dense_shape)
        out._shape, out._rows = self._shape, self._rows
        return out

    # In eager mode tensors have no op or graph; these raise the error of `values`.

    @property
    def op(self) -> Any:
        """The op of `values`."""
        return getattr(self._values, "op")  # noqa: B009  tensors of programs have none

    @property
    def graph(self) -> Any:
        """The graph of `indices`."""
        return getattr(self._indices, "graph")  # noqa: B009

    def eval(self, feed_dict: Any = None, session: Any = None) -> SparseTensorValue:
        """Not supported: there are no sessions."""
        return self.graph.eval(feed_dict, session)

    def consumers(self) -> list:
        """The ops that use it: none in eager mode."""
        return []

    def __repr__(self) -> str:
        return f"SparseTensor(indices={self._indices!s}, values={self._values!s}, dense_shape={self._dense_shape!s})"

    def _printed(self, summarize: int, text: Callable[[Any], str]) -> str:
        parts = text(self._indices), text(self._values), text(self._dense_shape)
        return "'SparseTensor(indices={}, values={}, shape={})'".format(*parts)

    # --- as a composite --------------------------------------------------------------------

    @property
    def _type_spec(self) -> SparseTensorSpec:
        return SparseTensorSpec(self._shape, self.dtype)

    def _shape_invariant_to_type_spec(self, shape: Any) -> SparseTensorSpec:
        # As in `tf.while_loop`: the shape of `dense_shape`, a vector.
        if shape.rank is not None and shape.rank != 1:
            raise ValueError(
                f"Expected a shape with 1 dimension. Obtained: {shape} which has {shape.rank} dimensions."
            )
        rank = None if shape.rank is None else shape[0]
        return SparseTensorSpec(None if rank is None else [None] * rank, self.dtype)

    def _numpy(self) -> np.ndarray:
        want_room(*sizes_of(self), item=array_of(self._values).itemsize)
        out = np.zeros(sizes_of(self), array_of(self._values).dtype)
        out[tuple(array_of(self._indices).T)] = array_of(self._values)
        return out


def _tensor(value: Any, dtype: Any = None) -> _core.Tensor:
    # A tensor is not converted by a recorded call, because it may be composed of trial tensors.
    if type(value) is _core.Tensor and (dtype is None or value.dtype is dtype):
        return value
    return convert_to_tensor(value, dtype)


def _same_size(a: int | None, b: int | None) -> None:
    if a != b and a is not None and b is not None:
        raise ValueError(f"Dimensions {a} and {b} are not compatible")


class SparseTensorSpec(BatchableTypeSpec):
    """The spec of a `tf.SparseTensor`: the shape of the dense tensor, None where unknown, and the type of the values.

    >>> import gradtape as tf
    >>> spec = tf.SparseTensorSpec([None, 3], tf.int32)
    >>> spec.is_compatible_with(tf.SparseTensor([[0, 1]], [7], [2, 3]))
    True
    """

    __slots__ = ("_shape", "_dtype")

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32) -> None:
        self._shape = as_shape(shape)
        self._dtype = dtypes.as_dtype(dtype)

    @property
    def value_type(self) -> type:
        """`tf.SparseTensor`."""
        return SparseTensor

    @property
    def shape(self) -> TensorShape:
        """The shape of the dense tensor."""
        return self._shape

    @property
    def dtype(self) -> dtypes.DType:
        """The type of the values."""
        return self._dtype

    @classmethod
    def from_value(cls, value: Any) -> SparseTensorSpec:
        """The spec of a sparse tensor."""
        if not isinstance(value, (SparseTensor, SparseTensorValue)):
            raise TypeError(
                f"Expected SparseTensor or SparseTensorValue. Received: {value} of type {type(value).__name__}."
            )
        x = SparseTensor.from_value(value) if isinstance(value, SparseTensorValue) else value
        return cls(x.shape, x.dtype)

    def _serialize(self) -> tuple:
        return self._shape, self._dtype

    @property
    def _component_specs(self) -> list:
        rank = self._shape.rank
        return [
            TensorSpec([None, rank], dtypes.int64),
            TensorSpec([None], self._dtype),
            TensorSpec([rank], dtypes.int64),
        ]

    def _to_components(self, value: Any) -> list:
        x = SparseTensor.from_value(value) if isinstance(value, SparseTensorValue) else value
        return [x.indices, x.values, x.dense_shape]

    def _from_components(self, components: Any) -> SparseTensor:
        out = SparseTensor(*components)
        out._shape = out._shape.merge_with(self._shape)
        return out

    # Batches are made from boxes (boxes.py), since sparse tensors with different numbers of elements cannot be stacked.

    @property
    def _flat_tensor_specs(self) -> list:
        return [TensorSpec(None, dtypes.string)]

    def _to_tensor_list(self, value: Any) -> list:
        x = SparseTensor.from_value(value)
        return [boxes.stacked([boxes.boxed(places_of(x), x.values, sizes_of(x))], [])]

    def _to_batched_tensor_list(self, value: Any) -> list:
        x = SparseTensor.from_value(value)
        places, sizes = places_of(x), sizes_of(x)
        if not sizes:
            raise ValueError(
                f"Unbatching a sparse tensor is only supported for rank >= 1. Obtained input: {x}."
            )
        rows = [np.flatnonzero(places[:, 0] == k) for k in range(want_room(sizes[0], item=64))]
        parts = [boxes.boxed(places[at, 1:], gather(x.values, at), sizes[1:]) for at in rows]
        return [boxes.stacked(parts, [sizes[0]])]

    def _from_compatible_tensor_list(self, tensor_list: Any) -> SparseTensor:
        places, values, sizes = boxes.opened(tensor_list[0], self._dtype)
        lead = tensor_list[0].shape.rank - 1  # the boxes have their number
        if self._shape.rank is not None:
            inner = zip(sizes[lead:], self._shape[lead:], strict=True)
            sizes = [*sizes[:lead], *(n if d is None else d for n, d in inner)]
        return make_sparse(places, values, sizes)

    def _made_up(self, parts: list, given: list[bool], style: int) -> list:
        # For tracing with trial sizes: elements in order, in a tensor that has room for them.
        n, rank = parts[0].shape
        free = min(n + style % 3, int(4096 ** (1 / max(rank, 1))))
        sizes = [free if d is None else d for d in self._shape] if self._shape.rank == rank else [free] * rank
        room = int(np.prod(sizes))
        at = (
            np.linspace(0, max(room - 1, 0), n).astype(np.int64) if style % 2 else np.arange(n) % max(room, 1)
        )
        places = np.stack(np.unravel_index(at, sizes), -1) if room and rank else np.zeros([n, rank])
        return [convert_to_tensor(places, dtypes.int64), parts[1], convert_to_tensor(sizes, dtypes.int64)]

    def _batch(self, batch_size: int | None) -> SparseTensorSpec:
        return SparseTensorSpec(TensorShape([batch_size]).concatenate(self._shape), self._dtype)

    def _unbatch(self) -> SparseTensorSpec:
        if self._shape.rank == 0:
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        return SparseTensorSpec(self._shape[1:], self._dtype)

    def _stacked(self, values: Sequence[Any]) -> SparseTensor:
        """Values of this spec as the rows of one; a row is as long as the longest."""
        places = [np.insert(places_of(v), 0, i, axis=1) for i, v in enumerate(values)]
        sizes = np.max([sizes_of(v) for v in values], axis=0)
        return make_sparse(
            np.concatenate(places), concat([v.values for v in values], 0), [len(values), *sizes]
        )

    def _rows_at(self, value: SparseTensor, at: Any) -> SparseTensor:
        """The rows at a slice or at indices."""
        numbers = range(*at.indices(sizes_of(value)[0])) if isinstance(at, slice) else array_of(at).tolist()
        return self._unbatch()._stacked([self._row_at(value, i) for i in numbers])

    def _row_at(self, value: SparseTensor, at: int) -> SparseTensor:
        places = places_of(value)
        chosen = np.flatnonzero(places[:, 0] == at)
        return make_sparse(places[chosen, 1:], gather(value.values, chosen), sizes_of(value)[1:])

    def _with_tensor_ranks_only(self) -> SparseTensorSpec:
        # For functions that take batches of any size: the shape of a row stays known, since products need it.
        shape = self._shape
        return SparseTensorSpec([None, *shape[1:]] if shape.rank else shape, self._dtype)

    def _to_legacy_output_types(self) -> dtypes.DType:
        return self._dtype

    def _to_legacy_output_shapes(self) -> TensorShape:
        return self._shape

    def _to_legacy_output_classes(self) -> type:
        return SparseTensor


# ---- what the functions of this folder start with ------------------------------------------------


def as_sparse(value: Any) -> SparseTensor:
    """A SparseTensor, or a SparseTensorValue as one; TypeError for anything else."""
    if isinstance(value, SparseTensor):
        return value
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    raise TypeError(f"Input must be a SparseTensor. Got {type(value).__name__}.")


def sizes_of(x: SparseTensor) -> list[int]:
    """The sizes of the dense tensor as numbers."""
    if x.shape.is_fully_defined():
        return x.shape.as_list()  # type: ignore[return-value]
    return array_of(x.dense_shape).tolist()


def places_of(x: SparseTensor) -> np.ndarray:
    """The indices as an array."""
    return array_of(x.indices)


def rows_of(x: SparseTensor) -> tuple[_core.Tensor, _core.Tensor] | None:
    """Where the rows of a matrix start, and the columns of its elements: computed once, for all products with it.

    None if the elements are not in the order of their rows, or while a function is traced.
    """
    if _core.current_trace() is not None or len(sizes_of(x)) != 2:
        return None
    if x._rows is None:
        starts, columns, in_order = sparse_rows(x._indices, sizes_of(x))
        x._rows = (starts, columns) if bool(in_order) else ()
    return x._rows or None


def make_sparse(places: Any, values: Any, sizes: Any) -> SparseTensor:
    """A sparse tensor from indices, values and sizes, which are not checked."""
    shape = np.array([int(d) for d in sizes], np.int64)
    return SparseTensor(np.reshape(places, [values.shape[0], len(shape)]).astype(np.int64), values, shape)
