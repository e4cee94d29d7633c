"""Functions whose shapes, axes or Python values depend on tensors give what eager code gives."""

import logging

import numpy as np
import pytest

import gradtape as tf

FUNCTIONS = {
    "ones": lambda n: tf.ones([n, 2]),
    "fill": lambda n: tf.fill([n], 2.0),
    "reshape": lambda n: tf.reshape(tf.range(6), [n, -1]),
    "tile": lambda n: tf.tile([1.0, 2.0], [n]),
    "range": lambda n: tf.range(n),
    "broadcast_to": lambda n: tf.broadcast_to(1.0, [n]),
    "eye": lambda n: tf.eye(n),
    "one_hot": lambda n: tf.one_hot([0, 1], n),
    "linspace": lambda n: tf.linspace(0.0, 1.0, n),
    "slice": lambda n: tf.range(6)[:n],
    "tf.slice": lambda n: tf.slice(tf.range(6), [0], [n]),
    "axis": lambda n: tf.reduce_sum(tf.ones([2, 3]), axis=n - 3),
    "top_k": lambda n: tf.math.top_k(tf.constant([1.0, 2.0, 3.0, 4.0]), n)[0],
    "pad": lambda n: tf.pad(tf.ones([2]), [[0, n]]),
    "split": lambda n: tf.split(tf.range(6), [n, 6 - n])[0],
    "Python's range": lambda n: sum(tf.constant(1) for _ in range(n)),
    "int": lambda n: tf.constant(int(n) + 1),
    "segments": lambda n: tf.math.unsorted_segment_sum([1.0, 2.0], [0, 1], n),
    "roll": lambda n: tf.roll(tf.range(5), n, 0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_eager(name, caplog):
    caplog.set_level(logging.CRITICAL, logger="gradtape")
    f = FUNCTIONS[name]
    n = tf.constant(3)
    np.testing.assert_allclose(tf.function(f)(n), f(n))


@pytest.mark.parametrize("op", [tf.math.floordiv, tf.math.floormod, tf.truncatediv, tf.truncatemod])
def test_integer_division_by_zero(op):
    f = tf.function(lambda a, b: op(a, b) + 1)
    assert int(f(tf.constant(7), tf.constant(2))) == int(op(7, 2)) + 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
        f(tf.constant(7), tf.constant(0))
    assert int(f(tf.constant(7), tf.constant(2))) == int(op(7, 2)) + 1
