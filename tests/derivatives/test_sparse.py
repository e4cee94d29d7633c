"""Sparse Jacobians: the pattern, the number of passes, and the values."""

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.autodiff.sparse import _sparsity
from gradtape._src.batching import jacobian as engine
from gradtape._src.batching.sparsity import colours

sparse = pytest.importorskip("scipy.sparse")


def dense(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    j = tape.jacobian(y, x, unconnected_gradients="zero")
    return j.numpy().reshape(int(np.prod(y.shape)), -1)


def tridiagonal(x):
    padded = tf.pad(x, [[1, 1]])
    return (3 - 2 * x) * x - padded[:-2] - 2 * padded[2:] + 1


W = tf.constant(np.random.default_rng(1).normal(size=(5, 4)))
IDS = [i // 7 for i in range(50)]

FUNCTIONS = {
    "elementwise": (lambda x: tf.sin(x) * x, 50),
    "tridiagonal": (tridiagonal, 148),
    "matmul": (lambda x: tf.reshape(x, [10, 5]) @ W, 200),
    "matmul, second factor": (lambda x: tf.matmul(W, tf.reshape(x, [5, 10]), transpose_a=True), 200),
    "mean of rows": (lambda x: tf.reduce_mean(tf.reshape(x, [10, 5]) ** 2, 1), 50),
    "sum": (lambda x: tf.reduce_sum(x**2), 50),
    "gather": (lambda x: tf.gather(x * x, [3, 3, 7]), 3),
    "segments": (lambda x: tf.math.unsorted_segment_sum(x**2, IDS, 8), 50),
    "scatter": (lambda x: tf.scatter_nd([[3], [1]], x[:2] * x[4], [6]), 4),
    "transpose": (lambda x: tf.transpose(tf.reshape(tf.sin(x), [5, 10])), 50),
    "reverse": (lambda x: tf.stack([x, x * 2])[1] * x[::-1], 100),
    "where": (lambda x: tf.where(x > 0, x * x, 0.0), 50),
    "concat": (lambda x: tf.concat([x[:3], x[:3] * x[5]], 0), 9),
    "nothing": (lambda x: tf.ones([3], tf.float64) * tf.stop_gradient(x[0]), 0),
    "cumsum": (lambda x: tf.cumsum(x * x), None),  # not known to be sparse: all of it
    "cond": (lambda x: tf.cond(x[0] > 0, lambda: x * x, lambda: x), None),
    "sort": (lambda x: tf.sort(x)[:3], None),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_equals_the_dense_jacobian(name):
    f, count = FUNCTIONS[name]
    x = tf.constant(np.random.default_rng(0).normal(size=50))
    for _ in range(3):  # traced, remembered, compiled
        j = tf.autodiff.sparse_jacobian(f, x)
        np.testing.assert_allclose(j.toarray(), dense(f, x), atol=1e-12)
    assert sparse.isspmatrix_csr(j)
    if count is not None:
        assert j.nnz == count


def test_ten_thousand_dimensions_in_three_passes(monkeypatch):
    n = 10_000
    x = tf.constant(np.random.default_rng(0).normal(size=n))
    passes = []
    run = engine.in_chunks
    monkeypatch.setattr(
        "gradtape._src.autodiff.sparse.in_chunks",
        lambda function, kept, rows_of, rows: passes.append(rows) or run(function, kept, rows_of, rows),
    )
    j = tf.autodiff.sparse_jacobian(tridiagonal, x)
    assert passes == [3]
    assert j.shape == (n, n) and j.nnz == 3 * n - 2
    np.testing.assert_allclose(j.diagonal(), 3 - 4 * x.numpy(), rtol=1e-12)
    np.testing.assert_allclose(j.diagonal(-1), -1)
    np.testing.assert_allclose(j.diagonal(1), -2)


def test_the_pattern_follows_the_indices():
    """The pass has the same structure, but other indices."""
    x = tf.constant([1.0, 2.0, 3.0])

    def f(at):
        return lambda x: tf.gather(x, at) ** 2

    for at in ([0, 1], [2, 2], [1, 0]):
        j = tf.autodiff.sparse_jacobian(f(tf.constant(at)), x)
        np.testing.assert_allclose(j.toarray(), dense(f(tf.constant(at)), x))


def test_fewer_colours_decide_the_mode():
    x = tf.constant(np.arange(6.0))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        wide = tf.reduce_sum(tf.reshape(x * x, [2, 3]), 1)  # two rows of three: one pass backwards
        tall = tf.tile(x[:1] * 2, [5])  # one column: one pass forwards
    assert not _sparsity(engine.pullback(tape, wide, [x])).forward
    s = _sparsity(engine.pullback(tape, tall, [x]))
    assert s.forward and s.passes == 1


def test_colours_keep_columns_with_a_common_row_apart():
    rng = np.random.default_rng(3)
    p = sparse.random(40, 30, 0.1, format="csr", random_state=rng).astype(bool)
    c = colours(p)
    for i in range(40):
        mine = c[p[i].indices]
        assert len(set(mine)) == len(mine)


def test_variables_shapes_and_types():
    v = tf.Variable(np.ones((2, 3), np.float32))
    j = tf.autodiff.sparse_jacobian(lambda: v * v, v)
    assert j.shape == (6, 6) and j.dtype == np.float32 and j.nnz == 6


@pytest.mark.parametrize(
    "f, x, error, words",
    [
        (lambda x: x, [tf.constant(1.0), tf.constant(2.0)], TypeError, "expected one tensor"),
        (lambda x: [x, x], tf.constant([1.0]), TypeError, "must return one tensor"),
        (lambda x: x, tf.constant([1, 2]), TypeError, "must be floating"),
    ],
)
def test_wrong_input(f, x, error, words):
    with pytest.raises(error, match=words):
        tf.autodiff.sparse_jacobian(f, x)
