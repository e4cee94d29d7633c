"""`TypeSpec`: the type of a composite tensor, and how it is flattened to tensors and rebuilt from them.

A subclass defines, under TensorFlow's names: the class of its values (`value_type`), its own arguments
(`_serialize`), the specs of the tensors in a value (`_component_specs`), and the conversions in both directions
(`_to_components`, `_from_components`). Everything else follows from these. `nest` with `expand_composites`,
functions, control flow, tapes and datasets use such values only in this way; the base class of the values is in
`gradtape/_src/tensors/composite.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradtape._src.base import nest


class TypeSpec:
    """The spec of a kind of values: arguments and results of functions, elements of datasets, values of loops.

    >>> import gradtape as tf
    >>> isinstance(tf.TensorSpec([2]), tf.TypeSpec)
    True
    >>> tf.type_spec_from_value(tf.constant([1.0, 2.0]))
    TensorSpec(shape=(2,), dtype=tf.float32, name=None)
    """

    __slots__ = ("_cached_key",)
    _cached_key: tuple

    # Whether `nest` takes it apart when it expands composites.
    _is_composite = True

    def __init__(self) -> None:
        if type(self) in (TypeSpec, BatchableTypeSpec):
            raise TypeError(
                f"Can't instantiate abstract class {type(self).__name__}. Hint: tf.TensorSpec(shape, dtype)."
            )

    # ---- what a subclass defines ------------------------------------------------------------------

    @property
    def value_type(self) -> Any:
        """The class of the values it describes."""
        raise NotImplementedError(f"{type(self).__name__}.value_type")

    def _serialize(self) -> tuple:
        """The arguments that recreate this spec: a nest of plain values, shapes, types and specs."""
        raise NotImplementedError(f"{type(self).__name__}._serialize()")

    @classmethod
    def _deserialize(cls, serialization: Any) -> Any:
        """The inverse of `_serialize`."""
        return cls(*serialization)

    @property
    def _component_specs(self) -> Any:
        """The specs of the components: a nest."""
        raise NotImplementedError(f"{type(self).__name__}._component_specs()")

    def _to_components(self, value: Any) -> Any:
        """The tensors of a value: a nest with the structure of `_component_specs`."""
        raise NotImplementedError(f"{type(self).__name__}._to_components()")

    def _from_components(self, components: Any) -> Any:
        """The value made of these tensors."""
        raise NotImplementedError(f"{type(self).__name__}._from_components()")

    # ---- against other specs ----------------------------------------------------------------------

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value, or a value of another spec, could be one of this spec."""
        other = spec_or_value if isinstance(spec_or_value, TypeSpec) else type_spec_from_value(spec_or_value)
        return type(self) is type(other) and self.__is_compatible(self._serialize(), other._serialize())

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every value of this spec is also one of `other`."""
        if type(self) is not type(other):
            return False

        def below(a: Any, b: Any) -> bool:
            return bool(a.is_subtype_of(b) if hasattr(a, "is_subtype_of") else a == b)

        try:
            return all(nest.flatten(nest.map_structure(below, self._serialize(), other._serialize())))
        except (TypeError, ValueError):
            return False

    def most_specific_common_supertype(self, others: Sequence[Any]) -> Any:
        """The narrowest spec that covers this one and all `others`, or None."""
        if any(type(self) is not type(other) for other in others):
            return None

        def joined(a: Any, *rest: Any) -> Any:
            if hasattr(a, "most_specific_common_supertype"):
                found = a.most_specific_common_supertype(rest)
                if found is None:
                    raise ValueError("no common supertype")
                return found
            if all(a == b for b in rest):
                return a
            raise ValueError("different values")

        try:
            found = nest.map_structure(joined, self._serialize(), *(o._serialize() for o in others))
        except (TypeError, ValueError):
            return None
        return self._deserialize(found)

    def most_specific_compatible_type(self, other: Any) -> Any:
        """The same as `most_specific_common_supertype([other])`, but ValueError if there is none."""
        result = self.most_specific_common_supertype([other])
        if result is None:
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        return result

    def _with_tensor_ranks_only(self) -> Any:
        """This spec without sizes: its shapes keep their ranks."""

        def relaxed(x: Any) -> Any:
            return x._with_tensor_ranks_only() if hasattr(x, "_with_tensor_ranks_only") else x

        return self._deserialize(nest.map_structure(relaxed, self._serialize()))

    def _without_tensor_names(self) -> Any:
        """This spec, with TensorSpecs without names."""

        def unnamed(x: Any) -> Any:
            return x._without_tensor_names() if isinstance(x, TypeSpec) else x

        return self._deserialize(nest.map_structure(unnamed, self._serialize()))

    # ---- values as flat lists of tensors ----------------------------------------------------------

    @property
    def _flat_tensor_specs(self) -> list:
        """The specs of the tensors that `_to_tensor_list` returns."""
        return nest.flatten(self._component_specs, expand_composites=True)

    def _to_tensor_list(self, value: Any) -> list:
        """A value as a flat list of tensors."""
        return nest.flatten(self._to_components(value), expand_composites=True)

    def _from_tensor_list(self, tensor_list: Sequence[Any]) -> Any:
        """The inverse of `_to_tensor_list`.

        Raises:
          ValueError: if the tensors do not fit the spec.
        """
        expected = self._flat_tensor_specs
        name = self.value_type.__name__
        if len(tensor_list) != len(expected):
            raise ValueError(
                f"Cannot create a {name} from the tensor list because the TypeSpec expects {len(expected)} items, but the "
                f"provided tensor list has {len(tensor_list)} items."
            )
        for i, (x, spec) in enumerate(zip(tensor_list, expected, strict=True)):
            if not type_spec_from_value(x).is_compatible_with(spec):
                raise ValueError(
                    f"Cannot create a {name} from the tensor list because item {i} ({x!r}) is incompatible with the "
                    f"expected TypeSpec {spec}."
                )
        return self._from_compatible_tensor_list(tensor_list)

    def _from_compatible_tensor_list(self, tensor_list: Sequence[Any]) -> Any:
        """The same for tensors that are known to fit."""
        packed = nest.pack_sequence_as(self._component_specs, list(tensor_list), expand_composites=True)
        return self._from_components(packed)

    # ---- tf.data in TensorFlow 1 ----------------------------------------------------------

    def _to_legacy_output_types(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._to_legacy_output_types()")

    def _to_legacy_output_shapes(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._to_legacy_output_shapes()")

    def _to_legacy_output_classes(self) -> Any:
        return self.value_type

    # ---- comparison, pickles, text ---------------------------------------------------------------

    def _key(self) -> tuple:
        """The hashable key by which specs are compared."""
        try:
            return self._cached_key
        except AttributeError:
            self._cached_key = type(self), self.__make_cmp_key(self._serialize())
            return self._cached_key

    @staticmethod
    def __is_compatible(a: Any, b: Any) -> bool:
        return _compatible(a, b)

    def __make_cmp_key(
        self, value: Any
    ) -> Any:  # TensorFlow's name, which packages with their own comparison use
        return _hashable(value, self)

    def __eq__(self, other: Any) -> Any:
        return type(other) is type(self) and self._key() == other._key()

    def __ne__(self, other: Any) -> Any:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._serialize()!r}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._serialize()


class NoneTensorSpec(TypeSpec):
    """The spec of None.

    >>> import gradtape as tf
    >>> tf.NoneTensorSpec().is_compatible_with(None)
    True
    """

    __slots__ = ()

    _is_composite = False

    @property
    def value_type(self) -> Any:
        """The class of None."""
        return type(None)

    def _serialize(self) -> tuple:
        return ()

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value is None."""
        return spec_or_value is None or isinstance(spec_or_value, NoneTensorSpec)

    def _batch(self, batch_size: int | None) -> NoneTensorSpec:
        return self

    def _unbatch(self) -> NoneTensorSpec:
        return self


