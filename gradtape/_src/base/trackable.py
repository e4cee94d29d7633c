"""What variables and modules have in common: checkpoints look into them (`gradtape/train/trackable.py`)."""

from typing import TypeVar

T = TypeVar("T")


class Trackable:
    """An object that a checkpoint saves, or looks into."""

    __slots__ = ()

    def _no_dependency(self, value: T) -> T:
        """A value that is to be set as an attribute and need not be saved: as it is, for a checkpoint looks later."""
        return value


class AutoTrackable(Trackable):
    """One whose attributes a checkpoint follows."""
