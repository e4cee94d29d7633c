"""`model.export`: StableHLO for JAX, at all sizes of a batch."""

import os
import subprocess
import sys

import numpy as np
import pytest

import gradtape as tf
from gradtape._src import engines

pytest.importorskip("keras_gradtape", reason="Keras is not installed")
pytest.importorskip("jax", reason="models are exported by JAX, which is not installed")
keras = tf.keras
layers = keras.layers
X = np.random.default_rng(0).normal(size=(5, 12, 12, 1)).astype("f")


def _model():
    keras.utils.set_random_seed(1)
    return keras.Sequential([
        layers.Input((12, 12, 1)), layers.Conv2D(4, 3, strides=2, activation="relu"), layers.BatchNormalization(),
        layers.MaxPooling2D(), layers.Flatten(), layers.Dropout(0.5), layers.Dense(3, activation="softmax"),
    ])  # fmt: skip


ALONE = """
import sys
sys.modules["gradtape"] = sys.modules["keras"] = None
import numpy as np
from load import load
f = load(sys.path[0])
print(np.asarray(f(np.load(sys.argv[1]))).tolist())
"""


def test_a_model_runs_without_keras_and_gradtape(tmp_path, capsys):
    model = _model()
    model.export(tmp_path / "model")
    assert "StableHLO" in capsys.readouterr().out
    expected = model.predict(X, verbose=0)
    np.testing.assert_allclose(tf.saved_model.load(tmp_path / "model").serve(X).numpy(), expected, atol=1e-6)
    folder = tmp_path / "model" / "stablehlo" / "serve"
    np.save(tmp_path / "x.npy", X)
    (folder / "main.py").write_text(ALONE)
    done = subprocess.run(
        [sys.executable, folder / "main.py", tmp_path / "x.npy"], capture_output=True, text=True, timeout=120,
        cwd=tmp_path, env={"PATH": os.environ.get("PATH", ""), "JAX_PLATFORMS": "cpu", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(eval(done.stdout), expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["two inputs", "attention", "text", "images"])
def test_models_with_unknown_sizes(kind, tmp_path):
    keras.utils.set_random_seed(2)
    rng = np.random.default_rng(1)
    if kind == "two inputs":
        a, b = layers.Input((4,), name="a"), layers.Input((2,), name="b")
        model = keras.Model([a, b], {"sum": layers.Dense(3)(layers.Concatenate()([a, b])), "first": a})
        x = [rng.normal(size=(3, 4)).astype("f"), rng.normal(size=(3, 2)).astype("f")]
    elif kind == "attention":
        a = layers.Input((None, 8))
        model = keras.Model(a, layers.LayerNormalization()(a + layers.MultiHeadAttention(2, 4)(a, a)))
        x = rng.normal(size=(2, 7, 8)).astype("f")
    elif kind == "text":
        model = keras.Sequential([
            layers.Input((None,), dtype="int32"), layers.Embedding(10, 4), layers.GlobalAveragePooling1D(), layers.Dense(2)
        ])  # fmt: skip
        x = rng.integers(0, 10, (4, 6)).astype("int32")
    else:
        model = keras.Sequential([
            layers.Input((None, None, 3)), layers.Conv2D(4, 3, padding="same"), layers.MaxPooling2D(2), layers.Conv2D(4, 3),
            layers.GlobalAveragePooling2D(), layers.Dense(2),
        ])  # fmt: skip
        x = rng.normal(size=(2, 21, 18, 3)).astype("f")
    model.export(tmp_path / "model", verbose=False, platforms=["cpu"])
    loaded, expected = tf.saved_model.load(tmp_path / "model"), model.predict(x, verbose=0)
    for got, want in zip(tf.nest.flatten(loaded.serve(x)), tf.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(got.numpy(), want, atol=1e-5)


def test_a_recurrent_model_has_a_length(tmp_path):
    model = keras.Sequential([layers.Input((None, 5), name="x"), layers.LSTM(6)])
    with pytest.raises(tf.errors.UnimplementedError, match="with numbers for such sizes"):
        model.export(tmp_path / "model", verbose=False)
    signature = [keras.InputSpec(shape=(None, 9, 5), dtype="float32")]
    model.export(tmp_path / "model", verbose=False, input_signature=signature, platforms=["cpu"])
    x = np.random.default_rng(1).normal(size=(3, 9, 5)).astype("f")
    found = tf.saved_model.load(tmp_path / "model").serve(x)
    np.testing.assert_allclose(found.numpy(), model.predict(x, verbose=0), atol=1e-5)


def test_archives_have_several_endpoints(tmp_path):
    model = _model()
    archive = keras.export.ExportArchive()
    archive.track(model)
    spec = [keras.InputSpec(shape=(None, 12, 12, 1), dtype="float32")]
    archive.add_endpoint(
        "logits", lambda x: model.layers[-1](model(x)[:, :1] * tf.ones([1, 16])), spec, platforms=["cpu"]
    )
    archive.add_endpoint("serve", lambda x: model(x, training=False), spec, platforms=["cpu"])
    with pytest.raises(ValueError, match="Endpoint name 'serve' is already taken"):
        archive.add_endpoint("serve", model.call, spec)
    with pytest.raises(ValueError, match="needs an `input_signature`"):
        archive.add_endpoint("other", model.call)
    archive.write_out(tmp_path / "model", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "model")
    assert sorted(loaded.signatures) == ["logits", "serve"]
    np.testing.assert_allclose(loaded.serve(X).numpy(), model.predict(X, verbose=0), atol=1e-6)
    with pytest.raises(tf.errors.AlreadyExistsError):
        archive.write_out(tmp_path / "model")


def test_saved_model_save_takes_a_model(tmp_path):
    model = _model()
    tf.saved_model.save(model, tmp_path / "model", stablehlo={"platforms": ["cpu"]})
    assert tf.saved_model.contains_saved_model(tmp_path / "model")
    assert tf.saved_model.load(tmp_path / "model").serve(X).shape == (5, 3)


def test_models_that_cannot_be_exported(tmp_path, monkeypatch):
    class Unbuilt(keras.Model):
        pass

    with pytest.raises(ValueError, match="has not yet been built"):
        Unbuilt().export(tmp_path / "model")
    with pytest.raises(ValueError, match="No endpoints have been set yet"):
        keras.export.ExportArchive().write_out(tmp_path / "model")
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'model.export needs JAX.*pip install "gradtape\[xla\]"'):
        _model().export(tmp_path / "model")
    assert not (tmp_path / "model").exists()
