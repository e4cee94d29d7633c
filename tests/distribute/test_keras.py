"""Keras under a strategy with two replicas, beyond the numbers of golden/: models created, saved, and used outside of it."""

import importlib.util

import numpy as np
import pytest

import gradtape as tf

pytestmark = pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is an extra")

D = tf.distribute
context = D.get_replica_context


@pytest.fixture(autouse=True)
def seeds():
    if importlib.util.find_spec("keras"):
        tf.keras.utils.set_random_seed(0)


def data(n=48, width=6):
    rng = np.random.default_rng(1)
    return rng.standard_normal((n, width)).astype("f"), rng.integers(0, 3, n)


def compiled(model, optimizer=None, **options):
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer or tf.keras.optimizers.Adam(0.01), loss, metrics=["accuracy"], **options)
    return model


def dense():
    return tf.keras.Sequential([tf.keras.layers.Dense(8, "tanh"), tf.keras.layers.Dense(3)])


def losses(history):
    return np.array(history.history["loss"])


def pair(strategy, make=dense, **options):
    """The same model in the scope of a strategy, and without one."""
    with strategy.scope():
        many = compiled(make(), **options)
    alone = compiled(make(), **options)
    for model in (many, alone):
        if not model.built:
            model.build((None, 6))
    alone.set_weights(many.get_weights())
    return many, alone


# ---- fit -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"run_eagerly": True}, {"steps_per_execution": 3}], ids=["graph", "eagerly", "steps"]
)
def test_fit_gives_the_losses_of_one_device(two, options):
    x, y = data()
    many, alone = pair(two, **options)
    histories = [m.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0) for m in (many, alone)]
    assert np.allclose(*map(losses, histories), atol=1e-5)
    assert histories[0].history["accuracy"] == pytest.approx(histories[1].history["accuracy"])
    assert np.allclose(many.predict(x[:7], verbose=0), alone.predict(x[:7], verbose=0), atol=1e-5)
    assert many.evaluate(x, y, verbose=0) == pytest.approx(alone.evaluate(x, y, verbose=0), abs=1e-5)
    assert int(np.asarray(many.optimizer.iterations)) == 6 and many.distribute_strategy is two


def test_models_that_are_not_built_yet(two):
    x, y = data()
    with two.scope():
        model = compiled(dense())
    history = model.fit(x, y, batch_size=16, epochs=3, verbose=0, validation_split=0.25)
    assert losses(history)[-1] < losses(history)[0] and "val_loss" in history.history
    assert all(
        two.extended.variable_created_in_scope(v._value) for v in model.weights + model.optimizer.variables
    )
    assert len(model.trainable_weights) == 4


def test_datasets_and_distributed_datasets(two):
    x, y = data()
    many, alone = pair(two)
    ds = tf.data.Dataset.from_tensor_slices((x, y)).batch(16)
    want = losses(alone.fit(ds, epochs=2, verbose=0))
    weights = many.get_weights()
    assert np.allclose(losses(many.fit(ds, epochs=2, verbose=0)), want, atol=1e-5)
    with two.scope():
        again = compiled(dense())
    again.build((None, 6))
    again.set_weights(weights)
    cut = two.experimental_distribute_dataset(ds)
    assert np.allclose(losses(again.fit(cut, epochs=2, verbose=0)), want, atol=1e-5)
    assert again.evaluate(cut, verbose=0) == pytest.approx(alone.evaluate(ds, verbose=0), abs=1e-5)


def test_many_sizes_of_batches(two):
    x, y = data(40)
    many, alone = pair(two)
    for size in (8, 10, 6, 12, 14, 5, 20):  # many sizes, traced once for all
        kept = [m.train_on_batch(x[:size], y[:size], return_dict=True) for m in (many, alone)]
        if size % 2 == 0:
            assert kept[0]["loss"] == pytest.approx(kept[1]["loss"], abs=1e-4), size
        alone.set_weights(many.get_weights())


def test_batch_norm_dropout_and_added_losses(two):
    class Noisy(tf.keras.layers.Layer):
        def call(self, x):
            self.add_loss(0.01 * tf.reduce_mean(x**2))
            return x

    layers = tf.keras.layers
    with two.scope():
        model = compiled(
            tf.keras.Sequential(
                [
                    tf.keras.Input((6,)),
                    layers.Dense(8),
                    layers.BatchNormalization(momentum=0.5),
                    Noisy(),
                    layers.Dropout(0.5),
                    layers.Dense(3),
                ]
            )  # fmt: skip
        )
    x, y = data()
    history = model.fit(x, y, batch_size=16, epochs=8, verbose=0)
    assert losses(history)[-1] < losses(history)[0]
    moving = model.layers[1].moving_mean._value
    # The replicas saw different rows; their moving averages have one value afterwards.
    assert {tuple(np.asarray(c).tolist()) for c in moving._copies} == {tuple(moving.numpy().tolist())}


