"""`tensorflow.compiler.tf2xla.python.xla`: the two functions that programs use outside of XLA."""

from __future__ import annotations

from typing import Any

import gradtape as tf


def dynamic_slice(x: Any, starts: Any, sizes: Any) -> tf.Tensor:
    """The part of `x` of this size; a start that would leave it is moved back, as XLA does."""
    x = tf.convert_to_tensor(x)
    return tf.slice(x, _inside(starts, tf.shape(x), sizes), sizes)


def dynamic_update_slice(x: Any, updates: Any, starts: Any) -> tf.Tensor:
    """`x` with `updates` written over the part that begins at `starts`."""
    x = tf.convert_to_tensor(x)
    updates = tf.convert_to_tensor(updates, x.dtype)
    starts = _inside(starts, tf.shape(x), tf.shape(updates))
    places = tf.stack(tf.meshgrid(*[tf.range(n) for n in tf.unstack(tf.shape(updates))], indexing="ij"), -1)
    return tf.tensor_scatter_nd_update(x, places + starts, updates)


def _inside(starts: Any, shape: Any, sizes: Any) -> tf.Tensor:
    starts = tf.cast(tf.stack(starts) if isinstance(starts, (list, tuple)) else starts, tf.int32)
    return tf.clip_by_value(starts, 0, shape - tf.cast(sizes, tf.int32))
