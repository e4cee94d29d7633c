"""tape.explain without lines: what the source of the program says about a gradient that is None."""

import numpy as np
import pytest

import gradtape as tf


def stopped(x):
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.stop_gradient(x) ** 2.0)  # here
    return tape, y


def cast_to_integers(x):
    with tf.GradientTape() as tape:
        y = tf.cast(tf.cast(x, tf.int32), tf.float32)  # here
    return tape, y


def through_numpy(x):
    with tf.GradientTape() as tape:
        y = tf.constant(np.sin(x))  # here
    return tape, y


def taken_to_numpy(x):
    with tf.GradientTape() as tape:
        y = tf.constant(x.numpy()) * 2.0  # here
    return tape, y


def on_another_tape(x):
    with tf.GradientTape():
        half = x * 0.5  # here
    with tf.GradientTape() as tape:
        y = half * half
    return tape, y


def rounded(x):
    return tf.round(x)  # here


def in_a_function_of_the_users(x):
    with tf.GradientTape() as tape:
        y = rounded(x)
    return tape, y


CASES = {
    stopped: "stop_gradient",
    cast_to_integers: "no gradient",
    through_numpy: "left for NumPy",
    taken_to_numpy: "left for NumPy",
    on_another_tape: "another tape",
    in_a_function_of_the_users: "no gradient",
}


def program(function):
    """The function's code where the question is asked: the frame of whoever asks is what is read."""
    import inspect

    return function.__code__.co_filename, *inspect.getsourcelines(function)


@pytest.mark.parametrize("asked", ["after the gradient", "before"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_line_is_found(case, asked, tmp_path):
    _, lines, _ = program(case)
    question = "    tape.gradient(y, x)\n" if asked == "after the gradient" else ""
    code = "".join(lines).replace("    return tape, y\n", f"{question}    return tape.explain(y, x)\n")
    file = tmp_path / "program.py"
    file.write_text(f"import numpy as np\nimport gradtape as tf\n\n{''.join(program(rounded)[1])}\n{code}")
    names = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    said = names[case.__name__](tf.Variable(2.0))
    assert said.cause == CASES[case] and "# here" in said.line.text
    assert "tf.debug.lines()" in said.fix  # which would make it certain


@pytest.mark.parametrize("persistent", [False, True])
def test_a_target_computed_after_the_context(persistent):
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=persistent) as tape:
        y = x * 3.0
    loss = y**2.0  # outside
    assert tape.gradient(loss, x) is None
    said = tape.explain(loss, x)
    assert said.cause == "outside the context" and "`loss` was computed after the context" in said.text
    assert "# outside" in said.line.text


def test_a_target_of_the_context_is_not_blamed():
    x, w = tf.Variable(2.0), tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * 3.0
        w.assign_add(0.0 * w)
    loss = y  # another name, no computation
    said = tape.explain(loss, w)
    assert said.cause != "outside the context"
