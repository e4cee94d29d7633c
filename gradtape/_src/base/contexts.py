"""What this thread does for a while. `_core.Scope` is the one way to change it; these are its two usual forms.

A scope is entered and left natively, in one step each: an interrupt comes before or after it, never between.
"""

from __future__ import annotations

from typing import Any

from gradtape import _core


def aside(trace: Any = None) -> _core.Scope:
    """Neither the tapes nor the trace of the caller see what is done here: it runs at once, or is written to `trace`."""
    return _core.Scope(recording=False, trace=trace)


def unrecorded() -> _core.Scope:
    """Nothing in this block is recorded by the tapes that are open now."""
    return _core.Scope(recording=False)
