"""Functions of `tensorflow.python.framework.tensor_util` and `tensor_shape` that are not public."""

from __future__ import annotations

from typing import Any

import gradtape as tf


def try_evaluate_constant(tensor: Any) -> Any:
    """The value of a tensor, if it is known while a function is traced; else None."""
    return tf.get_static_value(tensor)


def constant_value_as_shape(tensor: Any) -> tf.TensorShape:
    """The shape given by an integer tensor, as far as it is known."""
    if isinstance(tensor, tf.TensorShape):
        return tensor
    value = tf.get_static_value(tensor, partial=True)
    if value is None:
        rank = tf.convert_to_tensor(tensor).shape[0]
        return tf.TensorShape(None if rank is None else [None] * rank)
    return tf.TensorShape([None if d is None or d < 0 else int(d) for d in value])


def as_shape(shape: Any) -> tf.TensorShape:
    """A shape of whatever is one."""
    return shape if isinstance(shape, tf.TensorShape) else tf.TensorShape(shape)
