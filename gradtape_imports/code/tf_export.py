"""`tensorflow.python.util.tf_export`: the public name of something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def get_canonical_name_for_symbol(
    symbol: Any, api_name: str = "tensorflow", add_prefix_to_v1_names: bool = False
) -> Any:
    """The name under which TensorFlow shows something: its own."""
    return getattr(symbol, "__name__", None)


def tf_export(*names: str, **kwargs: Any) -> Callable[[Any], Any]:
    """A decorator that changes nothing: what it marks is not made public here."""
    return lambda symbol: symbol


keras_export = tf_export
