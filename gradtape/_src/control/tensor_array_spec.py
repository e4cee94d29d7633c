"""`tf.TensorArraySpec`: what a TensorArray looks like."""

from __future__ import annotations

from typing import Any

from gradtape._src.base import dtypes
from gradtape._src.base.shape import TensorShape
from gradtape._src.base.type_spec import TypeSpec, register_type_spec_from_value_converter
from gradtape._src.control.tensor_array import TensorArray


class TensorArraySpec(TypeSpec):
    """What a `tf.TensorArray` looks like: the type and shape of its elements, and whether it grows.

    >>> import gradtape as tf
    >>> tf.TensorArraySpec.from_value(tf.TensorArray(tf.float32, 3, element_shape=[2]))
    TensorArraySpec(TensorShape([2]), tf.float32, False, True)
    """

    __slots__ = ("_element_shape", "_dtype", "_dynamic_size", "_infer_shape")

    _is_composite = False

    def __init__(
        self,
        element_shape: Any = None,
        dtype: Any = dtypes.float32,
        dynamic_size: bool = False,
        infer_shape: bool = True,
    ) -> None:
        self._element_shape = TensorShape(element_shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._dynamic_size = dynamic_size
        self._infer_shape = infer_shape

    @classmethod
    def from_value(cls, value: Any) -> TensorArraySpec:
        """The spec of an array.

        Raises:
          TypeError: if it is something else.
        """
        if not isinstance(value, TensorArray):
            raise TypeError(f"Expected value to be a TensorArray, but got: {type(value)}.")
        return cls(value.element_shape, value.dtype, value.dynamic_size, value._infer_shape)

    @property
    def value_type(self) -> type[TensorArray]:
        """The class of what is described."""
        return TensorArray

    def _serialize(self) -> tuple:
        return self._element_shape, self._dtype, self._dynamic_size, self._infer_shape


register_type_spec_from_value_converter(TensorArray, TensorArraySpec.from_value, allow_subclass=True)
