"""IndexedSlices: the sparse gradients of row lookups."""

import operator

import numpy as np
import pytest

from .lib import assert_close, tf

TABLE = np.arange(8, dtype="float32").reshape(4, 2)


def slices_of(*values, indices, rows=4):
    return tf.IndexedSlices(tf.constant(values), tf.constant(indices), tf.constant([rows, 2]))


def table_gradient(f):
    table = tf.Variable(TABLE)
    with tf.GradientTape() as tape:
        y = f(table)
    return tape.gradient(y, table)


SPARSE = {
    "gather": lambda t: tf.gather(t, [2, 0, 2]),
    "gather-axis-0": lambda t: tf.gather(t, [2, 0, 2], axis=0),
    "gather-scalar": lambda t: tf.gather(t, 2),
    "gather-2d": lambda t: tf.gather(t, [[2, 0], [1, 2]]),
    "embedding_lookup": lambda t: tf.nn.embedding_lookup(t, [2, 0, 2]),
    "sparse_read": lambda t: t.sparse_read([2, 0, 2]),
}


@pytest.mark.parametrize("name", SPARSE)
def test_T61_sparse(name):
    g = table_gradient(SPARSE[name])
    assert isinstance(g, tf.IndexedSlices)
    times = 1.0 if name == "gather-scalar" else 2.0
    assert_close(tf.convert_to_tensor(g)[2], [times, times])


def test_T61_sparse_of_a_tensor():
    x = tf.constant(TABLE)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.gather(x, [2, 0])
    assert isinstance(tape.gradient(y, x), tf.IndexedSlices)


DENSE = {
    "gather-axis-1": (lambda t: tf.gather(t, [1, 1], axis=1), [[0, 2]] * 4),
    "gather-batch_dims": (
        lambda t: tf.gather(t, [[1], [1], [0], [0]], batch_dims=1),
        [[0, 1], [0, 1], [1, 0], [1, 0]],
    ),
    "gather_nd": (lambda t: tf.gather_nd(t, [[1, 1]]), [[0, 0], [0, 1], [0, 0], [0, 0]]),
    "index": (lambda t: t[1], [[0, 0], [1, 1], [0, 0], [0, 0]]),
    "slice": (lambda t: t[1:3], [[0, 0], [1, 1], [1, 1], [0, 0]]),
    "boolean_mask": (
        lambda t: tf.boolean_mask(t, [True, False, False, True]),
        [[1, 1], [0, 0], [0, 0], [1, 1]],
    ),
    "one_hot": (lambda t: tf.matmul(tf.one_hot([2], 4), t), [[0, 0], [0, 0], [1, 1], [0, 0]]),
}


@pytest.mark.parametrize("name", DENSE)
def test_T61_dense(name):
    f, expected = DENSE[name]
    g = table_gradient(f)
    assert isinstance(g, tf.Tensor)
    assert_close(g, np.float32(expected))


def test_T62_parts():
    g = table_gradient(lambda t: tf.gather(t, [[2, 0], [1, 2]]) * 3.0)
    assert_close(g.values, np.full([4, 2], 3.0))
    assert_close(g.indices, [2, 0, 1, 2])
    assert_close(g.dense_shape, [4, 2])
    assert g.shape == [4, 2]
    assert g.dtype == tf.float32


def test_T62_is_no_tensor():
    g = table_gradient(lambda t: tf.gather(t, [2, 0]))
    assert not isinstance(g, tf.Tensor)
    assert not hasattr(g, "numpy")


@pytest.mark.parametrize(
    "operation",
    [lambda g: g + g, lambda g: g * g, lambda g: g * 2.0, lambda g: 2.0 * g],
    ids=["add", "mul", "mul-scalar", "scalar-mul"],
)
def test_T62_has_no_operators(operation):
    g = table_gradient(lambda t: tf.gather(t, [2, 0]))
    with pytest.raises(TypeError, match="unsupported operand"):
        operation(g)


def test_T62_convert_to_tensor_sums_duplicates():
    g = slices_of([1.0, 2.0], [3.0, 4.0], [5.0, 6.0], indices=[2, 0, 2])
    assert_close(tf.convert_to_tensor(g), [[3, 4], [0, 0], [6, 8], [0, 0]])


