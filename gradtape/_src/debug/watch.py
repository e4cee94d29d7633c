"""Watchers of ops: the one mechanism under `debug.lines` and both checks of numerics.

A watcher is called as `watcher(op, operands, result)` after every op that runs by itself, and as
`watcher(None, (tensor,), None)` when values leave for Python; it may raise. It sees the ops of the thread that
started it. While there is one, functions run eagerly and tapes do not compile, so that every op is seen. Without
one it costs a comparison with a null pointer an op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape import _core
from gradtape._src.base import settings

Watcher = Callable[[Any, tuple, Any], None]


class _Watchers:
    """The watchers of one thread, as the one that its ops are shown to."""

    def __init__(self) -> None:
        self.all: list[Watcher] = []
        self.scope = _core.Scope(watcher=self)

    def __call__(self, op: Any, operands: tuple, result: Any) -> None:
        for watcher in tuple(self.all):
            watcher(op, operands, result)


_entered: list[_Watchers] = []  # one for each thread that watches; whoever holds a scope keeps it entered
_compiling = True  # what was set before the first of them came


def start(watcher: Watcher) -> None:
    """Shows every op of this thread to `watcher` from now on."""
    global _compiling
    watchers = _core.op_watcher()
    if watchers is None:
        if not _entered:
            _compiling = _core.is_compiling()
            _core.set_compile(False)
            settings.watching_ops = True
        watchers = _Watchers()
        _entered.append(watchers)
        watchers.scope.__enter__()
    watchers.all.append(watcher)


def stop(watcher: Watcher) -> None:
    """No longer; with the last one everything is as it was before."""
    watchers = _core.op_watcher()
    if watchers is None or watcher not in watchers.all:
        return  # another thread's
    watchers.all.remove(watcher)
    if not watchers.all:
        watchers.scope.__exit__()
        _entered.remove(watchers)
        if not _entered:
            settings.watching_ops = False
            _core.set_compile(_compiling)


def unseen() -> _core.Scope:
    """What runs here is not shown to any watcher."""
    return _core.Scope(watcher=None)
