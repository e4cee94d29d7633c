"""Small changes to Keras modules, applied when they are imported. `gradtape_imports/keras_hook.py` calls `adapt`.

Saving accepts gradtape's shapes and types like TensorFlow's; a file that cannot be loaded is named in the error,
and the model is unchanged; models from .h5 files continue training where they stopped; Ctrl-C interrupts the
conversion of logs; and the callback TensorBoard writes with `gradtape.summary`, so that it needs no TensorFlow.
"""

from __future__ import annotations

import contextlib
import functools
import os
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

import gradtape as tf
from gradtape.backend import CompositeTensor, summary_metadata, users_level


class TensorFlowShim:
    """What Keras uses as TensorFlow: gradtape, and a name of the internal modules of TensorFlow."""

    __internal__ = SimpleNamespace(CompositeTensor=CompositeTensor)

    def __getattr__(self, name: str) -> Any:
        return getattr(tf, name)


def adapt(module: Any) -> None:
    """Changes one of the modules in `ADAPTED`."""
    ADAPTED[module.__name__](module)


def _saving(module: Any) -> None:
    """Lets configurations hold shapes and types of tensors."""
    original = module.serialize_keras_object

    @functools.wraps(original)
    def serialize_keras_object(obj: Any) -> Any:
        if isinstance(obj, tf.TensorShape):
            return obj.as_list() if obj.rank is not None else None
        return obj.name if isinstance(obj, tf.DType) else original(obj)

    module.serialize_keras_object = serialize_keras_object


def _files(module: Any) -> None:
    """Names the file in errors of loading, after which a model has the weights that it had."""
    load_weights, load_model = module.load_weights, module.load_model

    @functools.wraps(load_weights)
    def load_all_or_none(model: Any, filepath: Any, *args: Any, **kwargs: Any) -> Any:
        with _unchanged_if_it_fails(model), _naming("load_weights", filepath):
            return load_weights(model, filepath, *args, **kwargs)

    @functools.wraps(load_model)
    def load_named(filepath: Any, *args: Any, **kwargs: Any) -> Any:
        with _naming("load_model", filepath):
            path = str(filepath)
            if path.endswith(".keras") and os.path.isfile(path):
                _check_zip(path)
            return load_model(filepath, *args, **kwargs)

    module.load_weights, module.load_model = load_all_or_none, load_named


