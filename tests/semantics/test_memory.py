"""Which objects a tape keeps alive, and how long."""

import gc
import weakref

import numpy as np
import pytest

from .lib import ON_TENSORFLOW, assert_close, differs_on_tensorflow, tf

MEGABYTE = 2**20
SHAPE = [MEGABYTE // 4]  # float32


class Held:
    """Megabytes that stay alive from here on.

    gradtape counts the bytes itself. TensorFlow does not on the CPU: there the tensors
    given to `follow` are counted for as long as a weak reference reaches them.
    """

    def __init__(self):
        self.refs = []
        self.start = self.bytes()

    def follow(self, tensor):
        if ON_TENSORFLOW:
            self.refs.append(weakref.ref(tensor))
        return tensor

    def bytes(self):
        gc.collect()
        if ON_TENSORFLOW:
            return sum(MEGABYTE for ref in self.refs if ref() is not None)
        return tf.config.memory_info()["live_bytes"]

    def megabytes(self):
        return round((self.bytes() - self.start) / MEGABYTE)


@pytest.fixture
def v():
    return tf.Variable(tf.ones(SHAPE))


def exp_chain(held, v, depth):
    """`depth` ops that each need their output for the gradient; only the sum survives."""
    h = v
    for _ in range(depth):
        h = held.follow(tf.exp(-h))
    return tf.reduce_sum(h)


def test_T54_tape_keeps_what_the_gradient_needs(v):
    held = Held()
    with tf.GradientTape() as tape:
        y = exp_chain(held, v, 4)
    assert held.megabytes() >= 4
    tape.gradient(y, v)


def test_T54_non_persistent_tape_frees_when_gradient_returns(v):
    held = Held()
    with tf.GradientTape() as tape:
        y = exp_chain(held, v, 4)
    tape.gradient(y, v)
    assert held.megabytes() == 0


def test_T54_persistent_tape_keeps_until_it_dies(v):
    held = Held()
    with tf.GradientTape(persistent=True) as tape:
        y = exp_chain(held, v, 4)
    tape.gradient(y, v)
    assert held.megabytes() >= 4
    del tape
    assert held.megabytes() == 0


def test_T54_unused_tape_frees_when_it_dies(v):
    held = Held()
    with tf.GradientTape() as tape:
        exp_chain(held, v, 4)
        tf.exp(v)
    del tape
    assert held.megabytes() == 0


def test_T54_reset_frees(v):
    held = Held()
    with tf.GradientTape() as tape:
        y = exp_chain(held, v, 4)
        assert held.megabytes() >= 4
        tape.reset()
        assert held.megabytes() == 0
        del y


def test_T55_ops_with_nothing_watched_keep_nothing():
    c = tf.ones(SHAPE)
    held = Held()
    with tf.GradientTape():
        y = exp_chain(held, c, 4)
        assert held.megabytes() == 0
        del y


@pytest.mark.parametrize(
    "op",
    [
        lambda x: tf.square(x),
        pytest.param(
            lambda x: tf.exp(x),
            marks=differs_on_tensorflow("an op that keeps its output keeps itself alive"),
        ),
    ],
    ids=["keeps-input", "keeps-output"],
)
def test_T55_dead_results_are_pruned_while_recording(v, op):
    held = Held()
    with tf.GradientTape() as tape:
        for _ in range(4):
            h = v
            for _ in range(4):
                h = held.follow(op(h))
            del h
            assert held.megabytes() == 0
        y = tf.reduce_sum(v)
    assert_close(tape.gradient(y, v), np.ones(SHAPE))


def test_T56_linear_ops_keep_nothing(v):
    held = Held()
    with tf.GradientTape() as tape:
        y = v
        for _ in range(4):
            y = held.follow(tf.identity(-y))
        assert held.megabytes() == 1  # y itself
    assert_close(tape.gradient(y, v), np.ones(SHAPE))


SHAPE_READERS = {
    "add": (lambda a: a + a, -2.0),
    "reshape": (lambda a: tf.reshape(a, [2, -1]), -1.0),
    "expand_dims": (lambda a: tf.expand_dims(a, 0), -1.0),
    "reduce_sum": (lambda a: tf.reduce_sum(a), -1.0),
}


@pytest.mark.parametrize("name", SHAPE_READERS)
@differs_on_tensorflow("TensorFlow keeps an operand if the rule reads its shape")
def test_T56_an_operand_is_not_kept_for_its_shape(v, name):
    op, slope = SHAPE_READERS[name]
    held = Held()
    with tf.GradientTape() as tape:
        a = held.follow(-v)
        y = tf.reduce_sum(op(a))
        del a
    assert held.megabytes() == 0
    assert_close(tape.gradient(y, v), np.full(SHAPE, slope))


def test_T56_exp_keeps_its_output_only(v):
    held = Held()
    with tf.GradientTape() as tape:
        a = held.follow(-v)
        b = held.follow(tf.exp(a))
        y = tf.reduce_sum(b)
        del a, b
    assert held.megabytes() == 1
    assert_close(tape.gradient(y, v), -np.exp(-np.ones(SHAPE)))


def test_T57_values_are_those_at_the_time_of_the_op():
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = v * v
    v.assign(100.0)
    assert_close(tape.gradient(y, v), 6.0)


@pytest.mark.skipif(ON_TENSORFLOW, reason="TensorFlow does not count bytes on the CPU")
def test_T54_memory_info_counts_bytes(counted_memory):
    tf.ones(SHAPE)
    gc.collect()
    before = tf.config.memory_info()
    assert {"live_bytes", "live_tensors", "cached_bytes", "peak"} <= set(before)
    x = tf.ones(SHAPE)
    during = tf.config.memory_info()
    assert during["live_bytes"] - before["live_bytes"] >= MEGABYTE
    assert during["live_tensors"] == before["live_tensors"] + 1
    assert during["peak"] >= during["live_bytes"]
    del x
    after = tf.config.memory_info()
    assert after["live_bytes"] == before["live_bytes"]
    assert after["live_tensors"] == before["live_tensors"]
