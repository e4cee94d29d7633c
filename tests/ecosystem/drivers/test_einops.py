"""einops on tensors: its functions, their gradients, and its layers."""

import numpy as np
import tensorflow as tf
from einops import einsum, pack, rearrange, reduce, repeat, unpack

X = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)


def test_functions_against_numpy():
    x = tf.constant(X)
    np.testing.assert_array_equal(rearrange(x, "a b c -> c (a b)"), X.transpose(2, 0, 1).reshape(4, 6))
    np.testing.assert_array_equal(reduce(x, "a b c -> a c", "max"), X.max(1))
    np.testing.assert_array_equal(repeat(x, "a b c -> a (b r) c", r=2), X.repeat(2, 1))
    np.testing.assert_allclose(einsum(x, x, "a b c, a d c -> a b d"), X @ X.transpose(0, 2, 1))
    packed, shapes = pack([x, x], "a * c")
    assert packed.shape == (2, 6, 4) and [y.shape for y in unpack(packed, shapes, "a * c")] == [(2, 3, 4)] * 2


def test_gradient_in_a_function():
    @tf.function
    def loss(x):
        return tf.reduce_sum(reduce(x, "a b c -> a", "mean") ** 2)

    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loss(x)
    expected = np.broadcast_to(2 * X.mean((1, 2), keepdims=True) / 12, X.shape)
    np.testing.assert_allclose(tape.gradient(y, x), expected, rtol=1e-6)
