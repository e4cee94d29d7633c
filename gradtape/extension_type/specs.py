"""The specs of extension types: the fields of a value, with specs in place of tensors, and how values are batched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradtape._src.base import nest, type_spec
from gradtape._src.base.shape import TensorShape, TensorSpec
from gradtape._src.base.type_spec import BatchableTypeSpec, TypeSpec, TypeSpecBatchEncoder
from gradtape._src.tensors.composite import CompositeTensor
from gradtape.extension_type import fields
from gradtape.extension_type.fields import ImmutableDict


def of_fields(cls: type, values: Any) -> Any:
    """An object of a class with these fields, created without the constructor."""
    spec: Any = object.__new__(cls)
    spec.__dict__.update(values)
    return spec


class FrozenFields:
    """Fields that only a constructor sets."""

    __slots__ = ()
    _kind = "ExtensionType"

    def __setattr__(self, name: str, value: Any) -> None:
        if not self._may_change(name):
            raise AttributeError(
                f"Cannot mutate attribute `{name}` outside the custom constructor of {self._kind}."
            )
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if not self._may_change(name):
            raise AttributeError(
                f"Cannot mutate attribute `{name}` outside the custom constructor of {self._kind}."
            )
        object.__delattr__(self, name)

    def _may_change(self, name: str) -> bool:
        if name == "_keras_mask":
            return True
        return "_is_constructing" in self.__dict__ and any(f.name == name for f in self._fields())

    @classmethod
    def _fields(cls) -> tuple:
        raise NotImplementedError


class ExtensionTypeSpec(FrozenFields, TypeSpec):
    """The base of the specs of extension types: `MyType.Spec` is created with the class `MyType`."""

    _kind = "ExtensionTypeSpec"

    @classmethod
    def _fields(cls) -> tuple:
        return cls.value_type._fields()  # type: ignore[attr-defined]

    def _may_change(self, name: str) -> bool:
        return name == "_cached_key" or super()._may_change(name)

    def _convert_fields(self) -> None:
        fields.convert_fields(self._fields(), self.__dict__, for_spec=True)

    def __validate__(self) -> None:
        """Called after construction."""

    @classmethod
    def from_value(cls, value: Any) -> Any:
        """The spec of a value."""
        return of_fields(cls, nest.map_structure(_spec_in_place, dict(value.__dict__)))

    def _serialize(self) -> tuple:
        return tuple((f.name, _with_mappings(dict, self.__dict__[f.name])) for f in self._fields())

    @classmethod
    def _deserialize(cls, serialization: Any) -> Any:
        return of_fields(cls, _with_mappings(ImmutableDict, serialization))

    @property
    def _component_specs(self) -> tuple:
        return tuple(x for x in nest.flatten(tuple(self.__dict__.values())) if isinstance(x, TypeSpec))

    def _to_components(self, value: Any) -> tuple:
        # In the order of the spec's fields, of which the spec says which are tensors.
        given = nest.flatten(tuple(value.__dict__[name] for name in self.__dict__))
        return tuple(
            x
            for x, s in zip(given, nest.flatten(tuple(self.__dict__.values())), strict=True)
            if isinstance(s, TypeSpec)
        )

    def _from_components(self, components: Any) -> Any:
        given = iter(components)
        own = tuple(self.__dict__.values())
        flat = [next(given) if isinstance(x, TypeSpec) else x for x in nest.flatten(own)]
        if next(given, None) is not None:
            raise ValueError(
                "Cannot build an ExtensionType instance from components because more components are provided than the "
                "number expected by the type spec."
            )
        # Without the constructor: it may be the user's, with other arguments.
        values = dict(zip(self.__dict__, nest.pack_sequence_as(own, flat), strict=True))
        return of_fields(self.value_type, values)

    def _to_legacy_output_shapes(self) -> Any:
        if not hasattr(self, "shape"):
            raise NotImplementedError(
                "It appears that the Spec of the ExtensionType is missing a shape property. In order to support tf.Data, "
                "it is recommended that you implement a shape property on the Spec."
            )
        return self.shape

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{k}={v!r}' for k, v in self._serialize())})"

    def __reduce__(self) -> tuple[Any, ...]:
        # By the class of the values: the spec's class is nested in it.
        return _spec_again, (self.value_type, self._serialize())


def _spec_again(value_type: Any, serialization: tuple) -> Any:
    return value_type.Spec._deserialize(serialization)


def _spec_in_place(value: Any) -> Any:
    if isinstance(value, CompositeTensor):
        return value._type_spec
    spec = getattr(value, "dtype", None) is not None and hasattr(value, "shape")
    return TensorSpec(value.shape, value.dtype) if spec else value


def _with_mappings(cls: Any, value: Any) -> Any:
    """A nest with its mappings converted to another class."""
    if isinstance(value, Mapping):
        return cls([(k, _with_mappings(cls, v)) for k, v in value.items()])
    return tuple(_with_mappings(cls, v) for v in value) if isinstance(value, tuple) else value


# ---- batches --------------------------------------------------------------------------------------


class ExtensionTypeBatchEncoder(TypeSpecBatchEncoder):
    """How values of an extension type are batched: by default all their tensors and shapes get an additional axis.

    Other types set `__batch_encoder__` to an instance of a subclass.
    """

    def batch(self, spec: Any, batch_size: int | None) -> Any:
        """The spec of `batch_size` values; None if their number is not known."""

        def field(f: Any) -> Any:
            if isinstance(f, BatchableTypeSpec):
                return f.__batch_encoder__.batch(f, batch_size)
            return TensorShape([batch_size]).concatenate(f) if isinstance(f, TensorShape) else f

        return of_fields(type(spec), nest.map_structure(field, dict(spec.__dict__)))

    def unbatch(self, spec: Any) -> Any:
        """The spec of one value of a batch."""

        def field(f: Any) -> Any:
            if isinstance(f, BatchableTypeSpec):
                return f.__batch_encoder__.unbatch(f)
            return f[1:] if isinstance(f, TensorShape) else f

        return of_fields(type(spec), nest.map_structure(field, dict(spec.__dict__)))

    def encode(self, spec: Any, value: Any, minimum_rank: int = 0) -> Any:
        """A value as a nest of tensors and composite tensors that can be stacked and unstacked.

        Args:
          minimum_rank: the least rank of the encoding.
        """
        return spec._to_components(value)

    def decode(self, spec: Any, encoded_value: Any) -> Any:
        """The value that `encode` encoded."""
        return spec._from_components(encoded_value)

    def encoding_specs(self, spec: Any) -> Any:
        """The specs of the result of `encode`."""
        return spec._component_specs


class BatchableExtensionTypeSpec(ExtensionTypeSpec, BatchableTypeSpec):
    """The base of the specs of extension types that can be batched."""

    __batch_encoder__ = ExtensionTypeBatchEncoder()

    def _batch(self, batch_size: int | None) -> Any:
        return self.__batch_encoder__.batch(self, batch_size)

    def _unbatch(self) -> Any:
        return self.__batch_encoder__.unbatch(self)

    @property
    def _flat_tensor_specs(self) -> list:
        return type_spec.encoded_specs(self)

    def _to_tensor_list(self, value: Any) -> list:
        return type_spec.encoded(self, value)

    def _to_batched_tensor_list(self, value: Any) -> list:
        return type_spec.encoded(self, value, 1)

    def _from_compatible_tensor_list(self, tensor_list: Sequence[Any]) -> Any:
        return type_spec.decoded(self, iter(tensor_list))
