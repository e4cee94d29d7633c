"""Recurrent layers on gradtape, and training as Keras on TensorFlow does it, loss by loss."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as tf
import keras_gradtape  # noqa: F401  before Keras

keras = pytest.importorskip("keras")
from keras_gradtape.src.rnn import rnn  # noqa: E402  this needs Keras

L = keras.layers
_rng = np.random.default_rng(4)
X = _rng.normal(size=(3, 17, 2))
MASK = _rng.random((3, 17)) > 0.3
MASK[:, -1] = [True, False, True]
W, U = _rng.normal(size=(2, 4)), _rng.normal(size=(4, 4)) / 3


def _reference(x, mask=None, backwards=False, zero=False):
    """A plain recurrent network in NumPy: all outputs and the last state."""
    h = before = np.zeros((x.shape[0], 4))
    outs = []
    order = range(x.shape[1])
    for t in reversed(order) if backwards else order:
        known = np.ones((x.shape[0], 1), bool) if mask is None else mask[:, t, None]
        new = np.tanh(x[:, t] @ W + h @ U)
        before = np.where(known, new, 0 if zero else before)
        h = np.where(known, new, h)
        outs.append(before)
    return np.stack(outs, 1), h


def _step(x, states):
    h = keras.ops.tanh(keras.ops.matmul(x, W) + keras.ops.matmul(states[0], U))
    return h, [h]


@pytest.mark.parametrize("how", ["eager", "compiled", "unrolled"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("zero", [False, True])
def test_loop(how, masked, backwards, zero) -> None:
    mask = MASK if masked else None

    def run(x, all_outputs=True):
        return rnn(
            _step, x, [tf.zeros([3, 4], "float64")], backwards, mask, unroll=how == "unrolled",
            zero_output_for_mask=zero, return_all_outputs=all_outputs,
        )  # fmt: skip

    call = run if how == "eager" else tf.function(run, autograph=False)
    outputs, state = _reference(X, mask, backwards, zero)
    last, all_, (h,) = call(tf.constant(X))
    np.testing.assert_allclose(all_, outputs, atol=1e-12)
    np.testing.assert_allclose(last, outputs[:, -1], atol=1e-12)
    np.testing.assert_allclose(h, state, atol=1e-12)
    last, only, _ = call(tf.constant(X), False)
    np.testing.assert_allclose(only, outputs[:, -1:], atol=1e-12)


def test_time_first_and_lengths() -> None:
    lengths = np.array([17, 3, 9])
    last, all_, (h,) = rnn(
        _step,
        X.swapaxes(0, 1),
        [tf.zeros([3, 4], "float64")],
        input_length=tf.constant(lengths),
        time_major=True,
    )
    outputs, state = _reference(X, np.arange(17) < lengths[:, None])
    np.testing.assert_allclose(all_, outputs.swapaxes(0, 1), atol=1e-12)
    np.testing.assert_allclose(h, state, atol=1e-12)


def test_nests_of_inputs_and_states() -> None:
    def step(inputs, states):
        a, b = inputs["a"], inputs["b"]
        (h, (c,)) = states
        return {"sum": a + h}, [a + h, (c + b,)]

    inputs = {"a": tf.ones([2, 20, 3]), "b": tf.ones([2, 20, 3])}
    states = [tf.zeros([2, 3]), (tf.zeros([2, 3]),)]

    def run(inputs, states):
        return rnn(step, inputs, states)

    for call in (run, tf.function(run, autograph=False)):
        last, outputs, new = call(inputs, states)
        assert outputs["sum"].shape == (2, 20, 3) and float(last["sum"][0, 0]) == 20
        assert float(new[1][0][1, 2]) == 20


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "GRU before", "no bias", "relu"])
@pytest.mark.parametrize("steps", [1, 5, 70, 81, 150])
def test_without_cells_as_with_them(kind, steps) -> None:
    """Values and gradients, eagerly, when compiled the second time, and in a function."""
    options = {
        "GRU before": {"reset_after": False}, "no bias": {"use_bias": False},
        "relu": {"activation": "relu", "recurrent_activation": "hard_sigmoid"},
    }.get(kind, {})  # fmt: skip
    make = L.GRU if kind.startswith("GRU") else L.LSTM
    x = tf.constant(_rng.normal(size=(2, steps, 3)).astype("float32"))
    layers = [
        make(4, return_sequences=True, return_state=True, go_backwards=True, use_cudnn=use, **options)
        for use in (False, "auto")
    ]
    for layer in layers:
        layer(x)
    # Not zero, and small: a recurrence with relu may grow without limit, and its rounding errors too.
    layers[1].set_weights([w / 4 + 0.05 for w in layers[0].get_weights()])
    layers[0].set_weights(layers[1].get_weights())

    def run(layer):
        with tf.GradientTape() as tape:
            tape.watch(x)
            out = layer(x)
            loss = sum(tf.reduce_sum(o * np.cos(np.arange(o._numel)).reshape(o.shape)) for o in out)
        return out, tape.gradient(loss, [x, *layer.trainable_variables])

    def flat(found):
        return [t.numpy() for part in found for t in part]

    wanted = flat(run(layers[0]))
    ways = [lambda: run(layers[1])] * 3 + [tf.function(lambda: run(layers[1]), autograph=False)]
    for way in ways:
        for a, b in zip(flat(way()), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


# Of Keras 3.15.1 on TensorFlow 2.21: the losses of three epochs of two steps. Weights and dropout are drawn
# from the same seed and are the same numbers.
TRAINED = {
    "dense": [1.532744, 1.232725, 0.996804], "images": [1.090676, 1.07007, 1.052462],
    "recurrent": [1.089435, 1.083549, 1.066686], "masked": [1.098466, 1.091136, 1.086974],
    "attention": [1.082202, 1.04321, 1.020442],
}  # fmt: skip


def _layers(name):
    if name == "dense":
        return (12,), [L.Dense(16, activation="relu"), L.Dropout(0.3), L.BatchNormalization()]
    if name == "images":
        return (12, 12, 3), [
            L.Conv2D(8, 3, padding="same", activation="relu"), L.MaxPooling2D(),
            L.DepthwiseConv2D(3, padding="same", use_bias=False), L.BatchNormalization(),
            L.SeparableConv2D(6, 3, strides=2), L.Conv2DTranspose(4, 3, strides=2), L.GroupNormalization(2),
            L.GlobalAveragePooling2D(),
        ]  # fmt: skip
    if name == "recurrent":
        return (20, 4), [
            L.LSTM(8, return_sequences=True), L.GRU(6, return_sequences=True, dropout=0.2), L.Bidirectional(L.LSTM(5)),
        ]  # fmt: skip
    return (15,), [
        L.Embedding(10, 6, mask_zero=True),
        L.Bidirectional(L.LSTM(5, return_sequences=True)),
        L.GRU(4),
    ]


def _attention():
    inputs = keras.Input((10, 8))
    h = L.LayerNormalization()(inputs + L.MultiHeadAttention(2, 4)(inputs, inputs, use_causal_mask=True))
    h = L.GlobalAveragePooling1D()(L.Dense(8, activation="gelu")(h))
    return keras.Model(inputs, L.Dense(3, activation="softmax")(h))


@pytest.mark.parametrize("name", list(TRAINED))
@pytest.mark.parametrize("eagerly", [False, True])
def test_training_as_on_tensorflow(name, eagerly) -> None:
    keras.utils.clear_session()
    keras.utils.set_random_seed(7)
    if name == "attention":
        model = _attention()
    else:
        shape, layers = _layers(name)
        inputs = keras.Input(shape, dtype="int32" if name == "masked" else None)
        model = keras.Sequential([inputs, *layers, L.Dense(3, activation="softmax")])
    model.compile(keras.optimizers.SGD(0.1), "sparse_categorical_crossentropy", run_eagerly=eagerly)
    rng = np.random.default_rng(0)
    shape = (32, *model.input_shape[1:])
    x = rng.integers(0, 10, shape) if name == "masked" else rng.normal(size=shape).astype("float32")
    y = rng.integers(0, 3, 32)
    losses = model.fit(x, y, batch_size=16, epochs=3, verbose=0, shuffle=False).history["loss"]
    np.testing.assert_allclose(losses, TRAINED[name], atol=3e-5)
