"""`tf.nest`: structures of lists, tuples and dicts, taken apart and put together again.

A structure is a leaf (anything that is not a container) or a container of structures. Containers are: sequences
other than strings (lists, tuples, namedtuples, deques, ranges), mappings (traversed in the order of their sorted
keys, rebuilt in their own order), views of mappings, attrs classes, and classes with TensorFlow's `__tf_flatten__`
protocol. Tensors, arrays, variables, dataclasses, sets, None and `TensorShape` are leaves.

Whether a value is a container depends only on its type, so the answer is cached by type. `flatten` of a flat list,
the case that `tape.gradient` needs, is then two calls into C.

Private here but used inside gradtape: `flatten_with_path`, `flatten_up_to`,
`map_structure_up_to`.
"""

from __future__ import annotations

from collections import abc, defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class _Kind(NamedTuple):
    """How one kind of container is taken apart and rebuilt."""

    keys: Callable[[Any], Any]  # one path element per child
    children: Callable[[Any], Any]  # in the order of the keys
    rebuild: Callable[[Any, list], Any]  # (the old container, new children) -> the new one


# --- the kinds of containers -------------------------------------------------------------------


def _sorted_keys(mapping: Any) -> list:
    try:
        return sorted(mapping)
    except TypeError:
        raise TypeError(
            f"nest: the keys of a dict must be sortable; expected keys of one type; got {list(mapping)}."
        ) from None


def _mapping_children(mapping: Any) -> list:
    return [mapping[key] for key in _sorted_keys(mapping)]


def _rebuild_mapping(old: Any, children: list) -> Any:
    new = dict(zip(_sorted_keys(old), children, strict=True))
    cls = type(old)
    if cls is dict:
        return {key: new[key] for key in old}
    if isinstance(old, defaultdict):
        result = cls(old.default_factory)  # type: ignore[call-arg, arg-type]
    elif isinstance(old, abc.MutableMapping):
        result = cls()
    else:
        return cls((key, new[key]) for key in old)  # type: ignore[call-arg]
    for key in old:
        result[key] = new[key]
    return result


def _attrs_keys(value: Any) -> list[str]:
    return [a.name for a in type(value).__attrs_attrs__]


def _range_of(value: Any) -> range:
    return range(len(value))


_SEQUENCE = _Kind(_range_of, list, lambda old, children: type(old)(children))
_AS_LIST = _Kind(_range_of, list, lambda old, children: children)
_NAMEDTUPLE = _Kind(lambda v: v._fields, list, lambda old, children: type(old)(*children))
_MAPPING = _Kind(_sorted_keys, _mapping_children, _rebuild_mapping)
_ATTRS = _Kind(
    _attrs_keys,
    lambda v: [getattr(v, name) for name in _attrs_keys(v)],
    lambda old, children: type(old)(*children),
)
_CUSTOM = _Kind(
    lambda v: range(len(v.__tf_flatten__()[1])),
    lambda v: list(v.__tf_flatten__()[1]),
    lambda old, children: type(old).__tf_unflatten__(old.__tf_flatten__()[0], tuple(children)),
)
# A composite value (base/type_spec.py) and its spec are leaves, unless `expand_composites` is set.
_COMPOSITE = _Kind(
    lambda v: [type(v._type_spec).__name__],
    lambda v: [v._type_spec._to_components(v)],
    lambda old, children: old._type_spec._from_components(children[0]),
)
_COMPOSITE_SPEC = _Kind(
    lambda v: [type(v).__name__],
    lambda v: [v._component_specs],
    lambda old, children: old._from_components(children[0]),
)
_COMPOSITES = (_COMPOSITE, _COMPOSITE_SPEC)


def _judge(cls: type) -> _Kind | None:
    """The kind of container that `cls` is, or None for a leaf."""
    if issubclass(cls, (str, bytes)):
        return None
    if hasattr(cls, "__tf_flatten__") and hasattr(cls, "__tf_unflatten__"):
        return _CUSTOM
    if issubclass(cls, abc.Mapping):
        return _MAPPING
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return _NAMEDTUPLE
    if issubclass(cls, (range, abc.MappingView)):
        return _AS_LIST
    if issubclass(cls, abc.Sequence):
        return _SEQUENCE
    return _ATTRS if hasattr(cls, "__attrs_attrs__") else None


_KINDS: dict[type, _Kind | None] = {}
_LEAVES: set[type] = set()
_MAX_TYPES = 4096  # the table must not grow without limit in programs that create classes in a loop