# ---- values that can be batched -------------------------------------------------------------------


class TypeSpecBatchEncoder:
    """Encodes values of a spec as tensors that can be stacked and sliced, so that they can be batched."""

    def batch(self, spec: Any, batch_size: int | None) -> Any:
        """The spec of a batch of values."""
        return spec._batch(batch_size)

    def unbatch(self, spec: Any) -> Any:
        """The spec of one value of a batch."""
        return spec._unbatch()

    def encode(self, spec: Any, value: Any, minimum_rank: int = 0) -> Any:
        """A value as a nest of tensors of at least this rank."""
        return spec._to_batched_tensor_list(value) if minimum_rank else spec._to_tensor_list(value)

    def decode(self, spec: Any, encoded_value: Any) -> Any:
        """The value encoded by these tensors."""
        return spec._from_tensor_list(encoded_value)

    def encoding_specs(self, spec: Any) -> Any:
        """The specs of the results of `encode`."""
        return spec._flat_tensor_specs


class BatchableTypeSpec(TypeSpec):
    """A spec whose values can be stacked, sliced and concatenated as lists of tensors."""

    __slots__ = ()

    __batch_encoder__: Any = TypeSpecBatchEncoder()

    def _batch(self, batch_size: int | None) -> Any:
        """The spec of `batch_size` values; None if their number is unknown."""
        raise NotImplementedError(f"{type(self).__name__}._batch")

    def _unbatch(self) -> Any:
        """The spec of one of the values in a batch that this spec describes."""
        raise NotImplementedError(f"{type(self).__name__}._unbatch")

    @property
    def _flat_tensor_specs(self) -> list:
        return nest.flatten(nest.map_structure(encoded_specs, self._component_specs))

    def _to_tensor_list(self, value: Any) -> list:
        components = self._to_components(value)
        return nest.flatten(nest.map_structure(encoded, self._component_specs, components))

    def _to_batched_tensor_list(self, value: Any) -> list:
        """The same for a batch: every tensor has at least one axis."""
        components = self._to_components(value)
        tensors = nest.flatten(
            nest.map_structure(lambda s, v: encoded(s, v, 1), self._component_specs, components)
        )
        if any(t.shape.rank == 0 for t in tensors):
            raise ValueError(
                f"While converting {value} to a list of tensors for batching, found a scalar item which cannot be batched."
            )
        return tensors

    def _from_compatible_tensor_list(self, tensor_list: Sequence[Any]) -> Any:
        items = iter(tensor_list)
        return self._from_components(nest.map_structure(lambda s: decoded(s, items), self._component_specs))

    # Batches of values, as datasets make and slice them.

    def _stacked(self, values: Sequence[Any]) -> Any:
        """Values of this spec as one batch."""
        lists = [self._to_tensor_list(v) for v in values]
        assert stack is not None
        stacked = [stack(list(tensors)) for tensors in zip(*lists, strict=True)]
        return self._batch(len(values))._from_compatible_tensor_list(stacked)

    def _rows_at(self, value: Any, at: Any) -> Any:
        """The rows of a batch of this spec at a slice or at indices."""
        assert take is not None
        return self._from_compatible_tensor_list([take(t, at) for t in self._to_batched_tensor_list(value)])

    def _row_at(self, value: Any, at: int) -> Any:
        """One value of a batch of this spec."""
        return self._unbatch()._from_compatible_tensor_list(
            [t[at] for t in self._to_batched_tensor_list(value)]
        )


