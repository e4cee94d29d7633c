"""Sparse tensors in functions that take any number of elements, in loops and in pipelines."""

import numpy as np
import pytest

import gradtape as tf

A = tf.SparseTensor([[0, 1], [1, 0], [1, 2]], [1.0, 2.0, 3.0], [2, 3])


def dense(x):
    return tf.sparse.to_dense(x).numpy().tolist()


def test_one_trace_for_any_number_of_elements():
    seen = []

    @tf.function
    def product(x, w):
        seen.append((x.shape, x.indices.shape))
        return tf.sparse.sparse_dense_matmul(x, w)

    for n in (1, 3, 6, 3):
        x = tf.sparse.from_dense(np.arange(6.0).reshape(2, 3) * (np.arange(6).reshape(2, 3) < n))
        np.testing.assert_allclose(product(x, tf.eye(3, dtype=tf.float64)), dense(x))
    assert seen == [((2, 3), (None, 2))]


def test_shapes_that_are_known_while_a_function_is_traced():
    seen = {}

    @tf.function(input_signature=[tf.SparseTensorSpec([None, 3], tf.float32)])
    def f(x):
        seen["rows"] = tf.sparse.reduce_sum(x, 1).shape
        seen["joined"] = tf.sparse.concat(0, [x, x]).shape
        seen["flat"] = tf.sparse.reshape(x, [-1]).shape
        seen["turned"] = tf.sparse.transpose(x).shape
        seen["product"] = tf.sparse.sparse_dense_matmul(x, tf.ones([3, 2])).shape
        return tf.sparse.to_dense(x)

    assert f(A).numpy().tolist() == dense(A)
    assert f(tf.sparse.eye(3)).shape == (3, 3)
    assert seen == {
        "rows": (None,), "joined": (None, 3), "flat": (None,), "turned": (3, None), "product": (None, 2)
    }  # fmt: skip


def test_gradients_through_a_function_of_unknown_sizes():
    w = tf.Variable(tf.ones([3, 2]))

    @tf.function(reduce_retracing=True)
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.sparse.sparse_dense_matmul(x, w) ** 2)
        return tape.gradient(loss, w)

    for x in (A, tf.sparse.eye(3), tf.sparse.eye(4, 3)):
        m = np.array(dense(x))
        np.testing.assert_allclose(step(x), 2 * m.T @ (m @ np.ones((3, 2))))


def test_products_are_checked_and_keep_their_order():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"k \(3\) from index\[0,1\] out of bounds"):
        tf.sparse.sparse_dense_matmul(tf.SparseTensor([[0, 3]], [1.0], [2, 3]), tf.ones([3, 1]))
    turned = tf.SparseTensor(A.indices[::-1], A.values[::-1], [2, 3])
    for x in (A, turned, A):  # the rows of A are computed once
        assert tf.sparse.sparse_dense_matmul(x, tf.eye(3)).numpy().tolist() == dense(A)
    scaled = A.with_values([10.0, 20.0, 30.0])
    assert tf.sparse.sparse_dense_matmul(scaled, tf.eye(3)).numpy().tolist() == [[0, 10, 0], [20, 0, 30]]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "complex64"])
def test_gradients_of_products_in_every_type(dtype):
    values, b = tf.cast([1.0, 2.0, 3.0], dtype), tf.cast(np.arange(6.0).reshape(3, 2), dtype)
    with tf.GradientTape() as tape:
        if dtype != "int32":
            tape.watch([values, b])
        y = tf.sparse.sparse_dense_matmul(A.with_values(values), b)
    m = np.array(dense(A))
    np.testing.assert_allclose(tf.cast(y, tf.float32), m @ np.arange(6.0).reshape(3, 2))
    if dtype != "int32":
        to_values, to_b = tape.gradient(y, [values, b])
        np.testing.assert_allclose(tf.cast(to_values, tf.float32), [5, 1, 9])
        np.testing.assert_allclose(tf.cast(to_b, tf.float32), m.T @ np.ones((2, 2)))


def test_rows_go_through_pipelines():
    rows = tf.data.Dataset.from_tensor_slices((A, [7, 8]))
    assert rows.element_spec[0] == tf.SparseTensorSpec([3], tf.float32)
    assert [(dense(x), int(y)) for x, y in rows] == [([0, 1, 0], 7), ([2, 0, 3], 8)]
    (batch,) = [x for x, _ in rows.batch(2)]
    assert dense(batch) == dense(A) and batch.shape == (2, 3)
    assert [x.shape for x, _ in rows.batch(1)] == [(1, 3), (1, 3)]
    assert [dense(x * 2.0) for x in rows.map(lambda x, y: x * 5.0)] == [[0, 10, 0], [20, 0, 30]]


def test_sparse_batches():
    rows = tf.data.Dataset.range(1, 4).map(lambda n: tf.fill([n], n))
    assert [dense(x) for x in rows.sparse_batch(2, [3])] == [[[1, 0, 0], [2, 2, 0]], [[3, 3, 3]]]
    with pytest.raises(tf.errors.DataLossError):
        list(rows.sparse_batch(3, [2]))


def test_rows_of_every_type_are_mapped():
    for values in (
        tf.constant(["a", "bc", ""]),
        tf.cast([1, 2, 3], tf.bfloat16),
        tf.constant([True, False, True]),
    ):
        out = tf.map_fn(lambda x: x, A.with_values(values))
        assert out.values.numpy().tolist() == values.numpy().tolist()
        assert out.indices.numpy().tolist() == A.indices.numpy().tolist()