def _kind(value: Any, expand: bool | _Kind = False) -> _Kind | None:
    cls = type(value)
    try:
        kind = _KINDS[cls]
    except KeyError:
        if len(_KINDS) >= _MAX_TYPES:
            _KINDS.clear()
            _LEAVES.clear()
        kind = _KINDS[cls] = _judge(cls)
        if kind is None and not is_composite(cls):
            _LEAVES.add(cls)
    if kind is None and expand and is_composite(cls):
        if isinstance(expand, _Kind):
            return expand
        return _COMPOSITE_SPEC if hasattr(cls, "_component_specs") else _COMPOSITE
    return kind


def is_composite(cls: type) -> bool:
    """Whether instances of a class are composite values or specs."""
    return getattr(cls, "_is_composite", False)


def are_plain(values: Any) -> bool:
    """Whether none of these values is a container or composite."""
    return _LEAVES.issuperset(map(type, values)) or all(
        _kind(v) is None and not is_composite(type(v)) for v in values
    )


def is_nested(seq: Any) -> bool:
    """Whether `seq` is a container.

    >>> from gradtape._src.base import nest
    >>> nest.is_nested([1]), nest.is_nested({}), nest.is_nested("ab"), nest.is_nested(None)
    (True, True, False, False)
    """
    return _kind(seq) is not None


is_sequence = is_nested  # the name before TensorFlow 2.13


# --- flatten -----------------------------------------------------------------------------------


def flatten(structure: Any, expand_composites: bool | _Kind = False) -> list:
    """The leaves of `structure` as a flat list, dicts in the order of their sorted keys.

    Args:
      expand_composites: also take composite values (`IndexedSlices`) apart; inside gradtape it may also be the
        `_Kind` to use for that.

    Raises:
      ValueError: if a container contains itself.
      TypeError: if the keys of a dict cannot be sorted.

    >>> from gradtape._src.base import nest
    >>> nest.flatten({"b": 1, "a": [2, (3, None)]})
    [2, 3, None, 1]
    >>> nest.flatten("leaf")
    ['leaf']
    """
    cls = type(structure)
    if (cls is list or cls is tuple) and _LEAVES.issuperset(map(type, structure)):
        return list(structure)
    out: list = []
    try:
        _flatten_into(structure, out, expand_composites)
    except RecursionError:
        raise _too_deep("flatten", structure) from None
    return out


def _flatten_into(structure: Any, out: list, expand: bool | _Kind) -> None:
    kind = _kind(structure, expand)
    if kind is None:
        out.append(structure)
        return
    for child in kind.children(structure):
        if type(child) in _LEAVES:
            out.append(child)
        else:
            _flatten_into(child, out, expand)


def flatten_with_path(structure: Any, expand_composites: bool = False) -> list[tuple[tuple, Any]]:
    """The same as `flatten`, but with pairs (path, leaf); a path is a tuple of indices, keys and fields."""

    def walk(value: Any, path: tuple) -> Iterator[tuple[tuple, Any]]:
        kind = _kind(value, expand_composites)
        if kind is None:
            yield path, value
        else:
            for key, child in zip(kind.keys(value), kind.children(value), strict=True):
                yield from walk(child, (*path, key))

    try:
        return list(walk(structure, ()))
    except RecursionError:
        raise _too_deep("flatten", structure) from None


def _too_deep(op: str, structure: Any) -> ValueError:
    """The error when Python ran out of stack: the structure contains itself, or is very deep."""
    open_ids: set[int] = set()
    stack: list[tuple[Any, bool]] = [(structure, False)]
    while stack:
        value, leaving = stack.pop()
        if leaving:
            open_ids.discard(id(value))
            continue
        kind = _kind(value)
        if kind is None:
            continue
        if id(value) in open_ids:
            return ValueError(
                f"{op}: the structure contains itself; expected a tree of lists, tuples and "
                f"dicts; got a {type(value).__name__} that is inside itself. Hint: look for "
                "x.append(x) or a parent stored in its child."
            )
        open_ids.add(id(value))
        stack.append((value, True))
        stack.extend((child, False) for child in kind.children(value))
    return ValueError(f"{op}: the structure is nested too deep for Python's recursion limit.")


# --- rebuild -----------------------------------------------------------------------------------


