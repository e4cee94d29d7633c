"""Files of models and weights that are damaged or do not fit: an error names them, and nothing is loaded in part."""

from __future__ import annotations

import json
import shutil
import zipfile

import numpy as np
import pytest

import gradtape as tf

keras = tf.keras
L = keras.layers
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
X = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")


def make(units: int = 4, results: int = 2):
    """A model that was trained a step, so that its optimizer has a state."""
    model = keras.Sequential(
        [
            keras.Input((3,)),
            L.Dense(units, name="first"),
            L.BatchNormalization(),
            L.Dense(results, name="last"),
        ]
    )
    model.compile("adam", "mse")
    model.fit(X, np.ones((8, results), "float32"), verbose=0)
    return model


def state(model) -> list[np.ndarray]:
    return [v.numpy() for v in (*model.variables, *model.optimizer.variables)]


def assert_unchanged(model, before) -> None:
    for old, new in zip(before, state(model), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model in every format: whole (.keras, .h5 of Keras 2) and weights (.weights.h5, other names)."""
    folder = tmp_path_factory.mktemp("saved")
    model = make()
    model.save(folder / "model.keras")
    model.save(folder / "old.h5")
    model.save_weights(folder / "model.weights.h5")
    model.save_weights(folder / "named.h5")
    return folder


FORMATS = ["model.keras", "old.h5", "model.weights.h5", "named.h5"]
WHOLE = FORMATS[:2]


def _half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _nothing(content: bytes) -> bytes:
    return b""


def _noise(content: bytes) -> bytes:
    return np.random.default_rng(1).bytes(len(content))


def _hole(content: bytes) -> bytes:
    third = len(content) // 3
    return content[:third] + bytes(third) + content[2 * third :]


DAMAGES = [_half, _nothing, _noise, _hole]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FORMATS)
def test_damaged_weights(saved, tmp_path, name, damage):
    path = tmp_path / name
    path.write_bytes(damage((saved / name).read_bytes()))
    model = make()
    before = state(model)
    with pytest.raises(OSError, match=f"load_weights: .*{name} was not loaded, and nothing was changed"):
        model.load_weights(path)
    assert_unchanged(model, before)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", WHOLE)
def test_damaged_models(saved, tmp_path, name, damage):
    path = tmp_path / name
    path.write_bytes(damage((saved / name).read_bytes()))
    with pytest.raises(OSError, match=f"load_model: .*{name} was not loaded"):
        keras.models.load_model(path)


@pytest.mark.parametrize("name", FORMATS)
def test_weights_of_another_shape(saved, name):
    """The first layers match and are loaded before the last one, which does not match."""
    model = make(results=5)
    before = state(model)
    with pytest.raises(ValueError, match=f"(?s)load_weights: .*{name} was not loaded.*last/kernel"):
        model.load_weights(saved / name)
    assert_unchanged(model, before)
    model.fit(X, np.ones((8, 5), "float32"), verbose=0)


def test_weights_of_other_layers(saved):
    model = keras.Sequential(
        [keras.Input((3,)), L.Dense(4, name="first"), L.LayerNormalization(), L.Dense(2)]
    )
    model.compile("sgd", "mse")
    before = state(model)
    with pytest.raises(ValueError, match="(?s)model.weights.h5 was not loaded.*layer_normalization"):
        model.load_weights(saved / "model.weights.h5")
    assert_unchanged(model, before)


def test_mismatches_are_skipped_on_request(saved):
    model, whole = make(results=5), keras.models.load_model(saved / "model.keras")
    model.load_weights(saved / "model.weights.h5", skip_mismatch=True)
    np.testing.assert_array_equal(model.layers[0].kernel, whole.layers[0].kernel)


@pytest.mark.parametrize("name", FORMATS)
def test_missing_files(tmp_path, name):
    model = make()
    before = state(model)
    with pytest.raises((OSError, ValueError), match=name):
        model.load_weights(tmp_path / name)
    assert_unchanged(model, before)
    if name in WHOLE:
        with pytest.raises((OSError, ValueError), match=name):
            keras.models.load_model(tmp_path / name)


def _changed(source, target, member: str, content) -> None:
    """A copy of an archive in which a member has different content, or is missing."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            if name != member:
                new.writestr(name, old.read(name))
            elif content is not None:
                new.writestr(name, content(old.read(name)))


def _other_units(config: bytes) -> bytes:
    found = json.loads(config)
    found["config"]["layers"][-1]["config"]["units"] = 7
    return json.dumps(found).encode()


@pytest.mark.parametrize(
    "member, content, words",
    [
        ("config.json", None, "config.json"),
        ("config.json", _half, "line 1"),
        ("config.json", _other_units, "last/kernel"),
        ("model.weights.h5", None, "model.weights.h5"),
        ("model.weights.h5", _half, "truncated"),
    ],
)
def test_archives_with_a_wrong_part(saved, tmp_path, member, content, words):
    path = tmp_path / "wrong.keras"
    _changed(saved / "model.keras", path, member, content)
    with pytest.raises((OSError, ValueError), match=f"(?s)load_model: .*wrong.keras was not loaded.*{words}"):
        keras.models.load_model(path)


def test_an_intact_file_loads_after_an_error(saved, tmp_path):
    broken = tmp_path / "model.weights.h5"
    broken.write_bytes(_half((saved / "model.weights.h5").read_bytes()))
    model, whole = make(), keras.models.load_model(saved / "model.keras")
    with pytest.raises(OSError):
        model.load_weights(broken)
    shutil.copy(saved / "model.weights.h5", broken)
    model.load_weights(broken)
    for one, other in zip(state(model), state(whole), strict=True):
        np.testing.assert_array_equal(one, other)


def test_set_weights_changes_all_or_none():
    model, weights = make(), make(results=5).get_weights()
    before = state(model)
    with pytest.raises(ValueError, match=r"weight shape \(4, 2\) .* \(4, 5\): .*last/kernel"):
        model.set_weights(weights)
    assert_unchanged(model, before)
    with pytest.raises(ValueError, match="weight list of length 1"):
        model.set_weights(weights[:1])
    assert_unchanged(model, before)
