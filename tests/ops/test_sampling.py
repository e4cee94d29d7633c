"""Samplers beyond the plain ones: the numbers are those of TensorFlow 2.21 where it does not depend on threads."""

import numpy as np
import pytest

import gradtape as tf


def test_binomial():
    np.testing.assert_array_equal(
        tf.random.stateless_binomial([8], [1, 2], 10.0, 0.3), [5, 5, 5, 4, 4, 3, 4, 0]
    )
    many = tf.random.stateless_binomial([3, 2], [1, 2], [10.0, 1000.0], [0.3, 0.7])
    np.testing.assert_array_equal(many, [[5, 683], [5, 714], [5, 688]])
    sure = tf.random.stateless_binomial(
        [2, 3], [1, 2], tf.constant([5.0, 0.0, 5.0]), [1.0, 0.5, 0.0], tf.float32
    )
    np.testing.assert_array_equal(sure, [[5, 0, 0], [5, 0, 0]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="must end with"):
        tf.random.stateless_binomial([3], [1, 2], [10.0, 20.0], 0.5)


def test_binomial_of_a_generator():
    g = tf.random.Generator.from_seed(1)
    np.testing.assert_array_equal(g.binomial([4], 100.0, 0.5), [48, 55, 59, 53])
    np.testing.assert_array_equal(g.state, [89601, 0, 0])
    np.testing.assert_array_equal(
        g.binomial([2, 3], [10.0, 20.0, 30.0], [0.5, 0.1, 0.9]), [[6, 0, 26], [4, 2, 28]]
    )
    np.testing.assert_array_equal(g.state, [281601, 0, 0])


def test_binomial_moments():
    x = tf.cast(tf.random.stateless_binomial([20000, 2], [3, 4], [40.0, 8.0], [0.6, 0.25]), tf.float64)
    np.testing.assert_allclose(tf.reduce_mean(x, 0), [24, 2], rtol=0.02)
    np.testing.assert_allclose(tf.math.reduce_variance(x, 0), [9.6, 1.5], rtol=0.05)


def test_gamma_gradients_of_tensorflow():
    a = tf.constant([0.5, 1.0, 3.0, 20.0])
    tf.random.set_seed(1)
    with tf.GradientTape() as tape:
        tape.watch(a)
        y = tf.random.gamma([2], a, seed=5)
    np.testing.assert_allclose(tape.gradient(y, a), [0.9059182, 1.5067382, 1.7776371, 2.0626886], rtol=1e-5)
    beta = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch([a, beta])
        y = tf.random.stateless_gamma([2, 4], [1, 2], a, beta=beta)
    ga, gb = tape.gradient(y, [a, beta])
    np.testing.assert_allclose(ga, [0.94583106, 1.6549726, 1.0390792, 1.0627794], rtol=1e-5)
    np.testing.assert_allclose(gb, -tf.reduce_sum(y) / beta, rtol=1e-5)


def test_gamma_gradients_are_those_of_the_mean():
    a = tf.constant([0.1, 2.0, 50.0], tf.float64)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(a)
        x = tf.random.stateless_gamma([40000, 3], [5, 6], a, dtype=tf.float64)
        mean, log_mean = tf.reduce_mean(x, 0), tf.reduce_mean(tf.math.log(x), 0)
    np.testing.assert_allclose(tape.gradient(mean, a), [1, 1, 1], rtol=0.05)
    np.testing.assert_allclose(tape.gradient(log_mean, a)[1:], tf.math.polygamma(1.0, a)[1:], rtol=0.05)


def test_gamma_of_second_order():
    a = tf.constant([0.8, 3.0], tf.float64)

    def slope(a):
        with tf.GradientTape() as tape:
            tape.watch(a)
            x = tf.random.stateless_gamma([2], [5, 6], a, dtype=tf.float64)
            y = tf.reduce_sum(x * x)
        return tape.gradient(y, a)

    with tf.GradientTape() as tape:
        tape.watch(a)
        g = slope(a)
    assert np.isfinite(tape.gradient(g, a)).all()


def test_beta():
    a, b = tf.constant([0.5, 3.0]), tf.constant([2.0, 1.0])
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        mean = tf.reduce_mean(tf.random.beta([20000], a, b, seed=3), 0)
    np.testing.assert_allclose(mean, a / (a + b), rtol=0.05)
    ga, gb = tape.gradient(mean, [a, b])
    np.testing.assert_allclose(ga, b / (a + b) ** 2, rtol=0.1)
    np.testing.assert_allclose(gb, -a / (a + b) ** 2, rtol=0.1)


def test_shuffles():
    np.testing.assert_array_equal(
        tf.random.experimental.stateless_shuffle(tf.range(10), [8, 9]), [1, 0, 4, 6, 5, 2, 8, 7, 9, 3]
    )
    shuffle = tf.random.experimental.index_shuffle
    np.testing.assert_array_equal(shuffle(tf.range(10), [5, 8], 9), [3, 8, 0, 1, 2, 7, 6, 9, 4, 5])
    at = tf.constant([0, 1, 2, 99999], tf.int64)
    np.testing.assert_array_equal(shuffle(at, [5, 8], 100000), [27922, 73877, 46507, 10131])
    assert int(shuffle(0, [5, 8], 0)) == 0
    with pytest.raises(tf.errors.InvalidArgumentError, match="philox"):
        tf.random.experimental.stateless_shuffle(tf.range(3), [1, 2], alg="threefry")


def test_truncated_normal_with_bounds_of_its_own():
    draw = tf.random.stateless_parameterized_truncated_normal
    mean, low = tf.constant([0.0, 1.0], tf.float64), tf.constant(-1.0, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch([mean, low])
        x = draw([5000, 2], [1, 2], mean, tf.constant(1.0, tf.float64), low, tf.constant(2.0, tf.float64))
        centre = tf.reduce_mean(x)
    assert x.dtype is tf.float64 and float(tf.reduce_min(x)) >= -1 and float(tf.reduce_max(x)) <= 2
    np.testing.assert_allclose(tf.reduce_mean(x, 0), [0.229, 0.771], atol=0.03)
    assert all(0 < float(tf.reduce_sum(g)) < 1 for g in tape.gradient(centre, [mean, low]))
    tail = draw([1000], [1, 2], 0.0, 1.0, 8.0, 9.0)
    assert float(tf.reduce_min(tail)) >= 8 and float(tf.reduce_mean(tail)) < 8.2


def test_bits_in_bulk_are_those_one_by_one():
    long = tf.random.stateless_uniform([1001], [3, 4])
    np.testing.assert_array_equal(long[:7], tf.random.stateless_uniform([7], [3, 4]))
    g = tf.random.Generator.from_state([-20, 5, 7], "philox")  # the counter runs over
    a = g.uniform([400])
    g.reset([-20, 5, 7])
    bits = g.uniform_full_int([400], tf.uint32).numpy()
    floats = ((bits & np.uint32(0x7FFFFF)) | np.uint32(0x3F800000)).view(np.float32) - np.float32(1)
    np.testing.assert_array_equal(a, floats)
