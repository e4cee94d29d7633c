"""Indexing, tf.slice and tf.strided_slice against NumPy's indexing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradtape as tf

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
InvalidArgument = tf.errors.InvalidArgumentError

KEYS = [
    0, -1, slice(1, None), slice(None, None, -1), (0, 1), (slice(None), 1), (..., 2), (None, 0), (..., None),
    (0, ..., slice(None, None, 2)), (slice(None), slice(2, 0, -1), 3), (slice(5, 9),), (), ..., (0, 1, 2),
    (slice(None), None, slice(None), 0),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_index_and_its_gradient(key):
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x[key]
    np.testing.assert_array_equal(y, X[key])
    weights = np.arange(1, X[key].size + 1, dtype=np.float32).reshape(X[key].shape)
    expected = np.zeros_like(X)
    expected[key] = weights
    np.testing.assert_array_equal(tape.gradient(y, x, output_gradients=tf.constant(weights)), expected)


@pytest.mark.parametrize(
    "key",
    [
        np.array(1),
        np.array(-1, np.int16),
        (np.array(1), np.int8(2)),
        (..., np.array(3)),
        slice(np.array(1), None),
    ],
    ids=str,
)
def test_integers_of_numpy_as_indices(key):
    np.testing.assert_array_equal(tf.constant(X)[key], X[key])
    np.testing.assert_array_equal(tf.Variable(X)[key], X[key])


@pytest.mark.parametrize("key", [np.array([1]), np.array(1, np.int8), np.array(1.0), np.True_, 1.0], ids=str)
def test_invalid_indices(key):
    with pytest.raises(TypeError, match="valid indices"):
        tf.constant(X)[key]


_slices = st.builds(
    slice,
    st.none() | st.integers(-6, 6),
    st.none() | st.integers(-6, 6),
    st.none() | st.integers(-3, 3).filter(lambda s: s != 0),
)


@given(st.tuples(_slices, _slices, _slices))
def test_any_slices(key):
    np.testing.assert_array_equal(tf.constant(X)[key], X[key])


def test_index_by_tensors_and_masks():
    x = tf.constant(X)
    np.testing.assert_array_equal(x[tf.constant(1)], X[1])
    np.testing.assert_array_equal(x[tf.constant(0) : tf.constant(1), 1], X[0:1, 1])
    np.testing.assert_array_equal(x[x > 5.0], X[X > 5])
    np.testing.assert_array_equal(tf.Variable(X)[1, :2], X[1, :2])


@pytest.mark.parametrize(
    ("begin", "size"),
    [
        ([0, 1, 0], [2, 1, 4]),
        ([1, 0, 2], [-1, -1, -1]),
        ([2, 0, 0], [0, 3, 1]),
        (tf.constant([0, 1, 1]), (1, 2, -1)),
    ],
)
def test_slice(begin, size):
    key = tuple(slice(int(b), None if s == -1 else int(b) + s) for b, s in zip(begin, size, strict=True))
    np.testing.assert_array_equal(tf.slice(X, begin, size), X[key])


@pytest.mark.parametrize(
    ("begin", "size", "message"),
    [
        ([0, 5, 0], [1, 1, 1], r"begin\[1\] in \[0, 3\], but got 5"),
        ([0, 1, 0], [1, 3, 1], r"size\[1\] in \[0, 2\], but got 3"),
        ([0], [1], "1-D tensors of size 3"),
    ],
)
def test_slice_errors(begin, size, message):
    with pytest.raises(InvalidArgument, match=message):
        tf.slice(X, begin, size)


STRIDED = {
    "plain": ({"begin": [0, 0], "end": [2, 3], "strides": [1, 2]}, np.s_[0:2, 0:3:2]),
    "few": ({"begin": [1], "end": [2]}, np.s_[1:2]),
    "shrink": ({"begin": [1, 0], "end": [2, 3], "shrink_axis_mask": 1}, np.s_[1, 0:3]),
    "no begin, no end": ({"begin": [9, 1], "end": [9, 0], "begin_mask": 1, "end_mask": 3}, np.s_[:, 1:]),
    "ellipsis": ({"begin": [0, 1], "end": [0, 2], "ellipsis_mask": 1}, np.s_[..., 1:2]),
    "new axis": ({"begin": [0, 1], "end": [0, 2], "new_axis_mask": 1}, np.s_[None, 1:2]),
    "backwards": ({"begin": [-1], "end": [-3], "strides": [-1]}, np.s_[-1:-3:-1]),
}


@pytest.mark.parametrize("name", STRIDED)
def test_strided_slice(name):
    arguments, key = STRIDED[name]
    np.testing.assert_array_equal(tf.strided_slice(X, **arguments), X[key])


def test_strided_slice_errors():
    with pytest.raises(InvalidArgument, match="must be non-zero"):
        tf.strided_slice(X, [0], [2], [0])
    with pytest.raises(InvalidArgument, match="slice index 5 of dimension 0 out of bounds"):
        tf.strided_slice(X, [5], [6], shrink_axis_mask=1)
    with pytest.raises(InvalidArgument, match="equal size"):
        tf.strided_slice(X, [0, 0], [1])


@pytest.mark.parametrize(
    ("mask", "axis", "key"),
    [
        ([True, False], None, np.s_[[True, False]]),
        ([True, False, True], 1, np.s_[:, [True, False, True]]),
        ([True, False, True, True], -1, np.s_[..., [True, False, True, True]]),
        ([1, 0], 0, np.s_[[True, False]]),
        (X > 5, None, np.s_[X > 5]),
        (X[0] > 5, 1, np.s_[:, X[0] > 5]),
    ],
)
def test_boolean_mask_and_its_gradient(mask, axis, key):
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.boolean_mask(x, mask, axis=axis)
    np.testing.assert_array_equal(y, X[key])
    g = tape.gradient(y, x)
    assert isinstance(g, tf.Tensor)
    expected = np.zeros_like(X)
    expected[key] = 1
    np.testing.assert_array_equal(g, expected)


def test_boolean_mask_errors():
    with pytest.raises(ValueError, match="incompatible"):
        tf.boolean_mask(X, [True, False, True])
    with pytest.raises(ValueError, match="scalar"):
        tf.boolean_mask(X, True)
