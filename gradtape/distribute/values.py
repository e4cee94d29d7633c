"""Values of several replicas: `PerReplica`, split into the values of replicas and combined again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradtape._src.base import nest
from gradtape._src.base.type_spec import TypeSpec, type_spec_from_value
from gradtape._src.tensors.composite import CompositeTensor, WithValuesCompositeTensorGradient


class PerReplicaSpec(TypeSpec):
    """The spec of the values of replicas."""

    def __init__(self, *value_specs: Any) -> None:
        self._value_specs = value_specs

    @property
    def value_specs(self) -> tuple:
        """The specs of the values."""
        return self._value_specs

    @property
    def value_type(self) -> Any:
        """The class of the values it describes."""
        return PerReplica

    def _serialize(self) -> tuple:
        return self._value_specs

    @property
    def _component_specs(self) -> tuple:
        return self._value_specs

    def _to_components(self, value: Any) -> tuple:
        return tuple(value.values)

    def _from_components(self, components: Any) -> Any:
        return PerReplica(components)


def _spec(value: Any) -> Any:
    """The spec of a replica's value; for a value that is not a tensor, the name of its class."""
    try:
        return type_spec_from_value(value)
    except TypeError:
        return type(value).__name__


class DistributedValues(CompositeTensor):
    """One value for each replica of this process; see `Strategy.experimental_local_results`."""

    __composite_gradient__ = WithValuesCompositeTensorGradient()

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = tuple(values)

    @property
    def values(self) -> tuple[Any, ...]:
        """The values, in the order of the replicas."""
        return self._values

    def with_values(self, values: Sequence[Any]) -> DistributedValues:
        """The same with other values."""
        return type(self)(values)

    @property
    def _type_spec(self) -> PerReplicaSpec:
        return PerReplicaSpec(*map(_spec, self._values))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise TypeError(
            f"{type(self).__name__}: it has {len(self._values)} values, one for each replica, and is not a tensor. Hint: "
            "strategy.experimental_local_results(value), strategy.reduce(op, value, axis=None), or strategy.gather."
        )

    def __repr__(self) -> str:
        rows = ",\n".join(f"  {r}: {v!r}" for r, v in enumerate(self._values))
        return f"{type(self).__name__}:{{\n{rows}\n}}"


class PerReplica(DistributedValues):
    """Values that may differ from replica to replica."""


class Mirrored(DistributedValues):
    """Values that are equal on all replicas."""


def of_replica(structure: Any, r: int) -> Any:
    """A nest with the values of replica `r`."""
    if not nest.is_nested(structure):
        return structure._values[r] if isinstance(structure, DistributedValues) else structure
    return nest.map_structure(lambda x: x._values[r] if isinstance(x, DistributedValues) else x, structure)


def has_parts(structure: Any) -> bool:
    """Whether a nest contains values of several replicas."""
    return any(isinstance(x, DistributedValues) for x in nest.flatten(structure))


def together(structures: Sequence[Any], op: str) -> Any:
    """Combines the nests of replicas into one: a PerReplica for each tensor.

    Raises:
      ValueError: if their structures differ.
    """
    first = structures[0]
    if len(structures) == 1:
        return first
    for r, other in enumerate(structures[1:], 1):
        try:
            nest.assert_same_structure(first, other)
        except (TypeError, ValueError) as e:
            raise ValueError(
                f"{op}: replicas gave results of different structures; expected {_sketch(first)}, as in replica 0; got "
                f"{_sketch(other)} in replica {r}."
            ) from e
    return nest.map_structure(lambda *parts: _joined(parts), *structures)


def _joined(parts: Sequence[Any]) -> Any:
    first = parts[0]
    # As in TensorFlow, an object shared by all stays itself: a variable, None, what `merge_call` returned to all.
    return first if all(x is first for x in parts) else PerReplica(parts)


def _sketch(structure: Any) -> str:
    return str(nest.map_structure(lambda x: type(x).__name__, structure))
