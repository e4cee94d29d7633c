"""Fusion: which nodes become one cluster, and their results."""

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.engines.native import lower
from gradtape._src.engines.native.fuse import Cluster
from gradtape._src.engines.native.lower import compile_graph
from gradtape._src.graph.ir import Node
from tests.graph.pass_checks import SHAPES, check, numbers, steps_of, trace


def test_a_chain_is_one_cluster():
    (step,) = steps_of(trace(lambda x: tf.exp(tf.sin(x) * 2.0 + x), *numbers(11, (50,))))
    assert isinstance(step, Cluster) and len(step.nodes) == 4


def test_a_node_alone_is_no_cluster():
    (step,) = steps_of(trace(tf.exp, *numbers(12, (5,))))
    assert isinstance(step, Node)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_row_column_and_scalar_operands(shape, dtype):
    if len(shape) < 2:
        shapes = [shape, shape, (), ()]
    else:
        shapes = [shape, shape[-1:], (*shape[:1], *(1,) * (len(shape) - 1)), ()]
    x, row, column, scalar = numbers(13, *shapes, dtype=dtype)
    check(lambda x, r, c, s: tf.tanh(x * r + c) * s - tf.sin(x - c) / (r * r + 2.0), x, row, column, scalar)


@pytest.mark.parametrize("shape", [s for s in SHAPES if len(s) > 1 and 0 not in s and s[0] > 1])
def test_operands_that_repeat_are_in_the_cluster(shape):
    x, row, column = numbers(14, shape, shape[-1:], (shape[0], *(1,) * (len(shape) - 1)))
    if len(shape) == 2:
        assert len(steps_of(trace(lambda x, r, c: tf.exp(x * r + c), x, row, column))) == 1


