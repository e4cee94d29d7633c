"""What every op was computed from, and the line of the user's program that called it; recorded only on request.

With `debug.lines()` on, a `Record` sees each op that runs, each value that leaves for NumPy, each read of a
variable and each assignment. `tape.explain` reads it, and the tools that show a tape take the lines from it.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from gradtape import _core
from gradtape._src.base.source import Line, user_line
from gradtape._src.tensors import protocol

# A record keeps what it has seen alive, and drops the oldest beyond this size, so that it can run for a whole program.
_MOST_BYTES = 1 << 30
_MOST_VALUES = 1_000_000


class Origin(NamedTuple):
    """How a tensor was computed."""

    what: str  # the name of an op, or "read"
    op: Any
    operands: tuple  # tensors, or the variable that was read
    line: Line
    recording: frozenset[int]  # ids of the tapes that were recording


class Record:
    """Everything that happened since it was switched on."""

    def __init__(self) -> None:
        self.origins: dict[int, Origin] = {}  # by id of the tensor
        self.tensors: dict[int, Any] = {}  # by number of a tape's record: its tensor or variable
        self.left: list[tuple[Any, Line]] = []  # tensors whose values went to NumPy
        self.assigned: list[tuple[Any, Any, Line]] = []  # variable, value
        self.tapes: dict[int, Any] = {}  # all that have recorded since, by id
        self.asked: tuple[Any, Any] | None = None  # the last tape whose gradient was taken, and the target
        self._held: dict[int, Any] = {}  # keeps objects alive, so that ids are not reused
        self._bytes = 0
        self._before: Any = None

    def lines(self) -> dict[int, Line]:
        """The line of each record of a tape, by its number."""
        origins = ((number, self.origins.get(id(x))) for number, x in self.tensors.items())
        return {number: m.line for number, m in origins if m is not None and m.what != "read"}

    def same(self, x: Any) -> Any:
        """The tensor or variable that `x` is another handle of, as gradient rules get them."""
        if id(x) in self._held:
            return x
        return self.tensors.get(_core.record_number(x), x)

    # ---- called by the core ---------------------------------------------------------------------

    def __call__(self, op: Any, operands: tuple, result: Any) -> None:
        line = user_line()
        if op is None:
            self._hold(operands[0])
            self.left.append((operands[0], line))
            return
        operands = tuple(map(self.same, operands))
        origin = Origin(op.op_name, op, operands, line, self._recording())
        for x in operands:
            self._hold(x)
        for out in result if isinstance(result, tuple) else (result,):
            self._hold(out)
            self.origins[id(out)] = origin

    def read(self, variable: Any) -> Any:
        """The value of a variable, from the tracker of assignments that was active before, if any."""
        with _core.Scope(tracker=self._before, watcher=None):
            tensor = variable._read()
        self._hold(variable)
        number = _core.record_number(tensor)
        if number:
            self.tensors[number] = variable
        self._hold(tensor)
        self.origins[id(tensor)] = Origin("read", None, (variable,), user_line(), self._recording())
        return tensor

    def assign(self, variable: Any, tensor: Any) -> None:
        """A variable was assigned a value."""
        if self._before is not None:
            self._before.assign(variable, tensor)
        self._hold(variable)
        self._hold(tensor)
        self.assigned.append((variable, tensor, user_line()))

    # ---- as a tracker of assignments --------------------------------------------------------------

    tape = None

    def adopt(self, tape: Any, variable: Any) -> None:
        """A tape watches a variable: notifies the tracker that was active before."""
        if self._before is not None:
            self._before.adopt(tape, variable)

    # ---- keeping ------------------------------------------------------------------------------------

    def _hold(self, x: Any) -> None:
        if id(x) in self._held:
            return
        self._held[id(x)] = x
        number = _core.record_number(x)
        if number:
            self.tensors.setdefault(number, x)
        self._bytes += _size(x)
        if self._bytes > _MOST_BYTES or len(self._held) > _MOST_VALUES:
            self._forget()

    def _forget(self) -> None:
        """Drops the older half."""
        for key in list(self._held)[: len(self._held) // 2]:
            self._bytes -= _size(self._held.pop(key))
            self.origins.pop(key, None)
        self.tensors = {n: x for n, x in self.tensors.items() if id(x) in self._held}
        self.left = [entry for entry in self.left if id(entry[0]) in self._held]
        self.assigned = [e for e in self.assigned if id(e[0]) in self._held and id(e[1]) in self._held]
        recording = {i for origin in self.origins.values() for i in origin.recording}
        self.tapes = {i: t for i, t in self.tapes.items() if i in recording}

    def _recording(self) -> frozenset[int]:
        tapes = _core.recording_tapes()
        self.tapes.update((id(t), t) for t in tapes)
        return frozenset(map(id, tapes))


def _size(x: Any) -> int:
    return math.prod(x.shape) * x.dtype.size


_record = _core.Setting(None)
# The lines of the last context that was left, for the cells of a notebook that follow.
_past: dict[int, Line] = {}


def record() -> Record | None:
    """The active record, if any."""
    return _record.now()


def lines_of_records() -> dict[int, Line]:
    """The line of each record of a tape, by its number, as far as they were remembered."""
    active = record()
    return _past if active is None else active.lines()


@contextlib.contextmanager
def lines() -> Iterator[Record]:
    """Remembers, for every op in this context, what it was computed from and at which line.

    For finding out why a gradient is None (`tape.explain`), and for seeing lines in `tape.memory()`,
    `tape.health()` and `tape.draw()`, which know them until the next such context. Results are kept until the context
    is left (at most 1 GB), and tapes can be asked after `gradient`. In the meantime functions run eagerly and tapes are
    not compiled.
    The environment variable GRADTAPE_LINES=1 switches it on for a whole program.

    >>> import gradtape as tf
    >>> x = tf.Variable(2.0)
    >>> with tf.debug.lines():
    ...     with tf.GradientTape() as tape:
    ...         y = tf.constant(x.numpy() ** 2)
    ...     print(tape.explain(y, x).cause)
    left for NumPy
    """
    global _past
    record = Record()
    record._before = _core.assign_tracker()
    try:
        with _core.Scope(tracker=record, watcher=record, setting=_record, value=record):
            yield record
    finally:
        _past = record.lines()


if TYPE_CHECKING:

    def _promise(record: Record) -> tuple[protocol.Tracker, protocol.Watcher]:
        return record, record
