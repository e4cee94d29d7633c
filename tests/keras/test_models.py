"""Models of Keras on gradtape from end to end: the three ways to write them, saving, copies, precision."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

import gradtape as tf
import keras_gradtape  # noqa: F401  before Keras

keras = pytest.importorskip("keras")
layers = keras.layers
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
_rng = np.random.default_rng(11)
X = _rng.normal(size=(32, 6)).astype("float32")
Y = (X[:, :1] - X[:, 1:2] ** 2).astype("float32")


@keras.saving.register_keras_serializable("tests.keras.test_models")
class Scaled(layers.Layer):
    """A dense layer with a scale, and a part of its configuration."""

    def __init__(self, units, scale=2.0, **kwargs):
        super().__init__(**kwargs)
        self.units, self.scale = units, scale

    def build(self, shape):
        self.kernel = self.add_weight(shape=(shape[-1], self.units), name="kernel")

    def call(self, x):
        return keras.ops.matmul(x, self.kernel) * self.scale

    def get_config(self):
        return {**super().get_config(), "units": self.units, "scale": self.scale}


@keras.saving.register_keras_serializable("tests.keras.test_models")
class Written(keras.Model):
    """A model as a class."""

    def __init__(self, units=5, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.hidden, self.last = layers.Dense(units, "tanh"), layers.Dense(1)
        self.normal, self.drop = layers.BatchNormalization(), layers.Dropout(0.2)

    def call(self, x, training=False):
        return self.last(self.drop(self.normal(self.hidden(x), training=training), training=training))

    def get_config(self):
        return {**super().get_config(), "units": self.units}


def _sequential():
    return keras.Sequential([layers.Input((6,)), layers.Dense(5, "relu"), Scaled(4), layers.Dense(1)])


def _functional():
    x = layers.Input((6,), name="x")
    shared = layers.Dense(4, "tanh")
    y = layers.concatenate([shared(x), shared(x * 2.0 + 1.0)])
    y = layers.LayerNormalization()(y) + layers.Dense(8, use_bias=False)(x)
    return keras.Model(x, layers.Dense(1, name="out")(keras.ops.relu(y)))


KINDS = {"sequential": _sequential, "functional": _functional, "class": Written}


@pytest.fixture(params=KINDS)
def model(request):
    keras.utils.set_random_seed(7)
    made = KINDS[request.param]()
    made.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    made.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    return made


def _same(a, b):
    np.testing.assert_array_equal(a.predict(X, verbose=0), b.predict(X, verbose=0))


# ---- saving -------------------------------------------------------------------------------------


def test_a_loaded_model_is_the_same_and_trains_on_as_the_first(model, tmp_path):
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    _same(model, loaded)
    assert loaded.evaluate(X, Y, verbose=0) == model.evaluate(X, Y, verbose=0)
    if isinstance(model, Written):  # its dropout would draw other numbers
        return
    for m in (model, loaded):
        m.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    assert int(loaded.optimizer.iterations) == 16
    _same(model, loaded)


def test_the_old_format(tmp_path):
    """An .h5 file cannot hold ops, only layers, and no losses given by a short name."""
    x = layers.Input((6,))
    made = keras.Model(x, layers.Dense(1)(layers.add([layers.Dense(4, "tanh")(x), Scaled(4)(x)])))
    made.compile(keras.optimizers.RMSprop(0.01), keras.losses.MeanSquaredError())
    made.fit(X, Y, batch_size=8, shuffle=False, verbose=0)
    made.save(tmp_path / "m.h5")
    loaded = keras.models.load_model(tmp_path / "m.h5")
    _same(made, loaded)
    for m in (made, loaded):
        m.fit(X, Y, batch_size=8, shuffle=False, verbose=0)
    assert int(loaded.optimizer.iterations) == 8
    _same(made, loaded)


def test_weights_alone(model, tmp_path):
    path = tmp_path / "some.weights.h5"
    model.save_weights(path)
    expected = model.predict(X, verbose=0)
    for w in model.weights:
        w.assign(keras.ops.zeros_like(w))
    model.load_weights(path)
    np.testing.assert_array_equal(model.predict(X, verbose=0), expected)


def test_weights_of_another_shape_are_refused_and_change_nothing(tmp_path):
    wide, narrow = (keras.Sequential([layers.Input((6,)), layers.Dense(n), layers.Dense(n)]) for n in (4, 3))
    wide.save_weights(tmp_path / "wide.weights.h5")
    before = [w.numpy() for w in narrow.weights]
    with pytest.raises(ValueError, match="shape|Shape"):
        narrow.load_weights(tmp_path / "wide.weights.h5")
    for w, b in zip(narrow.weights, before, strict=True):
        np.testing.assert_array_equal(w.numpy(), b)


@pytest.mark.parametrize("kept", [0, 100, 3000])
def test_a_file_that_was_cut_is_refused(kept, tmp_path):
    path = tmp_path / "model.keras"
    _sequential().save(path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises((ValueError, OSError, zipfile.BadZipFile)):
        keras.models.load_model(path)


def test_classes_of_ones_own(tmp_path):
    class Twice(layers.Layer):
        def call(self, x):
            return x * 2

    def cubed(x):
        return x**3

    def distance(y, p):
        return keras.ops.mean((y - p) ** 2)

    made = keras.Sequential([layers.Input((6,)), Twice(), layers.Dense(1, activation=cubed)])
    made.compile("sgd", distance, metrics=[distance])
    made.fit(X, Y, verbose=0)
    made.save(tmp_path / "m.keras")
    with pytest.raises(TypeError, match="Twice"):
        keras.models.load_model(tmp_path / "m.keras")
    named = {"Twice": Twice, "cubed": cubed, "distance": distance}
    loaded = keras.models.load_model(tmp_path / "m.keras", custom_objects=named)
    _same(made, loaded)
    with keras.saving.custom_object_scope(named):
        _same(made, keras.models.load_model(tmp_path / "m.keras"))


# ---- copies and text ----------------------------------------------------------------------------


def test_clones_have_weights_of_their_own(model):
    if isinstance(model, Written):
        clone = Written.from_config(model.get_config())
        clone.build(model.input_shape if hasattr(model, "input_shape") else X.shape)
        clone(X)
    else:
        clone = keras.models.clone_model(model)
    assert [tuple(w.shape) for w in clone.weights] == [tuple(w.shape) for w in model.weights]
    clone.set_weights(model.get_weights())
    _same(model, clone)
    clone.weights[0].assign(keras.ops.zeros_like(clone.weights[0]))
    assert np.abs(model.weights[0].numpy()).max() > 0


def test_summary_and_json(model):
    lines = []
    model.summary(print_fn=lambda line, **_: lines.append(line))
    words = "\n".join(lines)
    assert f"{sum(w.numpy().size for w in model.trainable_weights):,}" in words
    assert "dense" in words
    if not isinstance(model, Written):
        again = keras.models.model_from_json(model.to_json())
        assert json.loads(again.to_json())["config"]["name"] == model.name


def test_shapes_are_found_without_computing():
    x = layers.Input((None, None, 3))
    y = layers.Conv2D(4, 3, 2, "same")(x)
    assert y.shape == (None, None, None, 4)
    assert layers.GlobalAveragePooling2D()(y).shape == (None, 4)
    assert keras.ops.transpose(layers.Input((3, None)), (2, 0, 1)).shape == (None, None, 3)
    # Terabytes if it were computed.
    assert keras.ops.matmul(layers.Input((10**6, 10**6)), layers.Input((10**6, 10**5))).shape == (
        None,
        10**6,
        10**5,
    )


# ---- precision ----------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float64", "float16", "bfloat16"])
def test_policies(policy, tmp_path):
    keras.utils.set_random_seed(3)
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        made = keras.Sequential([layers.Input((6,)), layers.Dense(8, "tanh"), layers.Dense(1)])
        made.compile(keras.optimizers.SGD(0.05), "mse")
    finally:
        keras.config.set_dtype_policy(before)
    named = keras.DTypePolicy(policy)
    assert {w.dtype for w in made.weights} == {named.variable_dtype}
    assert keras.backend.standardize_dtype(made(X).dtype) == named.compute_dtype
    scaled = type(made.optimizer) is keras.optimizers.LossScaleOptimizer
    assert scaled == (policy == "mixed_float16")
    losses = made.fit(X, Y, epochs=6, verbose=0).history["loss"]
    assert np.all(np.isfinite(losses))
    assert losses[-1] < losses[0]
    made.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    assert loaded.layers[0].dtype_policy.name == policy
    _same(made, loaded)


def test_integers_of_eight_bits():
    made = keras.Sequential([layers.Input((6,)), layers.Dense(64), layers.Dense(3)])
    expected = made.predict(X, verbose=0)
    made.quantize("int8")
    assert {w.dtype for w in made.weights if "kernel" in w.path and "scale" not in w.path} == {"int8"}
    assert np.mean((made.predict(X, verbose=0) - expected) ** 2) < 1e-3


@pytest.mark.parametrize("make", [lambda: layers.Dense(16), lambda: layers.EinsumDense("ab,bc->ac", 16)])
def test_training_in_floats_of_eight_bits(make):
    """Keras' own test, which runs on three named backends only: scales follow the largest numbers seen."""
    keras.utils.set_random_seed(1)
    layer = make()
    layer.build((None, 12))
    layer.quantize("float8")
    optimizer = keras.optimizers.AdamW(0.1)
    optimizer.build(layer.trainable_variables)
    seen = np.zeros((3, 1024))
    for step in range(4):
        x, g = _rng.normal(size=(5, 12)).astype("float32"), _rng.normal(size=(5, 16)).astype("float32")
        seen = np.roll(seen, -1, 1)
        seen[:, 0] = [np.abs(x).max(), np.abs(layer.kernel.numpy()).max(), np.abs(g).max()]
        with tf.GradientTape() as tape:
            loss = keras.ops.sum(layer(x, training=True) * g)
        gradients = tape.gradient(loss, layer.trainable_variables)
        optimizer.apply(gradients, layer.trainable_variables)
        histories = layer.inputs_amax_history, layer.kernel_amax_history, layer.outputs_grad_amax_history
        for history, largest in zip(histories, seen, strict=True):
            np.testing.assert_allclose(history.numpy()[0], largest[0], rtol=1e-6, err_msg=f"step {step}")
    assert np.corrcoef(gradients[0].numpy().ravel(), (x.T @ g).ravel())[0, 1] > 0.99
    assert float(layer.inputs_scale.value) != 1
