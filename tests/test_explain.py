"""tape.explain: every cause of a gradient that is None, with the line it comes from."""

import numpy as np
import pytest

import gradtape as tf


def explained(run, persistent=False, **options):
    """What is said of `run(tape)`, which gives a target and a source, with lines on."""
    with tf.debug.lines():
        with tf.GradientTape(persistent=persistent, **options) as tape:
            target, source = run(tape)
        assert tape.gradient(target, source) is None
        return tape.explain(target, source)


def never_watched(tape):
    x = tf.constant(2.0)
    return x * x, x  # broken here


def not_trainable(tape):
    v = tf.Variable(2.0, trainable=False)
    return v * v, v  # broken here


def left_by_numpy(tape):
    v = tf.Variable(2.0)
    y = v * v
    z = np.sqrt(y.numpy())  # broken here
    return tf.constant(z) * 2.0, v


def left_by_float(tape):
    v = tf.Variable(2.0)
    z = float(v * v)  # broken here
    return tf.constant(z) * 2.0, v


def integer_cast(tape):
    v = tf.Variable([1.2, 3.4])
    whole = tf.cast(v, tf.int32)  # broken here
    return tf.reduce_sum(tf.cast(whole, tf.float32)), v


def argmax(tape):
    v = tf.Variable([1.0, 3.0])
    best = tf.argmax(v * 2.0)  # broken here
    return tf.cast(best, tf.float32) * 2.0, v


def stopped(tape):
    v = tf.Variable(2.0)
    held = tf.stop_gradient(v * v)  # broken here
    return held + 1.0, v


def without_gradient(tape):
    v = tf.Variable(2.5)
    steps = tf.floor(v * 2.0)  # broken here
    return steps * 3.0, v


def assigned(tape):
    v, w = tf.Variable(2.0), tf.Variable(0.0)
    w.assign(v * v)  # broken here
    return w * 3.0, v


def independent(tape):
    v, w = tf.Variable(2.0), tf.Variable(1.0)
    return w * 3.0, v  # broken here


CASES = {
    never_watched: "never watched",
    not_trainable: "not trainable",
    left_by_numpy: "left for NumPy",
    left_by_float: "left for NumPy",
    integer_cast: "no gradient",
    argmax: "no gradient",
    stopped: "stop_gradient",
    without_gradient: "no gradient",
    assigned: "assigned",
    independent: "independent",
}


@pytest.mark.parametrize("case", CASES, ids=[c.__name__ for c in CASES])
def test_cause_and_line(case):
    said = explained(case)
    assert said.cause == CASES[case]
    assert "# broken here" in said.line.text, said
    assert said.fix and str(said.line.number) in str(said)
    assert not said.connected


def test_an_integer_source():
    said = explained(lambda tape: (tf.cast(tf.Variable(3), tf.float32) * 2.0, tf.Variable(3)))
    assert said.cause == "integer" and "int32" in said.text


def test_outside_the_context():
    with tf.debug.lines():
        v = tf.Variable(2.0)
        with tf.GradientTape() as tape:
            y = v * v
        z = y * 3.0  # outside
        said = tape.explain(z, v)
    assert said.cause == "outside the context"
    assert "# outside" in said.line.text


def test_watch_accessed_variables_off():
    v = tf.Variable(2.0)
    said = explained(lambda tape: (v * v, v), watch_accessed_variables=False)
    assert said.cause == "never watched" and "watch_accessed_variables=False" in said.text


def test_what_is_connected_is_said_to_be():
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v * v
    assert tape.explain(y, v).connected
    assert float(tape.gradient(y, v)) == 4.0  # asking has used nothing up


def test_without_lines_it_says_how_to_get_them():
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.constant(float(v * v))
    said = tape.explain(y, v)
    assert said.cause == "unknown" and "tf.debug.lines()" in said.fix and said.line is None


def test_a_tape_that_is_used_up():
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v * v
    tape.gradient(y, v)
    assert tape.explain(y, v).cause == "used up"


def test_raise():
    v, w = tf.Variable(2.0), tf.Variable(1.0, name="unused")
    with tf.GradientTape() as tape:
        y = v * v
    with pytest.raises(ValueError, match="(?s)no gradient by 'unused:0'.*Fix"):
        tape.gradient(y, [v, w], unconnected_gradients="raise")
    with tf.GradientTape() as tape:
        y = v * v
    assert float(tape.gradient(y, v, unconnected_gradients="raise")) == 4.0


def test_everything_is_as_before_afterwards():
    with tf.debug.lines():
        tf.constant(1.0) + 1.0
    assert tf.debug.lines is not None
    from gradtape import _core

    assert _core.assign_tracker() is None and _core.is_compiling()

    @tf.function
    def f(x):
        return x * 2.0

    assert float(f(tf.constant(2.0))) == 4.0
