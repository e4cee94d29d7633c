"""State of a thread for a block of code. `_core.Scope` is the only way to change it; these are its usual forms.

A scope is entered and left natively, each in one atomic step: an interrupt comes before or after it, never in between. A
scope that is destroyed is left. So a value that applies to a block of code is a `_core.Setting`, set by a scope, and never
an attribute that is set and restored by hand.
"""

from __future__ import annotations

import threading
from typing import Any

from gradtape import _core


def aside(trace: Any = None) -> _core.Scope:
    """Neither the tapes nor the trace of the caller see what is done here: it runs at once, or is written to `trace`."""
    return _core.Scope(recording=False, trace=trace)


def unrecorded() -> _core.Scope:
    """Nothing in this block is recorded by the tapes that are open now."""
    return _core.Scope(recording=False)


def stack() -> _core.Setting:
    """A setting whose value is all that open scopes were given, as a tuple: the last is the innermost."""
    return _core.Setting((), lambda outer, value: (*outer, value))


class Settable(threading.local):
    """A value that a thread sets from now on, and that a scope sets for a block: what is set in the block ends with it."""

    def __init__(self, default: Any) -> None:
        self._cell = _core.Setting([default])

    def get(self) -> Any:
        """The value now."""
        return self._cell.now()[0]

    def set(self, value: Any) -> None:
        """Sets it until it is set again, or the block that has set it before is left."""
        self._cell.now()[0] = value

    def to(self, value: Any) -> _core.Scope:
        """A scope in which it has this value."""
        return self._cell.to([value])
