"""`fit`, `evaluate`, `predict` on gradtape: what is compiled, supported data, and results."""

import copy
import pickle

import numpy as np
import pytest

import gradtape as tf
import keras_gradtape  # noqa: F401  before Keras

import keras  # isort: skip

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(20, 3)).astype("float32")
Y = (X @ np.array([[1.0], [-2.0], [0.5]], "float32") + 0.25).astype("float32")


def linear(**options):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    options = {"optimizer": keras.optimizers.SGD(0.1), "loss": "mse"} | options
    model.compile(**options)
    return model


def by_hand(epochs, size, weights=None):
    """SGD on the same model in NumPy, without shuffling."""
    w, b, losses = np.zeros((3, 1), "float64"), 0.0, []
    for _ in range(epochs):
        total = 0.0
        for i in range(0, len(X), size):
            x, y = X[i : i + size], Y[i : i + size]
            e = x @ w + b - y
            c = np.ones(len(x)) if weights is None else weights[i : i + size]
            total += float((c[:, None] * e**2).sum())
            w, b = w - 0.1 * 2 * x.T @ (c[:, None] * e) / len(x), b - 0.1 * 2 * (c[:, None] * e).mean()
        losses.append(total / len(X))
    return losses, w, b


def zeroed(model):
    model.set_weights([np.zeros_like(w) for w in model.get_weights()])
    return model


# ---- numbers --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"run_eagerly": True}, {"jit_compile": True}, {"steps_per_execution": 3}], ids=str
)
def test_fit_computes_gradient_descent(options):
    model = zeroed(linear(**options))
    found = model.fit(X, Y, batch_size=8, epochs=3, shuffle=False, verbose=0).history["loss"]
    losses, w, b = by_hand(3, 8)
    assert np.allclose(found, losses, rtol=1e-5)
    assert np.allclose(model.get_weights()[0], w, atol=1e-5) and np.allclose(
        model.get_weights()[1], b, atol=1e-5
    )


def test_sample_weights_and_class_weights():
    weights = RANDOM.uniform(0.5, 2, size=20).astype("float32")
    model = zeroed(linear())
    model.fit(X, Y, batch_size=8, shuffle=False, sample_weight=weights, verbose=0)
    assert np.allclose(model.get_weights()[0], by_hand(1, 8, weights)[1], atol=1e-5)
    classes = (Y[:, 0] > 0).astype("int32")
    by_class = {0: 0.5, 1: 2.0}
    models = [keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, "softmax")]) for _ in range(3)]
    for m in models:
        zeroed(m).compile("sgd", "sparse_categorical_crossentropy")
    models[0].fit(X, classes, class_weight=by_class, shuffle=False, verbose=0)
    models[1].fit(X, classes, sample_weight=np.where(classes > 0, 2.0, 0.5), shuffle=False, verbose=0)
    data = tf.data.Dataset.from_tensor_slices((X, classes)).batch(32)
    models[2].fit(data, class_weight=by_class, verbose=0)
    for m in models[1:]:
        assert np.allclose(m.get_weights()[0], models[0].get_weights()[0], atol=1e-6)


def test_evaluate_and_predict():
    model = linear(metrics=["mae"])
    loss, mae = model.evaluate(X, Y, batch_size=7, verbose=0)
    e = X @ model.get_weights()[0] + model.get_weights()[1] - Y
    assert np.isclose(loss, (e**2).mean(), rtol=1e-5) and np.isclose(mae, abs(e).mean(), rtol=1e-5)
    assert model.evaluate(X, Y, verbose=0, return_dict=True).keys() == {"loss", "mae"}
    assert np.allclose(model.predict(X, batch_size=6, verbose=0), e + Y, atol=1e-5)
    assert np.allclose(model.predict_on_batch(X), e + Y, atol=1e-5)
    assert isinstance(model.predict(X, verbose=0), np.ndarray)
    assert np.isclose(model.test_on_batch(X, Y)[0], loss, rtol=1e-5)


def test_train_on_batch():
    model = zeroed(linear())
    first = model.train_on_batch(X, Y)
    assert np.isclose(first, (Y**2).mean(), rtol=1e-5)
    assert np.allclose(model.get_weights()[0], by_hand(1, 20)[1], atol=1e-6)
    assert model.train_on_batch(X, Y, return_dict=True)["loss"] < first


def test_shuffling_goes_through_all_rows():
    seen = []

    class Spy(keras.Model):
        def train_step(self, data):
            x, _ = data
            seen.extend(x.numpy()[:, 0].tolist())
            return {"loss": tf.constant(0.0)}

    model = Spy()
    model.compile("sgd", "mse", run_eagerly=True)
    for shuffle in (True, "batch", False):
        seen.clear()
        model.fit(X, Y, batch_size=6, shuffle=shuffle, verbose=0)
        assert sorted(seen) == sorted(X[:, 0].tolist())
    assert seen == X[:, 0].tolist()


