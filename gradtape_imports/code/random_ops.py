"""Functions of `tensorflow.python.ops.random_ops` and `array_ops` that are not public."""

from __future__ import annotations

from typing import Any

import gradtape as tf


def parameterized_truncated_normal(
    shape: Any,
    means: Any = 0.0,
    stddevs: Any = 1.0,
    minvals: Any = -2.0,
    maxvals: Any = 2.0,
    dtype: Any = tf.float32,
    seed: int | None = None,
    name: str | None = None,
) -> tf.Tensor:
    """Normal numbers between two bounds."""
    pair = tf.random.uniform([2], maxval=2**31 - 1, dtype=tf.int32, seed=seed)
    numbers = (tf.cast(x, dtype) for x in (means, stddevs, minvals, maxvals))
    return tf.random.stateless_parameterized_truncated_normal(shape, pair, *numbers)


def prevent_gradient(input: Any, message: str = "", name: str | None = None) -> tf.Tensor:
    """The value itself; a gradient through it is a LookupError with this message."""
    return tf.raw_ops.PreventGradient(input=input, message=message)
