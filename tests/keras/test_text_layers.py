"""Keras' layers of text on gradtape: in models, adapted, in pipelines, saved; and Keras' own tests of them."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gradtape as tf

if importlib.util.find_spec("keras") is None:
    pytest.skip("Keras is not installed", allow_module_level=True)
keras = tf.keras
TESTS = (
    Path(importlib.util.find_spec("keras").submodule_search_locations[0]) / "src" / "layers" / "preprocessing"
)
FILES = [
    "string_lookup", "integer_lookup", "index_lookup", "text_vectorization", "hashing", "category_encoding",
    "discretization", "hashed_crossing", "feature_space",
]  # fmt: skip
WORDS = np.array([["earth"], ["wind"], ["fire"], ["water"]])


def test_lookup_of_strings():
    layer = keras.layers.StringLookup(vocabulary=["earth", "wind"])
    assert layer(tf.constant([["wind", "x"], ["earth", ""]])).numpy().tolist() == [[2, 0], [1, 0]]
    back = keras.layers.StringLookup(vocabulary=["earth", "wind"], invert=True)
    assert back(tf.constant([2, 1, 0])).numpy().tolist() == [b"wind", b"earth", b"[UNK]"]
    hot = keras.layers.StringLookup(vocabulary=["earth", "wind"], output_mode="multi_hot")
    assert hot(tf.constant([["wind", "x"]])).numpy().tolist() == [[1, 0, 1]]


def test_a_model_with_text(tmp_path):
    lookup = keras.layers.StringLookup()
    lookup.adapt(WORDS)
    inputs = keras.Input((1,), dtype="string")
    x = keras.layers.Embedding(lookup.vocabulary_size(), 4)(lookup(inputs))
    model = keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Flatten()(x)))
    model.compile("sgd", "mse")
    data = tf.data.Dataset.from_tensor_slices((WORDS, np.ones([4, 1], np.float32))).batch(2)
    losses = model.fit(data, epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    before = model(tf.constant(WORDS)).numpy()
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(tf.constant(WORDS)).numpy(), before)


def test_sentences_as_numbers():
    layer = keras.layers.TextVectorization(output_sequence_length=4)
    layer.adapt(["the cat sat", "The dog sat."])
    assert layer.get_vocabulary() == ["", "[UNK]", "the", "sat", "dog", "cat"]
    assert layer(["the bird sat", "cat"]).numpy().tolist() == [[2, 1, 3, 0], [5, 0, 0, 0]]
    pipeline = tf.data.Dataset.from_tensor_slices(["the bird sat", "cat"]).batch(2).map(layer)
    assert next(iter(pipeline)).numpy().tolist() == [[2, 1, 3, 0], [5, 0, 0, 0]]


def test_functions_of_the_user_get_tensors():
    def standardize(text):
        return tf.strings.regex_replace(tf.strings.lower(text), "<br>", " ")

    layer = keras.layers.TextVectorization(
        standardize=standardize, output_mode="count", vocabulary=["a", "b"]
    )
    assert layer(["A<br>a b", "c"]).numpy().tolist() == [[0, 2, 1], [1, 0, 0]]


@pytest.mark.parametrize("inputs", [tf.constant(["a b", "c", "b"]), np.array(["a b", "c", "b"], object)])
def test_text_as_arguments_of_fit_and_predict(inputs):
    vectors = keras.layers.TextVectorization(output_mode="multi_hot", vocabulary=["a", "b", "c"])
    model = keras.Sequential([keras.Input((), dtype="string"), vectors, keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    assert (
        len(
            model.fit(inputs, tf.constant([1.0, 2.0, 3.0]), batch_size=2, epochs=2, verbose=0).history["loss"]
        )
        == 2
    )
    words = model(tf.constant(["a b", "c", "b"])).numpy()
    np.testing.assert_allclose(model.predict(inputs, batch_size=2, verbose=0), words, rtol=1e-6)


def test_ragged_and_sparse_inputs():
    rows = tf.ragged.constant([["omar", "x"], ["marlo"]])
    assert keras.layers.Hashing(num_bins=2)(rows).to_list() == [[0, 0], [1]]
    sparse = tf.SparseTensor([[0, 0], [1, 1]], tf.constant(["b", "q"]), [2, 2])
    lookup = keras.layers.StringLookup(vocabulary=["a", "b", "c"])
    assert lookup(sparse).values.numpy().tolist() == [2, 0]
    assert lookup(rows).to_list() == [[0, 0], [0]]
    assert keras.layers.TextVectorization(ragged=True, vocabulary=["a", "b"])(["a b", "b"]).to_list() == [
        [2, 3],
        [3],
    ]


def test_hashes():
    layer = keras.layers.Hashing(num_bins=3)
    assert layer([["A"], ["B"], ["C"], ["D"], ["E"]]).numpy().tolist() == [[1], [0], [1], [1], [2]]
    assert keras.layers.Hashing(3, salt=[133, 137])([["A"], ["B"], ["C"]]).numpy().tolist() == [[1], [2], [1]]


def test_integers():
    layer = keras.layers.IntegerLookup(vocabulary=[12, 36, 1138, 42])
    assert layer(np.array([[12, 1138, 42], [42, 1000, 36]])).numpy().tolist() == [[1, 3, 4], [4, 0, 2]]


def test_words_that_are_not_known_and_may_not_be():
    layer = keras.layers.StringLookup(vocabulary=["a"], num_oov_indices=0)
    assert layer(tf.constant(["a"])).numpy().tolist() == [0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="found OOV values"):
        layer(tf.constant(["a", "z"]))


def test_tests_of_keras(tmp_path):
    (tmp_path / "as_tensorflow.py").write_text("import sys, gradtape\nsys.modules['tensorflow'] = gradtape\n")
    root = Path(__file__).resolve().parents[2]
    paths = [str(tmp_path), *([str(root)] if (root / "gradtape" / "__init__.py").exists() else [])]
    found = [os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else []
    done = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "-p",
            "keras_gradtape.pytest_plugin", "-p", "as_tensorflow", *(str(TESTS / f"{f}_test.py") for f in FILES),
        ],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*found, *paths])},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    passed = int(
        done.stdout.rpartition("\n")[0].rpartition("\n")[2].split(" passed")[0].split()[-1].strip("=")
    )
    assert passed >= 110, done.stdout[-300:]
