"""Spellings of Keras 2 that Keras 3 refuses, and programs still use: each works under `tf.keras`."""

import os

import numpy as np
import pytest

import gradtape as tf

keras = tf.keras
K = keras.backend
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
X = np.random.default_rng(0).normal(size=(16, 3)).astype("float32")
Y = X @ np.array([[1.0], [-2.0], [0.5]], "float32")


def small(**options):
    model = keras.Sequential([keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(1)], **options)
    model(X)
    return model


# ---- optimizers -----------------------------------------------------------------------------


def test_minimize_of_a_function():
    v = tf.Variable(3.0)
    opt = keras.optimizers.SGD(0.1)
    assert int(opt.minimize(lambda: v * v, [v])) == 1
    assert np.isclose(v.numpy(), 3.0 - 0.1 * 6)
    opt.minimize(lambda: v * v, lambda: [v])
    assert np.isclose(v.numpy(), 2.4 - 0.1 * 4.8)


def test_minimize_of_a_tensor_with_its_tape():
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(v**2)
    keras.optimizers.SGD(0.5).minimize(loss, [v], tape=tape)
    assert np.allclose(v.numpy(), 0)
    with pytest.raises(ValueError, match="`tape` is required"):
        keras.optimizers.SGD(0.5).minimize(loss, [v])


@pytest.mark.parametrize("cls", ["SGD", "Adam", "RMSprop", "Adagrad", "Nadam", "AdamW", "Ftrl"])
def test_lr_as_argument_and_attribute(cls):
    opt = getattr(keras.optimizers, cls)(lr=0.25)
    assert np.isclose(float(opt.lr), 0.25)
    opt.lr = 0.125
    assert np.isclose(float(opt.learning_rate), 0.125)
    K.set_value(opt.lr, 0.5)
    assert np.isclose(K.get_value(opt.lr), 0.5)


def test_decay_divides_the_rate():
    v, opt = tf.Variable(0.0), keras.optimizers.SGD(lr=1.0, decay=0.5)
    steps = []
    for _ in range(4):
        before = v.numpy()
        opt.apply_gradients([(tf.constant(1.0), v)])
        steps.append(before - v.numpy())
    assert np.allclose(steps, [1, 1 / 1.5, 1 / 2, 1 / 2.5])
    assert float(opt.lr) == 1.0


@pytest.mark.parametrize(
    "rate",
    [1, np.float32(0.5), np.array(0.5), tf.constant(0.5), tf.Variable(0.5)],
    ids=lambda r: type(r).__name__,
)
def test_learning_rates_of_all_kinds(rate):
    v, opt = tf.Variable(1.0), keras.optimizers.SGD(rate)
    opt.apply_gradients([(tf.constant(1.0), v)])
    assert np.isclose(v.numpy(), 1.0 - float(rate))


def test_a_variable_as_learning_rate_is_followed():
    rate, v = tf.Variable(1.0), tf.Variable(0.0)
    opt = keras.optimizers.SGD(rate)
    opt.apply_gradients([(tf.constant(1.0), v)])
    rate.assign(0.25)
    opt.apply_gradients([(tf.constant(1.0), v)])
    assert v.numpy() == -1.25


def test_legacy_and_experimental_modules():
    from gradtape.keras.optimizers.legacy import Adam

    assert Adam is keras.optimizers.Adam is keras.optimizers.experimental.Adam
    v = tf.Variable(1.0)
    keras.optimizers.legacy.SGD(lr=0.5).minimize(lambda: v, [v])
    assert v.numpy() == 0.5
    assert keras.experimental.CosineDecay is keras.optimizers.schedules.CosineDecay


def test_keywords_of_apply_gradients():
    v, opt = tf.Variable(1.0), keras.optimizers.SGD(1.0)
    opt.apply_gradients([(tf.constant(1.0), v)], name="step", experimental_aggregate_gradients=True)
    opt.apply_gradients([(tf.constant(1.0), v)], skip_gradients_aggregation=False)
    assert v.numpy() == -1


