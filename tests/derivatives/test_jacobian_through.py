"""Jacobians through everything a program may contain: branches, loops, arrays, custom
gradients, Python code, sorts, gathers, segments, and Jacobians of Jacobians."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gradtape as tf
from gradtape import _core
from gradtape._src.batching import jacobian as implementation

from .differences import compiling, differences, mode
from .test_jacobian import MODES, check, double, jacobian

X = double(0.7, -1.2, 2.0)


# ---- branches -----------------------------------------------------------------------------------


def branch(x):
    return tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * tf.reduce_sum(x), lambda: tf.sin(x))


def switch(x):
    k = tf.cast(tf.reduce_sum(x) > 0.0, tf.int32)
    return tf.switch_case(k, [lambda: x, lambda: x**2 * x[0], lambda: tf.exp(x)])


def nested_branches(x):
    def inner():
        return tf.cond(x[0] > 0.0, lambda: x**3, lambda: x**2)

    return tf.cond(x[1] > 0.0, lambda: x, inner) * tf.reduce_sum(x)


def autograph_branch(x):
    if tf.reduce_sum(x) > 0.0:
        y = x * x[0]
    elif x[0] > 0.0:
        y = tf.sin(x)
    else:
        y = x
    return y * 2.0


# ---- loops --------------------------------------------------------------------------------------


def counted_loop(x):
    return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x + tf.sin(y)), [0, x])[1]


def loop_by_value(x):
    return tf.while_loop(
        lambda y: tf.reduce_sum(y * y) < 50.0, lambda y: (y * 1.5 + tf.reverse(x, [0]),), [x]
    )[0]


def loop_that_never_runs(x):
    return tf.while_loop(lambda y: tf.reduce_sum(y) > 1e9, lambda y: (y * y,), [x * x])[0]


def loop_with_a_branch(x):
    def body(i, y):
        return i + 1, tf.cond(y[0] > 1.0, lambda: y / 2.0, lambda: y * x + 1.0)

    return tf.while_loop(lambda i, y: i < 4, body, [0, x])[1]


def nested_loops(x):
    def outer(i, y):
        y = tf.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, tf.sin(z) * x), [0, y])[1]
        return i + 1, y + x

    return tf.while_loop(lambda i, y: i < 3, outer, [0, x])[1]


def autograph_loop(x):
    y = x
    for i in tf.range(3):
        y = y * x + tf.cast(i, tf.float64)
        if y[0] > 100.0:
            break
    return y


def array(x):
    ta = tf.TensorArray(tf.float64, size=3)
    ta = tf.while_loop(lambda i, ta: i < 3, lambda i, ta: (i + 1, ta.write(i, x[i] ** 2 * x)), [0, ta])[1]
    return ta.stack()


def array_read_back(x):
    ta = tf.TensorArray(tf.float64, size=3, clear_after_read=False).unstack(x * x)
    return ta.read(2) * ta.stack()


FUNCTIONS = {
    "cond": branch,
    "switch_case": switch,
    "nested cond": nested_branches,
    "case": lambda x: tf.case([(x[0] > 5.0, lambda: x), (x[0] > 0.0, lambda: x * x[1])], default=lambda: -x),
    "while": counted_loop,
    "while by value": loop_by_value,
    "while never": loop_that_never_runs,
    "while with cond": loop_with_a_branch,
    "nested while": nested_loops,
    "TensorArray": array,
    "TensorArray read": array_read_back,
    "map_fn": lambda x: tf.map_fn(lambda r: r**2 * x, x),
    "map_fn of two": lambda x: tf.map_fn(lambda r: r[0] * r[1], (x, x * x), fn_output_signature=tf.float64),
    "scan": lambda x: tf.scan(lambda a, r: a * r + x, x, initializer=x * 0.5),
    "scan reversed": lambda x: tf.scan(lambda a, r: a * r + 1.0, x, reverse=True),
    "foldl": lambda x: tf.foldl(lambda a, r: a * r + x, x, initializer=x),
    "foldr": lambda x: tf.foldr(lambda a, r: a * r + x, x, initializer=x),
    "vectorized_map": lambda x: tf.vectorized_map(lambda r: tf.sin(r) * x, x),
    "function": lambda x: tf.function(lambda x: tf.tanh(x) * x[0])(x),
    "function with cond": lambda x: tf.function(branch)(x),
    "function with if": lambda x: tf.function(autograph_branch)(x),
    "function with for": lambda x: tf.function(autograph_loop)(x),
    "function with while": lambda x: tf.function(loop_by_value)(x),
    "recompute_grad": lambda x: tf.recompute_grad(lambda x: tf.sin(x) * tf.reduce_sum(x))(x),
    # ops that move, pick and order
    "sort": lambda x: tf.sort(x * x[0]),
    "argsort and gather": lambda x: tf.gather(x * x, tf.argsort(x)),
    "top_k": lambda x: tf.math.top_k(x * x, 2).values,
    "gather": lambda x: tf.gather(x, [[0, 2], [1, 1]]) * x[0],
    "gather by position": lambda x: tf.gather(x * x, tf.argmax(x)),
    "gather_nd": lambda x: tf.gather_nd(tf.tensordot(x, x, 0), [[0, 1], [2, 2], [2, 0]]),
    "gather with batch_dims": lambda x: tf.gather(
        tf.tensordot(x, x, 0), [[0, 1], [2, 2], [1, 0]], batch_dims=1, axis=1
    ),
    "scatter_nd": lambda x: tf.scatter_nd([[4], [1], [1]], x * x, [5]),
    "tensor_scatter_nd_update": lambda x: tf.tensor_scatter_nd_update(x, [[1]], [x[0] * x[2]]),
    "tensor_scatter_nd_add": lambda x: tf.tensor_scatter_nd_add(x * x, [[1], [1]], x[:2]),
    "segment_sum": lambda x: tf.math.segment_sum(x * x, [0, 0, 1]),
    "segment_max": lambda x: tf.math.segment_max(x * x[0], [0, 0, 1]),
    "segment_mean": lambda x: tf.math.segment_mean(x**2, [0, 1, 1]),
    "unsorted_segment_prod": lambda x: tf.math.unsorted_segment_prod(x, [1, 0, 1], 3),
    "one_hot": lambda x: tf.one_hot([0, 2, 1], 3, dtype=tf.float64) * x,
    "where": lambda x: tf.where(x > 0.0, x * x, -x),
    "strided slices": lambda x: tf.stack([x[::-1] * x, x[::2][:1] * x]),
    "concat, split, stack": lambda x: tf.concat([tf.split(x, 3)[1], tf.stack([x, x * x])[1]], 0),
    "pad, tile, roll": lambda x: tf.tile(tf.roll(tf.pad(x, [[1, 2]]), 2, 0), [2]) ** 2,
    "cumsum, cumprod": lambda x: tf.cumsum(x * x, reverse=True) * tf.math.cumprod(x, exclusive=True),
    "reductions": lambda x: tf.stack(
        [tf.reduce_max(x), tf.reduce_prod(x), tf.reduce_logsumexp(x), tf.norm(x), tf.math.reduce_std(x)]
    ),
    "einsum": lambda x: tf.einsum("i,j,k->kij", x, x, x),
    "matmul": lambda x: tf.matmul(tf.tensordot(x, x, 0), tf.tensordot(x, x * x, 0), transpose_a=True),
    "softmax": lambda x: tf.nn.softmax(x) * tf.nn.log_softmax(x),
    "cross entropy": lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits([2, 0], tf.stack([x, x * x])),
    "broadcasts": lambda x: (x[:, None] * x - x[None, :, None]) / (1.0 + x**2),
    "stop_gradient": lambda x: x * tf.stop_gradient(X * X),
    "clip": lambda x: tf.clip_by_value(x, -1.0, 1.0) * tf.clip_by_norm(x, 1.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_through(name):
    check(FUNCTIONS[name], X, 1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_order_through(name):
    """The Jacobian of the Jacobian, as differences of it."""
    f = FUNCTIONS[name]
    if name == "stop_gradient":
        pytest.skip("it is linear")

    def first(x):
        return jacobian(f, x)

    expected = differences(lambda a: first(tf.constant(a)).numpy(), X.numpy())
    for setting in (True, True, False):
        with compiling(setting):
            np.testing.assert_allclose(_zero(jacobian(first, X), expected), expected, rtol=1e-5, atol=1e-5)
    inside = tf.function(lambda x: jacobian(first, x))
    np.testing.assert_allclose(_zero(inside(X), expected), expected, rtol=1e-5, atol=1e-5)


def _zero(j, like):
    return np.zeros_like(like) if j is None else j


# ---- linear algebra, images ---------------------------------------------------------------------

M = double([[2.0, 0.3, -0.1], [0.3, 1.5, 0.2], [-0.1, 0.2, 1.0]])

MATRICES = {
    "cholesky": lambda m: tf.linalg.cholesky((m + tf.transpose(m)) / 2.0),
    "inv": lambda m: tf.linalg.inv(m),
    "solve": lambda m: tf.linalg.solve(m, m[:, :2]),
    "det": lambda m: tf.linalg.det(m) * m,
    "logdet": lambda m: tf.linalg.logdet(tf.matmul(m, m, transpose_b=True)) * m[0],
    "triangular_solve": lambda m: tf.linalg.triangular_solve(m, m[:, :1]),
    "band_part, diag": lambda m: tf.linalg.band_part(m, 1, 0) + tf.linalg.diag(tf.linalg.diag_part(m) ** 2),
    "eigh": lambda m: tf.linalg.eigh((m + tf.transpose(m)) / 2.0)[0],
    "svd": lambda m: tf.linalg.svd(m, compute_uv=False),
    "qr": lambda m: tf.linalg.qr(m)[1],
    "matrix_exp": lambda m: tf.linalg.expm(m),
    "conv": lambda m: tf.nn.conv2d(m[None, :, :, None], m[:2, :2, None, None], 1, "SAME"),
    "max_pool": lambda m: tf.nn.max_pool2d(m[None, :, :, None], 2, 1, "VALID"),
    "avg_pool": lambda m: tf.nn.avg_pool2d(m[None, :, :, None] ** 2, 2, 1, "SAME"),
}


def exists(f):
    try:
        f(M)
    except (AttributeError, NotImplementedError):
        return False
    return True


@pytest.mark.parametrize("name", [n for n in MATRICES if exists(MATRICES[n])])
def test_matrices(name):
    check(MATRICES[name], M, 1e-6)


# ---- custom gradients ----------------------------------------------------------------


@tf.custom_gradient
def cube(x):
    return x**3, lambda g: 3.0 * g * x**2


@tf.custom_gradient
def wrong_cube(x):
    return x**3, lambda g: 7.0 * g


@tf.custom_gradient
def cube_by_numpy(x):
    def grad(g):
        return tf.constant(3.0 * g.numpy() * x.numpy() ** 2)

    return x**3, grad


@tf.custom_gradient
def cube_that_looks(x):
    def grad(g):
        if tf.reduce_sum(g) > 100.0:  # a decision in Python
            return -g
        return 3.0 * g * x**2

    return x**3, grad


@tf.custom_gradient
def two_results(x, y):
    def grad(g, h):
        return g * y + h, tf.reduce_sum(g * x) * tf.ones_like(y)

    return [x * y, tf.identity(x)], grad


@pytest.mark.parametrize("f", [cube, cube_by_numpy, cube_that_looks])
@pytest.mark.parametrize("times", [1, 3])
def test_custom_gradients(f, times):
    expected = differences(lambda x: x**3 * x.sum(), X.numpy())
    with compiling(True):
        for name in MODES:
            for _ in range(times):
                with mode(name):
                    j = jacobian(lambda x: f(x) * tf.reduce_sum(x), X)
                np.testing.assert_allclose(j, expected, rtol=1e-7)


@pytest.mark.parametrize("f", [cube, cube_that_looks])
@pytest.mark.parametrize("setting", [True, False])
def test_second_order_beside_custom_gradients(f, setting):
    """Results that other ops save as residuals are differentiated too."""

    def g(x):
        return tf.sin(f(x)) * tf.exp(x) * tf.reduce_sum(x)

    def plain(x):
        return tf.sin(x**3) * tf.exp(x) * tf.reduce_sum(x)

    expected = differences(lambda a: jacobian(plain, tf.constant(a)).numpy(), X.numpy())
    with compiling(setting):
        for name in MODES:
            with mode(name):
                for _ in range(3):
                    got = jacobian(lambda x: jacobian(g, x), X)
                    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
        with tf.GradientTape() as tape:
            tape.watch(X)
            j = jacobian(g, X)
        np.testing.assert_allclose(tape.gradient(j, X), expected.sum((0, 1)), rtol=1e-5, atol=1e-6)


def test_the_custom_gradient_counts():
    for name in MODES:
        with mode(name):
            np.testing.assert_array_equal(jacobian(wrong_cube, X), 7 * np.eye(3))
            inside = tf.function(lambda x: jacobian(wrong_cube, x))
            np.testing.assert_array_equal(inside(X), 7 * np.eye(3))
            with tf.GradientTape() as tape:
                tape.watch(X)
                y = tf.function(wrong_cube)(X)
            np.testing.assert_array_equal(tape.jacobian(y, X), 7 * np.eye(3))


def test_custom_gradients_that_look_at_values_with_sizes_0_and_1():
    for n in (0, 1):
        x = tf.ones([n], tf.float64)
        np.testing.assert_array_equal(jacobian(cube_by_numpy, x), 3 * np.eye(n))


def test_custom_gradients_that_look_at_values_under_a_tape():
    with tf.GradientTape() as outer:
        outer.watch(X)
        j = jacobian(lambda x: cube_that_looks(x), X)
    np.testing.assert_allclose(outer.gradient(j, X), 6 * X.numpy())


def test_custom_gradient_of_several_results():
    x, y = X, double(3.0)

    def f(x, y):
        a, b = two_results(x, y)
        return a * b

    for name in MODES:
        with mode(name):
            jx, jy = jacobian(f, x, y)
        np.testing.assert_allclose(jx, np.diag(2 * X.numpy() * 3.0), rtol=1e-12)
        np.testing.assert_allclose(jy, X.numpy() * X.numpy(), rtol=1e-12)


def test_custom_gradient_with_variables():
    v = tf.Variable(2.0, dtype=tf.float64)

    @tf.custom_gradient
    def f(x):
        def grad(g, variables=None):
            return g * v, [tf.reduce_sum(g * x) for _ in variables]

        return x * v, grad

    for name in MODES:
        with mode(name):
            with tf.GradientTape() as tape:
                tape.watch(X)
                y = f(X) ** 2
            jx, jv = tape.jacobian(y, [X, v])
        np.testing.assert_allclose(jx, np.diag(8 * X.numpy()))
        np.testing.assert_allclose(jv, 4 * X.numpy() ** 2)


def test_custom_gradient_with_a_branch_and_a_loop():
    @tf.custom_gradient
    def f(x):
        def grad(g):
            g = tf.cond(x[0] > 0.0, lambda: g * 2.0, lambda: g)
            return tf.while_loop(lambda i, g: i < 2, lambda i, g: (i + 1, g * x), [0, g])[1]

        return tf.identity(x), grad

    for name in MODES:
        with mode(name):
            for _ in range(3):
                np.testing.assert_allclose(jacobian(f, X), np.diag(2 * X.numpy() ** 2))


@tf.primitive(vjp=lambda g, x, out: g * (1.0 - out * out), name="test_squashed")
def squashed(x):
    return np.tanh(x)


@tf.primitive(name="test_halved_at_most")
def halved_at_most(x):
    return tf.minimum(x, 0.5)


@tf.primitive(vjp=lambda g, x, out: 3.0 * g, linear="x", pattern="aligned", name="test_thrice")
def thrice(x):
    return 3.0 * np.asarray(x)


@tf.primitive(name="test_raised")
def raised(x, n=1):
    return x if n == 1 else x**n


@tf.primitive(name="test_times")
def times(x, y):
    return x * y * 2.0


def by_norm(g):
    return tf.cond(tf.norm(g) > 0.5, lambda: g / tf.norm(g) * 0.5, lambda: g)


NOT_LINEAR = {
    "clip_by_value": lambda g: tf.clip_by_value(g, -0.3, 0.4),
    "clip_by_norm": lambda g: tf.clip_by_norm(g, 0.5),
    "sign": tf.sign,
    "noise": lambda g: g + 0.1,
    "selected": lambda g: tf.where(g > 0.5, g, 2.0),
    "a branch": by_norm,
    "a loop": lambda g: tf.while_loop(lambda g: tf.norm(g) > 0.5, lambda g: (g / 2.0,), [g])[0],
    "squares": lambda g: g * g * 3.0,
    "rounded": lambda g: tf.cast(tf.cast(g * 2.5, tf.int32), tf.float64),
    "numpy": lambda g: tf.reshape(tf.numpy_function(np.tanh, [g], tf.float64), g.shape),
    "function": tf.function(by_norm),
    "softmax": tf.nn.softmax,
    "sorted": lambda g: tf.sort(g, direction="DESCENDING"),
    "the largest": lambda g: tf.gather(g, tf.argmax(g)) * tf.ones_like(g),
    "cumulated": lambda g: tf.math.cumprod(g + 1.0),
    "a cubic form": lambda g: tf.linalg.matvec(tf.tensordot(g, g, 0), g + 1.0),
    "normalised": lambda g: tf.math.l2_normalize(g),
    "an op of the user's": lambda g: squashed(g),
    "an op of the user's, made of ops": lambda g: halved_at_most(g),
    "joined with a number": lambda g: tf.concat([g[:2], [0.7]], 0),
    "padded": lambda g: tf.pad(g[:2], [[0, 1]], constant_values=0.7),
    "stopped": lambda g: tf.stop_gradient(g) * 2.0,
    "not read": lambda g: tf.identity(X),
    "a matrix function": lambda g: tf.linalg.expm(tf.linalg.diag(g))[0],
    "two of the user's": lambda g: squashed(squashed(g) + g),
    "one attribute of two": lambda g: raised(g, n=1) + raised(g + 0.5 * X, n=2),
}

LINEAR = {
    "scaled": lambda g: 2.0 * g * X,
    "masked": lambda g: tf.where(X > 0.0, g, 0.0),
    "moved": lambda g: tf.roll(tf.reverse(g, [0]), 1, 0),
    "summed": lambda g: tf.cumsum(g) / 3.0 - tf.reduce_mean(g),
    "product": lambda g: tf.linalg.matvec(tf.tensordot(X, X, 0), g),
    "a branch": lambda g: tf.cond(X[0] > 0.0, lambda: g * 2.0, lambda: g),
    "gathered": lambda g: tf.gather(g, [2, 0, 1]) + tf.tensor_scatter_nd_add(g, [[1]], [g[0]]),
    "an op of the user's": lambda g: thrice(g),
    "an op of the user's, made of ops": lambda g: times(g, X),
    "one attribute": lambda g: raised(g, n=1),
    "joined with zeros": lambda g: tf.concat([g[:2], tf.zeros([1], tf.float64)], 0),
    "split and joined": lambda g: tf.concat(tf.split(g, 3)[::-1], 0),
    "a recurrence": lambda g: tf.math.cumulative_logsumexp(X) * g,
}


@pytest.mark.parametrize("name", NOT_LINEAR)
@pytest.mark.parametrize("n", [3, 12, 0])
def test_gradients_that_are_not_linear(name, n):
    """Each row is the user's gradient for a unit cotangent, for all shapes."""

    @tf.custom_gradient
    def f(x):
        return tf.identity(x), NOT_LINEAR[name]

    def run(x):
        return tf.tile(f(x), [n // 3]) * 2.0

    rows = []
    for seed in np.eye(n):
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = run(X)
        rows.append(tape.gradient(y, X, output_gradients=tf.constant(seed)).numpy())
    expected = np.stack(rows) if n else np.zeros([0, 3])
    for _ in range(3):
        np.testing.assert_allclose(jacobian(run, X), expected)
    inside = tf.function(lambda x: jacobian(run, x))
    np.testing.assert_allclose(inside(X), expected)


@pytest.mark.parametrize("name", LINEAR)
def test_gradients_that_are_linear(name, monkeypatch):
    """Forward mode, where it is cheaper, gives the same as reverse mode."""

    @tf.custom_gradient
    def f(x):
        return tf.identity(x), LINEAR[name]

    def run(x):
        return tf.tile(f(x), [4]) * 2.0

    with mode("reverse"):
        expected = jacobian(run, X)
    taken = []
    original = implementation._pushed
    monkeypatch.setattr(implementation, "_pushed", lambda *args: taken.append(1) or original(*args))
    np.testing.assert_allclose(jacobian(run, X), expected, rtol=1e-12)
    assert taken


def test_an_error_in_a_custom_gradient_is_raised():
    @tf.custom_gradient
    def f(x):
        def grad(g):
            raise ValueError("not this way")

        return tf.identity(x), grad

    with pytest.raises(ValueError, match="not this way"):
        jacobian(f, X)


@pytest.mark.parametrize("times", [1, 3])
def test_py_function(times):
    def f(x):
        return tf.py_function(lambda x: tf.sin(x) * float(tf.reduce_sum(x)), [x], tf.float64)

    expected = np.diag(np.cos(X.numpy())) * X.numpy().sum()
    for _ in range(times):
        np.testing.assert_allclose(jacobian(f, X), expected, rtol=1e-6, atol=1e-9)
    inside = tf.function(lambda x: jacobian(f, x))
    np.testing.assert_allclose(inside(X), expected, rtol=1e-6, atol=1e-9)


def test_numpy_function_has_no_jacobian():
    def f(x):
        return tf.numpy_function(np.sin, [x], tf.float64)

    assert jacobian(f, X) is None
    np.testing.assert_array_equal(jacobian(lambda x: f(x) + x, X), np.eye(3))


# ---- nested -------------------------------------------------------------------------------------


def test_hessian_of_hessian():
    """Three deep: derivatives of order 2, 4 and 5."""
    x = double(0.5, -0.3)

    def f(x):
        return tf.exp(x[0] * x[1]) + tf.reduce_sum(x**5)

    def hessian(f):
        def h(x):
            with tf.GradientTape() as outer:
                outer.watch(x)
                with tf.GradientTape() as inner:
                    inner.watch(x)
                    y = f(x)
                g = inner.gradient(y, x)
            return outer.jacobian(g, x)

        return h

    def jac(f):
        return lambda x: jacobian(f, x)

    second = hessian(f)
    third = jac(second)
    fourth = jac(third)
    for g in (second, third, fourth):
        expected = differences(lambda a, g=g: g(tf.constant(a)).numpy(), x.numpy())
        for _ in range(3):
            np.testing.assert_allclose(jac(g)(x), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(tf.function(jac(third))(x), fourth(x), rtol=1e-12)


def test_a_jacobian_inside_a_persistent_tape():
    for _ in range(3):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(X)
            y = X**3
            j = tape.jacobian(y, X)
            h = tape.jacobian(j, X)
        k = tape.jacobian(h, X)
        i = np.arange(3)
        assert k.shape == [3] * 4
        np.testing.assert_allclose(j.numpy()[i, i], 3 * X.numpy() ** 2)
        np.testing.assert_allclose(h.numpy()[i, i, i], 6 * X.numpy())
        np.testing.assert_allclose(k.numpy()[i, i, i, i], 6.0)
        assert np.count_nonzero(k.numpy()) == 3


def test_the_gradient_of_a_jacobian_by_variables():
    """As in physics-informed networks: a loss with second derivatives, then gradients of weights."""
    w = tf.Variable(np.random.default_rng(0).normal(size=(2, 4)))
    u = tf.Variable(np.random.default_rng(1).normal(size=(4, 1)))
    x = tf.constant(np.random.default_rng(2).normal(size=(5, 2)))

    def loss(x):
        with tf.GradientTape() as t2:
            t2.watch(x)
            with tf.GradientTape() as t1:
                t1.watch(x)
                y = tf.matmul(tf.tanh(tf.matmul(x, w)), u)
            j = t1.batch_jacobian(y, x)[:, 0]
        h = t2.batch_jacobian(j, x)
        return tf.reduce_mean(tf.linalg.trace(h) ** 2) if hasattr(tf.linalg, "trace") else None

    def value(a):
        w.assign(a)
        return loss(x).numpy()

    at = w.numpy()
    expected = differences(value, at)
    w.assign(at)
    for call in (loss, loss, loss, tf.function(loss)):
        with tf.GradientTape() as tape:
            y = call(x)
        np.testing.assert_allclose(tape.gradient(y, w), expected, rtol=1e-5, atol=1e-7)


def test_jacobians_inside_loops_and_maps():
    def f(x):
        return x**3 - 2.0 * tf.reverse(x, [0])

    @tf.function
    def newton(x):
        for _ in tf.range(10):
            x = x - tf.linalg.solve(jacobian(f, x), f(x)[:, None])[:, 0]
        return x

    np.testing.assert_allclose(newton(double(1.5, 1.2, 2.0)), np.sqrt([2.0, 2.0, 2.0]))
    rows = tf.constant(np.arange(6.0).reshape(2, 3))
    expected = [jacobian(f, r) for r in tf.unstack(rows)]
    signature = tf.TensorSpec([3, 3], tf.float64)
    for g in (
        lambda x: tf.map_fn(lambda r: jacobian(f, r), x, fn_output_signature=signature),
        lambda x: tf.vectorized_map(lambda r: jacobian(f, r), x),
    ):
        np.testing.assert_allclose(g(rows), expected)
        np.testing.assert_allclose(tf.function(g)(rows), expected)


@pytest.mark.parametrize("inside", [False, True])
def test_variables_that_are_assigned_on_the_way(inside):
    v = tf.Variable([1.0, 2.0])

    def f():
        with tf.GradientTape() as tape:
            y = v * v
            v.assign_add([1.0, 1.0])
            z = y + v * v
        return tape.jacobian(z, v)

    np.testing.assert_array_equal((tf.function(f) if inside else f)(), np.diag([2 + 4, 4 + 6]))


def test_while_the_tape_does_not_record():
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        y = X * X
        with tape.stop_recording():
            j = tape.jacobian(y, X)
        z = j * 3.0
        w = tf.reduce_sum(j) * y
    assert tape.gradient(z, X) is None
    np.testing.assert_allclose(tape.gradient(w, X), 2 * X.numpy() * 2 * X.numpy().sum())


def test_subclasses_of_the_tape():
    class Tape(tf.GradientTape):
        def jacobian(self, target, sources):
            return 2.0 * super().jacobian(target, sources)

    with Tape() as tape:
        tape.watch(X)
        y = X * X
    np.testing.assert_allclose(tape.jacobian(y, X), np.diag(4 * X.numpy()))


@pytest.mark.parametrize("options", [{"jit_compile": True}, {"reduce_retracing": True}])
def test_options_of_functions(options):
    f = tf.function(lambda x: jacobian(tf.sin, x), **options)
    np.testing.assert_allclose(f(X), np.diag(np.cos(X.numpy())))


def test_functions_that_run_eagerly():
    tf.config.run_functions_eagerly(True)
    try:
        f = tf.function(lambda x: jacobian(tf.sin, x))
        np.testing.assert_allclose(f(X), np.diag(np.cos(X.numpy())))
    finally:
        tf.config.run_functions_eagerly(False)


def test_several_threads():
    def work(i):
        x = tf.constant(np.random.default_rng(i).normal(size=4))
        for _ in range(10):
            h = jacobian(lambda x: jacobian(lambda x: tf.sin(x) * tf.reduce_sum(x), x), x)
        return h.numpy()

    with ThreadPoolExecutor(4) as pool:
        for a, b in zip(pool.map(work, range(4)), map(work, range(4)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_jacobians_of_programs_are_programs():
    """A Jacobian that is requested again runs as one program, not op by op."""
    with compiling(True):
        for _ in range(6):
            jacobian(lambda x: tf.sin(x) * tf.reduce_sum(x), X)
        assert _core.compile_info()["failures"] == 0
