"""`tf.__internal__.tracking`: what TensorFlow's checkpoints ask of objects.

gradtape's checkpoints look for state in the attributes of objects when they save (`gradtape/train/trackable.py`),
so setting an attribute needs no tracking. Layers of Keras 2 do track attributes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import gradtape as tf
from gradtape._src.base.trackable import AutoTrackable as AutoTrackable
from gradtape._src.base.trackable import Trackable as Trackable
from gradtape.train.trackable import children
from gradtape_imports.code.keras_deps import register_session_provider as register_session_provider


class TrackableReference(NamedTuple):
    """A part of an object, and its name there."""

    name: str
    ref: Any


class TrackableDataStructure(Trackable):
    """A list, tuple or dictionary that layers of Keras 2 look into for layers and variables."""

    @property
    def _values(self) -> list:
        container: Any = self
        return list(container.values() if isinstance(container, dict) else container)

    @property
    def trainable_weights(self) -> list:
        """Of the layers in it, and variables that are trainable."""
        return self._weights("trainable_weights", lambda v: v.trainable)

    @property
    def non_trainable_weights(self) -> list:
        """Of the layers in it, and variables that are not trainable."""
        return self._weights("non_trainable_weights", lambda v: not v.trainable)

    @property
    def weights(self) -> list:
        """All of them."""
        return self.trainable_weights + self.non_trainable_weights

    trainable_variables, non_trainable_variables, variables = (
        trainable_weights,
        non_trainable_weights,
        weights,
    )

    def _weights(self, kind: str, mine: Callable[[Any], bool]) -> list:
        own = [v for v in self._values if isinstance(v, tf.Variable) and mine(v)]
        return own + [w for v in self._values for w in getattr(v, kind, ())]

    def __reduce__(self) -> Any:
        container: Any = self
        plain: Any = next(kind for kind in (list, tuple, dict) if isinstance(container, kind))
        return type(self), (plain(container),)


class ListWrapper(list, TrackableDataStructure):
    """A list that is an attribute."""


class _TupleWrapper(tuple, TrackableDataStructure):
    """A tuple that is an attribute."""

    _nest_type = tuple


class _DictWrapper(dict, TrackableDataStructure):
    """A dictionary that is an attribute."""


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


@contextmanager
def no_automatic_dependency_tracking_scope(obj: Any) -> Iterator[None]:
    """Inside of it the object takes no note of attributes that are set (`_self_setattr_tracking`)."""
    before = getattr(obj, "_self_setattr_tracking", True)
    obj._self_setattr_tracking = False
    try:
        yield
    finally:
        obj._self_setattr_tracking = before


def no_automatic_dependency_tracking(method: Callable) -> Callable:
    """A decorator of methods that set attributes which the object itself takes no note of."""

    @functools.wraps(method)
    def untracked(self: Any, *args: Any, **kwargs: Any) -> Any:
        with no_automatic_dependency_tracking_scope(self):
            return method(self, *args, **kwargs)

    return untracked


def sticky_attribute_assignment(trackable: Any, name: str, value: Any) -> Any:
    """The value to set: lists and dictionaries are wrapped, so that layers see their items."""
    return wrap(value)


def wrap(value: Any) -> Any:
    """Wraps lists, tuples and dictionaries, so that layers see their items; anything else is unchanged."""
    if type(value) is list:
        return ListWrapper(map(wrap, value))
    if type(value) is tuple:
        inner = [wrap(v) for v in value]
        return _TupleWrapper(inner) if any(isinstance(v, Trackable) for v in inner) else value
    return _DictWrapper((k, wrap(v)) for k, v in value.items()) if type(value) is dict else value


wrap_or_unwrap = wrap


class CheckpointInitialValueCallable:
    """Gives a variable its first value from a checkpoint; here values are restored after the variable is created."""


class RestoredResource(Trackable):
    """A resource that was read from a file: there are none."""
