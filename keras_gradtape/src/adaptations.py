"""Small changes to modules of Keras, made as they are imported, where Keras knows TensorFlow only by name.

Saving takes shapes and types of gradtape as it takes TensorFlow's, and the callback TensorBoard writes
with `gradtape.summary`, so that it needs no TensorFlow. `hook.py` calls `adapt`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import gradtape as tf
from gradtape.dtypes import DType
from gradtape.summary import encode


def adapt(module: Any) -> None:
    """Changes one of the modules in `ADAPTED`."""
    ADAPTED[module.__name__](module)


def _saving(module: Any) -> None:
    """Lets configurations hold shapes and types of tensors."""
    known = module.serialize_keras_object

    @functools.wraps(known)
    def serialize_keras_object(obj: Any) -> Any:
        if isinstance(obj, tf.TensorShape):
            return obj.as_list() if obj.rank is not None else None
        return obj.name if isinstance(obj, DType) else known(obj)

    module.serialize_keras_object = serialize_keras_object


def _tensorboard(module: Any) -> None:
    """Gives the callback our summaries."""
    module.TensorBoard.summary = property(lambda self: tf.summary)
    module.keras_model_summary = _model_summary


def _model_summary(name: str, data: Any, step: Any = None) -> Any:
    """Writes the configuration of a model for TensorBoard's page of graphs; False if it has none."""
    try:
        words = data.to_json()
    except Exception as e:  # whatever a layer of a user's own raises, training goes on
        warnings.warn(f"Model failed to serialize as JSON. Ignoring... {e}", stacklevel=2)
        return False
    about = encode.metadata("graph_keras_model", 0, None, b"1")
    return tf.summary.write(name, words, step, about)


ADAPTED: dict[str, Callable[[Any], None]] = {
    "keras.src.callbacks.tensorboard": _tensorboard,
    "keras.src.saving.serialization_lib": _saving,
}