def _encoder(spec: Any) -> Any:
    # Its own encoder: the shared one of TypeSpecs calls `_to_tensor_list`, which calls this.
    encoder = getattr(spec, "__batch_encoder__", None)
    return None if type(encoder) is TypeSpecBatchEncoder else encoder


def encoded_specs(spec: Any) -> list:
    """The specs of the tensors that encode a value of this spec."""
    encoder = _encoder(spec)
    if encoder is None:
        return spec._flat_tensor_specs
    return nest.flatten(nest.map_structure(encoded_specs, encoder.encoding_specs(spec)))


def encoded(spec: Any, value: Any, minimum_rank: int = 0) -> list:
    """A value as a flat list of tensors that can be stacked and sliced."""
    encoder = _encoder(spec)
    if encoder is None:
        many = minimum_rank and isinstance(spec, BatchableTypeSpec)
        return spec._to_batched_tensor_list(value) if many else spec._to_tensor_list(value)
    parts = encoder.encode(spec, value, minimum_rank)
    inner = nest.map_structure(lambda s, v: encoded(s, v, minimum_rank), encoder.encoding_specs(spec), parts)
    return nest.flatten(inner)


def decoded(spec: Any, tensors: Iterator[Any]) -> Any:
    """The value of a spec that the next of these tensors encode."""
    encoder = _encoder(spec)
    if encoder is None:
        return spec._from_compatible_tensor_list([next(tensors) for _ in spec._flat_tensor_specs])
    return encoder.decode(
        spec, nest.map_structure(lambda s: decoded(s, tensors), encoder.encoding_specs(spec))
    )