def test_the_moving_average_is_that_of_the_replicas_means(two):
    with two.scope():
        norm = tf.keras.layers.BatchNormalization(momentum=0.5)
        norm.build((None, 1))
    parts = two.experimental_distribute_values_from_function(
        lambda c: tf.constant([[1.0], [3.0]]) + 4.0 * c.replica_id_in_sync_group
    )
    for call in (two.run, tf.function(two.run)):
        norm.moving_mean.assign([0.0])
        call(lambda x: norm(x, training=True), args=(parts,))
        assert np.asarray(norm.moving_mean).tolist() == [2.0]  # half of the mean of 2 and 6


@pytest.mark.parametrize("synchronized", [False, True])
def test_statistics_of_a_part_or_of_the_batch(two, synchronized):
    with two.scope():
        norm = tf.keras.layers.BatchNormalization(synchronized=synchronized)
        norm.build((None, 1))
    parts = two.experimental_distribute_values_from_function(
        lambda c: tf.constant([[1.0], [3.0]]) + 4.0 * c.replica_id_in_sync_group
    )
    for call in (two.run, tf.function(two.run)):
        out = two.gather(call(lambda x: norm(x, training=True), args=(parts,)), axis=0).numpy()[:, 0]
        rows = np.array([1.0, 3.0, 5.0, 7.0]) if synchronized else np.array([1.0, 3.0, 1.0, 3.0])
        assert np.allclose(out, (rows - rows.mean()) / np.sqrt(rows.var() + norm.epsilon), atol=1e-5)


@pytest.mark.parametrize(
    "make",
    [
        lambda o: o.LossScaleOptimizer(o.SGD(0.1)),
        lambda o: o.SGD(0.1, gradient_accumulation_steps=2),
        lambda o: o.Adam(0.01, loss_scale_factor=4.0),
        lambda o: o.Adagrad(o.schedules.ExponentialDecay(0.1, 2, 0.5)),
    ],
    ids=["loss scale", "accumulation", "factor", "schedule"],
)
def test_optimizers(two, make):
    x, y = data()
    many, alone = (m for m in pair(two))
    for model in (many, alone):
        compiled(model, make(tf.keras.optimizers))
    histories = [m.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0) for m in (many, alone)]
    assert np.allclose(*map(losses, histories), atol=1e-5)


# ---- custom loops ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("traced", [True, False])
@pytest.mark.parametrize("library", ["keras", "tf"])
def test_steps_of_optimizers_in_replicas(two, traced, library):
    optimizers = tf.keras.optimizers if library == "keras" else tf.optimizers
    x, y = data()
    with two.scope():
        model, optimizer = dense(), optimizers.Adam(0.01)
        loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
    model.build((None, 6))
    alone, own = dense(), optimizers.Adam(0.01)
    alone.build((None, 6))
    alone.set_weights(model.get_weights())

    def step(x, y):
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = loss_of(y, logits)  # Keras divides it by the number of replicas
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
        accuracy.update_state(y, logits)
        return loss

    def whole(x, y):
        return two.reduce("SUM", two.run(step, args=(x, y)), axis=None)

    run = tf.function(whole) if traced else whole
    ds = tf.data.Dataset.from_tensor_slices((x, y)).batch(16)
    got, want, right = [], [], []
    for a, b in two.experimental_distribute_dataset(ds):
        got.append(run(a, b).numpy())
    for a, b in ds:
        with tf.GradientTape() as tape:
            logits = alone(a, training=True)
            loss = loss_of(b, logits)
        own.apply_gradients(
            zip(tape.gradient(loss, alone.trainable_variables), alone.trainable_variables, strict=True)
        )
        want.append(loss.numpy())
        right += list(np.argmax(logits, -1) == b.numpy())
    assert np.allclose(got, want, atol=1e-5)
    assert np.allclose(model.get_weights()[0], alone.get_weights()[0], atol=1e-5)
    assert float(np.asarray(accuracy.result())) == pytest.approx(np.mean(right))
    assert int(np.asarray(optimizer.iterations)) == 3
    slots = [v for v in optimizer.variables if np.ndim(v) == 2]
    assert slots and all(two.extended.variable_created_in_scope(getattr(v, "_value", v)) for v in slots)


