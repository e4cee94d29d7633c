"""The fields of extension types: allowed annotations, and conversion of values to them.

A field is a Python value, a tensor, a composite tensor, a shape, a type, or a tuple, mapping or union of these. In
a spec, tensors are replaced by their specs.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base.dtypes import DType, as_dtype
from gradtape._src.base.shape import TensorShape, TensorSpec, as_shape
from gradtape._src.base.type_spec import TypeSpec
from gradtape._src.tensors.composite import CompositeTensor

NO_DEFAULT: Any = types.SimpleNamespace()
_NONE = type(None)
_PLAIN = (int, float, str, bytes, bool, _NONE)
# Names of attributes of extension types and their specs.
_RESERVED = frozenset(
    (
        "self", "Spec", "_type_spec", "_shape_invariant_to_type_spec", "_consumers", "value_type", "is_compatible_with",
        "most_specific_compatible_type", "_with_tensor_ranks_only", "_to_components", "_from_components",
        "_component_specs", "_to_tensor_list", "_from_tensor_list", "_from_compatible_tensor_list", "_flat_tensor_specs",
        "_serialize", "_deserialize", "_to_legacy_output_types", "_to_legacy_output_shapes", "_to_legacy_output_classes",
        "_keras_mask",
    )
)  # fmt: skip


class ImmutableDict(Mapping):
    """An immutable mapping: the value of a field annotated as a mapping."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._dict = dict(*args, **kwargs)

    def __getitem__(self, key: Any) -> Any:
        return self._dict[key]

    def __contains__(self, key: Any) -> bool:
        return key in self._dict

    def __iter__(self) -> Iterator:
        return iter(self._dict)

    def __len__(self) -> int:
        return len(self._dict)

    def __repr__(self) -> str:
        return f"ImmutableDict({self._dict})"


class Field(NamedTuple):
    """A field: its name, its annotation, and its default, if any."""

    name: str
    value_type: Any
    default: Any = NO_DEFAULT

    @classmethod
    def of(cls, name: str, value_type: Any, default: Any) -> Field:
        """A field, checked.

        Raises:
          TypeError: for an unsupported annotation, or a default that does not match it.
        """
        try:
            check(value_type)
        except TypeError as e:
            raise TypeError(f"In field {name!r}: {e}") from e
        if default is not NO_DEFAULT:
            default = converted(default, value_type, f"default value for {name}", _default)
        return cls(name, value_type, default)


def is_reserved(name: str) -> bool:
    """Whether a name is reserved."""
    return name in _RESERVED or name.lower().startswith("_tf_extension_type")


# ---- annotations ----------------------------------------------------------------------------------


def check(value_type: Any, is_key: bool = False) -> None:
    """Raises TypeError for an unsupported annotation; forward references are not checked."""
    origin, args = typing.get_origin(value_type), typing.get_args(value_type)
    if isinstance(value_type, (str, typing.ForwardRef)) or value_type is None:
        return
    if isinstance(value_type, type) and origin is None:
        if value_type in _PLAIN or value_type is DType:
            return
        if not (value_type in (_core.Tensor, TensorShape) or issubclass(value_type, CompositeTensor)):
            raise TypeError(f"Unsupported type annotation {value_type.__name__!r}")
        if is_key:
            raise TypeError(
                f"Mapping had a key {value_type.__name__!r} with type {type(value_type).__name__!r}"
            )
    elif origin is tuple or _is_union(origin):
        for arg in args:
            if not (arg is Ellipsis and origin is tuple and len(args) == 2):
                check(arg, is_key)
    elif origin is Mapping:
        check(args[0], True)
        check(args[1], is_key)
    else:
        raise TypeError(f"Unsupported type annotation {value_type!r}")


def _is_union(origin: Any) -> bool:
    return origin in (typing.Union, types.UnionType)


# ---- values ---------------------------------------------------------------------------------------

# Converts the value given for a tensor, or for a composite tensor class, to the value of the field.
_Leaf = Callable[[Any, Any, str], Any]


