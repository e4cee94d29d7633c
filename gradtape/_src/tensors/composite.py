"""`CompositeTensor`: the base of values that are made of tensors: IndexedSlices, ragged and sparse tensors, extension types.

Such a value knows its spec, `_type_spec`, and the spec knows how the value is taken apart and put together
(`gradtape/_src/base/type_spec.py`).
"""

from __future__ import annotations

from typing import Any

from gradtape import _core
from gradtape._src.base import type_spec
from gradtape._src.base.shape import TensorSpec
from gradtape._src.tensors import above


class CompositeTensor:
    """A value that is made of tensors. A subclass has the property `_type_spec`."""

    __slots__ = ()

    # `nest` takes it apart where it expands composites.
    _is_composite = True

    @property
    def _type_spec(self) -> Any:
        """The spec of this value."""
        raise NotImplementedError(f"{type(self).__name__}._type_spec()")

    def _shape_invariant_to_type_spec(self, shape: Any) -> Any:
        """The spec of a loop variable whose shape invariant is `shape`."""
        raise NotImplementedError(f"{type(self).__name__}._shape_invariant_to_type_spec")

    def _consumers(self) -> list:
        """The ops that use it: none in eager mode."""
        return []

    def _convert_variables_to_tensors(self) -> Any:
        """This value with tensors in place of variables."""
        return self


def _spec_of_tensor(tensor: Any) -> TensorSpec:
    return TensorSpec(tensor.shape, tensor.dtype)


type_spec.register_type_spec_from_value_converter(_core.Tensor, _spec_of_tensor, allow_subclass=True)
type_spec.convert = lambda value: above.ops.convert_to_tensor(value)