# ---- the spec of a value --------------------------------------------------------------------------

# Converts a value to a tensor; set by tensors/composite.py.
convert: Callable[[Any], Any] | None = None
# Stacks tensors; and takes rows of them, by a slice or by indices.
stack: Callable[[list], Any] | None = None
take: Callable[[Any, Any], Any] | None = None

# Classes whose values do not know their own spec: (class, function from a value to its spec, subclasses too).
_CONVERTERS: list[tuple[type, Callable[[Any], Any], bool]] = []


def register_type_spec_from_value_converter(
    type_object: type, converter_fn: Callable[[Any], Any], allow_subclass: bool = False
) -> None:
    """Makes `type_spec_from_value` return `converter_fn(value)` for values of a class."""
    _CONVERTERS.append((type_object, converter_fn, allow_subclass))


def type_spec_from_value(value: Any) -> Any:
    """The spec of a value: a tensor, anything that can be converted to one, or a composite value.

    Raises:
      TypeError: if there is none.

    >>> import gradtape as tf
    >>> tf.type_spec_from_value([1, 2, 3])
    TensorSpec(shape=(3,), dtype=tf.int32, name=None)
    """
    spec = _spec_of(value)
    if spec is None and convert is not None:
        try:
            spec = _spec_of(convert(value))
        except (TypeError, ValueError):
            spec = None
    if spec is None:
        raise TypeError(f"Could not build a TypeSpec for {value} of unsupported type {type(value)}.")
    return spec


def _spec_of(value: Any) -> Any:
    spec = getattr(value, "_type_spec", None)
    if isinstance(spec, TypeSpec):
        return spec
    if value is None:
        return NoneTensorSpec()
    if isinstance(value, list) and value:
        specs = [_spec_of(v) for v in value]
        # Stacked values have one spec, if they are of a kind that can be stacked.
        if isinstance(specs[0], BatchableTypeSpec):
            joined = specs[0].most_specific_common_supertype(specs[1:])
            if joined is not None:
                return joined._batch(len(specs))
    for cls, spec_of, subclasses in reversed(_CONVERTERS):
        if type(value) is cls or (subclasses and isinstance(value, cls)):
            return spec_of(value)
    return None


# ---- serialisations -------------------------------------------------------------------------------


def _compatible(a: Any, b: Any) -> bool:
    if isinstance(a, TypeSpec):
        return a.is_compatible_with(b)
    if not nest._same_container(a, b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_compatible, a, b))
    if isinstance(a, dict):
        return sorted(a) == sorted(b) and all(_compatible(a[k], b[k]) for k in a)
    if hasattr(a, "is_compatible_with"):
        return bool(a.is_compatible_with(b))
    return bool(np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b)


def _hashable(value: Any, spec: TypeSpec) -> Any:
    if isinstance(value, dict):
        return tuple([(_hashable(k, spec), _hashable(value[k], spec)) for k in sorted(value)])
    if isinstance(value, tuple):
        return tuple([_hashable(v, spec) for v in value])
    if isinstance(value, list):
        return list, tuple([_hashable(v, spec) for v in value])
    if isinstance(value, np.ndarray):
        return np.ndarray, value.shape, value.tobytes()
    try:
        hash(value)
    except TypeError:
        raise ValueError(
            f"Cannot generate a hashable key for {type(spec).__name__} because the _serialize() method returned an "
            f"unsupported value of type {type(value)}"
        ) from None
    return value
