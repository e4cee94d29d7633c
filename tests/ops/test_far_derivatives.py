"""Derivatives of element-wise functions far out and near their poles: as exact as the functions themselves.

The expected values are formulas that do not cancel there, in float64.
"""

import math

import numpy as np
import pytest

import gradtape as tf

_C = 2 * np.sqrt(2 / np.pi)


def _sigmoid(x):
    return np.where(x < 0, np.exp(np.minimum(x, 0)), 1) / (1 + np.exp(-np.abs(x)))


def _gelu_tanh(x):
    s, other = _sigmoid(_C * (x + 0.044715 * x**3)), _sigmoid(-_C * (x + 0.044715 * x**3))
    return s + x * s * other * _C * (1 + 3 * 0.044715 * x**2)


FAR = [-40.0, -20.0, -9.0, -1e-3, 1e-3]
NEAR_1 = [1 - 2**-10, 1 - 2**-20, -1 + 2**-20]
DERIVATIVES = {
    "expm1": (tf.math.expm1, np.exp, FAR),
    "elu": (tf.nn.elu, lambda x: np.exp(np.minimum(x, 0)), FAR),
    "selu": (
        tf.nn.selu,
        lambda x: 1.0507009873554805 * np.where(x < 0, 1.6732632423543772 * np.exp(x), 1),
        FAR,
    ),
    "softplus": (tf.nn.softplus, _sigmoid, FAR),
    "log_sigmoid": (tf.math.log_sigmoid, lambda x: _sigmoid(-x), [-30.0, 0.5, 30.0, 80.0]),
    "softsign": (tf.nn.softsign, lambda x: (1 + np.abs(x)) ** -2, [-1e8, 1e5, 3.0]),
    "gelu": (lambda x: tf.nn.gelu(x, approximate=True), _gelu_tanh, [-7.0, -5.0, -3.0, 2.0, 9.0]),
    "asin": (tf.asin, lambda x: ((1 - x) * (1 + x)) ** -0.5, NEAR_1),
    "acos": (tf.acos, lambda x: -(((1 - x) * (1 + x)) ** -0.5), NEAR_1),
    "atanh": (tf.atanh, lambda x: 1 / ((1 - x) * (1 + x)), NEAR_1),
    "log1p": (tf.math.log1p, lambda x: 1 / (1 + x), [-1 + 2**-20, 1e-9, 1e8]),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", DERIVATIVES)
def test_far_derivative(name, dtype):
    function, derivative, at = DERIVATIVES[name]
    x = tf.constant(at, dtype)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    expected = derivative(x.numpy().astype(np.float64))
    # The argument of an exponential is rounded: its relative error is eps times the argument.
    np.testing.assert_allclose(tape.gradient(y, x), expected, rtol=100 * np.finfo(dtype).eps)


def test_gelu_to_the_last_digits():
    """The tail of the normal distribution, to 3 eps from the middle to where it underflows."""
    x = np.linspace(-13, 13, 2001, dtype=np.float32)
    wide = x.astype(np.float64)
    below = np.array([math.erfc(-v / math.sqrt(2)) / 2 for v in wide])
    eps = np.finfo(np.float32).eps
    np.testing.assert_allclose(tf.nn.gelu(x), wide * below, rtol=3 * eps)
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.gelu(x)
    slope = below + wide * np.exp(-0.5 * wide**2) / math.sqrt(2 * math.pi)
    np.testing.assert_allclose(tape.gradient(y, x), slope, rtol=4 * eps, atol=2 * eps)
