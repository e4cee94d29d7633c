"""`tf.__internal__.ops`: weights of losses and metrics."""

from __future__ import annotations

from typing import Any

import gradtape as tf


def broadcast_weights(weights: Any, values: Any) -> tf.Tensor:
    """`weights` in the shape of `values`: a scalar, or of the same rank with the size 1 where it is repeated.

    Raises:
      ValueError: if the shapes are otherwise.
    """
    values = tf.convert_to_tensor(values)
    weights = tf.convert_to_tensor(weights, values.dtype)
    given, target = weights.shape, values.shape
    if given.rank not in (0, None) and target.rank is not None:
        sizes = zip(given, target, strict=False)
        if given.rank != target.rank or any(a not in (1, b) and None not in (a, b) for a, b in sizes):
            raise ValueError(
                f"weights can not be broadcast to values. values.rank={target.rank}. weights.rank={given.rank}. "
                f"values.shape={target}. weights.shape={given}."
            )
    return weights * tf.ones_like(values)


def is_resource_variable(var: Any) -> bool:
    """Whether something is a variable."""
    return isinstance(var, tf.Variable)
