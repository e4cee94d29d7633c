"""`tf.__internal__.saved_model.load`: which classes stored objects belong to. Nothing is revived by them here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

_registered: dict[str, tuple[Callable, Any]] = {}


class VersionedTypeRegistration(NamedTuple):
    """How one version of a class is made again."""

    object_factory: Callable
    version: int
    min_producer_version: int
    min_consumer_version: int
    bad_consumers: Any = None
    setter: Any = setattr


def register_revived_type(identifier: str, predicate: Callable, versions: Any) -> None:
    """Notes a class."""
    _registered[identifier] = (predicate, versions)


def registered_identifiers() -> Any:
    """The names of the classes."""
    return _registered.keys()


def get_setter(proto: Any) -> Any:
    """Returns None: there is no registered setter for attributes of an object."""
    return None
