"""How a function relates to other objects: the one it is a method of, what it calls, tensors of another function."""

from __future__ import annotations

from typing import Any

from gradtape import _core
from gradtape._src.base.shape import TensorSpec


class Bound:
    """A method's function, stored on its object. Copies and pickles of the object leave it out."""

    __slots__ = ("owner", "function")

    def __init__(self, owner: Any, function: Any) -> None:
        self.owner = owner
        self.function = function

    def __deepcopy__(self, memo: dict) -> None:
        return None

    def __reduce__(self) -> tuple:
        return type(None), ()


def show_attributes(function: Any, called: Any) -> None:
    """Copies the attributes of the wrapped object to a function, except names it already has."""
    for key, value in getattr(called, "__dict__", {}).items():
        if key not in function.__dict__ and not hasattr(type(function), key):
            function.__dict__[key] = value


def spec_of_symbol(value: Any) -> Any:
    """The spec of a symbolic tensor of another function's trace; anything else unchanged."""
    is_symbol = isinstance(value, _core.Tensor) and value._symbol is not None
    return TensorSpec(value._dims, value.dtype) if is_symbol else value


class Eager:
    """Takes the place of a trace for calls that cannot be traced: the Python function runs eagerly."""

    captured_ids: frozenset[int] = frozenset()

    def __init__(self, why: str) -> None:
        self.why = why  # in words, with the line

    # As concrete functions have them.

    def add_to_graph(self, g: Any = None, overwrite: bool = False) -> None:
        """Nothing to do."""

    def add_gradient_functions_to_graph(self, g: Any = None) -> None:
        """Nothing to do."""


def described(function: Any) -> str:
    """A function as Python prints it: what it takes, and how many kinds of arguments it was traced for."""
    count = len(function._concrete)
    return f"<tf.function {function.name}{function.parameters.signature}, {count} trace{'s' * (count != 1)}>"
