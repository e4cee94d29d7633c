"""Delays signals while third-party Python code that must not be interrupted runs."""

from __future__ import annotations

import signal
import threading
from typing import Any


class Postponed:
    """While this block runs, no signal handler runs; handlers of signals that arrive run when the block ends.

    Handlers only run in the main thread, so in other threads this does nothing. Replacing handlers takes some
    microseconds: use it for code that runs once, not in every run.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Any] = {}
        self._came: dict[int, None] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        try:
            for number in signal.valid_signals():
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._note)
        except BaseException:  # from a handler that was not replaced yet
            self._restore()
            raise

    def __exit__(self, *_: Any) -> None:
        try:
            self._restore()
        finally:
            for number in self._came:
                signal.raise_signal(number)

    def _note(self, number: int, _frame: Any) -> None:
        self._came[number] = None

    def _restore(self) -> None:
        try:
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
        except BaseException:  # from a handler that is already restored
            self._restore()
            raise
