"""Writers of event files, and the current one of a thread.

The current writer, step and condition belong to a thread: `writer.as_default(step)`,
`record_if(condition)`, `set_step(step)`.
"""

from __future__ import annotations

import os
import socket
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from gradtape import _core
from gradtape._src.base.contexts import Settable
from gradtape._src.base.locks import Lock, Numbers
from gradtape.io import framing
from gradtape.summary import encode

_numbers = Numbers()


default_writer = Settable(None)
default_step = Settable(None)
_condition = _core.Setting(True)


class SummaryWriter:
    """The base class of summary writers."""

    def set_as_default(self, step: Any = None) -> None:
        """Makes it the writer of this thread from now on; also sets the step, if one is given."""
        self._want_open()
        default_writer.set(self)
        if step is not None:
            default_step.set(step)

    @contextmanager
    def as_default(self, step: Any = None) -> Iterator[SummaryWriter]:
        """Makes it the writer for the code inside `with`, and `step` the step."""
        self._want_open()
        try:
            with default_writer.to(self), nullcontext() if step is None else default_step.to(step):
                yield self
        finally:
            self.flush()

    def init(self) -> None:
        """Nothing to do: a writer is ready when it is created."""

    def flush(self) -> None:
        """Writes buffered summaries to the file."""

    def close(self) -> None:
        """Flushes and closes the file."""

    def write_event(self, step: int, summary: bytes) -> None:
        """Writes an event."""
        raise NotImplementedError

    def _want_open(self) -> None:
        """Raises if it is closed."""


class NoopSummaryWriter(SummaryWriter):
    """A writer that discards summaries."""


class FileWriter(SummaryWriter):
    """Writes summaries to an event file that TensorBoard reads."""

    def __init__(self, logdir: str, max_queue: int, flush_seconds: float, suffix: str) -> None:
        os.makedirs(logdir, exist_ok=True)
        now = time.time()
        name = f"events.out.tfevents.{int(now)}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}{suffix}"
        self.path = os.path.join(logdir, name)
        self._file = open(self.path, "ab")  # noqa: SIM115  (closed by `close`, or with the writer)
        self._lock = Lock()
        self._queue: list[bytes] = [framing.framed(encode.first_event(now))]
        self._max_queue = max_queue
        self._flush_seconds = flush_seconds
        self._last_flush = now
        # Also at the end of the program.
        self._end = weakref.finalize(self, _finish, self._file, self._queue, self._lock)
        self.flush()

    def write_event(self, step: int, summary: bytes) -> None:
        self._want_open()
        now = time.time()
        record = framing.framed(encode.event(now, step, summary))
        with self._lock:
            self._queue.append(record)
            if len(self._queue) >= self._max_queue or now - self._last_flush > self._flush_seconds:
                self._empty_queue()

    def _empty_queue(self) -> None:
        self._file.write(b"".join(self._queue))
        self._file.flush()
        self._queue.clear()
        self._last_flush = time.time()

    def _want_open(self) -> None:
        if not self._end.alive:
            raise RuntimeError("SummaryWriter is already closed")

    def flush(self) -> None:
        if self._end.alive:
            with self._lock:
                self._empty_queue()

    def close(self) -> None:
        self._end()


def _finish(file: Any, queue: list[bytes], lock: Any) -> None:
    with lock:
        file.write(b"".join(queue))
        queue.clear()
        file.close()


def create_file_writer(
    logdir: Any,
    max_queue: int | None = None,
    flush_millis: int | None = None,
    filename_suffix: str | None = None,
    name: str | None = None,
    experimental_trackable: bool = False,
    experimental_mesh: Any = None,
) -> SummaryWriter:
    """A writer of a new event file in a folder, for TensorBoard.

    Args:
      logdir: the folder; it is created if it does not exist.
      max_queue: how many summaries may be buffered, 10 by default.
      flush_millis: how long they may be buffered, two minutes by default.
      filename_suffix: the end of the file's name, ".v2" by default.

    >>> import tempfile
    >>> import gradtape as tf
    >>> writer = tf.summary.create_file_writer(tempfile.mkdtemp())
    >>> with writer.as_default():
    ...     for step in range(3):
    ...         _ = tf.summary.scalar("loss", 1.0 / (step + 1), step=step)
    """
    if logdir is None:
        return NoopSummaryWriter()
    return FileWriter(
        os.fspath(logdir),
        10 if max_queue is None else int(max_queue),
        120.0 if flush_millis is None else flush_millis / 1000,
        ".v2" if filename_suffix is None else filename_suffix,
    )


def create_noop_writer() -> SummaryWriter:
    """A writer that writes nothing: inside its `as_default`, summaries are not recorded."""
    return NoopSummaryWriter()


def flush(writer: SummaryWriter | None = None, name: str | None = None) -> None:
    """Writes a writer's buffered summaries to its file; those of the default writer if None."""
    chosen = default_writer.get() if writer is None else writer
    if chosen is not None:
        chosen.flush()


# ---- step and condition ---------------------------------------------------------------------------


def get_step() -> Any:
    """The default step of summaries, or None."""
    return default_step.get()


def set_step(step: Any) -> None:
    """Sets the default step of summaries: a number, or a variable that is read each time."""
    default_step.set(step)


def record_if(condition: Any) -> _core.Scope:
    """Records summaries inside `with` only if a condition holds.

    Args:
      condition: a bool, a tensor, or a function without arguments, called for each summary.
    """
    return _condition.to(condition)


def condition_now() -> Any:
    """The current condition: a bool or a tensor."""
    condition: Any = _condition.now()
    return condition() if callable(condition) and not hasattr(condition, "dtype") else condition


def should_record_summaries() -> Any:
    """Whether a summary would be recorded now: there is a writer, and the condition holds."""
    if isinstance(default_writer.get(), NoopSummaryWriter | None):
        return False
    return condition_now()
