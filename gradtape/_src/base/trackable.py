"""The common base of variables and modules, which checkpoints look into (`gradtape/train/trackable.py`)."""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Trackable:
    """An object that a checkpoint saves, or looks into."""

    __slots__ = ()

    def _no_dependency(self, value: T) -> T:
        """A value to be set as an attribute without being saved; returned unchanged, since checkpoints look later."""
        return value

    # Keras 2 calls these when it creates parts of an object. A checkpoint finds the parts by itself, later.

    def _add_variable_with_custom_getter(
        self, name: str, getter: Callable[..., T], overwrite: bool = False, **kwargs: Any
    ) -> T:
        """The variable that `getter` creates."""
        return getter(name=name, **kwargs)

    def _track_trackable(self, trackable: T, name: str, overwrite: bool = False) -> T:
        """A part of the object; returned unchanged."""
        return trackable

    def _maybe_initialize_trackable(self) -> None:
        """Nothing to do."""

    def _handle_deferred_dependencies(self, name: str, trackable: Any) -> None:
        """Nothing to do."""


class AutoTrackable(Trackable):
    """An object whose attributes a checkpoint follows."""
