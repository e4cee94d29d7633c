"""Pauses Python's garbage collector while a graph is compiled.

A compiler creates many objects that all live until it is done. The collector would scan them again and again and,
because they are many, everything else in the process too: half a million objects once Keras is imported.
"""

from __future__ import annotations

import functools
import gc
import os
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
_waits = False


def uncollected(function: F) -> F:
    """Decorator for functions during which no garbage is collected. Only for our own code, which ends soon.

    If several threads run such functions, the thread that came first starts the collector again when it is done.
    """

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        global _waits
        if not gc.isenabled():
            return function(*args, **kwargs)
        try:
            gc.disable()
            _waits = True
            return function(*args, **kwargs)
        finally:
            gc.enable()
            _waits = False

    return wrapper  # type: ignore[return-value]


def _after_fork() -> None:
    if _waits:  # the thread that would enable it again may not exist in the child
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
