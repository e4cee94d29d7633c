"""`IndexedSlices`: a gradient that touches only some rows of a variable.

The gradient of `tf.gather` and `tf.nn.embedding_lookup`: rows (`values`) and their positions
(`indices`). A row may occur more than once; its values are then summed. The tape creates and sums
them, optimizers apply them; everything else converts them to a dense tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape._src.base import dtypes, nest
from gradtape._src.base.errors import Untraceable
from gradtape._src.base.shape import TensorShape, TensorSpec
from gradtape._src.base.type_spec import TypeSpec
from gradtape._src.tensors import above
from gradtape._src.tensors.composite import GRADIENTS, CompositeTensor, WithValuesCompositeTensorGradient


class IndexedSlices(CompositeTensor):
    """Rows of a tensor that is zero elsewhere: `dense[indices[i]] += values[i]`.

    It has no arithmetic besides negation. `tf.convert_to_tensor(slices)` makes it dense, and so does passing it to
    any op, or using an operator with a tensor.

    Args:
      values: the rows, shape `[n, ...]`.
      indices: their positions along the first axis, integers of shape `[n]`.
      dense_shape: the shape of the dense tensor, as a tensor or tuple; None if unknown.

    >>> import numpy as np
    >>> from gradtape._src.tensors.indexed_slices import IndexedSlices
    >>> g = IndexedSlices(np.ones([2, 3], "float32"), np.array([0, 4]), (5, 3))
    >>> g.shape, g.dtype
    (TensorShape([5, 3]), tf.float32)
    """

    _is_tensor = True

    __slots__ = ("_values", "_indices", "_dense_shape", "__weakref__")
    __composite_gradient__ = WithValuesCompositeTensorGradient()

    # Otherwise NumPy would treat it as an object array and multiply element by element.
    __array_ufunc__ = None

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self._values = values
        self._indices = indices
        self._dense_shape = dense_shape

    @property
    def values(self) -> Any:
        """The rows."""
        return self._values

    @property
    def indices(self) -> Any:
        """The position of each row."""
        return self._indices

    @property
    def dense_shape(self) -> Any:
        """The shape of the dense tensor as an int32 tensor, or None.

        Stored as a tuple; the tensor is made on access.
        """
        if isinstance(self._dense_shape, (tuple, TensorShape)):
            self._dense_shape = above.ops.constant(list(self._dense_shape), dtype="int32")
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        """The shape of the dense tensor, `TensorShape(None)` if unknown."""
        if self._dense_shape is None or isinstance(self._dense_shape, (tuple, list, TensorShape)):
            return TensorShape(self._dense_shape)
        sizes = above.static.get_static_value(self._dense_shape)
        return TensorShape([None, *self._values.shape[1:]] if sizes is None else sizes.tolist())

    def get_shape(self) -> TensorShape:
        """The same as `shape`."""
        return self.shape

    @property
    def dtype(self) -> dtypes.DType:
        """The type of the values."""
        return dtypes.as_dtype(self._values.dtype)

    # In eager mode tensors have no name, op or graph: these raise the error of `values`.

    @property
    def name(self) -> Any:
        """The name of `values`."""
        return self._values.name

    @property
    def device(self) -> Any:
        """The device of `values`."""
        return self._values.device

    @property
    def op(self) -> Any:
        """The op of `values`."""
        return self._values.op

    @property
    def graph(self) -> Any:
        """The graph of `values`."""
        return self._values.graph

    def consumers(self) -> list:
        """The ops that use it: none in eager mode."""
        return []

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(-self._values, self._indices, self._dense_shape)

    def __repr__(self) -> str:
        shape = "" if self._dense_shape is None else f", dense_shape={self.shape}"
        return f"IndexedSlices(indices={self._indices}, values={self._values}{shape})"

    def _printed(self, summarize: int, text: Callable[[Any], str]) -> str:
        if self._dense_shape is not None:
            return text(self._dense())
        return f"IndexedSlices({text(self._values)}, {text(self._indices)})"

    def _dense(self) -> Any:
        """The dense tensor, with repeated rows summed.

        Raises:
          ValueError: if the dense shape is unknown.
        """
        if self._dense_shape is None:
            raise ValueError(
                "convert_to_tensor: Tensor conversion requested for IndexedSlices without "
                f"dense_shape; expected a dense_shape; got {self}. Hint: "
                "IndexedSlices(values, indices, dense_shape)."
            )
        shape = self.shape
        if not shape.is_fully_defined():
            raise Untraceable("convert_to_tensor: the shape of an IndexedSlices depends on values")
        return above.ops.scatter_rows_add(self._values, self._indices, tuple(shape))

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any:
        """TensorFlow's protocol, through which operators of tensors and ops accept it."""
        return above.ops.convert_to_tensor(self._dense(), dtype)

    @property
    def _type_spec(self) -> IndexedSlicesSpec:
        rows, count = self._values.shape, TensorShape(self._indices.shape)[0]
        # The dense shape may know sizes that the values do not.
        shape = self.shape.merge_with(TensorShape([None]).concatenate(rows[1:]))
        whole = self.dense_shape
        dense_shape_dtype = None if whole is None else dtypes.as_dtype(whole.dtype)
        return IndexedSlicesSpec(shape, self.dtype, self._indices.dtype, dense_shape_dtype, [count])

    def with_values(self, values: Any) -> IndexedSlices:
        """The same slices with other values."""
        return IndexedSlices(values, self._indices, self._dense_shape)

    def _shape_invariant_to_type_spec(self, shape: Any) -> IndexedSlicesSpec:
        spec = self._type_spec
        return IndexedSlicesSpec(
            shape, spec._dtype, spec._indices_dtype, spec._dense_shape_dtype, spec._indices_shape
        )