@pytest.mark.parametrize(
    "reduce", [tf.reduce_sum, tf.reduce_max, tf.reduce_min, tf.reduce_prod, tf.reduce_mean]
)
@pytest.mark.parametrize("shape", SHAPES)
def test_epilogues(shape, reduce):
    (x,) = numbers(15, shape)
    axes = [None, *range(len(shape)), *([(0, 1)] if len(shape) > 1 else [])]
    for axis in axes:
        for keep in (False, True):
            # Products of thousands of numbers must stay near one.
            check(lambda x, a=axis, k=keep: reduce(1.0 + 1e-3 * tf.sin(x), axis=a, keepdims=k), x, limit=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_several_epilogues_of_one_cluster(shape, dtype):
    (x,) = numbers(16, shape, dtype=dtype)

    def f(x):
        y = tf.tanh(x)
        z = y * y
        last = tf.reduce_sum(z, axis=-1) if shape else z
        first = tf.reduce_max(y, axis=0) if shape and shape[0] else y
        return [y, tf.reduce_sum(z), last, first, tf.reduce_sum(y, axis=-1) if shape else y]

    check(f, x, limit=1e-4 if dtype == "float32" else None)


@pytest.mark.parametrize("over, inner", [((0,), 13), ((1,), 13), ((0, 1), 0)])
def test_epilogues_are_in_the_cluster(over, inner):
    graph = trace(lambda x: tf.reduce_sum(tf.exp(x) * x, axis=over), *numbers(17, (7, 13)))
    (cluster,) = steps_of(graph)
    ending = cluster.columns if over == (1,) else cluster.epilogues
    assert len(ending) == 1 and cluster.inner == inner


def _kernels(graph):
    return [op[0] for s in lower.lowered(graph)[1] if s.what == "cluster" for op in s.object[3]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("second", [tf.add, tf.subtract, tf.multiply, tf.divide])
@pytest.mark.parametrize("first", [tf.add, tf.subtract, tf.multiply, lambda x, y: tf.square(x)])
def test_two_operations_in_one_loop(first, second, dtype):
    """A fused pair gives the same bits as its two operations, whichever operand the first one is."""
    x, y, z = numbers(30, (7, 13), (7, 13), (13,), dtype=dtype)
    for f in (lambda x, y, z: second(first(x, y), z), lambda x, y, z: second(z, first(x, y))):
        graph = trace(f, x, y, z)
        (kernel,) = _kernels(graph)
        assert "." in kernel
        (out,) = compile_graph(graph).run([tf.constant(a) for a in (x, y, z)])
        np.testing.assert_array_equal(out.numpy(), np.asarray(f(x, y, z)))


def test_a_value_that_is_read_twice_is_not_fused_into_a_pair():
    (x, y) = numbers(31, (7,), (7,))

    def f(x, y):
        t = x * y
        return [t + x, t - y]

    assert _kernels(trace(f, x, y)) == ["mul", "add", "sub"]
    check(f, x, y)
    check(lambda x, y: [x * y, x * y + x], x, y)
    check(lambda x, y: [tf.reduce_sum(x * y), (x - y) * (x - y), (x + y) / (x * y)], x, y)


@pytest.mark.parametrize("shape", [(5,), (7, 13), (3, 5000), (0, 3)])
def test_epilogues_of_booleans(shape):
    check(
        lambda x: [
            tf.reduce_any(x > 1.9),
            tf.reduce_all(x > -1.99, axis=0),
            tf.reduce_any(tf.logical_not(x < 0), axis=-1),
        ],
        *numbers(18, shape),
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_mixed_types_in_a_cluster(shape):
    def f(x):
        wide = tf.cast(x * 2.0, tf.float64) + 0.5
        mask = tf.cast(wide > 0.25, tf.float32)
        number = tf.cast(tf.round(x * 10.0), tf.int32) * 3
        half = tf.cast(tf.cast(x, tf.float16), tf.float32)
        return [
            mask * x + half,
            wide * tf.cast(number, tf.float64),
            tf.where(wide > 0, x, -x),
            number,
            wide > 0,
        ]

    check(f, *numbers(19, shape))


def test_complex_numbers_in_a_cluster():
    def f(x, y):
        z = tf.complex(x, y) * tf.complex(y, x)
        return [tf.math.real(z) + tf.math.imag(z) * x, tf.math.conj(z)]

    check(f, *numbers(20, (9, 7), (9, 7)))


def test_readers_of_an_epilogue_are_in_another_cluster():
    def f(x):
        y = tf.exp(x)
        return [
            y / tf.reduce_sum(y),
            y / tf.reduce_sum(y, axis=-1, keepdims=True),
            y - tf.reduce_max(y, axis=0),
        ]

    check(f, *numbers(21, (6, 5)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shape", [*(s for s in SHAPES if len(s) > 1), (3, 8192), (3, 8193), (40, 64), (64, 64)]
)
def test_ops_that_read_a_reduction_of_their_row(shape, dtype):
    x, scale, other = numbers(27, shape, shape[-1:], shape, dtype=dtype)

    def f(x, scale, other):
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        y = (x - mean) * tf.math.rsqrt(variance + 1e-3) * scale
        top = tf.reduce_max(tf.abs(y), axis=-1, keepdims=True) + 1.0
        z = tf.exp(y / top) * other
        total = tf.reduce_sum(z * scale, axis=-1)
        far = tf.cast(z > tf.reshape(total, top.shape), z.dtype)
        return [
            y,
            total,
            total * 2.0,
            far,
            tf.reduce_sum(far * y, axis=0),
            tf.reduce_sum(other),
            z / (top * top),
        ]

    check(f, x, scale, other, limit=2e-3 if dtype == "float32" else 1e-10)


def test_clusters_with_epilogues_become_one():
    def f(x):
        y, z = tf.exp(x), tf.cos(x)
        return [tf.reduce_sum(y), tf.reduce_max(z), y * z]

    x = numbers(25, (6, 5))
    (cluster,) = steps_of(trace(f, *x))
    assert len(cluster.epilogues) == 2
    check(f, *x)


def test_clusters_that_read_each_others_epilogues_stay_apart():
    def f(x):
        y = tf.exp(x)
        z = tf.cos(x) - tf.reduce_sum(y)
        return [y * z, tf.reduce_max(z)]

    check(f, *numbers(26, (6, 5)))


def test_the_ones_that_a_gradient_starts_from_are_not_computed_with():
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.tanh(x) * tf.exp(-x * x) + tf.sin(x))
        return y, tape.gradient(y, x)

    shown = tf.function(f).pretty(tf.zeros([5000]))
    assert "constant" not in shown and shown.count("one loop") == 1


def test_clusters_do_not_wait_for_each_other():
    def f(p, q):
        a, d = tf.exp(p), tf.sin(q)
        e = d * tf.transpose(a)  # so the cluster of d waits for a ...
        return [a + d, e]  # ... and that of a would wait for d

    check(f, *numbers(22, (5, 5), (5, 5)))


def test_clusters_do_not_wait_for_each_other_over_a_third():
    def f(p, q, r):
        a, b, c = tf.exp(p), tf.sin(q), tf.cos(r)
        x = b * tf.transpose(a)
        y = c * tf.transpose(b)
        return [x, y, a + c, tf.transpose(x) + y]

    check(f, *numbers(23, (4, 4), (4, 4), (4, 4)))


def test_long_chains():
    def f(x, w):
        for k in range(200):
            x = tf.tanh(x @ w + float(k)) if k % 10 == 9 else x * 0.99 + tf.sin(x) * 0.01
        return [x, tf.reduce_sum(x)]

    check(f, *numbers(24, (3, 3), (3, 3)))


def test_a_value_read_often():
    def f(x):
        y = tf.exp(x)
        return [y + k for k in range(12)] + [tf.reduce_sum(y * float(k)) for k in range(6)] + [y]

    check(f, *numbers(25, (40,)))
