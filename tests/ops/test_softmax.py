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


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16], ids=lambda d: d.name)
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (700, 40), (5, 300), (41, 1000), (3, 4096), (2, 9001)])
def test_16_bit_floats_are_float32_rounded_once(dtype, shape):
    """Rows of which many fit into a block, and a row that is longer than a block."""
    rng = np.random.default_rng(5)
    x, g = (tf.cast(4 * rng.normal(size=shape).astype(np.float32), dtype) for _ in "ab")
    weights = tf.nn.softmax(g)
    labels = rng.integers(0, shape[-1], shape[:-1])

    def results(x, g, weights):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            ys = [tf.nn.softmax(x), tf.nn.log_softmax(x)]
            losses = [
                tf.nn.softmax_cross_entropy_with_logits(weights, x),
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x),
                tf.reduce_logsumexp(x, 1),
                tf.reduce_logsumexp(x, 0),
            ]
        return [*ys, *losses, *(tape.gradient(loss, x) for loss in losses[:2])]

    wide = results(*(tf.cast(v, tf.float32) for v in (x, g, weights)))
    for narrow, exact in zip(results(x, g, weights), wide, strict=True):
        assert narrow.dtype is dtype
        np.testing.assert_array_equal(narrow, tf.cast(exact, dtype))
    # Gradients of the softmax are computed from its rounded result: a sum in float32, rounded once.
    eps = 2.0**-8 if dtype is tf.bfloat16 else 2.0**-11
    for f in (tf.nn.softmax, tf.nn.log_softmax):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        got = tape.gradient(y, x, g)
        p, q = (tf.cast(v, tf.float64).numpy() for v in (y, g))
        if f is tf.nn.softmax:
            terms, expected = q * p, (q - (q * p).sum(-1, keepdims=True)) * p
        else:
            terms, expected = q, q - np.exp(p) * q.sum(-1, keepdims=True)
        bound = eps * np.abs(expected) + 1e-6 * np.abs(terms).sum(-1, keepdims=True) + 2.0**-24
        assert (np.abs(tf.cast(got, tf.float64) - expected) <= bound).all()


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
