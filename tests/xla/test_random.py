"""Random numbers on XLA are those of native code: at the top of a function, in loops and branches, with any seed."""

import numpy as np
import pytest

import gradtape as tf


def top(n):
    return (
        tf.random.normal([4]),
        tf.random.uniform([3], maxval=10, dtype=tf.int32),
        tf.random.shuffle(tf.range(6)),
    )


def loop(n):
    total = tf.zeros([3])
    for _ in tf.range(n):
        total += tf.random.uniform([3])
    return total


def branch(n):
    if n > 2:
        y = tf.random.normal([2])
    else:
        y = tf.random.normal([2]) + tf.random.uniform([2])
    return y + tf.random.normal([2])


def both(n):
    total = tf.random.normal([2])
    for i in tf.range(n):
        if i % 2 == 0:
            total += tf.random.normal([2])
        for _ in tf.range(2):
            total += tf.random.uniform([2])
    return total


def op_seeds(n):
    return (
        tf.random.normal([2], seed=3),
        tf.random.uniform([2], seed=4),
        tf.nn.dropout(tf.ones([20]), 0.5, seed=5),
    )


def stateless(n):
    return tf.random.stateless_normal([3], seed=[n, 1]), tf.random.stateless_uniform([2], seed=[1, n])


PROGRAMS = [top, loop, branch, both, op_seeds, stateless]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_native(program):
    found = []
    for jit_compile in (None, True):
        tf.random.set_seed(7)
        f = tf.function(program, jit_compile=jit_compile)
        found.append([[t.numpy() for t in tf.nest.flatten(f(tf.constant(3)))] for _ in range(3)])
        tf.random.set_seed(7)
        again = [t.numpy() for t in tf.nest.flatten(f(tf.constant(3)))]
        if program is not stateless:
            assert any((a != b).any() for a, b in zip(found[-1][0], found[-1][1], strict=True))
        for a, b in zip(found[-1][0], again, strict=True):
            np.testing.assert_array_equal(a, b)
    for native, xla in zip(*found, strict=True):
        for a, b in zip(native, xla, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_under_a_tape_the_numbers_are_drawn_once():
    def f(x):
        for _ in tf.range(70):  # more than the initial room
            x = x * (1.0 + 0.01 * tf.random.uniform([]))
        return x * tf.random.uniform([])

    found = []
    for jit_compile in (None, True):
        tf.random.set_seed(3)
        x = tf.constant(2.0)
        g = tf.function(f, jit_compile=jit_compile)
        for _ in range(2):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = g(x)
            np.testing.assert_allclose(tape.gradient(y, x).numpy(), y.numpy() / 2.0, rtol=1e-4)
        found.append(y.numpy())
    np.testing.assert_allclose(*found, rtol=1e-4)


def test_generators():
    found = []
    for jit_compile in (None, True):
        generator = tf.random.Generator.from_seed(5)
        f = tf.function(lambda g=generator: g.normal([3]), jit_compile=jit_compile)
        found.append([f().numpy() for _ in range(2)] + [generator.normal([3]).numpy()])
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-6)


def test_a_run_that_is_refused_does_not_draw_again():
    """Native code reports an error for the random numbers that were drawn already."""
    drawn = []

    @tf.function(jit_compile=True)
    def f(t, i):
        x = tf.random.uniform([])
        tf.numpy_function(lambda v: drawn.append(float(v)), [x], [])
        return tf.gather(t, i) * x

    f(tf.constant([1.0]), tf.constant(0))
    with pytest.raises(tf.errors.InvalidArgumentError):
        f(tf.constant([1.0]), tf.constant(1))
    f(tf.constant([1.0]), tf.constant(0))
    assert len(drawn) == 3 and len(set(drawn)) == 3
