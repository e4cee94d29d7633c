"""Iterations of traced loops: values carried from one to the next, wherever they are stored.

A loop keeps its variables in place, copies short ones and swaps long ones (core/repeat_program.cpp), so
each case runs for values of several sizes and is compared with the same loop over NumPy arrays.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

import gradtape as tf

SHAPES = [(), (3,), (40,), (30, 40)]
COUNTS = [0, 1, 2, 3, 7]


def values(shape, n, dtype=np.float32):
    rng = np.random.default_rng(7)
    return [rng.integers(-3, 4, shape).astype(dtype) for _ in range(n)]


def repeat(body, start, count):
    """The variables after `count` calls of `body`, by a traced loop."""

    @tf.function
    def f(count, *xs):
        return tf.while_loop(lambda k, *xs: k < count, lambda k, *xs: (k + 1, *body(*xs)), (0, *xs))[1:]

    return f(tf.constant(count), *start)


BODIES = {
    "in place": lambda x: (x + 1,),
    "squares": lambda x: (x * x * 0.25 - x,),
    "swap": lambda x, y: (y, x),
    "rotate": lambda x, y, z: (y, z, x + y),
    "fibonacci": lambda x, y: (y, x + y),
    "one result for two": lambda x, y: (x + y, x + y),
    "the same for two": lambda x, y: (y, y),
    "one stays": lambda x, y: (x, y + x),
    "reads the old one": lambda x, y: (y - x, x + 2 * y),
    "one is not read": lambda x, y: (y + 1, y * 2),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", BODIES)
def test_variables_after_any_number_of_iterations(name, shape):
    body = BODIES[name]
    start = values(shape, body.__code__.co_argcount)
    want = list(start)
    for count in range(max(COUNTS) + 1):
        if count in COUNTS:
            for have, expected in zip(
                repeat(body, [tf.constant(x) for x in start], count), want, strict=True
            ):
                np.testing.assert_array_equal(have.numpy(), expected)
        want = [np.float32(x) for x in body(*want)]


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_and_constants_in_a_body(shape):
    size = int(np.prod(shape))
    x, y = values(shape, 2)

    def body(x, y):
        flat = tf.reshape(x, [size])
        return tf.reshape(flat * 2, shape), tf.ones(shape) * 3 + 0 * y

    for count in (0, 1, 2, 4):
        have = repeat(body, [tf.constant(x), tf.constant(y)], count)
        np.testing.assert_array_equal(have[0].numpy(), x * 2.0**count)
        np.testing.assert_array_equal(have[1].numpy(), y if count == 0 else np.full(shape, 3.0))
    moved = repeat(lambda x, y: (y, tf.ones(shape)), [tf.constant(x), tf.constant(y)], 3)
    for each in moved:
        np.testing.assert_array_equal(each.numpy(), np.ones(shape))


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int64", "float16", "bfloat16", "float64", "complex64", "complex128"]
)
@pytest.mark.parametrize("shape", [(), (3,), (30, 40)])
def test_types(dtype, shape):
    x = tf.cast(tf.constant(values(shape, 1)[0]), dtype)
    step = tf.logical_not if dtype == "bool" else (lambda x: x + x)
    want = x
    for _ in range(5):
        want = step(want)
    np.testing.assert_array_equal(repeat(lambda x: (step(x),), [x], 5)[0].numpy(), want.numpy())


def test_strings_are_carried():
    a, b = repeat(lambda a, b: (b, tf.strings.join([a, b])), [tf.constant("x"), tf.constant("yz")], 3)
    assert (a.numpy(), b.numpy()) == (b"yzxyz", b"xyzyzxyz")


@pytest.mark.parametrize("shape", SHAPES)
def test_inputs_of_a_loop_do_not_change(shape):
    x = tf.constant(values(shape, 1)[0])
    v = tf.Variable(x)
    before = x.numpy().copy()
    f = tf.function(
        lambda x, v: tf.while_loop(lambda k, x, y: k < 4, lambda k, x, y: (k + 1, x + 1, y - x), (0, x, v))
    )
    _, first, second = f(x, v)
    again = f(x, v)
    for have, want in (
        (x, before),
        (v, before),
        (first, before + 4),
        (again[1], before + 4),
        (again[2], second),
    ):
        np.testing.assert_array_equal(have.numpy(), np.asarray(want))


@pytest.mark.parametrize("shape", SHAPES)
def test_python_code_may_keep_its_arguments(shape):
    kept = []

    def keep(x, y):
        kept.append((x, y))
        return x * 1

    start = values(shape, 2)

    def body(x, y):
        return tf.py_function(keep, [x, y + 1], tf.float32), x + y

    def body_with_shape(x, y):
        x, y = body(x, y)
        return tf.ensure_shape(x, shape), y

    have = repeat(body_with_shape, [tf.constant(x) for x in start], 5)
    x, y = start
    assert len(kept) == 5
    for first, second in kept:
        np.testing.assert_array_equal(first.numpy(), x)
        np.testing.assert_array_equal(second.numpy(), y + 1)
        y = x + y
    np.testing.assert_array_equal(have[1].numpy(), y)


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients(shape):
    def loop(x, y, n):
        return tf.while_loop(
            lambda k, x, y: k < n, lambda k, x, y: (k + 1, y, tf.sin(x) * y + tf.reduce_mean(x)), (0, x, y)
        )[1:]

    def slopes(x, y, n):
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            a, b = loop(x, y, n)
            loss = tf.reduce_sum(a * b)
        return tape.gradient(loss, [x, y])

    x, y = (tf.constant(v / 3) for v in values(shape, 2))
    traced = tf.function(slopes)
    for count in (0, 1, 2, 5):
        for have, want in zip(traced(x, y, tf.constant(count)), slopes(x, y, count), strict=True):
            np.testing.assert_allclose(have.numpy(), want.numpy(), rtol=1e-5, atol=1e-5)


def test_a_persistent_tape_reads_residuals_of_iterations_twice():
    x = tf.constant(0.3)

    @tf.function
    def f(x):
        return tf.while_loop(lambda k, x: k < 5, lambda k, x: (k + 1, x * x + 0.1), (0, x))[1]

    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
        f(x + 1)  # another run in between
    first, second = tape.gradient(y, x), tape.gradient(y, x)
    want, at = 1.0, 0.3
    for _ in range(5):
        want, at = want * 2 * at, at * at + 0.1
    np.testing.assert_allclose([first.numpy(), second.numpy()], [want, want], rtol=1e-5)


@pytest.mark.parametrize("shape", [(), (40,)])
def test_loops_in_loops(shape):
    @tf.function
    def f(x):
        def outer(k, x, y):
            inner = tf.while_loop(lambda j, z: j < k, lambda j, z: (j + 1, z + x), (0, y))[1]
            return k + 1, inner, x

        return tf.while_loop(lambda k, x, y: k < 5, outer, (0, x, x))[1:]

    x = y = values(shape, 1)[0]
    want = f(tf.constant(x))
    for k in range(5):
        x, y = y + k * x, x
    for have, expected in zip(want, (x, y), strict=True):
        np.testing.assert_array_equal(have.numpy(), expected)


@pytest.mark.parametrize("shape", SHAPES)
def test_variables_that_iterations_assign(shape):
    x = tf.constant(values(shape, 1)[0])
    v = tf.Variable(tf.zeros(shape))

    @tf.function
    def f(x):
        for k in tf.range(4):
            v.assign_add(x * tf.cast(k, tf.float32))
            x = x + v
        return x

    have = f(x).numpy()
    state, total = x.numpy(), np.zeros(shape, np.float32)
    for k in range(4):
        total = total + state * k
        state = state + total
    np.testing.assert_array_equal(have, state)
    np.testing.assert_array_equal(v.numpy(), total)


def test_leaving_early():
    @tf.function
    def f(limit):
        n, x = 0, 1.0
        while True:
            x = x * 2
            n = n + 1
            if x > limit:
                break
        return n, x

    for limit in (0.5, 3.0, 1000.0):
        n, x = f(tf.constant(limit))
        assert x.numpy() == 2.0 ** int(n) and x > limit and x / 2 <= max(limit, 1.0)


def test_after_an_iteration_that_failed():
    @tf.function
    def f(n):
        def body(k, x):
            with tf.control_dependencies([tf.debugging.assert_less(x, 20.0)]):
                return k + 1, x * 3

        return tf.while_loop(lambda k, x: k < n, body, (0, 1.0))[1]

    for _ in range(3):
        assert f(tf.constant(3)).numpy() == 27.0
        with pytest.raises(tf.errors.InvalidArgumentError):
            f(tf.constant(5))


@pytest.mark.parametrize("shape", [(), (40,), (30, 40)])
def test_one_loop_in_many_threads(shape):
    @tf.function
    def f(x):
        return tf.while_loop(lambda k, x, y: k < 300, lambda k, x, y: (k + 1, y, x + 1), (0, x, x))[1:]

    x = values(shape, 1)[0]
    f(tf.constant(x))
    wrong = []

    def work(n):
        for _ in range(20):
            a, b = f(tf.constant(x + n))
            if not (np.array_equal(a.numpy(), x + n + 150) and np.array_equal(b.numpy(), x + n + 150)):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
