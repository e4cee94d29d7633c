"""`tensorflow.python.util.nest`, `tf.__internal__.nest`: `tf.nest`, and walks as far as another structure reaches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gradtape._src.base import nest
from gradtape._src.base.nest import (
    assert_same_structure as assert_same_structure,
)
from gradtape._src.base.nest import (
    flatten as flatten,
)
from gradtape._src.base.nest import (
    is_nested as is_nested,
)
from gradtape._src.base.nest import (
    is_sequence as is_sequence,
)
from gradtape._src.base.nest import (
    map_structure as map_structure,
)
from gradtape._src.base.nest import (
    pack_sequence_as as pack_sequence_as,
)
from gradtape._src.base.type_spec import TypeSpec

# ---- kinds ----------------------------------------------------------------------------------------


def is_nested_or_composite(seq: Any) -> bool:
    """Whether a value is a container or composite."""
    return nest._kind(seq, True) is not None


is_sequence_or_composite = is_nested_or_composite


def is_mapping(obj: Any) -> bool:
    """Whether something is a mapping."""
    return isinstance(obj, Mapping)


def is_attrs(obj: Any) -> bool:
    """Whether something is of a class of attrs."""
    return hasattr(type(obj), "__attrs_attrs__")


def _is_namedtuple(instance: Any, strict: bool = False) -> bool:
    return isinstance(instance, tuple) and hasattr(instance, "_fields")


def _sequence_like(instance: Any, args: Any) -> Any:
    """A container like `instance` of other parts, those of a dict in the order of its sorted keys."""
    kind = nest._kind(instance, True)
    if kind is None:
        raise TypeError(f"{instance!r} is no container.")
    return kind.rebuild(instance, list(args))


sequence_like = _sequence_like


def _yield_value(iterable: Any) -> Iterator[Any]:
    """The parts of a container, one level deep."""
    return (value for _, value in _yield_sorted_items(iterable))


def _yield_sorted_items(iterable: Any) -> Iterator[tuple[Any, Any]]:
    """Pairs of keys and parts of a container, one level deep."""
    kind = nest._kind(iterable, True)
    if kind is None:
        raise TypeError(f"{iterable!r} is no container.")
    return zip(kind.keys(iterable), kind.children(iterable), strict=True)


# ---- walks over one structure -----------------------------------------------------------------------


def flatten_with_tuple_paths(structure: Any, expand_composites: bool = False) -> list[tuple[tuple, Any]]:
    """Pairs of paths and leaves."""
    return nest.flatten_with_path(structure, expand_composites)


def yield_flat_paths(structure: Any, expand_composites: bool = False) -> Iterator[tuple]:
    """The paths of the leaves."""
    return (path for path, _ in nest.flatten_with_path(structure, expand_composites))


def flatten_with_joined_string_paths(
    structure: Any, separator: str = "/", expand_composites: bool = False
) -> list[tuple[str, Any]]:
    """Pairs of paths, as text, and leaves."""
    pairs = nest.flatten_with_path(structure, expand_composites)
    return [(separator.join(map(str, path)), leaf) for path, leaf in pairs]


def flatten_dict_items(dictionary: Mapping) -> dict:
    """A dictionary whose keys and values are structures of one form, as one of their leaves."""
    if not isinstance(dictionary, Mapping):
        raise TypeError("input must be a dictionary")
    out: dict = {}
    for key, value in dictionary.items():
        keys, values = ([key], [value]) if not is_nested(key) else (flatten(key), flatten(value))
        if len(keys) != len(values):
            raise ValueError(
                f"Could not flatten dictionary. Key had {len(keys)} elements, value {len(values)}: {key} and {value}."
            )
        for k, v in zip(keys, values, strict=True):
            if k in out:
                raise ValueError(
                    f"Could not flatten dictionary: the key {k} is not unique, or a key occurs twice."
                )
            out[k] = v
    return out


def list_to_tuple(structure: Any) -> Any:
    """The structure with tuples in place of lists."""
    if not is_nested(structure):
        return structure
    parts = [list_to_tuple(part) for part in _yield_value(structure)]
    return tuple(parts) if isinstance(structure, list) else _sequence_like(structure, parts)


def map_structure_with_tuple_paths(func: Callable, *structure: Any, **kwargs: Any) -> Any:
    """Like `map_structure`, of functions that take the path first."""
    if not structure:
        raise ValueError("Must provide at least one structure")
    expand = kwargs.get("expand_composites", False)
    for other in structure[1:]:
        assert_same_structure(structure[0], other, kwargs.get("check_types", True), expand)
    return map_structure_with_tuple_paths_up_to(structure[0], func, *structure, **kwargs)


def map_structure_with_paths(func: Callable, *structure: Any, **kwargs: Any) -> Any:
    """The same with paths as text, `a/0/b`."""

    def with_text(path: tuple, *leaves: Any, **more: Any) -> Any:
        return func("/".join(map(str, path)), *leaves, **more)

    return map_structure_with_tuple_paths(with_text, *structure, **kwargs)


# ---- walks as far as another structure reaches ------------------------------------------------------


def assert_shallow_structure(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Raises unless `input_tree` begins like `shallow_tree`.

    Raises:
      TypeError: if there is a different container, or none, at a place.
      ValueError: if containers have different numbers of parts, or different keys.
    """
    kind, other = nest._kind(shallow_tree, expand_composites), nest._kind(input_tree, expand_composites)
    if kind is None:
        return
    if other is None:
        raise TypeError(
            "If shallow structure is a sequence, input must also be a sequence. "
            f"Input has type: {type(input_tree)}."
        )
    if kind in nest._COMPOSITES or other in nest._COMPOSITES:
        _assert_same_spec(shallow_tree, input_tree)
        return
    if check_types and not (
        isinstance(input_tree, type(shallow_tree)) or nest._same_container(shallow_tree, input_tree)
    ):
        raise TypeError(_other_type(shallow_tree, input_tree))
    if len(input_tree) != len(shallow_tree):
        raise ValueError(
            "The two structures don't have the same sequence length. Input structure has length "
            f"{len(input_tree)}, while shallow structure has length {len(shallow_tree)}."
        )
    if is_mapping(shallow_tree):
        missing = set(shallow_tree) - set(input_tree)
        if missing:
            raise ValueError(
                "The shallow_tree's keys are not a subset of the input_tree's keys. The shallow_tree has the "
                f"following keys that are not in the input_tree: {sorted(missing)}."
            )
    for shallow, given in zip(_yield_value(shallow_tree), _yield_value(input_tree), strict=True):
        assert_shallow_structure(shallow, given, check_types, expand_composites)


