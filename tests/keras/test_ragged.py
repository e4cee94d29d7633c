"""Ragged tensors in Keras: inputs, Embedding, `keras.ops`, training on datasets and on ragged arrays."""

import numpy as np
import pytest

import gradtape as tf

keras = pytest.importorskip("gradtape.keras")

ROWS = [[1, 2, 3], [4], [5, 6]]


def model():
    x = keras.Input([None], dtype="int32", ragged=True)
    vectors = keras.layers.Embedding(10, 4)(x)
    assert vectors.ragged and vectors.shape == (None, None, 4)
    mean = keras.layers.Lambda(lambda r: tf.reduce_mean(r, axis=1), output_shape=(4,))(vectors)
    return keras.Model(x, keras.layers.Dense(1)(mean))


def test_conversions():
    rt = tf.ragged.constant(ROWS)
    assert keras.ops.convert_to_tensor(rt).to_list() == ROWS
    dense = [[1, 2, 3], [4, 0, 0], [5, 6, 0]]
    np.testing.assert_array_equal(keras.ops.convert_to_tensor(rt, ragged=False), dense)
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(rt), dense)
    assert keras.ops.is_tensor(rt) and keras.ops.shape(rt) == (3, None)
    assert keras.ops.cast(rt, "float32").dtype == tf.float32
    taken = keras.ops.take(np.eye(7, dtype=np.float32), tf.ragged.constant([[2], [0, -1]]), axis=0)
    np.testing.assert_array_equal(taken.flat_values, np.eye(7)[[2, 0, 6]])


def test_a_model_computes_what_its_layers_do():
    net = model()
    table, weights, bias = net.get_weights()
    expected = [table[row].mean(0) @ weights + bias for row in ROWS]
    np.testing.assert_allclose(net(tf.ragged.constant(ROWS)), expected, rtol=1e-5)
    np.testing.assert_allclose(net.predict(tf.ragged.constant(ROWS), verbose=0), expected, rtol=1e-5)


@pytest.mark.parametrize("kind", ["dataset", "array"])
def test_training(kind):
    keras.utils.set_random_seed(1)
    net = model()
    net.compile(keras.optimizers.SGD(0.1), "mse")
    x, y = tf.ragged.constant(ROWS), tf.constant([[1.0], [2.0], [3.0]])
    if kind == "dataset":
        losses = net.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(2), epochs=5, verbose=0).history[
            "loss"
        ]
    else:
        losses = net.fit(x, y, batch_size=2, epochs=5, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert np.isfinite(net.evaluate(x, y, verbose=0))
