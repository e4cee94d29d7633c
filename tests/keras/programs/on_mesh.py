"""What `keras.distribution` must do on eight devices; run by test_distribution.py in a process that has them."""

import numpy as np
import pytest

import gradtape as tf

keras = tf.keras
ROWS = 64


def _data(rows=ROWS):
    rng = np.random.default_rng(0)
    return rng.normal(size=(rows, 6, 6, 1)).astype("f"), rng.normal(size=(rows, 8)).astype("f")


def _model(**options):
    keras.utils.set_random_seed(3)
    layers = keras.layers
    model = keras.Sequential([
        layers.Input((6, 6, 1)), layers.Conv2D(4, 3, activation="relu"), layers.BatchNormalization(), layers.Flatten(),
        layers.Dense(16, activation="tanh", name="hidden"), layers.Dropout(0.3), layers.Dense(8, name="last"),
    ])  # fmt: skip
    model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"], **options)
    return model


def _trained(model, epochs=3, rows=ROWS):
    x, y = _data(rows)
    history = model.fit(x, y, batch_size=32, epochs=epochs, verbose=0).history
    return np.array([*history["loss"], *history["mae"], *model.evaluate(x, y, verbose=0)])


def _spec(variable):
    from gradtape._src.engines.xla.mesh import sharding_of

    sharding = sharding_of(variable._value)
    return None if sharding is None else tuple(sharding.spec)


def _model_parallel(shape=(4, 2)):
    mesh = keras.distribution.DeviceMesh(shape, ["batch", "model"])
    layouts = keras.distribution.LayoutMap(mesh)
    layouts[".*(hidden|last).*kernel"] = (None, "model")
    layouts[".*(hidden|last).*bias"] = ("model",)
    return keras.distribution.ModelParallel(layout_map=layouts, batch_dim_name="batch")


def check_losses_are_those_of_one_device():
    assert len(keras.distribution.list_devices()) == keras.distribution.get_device_count("cpu") == 8
    alone = _trained(_model())
    for distribution in (_model_parallel(), _model_parallel((1, 8))):
        with distribution.scope():
            np.testing.assert_allclose(_trained(_model()), alone, atol=1e-5)


def check_a_batch_may_have_any_number_of_rows():
    alone = _trained(_model(), rows=45)  # 32, and 13 that cannot be divided by eight
    with keras.distribution.DataParallel().scope():
        np.testing.assert_allclose(_trained(_model(), rows=45), alone, atol=1e-5)


def check_variables_are_cut_as_their_layouts_say_and_stay_so():
    with _model_parallel().scope():
        model = _model()
        _trained(model, 1)
        by_name = {v.path.partition("/")[2]: v for v in (*model.weights, *model.optimizer.variables)}
        kernels = [n for n in by_name if "kernel" in n and ("hidden" in n or "last" in n)]
        assert len(kernels) == 6  # two weights, and two moments each
        assert {_spec(by_name[n]) for n in kernels} == {(None, "model")}
        assert {_spec(v) for n, v in by_name.items() if "bias" in n and "hidden" in n} == {("model",)}
        assert {_spec(v) for n, v in by_name.items() if "conv2d" in n or "batch" in n} == {()}
    kernel = by_name["hidden/kernel"]
    new = np.random.default_rng(1).normal(size=kernel.shape).astype("f")
    kernel.assign(new)  # outside of the scope, as weights are loaded
    assert _spec(kernel) == (None, "model") and (np.asarray(kernel) == new).all()


def check_a_layer_lays_out_its_results():
    distribution = _model_parallel()
    distribution._layout_map[".*hidden/output"] = ("batch", None)
    distribution._layout_map[".*last/output"] = (None, "model")
    from gradtape._src.engines.xla.mesh import sharding_of

    x, _ = _data()
    with distribution.scope():
        model = _model()
        got = model.predict_function or model.make_predict_function()
        out = got([(x[:32],)])
        assert tuple(sharding_of(out).spec) == (None, "model")
    alone = _model()
    np.testing.assert_allclose(out.numpy(), alone.predict(x[:32], verbose=0), atol=1e-5)


def check_single_batches_predictions_and_own_steps():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(8)

        def call(self, x):
            return self.dense(keras.ops.reshape(x, (-1, 36)))

        def train_step(self, data):
            x, y, *_ = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
            self.optimizer.apply(tape.gradient(loss, self.trainable_weights), self.trainable_weights)
            return {"loss": loss}

    def run():
        keras.utils.set_random_seed(5)
        model = Own()
        model.compile("sgd", "mse")
        x, y = _data()
        losses = model.fit(x, y, batch_size=24, epochs=2, verbose=0).history["loss"]
        return np.array(
            [*losses, *model.predict(x, verbose=0).ravel()[:9], *np.ravel(model.train_on_batch(x, y))]
        )

    alone = run()
    with keras.distribution.DataParallel().scope():
        np.testing.assert_allclose(run(), alone, atol=1e-5)


