"""tf.saved_model of Keras models, on their own and inside modules; the signatures of loaded objects."""

import json
import zipfile

import numpy as np
import pytest

import gradtape as tf
import keras_gradtape  # noqa: F401  before Keras

keras = pytest.importorskip("keras")
from keras_gradtape import saved  # noqa: E402

X = np.float32([[1, 2, 3], [4, 5, 6]])


class Twice(keras.layers.Layer):
    def call(self, x):
        return x * 2.0


class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.inner = keras.layers.Dense(2)

    def call(self, x):
        return self.inner(x)

    def get_config(self):
        return {}


class Holder(tf.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.scale = tf.Variable(3.0)

    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def predict(self, x):
        return self.model(x) * self.scale


def sequential():
    return keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, "tanh"), Twice()])


def functional():
    x = keras.Input((3,))
    return keras.Model(x, keras.layers.Dense(2)(x))


@pytest.mark.parametrize("make", [sequential, functional, Own])
def test_models(tmp_path, make):
    model = make()
    wanted = np.asarray(model(X))
    tf.saved_model.save(model, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    assert list(loaded.signatures) == ["serving_default"]
    serve = loaded.signatures["serving_default"]
    np.testing.assert_array_equal(serve(inputs=tf.constant(X))["output_0"], wanted)
    np.testing.assert_array_equal(loaded(X), wanted)
    args, named = serve.structured_input_signature
    assert args == () and named["inputs"].dtype == tf.float32 and named["inputs"].shape[1] == 3
    assert serve.structured_outputs["output_0"].shape[1] == 2


def test_a_model_inside_a_module(tmp_path):
    module = Holder(sequential())
    wanted = module.predict(X).numpy()
    tf.saved_model.save(module, tmp_path)
    module.scale.assign(0.0)
    loaded = tf.saved_model.load(tmp_path)
    np.testing.assert_array_equal(loaded.predict(X), wanted)
    np.testing.assert_array_equal(loaded.signatures["serving_default"](x=tf.constant(X))["output_0"], wanted)


def test_models_that_cannot_be_saved_or_loaded(tmp_path):
    with pytest.raises(ValueError, match="has no inputs yet"):
        tf.saved_model.save(keras.Sequential([keras.layers.Dense(2)]), tmp_path / "a")
    tf.saved_model.save(sequential(), tmp_path / "b")
    (archive,) = (tmp_path / "b" / "assets").iterdir()
    data = bytearray(archive.read_bytes())
    data[len(data) // 2] ^= 1
    archive.write_bytes(bytes(data))
    with pytest.raises(tf.errors.DataLossError, match="checksum"):
        tf.saved_model.load(tmp_path / "b")


def test_an_archive_that_names_other_classes_is_not_loaded(tmp_path):
    """A changed configuration with a matching checksum: Keras would import the module that it names."""
    tf.saved_model.save(sequential(), tmp_path)
    (archive,) = (tmp_path / "assets").iterdir()
    with zipfile.ZipFile(archive) as file:
        parts = {n: file.read(n) for n in file.namelist()}
    config = json.loads(parts["config.json"])
    config["config"]["layers"][2].update(
        module="antigravity", class_name="Layer", registered_name="Package>Layer"
    )
    parts["config.json"] = json.dumps(config).encode()
    with zipfile.ZipFile(archive, "w") as file:
        for name, part in parts.items():
            file.writestr(name, part)
    with pytest.raises(ImportError, match="no layer or model that this program has defined"):
        saved.load(str(archive), saved._sum(str(archive)))
