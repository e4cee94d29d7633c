"""Gather, scatter, where, one_hot, segments: composites, sparse gradients, errors, as in TensorFlow."""

import numpy as np
import pytest

import gradtape as tf

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)
InvalidArgument = tf.errors.InvalidArgumentError


def gradient(f, x=X):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


# ---- gather ----


CUBE = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)


def test_gather_along_the_first_axis_has_no_batches():
    for batch_dims in (1, 2, -1):
        out = tf.gather(CUBE, [[1, 1], [0, 0]], axis=0, batch_dims=batch_dims)
        np.testing.assert_array_equal(out, CUBE[[[1, 1], [0, 0]]])
    np.testing.assert_array_equal(
        tf.convert_to_tensor(gradient(lambda x: tf.gather(x, [1, 1], axis=0, batch_dims=1), CUBE)),
        [0 * CUBE[0], 0 * CUBE[1] + 2],
    )
    for axis in (-3, 1):
        with pytest.raises(InvalidArgument, match="must be less than or equal to axis"):
            tf.gather(CUBE, [[[0], [0], [0]]] * 2, axis=axis, batch_dims=2)


def test_gather_takes_a_negative_axis_from_batch_dims():
    # batch_dims=-2 of indices with two axes is 0, and stands for the axis -2, too.
    assert tf.gather(CUBE, [[1, 1], [0, 2]], batch_dims=-2).shape == (2, 2, 2, 4)


def test_indices_out_of_range_can_be_ignored():
    np.testing.assert_array_equal(
        tf.gather_nd(X, [[0, 0], [5, 5], [-1, 0]], bad_indices_policy="IGNORE"), [1, 0, 0]
    )
    np.testing.assert_array_equal(
        tf.gather_nd(X, [[[0], [5]], [[1], [9]]], batch_dims=1, bad_indices_policy="IGNORE"), [[1, 0], [5, 0]]
    )
    np.testing.assert_array_equal(
        tf.convert_to_tensor(gradient(lambda x: tf.gather_nd(x, [[0], [7]], bad_indices_policy="IGNORE"))),
        [[1, 1, 1], [0, 0, 0]],
    )
    at, updates = [[0], [5], [-1]], [1.0, 2.0, 3.0]
    ignored = {"bad_indices_policy": "IGNORE"}
    np.testing.assert_array_equal(tf.scatter_nd(at, updates, [3], **ignored), [1, 0, 0])
    x = [1.0, 2.0, 3.0]
    for name, first in (("add", 2), ("sub", 0), ("max", 1), ("min", 1)):
        scatter = getattr(tf, f"tensor_scatter_nd_{name}")
        np.testing.assert_array_equal(scatter(x, at, updates, **ignored), [first, 2, 3])
        np.testing.assert_array_equal(
            tf.function(lambda u, scatter=scatter: scatter(x, at, u, **ignored))(tf.constant(updates)),
            [first, 2, 3],
        )
    for policy in ("", "DEFAULT", "ERROR"):
        with pytest.raises(InvalidArgument, match="does not index into"):
            tf.scatter_nd(at, updates, [3], bad_indices_policy=policy)
    with pytest.raises(InvalidArgument, match="Unknown bad indices handling attribute: none"):
        tf.gather_nd(X, [[0]], bad_indices_policy="none")


def test_gather_takes_its_axis_from_batch_dims():
    for axis in (None, 1, -1):
        np.testing.assert_array_equal(tf.gather(X, [[2], [0]], axis=axis, batch_dims=1), [[3], [4]])
    np.testing.assert_array_equal(tf.gather(X, [[2], [0]], batch_dims=-1), [[3], [4]])
    np.testing.assert_array_equal(tf.batch_gather(X, [[2], [0]]), [[3], [4]])


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "uint8"])
def test_gather_indices_of_any_integer_type(dtype):
    np.testing.assert_array_equal(tf.gather(X, np.array([1], dtype)), X[1:])


def test_gather_refuses_floats_as_indices():
    with pytest.raises(InvalidArgument, match="must hold integers"):
        tf.gather(X, [0.0])


def test_T62_gather_gradient_is_flat_slices():
    g = gradient(lambda x: tf.gather(x, [[1, 0], [1, 1]]))
    assert isinstance(g, tf.IndexedSlices)
    assert g.values.shape == (4, 3)
    np.testing.assert_array_equal(g.indices, [1, 0, 1, 1])
    np.testing.assert_array_equal(g.dense_shape, [2, 3])
    np.testing.assert_array_equal(tf.convert_to_tensor(g), [[1] * 3, [3] * 3])


