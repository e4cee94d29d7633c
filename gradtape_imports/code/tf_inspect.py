"""`tensorflow.python.util.tf_inspect`: the standard library's `inspect`, of the function inside of decorators."""

from __future__ import annotations

import inspect
from inspect import *  # noqa: F403  the other functions are the standard library's
from typing import Any, NamedTuple

from gradtape_imports.code import tf_decorator

_inspect = inspect


def _inside(what: Any) -> Any:
    return getattr(tf_decorator.unwrap(what)[1], "python_function", what)


def getfullargspec(obj: Any) -> inspect.FullArgSpec:  # type: ignore[no-redef]
    """The arguments of a function, or of a class' `__init__` with `self`."""
    obj = _inside(obj)
    if inspect.isclass(obj):
        obj = obj.__init__
    spec = inspect.getfullargspec(inspect.unwrap(obj))
    # TensorFlow's own functions have no annotations, and packages compare them.
    return spec._replace(annotations={}) if _is_ours(obj) else spec


def _is_ours(obj: Any) -> bool:
    return (getattr(obj, "__module__", None) or "").startswith("gradtape")


class ArgSpec(NamedTuple):
    """The arguments of a function, as Python 2 saw them."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple | None


def getargspec(obj: Any) -> ArgSpec:
    """The arguments of a function, without annotations and those that are given by name only."""
    return ArgSpec(*getfullargspec(obj)[:4])


def getcallargs(func: Any, *positional: Any, **named: Any) -> dict[str, Any]:  # type: ignore[no-redef]
    """The value of each argument in a call; names that the function does not have are included."""
    spec = getfullargspec(func)
    if inspect.ismethod(func):
        positional = (func.__self__, *positional)
    free = [name for name in spec.args if name not in named]
    given = named | dict(zip(free, positional, strict=False))
    defaults = spec.defaults or ()
    later = dict(zip(spec.args[len(spec.args) - len(defaults) :], defaults, strict=True))
    return later | (spec.kwonlydefaults or {}) | given


def signature(obj: Any, *, follow_wrapped: bool = True) -> inspect.Signature:  # type: ignore[no-redef]
    """The signature of a function, or of a `tf.function`."""
    return inspect.signature(_inside(obj), follow_wrapped=follow_wrapped)


def isanytargetmethod(obj: Any) -> bool:
    """Whether a method is inside of the decorators."""
    return any(inspect.ismethod(d.decorated_target) for d in tf_decorator.unwrap(obj)[0]) or inspect.ismethod(
        obj
    )
