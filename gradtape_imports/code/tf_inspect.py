"""`tensorflow.python.util.tf_inspect`: the standard library's `inspect`, of the function inside of decorators."""

from __future__ import annotations

import inspect
from inspect import *  # noqa: F403  the other functions are the standard library's
from typing import Any

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
    # TensorFlow's own functions have none, and packages compare.
    return spec._replace(annotations={}) if _is_ours(obj) else spec


def _is_ours(obj: Any) -> bool:
    return (getattr(obj, "__module__", None) or "").startswith("gradtape")


getargspec = getfullargspec


def signature(obj: Any, *, follow_wrapped: bool = True) -> inspect.Signature:  # type: ignore[no-redef]
    """The signature of a function, or of a `tf.function`."""
    return inspect.signature(_inside(obj), follow_wrapped=follow_wrapped)


def isanytargetmethod(obj: Any) -> bool:
    """Whether a method is inside of the decorators."""
    return any(inspect.ismethod(d.decorated_target) for d in tf_decorator.unwrap(obj)[0]) or inspect.ismethod(
        obj
    )