def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool | _Kind = False) -> Any:
    """`flat_sequence` in the structure of `structure`: the inverse of `flatten`.

    Dicts get their values in the order of the sorted keys and keep their own key order.

    Raises:
      TypeError: if `flat_sequence` is not a sequence.
      ValueError: unless it has one item per leaf of `structure`.

    >>> from gradtape._src.base import nest
    >>> nest.pack_sequence_as({"b": 0, "a": (0, 0)}, [1, 2, 3])
    {'b': 3, 'a': (1, 2)}
    """
    if not is_nested(flat_sequence) or isinstance(flat_sequence, abc.Mapping):
        raise TypeError(
            "pack_sequence_as: Attempted to pack a value into a structure, but found an "
            f"incompatible type; expected a list or tuple of leaves; got "
            f"{type(flat_sequence).__name__}: {_short(flat_sequence)}."
        )
    flat = list(flat_sequence)
    cls = type(structure)
    if (cls is list or cls is tuple) and _LEAVES.issuperset(map(type, structure)):
        if len(flat) == len(structure):
            return flat if cls is list else tuple(flat)
        raise _wrong_count(structure, flat, expand_composites)
    items = iter(flat)
    try:
        packed = _pack(structure, items, expand_composites)
    except StopIteration:
        raise _wrong_count(structure, flat, expand_composites) from None
    except RecursionError:
        raise _too_deep("pack_sequence_as", structure) from None
    if next(items, _END) is not _END:
        raise _wrong_count(structure, flat, expand_composites)
    return packed


_END = object()


def _pack(structure: Any, items: Iterator, expand: bool | _Kind) -> Any:
    kind = _kind(structure, expand)
    if kind is None:
        return next(items)
    # A loop instead of a generator, so that StopIteration is raised unchanged.
    children = []
    for child in kind.children(structure):
        children.append(_pack(child, items, expand))
    return kind.rebuild(structure, children)


def _wrong_count(structure: Any, flat: list, expand: bool | _Kind) -> ValueError:
    atoms = len(flatten(structure, expand))
    return ValueError(
        f"pack_sequence_as: Could not pack sequence. Structure had {atoms} atoms, but "
        f"flat_sequence had {len(flat)} items; expected {_outline(structure)}; got "
        f"{_short(flat)}."
    )


# --- compare and map ---------------------------------------------------------------------------


