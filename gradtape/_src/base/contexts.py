"""Thread state for a block of code. `_core.Scope` is the only way to change it; these are its usual forms.

A scope is entered and left natively, each in one atomic step: an interrupt comes before or after it, never in
between. A scope that is destroyed is left. So a value that applies to a block of code is a `_core.Setting` that a
scope sets, never an attribute that is set and restored by hand.
"""

from __future__ import annotations

import threading
from typing import Any

from gradtape import _core


def aside(trace: Any = None) -> _core.Scope:
    """A scope hidden from the caller's tapes and trace: ops run at once, or are written to `trace`."""
    return _core.Scope(recording=False, trace=trace)


def unrecorded() -> _core.Scope:
    """A scope in which the tapes that are open now record nothing."""
    return _core.Scope(recording=False)


def stack() -> _core.Setting:
    """A setting whose value is a tuple of the values given by all open scopes, innermost last."""
    return _core.Setting((), lambda outer, value: (*outer, value))


class Settable(threading.local):
    """A value that a thread sets from now on, or a scope for a block; values set in a block end with it."""

    def __init__(self, default: Any) -> None:
        self._cell = _core.Setting([default])

    def get(self) -> Any:
        """The current value."""
        return self._cell.now()[0]

    def set(self, value: Any) -> None:
        """Sets the value until it is set again, or until the block in which it is set ends."""
        self._cell.now()[0] = value

    def to(self, value: Any) -> _core.Scope:
        """A scope in which it has this value."""
        return self._cell.to([value])
