"""`tf.test.TestCase` compares ragged tensors with each other and with nested lists."""

import numpy as np
import pytest

import gradtape as tf

rc = tf.ragged.constant
CASE = tf.test.TestCase()
FINE = [
    (rc([[1, 2], [3]]), [[1, 2], [3]]),
    ([[1, 2], [3]], rc([[1, 2], [3]])),
    (rc([[1, 2], [3]]), rc([[1, 2], [3]])),
    (rc([[1, 2], [3, 4]]), np.array([[1, 2], [3, 4]])),
    (rc([[1, 2], [3, 4]]), tf.constant([[1, 2], [3, 4]])),
    (rc([[1, 2], [3]]), [np.array([1, 2]), tf.constant([3])]),
    (rc([[[1], []], []]), [[[1], []], []]),
    (rc([[], []]), [[], []]),
]
WRONG = [
    (rc([[1, 2], [3]]), [[1, 2], [4]]),
    (rc([[1, 2], [3]]), [[1], [2, 3]]),
    (rc([[1, 2], [3]]), [[1, 2], [3], []]),
    (rc([[1, 2], [3]]), [1, 2, 3]),
    (rc([[1, 2], [3]]), rc([[1, 2, 3]])),
]


@pytest.mark.parametrize("a, b", FINE)
def test_equal_values(a, b):
    CASE.assertAllEqual(a, b)
    CASE.assertAllClose(a, b)


@pytest.mark.parametrize("a, b", WRONG)
def test_different_values(a, b):
    for check in (CASE.assertAllEqual, CASE.assertAllClose):
        with pytest.raises(AssertionError):
            check(a, b)


def test_how_near():
    a = rc([[1.0, 2.0], [3.0]])
    CASE.assertAllClose(a, a + 1e-7)
    CASE.assertAllClose({"x": a}, {"x": [[1.0, 2.0], [3.0]]})
    with pytest.raises(AssertionError):
        CASE.assertAllClose(a, a + 1e-3)
