"""Calls on sparse tensors, and what TensorFlow 2.21 gave for each (calls.json): values, types, shapes, or the error's class.

Results are written down by `described`. `gradients(f, x, ...)` are those of a weighted sum of f's result.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import gradtape as tf

CALLS = json.loads((Path(__file__).parent / "calls.json").read_text(encoding="utf-8"))
SP = tf.SparseTensor


def words():
    """The names that calls may use, created anew for each call."""
    return {
        "tf": tf,
        "np": np,
        "SP": SP,
        "A": SP([[0, 1], [1, 0], [1, 2]], [1.0, 2.0, 3.0], [2, 3]),
        "B": SP([[0, 1], [0, 2], [1, 1]], [10.0, 20.0, 30.0], [2, 3]),
        "I": SP([[0, 1], [1, 0], [1, 2]], [1, 2, 3], [2, 3]),
        "U": SP([[1, 2], [1, 0], [0, 1]], [3.0, 2.0, 1.0], [2, 3]),  # not in order
        "T3": SP([[0, 0, 0], [0, 1, 2], [1, 0, 1], [1, 1, 3]], [1.0, -2.0, 3.0, 4.0], [2, 2, 4]),
        "E": SP(np.zeros([0, 2], np.int64), np.zeros([0], np.float32), [2, 3]),
        "D": tf.reshape(tf.range(6.0), [2, 3]),
        "V": tf.compat.v1.SparseTensorValue([[0, 1], [1, 0]], [5.0, 6.0], [2, 3]),
        "wv": lambda sparse, values: SP(sparse.indices, values, sparse.dense_shape),
        "grad": gradients,
    }


def gradients(f, *xs):
    with tf.GradientTape() as tape:
        for x in xs:
            tape.watch(x)
        y = f(*xs)
        y = y.values if isinstance(y, SP) else y
        weights = tf.reshape(tf.cast(tf.range(1, tf.size(y) + 1), y.dtype), tf.shape(y))
        total = tf.reduce_sum(weights * y)
    return [None if g is None else tf.convert_to_tensor(g) for g in tape.gradient(total, xs)]


def described(x):
    if isinstance(x, SP):
        return ["S", *map(described, (x.indices, x.values, x.dense_shape)), str(x.shape)]
    if isinstance(x, tf.Tensor):
        array = np.asarray(x.numpy())
        if x.dtype == tf.bfloat16:
            array = array.astype(np.float32)
        if array.dtype == object:
            array = array.astype(str)
        if array.dtype.kind == "c":
            array = np.stack([array.real, array.imag], -1)
        return ["T", x.dtype.name, list(x.shape), array.tolist()]
    if isinstance(x, (list, tuple)):
        return [described(v) for v in x]
    if isinstance(x, dict):
        return {k: described(v) for k, v in x.items()}
    return x if x is None or isinstance(x, (int, float, str, bool)) else repr(x)


def same(x, y):
    if isinstance(x, float) or isinstance(y, float):
        return bool(np.isclose(x, y, rtol=1e-5, atol=1e-5, equal_nan=True))
    if isinstance(x, list):
        return isinstance(y, list) and len(x) == len(y) and all(map(same, x, y))
    if isinstance(x, dict):
        return isinstance(y, dict) and x.keys() == y.keys() and all(same(x[k], y[k]) for k in x)
    return x == y


@pytest.mark.parametrize("call", CALLS)
def test_as_tensorflow(call):
    expected = CALLS[call]
    if isinstance(expected, str):  # the name of an exception
        kind = (
            getattr(tf.errors, expected, None)
            or getattr(__builtins__, expected, None)
            or __builtins__[expected]
        )
        with pytest.raises(kind):
            eval(call, words())
    else:
        found = described(eval(call, words()))
        assert same(found, expected[0]), found