class IndexedSlicesSpec(TypeSpec):
    """The spec of an `IndexedSlices`.

    Args:
      shape: the shape of the dense tensor; None for any.
      dtype: the type of the values.
      indices_dtype: int32 or int64.
      dense_shape_dtype: the type of `dense_shape`; None if there is none.
      indices_shape: the shape of the indices.

    >>> import gradtape as tf
    >>> tf.IndexedSlicesSpec([5, 3], tf.float32, tf.int32).is_compatible_with(
    ...     tf.IndexedSlices(tf.ones([2, 3]), tf.constant([0, 4]))
    ... )
    True
    """

    __slots__ = ("_shape", "_dtype", "_indices_dtype", "_dense_shape_dtype", "_indices_shape")

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        indices_dtype: Any = dtypes.int64,
        dense_shape_dtype: Any = None,
        indices_shape: Any = None,
    ) -> None:
        self._shape = TensorShape(shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._indices_dtype = dtypes.as_dtype(indices_dtype)
        self._dense_shape_dtype = None if dense_shape_dtype is None else dtypes.as_dtype(dense_shape_dtype)
        self._indices_shape = TensorShape(indices_shape).with_rank(1)

    @property
    def value_type(self) -> type[IndexedSlices]:
        """The class of the values that the spec describes."""
        return IndexedSlices

    def _serialize(self) -> tuple:
        return self._shape, self._dtype, self._indices_dtype, self._dense_shape_dtype, self._indices_shape

    @property
    def _component_specs(self) -> tuple:
        rows = self._indices_shape.concatenate(self._shape[1:])
        specs = TensorSpec(rows, self._dtype), TensorSpec(self._indices_shape, self._indices_dtype)
        if self._dense_shape_dtype is None:
            return specs
        return *specs, TensorSpec([self._shape.rank], self._dense_shape_dtype)

    def _to_components(self, value: Any) -> tuple:
        parts = value.values, value.indices
        return parts if value.dense_shape is None else (*parts, value.dense_shape)

    def _from_components(self, components: Any) -> IndexedSlices:
        return IndexedSlices(*components)


def flat_gradients(gradients: Any) -> list:
    """A nest of gradients as a flat list: gradients of composite values are split; sparse gradients are not."""
    flat = nest.flatten(gradients)
    if nest.are_plain(flat):
        return flat
    return [y for x in flat for y in ([x] if isinstance(x, IndexedSlices) else nest.flatten(x, GRADIENTS))]