@pytest.mark.parametrize(
    "shuffle, seed, order",
    [
        (True, 7, [7, 5, 4, 0, 3, 6, 9, 2, 8, 1]),
        (True, 8, [1, 8, 6, 4, 9, 5, 3, 0, 2, 7]),
        ("batch", 7, [1, 2, 0, 3, 7, 5, 4, 6, 8, 9]),
    ],
)
def test_fit_shuffles_as_keras_on_tensorflow_does(shuffle, seed, order):
    """With a seed, every epoch and every fit has the same order there."""
    seen = []

    class Spy(keras.Model):
        def train_step(self, data):
            seen.extend(int(v) for v in np.ravel(data[0]))
            return {"loss": tf.constant(0.0)}

    keras.utils.set_random_seed(seed)
    np.random.rand(3)
    tf.random.uniform([2])  # what the program draws does not change the order
    model = Spy()
    model.compile("sgd", "mse", run_eagerly=True)
    x = np.arange(10, dtype="float32")[:, None]
    before = np.random.get_state()[1].tolist()
    for _ in range(2):
        model.fit(x, x, batch_size=4, epochs=2, shuffle=shuffle, verbose=0)
    assert seen == order * 4
    assert np.random.get_state()[1].tolist() == before


def test_validation():
    model = linear(metrics=["mae"])
    history = model.fit(X, Y, epochs=4, validation_split=0.25, validation_freq=2, verbose=0).history
    assert len(history["loss"]) == 4 and len(history["val_loss"]) == 2
    history = model.fit(X, Y, epochs=2, validation_data=(X, Y, np.ones(20)), verbose=0).history
    assert np.isclose(history["val_mae"][-1], model.evaluate(X, Y, verbose=0)[1], rtol=1e-5)


# ---- data -----------------------------------------------------------------------------------


class Sequence(keras.utils.PyDataset):
    def __len__(self):
        return 5

    def __getitem__(self, i):
        return X[4 * i : 4 * i + 4], Y[4 * i : 4 * i + 4]


def generator():
    for i in range(0, 20, 4):
        yield X[i : i + 4], Y[i : i + 4]


KINDS = {
    "arrays": lambda: {"x": X, "y": Y},
    "float64": lambda: {"x": X.astype("float64"), "y": Y.astype("float64")},
    "tensors": lambda: {"x": tf.constant(X), "y": tf.constant(Y)},
    "lists": lambda: {"x": X.tolist(), "y": Y.tolist()},
    "dataset": lambda: {"x": tf.data.Dataset.from_tensor_slices((X, Y)).batch(4)},
    "generator": lambda: {"x": generator()},
    "PyDataset": lambda: {"x": Sequence()},
    "workers": lambda: {"x": Sequence(workers=2)},
}


@pytest.mark.filterwarnings("ignore:Your input ran out of data")  # warned about for every generator
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_data(kind):
    model = zeroed(linear())
    model.fit(**KINDS[kind](), batch_size=4 if "y" in KINDS[kind]() else None, shuffle=False, verbose=0)
    assert np.allclose(model.get_weights()[0], by_hand(1, 4)[1], atol=1e-5)
    assert np.isclose(model.evaluate(**KINDS[kind](), verbose=0), model.evaluate(X, Y, verbose=0), rtol=1e-5)


def test_datasets_without_end_and_steps():
    data = tf.data.Dataset.from_tensor_slices((X, Y)).repeat().batch(4)
    model = linear()
    assert len(model.fit(data, steps_per_epoch=3, epochs=2, verbose=0).history["loss"]) == 2
    assert model.predict(data.map(lambda x, y: x), steps=2, verbose=0).shape == (8, 1)
    with pytest.warns(UserWarning, match="ran out of data"):
        model.fit(
            tf.data.Dataset.from_tensor_slices((X, Y)).batch(10), steps_per_epoch=5, epochs=1, verbose=0
        )
    with pytest.raises(ValueError, match="`y` should not be passed"):
        model.fit(data, Y)


def test_several_inputs_and_outputs_by_name():
    a, b = keras.Input((3,), name="a"), keras.Input((3,), name="b")
    h = keras.layers.Concatenate()([a, b])
    model = keras.Model(
        [a, b], {"p": keras.layers.Dense(1, name="p")(h), "q": keras.layers.Dense(2, name="q")(h)}
    )
    model.compile("sgd", {"p": "mse", "q": "mae"}, metrics={"p": ["mae"]}, loss_weights={"p": 1.0, "q": 0.5})
    y = {"p": Y, "q": np.zeros((20, 2))}
    history = model.fit([X, X], y, verbose=0).history
    assert {"loss", "p_loss", "q_loss", "p_mae"} <= history.keys()
    found = model.predict({"a": X, "b": X}, verbose=0)
    assert found["p"].shape == (20, 1) and found["q"].shape == (20, 2)
    data = tf.data.Dataset.from_tensor_slices(({"a": X, "b": X}, y)).batch(8)
    model.fit(data, validation_data=data, verbose=0)


