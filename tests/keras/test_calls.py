"""The fast path of layer calls: it does the same as the full one, and falls back to it where needed."""

import copy

import numpy as np
import pytest

import gradtape as tf
import keras_gradtape  # noqa: F401  before Keras

import keras  # isort: skip
from keras import layers  # isort: skip

X = tf.constant(np.random.default_rng(0).normal(size=(4, 3)).astype("float32"))


def known(layer):
    return layer.__dict__.get("_note") is not None


def test_the_second_call_is_short_and_the_same():
    for layer in (layers.Dense(2, "relu"), layers.BatchNormalization(), keras.Sequential([layers.Dense(2)])):
        first = layer(X)
        layer(X)
        assert known(layer)
        assert np.array_equal(layer(X), first) and np.array_equal(layer(X.numpy()), first)
        assert np.array_equal(layer(X.numpy().astype("float64")), first)


def test_errors_keep_their_words():
    dense = layers.Dense(2)
    dense(X)
    dense(X)
    with pytest.raises(ValueError, match="expected axis -1 of input shape to have value 3"):
        dense(tf.ones([4, 5]))
    with pytest.raises(ValueError, match="expected min_ndim=2, found ndim=1"):
        dense(tf.ones([3]))

    class Picky(layers.Layer):
        fail = False

        def call(self, x, training=False):
            if self.fail:
                raise ValueError("no more")
            return x

    picky = Picky()
    picky(X)
    picky(X)
    assert known(picky)
    picky.fail = True
    with pytest.raises(
        ValueError, match=r"(?s)Exception encountered when calling Picky.call\(\).*no more.*training=True"
    ):
        picky(X, training=True)
    picky.fail = False
    assert picky(X) is X  # and the context of the call was exited


def test_training_is_passed_down():
    class Outer(layers.Layer):
        def __init__(self):
            super().__init__()
            self.drop = layers.Dropout(0.9)

        def call(self, x, training=False):
            return self.drop(x)

    class Silent(layers.Layer):
        def __init__(self):
            super().__init__()
            self.outer = Outer()

        def call(self, x):
            return self.outer(x)

    ones = tf.ones([50])
    for layer in (Outer(), Silent()):
        for _ in range(3):
            assert np.all(layer(ones).numpy() == 1)
            assert np.any(layer(ones, training=True).numpy() == 0)
            assert np.all(layer(ones, training=False).numpy() == 1)


def test_losses_belong_to_the_last_call():
    class Costly(layers.Layer):
        def call(self, x):
            self.add_loss(tf.reduce_sum(x))
            return x

    model = keras.Sequential([Costly(), layers.Dense(1, kernel_regularizer="l2")])
    for _ in range(4):
        model(X)
        assert len(model.losses) == 2
    layer = Costly()
    for _ in range(4):
        layer(X)
        assert len(layer.losses) == 1


def test_masks_take_the_long_way():
    embed = layers.Embedding(5, 2, mask_zero=True)
    ids = tf.constant([[1, 0, 2]])
    model = keras.Sequential([embed, layers.LSTM(3)])
    want = model(ids).numpy()
    for _ in range(3):
        assert np.array_equal(model(ids).numpy(), want)
        assert embed(ids)._keras_mask.numpy().tolist() == [[True, False, True]]


def test_changed_options_are_noticed():
    dense = layers.Dense(2)
    for _ in range(3):
        dense(X)
    dense.activity_regularizer = keras.regularizers.L2(1.0)
    dense(X)
    assert len(dense.losses) == 1
    other = layers.Dense(2)
    for _ in range(3):
        other(X)
    other.dtype_policy = "mixed_float16"
    assert other(X).dtype == tf.float16


def test_mixed_precision_around_a_call():
    inner = layers.Dense(2)
    inner(X)
    inner(X)

    class Mixed(layers.Layer):
        def __init__(self):
            super().__init__(dtype="mixed_float16")
            self.inner = inner

        def call(self, x):
            return self.inner(x)

    assert Mixed()(X).dtype == tf.float32  # the layer inside has a type of its own


def test_models_of_one_input():
    inputs = keras.Input((3,))
    h = layers.Dense(4, "tanh")(inputs)
    both = layers.Concatenate()([h, inputs])
    model = keras.Model(inputs, layers.Dropout(0.5)(layers.Dense(2)(both)))
    want = model(X).numpy()
    for _ in range(3):
        assert np.array_equal(model(X).numpy(), want)
        assert not np.array_equal(model(X, training=True).numpy(), want)
        assert np.array_equal(model(X.numpy()).numpy(), want)
    assert model(tf.ones([3, 3], tf.float64)).dtype == tf.float32


def test_copies_and_sessions():
    model = keras.Sequential([layers.Dense(2)])
    model(X)
    model(X)
    other = copy.deepcopy(model)
    assert np.array_equal(other(X), model(X))
    keras.utils.clear_session()
    assert np.array_equal(model(X, training=True), other(X, training=False))


def test_gradients_of_short_calls():
    dense = layers.Dense(2)
    dense(X)
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(dense(X))
        assert np.allclose(tape.gradient(loss, dense.kernel), np.sum(X, 0)[:, None] * np.ones(2), atol=1e-5)


@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "mean", "sum", "none", None])
def test_losses(reduction):
    y, p = tf.constant([[0.0], [1.0], [1.0]]), tf.constant([[0.2], [0.7], [0.9]])
    for cls in (keras.losses.MeanSquaredError, keras.losses.BinaryCrossentropy, keras.losses.Huber):
        loss = cls(reduction=reduction)
        long = loss(y.numpy(), p.numpy(), sample_weight=np.ones(3, "float32"))
        assert np.allclose(loss(y, p), long, atol=1e-6)
        assert np.allclose(loss(tf.constant([0, 1, 1]), p), long, atol=1e-6)
    assert keras.losses.MeanSquaredError()(tf.zeros([0, 2]), tf.zeros([0, 2])).shape in ((), (0,))
