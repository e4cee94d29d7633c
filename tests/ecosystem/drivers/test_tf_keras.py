"""tf_keras (Keras 2): an MLP, a CNN and an LSTM, trained by fit and by a loop with a tape, to TensorFlow's losses."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras as keras

layers = keras.layers
RNG = np.random.RandomState(0)
FLAT, IMAGES, SEQUENCES = (
    RNG.randn(*shape).astype(np.float32) for shape in ((64, 8), (32, 8, 8, 1), (32, 5, 3))
)
CLASS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def mlp():
    return keras.Sequential([layers.Dense(16, activation="relu"), layers.Dropout(0.0), layers.Dense(2)])


def cnn():
    image = keras.Input([8, 8, 1])
    x = layers.Conv2D(4, 3, activation="relu")(image)
    x = layers.MaxPooling2D()(layers.BatchNormalization()(x))
    return keras.Model(image, layers.Dense(2)(layers.Flatten()(x)))


def lstm():
    return keras.Sequential([keras.Input([5, 3]), layers.LSTM(8), layers.Dense(1)])


MODELS = {
    "mlp": (mlp, FLAT, (FLAT.sum(1) > 0).astype(np.int32), CLASS),
    "cnn": (cnn, IMAGES, (IMAGES.mean((1, 2, 3)) > 0).astype(np.int32), CLASS),
    "lstm": (lstm, SEQUENCES, SEQUENCES.sum((1, 2))[:, None], keras.losses.MeanSquaredError()),
}
# Measured with TensorFlow 2.21 and tf_keras 2.21.
FIT = {
    "mlp": [0.6552109, 0.5316992, 0.4421887], "cnn": [0.6490440, 0.5889087, 0.5620106],
    "lstm": [11.859842, 11.630181, 11.369259],
}  # fmt: skip
TAPE = {
    "mlp": [0.7002128, 0.6860270, 0.6610781], "cnn": [0.6694880, 0.6438447, 0.6112184],
    "lstm": [11.905203, 11.478311, 10.817195],
}  # fmt: skip


def begun(make, x):
    """A model whose weights are the same wherever it is made."""
    model = make()
    model(x[:1])
    rng = np.random.RandomState(1)
    model.set_weights(
        [
            np.abs(0.2 * rng.randn(*w.shape)) if w.ndim == 1 else 0.2 * rng.randn(*w.shape)
            for w in model.get_weights()
        ]
    )
    return model


@pytest.mark.parametrize("name", MODELS)
def test_fit(name):
    make, x, y, loss = MODELS[name]
    model = begun(make, x)
    model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"] if loss is CLASS else ["mae"])
    history = model.fit(x, y, batch_size=16, epochs=3, shuffle=False, verbose=0).history
    np.testing.assert_allclose(history["loss"], FIT[name], rtol=1e-3)
    evaluated = model.evaluate(x, y, verbose=0)
    assert evaluated[0] < FIT[name][0] and model.predict(x, verbose=0).shape == (
        len(x),
        model.output_shape[-1],
    )


@pytest.mark.parametrize("name", MODELS)
def test_a_loop_with_a_tape(name):
    make, x, y, loss = MODELS[name]
    model = begun(make, x)
    optimizer = keras.optimizers.SGD(0.05, momentum=0.9)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
        gradients = tape.gradient(value, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return value

    losses = [float(step(tf.constant(x), tf.constant(y))) for _ in range(3)]
    np.testing.assert_allclose(losses, TAPE[name], rtol=1e-3)


class Tower(keras.Model):
    """Layers in a list and in a dictionary."""

    def __init__(self):
        super().__init__()
        self.inner = [layers.Dense(4, activation="tanh") for _ in range(2)]
        self.named = {"out": layers.Dense(2)}

    def call(self, x):
        for layer in self.inner:
            x = layer(x)
        return self.named["out"](x)


def test_layers_in_lists_are_found():
    model = Tower()
    model(FLAT)
    assert len(model.trainable_variables) == 6
    model.compile("sgd", CLASS)
    losses = model.fit(FLAT, MODELS["mlp"][2], epochs=2, verbose=0).history["loss"]
    assert losses[1] < losses[0]


def test_models_are_saved(tmp_path):
    model = begun(cnn, IMAGES)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(IMAGES), model(IMAGES), rtol=1e-6)
    model.save_weights(str(tmp_path / "weights.h5"))
    other = cnn()
    other.load_weights(str(tmp_path / "weights.h5"))
    np.testing.assert_allclose(other(IMAGES), model(IMAGES), rtol=1e-6)
