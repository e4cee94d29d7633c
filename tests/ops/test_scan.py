"""Running sums and products under their public names; gradients at zeros and infinities."""

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.ops.table import TABLE

A = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)


def gradient(f, x):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x).numpy()


def test_public_names():
    assert tf.cumsum is tf.math.cumsum is TABLE["cumsum"].op
    assert tf.math.cumprod is TABLE["cumprod"].op
    assert tf.math.cumulative_logsumexp is TABLE["cumlogsumexp"].op


def test_axis_may_be_a_tensor():
    np.testing.assert_allclose(tf.cumsum(A, axis=tf.constant(1)), A.cumsum(1), rtol=1e-6)


@pytest.mark.parametrize(
    ("x", "flags", "expected"),
    [
        ([2.0, 0.0, 3.0], {}, [1, 8, 0]),
        ([0.0, 0.0, 3.0], {}, [1, 0, 0]),
        ([2.0, 0.0, 3.0], {"reverse": True}, [0, 9, 1]),
        ([2.0, 0.0, 3.0], {"exclusive": True}, [1, 2, 0]),
        ([2.0, 3.0, 5.0], {"exclusive": True, "reverse": True}, [0, 5, 4]),
    ],
)
def test_gradient_of_cumprod_is_right_at_zeros(x, flags, expected):
    assert gradient(lambda v: tf.math.cumprod(v, **flags), x).tolist() == expected


def test_cumulative_logsumexp():
    assert np.isfinite(tf.math.cumulative_logsumexp([1000.0, 1001.0])).all()
    assert tf.math.cumulative_logsumexp([1.0, 2.0], exclusive=True).numpy().tolist() == [-np.inf, 1.0]
    e = np.exp(A.astype(np.float64))
    g = gradient(lambda v: tf.math.cumulative_logsumexp(v, 1, exclusive=True)[:, 1:], A)
    expected = np.stack([1 + e[:, 0] / (e[:, 0] + e[:, 1]), e[:, 1] / (e[:, 0] + e[:, 1]), 0 * e[:, 2]], 1)
    np.testing.assert_allclose(g, expected, rtol=1e-5)


def test_truth_values_have_no_running_sum():
    with pytest.raises(tf.errors.InvalidArgumentError, match="bool"):
        tf.cumsum([True])
