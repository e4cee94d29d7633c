"""Small changes to modules of Keras, made as they are imported. `hook.py` calls `adapt`.

Saving takes shapes and types of gradtape as it takes TensorFlow's; models from .h5 files train on where
they were; and the callback TensorBoard writes with `gradtape.summary`, so that it needs no TensorFlow.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from types import SimpleNamespace
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


def _old_format(module: Any) -> None:
    """Gives the state of the optimizer back to a model from a .h5 file.

    Keras builds the optimizer for no variables there; a built one it leaves alone.
    """
    known = module.saving_utils

    def try_build_compiled_arguments(model: Any) -> None:
        known.try_build_compiled_arguments(model)
        if not getattr(model.optimizer, "built", True):
            model.optimizer.build(model.trainable_variables)

    changed = {**vars(known), "try_build_compiled_arguments": try_build_compiled_arguments}
    module.saving_utils = SimpleNamespace(**changed)


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
    "keras.src.legacy.saving.legacy_h5_format": _old_format,
    "keras.src.saving.serialization_lib": _saving,
}
