"""GradientTape.watch and the automatic watching of variables."""

import collections

import numpy as np
import pytest

from .lib import assert_close, logged_warnings, tf, warnings_of_fresh_process

Pair = collections.namedtuple("Pair", "first second")

NESTS = {
    "list": lambda a, b: [a, b],
    "tuple": lambda a, b: (a, b),
    "dict": lambda a, b: {"a": a, "b": b},
    "namedtuple": lambda a, b: Pair(a, b),
    "nested": lambda a, b: {"k": [a, (b,)]},
}


def test_T11_watch_tensor():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert_close(tape.gradient(y, x), 6.0)


def test_T11_watch_variable():
    v = tf.Variable(3.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(v)
        y = v * v
    assert_close(tape.gradient(y, v), 6.0)


@pytest.mark.parametrize("nest", NESTS)
def test_T11_watch_nest(nest):
    x, v = tf.constant(3.0), tf.Variable(2.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(NESTS[nest](x, v))
        y = x * v
    gx, gv = tape.gradient(y, [x, v])
    assert_close(gx, 2.0)
    assert_close(gv, 3.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: 3.0,
        lambda: np.ones(2, "float32"),
        lambda: None,
        lambda: (t for t in [tf.constant(1.0)]),
        lambda: [tf.constant(1.0), 3.0],
    ],
    ids=["float", "ndarray", "None", "generator", "float-in-list"],
)
def test_T11_watching_anything_else_is_an_error(make):
    with tf.GradientTape() as tape, pytest.raises(ValueError, match="not tf.Tensor or tf.Variable"):
        tape.watch(make())


@pytest.mark.parametrize("value", [3, True], ids=["int", "bool"])
def test_T12_watching_a_non_float_gives_no_gradient(value):
    x = tf.constant(value)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cast(x, tf.float32) * 2.0
    assert tape.gradient(y, x) is None


def test_T12_watching_a_non_float_warns_five_times():
    messages = warnings_of_fresh_process("""
        with tf.GradientTape() as tape:
            for i in range(8):
                tape.watch(tf.constant(i))
    """)
    assert len(messages) == 5
    assert "must be floating" in messages[0] and "int32" in messages[0]


def test_T12_watching_floats_does_not_warn():
    with logged_warnings() as messages, tf.GradientTape() as tape:
        for dtype in ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]:
            tape.watch(tf.ones([], dtype))
    assert messages == []


def test_T13_ops_before_watch_do_not_count():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        tape.watch(x)
    assert tape.gradient(y, x) is None


def test_T13_only_the_part_after_watch_counts():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        tape.watch(x)
        z = y * x
    assert_close(tape.gradient(z, x), 9.0)


def test_T14_watch_before_entering_is_an_error():
    with pytest.raises(AttributeError):
        tf.GradientTape().watch(tf.constant(3.0))


def test_T14_watch_after_the_tape_was_used_up_is_an_error():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    with pytest.raises(AttributeError):
        tape.watch(x)


def test_T14_watch_after_the_block_changes_nothing():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    tape.watch(x)
    assert tape.gradient(y, x) is None


def test_T15_trainable_variables_are_watched_on_read():
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = v * v
    assert_close(tape.gradient(y, v), 6.0)


def test_T15_non_trainable_variables_are_not_watched():
    v = tf.Variable(3.0, trainable=False)
    with tf.GradientTape() as tape:
        y = v * v
    assert tape.gradient(y, v) is None


def test_T15_watching_a_non_trainable_variable_makes_it_differentiable():
    v = tf.Variable(3.0, trainable=False)
    with tf.GradientTape() as tape:
        tape.watch(v)
        y = v * v
    assert_close(tape.gradient(y, v), 6.0)


def test_T15_watch_accessed_variables_false_watches_nothing():
    v = tf.Variable(3.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        y = v * v
    assert tape.gradient(y, v) is None


def test_T17_watching_is_local_to_the_tape():
    x = tf.constant(3.0)
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        inner.watch(x)
        y = x * x
    assert_close(inner.gradient(y, x), 6.0)
    assert outer.gradient(y, x) is None
