"""Sparse tensors as strings: serialize_sparse, serialize_many_sparse, deserialize_many_sparse."""

import numpy as np
import pytest

import gradtape as tf


def _sparse():
    return tf.SparseTensor([[0, 1], [2, 0], [2, 2]], [1.0, 2.0, 3.0], [3, 3])


def test_the_strings_are_serialised_tensors():
    sparse = _sparse()
    indices, values, shape = tf.io.serialize_sparse(sparse).numpy()
    np.testing.assert_array_equal(tf.io.parse_tensor(indices, tf.int64), sparse.indices)
    np.testing.assert_array_equal(tf.io.parse_tensor(values, tf.float32), sparse.values)
    np.testing.assert_array_equal(tf.io.parse_tensor(shape, tf.int64), sparse.dense_shape)


def test_rows_there_and_back():
    sparse = _sparse()
    written = tf.io.serialize_many_sparse(sparse)
    assert written.shape == [3, 3]
    again = tf.io.deserialize_many_sparse(written, tf.float32, rank=2)
    np.testing.assert_array_equal(tf.sparse.to_dense(again), tf.sparse.to_dense(sparse))


def test_rows_of_different_sizes_fit_the_largest():
    rows = [tf.SparseTensor([[1]], [5], [2]), tf.SparseTensor([[3]], [6], [4])]
    joined = tf.io.deserialize_many_sparse(tf.stack([tf.io.serialize_sparse(r) for r in rows]), tf.int32)
    np.testing.assert_array_equal(tf.sparse.to_dense(joined), [[0, 5, 0, 0], [0, 0, 0, 6]])


def test_in_a_function():
    @tf.function
    def dense(written):
        return tf.sparse.to_dense(tf.io.deserialize_many_sparse(written, tf.float32))

    np.testing.assert_array_equal(
        dense(tf.io.serialize_many_sparse(_sparse())), tf.sparse.to_dense(_sparse())
    )


def test_wrong_types_and_values():
    invalid = tf.errors.InvalidArgumentError
    written = tf.io.serialize_many_sparse(_sparse())
    with pytest.raises(invalid):
        tf.io.deserialize_many_sparse(written, tf.int32)
    with pytest.raises(ValueError):
        tf.io.deserialize_many_sparse(written, tf.float32, rank=1)
    with pytest.raises(invalid):
        tf.io.deserialize_many_sparse(written[0], tf.float32)
    with pytest.raises(invalid, match="Rank of input SparseTensor should be > 1"):
        tf.io.serialize_many_sparse(tf.SparseTensor([[1]], [1.0], [3]))
    with pytest.raises(TypeError):
        tf.io.serialize_sparse(tf.ones([2]))
