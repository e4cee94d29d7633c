"""`tf.__internal__.autograph`: AutoGraph for libraries that call functions of their users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradtape as tf
from gradtape._src.autograph import conversion


def control_status_ctx() -> bool:
    """Whether functions are converted here: while a `tf.function` is traced."""
    return not tf.executing_eagerly()


def tf_convert(
    f: Callable, ctx: Any, convert_by_default: bool = True, user_requested: bool = False
) -> Callable:
    """`f`, converted if functions were where `ctx` was made."""
    return conversion.conv(f) if ctx else f
