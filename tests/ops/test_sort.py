"""sort, argsort, top_k, in_top_k, searchsorted under their public signatures."""

import numpy as np
import pytest

import gradtape as tf

A = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)


def gradient(f, x):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x).numpy().tolist()


def test_sort():
    np.testing.assert_array_equal(tf.sort(A), np.sort(A))
    np.testing.assert_array_equal(tf.sort(A, 0, "DESCENDING"), np.sort(A, 0)[::-1])
    assert tf.sort([3, 1, 2]).numpy().tolist() == [1, 2, 3]
    assert gradient(lambda x: tf.sort(x) * [1.0, 2.0, 3.0], [5.0, 1.0, 2.0]) == [3, 1, 2]
    with pytest.raises(ValueError, match="direction"):
        tf.sort(A, direction="UP")


def test_argsort_is_stable():
    assert tf.argsort([3, 1, 2, 1]).numpy().tolist() == [1, 3, 2, 0]
    assert tf.argsort([3, 1, 3, 1], direction="DESCENDING", stable=True).numpy().tolist() == [0, 2, 1, 3]
    assert tf.argsort(A, axis=0).dtype is tf.int32


def test_top_k():
    top = tf.math.top_k([1.0, 3.0, 3.0, 2.0], k=3)
    assert top.values.numpy().tolist() == [3, 3, 2]
    assert top.indices.numpy().tolist() == [1, 2, 3]
    values, indices = tf.nn.top_k(A, tf.constant(2), index_type=tf.int64)
    np.testing.assert_array_equal(values, -np.sort(-A)[:, :2])
    assert indices.dtype is tf.int64
    assert gradient(lambda x: tf.math.top_k(x, 2)[0] * [1.0, 2.0], [5.0, 1.0, 2.0]) == [1, 0, 2]


def test_in_top_k():
    def found(*args):
        return tf.math.in_top_k(*args).numpy().tolist()

    rows = [[1.0, 2.0, 3.0], [1.0, 5.0, 5.0]]
    assert found([0, 1], rows, 1) == [False, True]
    assert found([5, -1], rows, 2) == [False, False]
    assert found([0, 0], [[np.nan, 2.0], [1.0, np.inf]], 2) == [False, False]
    with pytest.raises(tf.errors.InvalidArgumentError, match="match length"):
        tf.nn.in_top_k([0], rows, 1)


def test_searchsorted():
    assert tf.searchsorted([1.0, 3.0, 5.0], [0.0, 3.0, 9.0]).numpy().tolist() == [0, 1, 3]
    right = tf.searchsorted([1.0, 3.0, 5.0], [0.0, 3.0, 9.0], side="right", out_type=tf.int64)
    assert right.numpy().tolist() == [0, 2, 3]
    assert right.dtype is tf.int64
    assert tf.searchsorted([[1, 3], [2, 4]], [[3, 1], [2, 9]]).numpy().tolist() == [[1, 0], [0, 2]]
    assert tf.searchsorted([[1.0, 2.0]], [1.5]).numpy().tolist() == [1]
    with pytest.raises(ValueError, match="side"):
        tf.searchsorted([1.0], [1.0], side="up")
    with pytest.raises(tf.errors.InvalidArgumentError, match="must match"):
        tf.searchsorted([[1.0, 2.0]], [[1.0], [2.0]])
