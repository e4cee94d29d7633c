"""Derivatives that are zero everywhere: the rule `0`. The source is connected, as in TensorFlow, and
nothing is computed."""

import numpy as np
import pytest

import gradtape as tf

ZEROS = {
    "relu": tf.nn.relu,
    "relu6": tf.nn.relu6,
    "leaky_relu": tf.nn.leaky_relu,
    "crelu": tf.nn.crelu,
    "max_pool": lambda x: tf.nn.max_pool1d(tf.reshape(x, [1, 4, 1]), 2, 2, "VALID"),
    "in a function": tf.function(tf.nn.relu),
    "in a loop": tf.function(lambda x: tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, tf.nn.relu(x)), (0, x))[1]),
    "in a branch": tf.function(lambda x: tf.cond(x[0] < 0, lambda: tf.nn.relu(x), lambda: x)),
    "behind a custom gradient": lambda x: tf.nn.relu(_scaled(x)),
}  # fmt: skip


@tf.custom_gradient
def _scaled(x):
    return 2 * x, lambda g: 2 * g


def _x():
    return tf.constant([-1.5, -0.5, 0.5, 7.0])


@pytest.mark.parametrize("f", ZEROS.values(), ids=ZEROS)
@pytest.mark.parametrize("again", range(3))  # the third time the compiled pass runs
def test_second_and_third_derivatives_are_zeros(f, again):
    x = _x()
    with tf.GradientTape() as outermost:
        outermost.watch(x)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            first = inner.gradient(y, x)
        second = outer.gradient(first, x)
    assert np.any(first.numpy())
    assert second.shape == x.shape and not np.any(second.numpy())
    third = outermost.gradient(second, x)
    assert third is not None and not np.any(third.numpy())


@pytest.mark.parametrize("compiled", [False, True])
def test_hessian_of_relu_is_zeros(compiled):
    def hessian(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.nn.relu(x)
            g = inner.gradient(y, x)
        return outer.jacobian(g, x)

    h = (tf.function(hessian) if compiled else hessian)(_x())
    np.testing.assert_array_equal(h.numpy(), np.zeros([4, 4]))


def test_forward_over_reverse():
    x = _x()
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator, tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.relu(x)
        g = tape.gradient(y, x)
    np.testing.assert_array_equal(accumulator.jvp(g).numpy(), np.zeros(4))


def _penalty(through_function):
    """The gradients of a gradient penalty: w and v matter, b does not but is connected, c is not."""
    w, b = tf.Variable([[1.0, -1.0], [0.5, 2.0]], name="w"), tf.Variable([0.1, 0.2], name="b")
    v, c = tf.Variable([[1.0], [3.0]], name="v"), tf.Variable([0.0], name="c")
    x = tf.constant([[1.0, 2.0], [-1.0, 1.0]])

    def network(x):
        return tf.matmul(tf.nn.relu(tf.matmul(x, w) + b), v) + c

    network = tf.function(network) if through_function else network
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = network(x)
        loss = tf.reduce_sum(inner.gradient(y, x) ** 2)
    return outer.gradient(loss, [w, b, v, c])


@pytest.mark.parametrize("through_function", [False, True])
def test_gradient_penalty(through_function):
    for _ in range(3):
        gw, gb, gv, _ = _penalty(through_function)
        # In the first row both units are active, in the other only the second.
        np.testing.assert_allclose(gw.numpy(), [[-4.0, -30.0], [13.0, 75.0]])
        np.testing.assert_array_equal(gb.numpy(), [0.0, 0.0])
        assert gv.shape == [2, 1] and np.all(gv.numpy() != 0)


def test_a_source_that_is_not_connected_stays_none():
    assert _penalty(False)[3] is None


def test_stop_gradient_stops_zeros_too():
    x = _x()
    with tf.GradientTape() as outer:
        outer.watch(x)
        y = tf.stop_gradient(x)
        with tf.GradientTape() as inner:
            inner.watch(y)
            z = tf.nn.relu(y)
        g = inner.gradient(z, y)
    assert outer.gradient(g, x) is None


def test_zeros_are_not_computed_with():
    """The path to `x` contains an op whose gradient has a pole: zero times infinity is never computed."""
    x = tf.constant([0.0, 4.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        root = tf.sqrt(x)
        with tf.GradientTape() as inner:
            inner.watch(root)
            y = tf.nn.relu(root)
        g = inner.gradient(y, root)
    np.testing.assert_array_equal(outer.gradient(g, x).numpy(), [0.0, 0.0])
