"""The memory plan of a program: values share places only while they cannot meet."""

import numpy as np

import gradtape as tf
from gradtape._src.engines.native.lower import compile_graph
from gradtape._src.graph.ir import Graph
from tests.graph.pass_checks import check, numbers, planned, trace


def test_memory_is_used_again():
    def f(x):
        for _ in range(20):
            x = tf.tanh(x @ x)
        return x

    with planned() as seen:
        compile_graph(trace(f, *numbers(26, (32, 32))))
    ((_, _, _, _, arena),) = seen
    assert arena <= 4 * 32 * 32 * 4


def test_an_unread_result_beside_a_read_one():
    def f(x):
        values, _ = tf.math.top_k(x, k=2)
        _, places = tf.math.top_k(tf.sin(x), k=3)
        return [values * 2.0, tf.cast(places, tf.float32) + 1.0]

    check(f, *numbers(27, (4, 6)))


def test_second_results_of_ops_keep_their_place():
    labels = tf.constant([0, 2, 1])

    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x)
        return tape.gradient(y, x) * 2.0

    check(f, *numbers(28, (3, 4)))


def test_results_that_are_inputs_constants_and_each_other():
    c = tf.constant([5.0])

    def f(x, y):
        z = tf.exp(x)
        return [x, y, z, z, tf.identity(z), tf.reshape(z, [6]), tf.reshape(x, [3, 2]), c + 0.0 * x[0, 0], x]

    check(f, *numbers(29, (2, 3), (4,)))


def test_a_result_that_is_a_constant():
    graph = Graph()
    graph.input((2,), tf.float32._code)
    c = graph.constant(tf.constant([1.0, 2.0]))
    graph.outputs = [c, c, graph.inputs[0]]
    outs = compile_graph(graph).run([tf.constant([3.0, 4.0])])
    assert [list(np.array(o)) for o in outs] == [[1, 2], [1, 2], [3, 4]]


def test_a_graph_without_nodes_or_outputs():
    graph = Graph()
    graph.input((2,), tf.float32._code)
    assert list(compile_graph(graph).run([tf.zeros([2])])) == []


def test_views_of_values_that_die():
    def f(x):
        y = tf.sin(x @ x)
        part, row = y[1:3], y[0]
        z = tf.cos(y @ y)  # takes memory while the views are alive
        w = tf.exp(z @ x)
        return [part, row + 1.0, w[2:], tf.reshape(part, [-1]), part @ w, tf.split(w, 2)[1] * 1.5]

    check(f, *numbers(30, (4, 4)))


def test_reshapes_of_values_that_die():
    def f(x):
        y = tf.sin(x @ x)
        flat = tf.reshape(y, [16])
        z = tf.cos(x @ tf.exp(x))
        return [
            tf.reduce_sum(tf.sort(flat)[:3]) + z,
            tf.expand_dims(flat, 0) * 2.0,
            tf.squeeze(tf.reshape(z, [1, 16])),
        ]

    check(f, *numbers(31, (4, 4)))


def test_sizes_of_zero():
    def f(x, y):
        return [
            tf.exp(x @ y),
            tf.reduce_sum(x, 0),
            tf.reduce_sum(tf.exp(x)),
            tf.concat([tf.sin(x), x], 0),
            y + 1.0,
        ]

    check(f, np.zeros((0, 3), np.float32), *numbers(32, (3, 2)))


def test_a_variable_is_not_written_over_while_a_slice_of_it_is_needed():
    """A leading slice is a part of the variable's memory."""
    v = tf.Variable([1.0, 2.0, 3.0])

    @tf.function
    def swap():
        first = v[0]
        v.assign_add(v)
        other = v - 1.0
        v[0].assign(first)
        return other

    for _ in range(2):
        v.assign([1.0, 2.0, 3.0])
        assert swap().numpy().tolist() == [1.0, 3.0, 5.0]
        assert v.numpy().tolist() == [1.0, 4.0, 6.0]
