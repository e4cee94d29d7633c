"""Tapes that follow assignments: `GradientTape(track_assign=True)`.

For TensorFlow's tape an assignment ends a value's history. For one that tracks, a variable holds what
was assigned to it, with its history: a step of an optimizer can be differentiated.

While such a tape records, the core tells its Tracker of every assignment and asks it for the
values of variables. Reading gives the assigned tensor. A tape opened in the meantime that
reads it treats it as the variable: `gradient(..., variable)` on that tape is with respect to it. On
the tracking tape itself, a variable as a source is what it held at the beginning.
"""

from __future__ import annotations

from typing import Any

from gradtape import _core


class Tracker:
    """What variables were assigned while a tape follows assignments."""

    def __init__(self, tape: Any) -> None:
        self.tape = tape
        self.inner: list[Any] = []  # tapes opened after this one
        self._assigned: dict[int, tuple[Any, Any]] = {}  # by id: the variable and what it was assigned
        self._before: Any = None

    def start(self) -> None:
        """The tape is about to record: a tracker that is told of assignments now is told through this one."""
        self._before = _core.assign_tracker()

    def stop(self) -> None:
        self._before = None
        self._assigned.clear()

    def read(self, variable: Any) -> Any:
        """Called by the core: the tensor that the variable was assigned, or None."""
        entry = self._assigned.get(id(variable))
        if entry is None:
            return None if self._before is None else self._before.read(variable)
        for tape in self.inner:
            if tape._recording and tape._watch_accessed and variable.trainable:
                self.adopt(tape, variable)
        return entry[1]

    def adopt(self, tape: Any, variable: Any) -> None:
        """From now on the assigned tensor is the variable, as a source of `tape`."""
        entry = self._assigned.get(id(variable))
        if entry is not None and not tape._tracks(variable) and id(variable) not in tape._adopted:
            tape._watch(entry[1])
            tape._adopted[id(variable)] = entry

    def assign(self, variable: Any, tensor: Any) -> None:
        """Called by the core, which has given the variable its value already."""
        if self._before is not None:
            self._before.assign(variable, tensor)
        if self.tape._tracks(tensor):
            self._assigned[id(variable)] = (variable, tensor)
        else:
            self._assigned.pop(id(variable), None)  # a constant: the variable begins anew


def record() -> Any:
    """What `debug.lines()` has recorded so far, if it is on."""
    tracker = _core.assign_tracker()
    while tracker is not None and isinstance(tracker, Tracker):
        tracker = tracker._before
    return tracker


def opened(tape: Any) -> None:
    """A tape begins to record: trackers are told."""
    tracker = _core.assign_tracker()
    while isinstance(tracker, Tracker):
        if tracker.tape is not tape and tape not in tracker.inner:
            tracker.inner.append(tape)
        tracker = tracker._before
