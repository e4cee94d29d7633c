"""`tensorflow.python.util.dispatch`, `tf.__internal__.dispatch`: public functions on values of other libraries."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from gradtape import _core
from gradtape_imports.code.operators import give_operators

T = TypeVar("T", bound=Callable)
_everywhere: list[GlobalOpDispatcher] = []
_of: dict[Any, list[OpDispatcher]] = {}


class OpDispatcher:
    """Handles calls of one public function: `handle(args, kwargs)` returns its result, or `NOT_SUPPORTED`."""

    NOT_SUPPORTED = object()

    def handle(self, args: Any, kwargs: Any) -> Any:
        return self.NOT_SUPPORTED

    def register(self, op: Any) -> None:
        """From now on, for `op`."""
        _of.setdefault(op, []).append(self)


class GlobalOpDispatcher:
    """The same for all functions: `handle(op, args, kwargs)`."""

    NOT_SUPPORTED = OpDispatcher.NOT_SUPPORTED

    def handle(self, op: Any, args: Any, kwargs: Any) -> Any:
        return self.NOT_SUPPORTED

    def register(self) -> None:
        """From now on.

        TensorFlow calls dispatchers when a function has failed. Here functions look for instances of known classes
        (`tensors/dispatch.py`), so that calls on tensors cost nothing. The only known dispatcher of this kind is
        that of Keras 2, for its symbolic inputs.
        """
        _everywhere.append(self)
        symbols = getattr(sys.modules[type(self).__module__], "keras_tensor", None)
        if symbols is not None:
            _core.take_calls(symbols.KerasTensor, _handled)
            give_operators(symbols.KerasTensor, _handled)


def _handled(op: Any, args: tuple, kwargs: dict) -> Any:
    for one in _of.get(op, ()):
        result = one.handle(args, kwargs)
        if result is not OpDispatcher.NOT_SUPPORTED:
            return result
    for each in _everywhere:
        result = each.handle(op, args, kwargs)
        if result is not OpDispatcher.NOT_SUPPORTED:
            return result
    return NotImplemented


def add_dispatch_support(target: Any = None, iterable_parameters: Any = None) -> Any:
    """A decorator: the function calls the dispatchers if it cannot handle its arguments."""
    if target is None:
        return functools.partial(add_dispatch_support, iterable_parameters=iterable_parameters)

    @functools.wraps(target)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return target(*args, **kwargs)
        except (TypeError, ValueError):
            result = _handled(call, args, kwargs)
            if result is NotImplemented:
                raise
            return result

    return call


def dispatch_for_types(op: Any, *types: type) -> Callable[[T], T]:
    """A decorator of what `op` means for arguments of some classes, or lists of them."""

    def decorate(function: T) -> T:
        class ForTypes(OpDispatcher):
            def handle(self, args: Any, kwargs: Any) -> Any:
                if any(map(_has, (*args, *kwargs.values()))):
                    return function(*args, **kwargs)
                return self.NOT_SUPPORTED

        ForTypes().register(op)
        return function

    def _has(x: Any) -> bool:
        return isinstance(x, types) or (isinstance(x, (list, tuple)) and any(isinstance(e, types) for e in x))

    return decorate
