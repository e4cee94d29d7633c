"""Files of Keras 2: weights under any name, models in folders, and callbacks that write them.

A name that ends in `.h5`, `.hdf5` or `.keras` is a file. Anything else is the prefix of a checkpoint in the form of
`tf.train.Checkpoint`, and is found by `tf.train.latest_checkpoint`; its weights can be loaded before the model is built.
"""

from __future__ import annotations

import functools
import os
import tempfile
from types import FunctionType, ModuleType
from typing import Any

from keras.src.callbacks import model_checkpoint
from keras.src.models.model import Model
from keras.src.saving import saving_api, saving_lib

import gradtape as tf
from gradtape.backend import checkpoint_exists, update_state

_FILES = (".h5", ".hdf5", ".keras", ".weights.json")
_INSIDE = "model.keras"  # in the folder of a model
_WEIGHTS = ".weights.h5"


def install(keras: ModuleType) -> None:
    Model.save_weights = _save_weights(Model.save_weights)
    Model.load_weights = _load_weights(Model.load_weights)
    Model.save = _save(Model.save)
    load = saving_api.load_model

    @functools.wraps(load)
    def load_model(filepath: Any, custom_objects: Any = None, compile: bool = True, **options: Any) -> Any:
        options.pop("options", None)
        if str(filepath).endswith((".h5", ".hdf5")):
            # Keras 3 cannot find functions by the names that it writes into such files ("mse").
            losses = {**vars(keras.metrics), **vars(keras.losses)}
            custom_objects = {n: f for n, f in losses.items() if type(f) is FunctionType} | (
                custom_objects or {}
            )
        inside = os.path.join(str(filepath), _INSIDE)
        return load(inside if os.path.isfile(inside) else filepath, custom_objects, compile, **options)

    @functools.wraps(saving_api.save_model)
    def save_model(model: Any, filepath: Any, overwrite: bool = True, **options: Any) -> None:
        model.save(filepath, overwrite, **options)

    for place in (keras.models, keras.saving):
        place.load_model, place.save_model = load_model, save_model
    checkpoint = model_checkpoint.ModelCheckpoint
    checkpoint.__init__ = _any_path(checkpoint.__init__)


def _is_file(path: str) -> bool:
    return path.endswith(_FILES)


class Loaded:
    """The result of `load_weights`, for programs that call `.expect_partial()` on it."""

    def expect_partial(self) -> Loaded:
        return self

    assert_consumed = assert_existing_objects_matched = assert_nontrivial_match = expect_partial


# ---- weights --------------------------------------------------------------------------------------


def _save_weights(save: Any) -> Any:
    @functools.wraps(save)
    def save_weights(
        self: Any, filepath: Any, overwrite: bool = True, max_shard_size: Any = None, **options: Any
    ) -> None:
        path = os.fspath(filepath)
        # Formats of TensorFlow: `save_format="tf"` or `"h5"`.
        kind = options.pop("save_format", None)
        options.pop("options", None)
        if kind in ("h5", "keras", "hdf5") and not _is_file(path):
            path += ".h5"
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        if path.endswith(_WEIGHTS) or max_shard_size is not None:
            save(self, path, overwrite, max_shard_size)
        elif _is_file(path):
            with tempfile.TemporaryDirectory(dir=os.path.dirname(path) or ".") as folder:
                part = os.path.join(folder, "new" + _WEIGHTS)
                saving_lib.save_weights_only(self, part)
                os.replace(part, path)
        else:
            tf.train.Checkpoint(self).write(path)
            update_state(os.path.dirname(path) or ".", path)

    return save_weights


def _load_weights(load: Any) -> Any:
    @functools.wraps(load)
    def load_weights(self: Any, filepath: Any, skip_mismatch: bool = False, **options: Any) -> Any:
        path = os.fspath(filepath)
        options.pop("options", None)
        if not options.get("by_name"):
            options.pop("by_name", None)
        if checkpoint_exists(path):
            return tf.train.Checkpoint(self).read(path)
        if not _is_file(path) and os.path.isfile(path + _WEIGHTS):
            path += _WEIGHTS
        if path.endswith((".h5", ".hdf5")) and not path.endswith(_WEIGHTS) and not _is_old_file(path):
            with tempfile.TemporaryDirectory() as folder:
                link = os.path.join(folder, "found" + _WEIGHTS)
                os.symlink(os.path.abspath(path), link)
                load(self, link, skip_mismatch, **options)
        elif _is_file(path):
            load(self, path, skip_mismatch, **options)
        else:
            raise tf.errors.NotFoundError(
                None,
                None,
                f"load_weights: there are no weights at {path!r}: neither a file nor a checkpoint.",
            )
        return Loaded()

    return load_weights


def _is_old_file(path: str) -> bool:
    """Whether an HDF5 file has the layout of Keras 2: groups by the names of layers."""
    import h5py

    try:
        with h5py.File(path, "r") as file:
            return "layer_names" in file.attrs or "model_weights" in file
    except OSError:  # Keras will report that it cannot be read
        return True


# ---- models ---------------------------------------------------------------------------------------


def _save(save: Any) -> Any:
    @functools.wraps(save)
    def save_model(self: Any, filepath: Any, overwrite: bool = True, **options: Any) -> None:
        path = os.fspath(filepath)
        kind = options.pop("save_format", None)
        for name in ("include_optimizer", "signatures", "options", "save_traces"):
            if name != "include_optimizer" or not path.endswith((".h5", ".hdf5")):
                options.pop(name, None)
        if kind == "h5" and not _is_file(path):
            path += ".h5"
        if _is_file(path):
            save(self, path, overwrite, **options)
            return
        os.makedirs(path, exist_ok=True)
        save(self, os.path.join(path, _INSIDE), True, **options)

    return save_model


def _any_path(init: Any) -> Any:
    """Keras 3 requires `.weights.h5` and `.keras` in `ModelCheckpoint`; here the model decides by the name."""

    @functools.wraps(init)
    def __init__(self: Any, filepath: Any, *args: Any, **kwargs: Any) -> None:
        kwargs.pop("options", None)
        if "period" in kwargs:
            kwargs.pop("period")
            kwargs.setdefault("save_freq", "epoch")
        weights = kwargs.get("save_weights_only", args[3] if len(args) > 3 else False)
        init(self, "any.weights.h5" if weights else "any.keras", *args, **kwargs)
        self.filepath = os.fspath(filepath)

    return __init__
