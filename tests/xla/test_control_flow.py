"""Loops and branches on XLA: values and gradients are those of native code, with the tape inside or outside."""

import numpy as np
import pytest

import gradtape as tf

# Each takes a vector; what autograph makes a loop or branch of is a tensor in all of them.


def power(x):
    y = tf.ones_like(x)
    for _ in tf.range(5):
        y = y * x
    return y


def no_iteration(x):
    y = x * 2.0
    while tf.reduce_sum(y) < -100.0:
        y = y - 1.0
    return y


def long(x):
    """More iterations than there is room for residuals at first."""
    for _ in tf.range(300):
        x = x + 0.001 * tf.sin(x)
    return x


def loop_in_loop(x):
    total = tf.zeros_like(x)
    for i in tf.range(4):
        part = x
        for _ in tf.range(i):
            part = tf.tanh(part) * x
        total += part
    return total


def long_loop_in_loop(x):
    """The loop inside needs more room than the one around it."""
    for i in tf.range(3):
        for _ in tf.range(40 * (i + 1)):
            x = x + 0.01 * tf.cos(x)
    return x


def loop_in_branch(x):
    if tf.reduce_sum(x) > 0.0:
        for _ in tf.range(3):
            x = x * tf.sin(x)
    else:
        x = x * x
    return x


def branch_in_loop(x):
    for i in tf.range(6):
        if i % 2 == 0:
            x = tf.sin(x)
        elif i == 3:
            x = x * x
        else:
            x = x + 0.5
    return x


def loop_in_branch_in_loop(x):
    for i in tf.range(4):
        if i > 1:
            for _ in tf.range(i):
                x = tf.tanh(x) + 0.1
        else:
            x = 1.1 * x
    return x


def different_loops_in_branches(x):
    """Branches store their residuals in the same places, though they are of different loops, or a number."""
    for i in tf.range(3):
        if i == 0:
            for k in tf.range(2 + i):
                x = tf.sin(x) * tf.cast(k + 1, tf.float32)
        elif i == 1:
            n = tf.cast(tf.reduce_sum(x) * 10.0, tf.int64)
            x = x * tf.gather(tf.stack([x, x * x, x + 1.0]), n % 3)
        else:
            for _ in tf.range(4):
                y = tf.reduce_sum(x * x)
                x = x / (1.0 + y)
    return x


def break_and_continue(x):
    y = x
    for i in tf.range(20):
        if i == 2:
            continue
        y = y * 1.2 + tf.sin(x)
        if tf.reduce_sum(y) > 6.0:
            break
    return y


def array(x):
    parts = tf.TensorArray(tf.float32, 4)
    for i in tf.range(4):
        parts = parts.write(i, x ** tf.cast(i + 1, tf.float32))
    return parts.stack() + parts.read(2)


def while_in_while(x):
    i = 0
    while i < 3:
        j = 0
        while j < i:
            x = x * 1.5 - 0.1 * x * x
            j += 1
        i += 1
    return x


def switch(x):
    ways = [lambda: tf.sin(x), lambda: x * x, lambda: tf.exp(x)]
    return tf.add_n([tf.switch_case(tf.constant(k), ways) for k in (0, 1, 7)])


def scan(x):
    return tf.scan(lambda total, row: total * 0.5 + row, tf.stack([x, x * x, tf.sin(x)]))


def mapped(x):
    return tf.map_fn(lambda row: tf.cond(row > 0.3, lambda: row * row, lambda: tf.sin(row)), x)


PROGRAMS = [
    power, no_iteration, long, loop_in_loop, long_loop_in_loop, different_loops_in_branches,
    loop_in_branch, branch_in_loop, loop_in_branch_in_loop,
    break_and_continue, array, while_in_while, switch, scan, mapped,
]  # fmt: skip
X = np.array([0.2, 0.5, 0.9], np.float32)
MODES = ("inside", "outside", "both", "second")


