"""Keras' ops and models on sparse tensors: values against NumPy, and which results are sparse."""

import numpy as np
import pytest

import gradtape as tf
import keras_gradtape  # noqa: F401  before Keras

keras = pytest.importorskip("keras")
ops = keras.ops

A = tf.SparseTensor([[0, 1], [1, 0], [1, 2]], [1.0, 2.0, 3.0], [2, 3])
B = tf.SparseTensor([[0, 1], [0, 2], [1, 1]], [10.0, 20.0, 30.0], [2, 3])
DENSE = np.arange(6, dtype="float32").reshape(2, 3)


def check(found, expected, sparse):
    assert isinstance(found, tf.SparseTensor) == sparse
    np.testing.assert_allclose(ops.convert_to_numpy(found), expected, rtol=1e-6)


def array(x):
    return ops.convert_to_numpy(x)


@pytest.mark.parametrize("name", "abs sin square negative tanh expm1 sign floor ceil".split())
def test_zero_stays_zero(name):
    check(getattr(ops, name)(A), getattr(np, name)(array(A)), True)


@pytest.mark.parametrize("name", "cos exp isfinite".split())
def test_zero_becomes_something_else(name):
    check(getattr(ops, name)(A), getattr(np, name)(array(A)), False)


@pytest.mark.parametrize("name", "add subtract maximum minimum".split())
def test_unions(name):
    op, np_op = getattr(ops, name), getattr(np, name)
    check(op(A, B), np_op(array(A), array(B)), True)
    check(op(A, DENSE), np_op(array(A), DENSE), False)
    check(op(DENSE, A), np_op(DENSE, array(A)), False)
    check(op(A, 2), np_op(array(A), 2), False)


def test_products_and_quotients():
    check(ops.multiply(A, B), array(A) * array(B), True)
    check(ops.multiply(DENSE, A), array(A) * DENSE, True)
    check(ops.multiply(A, 2), array(A) * 2, True)
    with np.errstate(all="ignore"):
        check(ops.divide(A, DENSE), array(A) / DENSE, True)  # 0 / 0 is stored as an element
        check(ops.divide(A, B), array(A) / array(B), False)
    check(ops.divide(A, 2), array(A) / 2, True)
    check(ops.matmul(A, DENSE.T), array(A) @ DENSE.T, False)
    check(ops.matmul(DENSE.T, A), DENSE.T @ array(A), False)
    check(ops.matmul(ops.transpose(A), B), array(A).T @ array(B), True)


def test_layouts():
    check(ops.sum(A, axis=1), array(A).sum(1), True)
    check(ops.reshape(A, (3, -1)), array(A).reshape(3, 2), True)
    check(ops.squeeze(ops.expand_dims(A, 0)), array(A), True)
    check(ops.cast(A, "int32"), array(A).astype(int), True)
    check(ops.concatenate([A, B], axis=1), np.concatenate([array(A), array(B)], 1), True)
    check(ops.concatenate([A, DENSE], axis=0), np.concatenate([array(A), DENSE]), False)
    check(ops.convert_to_tensor(A, sparse=False), array(A), False)


def test_codes():
    check(ops.one_hot([0, 2, -1], 3, sparse=True), [[1, 0, 0], [0, 0, 1], [0, 0, 0]], True)
    check(ops.one_hot([[1], [0]], 2, axis=0, sparse=True), [[[0], [1]], [[1], [0]]], True)
    check(ops.multi_hot([[0, 2], [1, 1]], 3, sparse=True), [[1, 0, 1], [0, 1, 0]], True)
    check(ops.bincount(np.array([[0, 1, 1], [2, 2, 0]]), sparse=True), [[1, 2, 0], [1, 0, 2]], True)


def test_a_model_with_a_sparse_input_is_trained():
    x = keras.Input((3,), sparse=True)
    y = keras.layers.Dense(4)(x)
    assert x.sparse and not y.sparse and y.shape == (None, 4)
    model = keras.Model(x, y)
    kernel, bias = model.get_weights()
    check(model(A), array(A) @ kernel + bias, False)
    model.compile("sgd", "mse")
    rows = tf.data.Dataset.from_tensor_slices((A, np.ones((2, 4), "float32"))).batch(2)
    history = model.fit(rows, epochs=3, verbose=0).history["loss"]
    assert history[2] < history[1] < history[0]
    kernel, bias = model.get_weights()
    np.testing.assert_allclose(
        model.predict(tf.data.Dataset.from_tensors((A,)), verbose=0), array(A) @ kernel + bias, rtol=1e-5
    )
