"""Delays signals while third-party Python code that must not be interrupted runs."""

from __future__ import annotations

import signal
import threading
from typing import Any


class Postponed:
    """In this block no handler of a signal runs, and none raises; those whose signals came run when it is left.

    Handlers run in the main thread alone, so in others there is nothing to do. To change handlers takes some
    microseconds: this is for what happens once, not for every run.
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
        except BaseException:  # of a handler that was still there
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
        except BaseException:  # of one that is back already
            self._restore()
            raise
