"""`tensorflow.python.keras.engine.data_adapter`: what `Model.train_step` is given, taken apart."""

from __future__ import annotations

from typing import Any

import gradtape as tf


def expand_1d(data: Any) -> Any:
    """A nest with its tensors of rank 1 as columns."""

    def column(x: Any) -> Any:
        return tf.expand_dims(x, -1) if isinstance(x, tf.Tensor) and x.shape.rank == 1 else x

    return tf.nest.map_structure(column, data)


def unpack_x_y_sample_weight(data: Any) -> tuple:
    """`(x, y, sample_weight)` of a batch; missing parts are None.

    Raises:
      ValueError: for a tuple of more than three.
    """
    if not isinstance(data, tuple):
        return data, None, None
    if not 1 <= len(data) <= 3:
        raise ValueError(
            f"Data is expected to be in format `x`, `(x,)`, `(x, y)`, or `(x, y, sample_weight)`, found: {data}"
        )
    return (*data, None, None)[:3]
