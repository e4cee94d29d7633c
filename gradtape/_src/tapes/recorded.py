"""`tf.GradientTape` in a recording (`graph/recording.py`): its methods are calls, made when the recording runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from gradtape._src.graph import recording
from gradtape._src.graph.calls import Recorded
from gradtape._src.tapes import symbolic
from gradtape._src.tapes.tape import GradientTape


class RecordedTape(GradientTape):
    """A tape that a recorded function opens: every world, and every run, has one of its own."""

    _recorded: Recorded

    def __init__(self, value: Recorded) -> None:
        self._recorded = value

    def __enter__(self) -> RecordedTape:
        _call(recording.enter_tape, self)
        return self

    def __exit__(self, *_: Any) -> None:
        _call(recording.exit_tape, self)

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        _call(recording.suspend_tape, self)
        try:
            yield
        finally:
            _call(recording.resume_tape, self)


def _call(function: Callable, *args: Any, **kwargs: Any) -> Any:
    trace = recording.current()
    if trace is None:
        raise RuntimeError("a tape was made while a function was traced, and is used outside of it.")
    return trace.call(function, args, kwargs)


def _method(name: str) -> Callable:
    function = getattr(GradientTape, name)

    def method(self: RecordedTape, *args: Any, **kwargs: Any) -> Any:
        return _call(function, self, *args, **kwargs)

    return method


for _name in ("watch", "watched_variables", "reset", "gradient", "jacobian", "batch_jacobian"):
    setattr(RecordedTape, _name, _method(_name))


def _take_over(tape: GradientTape, args: tuple, kwargs: dict) -> None:
    tape.__class__ = RecordedTape
    tape._recorded = _call(GradientTape, *args)._recorded  # type: ignore[attr-defined]


def _as_recorded(self: GradientTape, value: Recorded) -> RecordedTape:
    tape = RecordedTape.__new__(RecordedTape)
    tape._recorded = value
    return tape


GradientTape._as_recorded = _as_recorded  # type: ignore[attr-defined]
recording.TAKEN_OVER[GradientTape] = _take_over
recording.NEED_TRACE.update((symbolic.gradients, symbolic.hessians))
