"""Conventions for points without a derivative or with several, and for ops without a gradient."""

import numpy as np
import pytest

from .lib import ON_TENSORFLOW, assert_close, differs_on_tensorflow, gradient, tf

NAN, INF = np.nan, np.inf

# All are lambdas, so that a missing op fails its own case and not the import.
DERIVATIVES = {
    "abs(0)": (lambda x: tf.abs(x), 0.0, 0.0),
    "relu(0)": (lambda x: tf.nn.relu(x), 0.0, 0.0),
    "relu6(0)": (lambda x: tf.nn.relu6(x), 0.0, 0.0),
    "relu6(6)": (lambda x: tf.nn.relu6(x), 6.0, 0.0),
    "leaky_relu(0)": (lambda x: tf.nn.leaky_relu(x, alpha=0.3), 0.0, 0.3),
    "leaky_relu(0)-default": (lambda x: tf.nn.leaky_relu(x), 0.0, 0.2),
    "elu(0)": (lambda x: tf.nn.elu(x), 0.0, 1.0),
    "selu(0)": (lambda x: tf.nn.selu(x), 0.0, 1.050701),
    "softplus(0)": (lambda x: tf.math.softplus(x), 0.0, 0.5),
    "sign": (lambda x: tf.sign(x), [-2.0, 0.0, 3.0], [0.0, 0.0, 0.0]),
    "sqrt(0)": (lambda x: tf.sqrt(x), 0.0, INF),
    "acos(1)": (lambda x: tf.acos(x), 1.0, -INF),
    "asin(1)": (lambda x: tf.asin(x), 1.0, INF),
    "reduce_std-equal": (lambda x: tf.math.reduce_std(x), [2.0, 2.0, 2.0], [NAN, NAN, NAN]),
    "x**0.(0)": (lambda x: x**0.0, 0.0, NAN),
    "x**1.(0)": (lambda x: x**1.0, 0.0, 1.0),
    "x**2.(0)": (lambda x: x**2.0, 0.0, 0.0),
    "2**p": (lambda p: tf.constant(2.0) ** p, 3.0, 8.0 * np.log(2.0)),
    "0**p": (lambda p: tf.constant(0.0) ** p, 3.0, 0.0),
    "(-2)**p": (lambda p: tf.constant(-2.0) ** p, 3.0, 0.0),
    "reduce_max-tie": (lambda x: tf.reduce_max(x), [1.0, 3.0, 3.0], [0.0, 0.5, 0.5]),
    "reduce_min-tie": (lambda x: tf.reduce_min(x), [1.0, 3.0, 1.0], [0.5, 0.0, 0.5]),
    "reduce_max-all": (lambda x: tf.reduce_max(x), [2.0] * 4, [0.25] * 4),
    "clip_by_value": (
        lambda x: tf.clip_by_value(x, 0.0, 1.0),
        [-1.0, 0.0, 0.5, 1.0, 2.0],
        [0.0, 1.0, 1.0, 1.0, 0.0],
    ),
    "reduce_prod-one-zero": (lambda x: tf.reduce_prod(x), [2.0, 0.0, 3.0], [0.0, 6.0, 0.0]),
    "reduce_prod-two-zeros": (lambda x: tf.reduce_prod(x), [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    "cumprod": (lambda x: tf.math.cumprod(x), [2.0, 5.0, 3.0], [21.0, 8.0, 10.0]),
    "reduce_logsumexp-inf": (lambda x: tf.reduce_logsumexp(x), [-INF, -INF], [NAN, NAN]),
    "reduce_logsumexp-one-inf": (lambda x: tf.reduce_logsumexp(x), [-INF, 0.0], [0.0, 1.0]),
    "reduce_mean-empty": (lambda x: tf.reduce_mean(x), np.zeros([0], "float32"), np.zeros([0])),
    "clip_by_norm(0)": (lambda x: tf.clip_by_norm(x, 1.0), [0.0, 0.0], [1.0, 1.0]),
}


@pytest.mark.parametrize("case", DERIVATIVES)
def test_1_11_derivative(case):
    f, x, expected = DERIVATIVES[case]
    assert_close(gradient(f, x), np.float32(expected))


@pytest.mark.parametrize(
    "norm",
    [lambda x: tf.norm(x), lambda x: tf.math.reduce_euclidean_norm(x)],
    ids=["norm", "reduce_euclidean_norm"],
)
@differs_on_tensorflow("NaN in TensorFlow; 0 in gradtape, as in JAX and PyTorch")
def test_1_11_norm_of_zeros_has_gradient_zero(norm):
    assert_close(gradient(norm, [0.0, 0.0]), [0.0, 0.0])


@differs_on_tensorflow("TensorFlow returns [1, 0, 0]")
def test_1_11_cumprod_with_a_zero_has_its_true_gradient():
    assert_close(gradient(tf.math.cumprod, [2.0, 0.0, 3.0]), [1.0, 8.0, 0.0])


def test_1_11_reduce_mean_of_nothing_is_nan():
    assert_close(tf.reduce_mean(tf.zeros([0])), NAN)


# The branch of `where` that is not taken hands back a zero. A rule that multiplies it by
# an infinite derivative makes NaN of it; some rules are written not to.
UNTAKEN = {
    "sqrt": (lambda x: tf.sqrt(x), 0.0, 0.0),
    "rsqrt": (lambda x: tf.math.rsqrt(x), 0.0, 0.0),
    "reciprocal": (lambda x: tf.math.reciprocal(x), 0.0, 0.0),
    "log": (lambda x: tf.math.log(x), 0.0, NAN),
    "1/x": (lambda x: 1.0 / x, 0.0, NAN),
    "x**.5": (lambda x: x**0.5, 0.0, NAN),
    "acos": (lambda x: tf.acos(x), 1.0, NAN),
    "asin": (lambda x: tf.asin(x), 1.0, NAN),
    "atan2": (lambda x: tf.atan2(x, x), 0.0, NAN),
}


@pytest.mark.parametrize("case", UNTAKEN)
def test_1_11_zero_cotangent(case):
    f, x, expected = UNTAKEN[case]
    assert_close(gradient(lambda x: tf.where(False, f(x), 0.0), x), np.float32(expected))


LOGITS = np.float32([[1.0, 2.0, 4.0]])
LABELS = np.float32([[0.2, 0.3, 0.5]])
SOFTMAX = np.exp(LOGITS) / np.exp(LOGITS).sum()

PAIRS = {
    "xlogy(0,0)": (lambda x, y: tf.math.xlogy(x, y), 0.0, 0.0, 0.0, 0.0),
    "xlogy(0,2)": (lambda x, y: tf.math.xlogy(x, y), 0.0, 2.0, 0.0, 0.0),
    "xlogy(3,2)": (lambda x, y: tf.math.xlogy(x, y), 3.0, 2.0, np.log(2.0), 1.5),
    "divide_no_nan(3,0)": (lambda x, y: tf.math.divide_no_nan(x, y), 3.0, 0.0, 0.0, 0.0),
    "divide_no_nan(3,2)": (lambda x, y: tf.math.divide_no_nan(x, y), 3.0, 2.0, 0.5, -0.75),
    "atan2(0,0)": (lambda x, y: tf.atan2(x, y), 0.0, 0.0, NAN, NAN),
    "maximum-tie": (lambda x, y: tf.maximum(x, y), 2.0, 2.0, 1.0, 0.0),
    "maximum-first": (lambda x, y: tf.maximum(x, y), 3.0, 2.0, 1.0, 0.0),
    "maximum-second": (lambda x, y: tf.maximum(x, y), 1.0, 2.0, 0.0, 1.0),
    "minimum-tie": (lambda x, y: tf.minimum(x, y), 2.0, 2.0, 1.0, 0.0),
    "minimum-second": (lambda x, y: tf.minimum(x, y), 3.0, 2.0, 0.0, 1.0),
    "floormod(7.5,2)": (lambda x, y: tf.math.floormod(x, y), 7.5, 2.0, 1.0, -3.0),
    "floormod(-7.5,2)": (lambda x, y: tf.math.floormod(x, y), -7.5, 2.0, 1.0, 4.0),
    "x%y": (lambda x, y: x % y, 7.5, 2.0, 1.0, -3.0),
    "softmax_ce": (
        lambda labels, logits: tf.nn.softmax_cross_entropy_with_logits(labels, logits),
        LABELS,
        LOGITS,
        -np.log(SOFTMAX),
        SOFTMAX - LABELS,
    ),
    "sigmoid_ce": (
        lambda labels, logits: tf.nn.sigmoid_cross_entropy_with_logits(labels, logits),
        LABELS,
        LOGITS,
        -LOGITS,
        1 / (1 + np.exp(-LOGITS)) - LABELS,
    ),
}


@pytest.mark.parametrize("case", PAIRS)
def test_1_11_derivatives_of_two_arguments(case):
    f, x, y, expected_x, expected_y = PAIRS[case]
    gx, gy = gradient(f, x, y)
    assert_close(gx, np.float32(expected_x))
    assert_close(gy, np.float32(expected_y))


NOT_DIFFERENTIABLE = {
    "floor": lambda x: tf.floor(x),
    "ceil": lambda x: tf.math.ceil(x),
    "round": lambda x: tf.round(x),
    "rint": lambda x: tf.math.rint(x),
    "floordiv": lambda x: tf.math.floordiv(x, 2.0),
    "//": lambda x: x // 2.0,
    "truncatediv": lambda x: tf.truncatediv(x, 2.0),
    "argmax": lambda x: tf.argmax(x),
    "argmin": lambda x: tf.argmin(x),
    "equal": lambda x: x == 2.0,
    "not_equal": lambda x: x != 2.0,
    "less": lambda x: x < 2.0,
    "less_equal": lambda x: x <= 2.0,
    "greater": lambda x: x > 2.0,
    "greater_equal": lambda x: x >= 2.0,
    "cast-to-int": lambda x: tf.cast(x, tf.int32),
    "shape": lambda x: tf.shape(x),
    "size": lambda x: tf.size(x),
    "rank": lambda x: tf.rank(x),
    "zeros_like": lambda x: tf.zeros_like(x),
    "ones_like": lambda x: tf.ones_like(x),
    "one_hot-on": lambda x: tf.one_hot([1], 3, on_value=x[0]),
    "one_hot-off": lambda x: tf.one_hot([1], 3, on_value=1.0, off_value=x[0]),
    "range": lambda x: tf.range(x[2]),
    "searchsorted": lambda x: tf.searchsorted(x, [1.5]),
    "where-cond": lambda x: tf.where(x > 1.0),
    "numpy_function": lambda x: tf.numpy_function(np.sin, [x], tf.float32),
    "reduce_any": lambda x: tf.reduce_any(x > 1.0),
}


@pytest.mark.parametrize("case", NOT_DIFFERENTIABLE)
def test_1_11_not_differentiable(case):
    assert gradient(NOT_DIFFERENTIABLE[case], [1.0, 2.0, 3.0]) is None


NO_RULE = {
    "is_nan": lambda x: tf.math.is_nan(x),
    "unique": lambda x: tf.unique(x)[0],
    "bitcast": lambda x: tf.bitcast(x, tf.int32),
    "histogram_fixed_width": lambda x: tf.histogram_fixed_width(x, [0.0, 4.0]),
}


@pytest.mark.parametrize("case", NO_RULE)
def test_1_11_ops_without_a_rule_have_no_gradient(case):
    # TensorFlow raises LookupError for these and gives None for the ops above, by the accident of
    # which of them its registry knows. In gradtape an op without a gradient gives None.
    if ON_TENSORFLOW:
        with pytest.raises(LookupError):
            gradient(NO_RULE[case], [1.0, 2.0, 3.0])
    else:
        assert gradient(NO_RULE[case], [1.0, 2.0, 3.0]) is None
