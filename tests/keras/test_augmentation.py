"""Layers that change images at random, in compiled steps: new numbers each step, no step that runs eagerly."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import gradtape as tf
import keras_gradtape  # noqa: F401  before Keras

keras = pytest.importorskip("keras")
layers = keras.layers
X = np.random.default_rng(8).uniform(size=(6, 14, 12, 3)).astype("float32")
UNIT = {"value_range": (0, 1)}

LAYERS = {
    "RandomFlip": {},
    "RandomRotation": {"factor": 0.3},
    "RandomZoom": {"height_factor": 0.3},
    "RandomTranslation": {"height_factor": 0.3, "width_factor": 0.3},
    "RandomCrop": {"height": 7, "width": 5},
    "RandomContrast": {"factor": 0.5},
    "RandomBrightness": {"factor": 0.4, **UNIT},
    "RandomShear": {"x_factor": 0.4, "y_factor": 0.2},
    "RandomPerspective": {},
    "RandomElasticTransform": UNIT,
    "RandomGaussianBlur": UNIT,
    "RandomHue": {"factor": 0.4, **UNIT},
    "RandomSaturation": {"factor": 0.4, **UNIT},
    "RandomColorDegeneration": {"factor": 0.6, **UNIT},
    "RandomErasing": UNIT,
    "RandomGrayscale": {},
    "RandomInvert": UNIT,
    "RandomPosterization": {"factor": 3, **UNIT},
    "RandomSharpness": {"factor": 0.6, **UNIT},
    "CutMix": {},
    "MixUp": {},
}


@pytest.mark.parametrize("name", LAYERS)
def test_in_a_compiled_step(name, caplog):
    layer = getattr(layers, name)(seed=3, **LAYERS[name])
    step = tf.function(lambda x: layer(x, training=True), autograph=False)
    with caplog.at_level(logging.WARNING, "gradtape"):
        drawn = [step(X).numpy() for _ in range(4)]
    assert "eagerly" not in caplog.text
    assert any(not np.array_equal(drawn[0], other) for other in drawn[1:])
    assert all(np.isfinite(d).all() for d in drawn)
    np.testing.assert_array_equal(layer(X, training=False), X)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_training_with_them():
    model = keras.Sequential([
        layers.Input((14, 12, 3)), layers.RandomFlip(), layers.RandomRotation(0.1), layers.RandomCrop(10, 10),
        layers.RandomContrast(0.2), layers.Conv2D(4, 3, activation="relu"), layers.GlobalAveragePooling2D(),
        layers.Dense(1),
    ])  # fmt: skip
    model.compile(keras.optimizers.Adam(0.01), "mse")
    losses = model.fit(X, X.mean((1, 2, 3))[:, None], epochs=20, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    np.testing.assert_array_equal(model.predict(X, verbose=0), model.predict(X, verbose=0))


def test_windows_at_places_known_only_when_it_runs():
    @tf.function
    def window(x, i, j):
        return x[i : i + 2, ..., j : 1 + j]

    x = tf.reshape(tf.range(60.0), [5, 4, 3])
    for i, j in ((0, 0), (3, 2), (1, 1)):
        np.testing.assert_array_equal(window(x, tf.constant(i), tf.constant(j)), x[i : i + 2, ..., j : j + 1])
    assert window.experimental_get_tracing_count() == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="not in"):
        window(x, tf.constant(4), tf.constant(0))
