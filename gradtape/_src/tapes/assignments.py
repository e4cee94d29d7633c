"""Tapes that follow assignments: `GradientTape(track_assign=True)`.

On TensorFlow's tape an assigned value is a constant. On a tracking tape a variable keeps the history of
what was assigned to it, so an optimizer step can be differentiated.

While such a tape records, the core tells its Tracker of every assignment and asks it for the
values of variables. Reading returns the assigned tensor. On a tape opened later that reads it, that
tensor stands for the variable: `gradient(..., variable)` there is with respect to it. On the tracking
tape itself, a variable as a source means its value when the tape was opened.
"""

from __future__ import annotations

from typing import Any

from gradtape import _core


class Tracker:
    """The tensors assigned to variables while a tape tracks assignments."""

    def __init__(self, tape: Any) -> None:
        self.tape = tape
        self.inner: list[Any] = []  # tapes opened after this one
        self._assigned: dict[int, tuple[Any, Any]] = {}  # by id: the variable and what it was assigned
        self._before: Any = None

    def start(self) -> None:
        """The tape is about to record: the tracker active so far is notified through this one from now on."""
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
        """Makes the assigned tensor stand for the variable as a source of `tape`."""
        entry = self._assigned.get(id(variable))
        if entry is not None and not tape._tracks(variable) and id(variable) not in tape._adopted:
            tape._watch(entry[1])
            tape._adopted[id(variable)] = entry

    def assign(self, variable: Any, tensor: Any) -> None:
        """Called by the core after the variable has its new value."""
        if self._before is not None:
            self._before.assign(variable, tensor)
        if self.tape._tracks(tensor):
            self._assigned[id(variable)] = (variable, tensor)
        else:
            self._assigned.pop(id(variable), None)  # a constant: the variable's history starts here


def record() -> Any:
    """What `debug.lines()` has recorded so far, if it is on."""
    tracker = _core.assign_tracker()
    while tracker is not None and isinstance(tracker, Tracker):
        tracker = tracker._before
    return tracker


def opened(tape: Any) -> None:
    """Tells the active trackers that a tape begins to record."""
    tracker = _core.assign_tracker()
    while isinstance(tracker, Tracker):
        if tracker.tape is not tape and tape not in tracker.inner:
            tracker.inner.append(tape)
        tracker = tracker._before
