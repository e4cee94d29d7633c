"""GradientTape.watched_variables: which variables, in which order."""

import pytest

from .lib import tf


def assert_same_objects(actual, expected):
    assert isinstance(actual, tuple)
    assert [v.ref() for v in actual] == [v.ref() for v in expected]


def test_T18_order_is_that_of_construction():
    a, b, c = (tf.Variable(float(i)) for i in range(3))
    with tf.GradientTape() as tape:
        c * a * b
    assert_same_objects(tape.watched_variables(), (a, b, c))


def test_T18_a_variable_is_listed_once():
    a = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        a * a + a
    assert_same_objects(tape.watched_variables(), (a,))


def test_T18_empty_before_entering():
    assert tf.GradientTape().watched_variables() == ()


def test_T18_available_inside_the_block():
    a = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        a * a
        assert_same_objects(tape.watched_variables(), (a,))


def test_T18_available_after_gradient():
    a = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = a * a
    tape.gradient(y, a)
    assert_same_objects(tape.watched_variables(), (a,))


def test_T18_cleared_by_reset():
    a = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        a * a
        tape.reset()
        assert tape.watched_variables() == ()


def test_T18_a_new_recording_starts_afresh():
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    tape = tf.GradientTape()
    with tape:
        y = a * a
    tape.gradient(y, a)
    with tape:
        b * b
    assert_same_objects(tape.watched_variables(), (b,))


def test_T18_watched_by_hand_counts():
    a = tf.Variable(1.0, trainable=False)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(a)
    assert_same_objects(tape.watched_variables(), (a,))


ACCESSES = {
    "read_value": lambda v: v.read_value(),
    "value": lambda v: v.value(),
    "numpy": lambda v: v.numpy(),
    "float": lambda v: float(v),
    "print": lambda v: print(v),
    "repr": lambda v: repr(v),
    "identity": lambda v: tf.identity(v),
    "convert_to_tensor": lambda v: tf.convert_to_tensor(v),
    "arithmetic": lambda v: v + 1.0,
    "op": lambda v: tf.square(v),
    "assign": lambda v: v.assign(2.0),
    "assign_add": lambda v: v.assign_add(2.0),
    "assign_sub": lambda v: v.assign_sub(2.0),
}


@pytest.mark.parametrize("access", ACCESSES)
def test_T19_accesses(access):
    v = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        ACCESSES[access](v)
    assert_same_objects(tape.watched_variables(), (v,))


@pytest.mark.parametrize("access", ACCESSES)
def test_T19_accesses_of_a_non_trainable_variable_do_not_count(access):
    v = tf.Variable(1.0, trainable=False)
    with tf.GradientTape() as tape:
        ACCESSES[access](v)
    assert tape.watched_variables() == ()


def test_T19_creating_a_variable_is_no_access():
    with tf.GradientTape() as tape:
        tf.Variable(1.0)
    assert tape.watched_variables() == ()


@pytest.mark.parametrize("attribute", ["shape", "dtype", "name", "trainable"])
def test_T19_metadata_is_no_access(attribute):
    v = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        getattr(v, attribute)
    assert tape.watched_variables() == ()


def test_T20_integer_variables_are_listed_without_a_gradient():
    v = tf.Variable(1)
    with tf.GradientTape() as tape:
        y = tf.cast(v, tf.float32) * 2.0
    assert_same_objects(tape.watched_variables(), (v,))
    assert tape.gradient(y, v) is None