def convert_fields(fields: Sequence[Field], values: dict[str, Any], for_spec: bool) -> None:
    """Checks and converts the values of fields, in place.

    Raises:
      ValueError: if fields are missing or unknown.
      TypeError: if a value does not match its annotation.
    """
    expected = {f.name for f in fields}
    extra, missing = set(values) - expected, expected - set(values)
    if extra:
        raise ValueError(f"Got unexpected fields: {extra}")
    if missing:
        raise ValueError(f"Missing required fields: {missing}")
    leaf = _spec if for_spec else _value
    values.update({f.name: converted(values[f.name], f.value_type, f.name, leaf) for f in fields})


def converted(value: Any, expected: Any, path: str, leaf: _Leaf) -> Any:
    """A value converted to its annotation.

    Raises:
      TypeError: if it does not match; `path` is its place for the message.
    """
    origin, args = typing.get_origin(expected), typing.get_args(expected)
    expected = _NONE if expected is None else expected
    if origin is tuple:
        return _tuple(value, args, path, leaf)
    if origin is Mapping:
        return _mapping(value, args, path, leaf)
    if _is_union(origin):
        return _union(value, expected, path, leaf)
    if not isinstance(expected, type):
        raise TypeError(f"{path}: Unsupported type annotation {expected!r}")
    if expected is _core.Tensor or issubclass(expected, CompositeTensor):
        return leaf(value, expected, path)
    for cls, name, convert in ((TensorShape, "tf.TensorShape", as_shape), (DType, "tf.DType", as_dtype)):
        if expected is cls:
            try:
                return convert(value)
            except TypeError as e:
                raise _wrong(path, name, value) from e
    if not isinstance(value, expected):
        raise _wrong(path, expected.__name__, value)
    return value


def _wrong(path: str, expected: str, value: Any) -> TypeError:
    return TypeError(f"{path}: expected {expected!r}, got {type(value).__name__!r}")


def _value(value: Any, expected: Any, path: str) -> Any:
    if isinstance(value, expected):
        return value
    if expected is not _core.Tensor:
        raise _wrong(path, expected.__name__, value)
    try:
        return ops.convert_to_tensor(value)
    except (TypeError, ValueError) as e:
        raise TypeError(f"{path}: expected a Tensor, got {type(value).__name__!r}") from e


def _default(value: Any, expected: Any, path: str) -> Any:
    # Not a tensor yet: it may be used inside a trace or eagerly.
    return value if expected is _core.Tensor else _value(value, expected, path)


def _spec(value: Any, expected: Any, path: str) -> Any:
    if expected is _core.Tensor:
        if not isinstance(value, TensorSpec):
            raise TypeError(f"{path}: expected a TensorSpec, got {type(value).__name__!r}")
    elif not (isinstance(value, TypeSpec) and issubclass(value.value_type, expected)):
        raise TypeError(
            f"{path}: expected a TypeSpec for {expected.__name__!r}, got {type(value).__name__!r}"
        )
    return value


def _tuple(value: Any, args: tuple, path: str, leaf: _Leaf) -> tuple:
    if not isinstance(value, Sequence):
        raise TypeError(f"{path}: expected tuple, got {type(value).__name__!r}")
    if len(args) == 2 and args[1] is Ellipsis:
        args = (args[0],) * len(value)
    if len(value) != len(args):
        raise TypeError(
            f"{path}: expected tuple with length {len(args)}, got {type(value).__name__!r} with length {len(value)}"
        )
    return tuple(
        converted(v, t, f"{path}[{i}]", leaf) for i, (v, t) in enumerate(zip(value, args, strict=True))
    )


def _mapping(value: Any, args: tuple, path: str, leaf: _Leaf) -> ImmutableDict:
    if not isinstance(value, Mapping):
        raise TypeError(f"{path}: expected mapping, got {type(value).__name__!r}")
    keys, values = args
    return ImmutableDict(
        (converted(k, keys, f"{path}[<key>]", leaf), converted(v, values, f"{path}[{k!r}]", leaf))
        for k, v in value.items()
    )


def _union(value: Any, expected: Any, path: str, leaf: _Leaf) -> Any:
    for option in typing.get_args(expected):
        try:
            return converted(value, option, path, leaf)
        except TypeError:
            continue
    raise TypeError(f"{path}: expected {expected!r}, got {type(value).__name__!r}")