@pytest.mark.parametrize("traced", [True, False])
def test_layers_that_are_built_in_replicas(two, traced):
    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.layer, self.norm = tf.keras.layers.Dense(3), tf.keras.layers.BatchNormalization()

        def call(self, x, training=None):
            return self.norm(self.layer(x), training=training)

    with two.scope():
        model, optimizer = Model(), tf.keras.optimizers.Adam(0.1)

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - 1.0) ** 2) / 2.0
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
        return loss

    def whole(x):
        return two.reduce("SUM", two.run(step, args=(x,)), axis=None)

    run = tf.function(whole) if traced else whole
    (x,) = list(two.experimental_distribute_dataset(tf.data.Dataset.from_tensors(data(8)[0])))
    first, *_, last = [run(x).numpy() for _ in range(20)]
    assert last < first and len(model.trainable_variables) == 4 and len(model.weights) == 6
    assert all(two.extended.variable_created_in_scope(v._value) for v in model.weights)


def test_gradients_that_are_sums_already(two):
    with two.scope():
        v = tf.Variable(1.0)
        optimizer = tf.keras.optimizers.SGD(0.5)

    def step():
        g = context().all_reduce("SUM", tf.constant(1.0))
        optimizer.apply_gradients([(g, v)], skip_gradients_aggregation=True)

    two.run(step)
    assert v.numpy() == 0.0
    two.run(lambda: optimizer.apply_gradients([(tf.constant(1.0), v)]))
    assert v.numpy() == -1.0
    with pytest.raises(ValueError, match="No gradients provided"):
        two.run(lambda: optimizer.apply_gradients([(None, v)]))


def test_sparse_gradients(two):
    with two.scope():
        table = tf.keras.layers.Embedding(5, 2, embeddings_initializer="zeros")
        table.build((None,))
        optimizer = tf.keras.optimizers.SGD(1.0)

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(table(tf.stack([context().replica_id_in_sync_group, 4])))
        optimizer.apply_gradients(
            zip(tape.gradient(loss, table.trainable_weights), table.trainable_weights, strict=True)
        )

    for call in (lambda: two.run(step), tf.function(lambda: two.run(step))):
        table.set_weights([np.zeros((5, 2), "f")])
        call()
        assert table.get_weights()[0][:, 0].tolist() == [-1.0, -1.0, 0.0, 0.0, -2.0]


# ---- files ------------------------------------------------------------------------------------------------------


def test_saving_and_callbacks(two, tmp_path):
    x, y = data()
    with two.scope():
        model = compiled(dense())
    keep = tf.keras.callbacks.ModelCheckpoint(str(tmp_path / "best.keras"), monitor="loss")
    model.fit(x, y, batch_size=16, epochs=2, verbose=0, callbacks=[keep])
    model.save(tmp_path / "m.keras")
    loaded = tf.keras.models.load_model(tmp_path / "m.keras")  # without a strategy
    assert np.allclose(loaded.predict(x, verbose=0), model.predict(x, verbose=0), atol=1e-6)
    with two.scope():
        again = tf.keras.models.load_model(tmp_path / "best.keras")
    assert again.distribute_strategy is two
    histories = [m.fit(x, y, batch_size=16, shuffle=False, verbose=0) for m in (again, model)]
    assert np.allclose(*map(losses, histories), atol=1e-5)  # state of the optimizer included


def test_backup_and_restore(two, tmp_path):
    x, y = data()

    class Stop(tf.keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 2:
                raise InterruptedError

    def fitted(*callbacks):
        tf.keras.utils.set_random_seed(0)
        with two.scope():
            model = compiled(dense())
        model.build((None, 6))
        return model.fit(x, y, batch_size=16, epochs=4, shuffle=False, verbose=0, callbacks=list(callbacks))

    want = losses(fitted())
    backup = tf.keras.callbacks.BackupAndRestore(str(tmp_path / "backup"))
    with pytest.raises(InterruptedError):
        fitted(backup, Stop())
    assert np.allclose(
        losses(fitted(tf.keras.callbacks.BackupAndRestore(str(tmp_path / "backup")))), want[2:], atol=1e-5
    )
