"""tf.autodiff: jvp, vjp, hvp, jacobian, hessian, laplacian, per_example_gradient."""

import collections

import numpy as np
import pytest

import gradtape as tf
from gradtape import autodiff

from .differences import compiling, differences
from .test_jacobian import double

rng = np.random.default_rng(0)
X = double(0.7, -1.2, 2.0)
T = double(0.3, -1.0, 0.5)


def f(x):
    return tf.sin(x) * tf.reduce_sum(x * x)


def scalar(x):
    return tf.reduce_sum(tf.sin(x) * tf.reduce_sum(x * x))


def array(g):
    return lambda a: g(tf.constant(a)).numpy()


J = differences(array(f), X.numpy())


def gradient(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = scalar(x)
    return tape.gradient(y, x)


H = differences(array(gradient), X.numpy())


def everywhere(call, *args):
    """The results of a call in eager mode, again, and inside a function."""
    with compiling(True):
        results = [call(*args) for _ in range(3)]
        inside = tf.function(call)
        return [*results, inside(*args), inside(*args)]


def test_jvp():
    for y, dy in everywhere(lambda x, t: autodiff.jvp(f, x, t), X, T):
        np.testing.assert_allclose(y, f(X))
        np.testing.assert_allclose(dy, J @ T.numpy(), rtol=1e-7)


def test_vjp():
    y, pull = autodiff.vjp(f, X)
    np.testing.assert_allclose(y, f(X))
    for _ in range(3):  # any number of times
        np.testing.assert_allclose(pull(T), T.numpy() @ J, rtol=1e-7)
    np.testing.assert_allclose(pull(tf.ones([3], tf.float64)), J.sum(0), rtol=1e-7)
    inside = tf.function(lambda x, t: autodiff.vjp(f, x)[1](t))
    np.testing.assert_allclose(inside(X, T), T.numpy() @ J, rtol=1e-7)


def test_vjp_is_the_transpose_of_jvp():
    u = double(1.0, 2.0, -0.5)
    dy = autodiff.jvp(f, X, T)[1]
    gx = autodiff.vjp(f, X)[1](u)
    np.testing.assert_allclose(tf.reduce_sum(dy * u), tf.reduce_sum(gx * T), rtol=1e-13)


def test_hvp():
    for h in everywhere(lambda x, v: autodiff.hvp(scalar, x, v), X, T):
        np.testing.assert_allclose(h, H @ T.numpy(), rtol=1e-6)


def test_jacobian():
    for j in everywhere(lambda x: autodiff.jacobian(f, x), X):
        np.testing.assert_allclose(j, J, rtol=1e-7, atol=1e-9)


def test_hessian():
    for h in everywhere(lambda x: autodiff.hessian(scalar, x), X):
        np.testing.assert_allclose(h, H, rtol=1e-6, atol=1e-8)


def test_laplacian():
    for value in everywhere(lambda x: autodiff.laplacian(scalar, x), X):
        assert value.shape == []
        np.testing.assert_allclose(value, np.trace(H), rtol=1e-6)


def test_laplacian_of_a_batch():
    x = tf.constant(rng.normal(size=(5, 3)))

    def g(x):
        return tf.reduce_sum(tf.sin(x), 1) * x[:, 0]

    def one(a):
        return autodiff.hessian(lambda x: g(x[None])[0], tf.constant(a)).numpy().trace()

    expected = [one(a) for a in x.numpy()]
    for value in everywhere(lambda x: autodiff.laplacian(g, x), x):
        np.testing.assert_allclose(value, expected, rtol=1e-10)
    for value in everywhere(lambda x: autodiff.laplacian(lambda x: g(x)[:, None], x), x):
        assert value.shape == [5, 1]
        np.testing.assert_allclose(value[:, 0], expected, rtol=1e-10)
    several = autodiff.laplacian(lambda x: tf.stack([g(x), x[:, 1] ** 3], 1), x)
    assert several.shape == [5, 2]
    np.testing.assert_allclose(several[:, 0], expected, rtol=1e-10)
    np.testing.assert_allclose(several[:, 1], 6 * x.numpy()[:, 1])


def test_laplacian_of_several_results_at_one_point():
    got = autodiff.laplacian(lambda x: tf.stack([[scalar(x), x[0] ** 2]]), X)
    assert got.shape == [1, 2]
    np.testing.assert_allclose(got, [[np.trace(H), 2.0]], rtol=1e-6)


def test_functions_that_do_not_depend_on_x():
    c = tf.constant([1.0, 2.0], tf.float64)
    np.testing.assert_array_equal(autodiff.jvp(lambda x: c, X, T)[1], [0, 0])
    np.testing.assert_array_equal(autodiff.vjp(lambda x: c, X)[1](c), [0, 0, 0])
    np.testing.assert_array_equal(autodiff.jacobian(lambda x: c, X), np.zeros([2, 3]))
    np.testing.assert_array_equal(autodiff.hessian(lambda x: c[0], X), np.zeros([3, 3]))
    np.testing.assert_array_equal(autodiff.hvp(lambda x: c[0], X, T), np.zeros(3))
    np.testing.assert_array_equal(autodiff.laplacian(lambda x: c[0], X), 0)
    np.testing.assert_array_equal(
        autodiff.laplacian(lambda x: tf.ones([4], tf.float64), tf.ones([4, 2])), np.zeros(4)
    )


def test_linear_functions_have_no_second_derivative():
    np.testing.assert_array_equal(autodiff.hessian(tf.reduce_sum, X), np.zeros([3, 3]))
    np.testing.assert_array_equal(autodiff.hvp(tf.reduce_sum, X, T), np.zeros(3))
    np.testing.assert_array_equal(autodiff.laplacian(tf.reduce_sum, X), 0)


# ---- several arguments, variables ---------------------------------------------------------------


def test_a_tuple_holds_the_arguments():
    x, y = double(1.0, 2.0), double(3.0)

    def g(x, y):
        return x * x * y

    jx, jy = autodiff.jacobian(g, (x, y))
    np.testing.assert_allclose(jx, np.diag([6, 12]))
    np.testing.assert_allclose(jy, [1, 4])
    _, dy = autodiff.jvp(g, (x, y), (double(1.0, 0.0), double(1.0)))
    np.testing.assert_allclose(dy, [6 + 1, 4])
    gx, gy = autodiff.vjp(g, (x, y))[1](double(1.0, 1.0))
    np.testing.assert_allclose(gx, [6, 12])
    np.testing.assert_allclose(gy, 5)
    h = autodiff.hessian(lambda x, y: tf.reduce_sum(g(x, y)), (x, y))
    np.testing.assert_allclose(h[0][0], np.diag([6, 6]))
    np.testing.assert_allclose(h[0][1], [2, 4])
    np.testing.assert_allclose(h[1][0], [2, 4])
    np.testing.assert_allclose(h[1][1], 0)
    hx, hy = autodiff.hvp(lambda x, y: tf.reduce_sum(g(x, y)), (x, y), (double(1.0, 0.0), double(2.0)))
    np.testing.assert_allclose(hx, [6 + 4, 8])
    np.testing.assert_allclose(hy, 2)


def test_a_list_or_a_dict_is_one_argument():
    x = {"a": double(1.0, 2.0), "b": [double(3.0)]}
    j = autodiff.jacobian(lambda d: d["a"] * d["b"][0], x)
    np.testing.assert_allclose(j["a"], 3 * np.eye(2))
    np.testing.assert_allclose(j["b"][0], [1, 2])
    Point = collections.namedtuple("Point", "x y")
    j = autodiff.jacobian(lambda p: p.x * p.y, Point(double(2.0), double(3.0)))
    assert isinstance(j, Point)
    np.testing.assert_allclose([j.x, j.y], [3, 2])


def test_several_results():
    def g(x):
        return {"square": x * x, "sum": tf.reduce_sum(x)}

    j = autodiff.jacobian(g, X)
    np.testing.assert_allclose(j["square"], np.diag(2 * X.numpy()))
    np.testing.assert_allclose(j["sum"], np.ones(3))
    y, dy = autodiff.jvp(g, X, T)
    np.testing.assert_allclose(dy["square"], 2 * X.numpy() * T.numpy())
    y, pull = autodiff.vjp(g, X)
    got = pull({"square": tf.zeros([3], tf.float64), "sum": tf.constant(2.0, tf.float64)})
    np.testing.assert_allclose(got, 2 * np.ones(3))


def test_variables():
    v = tf.Variable(X)
    np.testing.assert_allclose(autodiff.jacobian(f, v), J, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(autodiff.jvp(f, v, T)[1], J @ T.numpy(), rtol=1e-7)
    np.testing.assert_allclose(autodiff.hessian(scalar, v), H, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(autodiff.hvp(scalar, v, T), H @ T.numpy(), rtol=1e-6)
    np.testing.assert_allclose(autodiff.vjp(f, v)[1](T), T.numpy() @ J, rtol=1e-7)
    np.testing.assert_allclose(autodiff.laplacian(scalar, v), np.trace(H), rtol=1e-6)


def test_variables_of_a_function_without_arguments():
    v, w = tf.Variable(X), tf.Variable(2.0, dtype=tf.float64)

    def g():
        return f(v) * w

    jv, jw = autodiff.jacobian(g, [v, w])
    np.testing.assert_allclose(jv, 2 * J, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(jw, f(X))
    np.testing.assert_allclose(autodiff.jvp(g, v, T)[1], 2 * J @ T.numpy(), rtol=1e-7)
    h = autodiff.hessian(lambda: tf.reduce_sum(g()), [v, w])
    np.testing.assert_allclose(h[0][0], 2 * H, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(h[1][1], 0)
    with pytest.raises(TypeError, match="takes no argument"):
        autodiff.jacobian(g, X)


def test_only_the_sources_are_watched():
    v = tf.Variable(2.0)
    y, pull = autodiff.vjp(lambda x: x * v, tf.constant(3.0))
    assert pull(tf.constant(1.0)) == 2.0


def test_python_numbers_and_arrays():
    np.testing.assert_allclose(autodiff.jacobian(lambda x: x * x, 3.0), 6.0)
    np.testing.assert_allclose(autodiff.hessian(lambda x: x**3, 2.0), 12.0)
    np.testing.assert_allclose(autodiff.jacobian(f, X.numpy()), J, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(autodiff.jvp(f, X.numpy(), T.numpy())[1], J @ T.numpy(), rtol=1e-7)


def test_functions_of_functions():
    np.testing.assert_allclose(
        autodiff.jacobian(lambda x: autodiff.jvp(f, x, T)[1], X),
        autodiff.jvp(lambda x: autodiff.jacobian(f, x), X, T)[1],
        rtol=1e-10,
        atol=1e-12,
    )
    third = autodiff.jacobian(lambda x: autodiff.hessian(scalar, x), X)
    np.testing.assert_allclose(
        third, differences(array(lambda x: autodiff.hessian(scalar, x)), X.numpy()), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(
        autodiff.hvp(lambda x: autodiff.laplacian(scalar, x), X, T),
        tf.linalg.matvec(autodiff.hessian(lambda x: autodiff.laplacian(scalar, x), X), T),
        rtol=1e-9,
    )


def test_tf_functions():
    g = tf.function(f)
    np.testing.assert_allclose(autodiff.jacobian(g, X), J, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(autodiff.jvp(g, X, T)[1], J @ T.numpy(), rtol=1e-7)
    np.testing.assert_allclose(autodiff.hessian(tf.function(scalar), X), H, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("n", [0, 1])
def test_sizes(n):
    x = tf.ones([n], tf.float64)
    assert autodiff.jacobian(lambda x: x * x, x).shape == [n, n]
    assert autodiff.hessian(lambda x: tf.reduce_sum(x**2), x).shape == [n, n]
    assert autodiff.jvp(lambda x: x * x, x, x)[1].shape == [n]
    assert float(autodiff.laplacian(lambda x: tf.reduce_sum(x**2), x)) == 2.0 * n
    batch = autodiff.laplacian(lambda x: tf.reduce_sum(x**2, 1), tf.ones([n, 3]))
    np.testing.assert_array_equal(batch, 6 * np.ones(n))


def test_errors():
    with pytest.raises(ValueError, match="autodiff.hessian: the function must return one number"):
        autodiff.hessian(f, X)
    with pytest.raises(ValueError, match="autodiff.hvp: the function must return one number"):
        autodiff.hvp(f, X, T)
    with pytest.raises(ValueError, match="one tensor of shape"):
        autodiff.laplacian(scalar, (X, X))
    with pytest.raises(ValueError, match="one tensor of shape"):
        autodiff.laplacian(scalar, tf.ones([2, 2, 2]))
    with pytest.raises(ValueError, match="with a batch of 4 examples"):
        autodiff.laplacian(tf.reduce_sum, tf.ones([4, 2]))
    with pytest.raises(ValueError, match="same nested structure"):
        autodiff.vjp(f, X)[1]([T, T])
    with pytest.raises(ValueError, match="same nested structure"):
        autodiff.hvp(scalar, X, [T])


# ---- gradients of examples ----------------------------------------------------------------------


def loop(loss, sources, *examples):
    rows = []
    for i in range(len(tf.nest.flatten(examples)[0])):
        example = tf.nest.map_structure(lambda e, i=i: e[i], examples)
        with tf.GradientTape() as tape:
            tape.watch(sources)
            y = loss(*example)
        rows.append(
            tf.nest.map_structure(
                tf.convert_to_tensor, tape.gradient(y, sources, unconnected_gradients="zero")
            )
        )
    return tf.nest.map_structure(lambda *gs: tf.stack(gs), *rows)


def network():
    params = {
        "w": tf.Variable(rng.normal(size=(3, 4))),
        "b": tf.Variable(np.zeros(4)),
        "out": [tf.Variable(rng.normal(size=(4, 2)))],
    }

    def loss(x, y):
        h = tf.tanh(tf.linalg.matvec(params["w"], x, transpose_a=True) + params["b"])
        logits = tf.linalg.matvec(params["out"][0], h, transpose_a=True)
        return tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)

    return params, loss


def test_per_example_gradients_of_a_network():
    params, loss = network()
    x, y = tf.constant(rng.normal(size=(6, 3))), tf.constant([0, 1, 1, 0, 1, 0])
    expected = loop(loss, params, x, y)
    inside = tf.function(lambda x, y: autodiff.per_example_gradient(loss, params, x, y))
    for got in (
        *(autodiff.per_example_gradient(loss, params, x, y) for _ in range(3)),
        inside(x, y),
        inside(x, y),
    ):
        tf.nest.assert_same_structure(got, expected)
        for g, e in zip(tf.nest.flatten(got), tf.nest.flatten(expected), strict=True):
            np.testing.assert_allclose(g, e, rtol=1e-10, atol=1e-12)
    mean = tf.reduce_mean(got["w"], 0)
    with tf.GradientTape() as tape:
        total = tf.add_n([loss(x[i], y[i]) for i in range(6)]) / 6.0
    np.testing.assert_allclose(mean, tape.gradient(total, params["w"]), rtol=1e-10, atol=1e-12)


EXAMPLES = {
    "embedding": lambda table: lambda n: tf.reduce_sum(tf.nn.embedding_lookup(table, n) ** 2),
    "branch": lambda table: (
        lambda n: tf.cond(
            tf.reduce_sum(n) > 2, lambda: tf.reduce_sum(table**2), lambda: tf.reduce_sum(tf.gather(table, n))
        )
    ),
    "loop": lambda table: (
        lambda n: tf.while_loop(
            lambda i, y: i < n[0],
            lambda i, y: (i + 1, y * tf.reduce_sum(tf.sin(table))),
            [0, tf.ones([], tf.float64)],
        )[1]
    ),
    "unconnected": lambda table: lambda n: tf.reduce_sum(tf.cast(n, tf.float64)),
    "values": lambda table: lambda n: tf.reduce_sum(table[: int(n[0]) + 1]),
    "python branch": lambda table: python_branch(table),
}


def python_branch(table):
    def loss(n):
        if n[0] > 1:
            return tf.reduce_sum(table**2)
        return tf.reduce_sum(table[0])

    return loss


@pytest.mark.parametrize("name", EXAMPLES)
def test_per_example_gradients(name):
    table = tf.Variable(rng.normal(size=(4, 2)))
    n = tf.constant([[0, 1], [2, 2], [3, 0]])
    loss = EXAMPLES[name](table)
    got = autodiff.per_example_gradient(loss, table, n)
    np.testing.assert_allclose(got, loop(loss, table, n), rtol=1e-10)


def test_per_example_gradients_by_tensors_and_nests_of_examples():
    w = tf.constant(rng.normal(size=3))
    batch = {"x": tf.constant(rng.normal(size=(4, 3))), "y": [tf.constant(rng.normal(size=4))]}

    def loss(example):
        return (tf.reduce_sum(w * example["x"]) - example["y"][0]) ** 2

    np.testing.assert_allclose(
        autodiff.per_example_gradient(loss, w, batch), loop(loss, w, batch), rtol=1e-10
    )


def test_per_example_gradients_of_second_order():
    """Derivatives of their squared norms, as needed for gradient-norm penalties per example."""
    w = tf.Variable(rng.normal(size=3))
    x = tf.constant(rng.normal(size=(4, 3)))

    def loss(x):
        return tf.sin(tf.reduce_sum(w * x))

    def total(gradients):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(gradients(loss, w, x) ** 2)
        return tape.gradient(y, w)

    np.testing.assert_allclose(total(autodiff.per_example_gradient), total(loop), rtol=1e-10)


@pytest.mark.parametrize("n", [0, 1])
def test_per_example_gradients_of_few_examples(n):
    w = tf.Variable([1.0, 2.0])
    g = autodiff.per_example_gradient(lambda x: tf.reduce_sum(w * x), w, tf.ones([n, 2]))
    np.testing.assert_array_equal(g, np.ones([n, 2]))


def test_per_example_errors():
    w = tf.Variable([1.0, 2.0])
    with pytest.raises(ValueError, match="at least one batch"):
        autodiff.per_example_gradient(lambda: w[0], w)
    with pytest.raises(ValueError, match="the function must return one number"):
        autodiff.per_example_gradient(lambda x: w * x, w, tf.ones([3, 2]))
