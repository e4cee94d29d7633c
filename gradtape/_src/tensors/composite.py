"""`CompositeTensor`: the base of values made of several tensors: IndexedSlices, ragged and sparse tensors, extension types.

Such a value has a spec, `_type_spec`, which defines how the value is split into tensors and rebuilt from them
(`gradtape/_src/base/type_spec.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape import _core
from gradtape._src.base import nest, type_spec
from gradtape._src.base.shape import TensorSpec
from gradtape._src.tensors import above


class CompositeTensor:
    """A value made of several tensors. A subclass has the property `_type_spec`."""

    __slots__ = ()

    # `nest` splits it into its tensors when it expands composites.
    _is_composite = True
    # The answer of `tf.is_tensor`: True for sparse and ragged tensors.
    _is_tensor = False

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

    def _printed(self, summarize: int, text: Callable[[Any], str]) -> str:
        """The text that `tf.print` prints: `text` formats a tensor, `summarize` is the argument of `tf.print`."""
        return repr(self)

    def _convert_variables_to_tensors(self) -> Any:
        """This value with tensors in place of variables."""
        return self


# ---- gradients ------------------------------------------------------------------------------------


class CompositeTensorGradient:
    """Which tensors of a value have gradients: TensorFlow's protocol, a class attribute `__composite_gradient__`."""

    def get_gradient_components(self, value: Any) -> Any:
        """The tensors that are differentiated, or that gradients are taken with respect to: a nest."""
        raise NotImplementedError(f"{type(self).__name__}.get_gradient_components()")

    def replace_gradient_components(self, value: Any, component_grads: Any) -> Any:
        """The gradient with respect to the value: a copy of it with gradients in place of these tensors."""
        raise NotImplementedError(f"{type(self).__name__}.replace_gradient_components()")


class WithValuesCompositeTensorGradient(CompositeTensorGradient):
    """Gradients of values that have `values` and `with_values`."""

    def get_gradient_components(self, value: Any) -> Any:
        """The values."""
        return value.values

    def replace_gradient_components(self, value: Any, component_grads: Any) -> Any:
        """The value with gradients as its values."""
        return value.with_values(component_grads)


def _gradient_components(value: Any) -> list:
    how = getattr(value, "__composite_gradient__", None)
    if how is None:
        raise ValueError(
            f"Type {type(value).__name__} is not supported as a gradient source or gradient target. Hint: its tensors are; "
            "or give the class a `__composite_gradient__`."
        )
    return [how.get_gradient_components(value)]


def _with_gradients(value: Any, grads: list) -> Any:
    return (
        None
        if grads[0] is None
        else value.__composite_gradient__.replace_gradient_components(value, grads[0])
    )


# How `nest` flattens targets and sources of tapes.
GRADIENTS = nest._Kind(lambda value: [type(value).__name__], _gradient_components, _with_gradients)


def _spec_of_tensor(tensor: Any) -> TensorSpec:
    return TensorSpec(tensor.shape, tensor.dtype)


type_spec.register_type_spec_from_value_converter(_core.Tensor, _spec_of_tensor, allow_subclass=True)
type_spec.convert = lambda value: above.ops.convert_to_tensor(value)
type_spec.stack = lambda values: above.ops.stack(values)
type_spec.take = lambda value, at: value[at] if isinstance(at, slice) else above.ops.gather(value, at)
