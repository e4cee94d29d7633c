"""Joining and splitting: TensorFlow's signatures, lists as results, and many operands."""

import numpy as np
import pytest

import gradtape as tf

X = np.arange(6, dtype=np.float32).reshape(2, 3)
InvalidArgument = tf.errors.InvalidArgumentError


def same(actual, expected):
    assert isinstance(actual, list)
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(a, e)


def test_split_into_equal_parts():
    same(tf.split(X, 3, axis=-1), np.split(X, 3, -1))
    same(tf.split(X, np.int64(2)), np.split(X, 2))


@pytest.mark.parametrize("sizes", [[1, 2], [1, -1], [-1, 2], (1, 2), tf.constant([1, 2]), np.array([1, 2])])
def test_split_into_given_sizes(sizes):
    same(tf.split(X, sizes, axis=tf.constant(1)), np.split(X, [1], 1))


def test_split_errors():
    with pytest.raises(InvalidArgument, match="evenly divide"):
        tf.split(X, 2, axis=1)
    with pytest.raises(InvalidArgument, match="Got: 4 of 3 along axis 1"):
        tf.split(X, [1, 3], axis=1)
    with pytest.raises(InvalidArgument, match="expected 3 sizes"):
        tf.split(X, [1, 2], axis=1, num=3)
    with pytest.raises(InvalidArgument, match="out of range"):
        tf.split(X, 1, axis=2)


def test_split_gradient_of_one_part():
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.split(x, [1, 2], axis=1)[1]
    np.testing.assert_array_equal(tape.gradient(y, x), [[0, 1, 1]] * 2)


def test_unstack():
    same(tf.unstack(X), list(X))
    same(tf.unstack(X, axis=-1), list(X.T))
    same(tf.unstack(tf.zeros([0, 2])), [])
    with pytest.raises(ValueError, match="not in range"):
        tf.unstack(1.0)
    with pytest.raises(InvalidArgument, match="must equal 3"):
        tf.unstack(X, num=3)


def test_concat_of_one_tensor_is_the_tensor():
    np.testing.assert_array_equal(tf.concat(tf.constant(X), 1), X)
    np.testing.assert_array_equal(tf.concat(tf.Variable(X), 0), X)


def test_stack_and_add_n_take_the_rows_of_one_tensor():
    np.testing.assert_array_equal(tf.stack(tf.constant(X)), X)
    np.testing.assert_array_equal(tf.add_n(tf.constant(X)), X.sum(0))


def test_operands_take_the_type_of_the_first_tensor():
    x = tf.constant([1.0], tf.float64)
    assert tf.concat([[2.0], x, np.float32([3.0])], 0).dtype is tf.float64
    assert tf.stack([1, 2.5]).dtype is tf.float32
    with pytest.raises(InvalidArgument, match="different types"):
        tf.concat([x, tf.constant([1.0])], 0)


def test_add_n():
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.add_n([x, 2.0 * x, X])
    np.testing.assert_array_equal(y, 4 * X)
    np.testing.assert_array_equal(tape.gradient(y, x), np.full_like(X, 3))
    with pytest.raises(ValueError, match="at least one"):
        tf.add_n([])


def test_add_n_makes_indexed_slices_dense():
    g = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([1]), tf.constant([2, 2]))
    np.testing.assert_array_equal(tf.add_n([g, g]), [[0, 0], [2, 4]])
    np.testing.assert_array_equal(tf.add_n([tf.ones([2, 2]), g]), [[1, 1], [2, 3]])


def test_many_operands_and_results():
    n = 70_000
    x = tf.zeros([n])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.stack(tf.unstack(x))
    np.testing.assert_array_equal(tape.gradient(y, x), np.ones(n))


def test_parallel_stack():
    np.testing.assert_array_equal(tf.parallel_stack([X, X]), [X, X])