def test_new_variables_are_taken_in():
    a, b = tf.Variable([1.0, 2.0]), tf.Variable([[3.0]])
    opt, apart = keras.optimizers.Adam(0.1), keras.optimizers.Adam(0.1)
    ga, gb = tf.constant([0.1, -0.2]), tf.constant([[0.3]])
    other = tf.Variable([1.0, 2.0])
    for _ in range(3):
        opt.apply_gradients([(ga, a)])
        apart.apply_gradients([(ga, other)])
    slots = [v.numpy().copy() for v in opt.variables]
    opt.apply_gradients([(ga, a), (gb, b)])
    apart.apply_gradients([(ga, other)])
    assert np.allclose(a.numpy(), other.numpy())  # the slots of `a` were used
    assert len(opt.variables) == len(slots) + 2
    assert np.allclose(opt.get_slot(b, "m").numpy(), 0.1 * 0.3)
    for _ in range(2):
        opt.apply_gradients([(gb, b)])
    assert np.allclose(a.numpy(), other.numpy())


@pytest.mark.parametrize("cls", ["SGD", "Adam", "Nadam", "RMSprop", "Adagrad", "Adamax", "Lion", "Adafactor"])
def test_each_optimizer_takes_new_variables(cls):
    a, b = tf.Variable([1.0, 2.0]), tf.Variable([3.0])
    opt = getattr(keras.optimizers, cls)(0.1, use_ema=True, gradient_accumulation_steps=2)
    opt.apply_gradients([(tf.constant([1.0, 1.0]), a)])
    for _ in range(3):
        opt.apply_gradients([(tf.constant([1.0]), b), (tf.constant([1.0, 1.0]), a)])
    assert b.numpy() < 3 and np.all(a.numpy() < [1, 2])


def test_variables_weights_and_slots():
    v = tf.Variable([1.0, 2.0], name="v")
    opt = keras.optimizers.Adam(0.1)
    opt.apply_gradients([(tf.constant([0.5, 1.0]), v)])
    assert opt.variables() == opt.variables == opt.weights
    assert opt.get_slot_names() == ["momentum", "velocity"]
    assert np.allclose(opt.get_slot(v, "m").numpy(), [0.05, 0.1])
    assert np.allclose(opt.get_slot(v, "momentum").numpy(), [0.05, 0.1])
    state = opt.get_weights()
    opt.apply_gradients([(tf.constant([0.5, 1.0]), v)])
    opt.set_weights(state)
    assert np.allclose(opt.get_slot(v, "v").numpy(), [0.00025, 0.001])


def test_iterations_can_be_set():
    opt = keras.optimizers.SGD(1.0)
    opt.iterations.assign(7)
    assert int(opt.iterations) == 7
    opt.iterations = tf.Variable(3, dtype=tf.int64)
    opt.apply_gradients([(tf.constant(1.0), tf.Variable(1.0))])
    assert int(opt.iterations) == 4


@pytest.mark.parametrize("compiled", [False, True])
def test_scaled_losses(compiled):
    v = tf.Variable(2.0)
    opt = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.5), initial_scale=1024.0)

    def step():
        with tf.GradientTape() as tape:
            loss = v * v
            scaled = opt.get_scaled_loss(loss)
        grads = opt.get_unscaled_gradients(tape.gradient(scaled, [v]))
        opt.apply_gradients(zip(grads, [v], strict=True))
        return scaled, grads[0]

    scaled, g = (tf.function(step) if compiled else step)()
    assert scaled.numpy() == 4 * 1024 and g.numpy() == 4 and v.numpy() == 0
    assert float(opt.loss_scale) == 1024
    assert opt.get_scaled_loss(lambda: tf.constant(2.0))().numpy() == 2048


def test_loss_scale_optimizer_of_the_experimental_module():
    v = tf.Variable(1.0)
    opt = keras.mixed_precision.experimental.LossScaleOptimizer(keras.optimizers.SGD(1.0), loss_scale=8)
    with tf.GradientTape() as tape:
        loss = opt.get_scaled_loss(v * 1.0)
    grads = opt.get_unscaled_gradients(tape.gradient(loss, [v, tf.Variable(0.0)]))
    assert grads[0].numpy() == 1 and grads[1] is None
    opt.apply_gradients([(grads[0], v)])
    assert v.numpy() == 0


