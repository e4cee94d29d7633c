"""GradientTape.reset and GradientTape.stop_recording."""

import pytest

from .lib import assert_close, logged_warnings, tf


def test_T23_reset_forgets_ops():
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = v * v
        tape.reset()
        z = y * v
    assert_close(tape.gradient(z, v), 9.0)


def test_T23_reset_forgets_watches():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        tape.reset()
        y = x * x
    assert tape.gradient(y, x) is None


def test_T23_a_tensor_may_be_watched_again_after_reset():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        tape.reset()
        tape.watch(x)
        y = x * x
    assert_close(tape.gradient(y, x), 6.0)


@pytest.mark.parametrize("entered", [False, True])
def test_T23_reset_outside_the_block_is_an_error(entered):
    tape = tf.GradientTape()
    if entered:
        with tape:
            pass
    with pytest.raises(ValueError, match="not recording"):
        tape.reset()


def test_T24_ops_under_stop_recording_are_constants():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tape.stop_recording():
            y = x * x
        z = y * x
    assert_close(tape.gradient(z, x), 9.0)


def test_T24_alone_they_have_no_gradient():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tape.stop_recording():
            y = x * x
    assert tape.gradient(y, x) is None


def test_T24_other_tapes_go_on():
    x = tf.constant(3.0)
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        outer.watch(x)
        inner.watch(x)
        with inner.stop_recording():
            y = x * x
    assert_close(outer.gradient(y, x), 6.0)
    assert inner.gradient(y, x) is None


def test_T24_recording_resumes_after_an_exception():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(KeyError), tape.stop_recording():
            raise KeyError
        y = x * x
    assert_close(tape.gradient(y, x), 6.0)


def test_T24_before_entering_is_an_error():
    with pytest.raises(RuntimeError, match="not recording"), tf.GradientTape().stop_recording():
        pass


def test_T24_after_the_block_is_an_error():
    with tf.GradientTape() as tape:
        pass
    with pytest.raises(ValueError, match="not recording"), tape.stop_recording():
        pass


def test_T25_persistent_gradient_under_stop_recording():
    x = tf.constant(3.0)
    with logged_warnings() as messages, tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            g = tape.gradient(y, x)
        z = y * x
    assert_close(g, 6.0)
    assert tape.gradient(g, x) is None
    assert_close(tape.gradient(z, x), 27.0)
    assert messages == []


def test_T25_non_persistent_gradient_under_stop_recording():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            assert_close(tape.gradient(y, x), 6.0)
