"""The counters of loops that are being traced; they tell a TensorArray how far it will grow."""

from __future__ import annotations

from typing import Any

from gradtape import _core
from gradtape._src.base import errors
from gradtape._src.base.contexts import stack

_counters = stack()  # the symbol that counts from 0, and the number of iterations


def trips(index: Any) -> int:
    """The number of iterations of the loop whose counter is `index`."""
    for symbol, count in reversed(_counters.now()):
        if isinstance(index, _core.Tensor) and index._symbol is symbol and count is not None:
            return count
    raise errors.Untraceable("TensorArray: its size depends on the values of tensors.")


def counting(index: Any, count: int | None) -> _core.Scope:
    """A scope for tracing the body of a loop; `count` is its number of iterations, None if unknown."""
    return _counters.to((index._symbol, count))
