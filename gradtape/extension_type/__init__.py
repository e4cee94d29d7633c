"""`tf.experimental.ExtensionType`: user-defined composite tensors; and `tf.experimental.extension_type`.

The class statement generates the constructor, and the spec as `MyType.Spec`. Functions, control flow, tapes and
datasets accept the values like any composite tensor.
"""

from __future__ import annotations

import abc
import functools
import inspect
import sys
import typing
from collections.abc import Callable
from inspect import Parameter
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import nest
from gradtape._src.base.type_spec import TypeSpec
from gradtape._src.public import absent as _absent
from gradtape._src.tensors.composite import CompositeTensor
from gradtape.extension_type import dispatch as dispatch
from gradtape.extension_type import fields
from gradtape.extension_type.fields import NO_DEFAULT, Field
from gradtape.extension_type.specs import (
    BatchableExtensionTypeSpec,
    ExtensionTypeSpec,
    FrozenFields,
    of_fields,
)

__all__ = ["as_dict"]

# What a class body may contain besides annotated fields.
_NO_FIELDS = (property, classmethod, staticmethod, functools.cached_property)


class ExtensionType(FrozenFields, CompositeTensor, metaclass=abc.ABCMeta):
    """The base of user-defined composite tensors: a subclass annotates its fields.

    A field is a Python number, string, boolean or None; a `tf.Tensor`, a composite tensor, a `tf.TensorShape` or
    `tf.DType`; a tuple, `typing.Mapping` or `typing.Union` of these. Values cannot be changed.

    >>> import gradtape as tf
    >>> class Masked(tf.experimental.ExtensionType):
    ...     values: tf.Tensor
    ...     mask: tf.Tensor
    >>> x = Masked([1.0, 2.0], [True, False])
    >>> tf.function(lambda x: tf.where(x.mask, x.values, 0.0))(x).numpy()
    array([1., 0.], dtype=float32)
    >>> tf.type_spec_from_value(x)
    Masked.Spec(values=TensorSpec(shape=(2,), dtype=tf.float32, name=None), mask=TensorSpec(shape=(2,), dtype=tf.bool, \
name=None))

    A method `__validate__` is called after construction; a custom `__init__` must set all fields; a nested class
    `Spec` adds methods to the spec.
    """

    __slots__ = ("_cached_spec", "__dict__", "__weakref__")

    def __init_subclass__(cls, is_base: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not is_base:
            _check_class(cls)
            cls._fields(_names_around())
            _add_constructor(cls)
            _add_spec(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if type(self) in (ExtensionType, BatchableExtensionType):
            raise AssertionError(
                f"Cannot create an instance of {type(self).__name__} because {type(self).__name__} is an abstract base "
                "class."
            )

    @classmethod
    def _fields(cls, names: dict[str, Any] | None = None) -> tuple[Field, ...]:
        """The fields, those of base classes first; `names`: more names for annotations that are strings."""
        if "_known_fields" in cls.__dict__:
            return cls.__dict__["_known_fields"]
        try:
            hints = typing.get_type_hints(cls, localns=names)
            resolved = True
        except (NameError, AttributeError):
            # An annotation may name a class that does not exist yet.
            hints, resolved = {}, False
            for base in reversed(cls.__mro__):
                hints.update(base.__dict__.get("__annotations__", {}))
        fields = tuple(Field.of(name, kind, getattr(cls, name, NO_DEFAULT)) for name, kind in hints.items())
        if resolved:
            type.__setattr__(cls, "_known_fields", fields)
        return fields

    def _convert_fields(self) -> None:
        fields.convert_fields(self._fields(), self.__dict__, for_spec=False)

    def __validate__(self) -> None:
        """Called after construction."""

    @property
    def _type_spec(self) -> Any:
        spec = getattr(self, "_cached_spec", None)
        if spec is None:
            spec = self.Spec.from_value(self)  # type: ignore[attr-defined]
            object.__setattr__(self, "_cached_spec", spec)
        return spec

    def __eq__(self, other: Any) -> Any:
        if type(self) is not type(other) or self._type_spec != other._type_spec:
            return False
        pairs = zip(*(nest.flatten(x, expand_composites=True) for x in (self, other)), strict=True)
        same = [_all_equal(a, b) for a, b in pairs]
        return ops.reduce_all(ops.stack(same)) if same else ops.constant(True)

    def __ne__(self, other: Any) -> Any:
        same = self == other
        return ops.logical_not(same) if isinstance(same, _core.Tensor) else not same

    def __repr__(self) -> str:
        shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in self._fields())
        return f"{type(self).__qualname__}({shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        return of_fields, (type(self), dict(self.__dict__))


class BatchableExtensionType(ExtensionType, is_base=True):
    """An extension type whose values can be batched and taken out of batches: `tf.data` and `tf.map_fn` do that.

    By default every tensor and shape among the fields gets an additional axis; other types need a
    `__batch_encoder__`, an `ExtensionTypeBatchEncoder`.
    """

    __slots__ = ()


def as_dict(value: Any) -> dict[str, Any]:
    """The fields of a value by name; nested values are not converted.

    >>> import gradtape as tf
    >>> class Point(tf.experimental.ExtensionType):
    ...     x: int
    ...     y: int
    >>> tf.experimental.extension_type.as_dict(Point(1, 2))
    {'x': 1, 'y': 2}
    """
    return {f.name: getattr(value, f.name) for f in value._fields()}


def _all_equal(a: Any, b: Any) -> Any:
    """Whether two tensors have the same shape and elements."""
    if a.shape.is_fully_defined() and b.shape.is_fully_defined():
        return ops.reduce_all(ops.equal(a, b)) if a.shape == b.shape else ops.constant(False)
    same_shape = ops.reduce_all(ops.equal(ops.shape(a), ops.shape(b)))
    return ops.logical_and(same_shape, ops.reduce_all(ops.equal(a, b)))


# ---- what the class statement generates --- ---------------------------------------------------------


def _names_around() -> dict[str, Any]:
    """The names in the scope of the class statement, which may be inside a function."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__") == "abc":
        frame = frame.f_back
    return {**frame.f_globals, **frame.f_locals}


def _check_class(cls: type) -> None:
    """Raises ValueError for fields with reserved names or without an annotation."""
    annotations = cls.__dict__.get("__annotations__", {})
    for name, value in cls.__dict__.items():
        if name == "Spec":
            if not isinstance(value, type):
                raise ValueError(f"{cls.__qualname__}.Spec must be a nested class; got {value}.")
            if value.__bases__ not in ((TypeSpec,), (object,)):
                raise ValueError(f"{cls.__qualname__}.Spec must be directly subclassed from tf.TypeSpec.")
    for name in (*cls.__dict__, *annotations):
        if name != "Spec" and fields.is_reserved(name):
            raise ValueError(
                f"The field annotations for {cls.__name__} are invalid. Field '{name}' is reserved."
            )
    if "Spec" in annotations:
        raise ValueError(f"The field annotations for {cls.__name__} are invalid. Field 'Spec' is reserved.")
    for name, value in cls.__dict__.items():
        special = (name.startswith("__") and name.endswith("__")) or name.startswith("_abc_")
        if not (name in annotations or special or callable(value) or isinstance(value, _NO_FIELDS)):
            raise ValueError(
                f"The field annotations for {cls.__name__} are invalid. Field {name} is missing a type annotation."
            )


def _add_constructor(cls: Any) -> None:
    """Adds the constructor of an extension type or spec: the user's, or one with the fields as parameters."""
    if "__init__" in cls.__dict__:
        cls.__init__ = _watched(cls.__init__)
        return
    is_spec = issubclass(cls, TypeSpec)
    listed, with_defaults, by_name = [], False, False
    for f in cls._fields():
        default = Parameter.empty if is_spec or f.default is NO_DEFAULT else f.default
        with_defaults = with_defaults or default is not Parameter.empty
        by_name = by_name or (with_defaults and default is Parameter.empty)
        kind = Parameter.KEYWORD_ONLY if by_name else Parameter.POSITIONAL_OR_KEYWORD
        listed.append(Parameter(f.name, kind, default=default, annotation=f.value_type))
    signature = inspect.Signature(listed)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        self.__dict__.update(bound.arguments)
        self._convert_fields()
        self.__validate__()

    own = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    __init__.__signature__ = inspect.Signature([own, *listed])  # type: ignore[attr-defined]
    cls.__init__ = __init__


def _watched(constructor: Callable) -> Callable:
    """Wraps a user constructor: it may set fields, which are checked afterwards."""

    @functools.wraps(constructor)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        self.__dict__["_is_constructing"] = True
        try:
            constructor(self, *args, **kwargs)
        finally:
            self.__dict__.pop("_is_constructing", None)
        self._convert_fields()
        self.__validate__()

    return __init__


def _add_spec(cls: Any) -> None:
    """Adds the class of the specs, `cls.Spec`."""
    name = f"{cls.__qualname__}.Spec"
    body: dict[str, Any] = {"value_type": cls, "__module__": cls.__module__}
    given = cls.__dict__.get("Spec")
    own = {} if given is None else given.__dict__
    for key, value in own.items():
        if fields.is_reserved(key):
            raise ValueError(f"TypeSpec {name} uses reserved name '{key}'.")
        if any(f.name == key for f in cls._fields()):
            raise ValueError(
                f"TypeSpec {name} defines a variable '{key}' which shadows a field in {cls.__qualname__}"
            )
        if key not in ("__module__", "__dict__", "__weakref__"):
            body[key] = value
    base: type = ExtensionTypeSpec
    if issubclass(cls, BatchableExtensionType):
        base = BatchableExtensionTypeSpec
        if hasattr(cls, "__batch_encoder__"):
            body.setdefault("__batch_encoder__", cls.__batch_encoder__)
    elif hasattr(cls, "__batch_encoder__") or "__batch_encoder__" in body:
        raise ValueError("__batch_encoder__ should only be defined for BatchableExtensionType classes.")
    spec = type(f"{cls.__name__}.Spec", (base,), body)
    spec.__qualname__ = name
    cls.Spec = spec
    _add_constructor(spec)


__getattr__, __dir__ = _absent.of("experimental.extension_type")
