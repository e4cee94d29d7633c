"""A tape around a function that assigns variables: an assignment ends a value's history, as it does in eager mode."""

import numpy as np
import pytest

from tests.semantics.lib import tf


def multiplied(v, x):
    v.assign(x * v)
    return v * x


def added(v, x):
    v.assign_add(x)
    return v * v


def in_part(v, x):
    v[0].assign(5.0)
    return v * x


def read_between(v, x):
    y = v * x
    v.assign(y)
    z = v * y
    v.assign(z + x)
    return z + v


def in_a_loop(v, x):
    s = tf.zeros([2])
    for _ in tf.range(3):
        s += v * x
        v.assign(v * x)
    return s + v


def in_a_branch(v, x):
    if tf.reduce_sum(x) > 0.0:
        v.assign(v * x)
        z = v * x
    else:
        z = v + x
    return z * v


# Gradients with respect to x and to v.
CASES = [
    (multiplied, [3.0, 8.0], [3.0, 4.0]),
    (added, None, [8.0, 12.0]),
    (in_part, [5.0, 2.0], [3.0, 4.0]),
    (read_between, [3.0, 16.0], [13.0, 41.0]),
    (in_a_loop, [13.0, 42.0], [10.0, 13.0]),
    (in_a_branch, [9.0, 64.0], [18.0, 64.0]),
]


@pytest.mark.parametrize("graph", [False, True], ids=["eager", "function"])
@pytest.mark.parametrize(("f", "by_x", "by_v"), CASES, ids=[f.__name__ for f, *_ in CASES])
def test_gradients_stop_at_assignments(f, by_x, by_v, graph):
    v, x = tf.Variable([1.0, 2.0]), tf.constant([3.0, 4.0])
    g = (
        (tf.function(lambda x: f(v, x)) if f not in (in_a_loop, in_a_branch) else tf.function(f))
        if graph
        else f
    )
    for _ in range(3):  # the third pass of a tape runs as a program
        v.assign([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = g(x) if graph and f not in (in_a_loop, in_a_branch) else g(v, x)
        for found, expected in zip(tape.gradient(y, [x, v]), (by_x, by_v), strict=True):
            if expected is None:
                assert found is None
            else:
                np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_second_derivatives_of_a_linear_part():
    """A result that does not depend on a source has no gradient, even if another result of the function does."""
    f = tf.function(lambda x, y: x * 2.0 + y * y)
    a, b = tf.constant(1.0), tf.constant(2.0)
    for call in (lambda x, y: x * 2.0 + y * y, f, f, f):
        with tf.GradientTape(persistent=True) as outer:
            outer.watch([a, b])
            with tf.GradientTape() as tape:
                tape.watch([a, b])
                z = call(a, b)
            by_a, by_b = tape.gradient(z, [a, b])
        assert outer.gradient(by_b, b).numpy() == 2.0
        if call is not f or tf.__name__ == "gradtape":  # TensorFlow's functions give zeros
            assert outer.gradient(by_a, [a, b]) == [None, None]
            assert outer.gradient(by_b, a) is None


def test_second_derivatives_of_what_was_not_used():
    """A zero cotangent is passed on only to the arguments that the result depends on."""
    v, x = tf.Variable([[1.0, -2.0]]), tf.constant([1.0, 2.0])
    for call in (lambda x: tf.nn.relu(v), tf.function(lambda x: tf.nn.relu(v))):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = call(x)
            by_v = tape.gradient(y, v)
        assert outer.gradient(by_v, x) is None


def test_second_derivatives_beside_an_assignment():
    """An assigned value has no cotangent, and values that lead to it have no second derivative."""
    v, w, x = tf.Variable(2.0), tf.Variable(1.0), tf.constant(3.0)

    def f(x):
        y = v * 2.0
        v.assign((v + x) ** 2)
        return y

    def zero(x):  # the second derivative of relu is a zero, which leads to v
        y = tf.nn.relu(v) * 2.0
        w.assign(w)
        return y

    for call in (f, tf.function(f)):
        for _ in range(3):
            with tf.GradientTape() as outer:
                outer.watch(x)
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = call(x)
                by_v = tape.gradient(y, v)
            assert by_v.numpy() == 2.0
            assert outer.gradient(by_v, [x, v]) == [None, None]
    for call in (zero, tf.function(zero)):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as tape:
                y = call(x)
            by_v = tape.gradient(y, v)
        by_v, by_w = outer.gradient(by_v, [v, w])
        assert (by_v is None or by_v.numpy() == 0.0) and by_w is None
