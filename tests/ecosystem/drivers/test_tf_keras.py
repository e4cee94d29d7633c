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


# Functions of TensorFlow on symbolic inputs, which become layers.
OF_ROWS = {
    "2 * x + 1": (lambda x: 2 * x + 1, lambda x: 2 * x + 1),
    "1 - x / 3": (lambda x: 1 - x / 3, lambda x: 1 - x / 3),
    "-abs(x) ** 2": (lambda x: -(abs(x) ** 2), lambda x: -(x**2)),
    "x // 2 % 3": (lambda x: x // 2.0 % 3.0, lambda x: x // 2 % 3),
    "an array on the left": (lambda x: np.ones(8, np.float32) * x, lambda x: x),
    "a tensor on the left": (lambda x: tf.ones(8) - x, lambda x: 1 - x),
    "comparisons": (lambda x: (x > -1) & ~(x >= 1), lambda x: (x > -1) & ~(x >= 1)),
    "where": (lambda x: tf.where(x > 0, x, tf.zeros_like(x)), lambda x: np.maximum(x, 0)),
    "reduce_sum": (lambda x: tf.reduce_sum(x, axis=-1, keepdims=True), lambda x: x.sum(-1, keepdims=True)),
    "concat": (lambda x: tf.concat([x, tf.nn.relu(x)], -1), lambda x: np.concatenate([x, np.maximum(x, 0)], -1)),
    "matmul": (lambda x: x @ tf.transpose(x), lambda x: x @ x.T),
    "slices": (lambda x: x[:, 1:-1:2][..., tf.newaxis], lambda x: x[:, 1:-1:2, None]),
    "an index": (lambda x: x[:, 3], lambda x: x[:, 3]),
    "sizes": (lambda x: tf.reshape(x, [tf.shape(x)[0], 2, 4]), lambda x: x.reshape(-1, 2, 4)),
    "cast": (lambda x: tf.cast(x, tf.float64), lambda x: x.astype(np.float64)),
    "norm": (lambda x: tf.linalg.norm(x, axis=1), lambda x: np.linalg.norm(x, axis=1)),
    "keras.backend": (lambda x: keras.backend.sum(keras.backend.square(x), axis=1), lambda x: (x**2).sum(1)),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_ROWS)
def test_functions_of_symbolic_inputs(name):
    function, by_numpy = OF_ROWS[name]
    x = keras.Input([8])
    model = keras.Model(x, function(x))
    again = keras.Model.from_config(model.get_config())
    for each in (model, again):
        y = each(FLAT)
        np.testing.assert_allclose(y, by_numpy(FLAT), rtol=1e-5, atol=1e-6)
        assert y.dtype == model.output.dtype and model.output.shape.is_compatible_with(y.shape)


def test_functions_with_several_results():
    x = keras.Input([8])
    model = keras.Model(x, [*tf.split(x, 2, axis=1), *tf.unstack(x, axis=1), tf.math.top_k(x, 2)])
    halves, rest = model(FLAT)[:2], model(FLAT)[2:]
    np.testing.assert_array_equal(halves[1], FLAT[:, 4:])
    np.testing.assert_array_equal(rest[7], FLAT[:, 7])
    np.testing.assert_array_equal(rest[8].values[:, 0], FLAT.max(1))


def test_functions_of_images():
    image = keras.Input([8, 8, 1])
    model = keras.Model(
        image,
        [
            tf.image.resize(image, [5, 3]),
            tf.image.flip_up_down(image),
            tf.nn.max_pool2d(image, 2, 2, "VALID"),
        ],
    )
    small, turned, pooled = model(IMAGES)
    np.testing.assert_allclose(tf.reduce_sum(small**2), 190.87341, rtol=1e-5)  # TensorFlow 2.21
    np.testing.assert_array_equal(turned, IMAGES[:, ::-1])
    np.testing.assert_array_equal(pooled, IMAGES.reshape(-1, 4, 2, 4, 2, 1).max((2, 4)))


def test_a_model_with_functions_is_trained_and_saved(tmp_path):
    x, y = keras.Input([8]), keras.Input([8])
    hidden = layers.Dense(3, kernel_initializer=keras.initializers.Constant(0.1))(
        tf.concat([x * 2.0, tf.nn.relu(y)], axis=-1)
    )
    model = keras.Model([x, y], tf.reduce_sum(hidden, axis=-1, keepdims=True))
    assert [type(layer).__name__ for layer in model.layers[2:]] == ["TFOpLambda"] * 3 + [
        "Dense",
        "TFOpLambda",
    ]
    model.compile("sgd", "mse")
    given = [FLAT, FLAT[::-1].copy()]
    losses = model.fit(given, np.ones([64, 1]), epochs=3, verbose=0, shuffle=False).history["loss"]
    np.testing.assert_allclose(losses, [2.798645, 0.975028, 0.498377], rtol=1e-5)
    for name in ("model.keras", "model.h5"):
        model.save(tmp_path / name)
        np.testing.assert_allclose(keras.models.load_model(tmp_path / name)(given), model(given), rtol=1e-6)
    inner = keras.Model(x, tf.square(x))
    np.testing.assert_allclose(keras.Model(x, inner(x) + 1.0)(FLAT), FLAT**2 + 1, rtol=1e-5)


def test_symbolic_inputs_have_no_value():
    x = keras.Input([8])
    for wrong in (
        lambda: np.sum(x),
        lambda: bool(x),
        lambda: len(x),
        lambda: float(x),
        lambda: tf.function(lambda a: a)(x),
    ):
        with pytest.raises(TypeError):
            wrong()