def _other_type(shallow: Any, given: Any) -> str:
    return (
        "The two structures don't have the same sequence type. Input structure has type "
        f"{type(given)}, while shallow structure has type {type(shallow)}."
    )


def _assert_same_spec(shallow: Any, given: Any) -> None:
    if not (nest.is_composite(type(shallow)) and nest.is_composite(type(given))):
        raise TypeError(_other_type(shallow, given))
    a, b = (
        (x if isinstance(x, TypeSpec) else x._type_spec)._without_tensor_names() for x in (shallow, given)
    )
    if a.most_specific_common_supertype([b]) is None:
        raise ValueError(f"Incompatible CompositeTensor TypeSpecs: {a} vs. {b}")


def _flat_up_to(shallow: Any, given: Any, expand: bool, path: tuple = ()) -> Iterator[tuple[tuple, Any]]:
    if nest._kind(shallow, expand) is None:
        yield path, given
        return
    parts = dict(_yield_sorted_items(given))
    for key, below in _yield_sorted_items(shallow):
        yield from _flat_up_to(below, parts[key], expand, (*path, key))


def flatten_with_tuple_paths_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> list[tuple[tuple, Any]]:
    """Pairs of paths and the parts of `input_tree` at the places of the leaves of `shallow_tree`."""
    assert_shallow_structure(shallow_tree, input_tree, check_types, expand_composites)
    return list(_flat_up_to(shallow_tree, input_tree, expand_composites))


def flatten_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> list:
    """The parts of `input_tree` at the places of the leaves of `shallow_tree`."""
    pairs = flatten_with_tuple_paths_up_to(shallow_tree, input_tree, check_types, expand_composites)
    return [part for _, part in pairs]


def map_structure_with_tuple_paths_up_to(
    shallow_tree: Any, func: Callable, *inputs: Any, **kwargs: Any
) -> Any:
    """`func(path, *parts)` for the parts at the places of the leaves of `shallow_tree`."""
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    check_types = kwargs.pop("check_types", True)
    expand = kwargs.pop("expand_composites", False)
    flat = [flatten_with_tuple_paths_up_to(shallow_tree, tree, check_types, expand) for tree in inputs]
    results = [func(pairs[0][0], *(part for _, part in pairs), **kwargs) for pairs in zip(*flat, strict=True)]
    return pack_sequence_as(shallow_tree, results, expand)


def map_structure_up_to(shallow_tree: Any, func: Callable, *inputs: Any, **kwargs: Any) -> Any:
    """The same without paths."""
    return map_structure_with_tuple_paths_up_to(
        shallow_tree, lambda path, *parts, **more: func(*parts, **more), *inputs, **kwargs
    )


def get_traverse_shallow_structure(
    traverse_fn: Callable, structure: Any, expand_composites: bool = False
) -> Any:
    """The shallow structure of bools returned by a function that decides for each part whether to traverse it."""
    shallow = traverse_fn(structure)
    if nest._kind(structure, expand_composites) is None:
        if not isinstance(shallow, bool):
            raise TypeError(f"traverse_fn returned structure: {shallow} for non-structure: {structure}")
        return shallow
    if isinstance(shallow, bool):
        if not shallow:
            return False
        shallow = _sequence_like(structure, [True for _ in _yield_value(structure)])
    elif nest._kind(shallow, expand_composites) is None:
        raise TypeError(f"traverse_fn returned a non-bool scalar: {shallow} for input: {structure}")
    else:
        assert_shallow_structure(shallow, structure, expand_composites=expand_composites)
    below = []
    for go, part in zip(_yield_value(shallow), _yield_value(structure), strict=True):
        if not isinstance(go, bool):
            raise TypeError(
                f"traverse_fn didn't return a depth=1 structure of bools. saw: {shallow} for structure: {structure}"
            )
        below.append(get_traverse_shallow_structure(traverse_fn, part, expand_composites) if go else False)
    return _sequence_like(structure, below)