def gradients(program, mode, jit_compile):
    """The value, the gradient, and with mode "second" the gradient of that."""
    x = tf.constant(X)
    function = tf.function(program, jit_compile=jit_compile)

    def inside(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = program(x)
        return y, tape.gradient(y, x)

    if mode == "inside":
        return [t.numpy() for t in tf.function(inside, jit_compile=jit_compile)(x)]
    with tf.GradientTape(persistent=mode == "second") as outer:
        outer.watch(x)
        if mode == "outside":
            y = function(x)
        elif mode == "both":
            y = tf.function(inside, jit_compile=jit_compile)(x)[0]
        else:
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = function(x)
            y = tf.reduce_sum(inner.gradient(y, x) ** 2)
    return [y.numpy(), outer.gradient(y, x).numpy()]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_native(program, mode):
    for got, expected in zip(gradients(program, mode, True), gradients(program, mode, None), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_the_room_for_residuals_grows_and_stays():
    traces = []

    @tf.function(jit_compile=True)
    def f(x, n):
        traces.append(1)
        for _ in tf.range(n):
            x = x * 1.01
        return x

    for n in (3, 64, 65, 200, 5, 0):
        x = tf.constant(2.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x, tf.constant(n))
        np.testing.assert_allclose(tape.gradient(y, x).numpy(), 1.01**n, rtol=1e-4)
    assert len(traces) == 1


def test_residuals_of_two_calls_are_two():
    @tf.function(jit_compile=True)
    def f(x, n):
        for _ in tf.range(n):
            x = x * x
        return x

    a, b = tf.constant(1.5), tf.constant(0.5)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([a, b])
        first, second = f(a, tf.constant(2)), f(b, tf.constant(3))
        both = first * second
    np.testing.assert_allclose(tape.gradient(first, a).numpy(), 4 * 1.5**3, rtol=1e-5)
    np.testing.assert_allclose(tape.gradient(second, b).numpy(), 8 * 0.5**7, rtol=1e-5)
    np.testing.assert_allclose(tape.gradient(both, b).numpy(), 1.5**4 * 8 * 0.5**7, rtol=1e-5)


def test_a_loop_over_variables():
    v, w = tf.Variable([1.0, 2.0]), tf.Variable(0)

    @tf.function(jit_compile=True)
    def f(n):
        for _ in tf.range(n):
            v.assign(v * 2.0)
            w.assign_add(1)
        return tf.reduce_sum(v)

    assert f(tf.constant(3)).numpy() == 24.0
    assert v.numpy().tolist() == [8.0, 16.0] and w.numpy() == 3
    assert f(tf.constant(0)).numpy() == 24.0 and w.numpy() == 3


def test_gradients_of_variables_read_in_a_loop():
    table = tf.Variable(np.arange(12, dtype=np.float32).reshape(4, 3))

    def f(indices):
        total = tf.zeros([3])
        for i in indices:
            total += tf.sin(table[i])
        return tf.reduce_sum(total)

    found = []
    for jit in (True, None):
        g = tf.function(f, jit_compile=jit)
        with tf.GradientTape() as tape:
            y = g(tf.constant([0, 2, 2]))
        found.append(tf.convert_to_tensor(tape.gradient(y, table)).numpy())
    np.testing.assert_allclose(*found, rtol=1e-5)


def test_two_gradients_of_a_persistent_tape():
    @tf.function(jit_compile=True)
    def f(x):
        for _ in tf.range(3):
            x = x * x
        return x

    x = tf.constant(1.1)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
    first, second = tape.gradient(y, x), tape.gradient(y, x)
    assert first.numpy() == second.numpy() == pytest.approx(8 * 1.1**7, rel=1e-5)


def test_a_loop_that_counts_has_just_the_room_it_needs():
    from gradtape._src.engines.xla.ops import control

    def bounds(f, *args):
        found = []
        program = tf.function(f, jit_compile=True).get_concrete_function(*args).graph_function.program
        original = control.most_iterations
        control.most_iterations = lambda op, operands: found.append(original(op, operands)) or found[-1]
        try:
            program.run(list(args))
        finally:
            control.most_iterations = original
        return found

    def gradient(y_of):
        def f(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = y_of(x)
            return tape.gradient(y, x)

        return f

    def counted(x):
        for _ in tf.range(7):
            x = x * 1.1 + tf.sin(x)
        return x

    def bounded(x):
        below = lambda i, y: tf.reduce_sum(y) < 100.0  # noqa: E731
        return tf.while_loop(below, lambda i, y: (i + 1, y * 2.0), (0, x), maximum_iterations=9)[1]

    def from_below(x):
        return tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 3, tf.sin(y)), (-2, x))[1]

    def open_end(x):
        return tf.while_loop(lambda i, y: tf.reduce_sum(y) < 100.0, lambda i, y: (i + 1, y * 2.0), (0, x))[1]

    x = tf.constant([0.5, 0.25])
    assert bounds(gradient(counted), x) == [7]
    assert bounds(gradient(bounded), x) == [9]
    assert bounds(gradient(from_below), x) == [3]
    assert bounds(gradient(open_end), x) == [None]
