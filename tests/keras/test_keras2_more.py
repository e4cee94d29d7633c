"""More that Keras 2 accepted: inputs of Sequential models, batch shapes, arguments that must not be lost."""

import numpy as np
import pytest

import gradtape as tf

keras = tf.keras
layers = keras.layers
pytestmark = pytest.mark.filterwarnings("ignore:Do not pass an `input_shape`")
X = np.random.default_rng(0).normal(size=(8, 4)).astype("float32")


def test_input_and_output_of_a_sequential_model():
    model = keras.Sequential([layers.Dense(3, input_shape=(4,), name="first"), layers.Dense(2)])
    inner = keras.Model([model.inputs], [model.get_layer("first").output, model.output])
    hidden, out = inner(X)
    np.testing.assert_allclose(out, model(X), atol=1e-6)
    first = model.layers[0].output
    for outputs in (first, [first], (first, first), {"h": first}):
        seen = keras.backend.function([model.input], outputs)([X])
        assert type(seen) is (np.ndarray if outputs is first else type(outputs))
        for array in tf.nest.flatten(seen):
            np.testing.assert_allclose(array, hidden, atol=1e-6)
    assert model.input.shape == (None, 4) and model.output.shape == (None, 2)
    with pytest.raises(AttributeError, match="has not been built|no defined"):
        keras.Sequential([layers.Dense(2)]).input  # noqa: B018


def test_batch_input_shape():
    lstm = layers.LSTM(3, stateful=True, batch_input_shape=(2, 5, 4))
    model = keras.Sequential([lstm])
    assert model.input_shape == (2, 5, 4)
    x = np.ones((2, 5, 4), "float32")
    first, second = model(x).numpy(), model(x).numpy()
    assert not np.allclose(first, second)
    model.reset_states()
    np.testing.assert_allclose(model(x), first, atol=1e-6)
    copied = keras.Sequential.from_config(model.get_config())
    assert copied.input_shape == (2, 5, 4)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda **kw: layers.LSTM(3, **kw), "time_major"),
        (lambda **kw: layers.BatchNormalization(**kw), "virtual_batch_size"),
    ],
)
def test_arguments_that_changed_the_result_are_refused(make, name):
    make(**{name: None})
    make(**{name: False})
    with pytest.raises(ValueError, match=f"Keras 3 has no `{name}`"):
        make(**{name: True})


def test_add_variable():
    class Old(layers.Layer):
        def build(self, shape):
            self.w = self.add_variable("w", shape=[int(shape[-1]), 2])
            self.b = self.add_variable(name="b", shape=[2], initializer="ones", trainable=False)

        def call(self, x):
            return tf.matmul(x, self.w) + self.b

    layer = Old()
    assert layer(X).shape == (8, 2)
    assert [len(v) for v in (layer.trainable_variables, layer.non_trainable_variables)] == [1, 1]


def test_arrays_beside_tensors():
    a, b = keras.Input((4,)), keras.Input((4,))
    model = keras.Model([a, b], layers.Add()([a, b]))
    for inputs in ([tf.constant(X), X], (X, tf.constant(X)), [X, X], [X.astype("float64"), tf.constant(X)]):
        out = model(inputs)
        assert out.dtype == tf.float32
        np.testing.assert_allclose(out, 2 * X, atol=1e-6)


def test_the_rate_of_the_next_step():
    opt = keras.optimizers.SGD(lr=1.0, decay=1.0)
    v = tf.Variable(0.0)
    for rate in (1, 0.5):
        assert float(opt._decayed_lr(tf.float32)) == rate
        opt.apply_gradients([(tf.constant(1.0), v)])
    schedule = keras.optimizers.schedules.ExponentialDecay(1.0, 1, 0.5)
    opt = keras.optimizers.SGD(schedule)
    for rate in (1, 0.5):
        assert float(opt._decayed_lr("float64")) == rate
        opt.apply_gradients([(tf.constant(1.0), v)])


def test_strength_of_regularizers():
    for cls in (keras.regularizers.l1, keras.regularizers.l2):
        assert float(cls(l=0.5)(tf.ones([2]))) == float(cls(0.5)(tf.ones([2]))) == 1.0


def test_muon_takes_variables_of_tensorflow():
    start, g = np.arange(6, dtype="float32").reshape(3, 2), tf.ones([3, 2])
    made = []
    for kind in (tf.Variable, keras.Variable):
        v, opt = kind(start), keras.optimizers.Muon(0.1)
        for _ in range(2):
            opt.apply_gradients([(g, v)])
        made.append(v.numpy())
    np.testing.assert_allclose(made[0], made[1], atol=1e-6)
    assert not np.allclose(made[0], start)
