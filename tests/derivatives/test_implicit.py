"""Implicit differentiation: roots and minimisers found by solvers that no tape recorded."""

import numpy as np
import pytest

import gradtape as tf


def newton(a):
    y = 1.0
    for _ in range(30):
        y = 0.5 * (y + float(a) / y)
    return np.float64(y)


def test_a_root_to_second_order():
    root = tf.autodiff.implicit(newton, root=lambda y, a: y * y - a)
    a = tf.constant(9.0, tf.float64)
    with tf.GradientTape() as outer:
        outer.watch(a)
        with tf.GradientTape() as inner:
            inner.watch(a)
            y = root(a)
        g = inner.gradient(y, a)
    assert float(y) == pytest.approx(3)
    assert float(g) == pytest.approx(1 / 6)
    assert float(outer.gradient(g, a)) == pytest.approx(-1 / 4 / 27)


@pytest.mark.parametrize("linear_solve", ["direct", "cg", lambda times, b: _richardson(times, b)])
def test_a_minimiser_in_several_dimensions(linear_solve):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(8, 3))
    x, l2 = tf.constant(a), tf.Variable(0.5, dtype=tf.float64)
    target = tf.constant(rng.normal(size=8))

    def ridge(x, target, l2):
        m = x.numpy().T @ x.numpy() + float(l2) * np.eye(3)
        return np.linalg.solve(m, x.numpy().T @ target.numpy())

    def objective(w, x, target, l2):
        return tf.reduce_sum((tf.linalg.matvec(x, w) - target) ** 2) + l2 * tf.reduce_sum(w * w)

    fit = tf.autodiff.implicit(ridge, minimum=objective, linear_solve=linear_solve)
    with tf.GradientTape() as tape:
        tape.watch([x, target])
        loss = tf.reduce_sum(fit(x, target, l2) ** 3)
    gx, gt, gl = tape.gradient(loss, [x, target, l2])

    def value(a, t, reg):
        return np.sum(np.linalg.solve(a.T @ a + reg * np.eye(3), a.T @ t) ** 3)

    eps = 1e-6
    assert float(gl) == pytest.approx(
        (value(a, target.numpy(), 0.5 + eps) - value(a, target.numpy(), 0.5 - eps)) / (2 * eps), rel=1e-4
    )
    for i in range(8):
        d = eps * np.eye(8)[i]
        numeric = (value(a, target.numpy() + d, 0.5) - value(a, target.numpy() - d, 0.5)) / (2 * eps)
        assert float(gt[i]) == pytest.approx(numeric, rel=1e-4, abs=1e-8)
    d = np.zeros_like(a)
    d[2, 1] = eps
    numeric = (value(a + d, target.numpy(), 0.5) - value(a - d, target.numpy(), 0.5)) / (2 * eps)
    assert float(gx[2, 1]) == pytest.approx(numeric, rel=1e-4)


def _richardson(times, b):
    x = tf.zeros_like(b)
    for _ in range(2000):
        x = x + 0.02 * (b - times(x))
    return x


def test_nests_of_arguments_and_results():
    def solver(args):
        return {"sum": float(args["p"] + args["q"]), "product": float(args["p"] * args["q"])}

    def root(y, args):
        return {"sum": y["sum"] - args["p"] - args["q"], "product": y["product"] - args["p"] * args["q"]}

    f = tf.autodiff.implicit(solver, root=root)
    args = {"p": tf.constant(2.0), "q": tf.constant(5.0)}
    with tf.GradientTape() as tape:
        tape.watch(args)
        y = f(args)
        z = y["sum"] * y["product"]
    grads = tape.gradient(z, args)
    assert float(grads["p"]) == pytest.approx(10 + 35) and float(grads["q"]) == pytest.approx(10 + 14)


def test_no_step_of_the_solver_is_recorded():
    def solver(a):
        y = a
        for _ in range(50):
            y = tf.cos(y) * a
        return y

    f = tf.autodiff.implicit(solver, root=lambda y, a: y - tf.cos(y) * a)
    a = tf.constant(0.5)
    with tf.GradientTape() as tape:
        tape.watch(a)
        y = f(a)
    assert tape._size <= 3
    assert float(tape.gradient(y, a)) == pytest.approx(float(tf.cos(y) / (1 + 0.5 * tf.sin(y))), rel=1e-5)


def test_inside_a_function_it_runs_eagerly():
    root = tf.autodiff.implicit(newton, root=lambda y, a: y * y - a)

    @tf.function
    def f(a):
        with tf.GradientTape() as tape:
            tape.watch(a)
            y = root(a)
        return tape.gradient(y, a)

    assert float(f(tf.constant(16.0, tf.float64))) == pytest.approx(1 / 8)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({}, "either `root` or `minimum`"),
        ({"root": abs, "minimum": abs}, "either `root` or `minimum`"),
        ({"root": abs, "linear_solve": "lu"}, "linear_solve must be"),
    ],
)
def test_wrong_arguments(arguments, words):
    with pytest.raises(ValueError, match=words):
        tf.autodiff.implicit(newton, **arguments)


def test_a_condition_of_another_shape():
    f = tf.autodiff.implicit(lambda a: np.ones(3), root=lambda y, a: tf.reduce_sum(y) - a)
    a = tf.constant(3.0, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(a)
        y = f(a)
    with pytest.raises(ValueError, match="must have the shapes of the solution"):
        tape.gradient(y, a)


def test_a_solver_without_numbers():
    with pytest.raises(TypeError, match="floating"):
        tf.autodiff.implicit(lambda a: 3, root=lambda y, a: y - a)(tf.constant(1.0))
