"""`tf.optimizers.scipy_minimize`: every method of SciPy, with derivatives from the tape."""

import numpy as np
import pytest

import gradtape as tf

optimize = pytest.importorskip("scipy.optimize")
minimize = tf.optimizers.scipy_minimize
START = tf.constant([1.3, 0.7, 0.8, 1.9, 1.2], tf.float64)


def rosenbrock(x):
    return tf.reduce_sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


METHODS = {
    "Powell": 1e-6, "CG": 1e-4, "BFGS": 1e-4, "Newton-CG": 1e-2, "L-BFGS-B": 1e-4, "TNC": 1e-2, "COBYQA": 1e-4,
    "SLSQP": 1e-4, "trust-ncg": 1e-3, "trust-krylov": 1e-4, "trust-exact": 1e-4, "trust-constr": 1e-4,
}  # fmt: skip


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_methods_find_the_minimum(method, compiled):
    if not compiled and method in ("Powell", "COBYQA"):
        pytest.skip("asks for a thousand values")
    found = minimize(rosenbrock, START, method=method, compiled=compiled)
    assert np.allclose(found.x.numpy(), 1, atol=METHODS[method]), found
    assert found.x.dtype == tf.float64 and found.x.shape == (5,)


def test_dogleg_needs_a_convex_place():
    found = minimize(rosenbrock, tf.constant([1.02, 1.03], tf.float64), method="dogleg")
    assert np.allclose(found.x.numpy(), 1, atol=1e-4)


@pytest.mark.parametrize("method", ["Nelder-Mead", "COBYLA"])
def test_methods_without_derivatives(method):
    found = minimize(lambda x: tf.reduce_sum((x - 2.0) ** 2), tf.constant([1.0, 1.0]), method=method)
    assert np.allclose(found.x.numpy(), 2, atol=1e-3) and found.x.dtype == tf.float32


def test_derivatives_are_exact():
    """One Newton step solves a quadratic problem; with finite differences it would not."""
    a = np.diag([1.0, 10.0, 100.0])
    steps = []
    found = minimize(
        lambda x: 0.5 * tf.reduce_sum(x * tf.linalg.matvec(a, x)) - tf.reduce_sum(x), np.zeros(3), method="trust-exact",
        callback=steps.append, options={"initial_trust_radius": 10.0},
    )  # fmt: skip
    assert np.allclose(found.x.numpy(), [1, 0.1, 0.01], atol=1e-12) and len(steps) == 1
    assert steps[0].shape == (3,)


def test_variables_hold_the_result():
    v, w = tf.Variable([1.0, 2.0]), tf.Variable(3.0, dtype=tf.float64)
    found = minimize(lambda: tf.reduce_sum((v - 3.0) ** 2) + tf.cast((w - 1.0) ** 2, tf.float32), [v, w])
    assert np.allclose(v.numpy(), 3, atol=1e-4) and np.allclose(w.numpy(), 1, atol=1e-4)
    assert [x.dtype for x in found.x] == [tf.float32, tf.float64]
    minimize(lambda p: tf.reduce_sum((p[0] - 5.0) ** 2), [v], method="Newton-CG")
    assert np.allclose(v.numpy(), 5, atol=1e-4)


def test_nests_of_unknowns():
    start = {"a": np.zeros((2, 2)), "b": [np.array(0.5), np.array([1.0])]}

    def fun(p):
        return tf.reduce_sum((p["a"] - 3.0) ** 2) + (p["b"][0] - 1.0) ** 2 + tf.reduce_sum(p["b"][1] ** 2)

    for method in ("BFGS", "trust-ncg", "trust-exact"):
        found = minimize(fun, start, method=method).x
        assert np.allclose(found["a"], 3, atol=1e-4) and found["a"].shape == (2, 2)
        assert np.allclose(found["b"][0], 1, atol=1e-4) and np.allclose(found["b"][1], 0, atol=1e-4)


def test_bounds():
    start = tf.constant([3.0, 4.0], tf.float64)
    for bounds in ((1.0, 5.0), [(1.0, 5.0), (1.0, 5.0)], optimize.Bounds(1.0, 5.0)):
        assert np.allclose(minimize(lambda x: tf.reduce_sum(x**2), start, bounds=bounds).x.numpy(), 1)


