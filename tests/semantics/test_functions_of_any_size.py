"""Functions of the user's that the library calls while sizes are unknown: traced calls are not executed, and values that
they read have gradients."""

import numpy as np
import pytest

from tests.semantics.lib import assert_close, tf

spec = tf.TensorSpec
X = [0.5, -0.5, -1.5]
W = [1.0, -2.0, 3.0]


def kept(y, p):
    return tf.boolean_mask(y, p > -1.0)


def recomputed(w, p):
    return tf.recompute_grad(lambda q: kept(w * q, q))(p)


def own_gradient(w, p):
    @tf.custom_gradient
    def f(q):
        def grad(g, variables):
            return tf.zeros_like(q) + tf.reduce_sum(g), [tf.ones([3]) * tf.reduce_sum(g) for _ in variables]

        return kept(w * q, q), grad

    return f(p)


def mapped(w, p):
    return tf.map_fn(lambda r: tf.reduce_sum(tf.boolean_mask(w * r, w * r > -5.0)), p)


def folded(w, p):
    return tf.foldl(lambda a, r: a + tf.reduce_sum(tf.boolean_mask(w * r, w > 0.0)), p, initializer=0.0)


def scanned(w, p):
    return tf.scan(lambda a, r: a + tf.reduce_sum(tf.boolean_mask(w * r, w > 0.0)), p, initializer=0.0)


def read_in_map(w, p):
    twice = w * 2.0
    return tf.map_fn(lambda r: tf.reduce_sum(tf.boolean_mask(twice * r, twice > 0.0)), p)


def looped(w, p):
    twice = w * 2.0
    start = tf.constant(0), p
    anything = tf.TensorShape([]), tf.TensorShape([None])
    step = lambda i, c: (i + 1, tf.concat([c, kept(twice * p, p)], 0))  # noqa: E731
    return tf.while_loop(lambda i, c: i < 2, step, start, shape_invariants=anything)[1]


EXPECTED = {  # gradients with respect to x and w
    recomputed: ([1, -2, 0], [0.5, -0.5, 0]),
    own_gradient: ([2, 2, 2], [2, 2, 2]),
    mapped: ([2, 2, 2], [-1.5, -1.5, -1.5]),
    folded: ([4, 4, 4], [-1.5, 0, -1.5]),
    scanned: ([12, 8, 4], [-1.0, 0, -1.0]),
    read_in_map: ([8, 8, 8], [-3, 0, -3]),
    looped: ([5, -7, 1], [2, -2, 0]),
}


@pytest.mark.parametrize("size", [3, None])
@pytest.mark.parametrize("f", EXPECTED, ids=lambda f: f.__name__)
def test_variables_that_they_read_have_gradients(f, size):
    w = tf.Variable(W)

    @tf.function(input_signature=[spec([size])])
    def gradients(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(w, x)
        return tape.gradient(y, [x, w])

    for _ in range(2):
        for g, wanted in zip(gradients(tf.constant(X)), EXPECTED[f], strict=True):
            assert_close(g, np.array(wanted, np.float32), atol=1e-6)


def traced(f):
    """The function, traced."""
    function = tf.function(f, input_signature=[spec([None, 3])])
    function.get_concrete_function()
    return function


def test_tracing_assigns_nothing():
    count = tf.Variable(0.0)

    def row(r):
        count.assign_add(1.0)
        return tf.reduce_sum(tf.boolean_mask(r, r > 0.0))

    f = traced(lambda x: tf.map_fn(row, x))
    assert count.numpy() == 0.0
    assert_close(f([[1.0, -2.0, 3.0], [-1.0, -2.0, 4.0]]), [4.0, 4.0])
    assert count.numpy() == 2.0


def test_tracing_prints_nothing(capfd):
    def row(r):
        tf.print("a row")
        return tf.reduce_sum(tf.boolean_mask(r, r > 0.0))

    f = traced(lambda x: tf.map_fn(row, x))
    assert "a row" not in capfd.readouterr().err
    f([[1.0, -2.0, 3.0], [-1.0, -2.0, 4.0]])
    assert capfd.readouterr().err.count("a row") == 2


def test_tracing_runs_no_python_function():
    seen = []

    def python(r):
        seen.append(r.numpy().tolist())
        return r

    def row(r):
        return tf.reduce_sum(tf.boolean_mask(tf.py_function(python, [r], tf.float32), r > 0.0))

    f = traced(lambda x: tf.map_fn(row, x))
    assert seen == []
    assert_close(f([[1.0, -2.0, 3.0], [-1.0, -2.0, 4.0]]), [4.0, 4.0])
    assert seen == [[1.0, -2.0, 3.0], [-1.0, -2.0, 4.0]]


def test_tracing_draws_no_numbers():
    tf.random.set_seed(3)
    expected = tf.random.uniform([2]).numpy()
    tf.random.set_seed(3)
    traced(lambda x: tf.map_fn(lambda r: tf.reduce_sum(tf.random.uniform(tf.shape(r[r > 0.0]))), x))
    assert np.array_equal(tf.random.uniform([2]), expected)


def test_jacobian_of_a_way_not_taken():
    w = tf.Variable([2.0, 3.0])

    @tf.function(input_signature=[spec([None])])
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * 2.0, lambda: w * 3.0)
        return tape.jacobian(y, [x, w])

    for _ in range(2):
        of_x, of_w = f([1.0, 2.0])
        assert_close(of_x, [[2.0, 0.0], [0.0, 2.0]])
        assert_close(of_w, [[0.0, 0.0], [0.0, 0.0]])
        of_x, of_w = f([-1.0, -2.0])
        assert_close(of_x, [[0.0, 0.0], [0.0, 0.0]])
        assert_close(of_w, [[3.0, 0.0], [0.0, 3.0]])
