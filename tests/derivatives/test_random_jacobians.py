"""Random programs: Jacobians, tangents and maps over rows, in every way to compute them."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import gradtape as tf

from .corpora import random_graphs
from .differences import compiling, memory, mode

MOST_ROWS = 24


def target(program, inputs):
    """The first elements of all results, in one vector."""
    flat = tf.concat([tf.reshape(r, [-1])[:MOST_ROWS] for r in random_graphs.run(program, inputs)], 0)
    return tf.sin(flat[:MOST_ROWS])


def jacobians(program, inputs):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = target(program, inputs)
    return tape.jacobian(y, inputs, unconnected_gradients="zero")


def row_by_row(program, inputs):
    """The reference: one backward pass for each element of the target."""
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(inputs)
        y = target(program, inputs)
    rows = [
        tape.gradient(y, inputs, output_gradients=tf.constant(seed), unconnected_gradients="zero")
        for seed in np.eye(y.shape[0])
    ]
    return [tf.stack(column) for column in zip(*rows, strict=True)]


def tensors(program, seed=None):
    program = program if seed is None else (*program[:3], seed)
    return [tf.constant(a) for a in random_graphs.numbers(program, np.float64)]


@given(program=random_graphs.programs(most=14))
@settings(max_examples=40)
def test_jacobians(program):
    xs = tensors(program)
    with compiling(False):
        expected = row_by_row(program, xs)
        for way in ("forward", "reverse"):
            with mode(way):
                random_graphs.close(jacobians(program, xs), expected, 1e-10)
    with compiling(True):
        for way in ("forward", "reverse"):
            with mode(way):
                for _ in range(3):
                    random_graphs.close(jacobians(program, xs), expected, 1e-10)
        random_graphs.close(tf.function(lambda *xs: jacobians(program, list(xs)))(*xs), expected, 1e-10)
        with memory(1000):
            random_graphs.close(jacobians(program, xs), expected, 1e-10)


@given(program=random_graphs.programs(most=14))
@settings(max_examples=40)
def test_tangents(program):
    xs = tensors(program)
    rng = np.random.default_rng(0)
    direction = [rng.normal(size=x.shape) for x in xs]

    def jvp(*xs):
        with tf.autodiff.ForwardAccumulator(list(xs), [tf.constant(d) for d in direction]) as acc:
            y = target(program, list(xs))
        return acc.jvp(y, unconnected_gradients="zero")

    product = sum(
        np.tensordot(j.numpy(), d, d.ndim) for j, d in zip(row_by_row(program, xs), direction, strict=True)
    )
    for f in (jvp, jvp, jvp, tf.function(jvp)):
        random_graphs.close([f(*xs)], [product], 1e-10)


@given(program=random_graphs.programs(most=14), mask=st.integers(1, 15))
@settings(max_examples=60)
def test_rows(program, mask):
    """Some inputs have rows, others are shared: values and gradients as in a loop."""
    shared = tensors(program)
    sets = [tensors(program, seed) for seed in (1, 2, 3)]
    moving = [k for k in range(len(shared)) if mask >> k & 1] or [0]
    batch = [tf.stack([xs[k] for xs in sets]) for k in moving]

    def one(rows):
        xs = list(shared)
        for k, row in zip(moving, rows, strict=True):
            xs[k] = row
        return target(program, xs)

    def loop(f, batch):
        return tf.stack([f([b[i] for b in batch]) for i in range(3)])

    def run(map_):
        with tf.GradientTape() as tape:
            tape.watch([shared, batch])
            y = map_(one, batch)
        weights = tf.constant(np.random.default_rng(0).normal(size=y.shape))
        return [y, *tape.gradient(y, [*shared, *batch], weights, unconnected_gradients="zero")]

    expected = run(loop)
    for _ in range(3):
        random_graphs.close(run(tf.vectorized_map), expected, 1e-10)
    inside = tf.function(lambda *batch: tf.vectorized_map(one, list(batch)))
    random_graphs.close([inside(*batch)], expected[:1], 1e-10)


@given(program=random_graphs.programs(most=8))
@settings(max_examples=25)
def test_hessians(program):
    """The Jacobian of a gradient, as a gradient of each of its elements."""
    xs = tensors(program)[:1]
    rest = tensors(program)[1:]

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(target(program, [x, *rest]))
        return tape.gradient(y, x, unconnected_gradients="zero")

    def hessian(x, by_rows=False):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            g = tf.reshape(gradient(x), [-1])[:MOST_ROWS]
        if not by_rows:
            return tape.jacobian(g, x, unconnected_gradients="zero")
        return tf.stack(
            [
                tape.gradient(g, x, output_gradients=tf.constant(s), unconnected_gradients="zero")
                for s in np.eye(g.shape[0])
            ]
        )

    (x,) = xs
    expected = hessian(x, by_rows=True)
    for f in (hessian, hessian, hessian, tf.function(hessian)):
        random_graphs.close([f(x)], [expected], 1e-9)