def check_tables_and_recurrent_layers():
    rng = np.random.default_rng(2)
    x, y = rng.integers(0, 16, (16, 5)), rng.normal(size=(16, 4)).astype("f")

    def losses():
        keras.utils.set_random_seed(6)
        layers = keras.layers
        model = keras.Sequential([
            layers.Input((5,), dtype="int32"), layers.Embedding(16, 8, name="table"), layers.LSTM(4, name="memory")
        ])  # fmt: skip
        model.compile("adam", "mse")
        return model, model.fit(
            tf.data.Dataset.from_tensor_slices((x, y)).batch(8), epochs=2, verbose=0
        ).history["loss"]

    _, alone = losses()
    mesh = keras.distribution.DeviceMesh((2, 4), ["batch", "model"])
    layouts = keras.distribution.LayoutMap(mesh)
    layouts[".*table/embeddings"] = ("model", None)
    layouts[".*memory/.*kernel"] = (None, "model")
    with keras.distribution.ModelParallel(layout_map=layouts, batch_dim_name="batch").scope():
        model, cut = losses()
    np.testing.assert_allclose(cut, alone, atol=1e-5)
    assert _spec(model.get_layer("table").embeddings) == ("model",)


def check_a_model_is_saved_and_goes_on_on_one_device(tmp_path):
    with _model_parallel().scope():
        model = _model()
        _trained(model, 1)
        model.save(tmp_path / "m.keras")
        on_mesh = _trained(model, 1)
    loaded = keras.saving.load_model(tmp_path / "m.keras")
    assert _spec(loaded.weights[0]) is None
    assert on_mesh.shape == _trained(loaded, 1).shape
    for a, b in zip(model.weights, loaded.weights, strict=True):
        assert a.shape == b.shape
    x, y = _data()
    np.testing.assert_allclose(model.predict(x, verbose=0).shape, (ROWS, 8))  # after the scope: on one device


def check_steps_in_one_execution_and_eager_steps():
    alone = _trained(_model(), 1)
    with keras.distribution.DataParallel().scope():
        np.testing.assert_allclose(_trained(_model(steps_per_execution=2), 1), alone, atol=1e-5)
        np.testing.assert_allclose(_trained(_model(run_eagerly=True), 1), alone, atol=1e-5)


def check_tensors_are_laid_out():
    from gradtape._src.engines.xla.mesh import sharding_of

    mesh = keras.distribution.DeviceMesh((4, 2), ["batch", "model"])
    layout = keras.distribution.TensorLayout(("batch", "model"), mesh)
    x = tf.reshape(tf.range(64.0), [8, 8])
    y = keras.distribution.distribute_tensor(x, layout)
    assert tuple(sharding_of(y).spec) == ("batch", "model")
    assert (y.numpy() == x.numpy()).all() and float(tf.reduce_sum(y)) == 2016.0
    with pytest.raises(ValueError, match="evenly divide"):
        keras.distribution.distribute_tensor(tf.ones([3, 8]), layout)


def check_wrong_meshes_are_refused():
    with pytest.raises(ValueError, match="Device not found: cpu:99.*list_devices"):
        _ = keras.distribution.DeviceMesh((1,), ["batch"], ["cpu:99"]).backend_mesh
    with pytest.raises(ValueError, match="Shape does not match the number of devices"):
        keras.distribution.DeviceMesh((3,), ["batch"])
    with pytest.raises(ValueError, match="has 2 jobs, but num_processes is 3"):
        keras.distribution.initialize("10.0.0.1:1234,10.0.0.2:2345", 3, 0)


def check_what_native_code_refuses_is_refused_on_a_mesh():
    keras.utils.set_random_seed(1)
    with keras.distribution.DataParallel().scope():
        model = keras.Sequential([keras.layers.Input((2,), dtype="int32"), keras.layers.Embedding(4, 2)])
        model.compile("sgd", "mse")
        before = np.array(model.weights[0])
        with pytest.raises(tf.errors.InvalidArgumentError):
            model.fit(np.full([8, 2], 7), np.zeros([8, 2, 2], "f"), verbose=0)
        assert (np.array(model.weights[0]) == before).all()
        assert np.isfinite(
            model.fit(np.full([8, 2], 3), np.zeros([8, 2, 2], "f"), verbose=0).history["loss"]
        ).all()
