"""custom_gradient, recompute_grad, grad_pass_through (C1 to C10 of the behaviour to match)."""

import gc

import numpy as np
import pytest

import gradtape as tf
from gradtape import _core


def gradient(f, *xs):
    xs = [tf.convert_to_tensor(x) for x in xs]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    g = tape.gradient(y, xs)
    return g[0] if len(g) == 1 else g


def test_c1_arguments_pass_unconverted_and_results_are_new():
    seen = []

    @tf.custom_gradient
    def f(x):
        seen.append(x)
        return x, lambda dy: dy

    x = tf.constant(3.0)
    assert f(x) is not x and f(3.0).dtype is tf.float32
    assert seen[0] is x and seen[1] == 3.0 and isinstance(seen[1], float)


def test_c1_methods_and_lambdas():
    class Scaled:
        factor = 7.0

        @tf.custom_gradient
        def __call__(self, x):
            return x * 2, lambda dy: dy * self.factor

    assert gradient(Scaled(), 1.0).numpy() == 7.0
    assert gradient(tf.custom_gradient(lambda x: (x * 2, lambda dy: dy * 5)), 1.0).numpy() == 5.0


def test_c2_unused_results_have_zeros_and_counts_are_checked():
    seen = []

    @tf.custom_gradient
    def two(x):
        def grad(a, b):
            seen.append(b.numpy())
            return a * 2

        return (x, x * 3), grad

    assert gradient(lambda x: two(x)[0], 1.0).numpy() == 2.0
    assert seen == [0.0]
    with pytest.raises(ValueError, match="expected to return 2 gradients, but returned 1 instead"):
        gradient(tf.custom_gradient(lambda x, y: (x * y, lambda dy: dy)), 1.0, 2.0)
    structured = tf.custom_gradient(lambda d: (d["a"] * 2, lambda dy: {"a": dy * 5}))
    assert gradient(lambda x: structured({"a": x}), 1.0).numpy() == 5.0
    none = tf.custom_gradient(lambda x, y: (x * y, lambda dy: (dy, None)))
    gx, gy = gradient(none, 1.0, 2.0)
    assert gx.numpy() == 1.0 and gy is None


def test_c3_what_is_returned_is_not_checked():
    assert gradient(tf.custom_gradient(lambda x: (x * 2, lambda dy: tf.ones([7]))), 1.0).shape == (7,)
    assert gradient(tf.custom_gradient(lambda x: (x * 2, lambda dy: 3.0)), 1.0) == 3.0


def test_c4_keywords_have_no_gradient():
    f = tf.custom_gradient(lambda x, scale=None: (x * scale, lambda dy: dy * 9))
    x, s = tf.constant(1.0), tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, s])
        y = f(x, scale=s)
    assert tape.gradient(y, x).numpy() == 9.0
    assert tape.gradient(y, s) is None


def test_c5_captured_variables():
    v = tf.Variable(2.0)
    with pytest.raises(TypeError, match="must accept keyword argument 'variables'"):
        gradient(tf.custom_gradient(lambda x: (x * v, lambda dy: dy)), 1.0)

    @tf.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            assert variables == [v] or variables[0] is v
            return dy * 10, [dy * 20]

        return x * v, grad

    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert [g.numpy() for g in tape.gradient(y, [x, v])] == [10.0, 20.0]
    assert tape.watched_variables()[0] is v
    wrong = tf.custom_gradient(lambda x: (x * v, lambda dy, variables: (dy, [])))
    with pytest.raises(ValueError, match="Must return gradient for each variable"):
        gradient(wrong, 1.0)
    argument = tf.custom_gradient(lambda w: (w * 2, lambda dy: dy * 30))
    with tf.GradientTape() as tape:
        y = argument(v)
    assert tape.gradient(y, v).numpy() == 30.0


def test_c6_second_order_differentiates_the_code_of_grad():
    @tf.custom_gradient
    def exp(x):
        y = tf.exp(x)
        return y, lambda dy: dy * y

    @tf.custom_gradient
    def cube(x):
        return x**3, lambda dy: dy * 3 * x**2

    for f, x, first, second in ((exp, 1.0, np.e, np.e), (cube, 2.0, 12.0, 12.0)):
        x = tf.constant(x)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            g = inner.gradient(y, x)
        np.testing.assert_allclose(g, first, rtol=1e-6)
        np.testing.assert_allclose(outer.gradient(g, x), second, rtol=1e-6)


def test_c7_a_pair_is_needed():
    with pytest.raises(TypeError, match="terat"):
        tf.custom_gradient(lambda x: x * 2)(tf.constant(1.0))


def test_c9_recompute_grad():
    v, calls = tf.Variable(2.0), []

    @tf.recompute_grad
    def f(x, y):
        calls.append(1)
        return tf.sin(x * v) * y

    x, y = tf.constant(0.5), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        out = f(x, y)
        assert len(calls) == 1
    gx, gy, gv = tape.gradient(out, [x, y, v])
    assert len(calls) == 2
    np.testing.assert_allclose([gx, gy, gv], [6 * np.cos(1), np.sin(1), 1.5 * np.cos(1)], rtol=1e-6)


def test_c9_recompute_grad_keeps_nothing():
    def deep(x):
        for _ in range(20):
            x = tf.sin(x)
        return x

    x = tf.ones([100_000])
    kept = []
    for f in (deep, tf.recompute_grad(deep)):
        gc.collect()
        before = _core.memory_info()["live_bytes"]
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
            kept.append(_core.memory_info()["live_bytes"] - before)
        grad = tape.gradient(y, x)
        del tape, y
    assert kept[1] < kept[0] / 5
    assert grad.shape == x.shape


def test_c9_second_order_is_refused():
    f = tf.recompute_grad(lambda a: a * a * a)
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        g = inner.gradient(y, x)
    assert g.numpy() == 12.0
    with pytest.raises(NotImplementedError, match="recompute_grad tried to transpose grad"):
        outer.gradient(g, x)


def test_c10_grad_pass_through():
    assert gradient(tf.grad_pass_through(tf.floor), 1.5).numpy() == 1.0
    v = tf.Variable(0.0)
    x = tf.constant(7.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.grad_pass_through(v.assign)(x) * 2
    assert v.numpy() == 7.0
    assert tape.gradient(y, x).numpy() == 2.0


# ---- in functions -------------------------------------------------------------------------------


@tf.custom_gradient
def steep_square(x):
    def grad(upstream):
        return upstream * 100.0 * x

    return x * x, grad


@pytest.mark.parametrize("where", ["inside", "outside"])
def test_custom_gradient_in_a_function_to_second_order(where):
    x = tf.constant(2.0)

    def derivatives(f):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            g = inner.gradient(y, x)
        return y, g, outer.gradient(g, x)

    def f(x):
        return steep_square(x) * 3.0

    for _ in range(3):
        y, g, h = derivatives(tf.function(f)) if where == "outside" else tf.function(lambda: derivatives(f))()
        assert (y.numpy(), g.numpy(), h.numpy()) == (12.0, 600.0, 300.0)


def test_custom_gradient_with_variables_in_a_function():
    w = tf.Variable(2.0)

    @tf.custom_gradient
    def scale(x):
        def grad(upstream, variables=None):
            return upstream * 7.0, [upstream * 5.0 * x for _ in variables]

        return x * w, grad

    f = tf.function(lambda x: scale(x))
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    gx, gw = tape.gradient(y, [x, w])
    assert (y.numpy(), gx.numpy(), gw.numpy()) == (6.0, 7.0, 15.0)
