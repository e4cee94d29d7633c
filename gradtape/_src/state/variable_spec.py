"""`VariableSpec`: the type of a variable argument of a function."""

from __future__ import annotations

from typing import Any

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.shape import TensorShape
from gradtape._src.base.type_spec import TypeSpec, register_type_spec_from_value_converter
from gradtape._src.state.variable import Variable


class CastError(TypeError):
    """A value does not fit the kind that was traced."""


class VariableSpec(TypeSpec):
    """The spec of a variable argument. Arguments that are the same variable have the same `alias_id`."""

    __slots__ = ("shape", "dtype", "trainable", "alias_id")

    _is_composite = False

    def __init__(self, shape: Any, dtype: Any, trainable: bool = True, alias_id: int | None = None) -> None:
        self.shape = TensorShape(shape)
        self.dtype = dtypes.as_dtype(dtype)
        self.trainable = trainable
        self.alias_id = alias_id

    @property
    def value(self) -> Any:
        """The form of the argument in a signature."""
        return self

    def cast(self, value: Any) -> Any:
        """The variable, if it is of this type and shape."""
        if isinstance(value, _core.Variable):
            mine = VariableSpec(value.shape, value.dtype, value.trainable, self.alias_id)
            if mine == self:
                return value
            value = mine
        raise CastError(f"Can not cast {value!r} to {self!r}")

    @property
    def value_type(self) -> type[Variable]:
        """The class of the values it describes."""
        return Variable

    @classmethod
    def from_value(cls, value: Any) -> VariableSpec:
        """The spec of a variable."""
        return cls(value.shape, value.dtype, value.trainable)

    def _serialize(self) -> tuple:
        return self.shape, self.dtype, self.trainable, self.alias_id

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a variable, or another spec, is compatible: by type and shape."""
        return (
            isinstance(spec_or_value, (VariableSpec, Variable))
            and self.dtype is spec_or_value.dtype
            and self.shape.is_compatible_with(spec_or_value.shape)
        )

    def __repr__(self) -> str:
        return (
            f"VariableSpec(shape={self.shape}, dtype={self.dtype!r}, trainable={self.trainable!r}, "
            f"alias_id={self.alias_id!r})"
        )


register_type_spec_from_value_converter(Variable, VariableSpec.from_value, allow_subclass=True)
