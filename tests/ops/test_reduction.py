"""Reductions, statistics and norms: what the contract test of the rows does not cover."""

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.ops.table import TABLE

RNG = np.random.default_rng(0)
A = RNG.normal(size=(2, 3)).astype(np.float32)
T = RNG.normal(size=(2, 3, 4)).astype(np.float32)
C = (RNG.normal(size=(2, 3)) + 1j * RNG.normal(size=(2, 3))).astype(np.complex64)


def gradient(f, x):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x).numpy()


def close(actual, expected, rtol=1e-5):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=1e-6)


# ---- the rows under their public names ----


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "any", "all", "logsumexp"])
def test_public_reductions_are_the_native_op(name):
    op = TABLE[name].op
    assert getattr(tf, f"reduce_{name}") is op
    assert getattr(tf.math, f"reduce_{name}") is op


def test_argmax_is_the_native_op():
    assert tf.argmax is TABLE["argmax"].op is tf.math.argmax
    assert tf.argmin is TABLE["argmin"].op is tf.math.argmin


@pytest.mark.parametrize(("name", "reads"), [("sum", 0), ("mean", 0), ("sum_to", 0), ("max", 3), ("prod", 1)])
def test_rules_save_only_the_residuals_they_read(name, reads):
    x = tf.constant(A)
    with tf.GradientTape() as tape:
        tape.watch(x)
        TABLE[name].op(x, [3] if name == "sum_to" else 1)
    assert set(TABLE[name].op._reads) == {reads}


def test_python_lists_and_keyword_axes():
    assert tf.reduce_sum([[1, 2], [3, 4]], axis=0).numpy().tolist() == [4, 6]
    assert tf.reduce_sum([1.0, 2.0], keepdims=True).shape == (1,)
    close(tf.reduce_sum(A, axis=tf.constant([0, 1])), A.sum())
    close(tf.reduce_sum(tf.Variable(A), -1, name="loss"), A.sum(-1))


def test_mean_of_integers_is_an_integer():
    assert tf.reduce_mean([1, 2]).numpy() == 1
    assert tf.reduce_mean([-1, -2]).numpy() == -1
    assert tf.reduce_mean([1, 2]).dtype is tf.int32


def test_empty_reductions():
    assert tf.reduce_sum(tf.zeros((0, 2)), 0).numpy().tolist() == [0, 0]
    assert np.isnan(tf.reduce_mean(tf.zeros((0,))).numpy())
    assert tf.reduce_max(tf.zeros((0,))).numpy() == -np.inf
    assert tf.reduce_min(tf.zeros((0,))).numpy() == np.inf
    assert tf.reduce_max(tf.zeros((0,), tf.int32)).numpy() == np.iinfo(np.int32).min
    assert tf.reduce_prod([]).numpy() == 1
    assert tf.reduce_logsumexp(tf.zeros((0,))).numpy() == -np.inf
    assert not tf.reduce_any([]).numpy()
    assert gradient(tf.reduce_mean, np.zeros((0, 2), np.float32)).shape == (0, 2)


def test_truth_values_have_no_sum():
    with pytest.raises(tf.errors.InvalidArgumentError, match="bool"):
        tf.reduce_sum([True, False])


def test_any_of_python_numbers():
    with pytest.raises(TypeError, match="bool"):
        tf.reduce_any([1.0])


def test_extrema_with_nan_have_a_nan_gradient():
    assert np.isnan(gradient(tf.reduce_max, [1.0, np.nan])).all()


