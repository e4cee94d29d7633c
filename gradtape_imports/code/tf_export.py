"""`tensorflow.python.util.tf_export`: the public names of functions and classes.

Keras 2 uses these names in its files, so the names that it registers are stored.
"""

from __future__ import annotations

import functools
from typing import Any

import gradtape as tf
from gradtape._src import ops
from gradtape_imports.code import operators

_NAMES = "_keras_api_names"
_symbols: dict[str, Any] = {}


def get_canonical_name_for_symbol(
    symbol: Any, api_name: str = "tensorflow", add_prefix_to_v1_names: bool = False
) -> Any:
    """The name under which Keras or TensorFlow shows something; None if it shows no such thing."""
    if api_name == "keras":
        return vars(symbol).get(_NAMES, [None])[0] if hasattr(symbol, "__dict__") else None
    return _names_of_ops().get(id(symbol)) or _name_in_namespace(symbol)


@functools.cache
def _names_of_ops() -> dict[int, str]:
    """The names of public functions by their ids; of several, that in a mathematical namespace, as in TensorFlow."""
    spaces = ("math", "nn", "linalg")

    def order(name: str) -> tuple[int, int]:
        space = name.rpartition(".")[0]
        return spaces.index(space) if space in spaces else len(spaces), len(name)

    names: dict[int, str] = {}
    for name in sorted(ops.PUBLIC, key=order):
        names.setdefault(id(ops.PUBLIC[name]), name)
    return names


def _name_in_namespace(symbol: Any) -> str | None:
    """The name of a function of Python: `image.resize`, `__operators__.add`."""
    home, name = (getattr(symbol, key, None) or "" for key in ("__module__", "__name__"))
    space = "__operators__" if home == operators.__name__ else home.partition(".")[2].partition(".")[0]
    for full in (f"{space}.{name}", name, f"debugging.{name}"):
        if name and get_symbol_from_name(full) is symbol:
            return full
    return None


class tf_export:
    """A decorator that changes nothing: what it marks is not made public here."""

    def __init__(self, *names: str, **kwargs: Any) -> None:
        self.names = names

    def __call__(self, symbol: Any) -> Any:
        return symbol

    def export_constant(self, module_name: str, name: str) -> None:
        """The same for a constant of a module."""


class keras_export(tf_export):
    """A decorator that notes under which names Keras 2 shows something."""

    def __init__(self, *names: str, v1: Any = None, **kwargs: Any) -> None:
        super().__init__(*names)
        self._old = v1 or ()

    def __call__(self, symbol: Any) -> Any:
        _symbols.update(dict.fromkeys(self.names, symbol))
        _symbols.update((f"compat.v1.{name}", symbol) for name in self._old)
        if self.names:
            setattr(symbol, _NAMES, list(self.names))
        return symbol


def get_symbol_from_name(name: str) -> Any:
    """The object that Keras or TensorFlow exports under a name, `keras.layers.Dense` or `math.add`; None if there
    is none."""
    if name in _symbols or "keras." in name:
        return _symbols.get(name)
    value: Any = operators if name.startswith("__operators__.") else tf
    for part in name.removeprefix("tf.").removeprefix("__operators__.").split("."):
        value = getattr(value, part, None)
    return value