def test_constraints():
    def fun(x):
        return tf.reduce_sum(x**2)

    start = tf.constant([3.0, 4.0], tf.float64)
    by_words = {"type": "eq", "fun": lambda x: x[0] + x[1] - 1.0}
    assert np.allclose(minimize(fun, start, constraints=by_words).x.numpy(), 0.5)
    two = [
        {"type": "ineq", "fun": lambda x: x[0] - 1.0},
        {"type": "ineq", "fun": lambda x: tf.stack([x[1] - 2.0, x[1]])},
    ]
    assert np.allclose(minimize(fun, start, constraints=two).x.numpy(), [1, 2], atol=1e-6)
    product = optimize.NonlinearConstraint(lambda x: x[0] * x[1], 1.0, np.inf)
    assert np.allclose(
        minimize(fun, start, method="trust-constr", constraints=product).x.numpy(), 1, atol=1e-2
    )
    line = optimize.LinearConstraint([[1.0, 1.0]], 1.0, 1.0)
    assert np.allclose(minimize(fun, start, method="SLSQP", constraints=line).x.numpy(), 0.5)


def test_the_function_is_traced_once():
    calls = []

    def fun(x):
        calls.append(1)
        return tf.reduce_sum((x - 1.0) ** 4)

    minimize(fun, tf.zeros([3], tf.float64), method="L-BFGS-B")
    assert len(calls) == 1


def test_wrong_input():
    with pytest.raises(ValueError, match="must return a number"):
        minimize(lambda x: x**2, tf.ones([2]))
    with pytest.raises(ValueError, match="not connected"):
        minimize(lambda x: tf.constant(1.0), tf.ones([2]))
    with pytest.raises(ValueError, match="holds no numbers"):
        minimize(lambda x: tf.constant(1.0), [])
    with pytest.raises(ValueError, match="Unknown solver"):
        minimize(rosenbrock, START, method="nothing")


# ---- loss scaling ---------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [False, True])
def test_loss_scale_optimizer(compiled):
    opt = tf.optimizers.LossScaleOptimizer(tf.optimizers.SGD(0.25), initial_scale=4.0, dynamic_growth_steps=2)
    v = tf.Variable([1.0, 2.0])

    def step(factor):
        with tf.GradientTape() as tape:
            loss = opt.scale_loss(tf.reduce_sum(v**2) * factor)
        opt.apply_gradients([(tape.gradient(loss, v), v)])

    step = tf.function(step) if compiled else step
    seen = []
    for factor in (1.0, 1.0, np.inf, 1.0):
        step(tf.constant(factor))
        seen.append((v.numpy().tolist(), float(opt.loss_scale), int(opt.step_counter), int(opt.iterations)))
    assert seen == [
        ([0.5, 1.0], 4.0, 1, 1),
        ([0.25, 0.5], 8.0, 0, 2),
        ([0.25, 0.5], 4.0, 0, 2),  # infinite: left out
        ([0.125, 0.25], 4.0, 1, 3),
    ]


def test_scaled_losses_as_in_keras_2():
    v = tf.Variable(2.0)
    opt = tf.optimizers.LossScaleOptimizer(tf.optimizers.SGD(0.5), initial_scale=1024.0)
    with tf.GradientTape() as tape:
        loss = opt.get_scaled_loss(v * v)
    grads = opt.get_unscaled_gradients(tape.gradient(loss, [v]))
    assert loss.numpy() == 4096 and grads[0].numpy() == 4
    opt.apply_gradients(zip(grads, [v], strict=True))
    assert v.numpy() == 0
    opt.minimize(lambda: (v - 3.0) ** 2, [v])
    assert v.numpy() == 3
    assert opt.learning_rate.numpy() == 0.5 and len(opt.variables) == 4


def test_a_fixed_scale_and_configurations():
    opt = tf.optimizers.LossScaleOptimizer(tf.optimizers.Adam(0.5), 8.0, dynamic=False)
    v = tf.Variable(1.0)
    opt.apply_gradients([(tf.constant(np.inf), v)])
    assert float(opt.loss_scale) == 8 and v.numpy() == 1
    copy = tf.optimizers.LossScaleOptimizer.from_config(opt.get_config())
    assert copy.initial_scale == 8 and float(copy.learning_rate) == 0.5
    with pytest.raises(TypeError, match="expected an optimizer"):
        tf.optimizers.LossScaleOptimizer("adam")


def test_sparse_gradients_are_scaled():
    v = tf.Variable(tf.ones([4, 2]))
    opt = tf.optimizers.LossScaleOptimizer(tf.optimizers.SGD(1.0), 2.0)
    with tf.GradientTape() as tape:
        loss = opt.scale_loss(tf.reduce_sum(tf.gather(v, [1, 1])))
    opt.apply_gradients([(tape.gradient(loss, v), v)])
    assert v.numpy()[:, 0].tolist() == [1, -1, 1, 1]
