"""Keras on XLA: `fit` with layers of all kinds gives the losses that it gives natively."""

import numpy as np
import pytest

import gradtape as tf
import keras_gradtape  # noqa: F401  before Keras

import keras  # isort: skip

layers = keras.layers


def dense():
    return [
        layers.Dense(8, activation="relu"),
        layers.BatchNormalization(),
        layers.Dropout(0.5),
        layers.Dense(3),
    ], (6,)


def convolutional():
    return [
        layers.Conv2D(4, 3, activation="relu"), layers.MaxPooling2D(), layers.BatchNormalization(),
        layers.GlobalAveragePooling2D(), layers.Dense(3),
    ], (8, 8, 2)  # fmt: skip


def recurrent():
    return [layers.Masking(), layers.LSTM(4, return_sequences=True), layers.GRU(4), layers.Dense(3)], (5, 2)


class Attention(layers.Layer):
    """A block of a transformer."""

    def __init__(self):
        super().__init__()
        self.supports_masking = True
        self.attention, self.norm = layers.MultiHeadAttention(2, 4), layers.LayerNormalization()

    def call(self, x):
        return self.norm(x + self.attention(x, x, use_causal_mask=True))


def transformer():
    return [
        layers.Embedding(7, 4, mask_zero=True),
        Attention(),
        layers.GlobalAveragePooling1D(),
        layers.Dense(3),
    ], (5,)


def history(make, jit_compile, engine="native", optimizer="adam"):
    """Losses of two epochs, the predictions after them, and the model."""
    tf.config.set_engine(engine)
    keras.utils.set_random_seed(3)
    parts, shape = make()
    model = keras.Sequential(parts)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 7, (16, *shape)) if make is transformer else rng.normal(size=(16, *shape)).astype("f")
    if make is recurrent:
        x[:, 3:] = 0.0
    y = rng.integers(0, 3, 16)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"], jit_compile=jit_compile)
    losses = model.fit(x, y, batch_size=8, epochs=2, verbose=0).history
    return losses, model.predict(x, verbose=0), model


def engines_of(model):
    step = model.train_function.__closure__
    found = [c.cell_contents for c in step if type(c.cell_contents).__name__ == "Step"]
    return {t.graph_function.engine.name for t in found[0].plain._concrete}


@pytest.mark.parametrize("make", [dense, convolutional, recurrent, transformer], ids=lambda m: m.__name__)
def test_fit_as_natively(make):
    native, xla = history(make, False), history(make, True)
    assert engines_of(native[2]) == {"native"} and engines_of(xla[2]) == {"xla"}
    for name, values in native[0].items():
        np.testing.assert_allclose(values, xla[0][name], rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(native[1], xla[1], rtol=1e-3, atol=1e-4)


def test_auto_is_native_unless_the_engine_is_set():
    _, _, model = history(dense, "auto")
    assert engines_of(model) == {"native"} and model.jit_compile is False
    _, _, model = history(dense, "auto", "xla", keras.optimizers.SGD(0.1, momentum=0.9))
    assert engines_of(model) == {"xla"}
