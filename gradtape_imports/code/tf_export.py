"""`tensorflow.python.util.tf_export`: the public name of something."""

from __future__ import annotations

from typing import Any

import gradtape as tf


def get_canonical_name_for_symbol(
    symbol: Any, api_name: str = "tensorflow", add_prefix_to_v1_names: bool = False
) -> Any:
    """The name under which TensorFlow shows something: its own."""
    return getattr(symbol, "__name__", None)


class tf_export:
    """A decorator that changes nothing: what it marks is not made public here."""

    def __init__(self, *names: str, **kwargs: Any) -> None:
        self.names = names

    def __call__(self, symbol: Any) -> Any:
        return symbol

    def export_constant(self, module_name: str, name: str) -> None:
        """The same for a constant of a module."""


keras_export = tf_export


def get_symbol_from_name(name: str) -> Any:
    """What TensorFlow shows under a name, `math.add`; None if there is nothing."""
    found: Any = tf
    for part in name.removeprefix("tf.").split("."):
        found = getattr(found, part, None)
    return found
