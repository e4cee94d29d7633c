"""Softmax along any axis, its stability, and derivatives of second order."""

import numpy as np
import pytest

import gradtape as tf


def np_softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@pytest.mark.parametrize("axis", [None, -1, 0, 1, 2, -3])
def test_axes(axis):
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    expected = np_softmax(x, -1 if axis is None else axis)
    np.testing.assert_allclose(tf.nn.softmax(x, axis=axis), expected, rtol=1e-12)
    np.testing.assert_allclose(tf.nn.log_softmax(x, axis), np.log(expected), rtol=1e-10)


def test_aliases_and_large_values():
    assert tf.math.softmax is tf.nn.softmax
    assert tf.math.log_softmax is tf.nn.log_softmax
    np.testing.assert_allclose(tf.nn.softmax([1e4, 1e4, -1e4]), [0.5, 0.5, 0.0])
    np.testing.assert_allclose(tf.nn.log_softmax([0.0, -1e4]), [0.0, -1e4])


def test_axis_out_of_range():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"range \[-1, 1\)"):
        tf.nn.softmax([1.0, 2.0], axis=2)


@pytest.mark.parametrize("f", [tf.nn.softmax, tf.nn.log_softmax])
def test_gradient_along_the_first_axis_equals_that_of_the_transposed(f):
    x = tf.constant(np.random.default_rng(1).normal(size=(3, 2)))
    w = tf.constant(np.random.default_rng(2).normal(size=(3, 2)))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        a = tf.reduce_sum(f(x, axis=0) * w)
        b = tf.reduce_sum(tf.transpose(f(tf.transpose(x))) * w)
    np.testing.assert_allclose(tape.gradient(a, x), tape.gradient(b, x), rtol=1e-12)


def test_hessian_of_the_cross_entropy_is_that_of_logsumexp():
    x = tf.constant([[0.1, -0.5, 0.3], [1.0, 0.0, 2.0]], tf.float64)
    labels = tf.constant([2, 0])
    dense = tf.one_hot(labels, 3, dtype=tf.float64)
    p = np_softmax(x.numpy())
    expected = np.stack([np.diag(q) - np.outer(q, q) for q in p])
    for loss in (
        lambda z: tf.nn.sparse_softmax_cross_entropy_with_logits(labels, z),
        lambda z: tf.nn.softmax_cross_entropy_with_logits(dense, z),
    ):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(loss(x))
            g = inner.gradient(y, x)
        np.testing.assert_allclose(g, p - dense.numpy(), rtol=1e-12)
        np.testing.assert_allclose(outer.batch_jacobian(g, x), expected, rtol=1e-10, atol=1e-12)