# ---- steps ----------------------------------------------------------------------------------


def test_a_step_is_traced_once_for_each_kind_of_batch():
    traces = []

    class Counting(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, x):
            traces.append(tuple(x.shape))
            return self.dense(x)

    model = Counting()
    model(X)
    traces.clear()
    model.compile("sgd", "mse")
    model.fit(X, Y, batch_size=8, epochs=3, verbose=0)
    assert traces == [(8, 3), (4, 3)]


def test_custom_train_step_and_metrics():
    class Custom(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)
            self.tracker = keras.metrics.Mean(name="own")

        @property
        def metrics(self):
            return [self.tracker]

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
            grads = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(grads, self.trainable_variables, strict=True))
            self.tracker.update_state(loss)
            return {"own": self.tracker.result()}

        def test_step(self, data):
            return {"seen": tf.reduce_mean(self(data[0]))}

    model = Custom()
    model.compile(keras.optimizers.Adam(0.1))
    own = model.fit(X, Y, epochs=10, verbose=0).history["own"]
    assert own[-1] < own[0]
    assert isinstance(model.evaluate(X, Y, verbose=0), float)


def test_a_model_without_call():
    """A GAN has training steps and no `call`, so its output must not be needed."""

    class Gan(keras.Model):
        def __init__(self):
            super().__init__()
            self.d, self.g = keras.layers.Dense(1), keras.layers.Dense(3)

        def compile(self, d_optimizer, g_optimizer):
            super().compile()
            self.d_optimizer, self.g_optimizer = d_optimizer, g_optimizer

        def train_step(self, real):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(self.d(self.g(tf.random.normal([4, 2])))) - tf.reduce_mean(self.d(real))
            self.d_optimizer.apply_gradients(
                zip(tape.gradient(loss, self.d.trainable_weights), self.d.trainable_weights, strict=True)
            )
            with tf.GradientTape() as tape:
                g_loss = -tf.reduce_mean(self.d(self.g(tf.random.normal([4, 2]))))
            self.g_optimizer.apply_gradients(
                zip(tape.gradient(g_loss, self.g.trainable_weights), self.g.trainable_weights, strict=True)
            )
            return {"d": loss, "g": g_loss}

    model = Gan()
    model.compile(keras.optimizers.Adam(), keras.optimizers.Adam())
    assert model.fit(X, epochs=2, verbose=0).history.keys() == {"d", "g"}


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_mixed_precision(policy):
    layers = [keras.layers.Dense(8, "relu", dtype=policy), keras.layers.Dense(1, dtype="float32")]
    model = keras.Sequential([keras.Input((3,)), *layers], name="mixed")
    opt = keras.optimizers.Adam(0.05)
    if policy == "mixed_float16":
        opt = keras.optimizers.LossScaleOptimizer(opt, initial_scale=64.0)
    model.compile(opt, "mse")
    losses = model.fit(X, Y, epochs=20, verbose=0).history["loss"]
    assert losses[-1] < losses[0] / 2
    assert layers[0].kernel.dtype == "float32" and layers[0](X).dtype == policy.removeprefix("mixed_")


def test_loss_scaling_skips_steps_that_overflow():
    model = linear(
        optimizer=keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=2.0**127)
    )
    before = model.get_weights()
    model.train_on_batch(100 * X, 100 * Y)
    assert all(np.array_equal(a, b) for a, b in zip(before, model.get_weights(), strict=True))
    assert float(model.optimizer.dynamic_scale) == 2.0**126


def test_layers_with_state_and_randomness():
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.Input((3,)),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(1),
        ]
    )
    model.compile("sgd", "mse")
    model.fit(X, Y, epochs=3, verbose=0)
    moving = model.layers[0].moving_mean.numpy()
    assert np.allclose(moving, (1 - 0.99**3) * X.mean(0), atol=1e-5)
    assert np.array_equal(model.predict(X, verbose=0), model.predict(X, verbose=0))


def test_regularizers_and_added_losses():
    class Penalty(keras.layers.Layer):
        def call(self, x):
            self.add_loss(tf.reduce_sum(x**2))
            return x

    model = keras.Sequential([keras.Input((3,)), Penalty(), keras.layers.Dense(1, kernel_regularizer="l2")])
    model.compile("sgd", "mse")
    w, b = model.get_weights()
    expected = ((X @ w + b - Y) ** 2).mean() + 0.01 * (w**2).sum() + (X**2).sum()
    assert np.isclose(model.evaluate(X, Y, batch_size=20, verbose=0), expected, rtol=1e-5)
    with tf.GradientTape() as tape:
        loss = tf.add_n(model.losses) if model(X) is not None else None
    assert tape.gradient(loss, model.trainable_variables[0]).shape == (3, 1)


