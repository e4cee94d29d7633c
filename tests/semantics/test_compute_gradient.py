"""tf.test.compute_gradient: derivatives by a tape and by differences."""

import numpy as np
import pytest

from .lib import assert_close, tf

X = np.array([[0.5, 1.5, -1.0], [2.0, 0.3, 0.7]])


def test_C14_one_array_of_outputs_by_inputs_per_argument():
    def f(x, w):
        return tf.matmul(x, w)

    w = np.ones([3, 4])
    theoretical, numeric = tf.test.compute_gradient(f, [X, w])
    assert isinstance(theoretical, tuple) and isinstance(numeric, tuple)
    assert [np.shape(j) for j in theoretical] == [(8, 6), (8, 12)]
    assert [np.shape(j) for j in numeric] == [(8, 6), (8, 12)]


def test_C14_values():
    theoretical, numeric = tf.test.compute_gradient(lambda x: x**3, [X[0]])
    assert_close(theoretical[0], np.diag(3 * X[0] ** 2))
    assert_close(numeric[0], np.diag(3 * X[0] ** 2), rtol=1e-4)


def test_C14_scalar_result():
    theoretical, numeric = tf.test.compute_gradient(tf.reduce_sum, [X])
    assert_close(theoretical[0], np.ones([1, 6]))
    assert_close(numeric[0], np.ones([1, 6]))


def test_C14_float32():
    theoretical, numeric = tf.test.compute_gradient(tf.sin, [X[0].astype("float32")])
    assert_close(theoretical[0], np.diag(np.cos(X[0])))
    assert_close(numeric[0], np.diag(np.cos(X[0])), rtol=1e-2, atol=1e-3)


def test_C14_takes_tensors_and_tuples():
    theoretical, _ = tf.test.compute_gradient(tf.square, (tf.constant(X[0]),))
    assert_close(theoretical[0], np.diag(2 * X[0]))


def test_C14_delta():
    _, numeric = tf.test.compute_gradient(lambda x: x**3, [np.array(0.0)], delta=0.5)
    assert_close(numeric[0], [[0.25]])


def test_C14_shows_a_wrong_gradient():
    def half_right(x):
        return x * tf.stop_gradient(x)

    theoretical, numeric = tf.test.compute_gradient(half_right, [X[0]])
    assert_close(theoretical[0], np.diag(X[0]))
    assert_close(numeric[0], np.diag(2 * X[0]), rtol=1e-4)


@pytest.mark.parametrize("x", [3.0, X], ids=["float", "ndarray"])
def test_C14_arguments_come_as_list_or_tuple(x):
    with pytest.raises(ValueError, match="list or tuple"):
        tf.test.compute_gradient(tf.square, x)
