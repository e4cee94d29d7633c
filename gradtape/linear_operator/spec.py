"""Operators as composite tensors: how one is taken apart and put together.

An operator consists of its class, the tensors and operators among its constructor's arguments, and the other arguments.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import nest
from gradtape._src.base.shape import TensorSpec
from gradtape._src.base.type_spec import BatchableTypeSpec, TypeSpec
from gradtape._src.graph.static import get_static_value
from gradtape._src.state.variable_spec import VariableSpec

_HINTS = ("is_non_singular", "is_self_adjoint", "is_positive_definite", "is_square")
_specs: dict[type, type[OperatorSpec]] = {}


class OperatorSpec(BatchableTypeSpec):
    """The spec of an operator: specs of the tensor arguments, and the other arguments. Each class has its own."""

    __slots__ = ("_param_specs", "_non_tensor_params", "_prefer_static_fields")

    def __init__(self, param_specs: dict, non_tensor_params: dict, prefer_static_fields: tuple) -> None:
        self._param_specs = param_specs
        self._non_tensor_params = non_tensor_params
        self._prefer_static_fields = prefer_static_fields

    @classmethod
    def from_operator(cls, operator: Any) -> OperatorSpec:
        """The spec of an operator.

        Raises:
          NotImplementedError: if an argument is a nest of tensors and other values.
        """
        specs, others = {}, {}
        for name, value in _arguments(operator).items():
            spec = nest.map_structure(_spec_of, value)
            tensors = [isinstance(x, TypeSpec) for x in nest.flatten(spec)]
            if tensors and all(tensors):
                specs[name] = spec
            elif not any(tensors):
                others[name] = value
            else:
                raise NotImplementedError(
                    f"Field {name} contains a mix of `Tensor` and  non-`Tensor` values."
                )
        static = tuple(getattr(operator, "_composite_tensor_prefer_static_fields", ()))
        return cls(specs, others, static)

    def _serialize(self) -> tuple:
        return self._param_specs, self._non_tensor_params, self._prefer_static_fields

    @property
    def _component_specs(self) -> Any:
        return self._param_specs

    def _to_components(self, value: Any) -> dict:
        arguments = _arguments(value)
        return {name: arguments[name] for name in self._param_specs}

    def _from_components(self, components: dict) -> Any:
        return self.value_type(**self._non_tensor_params, **components)

    def _with_params(self, change: Any) -> OperatorSpec:
        specs = nest.map_structure(change, self._param_specs)
        return type(self)(specs, self._non_tensor_params, self._prefer_static_fields)

    def _batch(self, batch_size: int | None) -> OperatorSpec:
        return self._with_params(lambda spec: spec._batch(batch_size))

    def _unbatch(self) -> OperatorSpec:
        return self._with_params(lambda spec: spec._unbatch())


def spec_of(operator: Any) -> OperatorSpec:
    """The spec of an operator, an instance of a class created for the operator's class."""
    cls = type(operator)
    if cls not in _specs:
        _specs[cls] = type(f"{cls.__name__}Spec", (OperatorSpec,), {"value_type": cls, "__slots__": ()})
    return _specs[cls].from_operator(operator)


def make_composite_tensor(cls: type, module_name: str = "tf.linalg") -> type:
    """A decorator for operator classes; it changes nothing, as operators are composite tensors already."""
    return cls


def _spec_of(value: Any) -> Any:
    if isinstance(value, _core.Variable):
        return VariableSpec(value.shape, value.dtype, value.trainable)
    if nest.is_composite(type(value)):
        return value._type_spec
    return TensorSpec(value.shape, value.dtype) if isinstance(value, _core.Tensor) else value


def _arguments(operator: Any) -> dict[str, Any]:
    """The arguments that recreate the operator, without its name."""
    fields = getattr(operator, "_composite_tensor_fields", None)
    if fields is None:
        parameters = inspect.signature(type(operator).__init__).parameters
        fields = [name for name in parameters if name not in ("self", "name", *_HINTS)]
    static = getattr(operator, "_composite_tensor_prefer_static_fields", ())
    parameters = inspect.signature(type(operator).__init__).parameters
    arguments = {}
    for name in dict.fromkeys((*fields, *_HINTS)):
        if name not in parameters:
            continue
        value = _argument(operator, name)
        if name in static and isinstance(value, _core.Tensor):
            known_value = get_static_value(value)
            value = value if known_value is None else known_value
        arguments[name] = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    return arguments


def _argument(operator: Any, name: str) -> Any:
    for attribute in (f"_{name}", name):
        if hasattr(operator, attribute):
            value = getattr(operator, attribute)
            if not inspect.ismethod(value):
                return value
    parameters = operator.parameters
    if name in parameters:
        return parameters[name]
    if name in _HINTS or name in ("assert_proper_shapes", "batch_shape", "dtype"):
        return inspect.signature(type(operator).__init__).parameters[name].default
    raise ValueError(f"{type(operator).__name__}: the value of the argument {name!r} is not known.")
