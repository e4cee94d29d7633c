"""Keras models inside folders of `tf.saved_model`: each is an archive of Keras' own, `assets/<n>.keras`.

Loading uses Keras' safe mode and imports nothing: first, every class named in the archive is looked up among Keras'
own classes and those that the program has defined or registered.
"""

from __future__ import annotations

import os
import sys
import zipfile
from typing import Any

import keras

import gradtape as tf
from gradtape.backend import crc32c, json_of


def is_model(value: Any) -> bool:
    """Whether a value is stored as an archive."""
    return isinstance(value, keras.Model)


def save(model: Any, path: str) -> int:
    """Writes a model; returns the checksum of the file.

    Raises:
      ValueError: if the model has not been built.
    """
    if not model.built:
        raise ValueError(
            f"saved_model.save: model {model.name!r} cannot be saved: it has no inputs yet, which are known once it was "
            "called. Hint: model(x), or model.build(shape)."
        )
    os.makedirs(os.path.dirname(path), exist_ok=True)
    keras.saving.save_model(model, path)
    return _sum(path)


def load(path: str, checksum: int) -> Any:
    """Reads a model.

    Raises:
      ValueError: if the file is not the one that was written.
      ImportError: if it names a class that neither Keras nor the program has.
    """
    if _sum(path) != checksum:
        raise ValueError(f"the checksum of {os.path.basename(path)} is not the stored one")
    with zipfile.ZipFile(path) as archive:
        config = json_of(archive.read("config.json"))
    return keras.saving.load_model(path, custom_objects=_classes(config), compile=False, safe_mode=True)


def _sum(path: str) -> int:
    with open(path, "rb") as file:
        return crc32c(file.read())


def _classes(config: Any) -> dict[str, Any]:
    """The classes of the program that a configuration names."""
    classes: dict[str, Any] = {}
    parts = [config]
    while parts:
        part = parts.pop()
        parts += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        if not isinstance(part, dict) or "class_name" not in part or "module" not in part:
            continue
        module, name, registered = part["module"], part["class_name"], part.get("registered_name")
        if module is None or module == "builtins" or str(module).split(".")[0] == "keras":
            continue
        registered_class = keras.saving.get_registered_object(registered) if registered else None
        cls = registered_class or vars(sys.modules.get(str(module), object)).get(str(name))
        is_layer = isinstance(cls, type) and issubclass(cls, keras.layers.Layer)
        if registered_class is None and not is_layer:
            raise ImportError(
                f"saved_model.load: {module}:{name} is no layer or model that this program has defined. Hint: import "
                "what defines the class before loading."
            )
        classes[str(name)] = cls
    return classes


def signature_of(model: Any) -> Any:
    """A function of the inputs of a model, which predicts; None if its call takes several arguments."""
    specs = getattr(model, "input", None) if getattr(model, "inputs", None) else None
    if specs is None:
        shapes = getattr(model, "_build_shapes_dict", None) or {}
        if len(shapes) != 1:
            return None
        (shape,) = shapes.values()
        if not isinstance(shape, (list, tuple)) or any(isinstance(d, (list, tuple, dict)) for d in shape):
            return None
        signature = tf.TensorSpec(shape, model.compute_dtype, "inputs")
    else:
        signature = tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype, "inputs"), specs)

    def serve(inputs: Any) -> Any:
        return model(inputs, training=False)

    return tf.function(serve, input_signature=[signature], autograph=False)
