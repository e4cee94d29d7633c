"""`fit`, `evaluate` and `predict` with batches of many sizes, several at a time, none, and scaled losses."""

import warnings

import numpy as np
import pytest

import gradtape as tf

keras = tf.keras
layers = keras.layers
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(100, 4)).astype("float32")
Y = X.sum(1, keepdims=True)


def model(**options):
    made = keras.Sequential([keras.Input((4,)), layers.Dense(8, activation="tanh"), layers.Dense(1)])
    made.compile(options.pop("optimizer", "adam"), "mse", **options)
    return made


def test_batches_of_many_sizes(caplog):
    net = model()
    for n in range(1, 60):
        np.testing.assert_allclose(net.predict(X[:n], verbose=0), net(X[:n]), atol=1e-5)
    assert "retracing" not in caplog.text
    # More batch sizes than are traced: the others run eagerly, and train as well.
    before = net.evaluate(X, Y, verbose=0)
    for n in [*range(1, 50)] * 4:
        net.train_on_batch(X[:n], Y[:n])
    assert net.evaluate(X, Y, verbose=0) < before
    assert int(net.optimizer.iterations) == 49 * 4


@pytest.mark.parametrize("rows", [96, 100])
def test_the_last_of_several_steps_may_be_short(rows):
    net = model(steps_per_execution=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        history = net.fit(X[:rows], Y[:rows], batch_size=16, epochs=2, verbose=0, validation_data=(X, Y))
        assert net.predict(X[:rows], batch_size=16, verbose=0).shape == (rows, 1)
        dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(16)
        net.fit(dataset, verbose=0)
    assert len(history.history["val_loss"]) == 2 and int(net.optimizer.iterations) == 2 * -(-rows // 16) + 7
    with pytest.warns(UserWarning, match="ran out of data"):
        net.fit(dataset, steps_per_epoch=20, verbose=0)


def test_nothing_to_learn_from():
    net = model()
    weights = net.get_weights()
    with pytest.raises(ValueError, match="None values not supported"):
        net.fit(X, verbose=0)
    with pytest.raises(ValueError, match="there is no batch to predict"):
        net.predict(X[:0], verbose=0)
    assert all(map(np.array_equal, weights, net.get_weights())) and int(net.optimizer.iterations) == 0


def test_wrong_data_changes_nothing():
    net = model()
    net.fit(X, Y, verbose=0)
    before = [*net.get_weights(), *(v.numpy() for v in net.optimizer.variables)]
    for x, y, words in (
        (X[:, :3], Y, "expected axis -1 of input shape to have value 4"),
        (X, Y[:50], "Data cardinality is ambiguous"),
        (X, np.ones((100, 3, 2), "float32"), None),
    ):
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=words):
            net.fit(x, y, verbose=0)
    after = [*net.get_weights(), *(v.numpy() for v in net.optimizer.variables)]
    assert all(map(np.array_equal, before, after))


@pytest.mark.parametrize("eager", [False, True])
def test_the_scale_of_mixed_precision_is_followed(eager):
    """A scale that is too large at first shrinks in the traced step too, and training begins."""
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        net = keras.Sequential([keras.Input((4,)), layers.Dense(8, activation="tanh"), layers.Dense(1)])
        optimizer = keras.mixed_precision.LossScaleOptimizer(
            keras.optimizers.Adam(0.02), initial_scale=2.0**30
        )
        net.compile(optimizer, "mse", run_eagerly=eager)
        losses = net.fit(X, Y, epochs=30, verbose=0).history["loss"]
    finally:
        keras.mixed_precision.set_global_policy("float32")
    assert float(optimizer.dynamic_scale) < 2.0**25
    assert losses[-1] < 0.5 * losses[0] and int(optimizer.iterations) > 50


def test_a_scaled_loss_in_a_function_of_ones_own():
    v = tf.Variable(2.0)
    opt = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.25), initial_scale=2.0**127)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = opt.scale_loss(v * v)
        opt.apply_gradients([(tape.gradient(loss, v), v)])

    for _ in range(5):
        step()
    assert int(opt.iterations) == 3 and np.isclose(v.numpy(), 2 * 0.5**3)
    assert [x.path.split("/")[-1] for x in opt.variables[:4]] == [
        "iteration", "learning_rate", "step_counter", "dynamic_scale",
    ]  # fmt: skip
