"""tf.vectorized_map."""

import numpy as np
import pytest

from .lib import ON_TENSORFLOW, assert_close, differs_on_tensorflow, tf

XS = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], "float32")


def test_W3_rows_are_stacked():
    assert_close(tf.vectorized_map(lambda x: tf.reduce_sum(x * x), tf.constant(XS)), (XS**2).sum(1))


def test_W3_structures():
    elems = {"a": tf.constant(XS), "b": (tf.constant([1.0, 2.0]),)}
    a, rest = tf.vectorized_map(lambda e: (e["a"] * e["b"][0], [e["b"][0]]), elems)
    assert_close(a, XS * [[1.0], [2.0]])
    assert_close(rest[0], [1.0, 2.0])


def test_W3_one_row_serves_all():
    y = tf.vectorized_map(lambda e: e[0] * e[1], (tf.constant(XS), tf.constant([[1.0, 2.0, 3.0]])))
    assert_close(y, XS * [1.0, 2.0, 3.0])


def test_W3_results_that_do_not_depend_on_the_row():
    assert_close(tf.vectorized_map(lambda x: tf.constant([7.0, 8.0]), tf.constant(XS)), [[7.0, 8.0]] * 2)


def test_W3_types_may_change():
    y = tf.vectorized_map(lambda x: tf.argmax(x), tf.constant(XS))
    assert y.dtype == tf.int64
    assert_close(y, [2, 1])


def test_W3_captured_tensors_and_variables():
    v, t = tf.Variable([1.0, 2.0, 3.0]), tf.constant(2.0)
    assert_close(tf.vectorized_map(lambda x: x * v * t, tf.constant(XS)), XS * [2.0, 4.0, 6.0])


def test_W3_gradients():
    x, v = tf.constant(XS), tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.vectorized_map(lambda r: tf.reduce_sum(r * r * v), x)
    gx, gv = tape.gradient(y, [x, v])
    assert_close(gx, 2 * XS * [1.0, 2.0, 3.0])
    assert_close(gv, (XS**2).sum(0))


def test_W3_a_tape_inside():
    w = tf.Variable([1.0, 2.0, 3.0])

    def gradient(x):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(x * w) ** 2
        return tape.gradient(y, w)

    total = XS @ np.float32([1.0, 2.0, 3.0])
    assert_close(tf.vectorized_map(gradient, tf.constant(XS)), 2 * total[:, None] * XS)


def test_W3_nested():
    x = tf.constant(XS)
    y = tf.vectorized_map(lambda a: tf.vectorized_map(lambda b: tf.reduce_sum(a * b), x), x)
    assert_close(y, XS @ XS.T)


def test_W3_inside_a_function():
    @tf.function
    def f(x):
        return tf.vectorized_map(lambda r: tf.nn.softmax(r), x)

    e = np.exp(XS - XS.max(1, keepdims=True))
    assert_close(f(tf.constant(XS)), e / e.sum(1, keepdims=True), rtol=1e-4)


def test_W3_branches_of_each_row():
    def f(x):
        return tf.cond(tf.reduce_sum(x) > 2.5, lambda: x * 2.0, lambda: -x)

    assert_close(tf.vectorized_map(f, tf.constant(XS)), [-XS[0], XS[1] * 2])


def test_W3_loops_of_each_row():
    def f(n):
        return tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * 2), [0, 1])[1]

    assert_close(tf.vectorized_map(f, tf.constant([3, 0, 5])), [8, 1, 32])


@pytest.mark.parametrize("inside", [False, True])
def test_W3_each_row_has_random_numbers_of_its_own(inside):
    f = lambda x: tf.vectorized_map(lambda r: tf.random.normal([4]), x)  # noqa: E731
    y = np.asarray((tf.function(f) if inside else f)(tf.constant(XS)))
    assert y.shape == (2, 4)
    assert not np.any(y[0] == y[1])


def test_W3_scalars_are_an_error():
    with pytest.raises((ValueError, IndexError) if ON_TENSORFLOW else ValueError):
        tf.vectorized_map(lambda x: x, tf.constant(1.0))


def test_W3_different_numbers_of_rows_are_an_error():
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        tf.vectorized_map(lambda e: e[0], (tf.ones([2]), tf.ones([3])))


@differs_on_tensorflow("TensorFlow's pad loses the value")
def test_padding_keeps_its_value():
    y = tf.vectorized_map(lambda x: tf.pad(x, [[0, 1]], constant_values=7.0), tf.constant(XS))
    assert_close(y, np.pad(XS, [[0, 0], [0, 1]], constant_values=7.0))


@differs_on_tensorflow("TensorFlow cannot trace it")
def test_functions_that_look_at_values_run_row_by_row():
    y = tf.vectorized_map(lambda x: x * float(x.numpy()[0]), tf.constant(XS))
    assert_close(y, XS * XS[:, :1])