def assert_same_structure(
    nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Raises unless the two structures have their containers and leaves in the same places.

    Args:
      nest1, nest2: the structures.
      check_types: containers must also have the same type. All lists count as one type, all
        mappings too, and namedtuples with the same name and fields. Dicts must have the
        same keys.
      expand_composites: compare the components of composite values.

    Raises:
      ValueError: different numbers of elements, different keys, a leaf against a container.
      TypeError: containers of different types, if `check_types`.

    >>> from gradtape._src.base import nest
    >>> nest.assert_same_structure([1, {"a": 2}], [3, {"a": 4}])
    """
    try:
        _compare(nest1, nest2, check_types, expand_composites, ())
    except _Mismatch as mismatch:
        place = "".join(f"[{key!r}]" for key in mismatch.path)
        raise mismatch.error(
            "assert_same_structure: The two structures don't have the same nested structure; "
            f"expected {_outline(nest1)}; got {_outline(nest2)}. At structure{place}: "
            f"{mismatch.what}."
        ) from None
    except RecursionError:
        raise _too_deep("assert_same_structure", nest1) from None


class _Mismatch(Exception):
    def __init__(self, error: type[Exception], path: tuple, what: str) -> None:
        super().__init__(what)
        self.error, self.path, self.what = error, path, what


def _compare(a: Any, b: Any, check_types: bool, expand: bool, path: tuple) -> None:
    kind_a, kind_b = _kind(a, expand), _kind(b, expand)
    if kind_a is None and kind_b is None:
        return
    if kind_a in _COMPOSITES and kind_b in _COMPOSITES:
        spec_a, spec_b = (x if k is _COMPOSITE_SPEC else x._type_spec for x, k in ((a, kind_a), (b, kind_b)))
        if spec_a.most_specific_common_supertype([spec_b]) is None:
            what = f"Incompatible CompositeTensor TypeSpecs: {spec_a} vs. {spec_b}"
            raise _Mismatch(ValueError, path, what)
        return
    if kind_a is None or kind_b is None:
        nested, leaf = (b, a) if kind_a is None else (a, b)
        raise _Mismatch(ValueError, path, f"{_typed(nested)} is a sequence, {_typed(leaf)} is not")
    if check_types:
        if not _same_container(a, b):
            raise _Mismatch(TypeError, path, f"{_typed(a)} has another type than {_typed(b)}")
        if kind_a is _MAPPING and set(a) != set(b):
            raise _Mismatch(ValueError, path, f"the keys are {list(a)} and {list(b)}")
    children_a, children_b = kind_a.children(a), kind_b.children(b)
    # The common elements first, then their number: this is TensorFlow's order, and decides which exception is raised.
    for key, x, y in zip(kind_a.keys(a), children_a, children_b, strict=False):
        if type(x) in _LEAVES and type(y) in _LEAVES:
            continue
        _compare(x, y, check_types, expand, (*path, key))
    if len(children_a) != len(children_b):
        counts = f"the numbers of elements are {len(children_a)} and {len(children_b)}"
        raise _Mismatch(ValueError, path, counts)


def _same_container(a: Any, b: Any) -> bool:
    cls_a, cls_b = type(a), type(b)
    if cls_a is cls_b or (isinstance(a, list) and isinstance(b, list)):
        return True
    if _kind(a) is _MAPPING and _kind(b) is _MAPPING:
        return True
    # A class may name the type it is compared as: tuples that Keras 2 layers inspect.
    if getattr(cls_a, "_nest_type", cls_a) is getattr(cls_b, "_nest_type", cls_b):
        return True
    return (
        _kind(a) is _NAMEDTUPLE
        and _kind(b) is _NAMEDTUPLE
        and (cls_a.__name__, a._fields) == (cls_b.__name__, b._fields)
    )


def map_structure(func: Callable, *structure: Any, **kwargs: Any) -> Any:
    """Applies `func` to the leaves of one or more structures of the same form.

    Args:
      func: called with one leaf of each structure, in the order of `flatten`.
      *structure: the structures; the result has the form and types of the first.
      check_types: as for `assert_same_structure` (default True).
      expand_composites: as for `flatten` (default False).

    Raises:
      TypeError: if `func` cannot be called, or containers differ in type.
      ValueError: no structure, different forms, or an unknown keyword.

    >>> from gradtape._src.base import nest
    >>> nest.map_structure(lambda x, y: x + y, {"a": (1, 2)}, {"a": (10, 20)})
    {'a': (11, 22)}
    """
    if not callable(func):
        raise TypeError(f"map_structure: func must be callable; got {_typed(func)}.")
    if not structure:
        raise ValueError("map_structure: Must provide at least one structure; got none.")
    check_types = kwargs.pop("check_types", True)
    expand = kwargs.pop("expand_composites", False)
    if kwargs:
        raise ValueError(
            "map_structure: Only valid keyword arguments are `check_types` and "
            f"`expand_composites`, not: `{'`, `'.join(kwargs)}`."
        )
    first = structure[0]
    for other in structure[1:]:
        assert_same_structure(first, other, check_types, expand)
    flat = [flatten(s, expand) for s in structure]
    return pack_sequence_as(first, [func(*leaves) for leaves in zip(*flat, strict=True)], expand)


def flatten_up_to(shallow: Any, structure: Any) -> list:
    """The parts of `structure` at the places where `shallow` has its leaves."""
    kind = _kind(shallow)
    if kind is None:
        return [structure]
    other = _kind(structure)
    parts = None
    if kind is _MAPPING and other is _MAPPING:
        # Entries that `shallow` does not have are left out, as in TensorFlow.
        if set(shallow) <= set(structure):
            parts = [structure[key] for key in _sorted_keys(shallow)]
    elif other is not None and kind is not _MAPPING:
        parts = other.children(structure)
    if parts is None or len(parts) != len(kind.children(shallow)):
        raise ValueError(
            "flatten_up_to: the structure does not begin like the shallow one; expected "
            f"{_outline(shallow)}; got {_outline(structure)}."
        )
    out: list = []
    for child, part in zip(kind.children(shallow), parts, strict=True):
        out.extend(flatten_up_to(child, part))
    return out


def map_structure_up_to(shallow: Any, func: Callable, *structure: Any) -> Any:
    """The same as `map_structure`, but the leaves are the parts at the places where `shallow` has its leaves."""
    flat = [flatten_up_to(shallow, s) for s in structure]
    return pack_sequence_as(shallow, [func(*parts) for parts in zip(*flat, strict=True)])


# --- words for messages ------------------------------------------------------------------------


def _short(value: Any, limit: int = 120) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _typed(value: Any) -> str:
    return f"{type(value).__name__} {_short(value, 60)}"


def _outline(structure: Any, depth: int = 6) -> str:
    """The structure with a dot for each leaf: `{'a': [., .]}`."""
    kind = _kind(structure)
    if kind is None:
        return "."
    if depth == 0:
        return "..."
    parts = [_outline(child, depth - 1) for child in kind.children(structure)[:20]]
    if kind is _MAPPING:
        pairs = zip(_sorted_keys(structure)[:20], parts, strict=True)
        return "{" + ", ".join(f"{key!r}: {part}" for key, part in pairs) + "}"
    inside = ", ".join(parts)
    if kind is _NAMEDTUPLE:
        return f"{type(structure).__name__}({inside})"
    return f"({inside})" if isinstance(structure, tuple) else f"[{inside}]"
