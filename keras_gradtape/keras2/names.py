"""Modules, functions and classes that Keras 2 had in other places, or under other names."""

from __future__ import annotations

import functools
import importlib
from types import ModuleType
from typing import Any

from keras.src.legacy import backend as legacy_backend
from keras.src.legacy import layers as legacy_layers

import gradtape as tf
from keras_gradtape.keras2 import submodule

# Functions that TensorFlow's Keras only has under their short names, in `losses` and in `metrics`.
_LONG_NAMES = {
    "mean_squared_error": "mse",
    "mean_absolute_error": "mae",
    "mean_absolute_percentage_error": "mape",
    "mean_squared_logarithmic_error": "msle",
    "kl_divergence": "kld",
    "log_cosh": "logcosh",
}


def install(keras: ModuleType) -> None:
    legacy_backend.tf = legacy_layers.tf = tf
    real: Any = importlib.import_module("keras")
    keras.saving = real.saving
    for part in (keras.losses, keras.metrics):
        for long, short in _LONG_NAMES.items():
            setattr(part, long, getattr(part, short))
        part.cosine_proximity = keras.losses.cosine_similarity
    _layers(keras.layers)
    _optimizers(keras)
    _regularizers(keras.regularizers)
    _rest(keras)


def _layers(layers: ModuleType) -> None:
    preprocessing = {
        name: value
        for name, value in vars(layers).items()
        if isinstance(value, type) and ".preprocessing." in value.__module__
    }
    experimental = submodule(
        layers,
        "experimental",
        SyncBatchNormalization=layers.BatchNormalization,
        EinsumDense=layers.EinsumDense,
    )
    submodule(experimental, "preprocessing", **preprocessing)
    submodule(layers, "preprocessing", **preprocessing)
    # The kernel is an implementation detail of the layer, not another layer.
    layers.CuDNNLSTM, layers.CuDNNGRU = layers.LSTM, layers.GRU
    layers.Convolution1D, layers.Convolution2D, layers.Convolution3D = (
        layers.Conv1D,
        layers.Conv2D,
        layers.Conv3D,
    )
    layers.Convolution2DTranspose = layers.Conv2DTranspose
    layers.Sequential = importlib.import_module("keras").Sequential


def _optimizers(keras: ModuleType) -> None:
    optimizers = keras.optimizers
    classes = {n: v for n, v in vars(optimizers).items() if isinstance(v, type) and n[0].isupper()}
    for place in ("legacy", "experimental"):
        submodule(optimizers, place, **classes)
    optimizers.legacy.learning_rate_schedule = optimizers.schedules
    submodule(
        keras,
        "experimental",
        CosineDecay=optimizers.schedules.CosineDecay,
        CosineDecayRestarts=optimizers.schedules.CosineDecayRestarts,
    )


def _regularizers(regularizers: ModuleType) -> None:
    """`l2(l=0.01)`: functions in Keras 2, classes now."""
    for name in ("l1", "l2"):
        cls = getattr(regularizers, name.upper())
        cls.__init__ = _strength(cls.__init__, name)


def _strength(init: Any, name: str) -> Any:
    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if "l" in kwargs:
            kwargs[name] = kwargs.pop("l")
        init(self, *args, **kwargs)

    return __init__


def _rest(keras: ModuleType) -> None:
    policies = keras.mixed_precision
    submodule(
        policies,
        "experimental",
        Policy=policies.Policy,
        set_policy=policies.set_global_policy,
        global_policy=policies.global_policy,
        LossScaleOptimizer=policies.LossScaleOptimizer,
    )
    policies.set_policy = policies.set_global_policy
    utils = keras.utils
    submodule(utils, "np_utils", to_categorical=utils.to_categorical, normalize=utils.normalize)
    submodule(utils, "generic_utils", **{n: v for n, v in vars(utils).items() if not n.startswith("_")})
    utils.get_custom_objects = keras.saving.get_custom_objects
    image = keras.preprocessing.image
    for name in ("array_to_img", "img_to_array", "load_img", "save_img", "smart_resize"):
        if not hasattr(image, name) and hasattr(utils, name):
            setattr(image, name, getattr(utils, name))
    keras.preprocessing.sequence.pad_sequences = utils.pad_sequences
    for name in (
        "image_dataset_from_directory",
        "text_dataset_from_directory",
        "timeseries_dataset_from_array",
    ):
        setattr(keras.preprocessing, name, getattr(utils, name))
    keras.models.Model, keras.models.Sequential = keras.Model, keras.Sequential
