"""Sequences and small functions: reversed, rising, nearest falling, Sobol points, sums of lists."""

import numpy as np
import pytest

import gradtape as tf


def test_reverse_sequence():
    x = tf.reshape(tf.range(12.0), [3, 4])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reverse_sequence(x, [2, 0, 4], seq_axis=1)
    np.testing.assert_array_equal(y, [[1, 0, 2, 3], [4, 5, 6, 7], [11, 10, 9, 8]])
    back = tape.gradient(y, x, output_gradients=y)
    np.testing.assert_array_equal(back, x)
    across = tf.reverse_sequence(x, [2, 0, 3, 1], seq_axis=0, batch_axis=1)
    np.testing.assert_array_equal(across, [[4, 1, 10, 3], [0, 5, 6, 7], [8, 9, 2, 11]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Length of seq_lengths"):
        tf.reverse_sequence(x, [2, 0], seq_axis=1)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"seq_lens\(2\) > input.dims\(1\)"):
        tf.reverse_sequence(x, [2, 0, 9], seq_axis=1)


def test_rising():
    assert bool(tf.math.is_non_decreasing([1, 1, 2])) and not bool(tf.math.is_strictly_increasing([1, 1, 2]))
    assert bool(tf.math.is_strictly_increasing([[1.0, 2.0], [3.0, 4.0]])) and bool(
        tf.math.is_non_decreasing([])
    )


def test_isotonic_regression():
    x = tf.constant([[3.0, 1.0, 2.0], [1.0, 3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y, segments = tf.nn.isotonic_regression(x)
    np.testing.assert_allclose(y, [[3, 1.5, 1.5], [8 / 3, 8 / 3, 8 / 3]], rtol=1e-6)
    np.testing.assert_array_equal(segments, [[0, 1, 1], [0, 0, 0]])
    g = tape.gradient(y, x, output_gradients=tf.constant([[1.0, 2.0, 0.0], [3.0, 0.0, 0.0]]))
    np.testing.assert_allclose(g, [[1, 1, 1], [1, 1, 1]], rtol=1e-6)
    rising, _ = tf.nn.isotonic_regression(x, decreasing=False, axis=0)
    np.testing.assert_array_equal(rising, [[2, 1, 2], [2, 3, 4]])


def test_largest_exactly():
    x = tf.constant([[3.0, 1.0, 2.0], [1.0, 5.0, 4.0]])
    values, at = tf.math.approx_max_k(x, 2)
    np.testing.assert_array_equal(values, [[3, 2], [5, 4]])
    np.testing.assert_array_equal(at, [[0, 2], [1, 2]])
    values, at = tf.nn.approx_min_k(x, 1, reduction_dimension=0)
    np.testing.assert_array_equal(values, [[1, 1, 2]])
    np.testing.assert_array_equal(at, [[1, 0, 0]])


def test_sobol_points_of_tensorflow():
    points = [
        [0.75, 0.25, 0.25, 0.25, 0.75],
        [0.25, 0.75, 0.75, 0.75, 0.25],
        [0.375, 0.375, 0.625, 0.875, 0.375],
    ]
    np.testing.assert_array_equal(tf.math.sobol_sample(5, 3, skip=1), np.float32(points))
    last = tf.math.sobol_sample(53, 40, dtype=tf.float64)[-1, -3:]
    np.testing.assert_array_equal(last, [0.359375, 0.328125, 0.765625])
    for args in ((0, 2), (3, 0), (54, 2)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be at"):
            tf.math.sobol_sample(*args)


def test_small_functions():
    x = tf.constant([1.0, 2.0])
    np.testing.assert_array_equal(tf.math.accumulate_n([x, x, x]), [3, 6])
    with pytest.raises(ValueError, match="same dtype and shape"):
        tf.math.accumulate_n([x, tf.ones(3)])
    np.testing.assert_array_equal(tf.scalar_mul(3.0, x), [3, 6])
    slices = tf.scalar_mul(2.0, tf.IndexedSlices(tf.ones([1, 2]), [1], [3, 2]))
    np.testing.assert_array_equal(slices.values, [[2, 2]])
    with pytest.raises(ValueError, match="0-D"):
        tf.scalar_mul([3.0], x)
    np.testing.assert_array_equal(tf.math.reciprocal_no_nan([0.0, 2.0]), [0, 0.5])
    np.testing.assert_array_equal(tf.unravel_index([0, 5, 23], [3, 4, 2]), [[0, 0, 2], [0, 2, 3], [0, 1, 1]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of bound"):
        tf.unravel_index([24], [3, 4, 2])
    a, b = tf.identity_n([x, x])
    assert a.shape == b.shape == (2,)
    assert tf.tuple([x, None])[1] is None
    np.testing.assert_array_equal(tf.math.polyval([2.0, 1.0], x), [3, 5])