def _layers(module: Any) -> None:
    """Lets `set_weights` look at all shapes before it changes a weight."""
    original = module.Layer.set_weights

    @functools.wraps(original)
    def set_weights(self: Any, weights: Any) -> None:
        # Keras checks the number of weights.
        for variable, value in zip(self.weights, weights, strict=False):
            expected, given = tuple(variable.shape), tuple(np.shape(value))
            if expected != given:
                raise ValueError(
                    f"Layer {self.name} weight shape {expected} is not compatible with provided weight shape {given}: "
                    f"{variable.path}. No weight was changed."
                )
        original(self, weights)

    module.Layer.set_weights = set_weights
    add_weight = module.Layer.add_weight

    @functools.wraps(add_weight)
    def add_known(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not tf.distribute.has_strategy():
            return add_weight(self, *args, **kwargs)
        state = vars(module.global_state.GLOBAL_STATE_TRACKER)
        before = state.get("adds_weight", False)
        state["adds_weight"] = True
        try:
            variable = add_weight(self, *args, **kwargs)
        finally:
            state["adds_weight"] = before
        variable._is_of_layer = True  # it may get its value later
        return variable

    module.Layer.add_weight = add_known


def _batch_norm(module: Any) -> None:
    """Allows `synchronized=True`: as on TensorFlow, there are replicas."""
    module.backend = SimpleNamespace(**{**vars(module.backend), "backend": lambda: "tensorflow"})


def _text(module: Any) -> None:
    """Gives user functions that standardise and split text tensors, as on TensorFlow, and not arrays."""
    module.backend = SimpleNamespace(**{**vars(module.backend), "backend": lambda: "tensorflow"})


def _results_of_tensorflow(module: Any) -> None:
    """Layers that compute with TensorFlow's functions already use gradtape."""
    module.convert_tf_tensor = lambda outputs, dtype=None: (
        outputs if dtype is None else tf.cast(outputs, dtype)
    )


def _kinds_of_tensors(module: Any) -> None:
    """Ragged tensors are known by their class, and not by its name."""
    module.is_ragged_tensor = lambda x: isinstance(x, tf.RaggedTensor)


def _losses(module: Any) -> None:
    """Scales losses by the number of replicas, as on TensorFlow; a replica without rows has loss zero."""
    from keras_gradtape.src import replicas

    original = module.reduce_values

    @functools.wraps(original)
    def reduce_values(values: Any, sample_weight: Any = None, reduction: Any = "sum_over_batch_size") -> Any:
        if tuple(values.shape) == (0,) and reduction not in (None, "none") and replicas.many():
            return tf.reduce_sum(values)
        return original(values, sample_weight, reduction)

    module.reduce_values = reduce_values
    module.scale_loss_for_distribution = replicas.scale_loss_for_distribution
    module.unscale_loss_for_distribution = replicas.unscale_loss_for_distribution


def _logs(module: Any) -> None:
    """Lets Ctrl-C through when logs are converted to numbers: Keras treats every exception as "not a number"."""

    def number(value: Any) -> Any:
        if isinstance(value, tf.Tensor):
            value = value.numpy()
        try:
            return float(value)
        except Exception:
            return value

    @functools.wraps(module.python_utils.pythonify_logs)
    def pythonify_logs(logs: Any) -> dict[str, Any]:
        flat: dict[str, Any] = {}
        for name in sorted(logs or {}):
            value = logs[name]
            flat.update(pythonify_logs(value) if isinstance(value, dict) else {name: number(value)})
        return flat

    module.python_utils.pythonify_logs = pythonify_logs


@contextlib.contextmanager
def _unchanged_if_it_fails(layer: Any) -> Iterator[None]:
    """Gives variables, the optimizer's as well, the values back that they had before an error."""
    variables = [*layer.variables, *getattr(getattr(layer, "optimizer", None), "variables", ())]
    values = [(v, v._value._read()) for v in variables if isinstance(v._value, tf.Variable)]
    try:
        yield
    except BaseException:
        for variable, value in values:
            variable._value.assign(value)
        raise


@contextlib.contextmanager
def _naming(what: str, filepath: Any) -> Iterator[None]:
    """Adds the file name to an error. Unreadable files raise OSError, files that do not match ValueError."""
    try:
        yield
    except Exception as e:
        path = os.path.realpath(filepath) if isinstance(filepath, (str, os.PathLike)) else str(filepath)
        if str(filepath) in str(e) or path in str(e):
            raise
        said = str(e.args[0]) if isinstance(e, KeyError) and e.args else str(e)
        words = f"{what}: {path} was not loaded, and nothing was changed. {said}"
        if isinstance(e, _DAMAGED) or said.startswith(_UNREADABLE):
            raise OSError(words) from e
        if isinstance(e, (ValueError, LookupError, AttributeError, ArithmeticError)):
            raise ValueError(words) from e
        e.add_note(words)
        raise


_DAMAGED = (OSError, EOFError, zipfile.BadZipFile, zlib.error, struct.error, UnicodeError, RecursionError)
# h5py and zipfile raise KeyError and RuntimeError as well.
_UNREADABLE = ("Unable to ", "Can't ", "There is no item named ")
_MOST_UNPACKED, _MOST_RATIO = 1 << 28, 100


def _check_zip(path: str) -> None:
    """Refuses a file of Keras' that unpacks to far more than it is, or into other folders.

    Raises:
      OSError: if it is not a zip file, or a damaged one.
    """
    if not zipfile.is_zipfile(path):
        # Otherwise Keras would report that there is no such file.
        raise OSError("It is no zip file, or only the beginning of one.")
    with zipfile.ZipFile(path) as file:
        for part in file.infolist():
            if part.file_size > max(_MOST_UNPACKED, _MOST_RATIO * part.compress_size):
                raise OSError(f"{part.filename} would unpack {part.compress_size} bytes to {part.file_size}.")
            if os.path.isabs(part.filename) or ".." in part.filename.replace("\\", "/").split("/"):
                raise OSError(f"{part.filename} would be written outside of its folder.")


def _old_format(module: Any) -> None:
    """Gives the state of the optimizer back to a model from a .h5 file.

    There, Keras builds the optimizer without variables; it does not change one that is built.
    """
    original = module.saving_utils

    def try_build_compiled_arguments(model: Any) -> None:
        original.try_build_compiled_arguments(model)
        if not getattr(model.optimizer, "built", True):
            model.optimizer.build(model.trainable_variables)

    changed = {**vars(original), "try_build_compiled_arguments": try_build_compiled_arguments}
    module.saving_utils = SimpleNamespace(**changed)


def _tensorboard(module: Any) -> None:
    """Gives the callback our summaries."""
    module.TensorBoard.summary = property(lambda self: tf.summary)
    module.keras_model_summary = _model_summary


def _model_summary(name: str, data: Any, step: Any = None) -> Any:
    """Writes the configuration of a model for TensorBoard's page of graphs; False if it has none."""
    try:
        words = data.to_json()
    except Exception as e:  # whatever a custom layer raises, training goes on
        warnings.warn(f"Model failed to serialize as JSON. Ignoring... {e}", stacklevel=users_level())
        return False
    about = summary_metadata("graph_keras_model", 0, None, b"1")
    return tf.summary.write(name, words, step, about)


ADAPTED: dict[str, Callable[[Any], None]] = {
    "keras.src.callbacks.callback_list": _logs,
    "keras.src.callbacks.tensorboard": _tensorboard,
    "keras.src.layers.layer": _layers,
    "keras.src.layers.normalization.batch_normalization": _batch_norm,
    "keras.src.layers.preprocessing.text_vectorization": _text,
    "keras.src.legacy.saving.legacy_h5_format": _old_format,
    "keras.src.losses.loss": _losses,
    "keras.src.saving.saving_api": _files,
    "keras.src.saving.serialization_lib": _saving,
    "keras.src.utils.backend_utils": _results_of_tensorflow,
    "keras.src.utils.tf_utils": _kinds_of_tensors,
}
