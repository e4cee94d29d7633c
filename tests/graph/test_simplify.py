"""Simplification of a graph: constants, common subexpressions, algebra."""

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.engines.native.lower import compile_graph
from gradtape._src.graph.ir import Graph, verify
from gradtape._src.graph.simplify import simplify
from tests.graph.pass_checks import check, names, numbers, trace


def test_constants_are_folded():
    c = tf.constant([1.0, 2.0])
    graph = trace(lambda x: x + tf.exp(c) * 2.0, np.float32([1, 2]))
    assert names(simplify(graph)) == ["add"]


def test_nodes_of_constants_are_folded():
    graph = Graph()
    x = graph.input((2,), tf.float32._code)
    c = graph.constant(tf.constant([1.0, 2.0]))
    (e,) = graph.add(tf.exp, [c], (), [((2,), c.dtype)])
    (y,) = graph.add(tf.add, [x, e], (), [((2,), c.dtype)])
    graph.outputs = [y, e]
    simple = simplify(graph)
    verify(simple)
    assert names(simple) == ["add"]
    np.testing.assert_allclose(simple.outputs[1].constant, np.exp([1.0, 2.0]), rtol=1e-6)


def test_common_subexpressions_are_one():
    simple = check(lambda x: tf.sin(x) * 2.0 + tf.cos(tf.sin(x)), *numbers(0, (3,)))
    assert names(simple).count("sin") == 1


def test_equal_ops_with_other_attributes_stay_two():
    simple = check(
        lambda x: (tf.reduce_sum(x, 0, True), tf.reduce_sum(x, 1, True), tf.reduce_sum(x, 0)),
        *numbers(1, (3, 3)),
    )
    assert names(simple).count("sum") == 3


def test_dead_code_is_removed():
    def f(x):
        tf.exp(x) @ x
        return x + 1.0

    assert names(check(f, *numbers(2, (3, 3)))) == ["add"]


def test_broadcasts_of_operands_go():
    simple = check(
        lambda x, r: x * tf.broadcast_to(r, [4, 3]) + tf.broadcast_to(r[0], [4, 3]), *numbers(3, (4, 3), (3,))
    )
    assert "broadcast_to" not in names(simple)


def test_a_broadcast_that_makes_the_shape_stays():
    simple = check(lambda r: tf.broadcast_to(r, [4, 3]) + 1.0, *numbers(4, (3,)))
    assert simple.outputs[0].shape == (4, 3)


@pytest.mark.parametrize("perm", [(0, 2, 1), (1, 0, 2), (2, 1, 0), (0, 1, 2)])
def test_transposes_go_into_products(perm):
    simple = check(lambda x, y: tf.matmul(tf.transpose(x, perm), y), *numbers(5, (3, 3, 3), (3, 3, 3)))
    assert ("transpose" not in names(simple)) == (perm in ((0, 2, 1), (0, 1, 2)))


def test_transposes_of_both_operands_and_of_transposed_reads():
    def f(x, y):
        return [
            tf.transpose(x) @ tf.transpose(y),
            tf.matmul(tf.transpose(x), y, transpose_a=True),
            tf.matmul(x, tf.transpose(y), transpose_b=True),
            tf.transpose(tf.transpose(x)),
        ]

    assert "transpose" not in names(check(f, *numbers(6, (4, 4), (4, 4))))


@pytest.mark.parametrize("flags", [(a, b) for a in (False, True) for b in (False, True)])
@pytest.mark.parametrize("side", [0, 1])
def test_products_with_equal_rows_read_one(side, flags):
    shapes = [(7, 5) if not flags[0] else (5, 7), (5, 3) if not flags[1] else (3, 5)]
    (other,) = numbers(27, shapes[1 - side])
    same = np.tile(numbers(28, shapes[side][1:])[0], (shapes[side][0], 1))

    def f(x):
        pair = (tf.constant(same), x) if side == 0 else (x, tf.constant(same))
        return tf.matmul(*pair, transpose_a=flags[0], transpose_b=flags[1])

    simple = simplify(trace(f, other))
    assert all(v.constant is None or 1 in v.shape or not v.shape for n in simple.nodes for v in n.operands)
    check(f, other)


def test_broadcasts_move_behind_element_wise_ops():
    def f(x):
        return tf.broadcast_to(x, (5, 7)) * 3.0 + 1.0

    (x,) = numbers(29, (5, 1))
    assert names(simplify(trace(f, x)))[-1] == "broadcast_to"
    check(f, x)


def test_means_become_sums():
    simple = check(
        lambda x: [tf.reduce_mean(x), tf.reduce_mean(x, 0), tf.reduce_mean(x, [1], True)], *numbers(7, (4, 5))
    )
    assert "mean" not in names(simple) and names(simple).count("sum") == 3


def test_mean_of_nothing_is_not_a_number():
    graph = trace(lambda x: tf.reduce_mean(x, 0), np.zeros((0, 3), np.float32))
    assert np.isnan(compile_graph(graph).run([tf.zeros([0, 3])])[0]).all()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * 1.0,
        lambda x: x + 0.0,
        lambda x: x - 0.0,
        lambda x: x / 1.0,
        lambda x: tf.negative(-x),
        lambda x: x**1.0,
        lambda x: tf.reshape(tf.reshape(x, [6]), [2, 3]),
        lambda x: tf.identity(tf.cast(x, tf.float32)),
        lambda x: tf.broadcast_to(x, [2, 3]),
    ],
)
def test_ops_without_effect_are_removed(f):
    assert names(check(f, *numbers(8, (2, 3)))) == []


@pytest.mark.parametrize(
    "f, expected",
    [
        (lambda x: x**2.0, ["square"]),
        (lambda x: (x * 2.0) * 4.0, ["mul"]),
        (lambda x: x + (-tf.sin(x)), ["sin", "sub"]),
        (lambda x: x - (-tf.sin(x)), ["sin", "add"]),
        (lambda x: -(x - tf.sin(x)), ["sin", "sub"]),
        (lambda x: x / 4.0, ["mul"]),
    ],
)
def test_algebra(f, expected):
    assert names(check(f, *numbers(9, (2, 3)))) == expected


def test_algebra_keeps_the_shape():
    one = np.ones((2, 1, 1), np.float32)
    simple = check(lambda x: [x * one[:1], x + 0.0 * one, x**one, x / one, x - 0 * one], *numbers(10, (3,)))
    assert {v.shape for v in simple.outputs} == {(1, 1, 3), (2, 1, 3)}


def test_factors_that_overflow_together_stay_apart():
    check(lambda x: (x * 1e-30) * 1e-30 * 1e30, np.float32([1e20, 1e25]))
    check(lambda x: (x * 1e30) * 1e30, np.float32([1e-30, 1e-35]))
    check(lambda x: x / 1e-40, np.float32([0, 1e-38]))
    check(lambda x: x / 3e38, np.float32([1e38, 3e38]))


def test_algebra_leaves_nan_and_infinity():
    check(
        lambda x: [x * 0.0, x - x, x / x, x**2.0, tf.negative(-x), x / 2.0],
        np.float32([np.inf, -np.inf, np.nan, 1]) * 1,
    )


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8", "int64", "complex64", "float16"])
def test_algebra_of_other_types(dtype):
    a = np.array([1, 2, 3, 4]).astype(dtype)
    check(lambda x: [(x * 3) * 5, x + x - x, x * 1, x + 0, x * x], a)


def test_half_precision_is_divided_as_it_is():
    check(lambda x: [x / 60000.0, x / 3.0], np.float16([1000, 60000, 3]), limit=1e-7)
