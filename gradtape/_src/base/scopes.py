"""Context managers that TensorFlow programs write around their ops.

Only `name_scope` has an effect in eager mode: it prefixes the names of variables. The others (`device`,
`control_dependencies`, ...) order or place ops in TensorFlow's graphs; here ops run in program order on one device,
so they check their arguments and do nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from gradtape import _core
from gradtape._src.base.contexts import aside, stack


def _prefix(outer: str, name: str) -> str:
    return f"{outer}{name}/" if name and not name.endswith("/") else name


_prefixes = _core.Setting("", _prefix)
creators = stack()  # the creators of all open `variable_creator_scope`s


def executing_eagerly() -> bool:
    """Whether ops run at once, that is, no function is being traced.

    >>> from gradtape._src.base import scopes
    >>> scopes.executing_eagerly()
    True
    """
    return _core.current_trace() is None


def inside_function() -> bool:
    """Whether a `tf.function` is being traced.

    >>> from gradtape._src.base import scopes
    >>> scopes.inside_function()
    False
    """
    return _core.current_trace() is not None


# --- names -------------------------------------------------------------------------------------


def current_scope() -> str:
    """The current prefix of names: `""`, or e.g. `"model/layer/"`."""
    return _prefixes.now()


def get_current_name_scope() -> str:
    """The current name scope, without the last slash: `"model/layer"`, or `""`.

    >>> import gradtape as tf
    >>> with tf.name_scope("model"):
    ...     tf.get_current_name_scope()
    'model'
    """
    return current_scope().removesuffix("/")


class name_scope(_core.Scope):
    """Prefixes the names of variables made inside it; also a decorator.

    Entering returns the whole prefix. A name that ends in "/" is used as the whole prefix, and an empty name resets
    it. The same object can be entered again, also inside itself.

    Args:
      name: the name of the scope.

    Raises:
      ValueError: if `name` is not a string.

    >>> from gradtape._src.base.scopes import name_scope
    >>> with name_scope("model"), name_scope("layer") as prefix:
    ...     print(prefix)
    model/layer/
    """

    __slots__ = ("_name",)
    _name: str

    def __new__(cls, name: str) -> name_scope:
        if not isinstance(name, str):
            raise ValueError(
                "name_scope: name for name_scope must be a string.; expected a str; got "
                f"{name!r} of type {type(name).__name__}."
            )
        self = super().__new__(cls, setting=_prefixes, value=name)
        self._name = name
        return self

    def __reduce__(self) -> tuple:
        return type(self), (self._name,)

    @property
    def name(self) -> str:
        """The name as given."""
        return self._name

    def __call__(self, func: Callable) -> Callable:
        @functools.wraps(func)
        def in_scope(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self._name):
                return func(*args, **kwargs)

        return in_scope


# --- placement and order -----------------------------------------------------------------------


def control_dependencies(control_inputs: Any) -> AbstractContextManager:
    """Does nothing: ops run in the order of the program. A callable is called, as in TF."""
    if callable(control_inputs):
        control_inputs()
    return nullcontext()


def init_scope() -> AbstractContextManager:
    """Leaves the function being traced and pauses the tapes; keeps the name scope.

    For code that must run once and at once, such as computing a variable's initial value.
    """
    return aside()


def variable_creator_scope(variable_creator: Callable) -> AbstractContextManager:
    """Routes the creation of variables through `variable_creator(next_creator, **kwargs)`.

    The innermost scope is called first. It returns the variable, usually from `next_creator(**kwargs)` with some
    argument changed.
    """
    return creators.to(variable_creator)


def create_variable(make: Callable, **kwargs: Any) -> Any:
    """`make(**kwargs)`, through the creators of all open `variable_creator_scope`s."""
    for creator in creators.now():
        make = functools.partial(creator, make)
    return make(**kwargs)


# --- ops that do nothing -----------------------------------------------------------------------


def group(*inputs: Any, **kwargs: Any) -> None:
    """Does nothing: the ops have already run."""


def no_op(name: str | None = None) -> None:
    """Does nothing."""
