"""The counters of loops that are being traced, by which a TensorArray knows how far it will grow."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gradtape import _core
from gradtape._src.base import errors


class _Counters(threading.local):
    """Counters of the loops that this thread is tracing, from 0, with the number of iterations."""

    def __init__(self) -> None:
        self.open: list[tuple[Any, int | None]] = []


_counters = _Counters()


def trips(index: Any) -> int:
    """How often the loop runs that counts with `index`."""
    for symbol, count in reversed(_counters.open):
        if isinstance(index, _core.Tensor) and index._symbol is symbol and count is not None:
            return count
    raise errors.Untraceable("TensorArray: its size depends on the values of tensors.")


@contextmanager
def counting(index: Any, count: int | None) -> Iterator[None]:
    """While the body of a loop over `count` numbers is traced; None if that is not known."""
    _counters.open.append((index._symbol, count))
    try:
        yield
    finally:
        _counters.open.pop()
