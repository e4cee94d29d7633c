"""Reductions and rounding of float16 and bfloat16."""

import numpy as np
import pytest

import gradtape as tf

HALVES = (tf.bfloat16, tf.float16)
SIGNIFICANT = {tf.bfloat16: 8, tf.float16: 11}  # bits


def wide(x):
    return tf.cast(x, tf.float64).numpy()


# ---- reductions: computed in float32, rounded once ----


SHAPES = [(1,), (63,), (1000,), (70001,), (3, 70), (300, 7), (17, 2100), (40, 64, 9), (5000, 3), (2, 1)]


@pytest.mark.parametrize("dtype", HALVES, ids=lambda d: d.name)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_are_rounded_once(dtype, shape):
    """Alone and at the end of a cluster, over all axes and over each."""
    x = tf.cast(np.random.default_rng(7).uniform(0.25, 0.75, shape).astype(np.float32), dtype)
    inside = tf.function(lambda x, axis: tf.reduce_sum(x * tf.ones([], dtype), axis))
    for axis in (None, *range(len(shape))):
        exact = wide(x).sum(axis)
        for found in (tf.reduce_sum(x, axis), inside(x, axis)):
            assert found.dtype is dtype
            assert (abs(wide(found) - exact) <= exact * (2.0 ** -SIGNIFICANT[dtype] + 1e-6)).all()
        for found in (tf.reduce_mean(x, axis), tf.reduce_max(x, axis), tf.reduce_min(x, axis)):
            assert found.dtype is dtype
        mean = wide(x).mean(axis)
        assert (abs(wide(tf.reduce_mean(x, axis)) - mean) <= mean * (2.0 ** -SIGNIFICANT[dtype] + 1e-6)).all()
        np.testing.assert_array_equal(wide(tf.reduce_max(x, axis)), wide(x).max(axis))
        np.testing.assert_array_equal(wide(tf.reduce_min(x, axis)), wide(x).min(axis))


@pytest.mark.parametrize("dtype", HALVES, ids=lambda d: d.name)
def test_reductions_of_strided_axes_and_of_nothing(dtype):
    x = tf.cast(np.random.default_rng(8).uniform(0.5, 1.5, (6, 50, 4, 9)).astype(np.float32), dtype)
    exact = wide(x).sum((0, 2))
    assert (abs(wide(tf.reduce_sum(x, (0, 2))) - exact) <= exact * (2.0 ** -SIGNIFICANT[dtype] + 1e-6)).all()
    empty = tf.zeros([0, 3], dtype)
    np.testing.assert_array_equal(wide(tf.reduce_sum(empty, 0)), [0, 0, 0])
    np.testing.assert_array_equal(wide(tf.reduce_prod(empty, 0)), [1, 1, 1])
    np.testing.assert_array_equal(wide(tf.reduce_max(empty, 0)), [-np.inf] * 3)


@pytest.mark.parametrize("dtype", HALVES, ids=lambda d: d.name)
def test_a_long_sum_in_a_program_is_that_of_the_op(dtype):
    """60 tiles of 2048 elements: partial sums rounded to 16 bits would be visibly wrong."""
    x = tf.cast(np.random.default_rng(9).uniform(0.5, 1.5, 122880).astype(np.float32) * 2.0**-8, dtype)
    one = tf.ones([], dtype)
    total = tf.function(lambda x: tf.reduce_sum(x * one))(x)
    exact = wide(x).sum()
    assert abs(wide(total) - exact) <= exact * (2.0 ** -SIGNIFICANT[dtype] + 1e-6)


# ---- rounding to bfloat16, in vectors and one by one ----


def test_rounding_to_bfloat16_is_to_nearest_even():
    bits = np.array([
        0x3F800000, 0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7F800001,
        0xFFC00000, 0x7FFFFFFF, 0x00000001, 0x00008000, 0x00018000, 0x80008001, 0x00000000, 0x80000000, 0x007FFFFF,
    ], np.uint32)  # fmt: skip
    upper = (bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16
    nan = (bits & 0x7FFFFFFF) > 0x7F800000
    expected = np.where(nan, (bits >> 16) | 0x40, upper).astype(np.uint16)
    for repeats in (1, 2, 7, 100):
        x = tf.constant(np.tile(bits, repeats).view(np.float32))
        found = tf.bitcast(tf.cast(x, tf.bfloat16), tf.uint16).numpy()
        np.testing.assert_array_equal(found, np.tile(expected, repeats))


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16], ids=lambda d: d.name)
def test_exp_of_all_16_bit_floats(dtype):
    x = tf.bitcast(tf.constant(np.arange(1 << 16, dtype=np.uint16)), dtype)
    got, wide = tf.exp(x), tf.exp(tf.cast(x, tf.float32))
    nan = np.isnan(wide)
    assert np.array_equal(tf.bitcast(got, tf.int16)[~nan], tf.bitcast(tf.cast(wide, dtype), tf.int16)[~nan])
    assert np.isnan(tf.cast(got, tf.float32)[nan]).all()