def test_a_step_with_infinite_gradients_is_left_out():
    v = tf.Variable(1.0)
    opt = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(1.0), initial_scale=8.0)
    opt.apply_gradients([(tf.constant(np.inf), v)])
    assert v.numpy() == 1 and float(opt.loss_scale) == 4


def test_compile_takes_optimizers_without_keras():
    model = small()
    model.compile(tf.optimizers.SGD(0.05, momentum=0.9), "mse")
    losses = model.fit(X, Y, epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert model.optimizer.momentum == 0.9


# ---- metrics and losses ---------------------------------------------------------------------


def test_reset_states():
    mean = keras.metrics.Mean()
    mean.update_state([2.0, 4.0])
    assert mean.result().numpy() == 3
    mean.reset_states()
    assert mean.result().numpy() == 0


def test_a_metric_of_keras_2():
    class Positives(keras.metrics.Metric):
        def __init__(self, name="positives", **kwargs):
            super().__init__(name=name, **kwargs)
            self.count = self.add_weight("count", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.count.assign_add(tf.reduce_sum(tf.cast(y_pred > 0, tf.float32)))

        def result(self):
            return self.count

        def reset_states(self):
            self.count.assign(0.0)

    metric = Positives()
    metric.update_state(None, tf.constant([1.0, -1.0, 2.0]))
    assert float(metric.result()) == 2
    metric.reset_states()
    assert float(metric.result()) == 0


@pytest.mark.parametrize(
    "name", ["mean_squared_error", "mean_absolute_error", "mean_absolute_percentage_error",
             "mean_squared_logarithmic_error", "kl_divergence", "log_cosh"],
)  # fmt: skip
def test_long_names_of_losses(name):
    y, p = tf.constant([[0.2, 0.8]]), tf.constant([[0.5, 0.5]])
    found = getattr(keras.losses, name)(y, p)
    assert found.shape == (1,) and found.numpy() > 0
    assert getattr(keras.metrics, name)(y, p).numpy() == found.numpy()
    assert getattr(tf.losses, name) is getattr(keras.losses, name)


def test_reductions_by_the_old_enumeration():
    y, p = tf.constant([[0.0], [1.0]]), tf.constant([[1.0], [3.0]])
    loss = keras.losses.MeanSquaredError
    assert loss(reduction=keras.losses.Reduction.AUTO)(y, p).numpy() == 2.5
    assert loss(reduction=keras.losses.Reduction.SUM)(y, p).numpy() == 5
    assert loss(reduction=keras.losses.Reduction.NONE)(y, p).numpy().tolist() == [1, 4]


def test_lists_as_targets():
    p = tf.constant([[0.1, 0.9], [0.8, 0.2]])
    found = keras.losses.SparseCategoricalCrossentropy()([1, 0], p)
    assert np.isclose(found.numpy(), -(np.log(0.9) + np.log(0.8)) / 2)


# ---- layers ---------------------------------------------------------------------------------


class Linear(keras.layers.Layer):
    """Code from the guides for TensorFlow 2.0."""

    def __init__(self, units=2):
        super().__init__()
        self.units = units

    def build(self, input_shape):
        w_init = tf.random_normal_initializer()
        self.w = tf.Variable(initial_value=w_init(shape=(input_shape[-1], self.units)), trainable=True)
        self.b = tf.Variable(initial_value=tf.zeros_initializer()(shape=(self.units,)), trainable=True)

    def call(self, inputs):
        return tf.matmul(inputs, self.w) + self.b


def test_variables_of_tensorflow_in_layers_are_tracked():
    layer = Linear()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(X) ** 2)
    assert len(layer.trainable_variables) == len(layer.weights) == 2
    assert isinstance(layer.w, tf.Variable)
    grads = tape.gradient(loss, layer.trainable_variables)
    assert [g.shape for g in grads] == [(3, 2), (2,)]
    before = layer.w.numpy()
    keras.optimizers.SGD(0.1).apply_gradients(zip(grads, layer.trainable_variables, strict=True))
    assert np.allclose(layer.w.numpy(), before - 0.1 * grads[0].numpy())


def test_such_layers_train_and_are_saved(tmp_path):
    model = keras.Sequential([Linear(4), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(lr=0.1), "mse")
    losses = model.fit(X, Y, epochs=5, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    model.save_weights(tmp_path / "w.h5")
    copy = keras.Sequential([Linear(4), keras.layers.Dense(1)])
    copy(X)
    copy.load_weights(tmp_path / "w.h5")
    assert np.allclose(copy.predict(X, verbose=0), model.predict(X, verbose=0))


class Pinn(keras.Model):
    """A model with a coefficient of its own, as inverse problems have one."""

    def __init__(self):
        super().__init__()
        self.net = keras.layers.Dense(1)
        self.coefficient = tf.Variable(0.5, trainable=True, dtype=tf.float32, name="coefficient")
        self.fixed = tf.Variable(1.0, trainable=False)
        self.more = [tf.Variable(1.0)]
        self.more.append(tf.Variable(2.0))
        self.by_name = {"x": tf.Variable(3.0)}

    def call(self, x):
        return self.net(x) * self.coefficient * self.fixed * self.more[0] * self.more[1] * self.by_name["x"]


def test_variables_in_models_lists_and_dictionaries():
    model = Pinn()
    model(X)
    assert len(model.trainable_variables) == 6  # coefficient, two in the list, one by name, kernel, bias
    assert len(model.non_trainable_variables) == 1
    names = [v.name for v in model.trainable_variables]
    assert "coefficient" in names
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(X) - Y) ** 2)
    grads = tape.gradient(loss, [model.coefficient, *model.net.trainable_variables])
    assert all(g is not None for g in grads)
    # An optimizer treats the variable itself and the one that Keras lists as the same.
    opt = keras.optimizers.SGD(0.1)
    opt.apply_gradients([(grads[0], model.coefficient)])
    held = next(v for v in model.trainable_variables if v.name == "coefficient")
    opt.apply_gradients([(grads[0], held)])
    assert len(opt._trainable_variables) == 1


def test_modules_in_layers_and_layers_in_modules():
    class Scale(tf.Module):
        def __init__(self):
            super().__init__()
            self.factor = tf.Variable(2.0)

    class Scaled(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.scale = Scale()

        def call(self, x):
            return x * self.scale.factor

    class Whole(tf.Module):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(2)
            self.parts = [Scaled()]

        def __call__(self, x):
            return self.parts[0](self.dense(x))

    layer = Scaled()
    assert [v.numpy() for v in layer.trainable_variables] == [2]
    whole = Whole()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(whole(X))
    assert len(whole.trainable_variables) == 3
    assert all(g is not None for g in tape.gradient(loss, whole.trainable_variables))


def test_watching_the_weights_of_a_layer():
    dense = keras.layers.Dense(2)
    dense(X)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(dense.kernel)
        y = tf.reduce_sum(dense(X))
    gk, gb = tape.gradient(y, [dense.kernel, dense.bias])
    assert gk.shape == (3, 2) and gb is None
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(dense.trainable_variables)
        y = tf.reduce_sum(dense(X))
    assert all(g is not None for g in tape.gradient(y, dense.trainable_variables))
    g = tf.GradientTape()
    with g:
        y = tf.constant(1.0)
    assert g.gradient(y, dense.kernel, unconnected_gradients="zero").shape == (3, 2)


def test_gone_arguments_of_layers():
    kernel = np.ones((3, 2), "float32")
    dense = keras.layers.Dense(2, use_bias=False, weights=[kernel], dynamic=True)
    assert np.allclose(dense(X).numpy(), X @ kernel)
    assert keras.layers.BatchNormalization(fused=False, renorm=False)(X).shape == (16, 3)
    model = keras.Sequential([keras.layers.Dense(2, batch_input_shape=(None, 3))])
    assert model.output_shape == (None, 2)
    assert keras.layers.Dense(2, dtype=tf.float64)(X).dtype == tf.float64
    assert keras.Sequential([keras.layers.Dense(2, input_dim=3)]).input_shape == (None, 3)


def test_training_by_position():
    drop = keras.layers.Dropout(0.5)
    ones = tf.ones([200])
    assert np.all(drop(ones, False).numpy() == 1)
    assert set(np.unique(drop(ones, True).numpy())) == {0, 2}


def test_weights_named_first():
    class Old(keras.layers.Layer):
        def build(self, input_shape):
            self.kernel = self.add_weight("kernel", shape=[int(input_shape[-1]), 2], initializer="ones")
            self.extra = self.add_variable("extra", [2], initializer="zeros", trainable=True)
            super().build(input_shape)

        def call(self, x):
            return tf.matmul(x, self.kernel) + self.extra

    layer = Old()
    assert np.allclose(layer(X).numpy(), X.sum(1, keepdims=True) * np.ones(2))
    assert [v.name for v in layer.trainable_variables] == ["kernel", "extra"]


def test_input_of_one_number_and_shapes():
    inputs = keras.Input(shape=3)
    dense = keras.layers.Dense(2)
    model = keras.Model(inputs, dense(inputs))
    assert dense.input_shape == (None, 3) and dense.output_shape == (None, 2)
    assert dense.get_output_at(0).shape == (None, 2) and dense.get_input_at(0).shape == (None, 3)
    assert model.input_shape == (None, 3)


def test_experimental_layers():
    scale = keras.layers.experimental.preprocessing.Rescaling(0.5)
    assert np.allclose(scale(X).numpy(), X / 2)
    from gradtape.keras.layers.experimental import preprocessing

    assert preprocessing.Normalization is keras.layers.Normalization


def test_control_flow_over_tensors_in_call():
    class Branching(keras.layers.Layer):
        def call(self, x):
            if tf.reduce_sum(x) > 0:
                y = x
            else:
                y = -x
            for _ in tf.range(2):
                y = y * 2.0
            return y

    layer = Branching()
    for x in (tf.constant([1.0]), tf.constant([-1.0])):
        assert layer(x).numpy() == tf.function(layer)(x).numpy() == 4


def test_state_after_a_layer_is_built():
    model = Pinn()
    model(X)
    count = len(model.trainable_variables)
    model.extra = keras.layers.Dense(3)
    model.extra(X)
    model.late = tf.Variable(1.0)
    assert len(model.trainable_variables) == count + 3


def test_add_metric():
    class Watching(keras.layers.Layer):
        def call(self, x):
            self.add_metric(tf.reduce_mean(x), name="level", aggregation="mean")
            return x

    model = keras.Sequential([Watching(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    assert "level" in model.fit(X, Y, verbose=0).history


# ---- models ---------------------------------------------------------------------------------


def test_gone_arguments_of_models():
    model = small()
    model.compile("sgd", "mse", metrics=["mae"], experimental_run_tf_function=False, sample_weight_mode=None)
    model.fit(X, Y, verbose=0, workers=2, use_multiprocessing=False, max_queue_size=10)
    assert model.metrics_names == ["loss", "mae"]
    assert len(model.evaluate(X, Y, verbose=0, workers=1)) == 2
    assert model.predict(X, verbose=0, workers=1).shape == (16, 1)
    model.reset_states()


def test_generators_by_their_own_methods():
    def batches():
        while True:
            yield X[:8], Y[:8]

    model = small()
    model.compile("sgd", "mse")
    assert len(model.fit_generator(batches(), steps_per_epoch=3, epochs=2, verbose=0).history["loss"]) == 2
    assert model.evaluate_generator(batches(), steps=2, verbose=0) > 0


def test_train_step_of_keras_2():
    class Custom(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                y_pred = self(x, training=True)
                loss = self.compiled_loss(y, y_pred, regularization_losses=self.losses)
            variables = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
            self.compiled_metrics.update_state(y, y_pred)
            return {m.name: m.result() for m in self.metrics}

    model = Custom()
    model.compile(optimizer=keras.optimizers.SGD(lr=0.1), loss="mse", metrics=["mae"])
    model.fit(X, Y, epochs=3, verbose=0)
    before = float(tf.reduce_mean((model(X) - Y) ** 2))
    model.fit(X, Y, epochs=20, verbose=0)
    assert float(tf.reduce_mean((model(X) - Y) ** 2)) < before


def test_train_on_batch_with_metrics_kept():
    model = small()
    model.compile(keras.optimizers.SGD(0.0), "mse")
    first = model.train_on_batch(X[:8], Y[:8])
    both = model.train_on_batch(X[8:], Y[8:], reset_metrics=False)
    assert np.isclose(both, model.evaluate(X, Y, verbose=0))
    assert np.isclose(first, model.train_on_batch(X[:8], Y[:8]))


# ---- files ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["w.weights.h5", "w.h5", "w.hdf5", "w", "w.ckpt", "deep/er/w"])
def test_weights_under_any_name(tmp_path, name):
    model, other = small(), small()
    path = os.path.join(tmp_path, name)
    model.save_weights(path)
    status = other.load_weights(path)
    assert np.array_equal(other(X), model(X))
    status.expect_partial()


def test_checkpoints_of_weights_are_found(tmp_path):
    model = small()
    for i in range(3):
        model.save_weights(str(tmp_path / f"cp-{i:04d}.ckpt"))
    latest = tf.train.latest_checkpoint(str(tmp_path))
    assert latest == str(tmp_path / "cp-0002.ckpt")
    other = small()
    other.load_weights(latest)
    assert np.array_equal(other(X), model(X))


def test_weights_loaded_before_the_model_is_built(tmp_path):
    model = small()
    model.save_weights(str(tmp_path / "w"))
    other = keras.Sequential([keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(1)])
    other.load_weights(str(tmp_path / "w")).expect_partial()
    assert np.array_equal(other(X), model(X))


def test_missing_and_broken_files(tmp_path):
    model = small()
    with pytest.raises(tf.errors.NotFoundError, match="there are no weights"):
        model.load_weights(str(tmp_path / "nothing"))
    bad = tmp_path / "bad.h5"
    bad.write_bytes(b"no weights in here")
    before = [w.copy() for w in model.get_weights()]
    with pytest.raises(OSError):
        model.load_weights(str(bad))
    assert all(np.array_equal(a, b) for a, b in zip(before, model.get_weights(), strict=True))


@pytest.mark.parametrize("name", ["whole.keras", "whole.h5", "folder"])
def test_models_under_any_name(tmp_path, name):
    model = keras.Sequential(
        [keras.Input(3), keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(1)]
    )
    model.compile("adam", "mse")
    model.fit(X, Y, verbose=0)
    path = str(tmp_path / name)
    model.save(path)
    other = keras.models.load_model(path)
    assert np.allclose(other.predict(X, verbose=0), model.predict(X, verbose=0))
    keras.models.save_model(other, path)


def test_model_checkpoint_with_any_path(tmp_path):
    model = small()
    model.compile("sgd", "mse")
    save = keras.callbacks.ModelCheckpoint(
        str(tmp_path / "cp-{epoch:02d}.ckpt"), save_weights_only=True, verbose=0
    )
    model.fit(X, Y, epochs=2, verbose=0, callbacks=[save])
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("cp-02.ckpt")


def test_checkpoint_of_model_and_optimizer(tmp_path):
    def made():
        return small(), keras.optimizers.Adam(0.1)

    def step(model, opt):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(X) - Y) ** 2)
        opt.apply_gradients(
            zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
        )

    model, opt = made()
    step(model, opt)
    path = tf.train.Checkpoint(model=model, optimizer=opt).save(str(tmp_path / "ck"))
    other, other_opt = made()
    step(other, other_opt)
    tf.train.Checkpoint(model=other, optimizer=other_opt).restore(path).assert_consumed()
    step(model, opt)
    step(other, other_opt)
    assert np.array_equal(model(X), other(X)) and int(other_opt.iterations) == 2


@pytest.mark.parametrize("given", [{"input_shape": (3,)}, {"input_dim": 3}, {"batch_input_shape": (None, 3)}])
def test_the_warning_about_input_shape_names_the_users_line(given):
    with pytest.warns(UserWarning, match="Do not pass an `input_shape`") as told:
        layer = keras.layers.Dense(2, **given)
    assert [t.filename for t in told] == [__file__]
    assert keras.Sequential([layer]).input_shape == (None, 3)
