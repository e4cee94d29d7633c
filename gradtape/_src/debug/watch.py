"""Watchers of ops: the one mechanism under `debug.lines` and both checks of numerics.

A watcher is called as `watcher(op, operands, result)` after every op that runs by itself, and as
`watcher(None, (tensor,), None)` when values leave for Python; it may raise. While there is one,
functions run eagerly and tapes do not compile, so that every op is seen. Without one it costs a
comparison with a null pointer an op.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from gradtape import _core
from gradtape._src.base import settings

Watcher = Callable[[Any, tuple, Any], None]

_watchers: list[Watcher] = []
_compiled = True  # what was set before the first one came


def _tell(op: Any, operands: tuple, result: Any) -> None:
    for watcher in tuple(_watchers):
        watcher(op, operands, result)


def start(watcher: Watcher) -> None:
    """Shows every op to `watcher` from now on."""
    global _compiled
    if not _watchers:
        _compiled = _core.is_compiling()
        _core.set_compile(False)
        settings.watching_ops = True
        _core.set_op_watcher(_tell)
    _watchers.append(watcher)


def stop(watcher: Watcher) -> None:
    """No longer; with the last one everything is as it was before."""
    _watchers.remove(watcher)
    if not _watchers:
        _core.set_op_watcher(None)
        settings.watching_ops = False
        _core.set_compile(_compiled)


@contextlib.contextmanager
def unseen() -> Iterator[None]:
    """What runs here is not shown to any watcher."""
    before = _core.set_op_watcher(None)
    try:
        yield
    finally:
        _core.set_op_watcher(before)
