"""Variables of strings in checkpoints and stored modules."""

import numpy as np
import pytest

import gradtape as tf
from gradtape.train import safetensors


def test_checkpoints(tmp_path):
    values = {
        "a": ["x", "\0y", ""],
        "b": "scalar",
        "c": [["é"]],
        "d": tf.zeros([0, 2], tf.string),
        "n": [1.0],
    }
    variables = {k: tf.Variable(v) for k, v in values.items()}
    path = tf.train.Checkpoint(**variables).save(tmp_path / "c")
    fresh = {k: tf.Variable(tf.zeros_like(v)) for k, v in variables.items()}
    tf.train.Checkpoint(**fresh).restore(path).assert_consumed()
    for k, v in variables.items():
        assert fresh[k].shape == v.shape and np.array_equal(fresh[k].numpy(), v.numpy()), k
    assert dict(tf.train.list_variables(path))["a/.ATTRIBUTES/VARIABLE_VALUE"] == [3]


class Joins(tf.Module):
    def __init__(self):
        super().__init__()
        self.v = tf.Variable(["end"])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, x):
        return tf.concat([x, self.v], 0)


def test_modules(tmp_path):
    tf.saved_model.save(Joins(), tmp_path / "m")
    loaded = tf.saved_model.load(tmp_path / "m")
    assert loaded(tf.constant(["a"])).numpy().tolist() == [b"a", b"end"]


def test_wrong_lengths():
    good = bytes(memoryview(safetensors._packed(tf.constant(["ab", "c"]))))
    assert safetensors._unpacked(good, (2,)).numpy().tolist() == [b"ab", b"c"]
    for wrong in (good[:-1], good + b"x", good[:3], (1 << 62).to_bytes(8, "little") + good[8:]):
        with pytest.raises(ValueError):
            safetensors._unpacked(wrong, (2,))