def test_second_order_through_slices():
    x = tf.constant(X)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.gather(x, [1, 1, 0]) ** 3
        g = inner.gradient(y, x)
        z = tf.reduce_sum(g.values)
    np.testing.assert_allclose(tf.convert_to_tensor(outer.gradient(z, x)), 6 * X * [[1], [2]], rtol=1e-6)


def test_gather_passes_dense_gradients_on():
    g = gradient(lambda x: tf.gather(x * 2.0, [1, 1]))
    assert isinstance(g, tf.Tensor)
    np.testing.assert_array_equal(g, [[0] * 3, [4] * 3])


def test_gather_nd_in_batches():
    np.testing.assert_array_equal(tf.gather_nd(X, [[2], [0]], batch_dims=1), [3, 4])
    np.testing.assert_array_equal(
        gradient(lambda x: tf.gather_nd(x, [[2], [0]], batch_dims=1)), [[0, 0, 1], [1, 0, 0]]
    )


def test_embedding_lookup():
    np.testing.assert_array_equal(tf.nn.embedding_lookup(tf.Variable(X), [1, 0]), X[::-1])
    np.testing.assert_array_equal(tf.nn.embedding_lookup([X], [[1]]), [X[1:]])
    np.testing.assert_array_equal(tf.nn.embedding_lookup([X, X[:1]], [1, 2]), X[[1, 0]])
    with pytest.raises(ValueError, match="at least one"):
        tf.nn.embedding_lookup([], [0])


def test_embedding_lookup_max_norm():
    rows = tf.nn.embedding_lookup(X, [1, 0], max_norm=5.0).numpy()
    np.testing.assert_allclose(rows, [X[1] / np.linalg.norm(X[1]) * 5, X[0]], rtol=1e-6)


# ---- scatter ----


def test_tensor_scatter():
    np.testing.assert_array_equal(tf.tensor_scatter_nd_update(X, [[0]], [[7.0, 8.0, 9.0]]), [[7, 8, 9], X[1]])
    np.testing.assert_array_equal(tf.tensor_scatter_nd_add(X, [[0, 1]] * 2, [7.0, 8.0])[0], [1, 17, 3])
    np.testing.assert_array_equal(tf.tensor_scatter_nd_sub(X, [[0, 1]] * 2, [7.0, 8.0])[0], [1, -13, 3])
    np.testing.assert_array_equal(tf.tensor_scatter_nd_max(X, [[0, 1]] * 2, [7.0, 8.0])[0], [1, 8, 3])
    np.testing.assert_array_equal(tf.tensor_scatter_nd_min(X, [[0, 1]] * 2, [-7.0, 8.0])[0], [1, -7, 3])


