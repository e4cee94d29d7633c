"""`tensorflow.python.util.deprecation`: decorators that packages put on what they will take away."""

from __future__ import annotations

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

_told: set[Any] = set()
_silent = [False]


def _tell(what: Any, words: str) -> None:
    """Warns once about each function."""
    if what not in _told and not _silent[0]:
        _told.add(what)
        warnings.warn(words, DeprecationWarning, stacklevel=3)


def _when(date: str | None) -> str:
    return f"after {date}" if date else "in a future version"


def deprecated(date: str | None, instructions: str, warn_once: bool = True) -> Callable:
    """A decorator: the function or class still works, and its first call warns and says what to use instead."""

    def decorate(subject: Any) -> Any:
        words = f"{getattr(subject, '__qualname__', subject)} will be removed {_when(date)}. {instructions}"
        function: Any = subject.__init__ if isinstance(subject, type) else subject  # type: ignore[misc]

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            _tell(function, words)
            return function(*args, **kwargs)

        if isinstance(subject, type):
            subject.__init__ = wrapped  # type: ignore[misc]
            return subject
        return wrapped

    return decorate


def _about_arguments(words: str, uses: Callable[[dict[str, Any]], list[str]]) -> Callable:
    def decorate(function: Callable) -> Callable:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with contextlib.suppress(TypeError):  # the call itself raises for wrong arguments
                names = uses(signature.bind(*args, **kwargs).arguments)
                if names:
                    _tell((function, *names), f"{function.__qualname__}({', '.join(names)}) {words}")
            return function(*args, **kwargs)

        return wrapped

    return decorate


def deprecated_args(date: str | None, instructions: str, *names: Any, **kwargs: Any) -> Callable:
    """The same for arguments: a name, or a pair of a name and the value that may stay."""
    fine = {
        name if isinstance(name, str) else name[0]: None if isinstance(name, str) else name[1:]
        for name in names
    }

    def used(given: dict[str, Any]) -> list[str]:
        return [n for n, ok in fine.items() if n in given and (ok is None or given[n] not in ok)]

    return _about_arguments(f"is deprecated and will be removed {_when(date)}. {instructions}", used)


def deprecated_arg_values(
    date: str | None, instructions: str, warn_once: bool = True, **values: Any
) -> Callable:
    """The same for values of arguments."""

    def used(given: dict[str, Any]) -> list[str]:
        return [n for n, bad in values.items() if n in given and given[n] is bad]

    return _about_arguments(f"is deprecated and will be removed {_when(date)}. {instructions}", used)


def deprecated_alias(name: str, target_name: str, target: Any, warn_once: bool = True) -> Any:
    """Something under an old name."""
    return deprecated(None, f"Use {target_name} instead.")(target)


def deprecated_endpoints(*names: str) -> Callable[[Any], Any]:
    """Notes old names, which exist nowhere here."""
    return lambda function: function


def deprecated_argument_lookup(new_name: str, new_value: Any, old_name: str, old_value: Any) -> Any:
    """The value of an argument that has two names.

    Raises:
      ValueError: if both were given.
    """
    if old_value is None:
        return new_value
    if new_value is not None:
        raise ValueError(f"Cannot specify both `{old_name}` and `{new_name}`.")
    return old_value


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """A block without such warnings."""
    before = _silent[0]
    try:
        _silent[0] = True
        yield
    finally:
        _silent[0] = before
