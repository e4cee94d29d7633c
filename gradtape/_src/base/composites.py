"""Composite values as arguments and results of functions, and as values of loops and conditions.

To programs they are leaves of a nest; to a trace each of their tensors is a separate argument or result. So they
are taken apart on the way in and put together on the way out: a `Parts` is a nest of the tensors, with the spec
that rebuilds the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradtape._src.base import nest
from gradtape._src.base.type_spec import TypeSpec


class Parts:
    """The tensors of a composite value, as a nest; for a spec, the specs of its tensors."""

    __slots__ = ("spec", "parts")

    def __init__(self, spec: Any, parts: Sequence[Any]) -> None:
        self.spec = spec
        self.parts = tuple(parts)

    @classmethod
    def of(cls, value: Any) -> Parts:
        """The parts of a value or spec."""
        if isinstance(value, TypeSpec):
            return cls(value, nest.flatten(value._component_specs, expand_composites=True))
        spec = value._type_spec
        return cls(spec, nest.flatten(spec._to_components(value), expand_composites=True))

    def together(self) -> Any:
        """The value made of these tensors."""
        packed = nest.pack_sequence_as(self.spec._component_specs, self.parts, expand_composites=True)
        return self.spec._from_components(packed)

    # TensorFlow's protocol for custom nests.

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        return self.spec, self.parts

    @classmethod
    def __tf_unflatten__(cls, spec: Any, parts: tuple) -> Parts:
        return cls(spec, parts)

    def __repr__(self) -> str:
        return repr(self.spec)


def is_value(x: Any) -> bool:
    """Whether `x` is a composite value; a spec is not."""
    return nest.is_composite(type(x)) and not isinstance(x, TypeSpec)


def has_composites(structure: Any) -> bool:
    """Whether a nest has leaves that are composite values or their specs."""
    return not nest.are_plain(nest.flatten(structure))


def apart(structure: Any, specs: bool = False) -> Any:
    """A nest with composite leaves replaced by their `Parts`; with `specs`, also their specs."""
    if not has_composites(structure):
        return structure
    return nest.map_structure(lambda x: Parts.of(x) if _is_leaf(x, specs) else x, structure)


def _is_leaf(x: Any, specs: bool) -> bool:
    return nest.is_composite(type(x)) if specs else is_value(x)


def has_parts(structure: Any) -> bool:
    """Whether a nest contains `Parts`."""
    kind = nest._kind(structure)
    return kind is not None and (
        isinstance(structure, Parts) or any(map(has_parts, kind.children(structure)))
    )


def together(structure: Any) -> Any:
    """The inverse of `apart`."""
    return map_parts(Parts.together, structure) if has_parts(structure) else structure


def map_parts(f: Callable[[Parts], Any], structure: Any) -> Any:
    """A nest with every `Parts` replaced by `f(parts)`."""
    if isinstance(structure, Parts):
        return f(structure)
    kind = nest._kind(structure)
    if kind is None:
        return structure
    return kind.rebuild(structure, [map_parts(f, x) for x in kind.children(structure)])


def relaxed(structure: Any) -> Any:
    """A nest whose specs have shapes without sizes."""
    if not has_parts(structure):
        return structure
    return map_parts(lambda p: Parts(p.spec._with_tensor_ranks_only(), p.parts), structure)


def replaced(structure: Any) -> Any:
    """A nest with composite values replaced by their components."""
    if not has_composites(structure):
        return structure
    return nest.map_structure(
        lambda x: replaced(x._type_spec._to_components(x)) if is_value(x) else x, structure
    )


def unified(values: Sequence[Any]) -> list:
    """Nests of one structure, with specs that cover the specs of all of them.

    Raises:
      TypeError: if values at the same place have no common spec.
    """
    if not any(map(has_parts, values)):
        return list(values)
    parts = [_parts_in(v) for v in values]
    specs = []
    for column in zip(*parts, strict=True):
        spec = column[0].spec.most_specific_common_supertype([p.spec for p in column[1:]])
        if spec is None:
            raise TypeError(f"Incompatible types: {' and '.join(str(p.spec) for p in column)}")
        specs.append(spec)
    return [_with_specs(iter(specs), value) for value in values]


def _with_specs(specs: Iterator[Any], structure: Any) -> Any:
    return map_parts(lambda p: Parts(next(specs), p.parts), structure)


def _parts_in(structure: Any) -> list[Parts]:
    out: list[Parts] = []
    map_parts(out.append, structure)
    return out
