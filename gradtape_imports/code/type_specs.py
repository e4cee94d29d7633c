"""`tensorflow.python.framework.type_spec_registry`: specs under names, for files."""

from __future__ import annotations

import re
from collections.abc import Callable

from gradtape._src.base.type_spec import TypeSpec

# TensorFlow's name, which a package accesses.
_NAME_TO_TYPE_SPEC: dict[str, type[TypeSpec]] = {}
_TYPE_SPEC_TO_NAME: dict[type[TypeSpec], str] = {}


def register(name: str) -> Callable[[type[TypeSpec]], type[TypeSpec]]:
    """A decorator that registers a class of specs under a name, `project.Class`.

    Raises:
      TypeError: if the name is not a string, or the decorated class is not a TypeSpec.
      ValueError: if the name has another form, or it or the class is registered already.
    """
    if not isinstance(name, str):
        raise TypeError(f"Expected `name` to be a string; got {name!r}")
    if not re.fullmatch(r"\w[\w-]*(\.\w[\w-]*)*\.\w+", name):
        raise ValueError(f"Registered name must have the form '{{project_name}}.{{type_name}}'; got {name!r}")

    def decorate(cls: type[TypeSpec]) -> type[TypeSpec]:
        if not (isinstance(cls, type) and issubclass(cls, TypeSpec)):
            raise TypeError(f"Expected `cls` to be a TypeSpec; got {cls!r}")
        if cls in _TYPE_SPEC_TO_NAME:
            raise ValueError(
                f"Class {cls.__module__}.{cls.__name__} has already been registered with name {_TYPE_SPEC_TO_NAME[cls]}."
            )
        if name in _NAME_TO_TYPE_SPEC:
            raise ValueError(
                f"Name {name} has already been registered for class {_NAME_TO_TYPE_SPEC[name].__name__}."
            )
        _NAME_TO_TYPE_SPEC[name] = cls
        _TYPE_SPEC_TO_NAME[cls] = name
        return cls

    return decorate


def get_name(cls: type[TypeSpec]) -> str:
    """The name of a class.

    Raises:
      TypeError: if it is not a class of specs.
      ValueError: if it has none.
    """
    if not (isinstance(cls, type) and issubclass(cls, TypeSpec)):
        raise TypeError(f"Expected `cls` to be a TypeSpec; got {cls!r}")
    if cls not in _TYPE_SPEC_TO_NAME:
        raise ValueError(f"TypeSpec {cls.__module__}.{cls.__name__} has not been registered.")
    return _TYPE_SPEC_TO_NAME[cls]


def lookup(name: str) -> type[TypeSpec]:
    """The class of a name.

    Raises:
      ValueError: if there is none.
    """
    if name not in _NAME_TO_TYPE_SPEC:
        raise ValueError(f"No TypeSpec has been registered with name {name!r}")
    return _NAME_TO_TYPE_SPEC[name]
