"""What variables and modules have in common: checkpoints look into them (`gradtape/train/trackable.py`)."""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Trackable:
    """An object that a checkpoint saves, or looks into."""

    __slots__ = ()

    def _no_dependency(self, value: T) -> T:
        """A value that is to be set as an attribute and need not be saved: as it is, for a checkpoint looks later."""
        return value

    # What Keras 2 calls as it makes parts of an object. A checkpoint finds them by itself, later.

    def _add_variable_with_custom_getter(
        self, name: str, getter: Callable[..., T], overwrite: bool = False, **kwargs: Any
    ) -> T:
        """The variable that `getter` makes."""
        return getter(name=name, **kwargs)

    def _track_trackable(self, trackable: T, name: str, overwrite: bool = False) -> T:
        """A part of the object: as it is."""
        return trackable

    def _maybe_initialize_trackable(self) -> None:
        """Nothing to do."""

    def _handle_deferred_dependencies(self, name: str, trackable: Any) -> None:
        """Nothing to do."""


class AutoTrackable(Trackable):
    """One whose attributes a checkpoint follows."""
