"""f.pretty() and f.profile(): what a compiled function does, with the lines it comes from."""

import math

import numpy as np
import pytest

import gradtape as tf


def make():
    w = tf.Variable(tf.ones([3, 2]))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            y = tf.tanh(x @ w)  # forward
            loss = tf.reduce_sum(y * y)
        g = tape.gradient(loss, w)  # backward
        w.assign_sub(0.1 * g)
        return loss

    return w, step


def test_pretty_names_ops_shapes_and_lines():
    _, step = make()
    text = step.pretty(tf.ones([4, 3]))
    assert text.startswith("step(%0: float32[4, 3], %1: float32[3, 2]")
    assert "= matmul(%0, %1, False, False)  # tests" in text.replace("\\", "/")
    assert "one loop of" in text and "tanh(" in text and "return" in text


def test_pretty_of_all_traces():
    f = tf.function(lambda x: x + 1.0)
    f(tf.ones([2]))
    f(tf.ones([3]))
    assert "float32[2]" in f.pretty() and "float32[3]" in f.pretty()


def test_profile_by_step_and_by_line():
    w, step = make()
    x = tf.ones([4, 3])
    before = w.numpy()
    times = step.profile(x, repeats=3)
    np.testing.assert_array_equal(w.numpy(), before)  # profiling changes nothing
    assert times.seconds > 0 and len(times.steps) >= 3
    texts = [line.text for line in times.by_line()]
    assert any("# forward" in t for t in texts) and any("# backward" in t for t in texts)
    assert sum(times.by_line().values()) == pytest.approx(times.seconds)
    assert "by line" in str(times)
    head, *rows = times._tables()[0][0]
    assert head == ["time", "share", "step", "line"] and all(
        "test_programs_shown.py:" in row[-1] for row in rows
    )


def test_a_function_that_runs_eagerly_has_no_program(caplog):
    f = tf.function(lambda x: x * math.exp(x[0]))
    with pytest.raises(ValueError, match="runs eagerly"):
        f.pretty(tf.constant([1.0, -1.0]))


def test_a_function_whose_sizes_depend_on_values_has_no_program():
    f = tf.function(lambda x: tf.boolean_mask(x, x > 0))
    with pytest.raises(ValueError, match="depend on values"):
        f.pretty(tf.constant([1.0, -1.0]))


def test_a_function_of_unknown_sizes_has_a_program_for_each():
    f = tf.function(lambda x: tf.tanh(x) * 2.0, input_signature=[tf.TensorSpec([None])])
    assert "float32[3]" in f.pretty(tf.ones([3])) and "float32[4]" in f.pretty(tf.ones([4]))
