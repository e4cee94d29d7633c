"""Fake quantisation: levels and straight-through gradients of TensorFlow 2.21."""

import numpy as np
import pytest

import gradtape as tf

q = tf.quantization
X = tf.constant([-1.2, -1.0, -0.3, 0.0, 0.44, 0.99, 2.0, 2.1])


def both(function, *sources):
    with tf.GradientTape() as tape:
        tape.watch(sources)
        y = function(*sources)
    return y, tape.gradient(y, sources)


def test_levels_and_gradients_by_the_bounds():
    y, (gx, glow, ghigh) = both(
        lambda x, a, b: q.fake_quant_with_min_max_vars(x, a, b, num_bits=3),
        X,
        tf.constant(-1.0),
        tf.constant(2.0),
    )
    step = 3 / 7
    low = -2 * step  # moved so that 0 is a level
    expected = np.clip(np.floor((np.clip(X, low, low + 7 * step) - low) / step + 0.5), 0, 7) * step + low
    np.testing.assert_allclose(y, expected, atol=1e-6)
    np.testing.assert_array_equal(gx, [0, 0, 1, 1, 1, 1, 1, 1])
    assert (float(glow), float(ghigh)) == (2.0, 0.0)
    assert 0.0 in y.numpy()


def test_args_is_vars_without_gradients_by_the_bounds():
    a, (gx,) = both(lambda x: q.fake_quant_with_min_max_args(x, -1, 1, 4, True), X)
    b = q.fake_quant_with_min_max_vars(X, -1.0, 1.0, 4, True)
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(
        gx, q.fake_quant_with_min_max_args_gradient(tf.ones_like(X), X, -1, 1, 4, True)
    )


def test_channels():
    x = tf.reshape(X, [4, 2])
    low, high = tf.constant([-1.0, 0.0]), tf.constant([1.0, 2.0])
    y, g = both(lambda *t: q.fake_quant_with_min_max_vars_per_channel(*t, num_bits=5), x, low, high)
    for c in range(2):
        np.testing.assert_array_equal(
            y[:, c], q.fake_quant_with_min_max_vars(x[:, c], low[c], high[c], num_bits=5)
        )
    stated = q.fake_quant_with_min_max_vars_per_channel_gradient(tf.ones_like(x), x, low, high, num_bits=5)
    for a, b in zip(g, stated, strict=True):
        np.testing.assert_array_equal(a, b)


def test_compiled_gradients_go_straight_through_as_well():
    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = q.fake_quant_with_min_max_args(x, -1, 1, 3)
        return y, tape.gradient(y, x)

    y, g = step(X)
    expected, (eg,) = both(lambda x: q.fake_quant_with_min_max_args(x, -1, 1, 3), X)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(g, eg)


def test_quantize_and_dequantize():
    y, (g,) = both(lambda x: q.quantize_and_dequantize(x, 0.0, 0.0, num_bits=4), X)
    step = 2.1 / 7
    np.testing.assert_allclose(y, np.round(X.numpy() / np.float32(step)) * step, atol=1e-6)
    np.testing.assert_array_equal(g, np.ones(8))
    y, (g,) = both(lambda x: q.quantize_and_dequantize_v2(x, -1.0, 1.0, num_bits=4, range_given=True), X)
    assert np.abs(y).max() <= 8 / 7 + 1e-6
    np.testing.assert_array_equal(g, [0, 1, 1, 1, 1, 1, 0, 0])


@pytest.mark.parametrize(
    ("options", "message"),
    [({"min": 2, "max": 1}, "min has to be smaller"), ({"num_bits": 1}, "between 2 and 16")],
)
def test_wrong_arguments(options, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        q.fake_quant_with_min_max_args(X, **options)
