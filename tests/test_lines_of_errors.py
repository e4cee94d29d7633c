"""Errors of functions that run name the op and its operands, as those of eager ops do, and the user's line."""

import gc

import pytest

import gradtape as tf

SIGNATURE = [tf.TensorSpec([None], tf.float32), tf.TensorSpec([], tf.int32)]


def known(x, i):
    y = tf.exp(x)
    return tf.gather(y, i) + 1.0  # here


def in_loop(x, i):
    for _ in tf.range(3):
        x = x + 1.0
        x = x + tf.gather(x, [i])  # here
    return x


def in_branch(x, i):
    if i > 0:
        x = tf.exp(x)
        return tf.gather(x, i)  # here
    return x[0]


def in_map(x, i):
    def row(r):
        return r + tf.gather(x, i)  # here

    return tf.map_fn(row, x)


def in_rule(x, i):
    @tf.custom_gradient
    def f(y):
        def rule(d):
            return d * tf.gather(y, i)  # here

        return y * 2.0, rule

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def inner(x, i):
    return tf.gather(x, i)  # here


def in_a_function(x, i):
    return tf.function(inner)(x, i) * 2.0


def after_values(x, i):
    y = tf.boolean_mask(x, x > 0.0)
    return tf.gather(y, i)  # here


def note_of(function, *arguments):
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        function(*arguments)
    (note,) = caught.value.__notes__
    return str(caught.value), note


def line_of(program):
    """The line marked "here" in a function of this file."""
    with open(__file__, encoding="utf-8") as f:
        lines = f.read().splitlines()
    first = program.__code__.co_firstlineno
    return next(n for n, text in enumerate(lines[first:], first + 1) if text.endswith("# here"))


@pytest.mark.parametrize("signature", [None, SIGNATURE], ids=["known", "any size"])
@pytest.mark.parametrize(
    "program",
    [known, in_loop, in_branch, in_map, in_rule, inner, in_a_function, after_values],
    ids=lambda f: f.__name__,
)
def test_line_and_op(program, signature):
    f = tf.function(program, input_signature=signature)
    text, note = note_of(f, tf.constant([1.0, 2.0]), tf.constant(7))
    assert text.startswith("gather: indices") and "7 is not in [0, 2); got params: float32[2]" in text
    line = line_of(inner if program is in_a_function else program)
    assert note.startswith(f'in user code:\n\n    File "{__file__}", line {line}\n'), note
    assert note.endswith("# here")


def test_callbacks():
    @tf.function
    def f(x):
        def refuse(_):
            raise KeyError("mine")

        return tf.py_function(refuse, [x], tf.float32)  # here

    with pytest.raises(KeyError) as caught:
        f(tf.constant(1.0))
    assert caught.value.__notes__[0].endswith("return tf.py_function(refuse, [x], tf.float32)  # here")


def test_backward_pass():
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.linalg.cholesky(x)  # here
        return tape.gradient(y, x)

    text, note = note_of(f, -tf.eye(2))
    assert text.startswith("cholesky: ") and note.endswith("# here")


def test_line_outlives_the_program():
    def fail():
        f = tf.function(known)
        f(tf.constant([1.0]), tf.constant(3))

    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        fail()
    gc.collect()
    assert "# here" in caught.value.__notes__[0]


def test_lines_of_a_loop_are_shown():
    f = tf.function(in_loop).get_concrete_function(tf.constant([1.0]), tf.constant(0))
    (loop,) = [n for n in f.graph_function.graph.nodes if n.name == "while"]
    assert line_of(in_loop) in [n.line.number for n in loop.op.iteration.graph.nodes]