def test_second_order_of_a_product_with_zeros():
    x = tf.constant([2.0, 0.0, 3.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_prod(x)
        first = inner.gradient(y, x)[0]
    close(outer.gradient(first, x), [0.0, 3.0, 0.0])


def test_argmax():
    assert tf.argmax(A).numpy().tolist() == A.argmax(0).tolist()
    assert tf.argmax(A, None).dtype is tf.int64
    assert tf.argmax(A, axis=-1, output_type=tf.int32).dtype is tf.int32
    assert tf.argmin([3, 1, 1]).numpy() == 1
    assert tf.argmax([False, True]).numpy() == 1
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.argmax(1.0)


# ---- statistics ----


def test_variance_and_deviation():
    close(tf.math.reduce_variance(A, 1, keepdims=True), A.var(1, keepdims=True))
    close(tf.math.reduce_std(A), A.std())
    close(tf.math.reduce_variance(C), C.var())
    assert tf.math.reduce_std(C).dtype is tf.float32
    with pytest.raises(TypeError, match="integer"):
        tf.math.reduce_variance([1, 2])
    assert np.isnan(gradient(tf.math.reduce_std, [1.0, 1.0])).all()


def test_second_order_of_the_variance():
    """TensorFlow stops the gradient of the mean, and so misses the second term."""
    x = tf.constant([1.0, 2.0, 4.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.nn.moments(x, 0)[1]
        g = inner.gradient(y, x)
        first = g[0]
    close(g, [-8 / 9, -2 / 9, 10 / 9])
    close(outer.gradient(first, x), [4 / 9, -2 / 9, -2 / 9])


def test_moments():
    mean, variance = tf.nn.moments(T, [0, 2])
    close(mean, T.mean((0, 2)))
    close(variance, T.var((0, 2)))
    mean, variance = tf.nn.moments(T, [0, 2], keepdims=True)
    assert mean.shape == variance.shape == (1, 3, 1)
    assert tf.nn.moments(tf.constant([1.0, 2.0], tf.float16), 0)[1].dtype is tf.float16


def test_weighted_moments():
    w = np.array([[1, 2, 1], [3, 1, 0]], np.float32)
    mean, variance = tf.nn.weighted_moments(A, [0], w)
    expected = (A * w).sum(0) / w.sum(0)
    close(mean, expected)
    close(variance, (w * (A - expected) ** 2).sum(0) / w.sum(0))
    assert tf.nn.weighted_moments(A, [0, 1], 2.0, keepdims=True)[0].shape == (1, 1)


def test_sufficient_statistics():
    count, total, squares, shift = tf.nn.sufficient_statistics(A, [0], shift=1.0)
    assert count.numpy() == 2
    mean, variance = tf.nn.normalize_moments(count, total, squares, shift)
    close(mean, A.mean(0))
    close(variance, A.var(0), 1e-4)


def test_counts():
    assert tf.math.count_nonzero([0.0, 1.0, 2.0]).numpy() == 2
    assert tf.math.count_nonzero([[True, False]], axis=1, keepdims=True, dtype=tf.int32).numpy().tolist() == [
        [1]
    ]
    assert tf.nn.zero_fraction([0, 0, 1, 1]).numpy() == 0.5
    assert np.isnan(tf.math.zero_fraction(tf.zeros((0,))).numpy())


def test_bincount():
    def counts(*args, **kwargs):
        return tf.math.bincount(*args, **kwargs).numpy().tolist()

    assert counts([1, 1, 2, 5]) == [0, 2, 1, 0, 0, 1]
    assert counts([1, 1, 2, 5], minlength=8) == [0, 2, 1, 0, 0, 1, 0, 0]
    assert counts([1, 1, 2, 5], maxlength=3) == [0, 2, 1]
    assert counts([1, 1, 2], weights=[0.5, 0.5, 2.0]) == [0, 1, 2]
    assert counts([[1, 1], [0, 2]], axis=-1) == [[0, 2, 0], [1, 0, 1]]
    assert counts([[1, 1], [0, 2]], axis=-1, binary_output=True) == [[0, 1, 0], [1, 0, 1]]
    assert counts([[1, 1], [0, 2]]) == [1, 2, 1]
    assert counts(tf.constant([], tf.int32)) == []
    with pytest.raises(tf.errors.InvalidArgumentError, match="non-negative"):
        tf.math.bincount([-1])
    with pytest.raises(ValueError, match="axis"):
        tf.math.bincount([1], axis=3)


def test_confusion_matrix():
    assert tf.math.confusion_matrix([1, 2, 0], [2, 2, 0]).numpy().tolist() == [
        [1, 0, 0],
        [0, 0, 1],
        [0, 0, 1],
    ]
    assert tf.math.confusion_matrix([1], [0], num_classes=3).shape == (3, 3)
    assert tf.math.confusion_matrix([1, 0], [[0], [1]], weights=[2, 3]).numpy().tolist() == [[0, 3], [2, 0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of bound"):
        tf.math.confusion_matrix([1, 5], [0, 1], num_classes=3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="negative"):
        tf.math.confusion_matrix([1, -5], [0, 1])


def test_histogram():
    values = [-1.0, 0.0, 1.5, 2.0, 5.0, 15.0]
    assert tf.histogram_fixed_width(values, [0.0, 5.0], nbins=5).numpy().tolist() == [2, 1, 1, 0, 2]
    assert tf.histogram_fixed_width_bins(values, [0.0, 5.0], nbins=5).numpy().tolist() == [0, 0, 1, 2, 4, 4]
    with pytest.raises(tf.errors.InvalidArgumentError, match="value_range"):
        tf.histogram_fixed_width([1.0], [2.0, 1.0])


# ---- norms ----

NORMS = [
    ("euclidean", None), ("euclidean", 1), (1, 0), (2, 1), (3, 1), (np.inf, 1), (1.5, None), (1, (0, 1)),
    (np.inf, (0, 1)), ("fro", (0, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("ord", "axis"), NORMS)
@pytest.mark.parametrize("keepdims", [False, True])
def test_norm(ord, axis, keepdims):
    x = A.ravel() if axis is None else A
    expected = np.linalg.norm(x, None if ord == "euclidean" else ord, axis)
    shape = () if axis is None else np.sum(A, axis=axis, keepdims=keepdims).shape
    shape = (1, 1) if axis is None and keepdims else shape
    close(tf.norm(A, ord, axis, keepdims), expected.reshape(shape))


@pytest.mark.parametrize(("ord", "axis"), NORMS)
def test_gradient_of_a_norm_at_zero_is_zero(ord, axis):
    assert not gradient(lambda x: tf.norm(x, ord, axis), np.zeros((2, 3), np.float32)).any()


def test_euclidean_norm():
    close(tf.math.reduce_euclidean_norm(A, 1), np.linalg.norm(A, axis=1))
    assert tf.math.reduce_euclidean_norm([1, 2, 3]).numpy() == 3
    close(gradient(tf.math.reduce_euclidean_norm, A), A / np.linalg.norm(A))
    assert not gradient(tf.math.reduce_euclidean_norm, [0.0, 0.0]).any()
    close(gradient(lambda x: tf.norm(x), C), C / np.linalg.norm(C))


def test_gradient_penalty_at_zero():
    """Second order through a norm whose operand is 0."""
    x, w = tf.constant([[1.0, 2.0]]), tf.Variable([[0.0], [0.0]])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.matmul(x, w)
        penalty = tf.norm(inner.gradient(y, x), axis=1)
    assert not outer.gradient(penalty, w).numpy().any()


@pytest.mark.parametrize(
    ("ord", "axis"),
    [("fro", None), ("x", None), (-1, None), (3, (0, 1)), ("euclidean", [0, 1, 0]), (1, [0, 0])],
)
def test_wrong_norms(ord, axis):
    with pytest.raises(ValueError, match="'ord'|'axis'"):
        tf.norm(A, ord, axis)


def test_normalize():
    unit, size = tf.linalg.normalize(A, axis=1)
    close(size, np.linalg.norm(A, axis=1, keepdims=True))
    close(unit, A / np.linalg.norm(A, axis=1, keepdims=True))
