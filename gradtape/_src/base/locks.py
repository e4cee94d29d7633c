"""Locks that are free in the child of a fork.

The child has one thread. A lock that another thread held would never be released there, and the data it protects
would remain as that thread left them; so code under these locks publishes its changes in one step, at the end.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def Lock() -> Any:
    """A reentrant lock; the core has its own kind, in core/fork.h."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


class Numbers:
    """0, 1, 2, ..., each to one thread only, which `itertools.count` does not guarantee without the interpreter's
    lock."""

    def __init__(self) -> None:
        self._next = 0
        self._lock = Lock()

    def __next__(self) -> int:
        with self._lock:
            number = self._next
            self._next += 1
        return number


def _after_fork() -> None:
    for lock in _locks:
        if not lock._is_owned():  # the thread that forked still holds its own locks, and will release them
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
