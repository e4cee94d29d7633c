"""`tf.__internal__.smart_cond`: conditions that are decided at once where they can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradtape as tf


def smart_constant_value(pred: Any) -> bool | None:
    """The value of a condition, if it is known now.

    Raises:
      TypeError: if it is not a condition.
    """
    if isinstance(pred, tf.Tensor):
        value = tf.get_static_value(pred)
        return None if value is None else bool(value)
    if isinstance(pred, bool) or pred in (0, 1):
        return bool(pred)
    raise TypeError(f"`pred` must be a Tensor, or a Python bool, or 1 or 0. Received: {type(pred)}")


def smart_cond(
    pred: Any, true_fn: Callable | None = None, false_fn: Callable | None = None, name: str | None = None
) -> Any:
    """The result of one of two functions: called at once if the condition is known, else `tf.cond`."""
    if not callable(true_fn) or not callable(false_fn):
        raise TypeError("Argument `true_fn` and `false_fn` must be callable.")
    value = smart_constant_value(pred)
    if value is None:
        return tf.cond(pred, true_fn=true_fn, false_fn=false_fn)
    return true_fn() if value else false_fn()
