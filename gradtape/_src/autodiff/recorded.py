"""`ForwardAccumulator` in a recording (`graph/recording.py`): its methods are calls, made when the recording runs."""

from __future__ import annotations

from typing import Any

from gradtape._src.autodiff.forward import ForwardAccumulator
from gradtape._src.graph import recording
from gradtape._src.graph.calls import Call, Recorded
from gradtape._src.graph.worlds import IN_WORLDS, World
from gradtape._src.tapes.recorded import fitted, note_call, note_derivative


class RecordedAccumulator(ForwardAccumulator):
    """An accumulator that a recorded function opens: every world, and every run, opens its own."""

    _recorded: Recorded

    def __init__(self, value: Recorded) -> None:
        self._recorded = value

    def __enter__(self) -> RecordedAccumulator:
        note_call(recording.enter_tape, self)
        return self

    def __exit__(self, *_: Any) -> None:
        note_call(recording.exit_tape, self)

    def jvp(self, primals: Any, *args: Any, **kwargs: Any) -> Any:
        return note_derivative(primals, ForwardAccumulator.jvp, self, primals, *args, **kwargs)


def _take_over(accumulator: ForwardAccumulator, args: tuple, kwargs: dict) -> None:
    accumulator.__class__ = RecordedAccumulator
    accumulator._recorded = note_call(ForwardAccumulator, *args)._recorded  # type: ignore[attr-defined]


def _as_recorded(self: ForwardAccumulator, value: Recorded) -> RecordedAccumulator:
    return RecordedAccumulator(value)


def _opened_in(world: World, call: Call) -> ForwardAccumulator:
    (primals, tangents), _ = call.given(world.frame)
    with world.scope():
        return ForwardAccumulator(primals, fitted(world, primals, tangents))


IN_WORLDS[ForwardAccumulator] = _opened_in
ForwardAccumulator._as_recorded = _as_recorded  # type: ignore[attr-defined]
recording.TAKEN_OVER[ForwardAccumulator] = _take_over
