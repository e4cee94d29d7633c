"""Library functions that a recording (`graph/recording.py`) stores as a single call, without looking inside."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

from gradtape import _core

F = TypeVar("F", bound=Callable)


def one_call(function: F) -> F:
    """A public function that looks at the sizes of tensors, or calls functions of the user's.

    While a function is traced whose sizes are not known, a call of it is noted as it is.
    """
    return cast(F, functools.update_wrapper(_core.Composite(function), function, updated=()))


def one_call_each(namespace: dict[str, Any]) -> None:
    """Makes every public function of a module one call to a recording."""
    for name, value in list(namespace.items()):
        if type(value) is FunctionType and name[0] != "_" and value is not one_call_each:
            namespace[name] = one_call(value)
