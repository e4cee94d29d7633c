"""`tf.RaggedTensorSpec`: the spec of a ragged tensor; splits it into tensors and rebuilds it."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as tf
from gradtape._src.base import dtypes
from gradtape._src.base.shape import TensorShape, TensorSpec
from gradtape._src.base.type_spec import BatchableTypeSpec, type_spec_from_value
from gradtape.ragged import rows
from gradtape.ragged.joining import rows_after_rows
from gradtape.ragged.making import as_values
from gradtape.ragged.moving import as_ragged, size_of
from gradtape.ragged.partitions import INTERNAL, RowPartition
from gradtape.ragged.tensor import RaggedTensor, make


class RaggedTensorSpec(BatchableTypeSpec):
    """The spec of a ragged tensor: an argument of a function, an element of a dataset.

    Args:
      shape: the sizes; None for ragged or unknown ones.
      dtype: the type of the values.
      ragged_rank: the number of dimensions that may be ragged; all but the first if None. With 0 it describes
        dense tensors.
      row_splits_dtype: int64 or int32.

    >>> import gradtape as tf
    >>> spec = tf.RaggedTensorSpec([None, None], tf.int32)
    >>> spec.is_compatible_with(tf.ragged.constant([[1, 2], [3]]))
    True
    """

    __slots__ = ("_shape", "_dtype", "_ragged_rank", "_row_splits_dtype", "_flat_values_spec")

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        ragged_rank: int | None = None,
        row_splits_dtype: Any = dtypes.int64,
        flat_values_spec: Any = None,
    ) -> None:
        self._shape = TensorShape(shape)
        self._row_splits_dtype = dtypes.as_dtype(row_splits_dtype)
        if flat_values_spec is not None:
            if dtype is None:
                dtype = flat_values_spec.dtype
            elif dtype != flat_values_spec.dtype:
                raise ValueError("dtype must be the same as flat_values_spec.dtype")
        elif dtype is None:
            raise ValueError("At least one of dtype or flat_values_spec must be provided")
        self._dtype = dtypes.as_dtype(dtype)
        self._flat_values_spec = flat_values_spec
        rank = self._shape.rank
        if ragged_rank is None:
            if rank is None:
                raise ValueError("Must specify ragged_rank or a shape with a known rank.")
            ragged_rank = rank - 1
        if not isinstance(ragged_rank, int):
            raise TypeError(f"Argument `ragged_rank` must be an int. Received {ragged_rank}.")
        if rank is not None and ragged_rank >= rank:
            raise ValueError(f"Argument `ragged_rank` ({ragged_rank}) must be less than rank ({rank}).")
        self._ragged_rank = ragged_rank

    @classmethod
    def from_value(cls, value: Any) -> RaggedTensorSpec:
        """The spec of a ragged tensor."""
        return cls(value.shape, value.dtype, value.ragged_rank, value.row_splits.dtype)

    @property
    def shape(self) -> TensorShape:
        """The sizes; None for ragged or unknown ones."""
        return self._shape

    @property
    def dtype(self) -> dtypes.DType:
        """The type of the values."""
        return self._dtype

    @property
    def ragged_rank(self) -> int:
        """The number of dimensions that may be ragged."""
        return self._ragged_rank

    @property
    def row_splits_dtype(self) -> dtypes.DType:
        """The type of the splits."""
        return self._row_splits_dtype

    @property
    def flat_values_spec(self) -> Any:
        """The spec of the flat values, if it was given."""
        return self._flat_values_spec

    @property
    def value_type(self) -> Any:
        """The class of the values it describes."""
        return RaggedTensor if self._ragged_rank > 0 else tf.Tensor

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a ragged tensor, or one of another spec, fits this spec."""
        if self._ragged_rank == 0 and isinstance(spec_or_value, (tf.Tensor, TensorSpec)):
            return TensorSpec(self._shape, self._dtype).is_compatible_with(spec_or_value)
        return super().is_compatible_with(spec_or_value)

    def _serialize(self) -> tuple:
        plain = (self._shape, self._dtype, self._ragged_rank, self._row_splits_dtype)
        return plain if self._flat_values_spec is None else (*plain, self._flat_values_spec)

    @property
    def _component_specs(self) -> list:
        if self._ragged_rank <= 0:
            return [self._flat_values_spec or TensorSpec(self._shape, self._dtype)]
        flat = self._flat_values_spec
        if flat is None:
            inner = TensorShape(None) if self._shape.rank is None else self._shape[self._ragged_rank + 1 :]
            flat = TensorSpec(TensorShape([None]).concatenate(inner), self._dtype)
        nrows = None if self._shape.rank is None else self._shape[0]
        splits = [TensorSpec([None if nrows is None else nrows + 1], self._row_splits_dtype)]
        return [flat, *splits, *[TensorSpec([None], self._row_splits_dtype)] * (self._ragged_rank - 1)]

    def _to_components(self, value: Any) -> list:
        if isinstance(value, RaggedTensor):
            return [value.flat_values, *value.nested_row_splits]
        return [value]

    def _from_components(self, components: Any) -> Any:
        result, *nested = components
        if isinstance(result, np.ndarray):
            result, *nested = map(tf.convert_to_tensor, components)
        for axis in range(len(nested), 0, -1):
            size = None if self._shape.rank is None else self._shape[axis]
            length = None
            if size is not None:
                length = rows.tensor_of(np.asarray(size), self._row_splits_dtype)
            partition = RowPartition(nested[axis - 1], uniform_row_length=length, internal=INTERNAL)
            result = RaggedTensor(result, partition, internal=INTERNAL)
        return result

    def _made_up(self, components: list, fixed: list[bool], style: int) -> list:
        """Consistent components for a ragged tensor, of about the given sizes; fixed components are kept."""
        if self._ragged_rank <= 0:
            return components
        flat, *nested = components
        all_splits = []
        count = nested[0].shape[0] - 1
        for axis, splits in enumerate(nested, 1):
            below = nested[axis].shape[0] - 1 if axis < len(nested) else flat.shape[0]
            if not fixed[axis]:
                size = None if self._shape.rank is None else self._shape[axis]
                splits = rows.tensor_of(_made_up_splits(max(count, 0), below, size, style), splits.dtype)
            all_splits.append(splits)
            count = int(rows.array_of(splits)[-1])
        if not fixed[0]:
            values = rows.array_of(flat)
            shape = (count, *values.shape[1:])
            flat = rows.tensor_of(np.resize(values, shape) if values.size else np.zeros(shape, values.dtype))
        return [flat, *all_splits]

    def _batch(self, batch_size: int | None) -> RaggedTensorSpec:
        self._refuse_flat_values_spec()
        shape = TensorShape([batch_size]).concatenate(self._shape)
        return RaggedTensorSpec(shape, self._dtype, self._ragged_rank + 1, self._row_splits_dtype)

    def _unbatch(self) -> RaggedTensorSpec:
        self._refuse_flat_values_spec()
        return RaggedTensorSpec(self._shape[1:], self._dtype, self._ragged_rank - 1, self._row_splits_dtype)

    def _stacked(self, values: Any) -> Any:
        """Values of this spec as the rows of one ragged tensor."""
        parts = [as_values(v) for v in values]
        if self._ragged_rank < 0:
            return tf.stack(parts)
        dtype = self._row_splits_dtype.as_numpy_dtype
        parts = [as_ragged(v, self._ragged_rank, dtype) for v in parts]
        lengths = np.array([size_of(v) for v in parts], dtype)
        whole = self._batch(len(parts))
        stacked = make(rows_after_rows(parts), rows.splits_of(lengths)).with_row_splits_dtype(dtype)
        return whole._from_components(whole._to_components(stacked))

    def _rows_at(self, value: Any, at: Any) -> Any:
        """The rows of a ragged tensor at a slice or at indices."""
        return value[at] if isinstance(at, slice) else tf.gather(value, at)

    def _row_at(self, value: Any, at: int) -> Any:
        return value[at]

    def _refuse_flat_values_spec(self) -> None:
        if self._flat_values_spec is not None:
            raise ValueError("Customized value_type is not supported.")

    def _to_legacy_output_types(self) -> dtypes.DType:
        return self._dtype

    def _to_legacy_output_shapes(self) -> TensorShape:
        return self._shape

    def _to_legacy_output_classes(self) -> RaggedTensorSpec:
        return self


def _made_up_splits(count: int, below: int, size: int | None, style: int) -> np.ndarray:
    """Splits of `below` values into `count` rows, in one of three ways; or into rows of one size."""
    if size is not None:
        return np.arange(count + 1) * size
    if count == 0:
        return np.zeros(1, int)
    at = np.arange(count + 1)
    return (at * below // count, np.where(at > 0, below, 0), np.where(at < count, 0, below))[style % 3]


def spec_of(value: RaggedTensor) -> RaggedTensorSpec:
    """The spec of a ragged tensor."""
    if isinstance(value.flat_values, tf.Tensor):
        return RaggedTensorSpec.from_value(value)
    flat = type_spec_from_value(value.flat_values)
    return RaggedTensorSpec(value.shape, value.dtype, value.ragged_rank, value.row_splits.dtype, flat)
