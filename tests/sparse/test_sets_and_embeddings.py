"""Functions outside of tf.sparse that take sparse tensors: sets, embeddings of sparse ids, distances of sequences."""

import numpy as np
import pytest

import gradtape as tf

A, B = tf.constant([[1, 2, 3, 3], [4, 4, 0, 1]]), tf.constant([[3, 2, 9], [7, 8, 4]])


def dense(sparse, default=-1):
    return tf.sparse.to_dense(sparse, default_value=default).numpy().tolist()


def test_sets():
    assert dense(tf.sets.intersection(A, B)) == [[2, 3], [4, -1]]
    assert dense(tf.sets.union(A, B)) == [[1, 2, 3, 9, -1], [0, 1, 4, 7, 8]]
    assert dense(tf.sets.difference(A, B)) == [[1, -1], [0, 1]]
    assert dense(tf.sets.difference(A, B, aminusb=False)) == [[9, -1], [7, 8]]
    np.testing.assert_array_equal(tf.sets.size(tf.sets.union(A, B)), [4, 5])
    again = tf.sets.intersection(tf.sets.union(A, B), B)
    np.testing.assert_array_equal(again.values, [2, 3, 9, 4, 7, 8])
    assert again.dtype is tf.int32 and again.shape == (2, 3)


def test_wrong_sets():
    with pytest.raises(tf.errors.InvalidArgumentError, match="Mismatched"):
        tf.sets.union(A, B[:1])
    with pytest.raises(TypeError, match="Expected `SparseTensor`"):
        tf.sets.size(A)


def test_dense_and_back():
    x = tf.constant([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        sparse = tf.sparse.from_dense(x)
        y = tf.sparse.to_dense(sparse)
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(tape.gradient(y, x), [[0, 1, 0], [1, 0, 1]])
    turned = tf.SparseTensor(sparse.indices[::-1], sparse.values[::-1], [2, 3])
    np.testing.assert_array_equal(tf.sparse.reorder(turned).values, [1, 2, 3])
    assert "SparseTensor(indices=" in repr(turned)
    with pytest.raises(ValueError, match="Dimensions 1 and 2 are not compatible"):
        tf.SparseTensor([[0, 0]], [1.0, 2.0], [2, 2])


TABLE = np.arange(14.0).reshape(7, 2)
PLACES = [[0, 0], [0, 2], [1, 1], [2, 0], [2, 3]]
IDS = np.array([1, 3, 0, 6, 6])


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn", None])
def test_embedding_lookup_sparse(combiner):
    w = np.array([1, 2, 0.5, 3, 1])
    table = tf.constant(TABLE)
    with tf.GradientTape() as tape:
        tape.watch(table)
        out = tf.nn.embedding_lookup_sparse(
            table, tf.SparseTensor(PLACES, IDS, [3, 4]), tf.SparseTensor(PLACES, w, [3, 4]), combiner=combiner
        )
    rows = [[0, 1], [2], [3, 4]]
    by = {"sum": lambda k: 1, "sqrtn": lambda k: np.sqrt((w[k] ** 2).sum())}.get(
        combiner, lambda k: w[k].sum()
    )
    np.testing.assert_allclose(out, [(TABLE[IDS[k]] * w[k][:, None]).sum(0) / by(k) for k in rows])
    assert tf.convert_to_tensor(tape.gradient(out, table)).shape == (7, 2)


def test_safe_embedding_lookup_sparse():
    ids = tf.SparseTensor([[0, 0], [0, 2], [2, 1]], tf.constant([1, -3, 4], tf.int64), [4, 3])
    np.testing.assert_array_equal(
        tf.nn.safe_embedding_lookup_sparse(TABLE, ids), [[2, 3], [0, 0], [8, 9], [0, 0]]
    )
    filled = tf.nn.safe_embedding_lookup_sparse(TABLE, ids, default_id=5, combiner="sum")
    np.testing.assert_array_equal(filled, [[2, 3], [10, 11], [8, 9], [10, 11]])
    with pytest.raises(ValueError, match="combiner must be one of"):
        tf.nn.embedding_lookup_sparse(TABLE, ids, None, combiner="max")


def test_edit_distance():
    def words(*rows):
        places = [(r, i) for r, row in enumerate(rows) for i in range(len(row))]
        values = [label for row in rows for label in row]
        return tf.SparseTensor(np.array(places).reshape(-1, 2), np.array(values), [len(rows), 5])

    a, b = words([1, 2, 3], [1], [], [4, 5]), words([1, 3, 3, 4], [1], [2], [])
    np.testing.assert_allclose(tf.edit_distance(a, b), [0.5, 0, 1, np.inf])
    np.testing.assert_allclose(tf.edit_distance(a, b, normalize=False), [2, 0, 1, 2])
    with pytest.raises(TypeError, match="SparseTensor"):
        tf.edit_distance([[1]], b)