def test_trainable_false_freezes():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4), keras.layers.Dense(1)])
    model.layers[0].trainable = False
    model.compile("sgd", "mse")
    before = model.get_weights()
    model.fit(X, Y, verbose=0)
    after = model.get_weights()
    assert np.array_equal(before[0], after[0]) and not np.array_equal(before[2], after[2])


# ---- callbacks ------------------------------------------------------------------------------


def test_callbacks_are_called_in_order():
    calls = []

    class Listener(keras.callbacks.Callback):
        pass

    def note(name):
        return lambda self, *args, **kwargs: calls.append(name)

    for name in ("train_begin", "epoch_begin", "train_batch_begin", "train_batch_end", "test_begin", "test_batch_end",
                 "test_end", "epoch_end", "train_end"):  # fmt: skip
        setattr(Listener, f"on_{name}", note(name))
    linear().fit(X, Y, batch_size=10, validation_data=(X, Y), callbacks=[Listener()], verbose=0)
    batch = ["train_batch_begin", "train_batch_end"]
    test = ["test_begin", "test_batch_end", "test_batch_end", "test_end"]
    assert calls == ["train_begin", "epoch_begin", *batch, *batch, *test, "epoch_end", "train_end"]


def test_logs_of_batches_and_stopping():
    class Stop(keras.callbacks.Callback):
        logs = None

        def on_train_batch_end(self, batch, logs=None):
            self.logs = logs
            if batch == 1:
                self.model.stop_training = True

    stop = Stop()
    linear().fit(X, Y, batch_size=4, epochs=5, callbacks=[stop], verbose=0)
    assert isinstance(stop.logs["loss"], float)
    history = linear().fit(
        X, Y, epochs=50, verbose=0, callbacks=[keras.callbacks.EarlyStopping("loss", min_delta=10)]
    )
    assert len(history.history["loss"]) == 2


def test_learning_rates_set_by_callbacks():
    model = linear()
    model.fit(X, Y, epochs=3, verbose=0, callbacks=[keras.callbacks.LearningRateScheduler(lambda e: 0.5**e)])
    assert float(model.optimizer.learning_rate) == 0.25


def test_progress_is_printed(capsys):
    linear().fit(X, Y, epochs=1, verbose=2)
    assert "loss:" in capsys.readouterr().out


# ---- other ----- --------------------------------------------------------------------------


def test_models_are_copied_and_pickled_after_training():
    model = linear()
    model.fit(X, Y, verbose=0)
    model(tf.constant(X))
    model(tf.constant(X))
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.allclose(other.predict(X, verbose=0), model.predict(X, verbose=0))


def test_save_and_go_on(tmp_path):
    model = linear(optimizer=keras.optimizers.Adam(0.1))
    model.fit(X, Y, shuffle=False, verbose=0)
    model.save(tmp_path / "m.keras")
    other = keras.models.load_model(tmp_path / "m.keras")
    for m in (model, other):
        m.fit(X, Y, shuffle=False, verbose=0)
    assert np.allclose(model.get_weights()[0], other.get_weights()[0], atol=1e-6)
    assert int(other.optimizer.iterations) == 2


def test_wrong_input():
    model = linear()
    with pytest.raises(ValueError, match="must call `compile"):
        keras.Sequential([keras.layers.Dense(1)]).fit(X, Y)
    with pytest.raises(ValueError, match="cardinality"):
        model.fit(X, Y[:5], verbose=0)
    with pytest.raises(ValueError, match="expected axis -1|incompatible"):
        model.fit(X[:, :2], Y, verbose=0)
    with pytest.raises(ValueError, match="Unrecognized data type"):
        model.fit("data", verbose=0)
    model.fit(X, Y, verbose=0)  # and nothing is broken


def test_logs_are_numbers_and_an_interrupt_comes_out():
    class Interrupted:
        def __float__(self):
            raise KeyboardInterrupt

    logs = {"b": tf.constant(2.0), "a": {"c": np.float32(1)}, "d": "text", "e": tf.constant([1.0, 2.0])}
    numbers = keras.src.utils.python_utils.pythonify_logs(logs)
    assert list(numbers) == ["c", "b", "d", "e"]
    assert (numbers["c"], numbers["b"], numbers["d"], numbers["e"].tolist()) == (1.0, 2.0, "text", [1.0, 2.0])
    with pytest.raises(KeyboardInterrupt):
        keras.src.utils.python_utils.pythonify_logs({"loss": Interrupted()})
