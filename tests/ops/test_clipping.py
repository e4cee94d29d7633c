"""Clipping of gradients: values, sparse gradients, edges."""

import numpy as np
import pytest

import gradtape as tf


def slices():
    return tf.IndexedSlices(tf.constant([[3.0], [4.0]]), tf.constant([0, 2]), (4, 1))


def test_clip_by_value():
    x = tf.constant([-2.0, -1.0, 0.5, 1.0, 3.0, np.nan])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.clip_by_value(x, -1.0, 1.0)
    np.testing.assert_array_equal(y, [-1.0, -1.0, 0.5, 1.0, 1.0, np.nan])
    np.testing.assert_array_equal(tape.gradient(y, x)[:5], [0.0, 1.0, 1.0, 1.0, 0.0])
    assert tf.clip_by_value([1, 5], 2, 3).dtype is tf.int32
    with pytest.raises(ValueError, match="incompatible"):
        tf.clip_by_value(tf.constant([1.0]), [0.0, 0.0], 1.0)


def test_clip_by_norm():
    np.testing.assert_allclose(tf.clip_by_norm([3.0, 4.0], 1.0), [0.6, 0.8])
    np.testing.assert_allclose(tf.clip_by_norm([3.0, 4.0], 10.0), [3.0, 4.0], rtol=1e-6)
    np.testing.assert_allclose(
        tf.clip_by_norm([[3.0, 4.0], [0.3, 0.4]], 1.0, axes=[1]), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6
    )
    x = tf.zeros([2])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.clip_by_norm(x, 1.0)
    np.testing.assert_array_equal(y, [0.0, 0.0])
    np.testing.assert_array_equal(tape.gradient(y, x), [1.0, 1.0])


def test_clip_by_global_norm():
    grads, norm = tf.clip_by_global_norm([tf.constant([3.0]), None, tf.constant([[4.0]])], 1.0)
    assert norm.numpy() == 5.0 and grads[1] is None
    np.testing.assert_allclose(grads[0], [0.6], rtol=1e-6)
    np.testing.assert_allclose(grads[2], [[0.8]], rtol=1e-6)
    same, _ = tf.clip_by_global_norm((tf.constant([3.0]),), 10.0)
    np.testing.assert_allclose(same[0], [3.0], rtol=1e-6)
    known, norm = tf.clip_by_global_norm([tf.constant([3.0])], 1.0, use_norm=6.0)
    assert known[0].numpy() == 0.5 and norm.numpy() == 6.0
    zero, _ = tf.clip_by_global_norm([tf.constant([3.0])], 0.0)
    assert zero[0].numpy() == 0.0
    zeros, _ = tf.clip_by_global_norm([tf.zeros([2])], 1.0)
    np.testing.assert_array_equal(zeros[0], [0.0, 0.0])


def test_an_infinite_norm_makes_everything_nan():
    grads, norm = tf.clip_by_global_norm([tf.constant([np.inf, 1.0]), tf.constant(1.0)], 1.0)
    assert np.isinf(norm) and np.isnan(grads[0]).all() and np.isnan(grads[1])


def test_sparse_gradients_stay_sparse():
    for clipped in (
        tf.clip_by_value(slices(), 0.0, 1.0),
        tf.clip_by_norm(slices(), 1.0),
        tf.clip_by_global_norm([slices()], 1.0)[0][0],
    ):
        assert isinstance(clipped, tf.IndexedSlices)
        np.testing.assert_array_equal(clipped.indices, [0, 2])
        assert clipped.shape == (4, 1)
    np.testing.assert_allclose(tf.clip_by_norm(slices(), 1.0).values, [[0.6], [0.8]])
    assert tf.linalg.global_norm([slices(), None]).numpy() == 5.0


def test_not_a_sequence():
    for f in (lambda t: tf.clip_by_global_norm(t, 1.0), tf.linalg.global_norm):
        with pytest.raises(TypeError, match="`t_list` should be a sequence of tensors"):
            f(tf.constant([1.0]))


def test_clip_by_average_norm():
    np.testing.assert_allclose(
        tf.compat.v1.clip_by_average_norm(tf.constant([3.0, 4.0]), 1.0), [1.2, 1.6], rtol=1e-6
    )


@pytest.mark.parametrize("function", [tf.maximum, tf.minimum])
def test_extrema_of_nan_hand_their_gradient_to_the_second(function):
    x, y = tf.constant([np.nan, 1.0, np.nan]), tf.constant([1.0, np.nan, np.nan])
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        out = function(x, y)
    gx, gy = tape.gradient(out, [x, y])
    np.testing.assert_array_equal(gx, [0, 0, 0])
    np.testing.assert_array_equal(gy, [1, 1, 1])