@pytest.mark.parametrize(
    "op, expected",
    [
        (lambda g: tf.reduce_sum(g), 6.0),
        (lambda g: tf.square(g), [[1, 1], [0, 0], [4, 4], [0, 0]]),
        (lambda g: tf.add(g, 1.0), [[2, 2], [1, 1], [3, 3], [1, 1]]),
        (lambda g: tf.zeros_like(g), np.zeros([4, 2])),
        (lambda g: tf.identity(tf.norm(g)), np.sqrt(10.0)),
    ],
    ids=["reduce_sum", "square", "add", "zeros_like", "norm"],
)
def test_T62_ops_take_the_dense_value(op, expected):
    assert_close(op(table_gradient(lambda t: tf.gather(t, [2, 0, 2]))), np.float32(expected))


def test_T63_two_sparse_gradients_stay_sparse():
    g = table_gradient(lambda t: [tf.gather(t, [2, 0]), 5.0 * tf.gather(t, [2])])
    assert isinstance(g, tf.IndexedSlices)
    assert sorted(g.indices.numpy()) == [0, 2, 2]
    assert_close(tf.convert_to_tensor(g), [[1, 1], [0, 0], [6, 6], [0, 0]])


def test_T63_sparse_and_dense_gradients_become_dense():
    g = table_gradient(lambda t: [tf.gather(t, [2, 0]), 5.0 * t])
    assert isinstance(g, tf.Tensor)
    assert_close(g, [[6, 6], [5, 5], [6, 6], [5, 5]])


@pytest.fixture
def slices():
    """Rows 2, 0 and 2 of four; the squares of the values sum to 100."""
    return slices_of([1.0, 3.0], [4.0, 5.0], [0.0, 7.0], indices=[2, 0, 2])


def test_T64_clip_by_norm_keeps_slices(slices):
    clipped = tf.clip_by_norm(slices, 5.0)
    assert isinstance(clipped, tf.IndexedSlices)
    assert_close(clipped.values, np.float32([[1, 3], [4, 5], [0, 7]]) / 2)
    assert_close(clipped.indices, [2, 0, 2])


def test_T64_clip_by_value_keeps_slices(slices):
    clipped = tf.clip_by_value(slices, 1.0, 4.0)
    assert isinstance(clipped, tf.IndexedSlices)
    assert_close(clipped.values, [[1, 3], [4, 4], [1, 4]])


def test_T64_clip_by_global_norm_keeps_slices(slices):
    (clipped,), norm = tf.clip_by_global_norm([slices], 5.0)
    assert isinstance(clipped, tf.IndexedSlices)
    assert_close(norm, 10.0)
    assert_close(clipped.values, np.float32([[1, 3], [4, 5], [0, 7]]) / 2)


def test_T64_global_norm_is_that_of_the_values(slices):
    assert_close(tf.linalg.global_norm([slices]), 10.0)


def test_T64_add_n_gives_the_dense_sum(slices):
    total = tf.add_n([slices, slices])
    assert isinstance(total, tf.Tensor)
    assert_close(total, [[8, 10], [0, 0], [2, 20], [0, 0]])


def test_T64_assign_sub_takes_slices(slices):
    v = tf.Variable(tf.zeros([4, 2]))
    v.assign_sub(slices)
    assert_close(v, [[-4, -5], [0, 0], [-1, -10], [0, 0]])


def test_T64_scatter_add_takes_slices(slices):
    v = tf.Variable(tf.ones([4, 2]))
    v.scatter_add(slices)
    assert_close(v, [[5, 6], [1, 1], [2, 11], [1, 1]])


def test_T64_scatter_sub_takes_slices(slices):
    v = tf.Variable(tf.ones([4, 2]))
    v.scatter_sub(slices)
    assert_close(v, [[-3, -4], [1, 1], [0, -9], [1, 1]])


# ---- operators with a tensor on the other side --------------------------------------------------


@pytest.mark.parametrize("f", [operator.add, operator.sub, operator.mul])
def test_operators_with_a_tensor_make_it_dense(f):
    """`[a + g for a, g in zip(sums, grads)]` adds gradients up, sparse ones too."""
    g = slices_of([1.0, 2.0], indices=[1], rows=3)
    dense = np.zeros([3, 2], np.float32)
    dense[1] = 1.0, 2.0
    x = np.full([3, 2], 5.0, np.float32)
    for other in (tf.constant(x), tf.Variable(x)):
        np.testing.assert_array_equal(f(other, g).numpy(), f(x, dense))
        np.testing.assert_array_equal(f(g, other).numpy(), f(dense, x))


def test_it_has_no_operators_with_numbers():
    with pytest.raises(TypeError):
        slices_of([1.0, 2.0], indices=[1], rows=3) * 2.0
