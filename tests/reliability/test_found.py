"""Calls, found by the fuzzer, that once crashed the process or did not return."""

import math

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.ops.table import TABLE

Invalid = tf.errors.InvalidArgumentError


def test_symbols_of_small_integers_as_indices():
    @tf.function
    def take(i):
        return tf.gather(tf.constant([1.0, 2.0, 3.0]), tf.cast(i, tf.uint8) + tf.constant([0, 1], tf.uint8))

    assert take(tf.constant(1)).numpy().tolist() == [2.0, 3.0]


def test_windows_far_larger_than_the_image():
    x = tf.reshape(tf.range(42.0), [2, 7, 3])
    assert np.array_equal(tf.nn.max_pool1d(x, 2**31, 2, "SAME")[:, 0], tf.reduce_max(x, 1))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.nn.avg_pool1d(x, 2**31, 7, "SAME"))
    assert np.allclose(tape.gradient(y, x), 1 / 7)


def test_strides_far_larger_than_the_image():
    x, k = tf.ones([1, 5, 5, 1]), tf.ones([3, 3, 1, 1])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.conv2d(x, k, 2**20, "VALID")
    assert np.array_equal(tape.gradient(y, x)[0, :, :, 0], np.pad(np.ones([3, 3]), [[0, 2], [0, 2]]))


def test_zeta_with_large_arguments():
    assert tf.math.zeta(tf.constant(1e18, tf.float64), tf.constant(1.7, tf.float64)) == 0.0
    assert tf.math.polygamma(tf.constant(2.0**62), tf.constant(1.75)).shape == ()
    q = -1234567.25
    near = sum((q + k) ** -2.0 for k in range(1234400, 1234700))  # the terms around the poles, and the tails
    expected = near + 1 / (1234567.25 - 1234399.5) - 1 / 1234567.75 + 1 / (1234699.5 - 1234567.25)
    assert math.isclose(
        tf.math.zeta(tf.constant(2.0, tf.float64), tf.constant(q, tf.float64)), expected, rel_tol=1e-6
    )


@pytest.mark.parametrize("weight", [math.inf, math.nan, -1.0, 0.0])
def test_samplers_with_odd_weights(weight):
    draw = tf.random.fixed_unigram_candidate_sampler
    with pytest.raises(Invalid, match="weight"):
        draw([[1]], 1, 4, True, 4, unigrams=[1.0, weight, 3.0, 1.0])


def test_poisson_rates_beyond_the_type():
    assert tf.random.stateless_poisson([3], [1, 2], 1e20, tf.int32).numpy().tolist() == [2**31 - 1] * 3


def test_samplers_of_no_kind():
    with pytest.raises(Invalid, match="kind must be from 0 to 3"):
        TABLE["candidate_sampler"].op(
            tf.constant([[1]], tf.int64), tf.constant([], tf.float64), tf.constant([1, 2, 3], tf.int64), -1, 2, True, 5
        )  # fmt: skip


def test_shuffled_indices_out_of_range():
    with pytest.raises(Invalid, match="from 0 to max_index"):
        tf.random.experimental.index_shuffle(tf.constant(3), seed=(1, 2), max_index=tf.constant(2))


def test_differences_of_nothing():
    assert tf.experimental.numpy.diff(tf.ones([2, 4]), n=2**40).shape == (2, 0)
