"""`tensorflow.python.util.tf_decorator`: decorators that can be taken off again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gradtape.backend import OneCall


class TFDecorator:
    """The description of a decorated function."""

    def __init__(self, name: str, target: Any, doc: str = "", argspec: Any = None) -> None:
        self.decorator_name = name
        self.decorated_target = target
        self.decorator_doc = doc
        self.decorator_argspec = argspec


def make_decorator(
    target: Any,
    decorator_func: Any,
    decorator_name: str = "",
    decorator_doc: str = "",
    decorator_argspec: Any = None,
) -> Callable:
    """Makes `decorator_func` look like `target`, and records that it wraps it."""
    functools.update_wrapper(decorator_func, target)
    decorator_func.__wrapped__ = target
    if decorator_argspec is not None and hasattr(decorator_argspec, "parameters"):
        decorator_func.__signature__ = decorator_argspec
    name = decorator_name or getattr(decorator_func, "__name__", "")
    decorator_func._tf_decorator = TFDecorator(name, target, decorator_doc, decorator_argspec)
    return decorator_func


def unwrap(maybe: Any) -> tuple[list[TFDecorator], Any]:
    """The decorators of a function, the outermost first, and the function inside."""
    decorators: list[TFDecorator] = []
    while True:
        noted = getattr(maybe, "_tf_decorator", None)
        if not isinstance(noted, TFDecorator):
            return decorators, maybe.__wrapped__ if isinstance(maybe, OneCall) else maybe
        decorators.append(noted)
        maybe = noted.decorated_target


def rewrap(decorator_func: Any, previous_target: Any, new_target: Any) -> Any:
    """`decorator_func` around another function."""
    if decorator_func is previous_target:
        return new_target
    noted = unwrap(decorator_func)[0]
    if noted:
        noted[-1].decorated_target = new_target
    return decorator_func
