"""The tape as a context manager: entering, leaving, re-entering, using up."""

import threading

import pytest

from .lib import assert_close, logged_warnings, tf, warnings_of_fresh_process

ONE_SET = "only be used to ?compute one set"


def test_T1_also_lives_in_autodiff():
    assert tf.autodiff.GradientTape is tf.GradientTape


def test_T1_constructor_takes_persistent_then_watch_accessed_variables():
    v = tf.Variable(3.0)
    with tf.GradientTape(True, False) as tape:
        y = v * v
    assert tape.gradient(y, v) is None
    assert tape.gradient(y, v) is None


def test_T1_constructor_keywords():
    v = tf.Variable(3.0)
    with tf.GradientTape(persistent=False, watch_accessed_variables=True) as tape:
        y = v * v
    assert_close(tape.gradient(y, v), 6.0)


@pytest.mark.parametrize(
    "name",
    ["watch", "stop_recording", "reset", "watched_variables", "gradient", "jacobian", "batch_jacobian"],
)
def test_T1_public_methods(name):
    assert callable(getattr(tf.GradientTape(), name))


def test_T1_can_be_subclassed():
    class Doubling(tf.GradientTape):
        def gradient(self, target, sources):
            return 2.0 * super().gradient(target, sources)

    v = tf.Variable(3.0)
    with Doubling() as tape:
        y = v * v
    assert_close(tape.gradient(y, v), 12.0)


def test_T2_enter_returns_the_tape():
    tape = tf.GradientTape()
    with tape as entered:
        assert entered is tape


def test_T2_entering_an_active_tape_is_an_error():
    with tf.GradientTape() as tape, pytest.raises(ValueError, match="still recording"), tape:
        pass


@pytest.mark.parametrize("persistent", [False, True])
def test_T3_re_entering_continues_the_recording(persistent):
    x = tf.constant(3.0)
    tape = tf.GradientTape(persistent=persistent)
    with tape:
        tape.watch(x)
        y = x * x
    with tape:
        z = y * x
    assert_close(tape.gradient(z, x), 27.0)


def test_T3_ops_between_two_blocks_are_constants():
    x = tf.constant(3.0)
    tape = tf.GradientTape()
    with tape:
        tape.watch(x)
        y = x * x
    between = y * x
    with tape:
        z = between * x
    assert_close(tape.gradient(z, x), 27.0)


def test_T4_an_exception_in_the_block_ends_the_recording():
    x = tf.constant(3.0)
    with pytest.raises(KeyError), tf.GradientTape() as tape:
        tape.watch(x)
        raise KeyError
    y = x * x
    assert tape.gradient(y, x) is None


def test_T4_gradient_works_after_an_exception_in_the_block():
    x = tf.constant(3.0)
    with pytest.raises(KeyError), tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        raise KeyError
    assert_close(tape.gradient(y, x), 6.0)


def test_T5_tapes_may_be_left_in_any_order():
    x = tf.constant(3.0)
    a, b = tf.GradientTape(), tf.GradientTape()
    a.__enter__()
    b.__enter__()
    a.watch(x)
    b.watch(x)
    y = x * x
    a.__exit__(None, None, None)
    z = y * x
    b.__exit__(None, None, None)
    assert_close(a.gradient(y, x), 6.0)
    assert_close(b.gradient(z, x), 27.0)


def test_T6_two_tapes_in_one_with_both_record():
    v, w = tf.Variable(3.0), tf.Variable(2.0)
    with tf.GradientTape() as a, tf.GradientTape() as b:
        y = v * w
        z = v * v
    assert_close(a.gradient(y, [v, w])[0], 2.0)
    assert_close(b.gradient([y, z], v), 8.0)


USES = {
    "gradient": lambda tape, y, x: tape.gradient(y, x),
    "jacobian": lambda tape, y, x: tape.jacobian(y, x),
    "batch_jacobian": lambda tape, y, x: tape.batch_jacobian(y, x),
}


@pytest.mark.parametrize("use", USES)
def test_T7_use_before_entering_is_an_error(use):
    x = tf.ones([2, 2])
    with pytest.raises(RuntimeError, match=ONE_SET):
        USES[use](tf.GradientTape(), x * x, x)


@pytest.mark.parametrize("second", USES)
@pytest.mark.parametrize("first", USES)
def test_T7_second_use_is_an_error(first, second):
    x = tf.ones([2, 2])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    USES[first](tape, y, x)
    with pytest.raises(RuntimeError, match=ONE_SET):
        USES[second](tape, y, x)


def test_T7_persistent_tape_may_be_used_again():
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert_close(tape.gradient(z, x), 108.0)
    assert_close(tape.gradient(y, x), 6.0)
    assert_close(tape.gradient(z, x), 108.0)


def test_T8_gradient_inside_the_block_ends_the_recording():
    v, w = tf.Variable(3.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v * v
        assert_close(tape.gradient(y, v), 6.0)
        w * w
    assert [u.ref() for u in tape.watched_variables()] == [v.ref()]
    with pytest.raises(RuntimeError, match=ONE_SET):
        tape.gradient(y, v)


def test_T9_persistent_gradient_inside_the_block_is_recorded():
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x**3
        first = tape.gradient(y, x)
    assert_close(first, 27.0)
    assert_close(tape.gradient(first, x), 18.0)


def test_T9_persistent_gradient_inside_the_block_warns_once():
    messages = warnings_of_fresh_process("""
        x = tf.constant(3.0)
        for _ in range(3):
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                tape.gradient(x * x, x)
    """)
    assert len(messages) == 1
    assert "persistent tape inside" in messages[0]


def test_T9_persistent_gradient_outside_the_block_does_not_warn():
    x = tf.constant(3.0)
    with logged_warnings() as messages:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x
        tape.gradient(y, x)
    assert messages == []


def in_another_thread(f):
    results = []
    thread = threading.Thread(target=lambda: results.append(f()))
    thread.start()
    thread.join()
    return results[0]


def test_T10_ops_of_another_thread_are_not_recorded():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = in_another_thread(lambda: x * x)
    assert tape.gradient(y, x) is None


def test_T10_gradient_may_be_called_from_another_thread():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert_close(in_another_thread(lambda: tape.gradient(y, x)), 6.0)


def test_T10_threads_have_tapes_of_their_own():
    def work(value):
        x = tf.constant(value)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        return tape.gradient(y, x)

    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        assert_close(in_another_thread(lambda: work(5.0)), 10.0)
        z = y * x
    assert_close(tape.gradient(z, x), 27.0)
