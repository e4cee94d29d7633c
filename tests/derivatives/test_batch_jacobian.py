"""batch_jacobian: the diagonal blocks of the Jacobian, for as many rows as one example has elements."""

import itertools

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.batching import jacobian as implementation

from .differences import compiling, memory, mode
from .test_jacobian import MODES, double

rng = np.random.default_rng(0)
W = tf.constant(rng.normal(size=(3, 5)))
V = tf.constant(rng.normal(size=(3, 2)))


def batch_jacobian(f, x, persistent=False, **options):
    with tf.GradientTape(persistent=persistent) as tape:
        tape.watch(x)
        y = f(x)
    return tape.batch_jacobian(y, x, **options)


def reference(f, x):
    """The blocks of the whole Jacobian in which target and source belong to the same example."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    with mode("reverse"), compiling(False):
        j = tape.jacobian(y, x, unconnected_gradients="zero").numpy()
    rows = np.moveaxis(j, y.ndim, 1)
    return rows[range(x.shape[0]), range(x.shape[0])]


FUNCTIONS = {
    "dense, more results": lambda x: tf.tanh(tf.matmul(x, W)),
    "dense, fewer results": lambda x: tf.tanh(tf.matmul(x, V)),
    "elementwise": lambda x: tf.sin(x) * x,
    "softmax": tf.nn.softmax,
    "outer": lambda x: x[:, :, None] * x[:, None, :],
    "sum": lambda x: tf.reduce_sum(x**2, 1, keepdims=True),
    "sort": lambda x: tf.sort(x, axis=1),
    "gather": lambda x: tf.gather(x, [0, 2, 2, 1], axis=1),
    "gather per example": lambda x: tf.gather(x * x, [[0, 1], [2, 2], [1, 0], [0, 0]], batch_dims=1, axis=1),
    "einsum": lambda x: tf.einsum("bi,ij,bj->bij", x, tf.matmul(W, W, transpose_b=True), x),
    "matmul per example": lambda x: tf.matmul(x[:, :, None], x[:, None, :]),
    "cumsum": lambda x: tf.cumsum(x * x, axis=1),
    "concat": lambda x: tf.concat([x, x * x, tf.ones_like(x)], 1),
    "norm": lambda x: x / tf.norm(x, axis=1, keepdims=True),
    "where": lambda x: tf.where(x > 0.0, x * x, -x),
    "map_fn": lambda x: tf.map_fn(lambda r: tf.sin(r) * r[0], x),
    "vectorized_map": lambda x: tf.vectorized_map(lambda r: tf.sin(r) * r[0], x),
    "while": lambda x: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x + 1.0), [0, x])[1],
    "cond": lambda x: tf.cond(tf.reduce_sum(W) > 0.0, lambda: x * x, lambda: -x),
    "function": lambda x: tf.function(lambda x: tf.tanh(tf.matmul(x, W)))(x),
    "the source": lambda x: x,
    "transposed inside": lambda x: tf.transpose(tf.transpose(x) ** 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    f, x = FUNCTIONS[name], tf.constant(rng.normal(size=(4, 3)))
    expected = reference(f, x)
    for way in (*MODES, "cheapest"):
        with mode(way), compiling(True):
            inside = tf.function(lambda x: batch_jacobian(f, x))
            for got in (*(batch_jacobian(f, x) for _ in range(3)), inside(x), inside(x)):
                assert got.shape == expected.shape
                np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("x_shape", [(3, 1), (1, 3), (1, 1), (2, 3, 2), (3, 0), (0, 3), (0, 0)])
@pytest.mark.parametrize("y_inner", [(1,), (4,), (0,), (2, 1)])
@pytest.mark.parametrize("way", MODES)
def test_sizes(x_shape, y_inner, way):
    x = tf.constant(rng.normal(size=x_shape))

    def f(x):
        total = tf.reduce_sum(x * x, axis=list(range(1, x.ndim)))
        return tf.reshape(total, [-1, *([1] * len(y_inner))]) * tf.ones(y_inner, tf.float64)

    with mode(way):
        j = batch_jacobian(f, x)
    batch, within = x_shape[0], x_shape[1:]
    assert j.shape == [batch, *y_inner, *within]
    expected = 2 * x.numpy().reshape(batch, *([1] * len(y_inner)), *within)
    np.testing.assert_allclose(j, np.broadcast_to(expected, j.shape))


def test_variables():
    v = tf.Variable(rng.normal(size=(4, 3)))
    with tf.GradientTape() as tape:
        y = tf.matmul(v * v, V)
    expected = np.einsum("bi,io->boi", 2 * v.numpy(), V.numpy())
    np.testing.assert_allclose(tape.batch_jacobian(y, v), expected)


def test_a_variable_as_target():
    v = tf.Variable(rng.normal(size=(2, 3)))
    with tf.GradientTape() as tape:
        tape.watch(v)
    j = tape.batch_jacobian(v, v)
    assert j.shape == [2, 3, 3]


@pytest.mark.parametrize("dtype", [tf.float32, tf.float16, tf.bfloat16])
def test_types(dtype):
    x = tf.constant([[1.0, 2.0]], dtype)
    j = batch_jacobian(lambda x: x * x, x)
    assert j.dtype == dtype
    np.testing.assert_array_equal(tf.cast(j, tf.float32), [[[2, 0], [0, 4]]])


def test_complex():
    z = tf.constant([[1 + 2j, 3 - 1j]], tf.complex128)
    np.testing.assert_allclose(batch_jacobian(lambda z: z * z, z), [np.diag(np.conj(2 * z.numpy()[0]))])


def test_integers_and_unconnected_are_zeros():
    x = double([[1.0, 2.0]])
    np.testing.assert_array_equal(batch_jacobian(lambda x: tf.cast(x, tf.int32), x), np.zeros([1, 2, 2]))
    np.testing.assert_array_equal(batch_jacobian(lambda x: tf.ones([1, 3]), x), np.zeros([1, 3, 2]))
    n = tf.constant([[1, 2]])
    with tf.GradientTape() as tape:
        y = tf.cast(n, tf.float32) * 2.0
    j = tape.batch_jacobian(y, n)
    assert j.dtype == tf.int32
    np.testing.assert_array_equal(j, np.zeros([1, 2, 2]))


@pytest.mark.parametrize("persistent", [True, False])
def test_options_change_nothing(persistent):
    x = tf.constant(rng.normal(size=(4, 3)))
    expected = batch_jacobian(tf.sin, x)
    for pfor, parallel in itertools.product([True, False], [None, 1, 10]):
        options = {"experimental_use_pfor": pfor, "parallel_iterations": parallel}
        np.testing.assert_array_equal(batch_jacobian(tf.sin, x, persistent, **options), expected)


def test_a_mistake_does_not_use_up_the_tape():
    x = tf.constant(rng.normal(size=(4, 3)))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        z = tf.reduce_sum(y)
    with pytest.raises(ValueError, match="rank at least 2"):
        tape.batch_jacobian(z, x)
    with pytest.raises(AttributeError, match="expected one Tensor as source"):
        tape.batch_jacobian(y, [x])
    with pytest.raises(ValueError, match="first dimension"):
        tape.batch_jacobian(y[:2], x)
    tape.batch_jacobian(y, x)
    with pytest.raises(RuntimeError, match="non-persistent GradientTape"):
        tape.batch_jacobian(y, x)


@pytest.mark.parametrize("way", MODES)
def test_chunks(way, monkeypatch):
    x = tf.constant(rng.normal(size=(4, 3)))
    f = FUNCTIONS["dense, more results"]
    expected = batch_jacobian(f, x)
    runs = []
    original = implementation._run
    monkeypatch.setattr(implementation, "_run", lambda *args: runs.append(args[-1]) or original(*args))
    with memory(1), mode(way):
        np.testing.assert_allclose(batch_jacobian(f, x), expected, rtol=1e-13, atol=1e-15)
    assert runs == [1] * (3 if way == "forward" else 5)


def test_as_many_rows_as_an_example_has_elements(monkeypatch):
    seeds = []
    original = implementation._all_rows
    monkeypatch.setattr(
        implementation, "_all_rows", lambda f, kept, seed: seeds.append(seed.rows) or original(f, kept, seed)
    )
    x = tf.constant(rng.normal(size=(100, 3)))
    batch_jacobian(FUNCTIONS["dense, more results"], x)
    batch_jacobian(FUNCTIONS["dense, fewer results"], x)
    assert seeds == [3, 2]


def test_batch_jacobian_of_batch_jacobian():
    x = tf.constant(rng.normal(size=(4, 3)))

    def f(x):
        return tf.tanh(tf.matmul(x, V)) * x[:, :1]

    for _ in range(3):
        with tf.GradientTape() as outer:
            outer.watch(x)
            first = batch_jacobian(f, x)
        second = outer.batch_jacobian(first, x)
        np.testing.assert_allclose(
            second, reference(lambda x: batch_jacobian(f, x), x), rtol=1e-12, atol=1e-13
        )
        np.testing.assert_allclose(second, np.swapaxes(second, -1, -2), rtol=1e-10, atol=1e-12)


def test_gradients_through_it_by_variables():
    w = tf.Variable(V)
    x = tf.constant(rng.normal(size=(4, 3)))

    def loss():
        return tf.reduce_sum(batch_jacobian(lambda x: tf.tanh(tf.matmul(x, w)), x) ** 2)

    results = []
    for f in (loss, loss, loss, tf.function(loss)):
        with tf.GradientTape() as tape:
            y = f()
        results.append(tape.gradient(y, w).numpy())
    h = np.tanh(x.numpy() @ w.numpy())
    j = (1 - h**2)[:, :, None] * w.numpy().T
    assert np.isclose(float(y), np.sum(j**2))
    step = 1e-6
    for i in range(3):
        at = w.numpy().copy()
        at[i, 0] += step
        w.assign(at)
        up = float(loss())
        at[i, 0] -= 2 * step
        w.assign(at)
        slope = (up - float(loss())) / (2 * step)
        at[i, 0] += step
        w.assign(at)
        for g in results:
            assert np.isclose(g[i, 0], slope, rtol=1e-6)


def test_custom_gradients():
    @tf.custom_gradient
    def clipped(x):
        return tf.identity(x), lambda g: tf.clip_by_value(g, -0.5, 0.5)

    @tf.custom_gradient
    def by_numpy(x):
        return x * x, lambda g: tf.constant(2 * g.numpy() * x.numpy())

    x = tf.constant(rng.normal(size=(4, 2)))
    for repeat in (1, 3):  # fewer and more results than elements
        np.testing.assert_allclose(
            batch_jacobian(lambda x, n=repeat: tf.tile(clipped(x), [1, n]), x),
            np.tile(0.5 * np.eye(2), [4, repeat, 1]),
        )
        np.testing.assert_allclose(
            batch_jacobian(lambda x, n=repeat: tf.tile(by_numpy(x), [1, n]), x),
            np.tile(2 * x.numpy()[:, None] * np.eye(2), [1, repeat, 1]),
        )
