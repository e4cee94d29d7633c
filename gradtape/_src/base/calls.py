"""Library functions that a recording (`graph/recording.py`) stores as a single call, without looking inside."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

from gradtape import _core

F = TypeVar("F", bound=Callable)


def one_call(function: F) -> F:
    """Decorator for a public function that reads the sizes of tensors, or calls user functions.

    While a function with unknown sizes is traced, a call of it is recorded as one call.
    """
    return cast(F, functools.update_wrapper(_core.Composite(function), function, updated=()))


def one_call_each(namespace: dict[str, Any]) -> None:
    """Makes every public function of a module a single call of a recording."""
    for name, value in list(namespace.items()):
        if type(value) is FunctionType and name[0] != "_" and value is not one_call_each:
            namespace[name] = one_call(value)