def test_tensor_scatter_ties_share_the_gradient():
    x, u = tf.constant([2.0, 1.0]), tf.constant([2.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch([x, u])
        y = tf.tensor_scatter_nd_max(x, [[0], [0]], u)
    gx, gu = tape.gradient(y, [x, u])
    np.testing.assert_allclose(gx, [1 / 3, 1])
    np.testing.assert_allclose(gu, [1 / 3, 1 / 3])


def test_scatter_nd_of_truth_values():
    np.testing.assert_array_equal(tf.scatter_nd([[1]], [True], [3]), [False, True, False])


# ---- where, one_hot ----


def test_where_with_one_argument():
    np.testing.assert_array_equal(tf.where([[True, False], [True, True]]), [[0, 0], [1, 0], [1, 1]])
    assert tf.where([0.0, 2.0]).dtype is tf.int64
    assert tf.where([False]).shape == (0, 1)


def test_where_broadcasts_and_takes_the_type_of_the_tensor():
    x = tf.constant(X, tf.float64)
    y = tf.where(x > 2.0, x, 0)
    assert y.dtype is tf.float64
    np.testing.assert_array_equal(y, np.where(X > 2, X, 0))
    np.testing.assert_array_equal(tf.where([[True], [False]], X, [7.0, 8.0, 9.0]), [[1, 2, 3], [7, 8, 9]])
    with pytest.raises(ValueError, match="both"):
        tf.where(x > 2.0, x)
    with pytest.raises(InvalidArgument):
        tf.where([True, False], X, 0.0)


def test_where_gradient():
    np.testing.assert_array_equal(
        gradient(lambda x: tf.where(x > 2.0, x * x, 3.0 * x)), [[3, 3, 6], [8, 10, 12]]
    )


ONE_HOT = {
    "plain": ({}, [[1, 0, 0], [0, 0, 1]], "float32"),
    "axis": ({"axis": 0}, [[1, 0], [0, 0], [0, 1]], "float32"),
    "dtype": ({"dtype": tf.int32}, [[1, 0, 0], [0, 0, 1]], "int32"),
    "dtype name": ({"dtype": "bool"}, [[True, False, False], [False, False, True]], "bool"),
    "values": ({"on_value": 5, "off_value": -1}, [[5, -1, -1], [-1, -1, 5]], "int32"),
    "on alone": ({"on_value": 5.0}, [[5, 0, 0], [0, 0, 5]], "float32"),
    "off alone": ({"off_value": 5.0}, [[1, 5, 5], [5, 5, 1]], "float32"),
    "truth": ({"on_value": True, "off_value": False}, [[True, False, False], [False, False, True]], "bool"),
}


@pytest.mark.parametrize("name", ONE_HOT)
def test_one_hot(name):
    arguments, expected, dtype = ONE_HOT[name]
    out = tf.one_hot([0, 2], 3, **arguments)
    assert out.dtype == dtype
    np.testing.assert_array_equal(out, expected)


def test_one_hot_of_indices_outside():
    np.testing.assert_array_equal(tf.one_hot(np.array([7, -1, 1]), tf.constant(2)), [[0, 0], [0, 0], [0, 1]])


def test_one_hot_errors():
    with pytest.raises(TypeError, match="does not match dtype parameter int32"):
        tf.one_hot([0], 3, on_value=5.0, dtype=tf.int32)
    with pytest.raises(TypeError, match="off_value"):
        tf.one_hot([0], 3, on_value=5.0, off_value=1)
    with pytest.raises(InvalidArgument):
        tf.one_hot([0.0], 3)


def test_sequence_mask():
    expected = [[True, False, False], [True, True, True], [False, False, False]]
    np.testing.assert_array_equal(tf.sequence_mask([1, 3, 0]), expected)
    np.testing.assert_array_equal(tf.sequence_mask([1, 3, 0], 2, tf.float32), np.float32(expected)[:, :2])
    np.testing.assert_array_equal(tf.sequence_mask(2, tf.constant(3)), [True, True, False])
    assert tf.sequence_mask([[1], [2]]).shape == (2, 1, 2)


def test_unique():
    y, idx = tf.unique([3, 1, 3, 2])
    np.testing.assert_array_equal(y, [3, 1, 2])
    np.testing.assert_array_equal(idx, [0, 1, 0, 2])
    assert tf.unique([1, 1], out_idx=tf.int64).idx.dtype is tf.int64
    out = tf.unique_with_counts(np.array([3, 1, 3, 2]))
    np.testing.assert_array_equal(out.count, [2, 1, 1])
    assert out.count.dtype is tf.int32


# ---- segments ----

SORTED = {
    "sum": [[1, 2, 3], [0, 0, 0], [4, 5, 6]],
    "mean": [[1, 2, 3], [0, 0, 0], [4, 5, 6]],
    "max": [[1, 2, 3], [0, 0, 0], [4, 5, 6]],
    "min": [[1, 2, 3], [0, 0, 0], [4, 5, 6]],
    "prod": [[1, 2, 3], [1, 1, 1], [4, 5, 6]],
}


@pytest.mark.parametrize("name", SORTED)
def test_sorted_segments_and_empty_ones(name):
    np.testing.assert_array_equal(getattr(tf.math, f"segment_{name}")(X, [0, 2]), SORTED[name])
    assert getattr(tf.math, f"segment_{name}")(X[:0], np.zeros([0], int)).shape == (0, 3)


@pytest.mark.parametrize("ids", [[1, 0], [-1, 0], [0, 0, 1], [[0], [0]]])
def test_sorted_segments_check_their_ids(ids):
    with pytest.raises(InvalidArgument):
        tf.math.segment_sum(X, ids)


def test_unsorted_segments():
    np.testing.assert_array_equal(tf.math.unsorted_segment_sum(X, [2, -1], 3), [[0] * 3, [0] * 3, X[0]])
    np.testing.assert_allclose(tf.math.unsorted_segment_mean(X, [1, 1], 2), [[0] * 3, X.mean(0)])
    np.testing.assert_allclose(
        tf.math.unsorted_segment_sqrt_n(X, [1, 1], 2), [[0] * 3, X.sum(0) / np.sqrt(2)], rtol=1e-6
    )
    lowest = np.finfo(np.float32).min
    np.testing.assert_array_equal(tf.math.unsorted_segment_max(X, [1, 1], 2), [[lowest] * 3, X[1]])


def test_segment_max_ties_share_the_gradient():
    for f in (tf.math.segment_max, tf.math.segment_min):
        np.testing.assert_allclose(
            gradient(lambda x, f=f: f(x, [0, 0, 0, 2]), np.float32([3, 3, 3, 1])), [1 / 3] * 3 + [1]
        )


def test_segment_max_second_order_with_an_empty_segment():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.math.unsorted_segment_max(x, [1, 1], 3)[1] ** 2
        g = inner.gradient(y, x)
    np.testing.assert_array_equal(outer.gradient(g, x), [0, 2])


def test_segment_prod_gradient_with_zeros():
    f = lambda x: tf.math.unsorted_segment_prod(x, [0, 0, 0, 1, 1], 2)  # noqa: E731
    np.testing.assert_array_equal(gradient(f, np.float32([2, 0, 3, 0, 0])), [0, 6, 0, 0, 0])


# ---- partition and stitch ----


def test_dynamic_partition():
    parts = tf.dynamic_partition(X, [[0, 1, 0], [1, 1, 0]], 3)
    assert isinstance(parts, list)
    for part, expected in zip(parts, [[1, 3, 6], [2, 4, 5], []], strict=True):
        np.testing.assert_array_equal(part, expected)
    np.testing.assert_array_equal(
        gradient(lambda x: tf.dynamic_partition(x, [1, 0], 2)[0]), [[0] * 3, [1] * 3]
    )


def test_dynamic_partition_errors():
    with pytest.raises(InvalidArgument, match=r"partitions\[1\] = 5 is not in \[0, 2\)"):
        tf.dynamic_partition(X, [0, 5], 2)
    with pytest.raises(InvalidArgument, match="must start with partitions.shape"):
        tf.dynamic_partition(X, [0, 1, 0], 2)


def test_dynamic_stitch():
    np.testing.assert_array_equal(tf.dynamic_stitch([[0, 2], [1]], [[1.0, 2.0], [3.0]]), [1, 3, 2])
    np.testing.assert_array_equal(tf.dynamic_stitch([[0, 2], [2]], [[1.0, 2.0], [3.0]]), [1, 0, 3])
    np.testing.assert_array_equal(
        tf.dynamic_stitch([0, [[2], [1]]], [[1.0, 2.0], [[[3.0, 4.0]], [[5.0, 6.0]]]]),
        [[1, 2], [5, 6], [3, 4]],
    )
    np.testing.assert_array_equal(
        gradient(lambda x: tf.dynamic_stitch([[0, 2], [1]], [x, 2.0 * x[:1]])), [[3] * 3, [1] * 3]
    )


def test_partition_and_stitch_are_inverse():
    ids = [1, 0]
    places = tf.dynamic_partition([0, 1], ids, 2)
    np.testing.assert_array_equal(tf.dynamic_stitch(places, tf.dynamic_partition(X, ids, 2)), X)


@pytest.mark.parametrize("width", [1, 40])
def test_scatter_and_segments_pass_nan_on(width):
    """For rows of any length, as `maximum` and `reduce_max` do."""
    row = np.full((1, width), np.nan, np.float32)
    for scatter in (tf.tensor_scatter_nd_max, tf.tensor_scatter_nd_min):
        assert np.isnan(scatter(np.zeros_like(row), [[0]], row)).all()
        assert np.isnan(scatter(row, [[0]], np.zeros_like(row))).all()
    rows = np.concatenate([np.zeros_like(row), row, np.ones_like(row)])
    for segments in (tf.math.unsorted_segment_max, tf.math.unsorted_segment_min):
        assert np.isnan(segments(rows, [0, 0, 0], 1)).all()
