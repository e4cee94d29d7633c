"""What every op was made of and where in the user's program: recorded only while it is asked for.

With `debug.lines()` on, the core shows each op that runs eagerly to a `Record`, and each value that
leaves for NumPy, each read of a variable and each assignment. `tape.explain` reads it. Switched off
it costs one comparison with a null pointer per op.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from gradtape import _core, config
from gradtape.source import Line, user_line


class Made(NamedTuple):
    """A tensor, and how it came about."""

    what: str  # the name of an op, or "read"
    op: Any
    operands: tuple  # tensors, or the variable that was read
    line: Line
    recording: frozenset[int]  # ids of the tapes that were recording


class Record:
    """Everything that happened since it was switched on."""

    def __init__(self) -> None:
        self.made: dict[int, Made] = {}
        self.left: list[tuple[Any, Line]] = []  # tensors whose values went to NumPy
        self.assigned: list[tuple[Any, Any, Line]] = []  # variable, value
        self._held: list[Any] = []  # keeps ids from being used again
        self._before: Any = None

    # ---- told by the core -----------------------------------------------------------------------

    def __call__(self, op: Any, operands: tuple, result: Any) -> None:
        line = user_line()
        if op is None:
            self._hold(operands[0])
            self.left.append((operands[0], line))
            return
        made = Made(op.op_name, op, operands, line, _recording())
        for x in operands:
            self._hold(x)
        for out in result if isinstance(result, tuple) else (result,):
            self._hold(out)
            self.made[id(out)] = made

    def read(self, variable: Any) -> Any:
        _core.set_assign_tracker(self._before)
        try:
            tensor = variable._read()
        finally:
            _core.set_assign_tracker(self)
        self._hold(tensor)
        self._hold(variable)
        self.made[id(tensor)] = Made("read", None, (variable,), user_line(), _recording())
        return tensor

    def assign(self, variable: Any, tensor: Any) -> None:
        if self._before is not None:
            self._before.assign(variable, tensor)
        self._hold(variable)
        self._hold(tensor)
        self.assigned.append((variable, tensor, user_line()))

    # ---- as a tracker of assignments --------------------------------------------------------------

    tape = None

    def stand_in(self, tape: Any, variable: Any) -> None:
        if self._before is not None:
            self._before.stand_in(tape, variable)

    def _hold(self, x: Any) -> None:
        self._held.append(x)


def _recording() -> frozenset[int]:
    return frozenset(map(id, _core.recording_tapes()))


_records: list[Record] = []


def record() -> Record | None:
    """What is being recorded, if anything is."""
    return _records[-1] if _records else None


@contextlib.contextmanager
def lines() -> Iterator[Record]:
    """Remembers, for every op in this context, what it was made of and at which line.

    For finding out why a gradient is None (`tape.explain`). Everything computed is kept until the
    context is left; functions run eagerly and tapes do not compile meanwhile. The environment variable
    GRADTAPE_LINES=1 switches it on for a whole program.

    >>> import gradtape as tf
    >>> x = tf.Variable(2.0)
    >>> with tf.debug.lines():
    ...     with tf.GradientTape() as tape:
    ...         y = tf.constant(x.numpy() ** 2)
    ...     print(tape.explain(y, x).cause)
    left for NumPy
    """
    now = Record()
    compiled, eager = _core.is_compiling(), config._checking
    watcher = _core.set_op_watcher(now)
    now._before = _core.set_assign_tracker(now)
    _core.set_compile(False)
    config._checking = True
    _records.append(now)
    try:
        yield now
    finally:
        _records.remove(now)
        config._checking = eager
        _core.set_compile(compiled)
        _core.set_assign_tracker(now._before)
        _core.set_op_watcher(watcher)
