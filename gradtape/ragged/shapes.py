"""`tf.experimental.DynamicRaggedShape`: the shape of a ragged tensor, with the lengths of all rows."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as tf
from gradtape._src.base import dtypes
from gradtape._src.base.shape import TensorShape, TensorSpec
from gradtape._src.base.type_spec import TypeSpec
from gradtape._src.tensors.composite import CompositeTensor
from gradtape.ragged import rows
from gradtape.ragged.elementwise import broadcast
from gradtape.ragged.making import as_values
from gradtape.ragged.partitions import INTERNAL, RowPartition
from gradtape.ragged.spec import RaggedTensorSpec
from gradtape.ragged.tensor import RaggedTensor, positive_axis


class DynamicRaggedShape(CompositeTensor):
    """The shape of a tensor or ragged tensor: partitions of the dimensions that may be ragged, sizes of the others.

    Args:
      row_partitions: partitions, the outermost one first.
      inner_shape: the shape of the flat values.
      dtype: int64 or int32.

    >>> import gradtape as tf
    >>> shape = tf.shape(tf.ragged.constant([[1, 2], [3]]))
    >>> shape
    <DynamicRaggedShape lengths=[2, (2, 1)] num_row_partitions=1>
    >>> tf.ones(shape)
    <tf.RaggedTensor [[1.0, 1.0], [1.0]]>
    """

    def __init__(
        self,
        row_partitions: Any,
        inner_shape: Any,
        dtype: Any = None,
        validate: bool = False,
        static_inner_shape: Any = None,
    ) -> None:
        if not isinstance(row_partitions, (list, tuple)):
            raise TypeError(
                f"row_partitions should be a list of row partitions. Instead, got {row_partitions}"
            )
        for p in row_partitions:
            if not isinstance(p, RowPartition):
                raise TypeError(f"row_partitions contains {p} which is not a RowPartition")
        if dtype is None:
            given = row_partitions[0].dtype if row_partitions else getattr(inner_shape, "dtype", tf.int64)
            dtype = given if given in (tf.int32, tf.int64) else tf.int64
        self._dtype = dtypes.as_dtype(dtype)
        self._row_partitions = tuple(p.with_dtype(self._dtype) for p in row_partitions)
        sizes = inner_shape if isinstance(inner_shape, tf.Tensor) else np.asarray(list(inner_shape), int)
        self._inner_shape = tf.cast(sizes, self._dtype)
        if validate:
            self._check()

    def _check(self) -> None:
        counts = [p.nrows() for p in self._row_partitions[1:]]
        ends = [int(p.array()[-1]) for p in self._row_partitions]
        for i, (end, count) in enumerate(zip(ends, counts, strict=False)):
            if end != int(rows.array_of(count)):
                raise ValueError(
                    f"RowPartition {i} has {end} values, and the next one has {int(count)} rows."
                )
        if ends and ends[-1] != int(rows.array_of(self._inner_shape)[0]):
            raise ValueError("Last row partition does not match inner_shape.")

    @classmethod
    def from_lengths(
        cls, lengths: Any, num_row_partitions: int | None = None, dtype: Any = tf.int64
    ) -> DynamicRaggedShape:
        """The shape with these sizes: a number if all rows have the same length, a tuple of lengths if they differ."""
        if not isinstance(lengths, (list, tuple)):
            raise ValueError("lengths should be a list")
        for x in lengths:
            if not isinstance(x, (int, tuple)):
                raise ValueError(f"element of lengths should be int or tuple of ints: instead {x!r}")
        needed = max((i for i, x in enumerate(lengths) if isinstance(x, tuple)), default=0)
        count = needed if num_row_partitions is None else num_row_partitions
        if count < needed or (lengths and count >= len(lengths)):
            raise ValueError("num_row_partitions should be less than `len(lengths)` if shape is not scalar.")
        partitions, n = [], lengths[0] if lengths else 1
        for x in lengths[1 : count + 1]:
            if isinstance(x, tuple):
                if len(x) != n:
                    raise ValueError(f"Shape not consistent: {len(x)} lengths for {n} rows.")
                partitions.append(RowPartition.from_row_lengths(list(x), dtype=dtype))
                n = sum(x)
            else:
                partitions.append(RowPartition.from_uniform_row_length(x, nrows=n, dtype=dtype))
                n *= x
        inner = [n, *lengths[count + 1 :]] if lengths else []
        return cls(partitions, inner, dtype)

    @classmethod
    def from_row_partitions(cls, row_partitions: Any, dtype: Any = None) -> DynamicRaggedShape:
        """The shape of a ragged tensor of scalars with these partitions."""
        if not row_partitions:
            raise ValueError("row_partitions cannot be empty")
        last = row_partitions[-1].nvals()
        return cls(row_partitions, tf.reshape(last, [1]), dtype)

    @classmethod
    def from_tensor(cls, t: Any, dtype: Any = None) -> DynamicRaggedShape:
        """The shape of a tensor or ragged tensor."""
        t = as_values(t)
        if isinstance(t, RaggedTensor):
            inner = tf.shape(t.flat_values, out_type=t._row_partition.dtype)
            return cls(t._nested_row_partitions, inner, dtype or t._row_partition.dtype)
        return cls([], tf.shape(t, out_type=dtype or tf.int64), dtype or tf.int64)

    @property
    def row_partitions(self) -> tuple[RowPartition, ...]:
        """The partitions, the outermost one first."""
        return self._row_partitions

    @property
    def num_row_partitions(self) -> int:
        """The number of partitions."""
        return len(self._row_partitions)

    @property
    def dtype(self) -> dtypes.DType:
        """The integer type of the sizes."""
        return self._dtype

    @property
    def inner_shape(self) -> Any:
        """The shape of the flat values."""
        return self._inner_shape

    @property
    def inner_rank(self) -> int:
        """The rank of the flat values."""
        return self._inner_shape.shape[0]

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return self.inner_rank + self.num_row_partitions

    def is_uniform(self, axis: int) -> bool:
        """Whether a dimension has one size."""
        if not isinstance(axis, int):
            raise TypeError("axis must be an integer")
        axis = positive_axis(axis, self.rank)
        return axis == 0 or axis > self.num_row_partitions or self._row_partitions[axis - 1].is_uniform()

    def static_lengths(self, ragged_lengths: bool = True) -> list:
        """The sizes, with a tuple of lengths (or None) for a ragged dimension."""
        first: Any = int(rows.array_of(self._inner_shape)[0]) if self.rank else None
        if not self.rank:
            return []
        inner = rows.array_of(self._inner_shape).tolist()
        if not self._row_partitions:
            return inner
        first = self._row_partitions[0].static_nrows
        sizes = []
        for p in self._row_partitions:
            length = p.static_uniform_row_length
            ragged = tuple(np.diff(p.array()).tolist()) if ragged_lengths else None
            sizes.append(ragged if length is None else length)
        return [first, *sizes, *inner[1:]]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            sizes = [self[i] for i in range(self.rank)[index]]
            return tf.stack(sizes) if sizes else tf.zeros([0], self._dtype)
        if not isinstance(index, int):
            raise TypeError("Argument is not an int or a slice")
        if index >= self.rank:
            raise IndexError(f"Index is too big: {index}>={self.rank}")
        index = positive_axis(index, self.rank)
        if index == 0:
            return self._row_partitions[0].nrows() if self._row_partitions else self._inner_shape[0]
        if index > self.num_row_partitions:
            return self._inner_shape[index - self.num_row_partitions]
        length = self._row_partitions[index - 1].uniform_row_length()
        if length is None:
            raise ValueError(f"Index {index} is not uniform")
        return length

    def with_dtype(self, dtype: Any) -> DynamicRaggedShape:
        """The same with sizes of another integer type."""
        return DynamicRaggedShape(self._row_partitions, self._inner_shape, dtype)

    @property
    def _type_spec(self) -> DynamicRaggedShapeSpec:
        sizes = [p.static_uniform_row_length for p in self._row_partitions]
        return DynamicRaggedShapeSpec(TensorShape(sizes), self.inner_rank, self._dtype)

    def _num_elements(self) -> Any:
        return tf.reduce_prod(self._inner_shape)

    def filled(self, make: Any) -> Any:
        """A tensor of this shape; `make` returns its flat values from their shape."""
        return RaggedTensor._from_nested_row_partitions(
            make(self._inner_shape), self._row_partitions, validate=False
        )

    def __eq__(self, other: Any) -> Any:
        return isinstance(other, DynamicRaggedShape) and self.static_lengths() == other.static_lengths()

    def __hash__(self) -> int:
        return hash(str(self.static_lengths()))

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.static_lengths()))
        return f"<DynamicRaggedShape lengths=[{sizes}] num_row_partitions={self.num_row_partitions}>"


class DynamicRaggedShapeSpec(TypeSpec):
    """The spec of the shape of a ragged tensor: the sizes of uniform partitions, and the number of others."""

    __slots__ = ("_sizes", "_inner_rank", "_dtype")

    def __init__(self, sizes: TensorShape, inner_rank: int, dtype: dtypes.DType) -> None:
        self._sizes, self._inner_rank, self._dtype = sizes, inner_rank, dtype

    @property
    def value_type(self) -> type[DynamicRaggedShape]:
        """The class of the values it describes."""
        return DynamicRaggedShape

    def _serialize(self) -> tuple:
        return self._sizes, self._inner_rank, self._dtype

    @property
    def _component_specs(self) -> list:
        splits = [TensorSpec([None], self._dtype)] * len(self._sizes)
        return [TensorSpec([self._inner_rank], self._dtype), *splits]

    def _to_components(self, value: DynamicRaggedShape) -> list:
        return [value.inner_shape, *[p.row_splits() for p in value.row_partitions]]

    def _from_components(self, components: Any) -> DynamicRaggedShape:
        inner, *nested = components
        lengths = [
            None if size is None else rows.tensor_of(np.asarray(size), self._dtype) for size in self._sizes
        ]
        partitions = [
            RowPartition(splits, uniform_row_length=length, internal=INTERNAL)
            for splits, length in zip(nested, lengths, strict=True)
        ]
        return DynamicRaggedShape(partitions, inner, self._dtype)

    def _made_up(self, components: list, fixed: list[bool], style: int) -> list:
        """Splits that are consistent with each other and the shape, as in `RaggedTensorSpec`."""
        inner, *nested = components
        if not nested:
            return components
        sizes = TensorShape([None, *self._sizes])
        spec = RaggedTensorSpec(sizes, tf.bool, len(nested), self._dtype)
        flat, *all_splits = spec._made_up(
            [tf.zeros([nested[-1].shape[0]], tf.bool), *nested], [False, *fixed[1:]], style
        )
        if not fixed[0]:
            others = np.ones(self._inner_rank - 1, int)
            inner = rows.tensor_of(np.array([flat.shape[0], *others]), self._dtype)
        return [inner, *all_splits]


def shape(input: Any, out_type: Any = None, name: str | None = None) -> DynamicRaggedShape:  # noqa: A002
    """`tf.shape`."""
    return DynamicRaggedShape.from_tensor(input, out_type or tf.int32)


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Any:  # noqa: A002
    """`tf.broadcast_to`."""
    if not isinstance(shape, DynamicRaggedShape):
        raise TypeError("shape must be a DynamicRaggedShape")
    x = as_values(input)
    if not shape.row_partitions:
        return tf.broadcast_to(x, shape.inner_shape)
    target = shape.filled(lambda sizes: tf.zeros(sizes, tf.bool))
    if isinstance(x, RaggedTensor):
        x = x.with_row_splits_dtype(shape.dtype)
    fitted = broadcast(x, target)[0]
    return target.with_flat_values(tf.broadcast_to(fitted.flat_values, shape.inner_shape))


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Any:
    """`tf.broadcast_dynamic_shape`."""
    shapes = [
        s if isinstance(s, DynamicRaggedShape) else DynamicRaggedShape([], s) for s in (shape_x, shape_y)
    ]
    dtype = next((s.dtype for s in shapes if s.row_partitions), shapes[0].dtype)
    x, y = (s.with_dtype(dtype).filled(lambda sizes: tf.zeros(sizes, tf.bool)) for s in shapes)
    if not (isinstance(x, RaggedTensor) or isinstance(y, RaggedTensor)):
        return DynamicRaggedShape(
            [], tf.broadcast_dynamic_shape(shapes[0].inner_shape, shapes[1].inner_shape)
        )
    new_x, new_y = broadcast(x, y)
    return DynamicRaggedShape.from_tensor(
        new_x.with_flat_values(tf.logical_or(new_x.flat_values, new_y.flat_values)), dtype
    )


def ones(shape: Any, dtype: Any = tf.float32, name: str | None = None, layout: Any = None) -> Any:
    """`tf.ones`."""
    return shape.filled(lambda sizes: tf.ones(sizes, dtype))


def zeros(shape: Any, dtype: Any = tf.float32, name: str | None = None, layout: Any = None) -> Any:
    """`tf.zeros`."""
    return shape.filled(lambda sizes: tf.zeros(sizes, dtype))


def fill(dims: Any, value: Any, name: str | None = None, layout: Any = None) -> Any:
    """`tf.fill`."""
    return dims.filled(lambda sizes: tf.fill(sizes, value))


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Any:
    """`tf.reshape`."""
    x = as_values(tensor)
    flat = x.flat_values if isinstance(x, RaggedTensor) else x
    if isinstance(shape, DynamicRaggedShape):
        return shape.filled(lambda sizes: tf.reshape(flat, sizes))
    return tf.reshape(flat, shape)
