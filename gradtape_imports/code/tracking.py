"""`tf.__internal__.tracking`: what TensorFlow's checkpoints ask of objects.

Checkpoints of gradtape look for state in the attributes of objects when they save (`gradtape/train/trackable.py`), so
nothing has to be noted when an attribute is set.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from gradtape._src.base.trackable import AutoTrackable as AutoTrackable
from gradtape._src.base.trackable import Trackable as Trackable
from gradtape.train.trackable import children
from gradtape_imports.code.keras_deps import register_session_provider as register_session_provider

T = TypeVar("T")


class TrackableReference(NamedTuple):
    """A part of an object, and its name there."""

    name: str
    ref: Any


class TrackableDataStructure(Trackable):
    """TensorFlow's wrapper of lists and dictionaries: none are wrapped here."""


class DelegatingTrackableMixin:
    """Looks like another object to checkpoints."""

    def __init__(self, trackable_obj: Any) -> None:
        self._trackable = trackable_obj

    def _checkpoint_children(self) -> dict[str, Any]:
        return children(self._trackable)


class ObjectGraphView:
    """The parts of objects that may hold state."""

    def __init__(self, root: Any, attached_dependencies: Any = None) -> None:
        self.root = root

    @classmethod
    def children(cls, obj: Any, save_type: Any = None, **kwargs: Any) -> dict[str, Any]:
        """The parts of an object, by name."""
        return children(obj)


def no_automatic_dependency_tracking(method: T) -> T:
    """A decorator of methods that set attributes that are not for checkpoints: here a checkpoint looks later."""
    return method


def sticky_attribute_assignment(trackable: Any, name: str, value: T) -> T:
    """The value to be set: as it is."""
    return value


def wrap(value: T) -> T:
    """A list or dictionary that checkpoints see: as it is."""
    return value


class CheckpointInitialValueCallable:
    """What gives a variable its first value from a checkpoint: here values come after the variable is made."""


class RestoredResource(Trackable):
    """A resource that was read from a file: there are none."""
