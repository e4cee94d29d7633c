"""tf.gradients and tf.hessians where gradtape differs from TensorFlow: constants, variables, nested traces.

Their common behaviour is tested in tests/semantics/test_custom_gradient.py.
"""

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.graph.custom import barrier


def run(f, *args):
    return [np.asarray(g).tolist() for g in tf.function(f)(*(tf.constant(a) for a in args))]


def test_constants_cost_a_second_trace_and_nothing_else():
    @tf.function
    def f(x):
        c = tf.constant(3.0)
        d = c * c  # known while the function is traced, unless something differentiates with respect to it
        n = tf.constant([2, 2])[0] + 1  # integers stay known: they may be shapes
        return tf.gradients(d * x + tf.reduce_sum(tf.ones([int(n)]) * c), [c, d, x])

    for _ in range(2):
        assert [g.numpy() for g in f(tf.constant(5.0))] == [33.0, 5.0, 9.0]
    assert f.experimental_get_tracing_count() == 1


def test_constants_in_control_flow():
    def f(x):
        c = tf.constant(2.0)
        y = tf.cond(x > 0, lambda: c * x, lambda: c)
        for _ in tf.range(2):
            y = y * c
        return tf.gradients(y, [c, x])

    assert run(f, 3.0) == [36.0, 8.0]


def test_functions_inside_functions():
    square = tf.function(lambda x: x * x)

    def f(x):
        a = square(x)
        return tf.gradients(square(a), [a, x])

    assert run(f, 2.0) == [8.0, 32.0]


def test_variables():
    v = tf.Variable(3.0)

    @tf.function
    def f():
        before = v * v
        v.assign(v * 2.0)
        return tf.gradients(before + v * v, v)[0], before

    # 2·3 from the first read, and 2·6 from what v holds after the assignment
    assert f()[0].numpy() == 18.0
    assert v.numpy() == 6.0


def test_a_variable_read_in_a_branch():
    v = tf.Variable(3.0)
    assert run(lambda x: [tf.cond(x > 0, lambda: tf.gradients(v * v * x, v)[0], lambda: x)], 2.0) == [12.0]


def test_through_recompute_grad_primitives_and_barriers():
    cube = tf.primitive(
        lambda x: np.power(x, 3), name="np_symbolic_cube", vjp=lambda g, x, out: g * 3.0 * x * x
    )
    block = tf.recompute_grad(lambda x: tf.sin(cube(x)))

    def f(x):
        y = barrier([block(x), x])[0]
        g = tf.gradients(y, x)[0]
        return g, tf.gradients(g, x)[0]

    g, h = run(f, 0.5)
    x = 0.5
    np.testing.assert_allclose(g, np.cos(x**3) * 3 * x**2, rtol=1e-6)
    np.testing.assert_allclose(h, -np.sin(x**3) * 9 * x**4 + np.cos(x**3) * 6 * x, rtol=1e-5)


def test_sources_that_are_no_tensors_have_none():
    @tf.function
    def f(x):
        assert tf.gradients(x * 2.0, 3.0) == [None]
        return x

    f(tf.constant(1.0))


def test_hessians_of_variables_and_lists():
    v = tf.Variable([1.0, 2.0])

    def f(x):
        return tf.hessians(tf.reduce_sum(v * v * x * x), [x, v])

    hx, hv = run(f, [3.0, 4.0])
    assert hx == [[2.0, 0.0], [0.0, 8.0]]
    assert hv == [[18.0, 0.0], [0.0, 32.0]]


def test_in_a_function_that_runs_eagerly_it_is_an_error():
    tf.config.run_functions_eagerly(True)
    try:
        with pytest.raises(RuntimeError, match="Use tf.GradientTape instead"):
            run(lambda x: tf.gradients(x * x, x), 1.0)
    finally:
        tf.config.run_functions_eagerly(False)


def test_the_gradient_is_part_of_the_program():
    """The ops between xs and ys are recorded on a tape; they are not written into the graph a second time."""
    f = tf.function(lambda x: tf.gradients(tf.exp(tf.sin(x)), x))
    graph = f.get_concrete_function(tf.constant([1.0, 2.0])).graph.traced
    assert sorted(n.name for n in graph.nodes if n.name in ("exp", "sin")) == ["exp", "sin"]


def test_gradients_by_constants_with_sizes_made_of_constants():
    """Constants that are lifted into the graph, to differentiate with respect to them, still have known values."""

    @tf.function
    def f(z):
        x = tf.constant([1.0, 2.0, 3.0])
        y = x**2 * z
        n = tf.cast(tf.size(x) / tf.cast(tf.reduce_prod([1, 1]), tf.int32), tf.int32)
        assert tf.get_static_value(n) == 3
        assert tf.get_static_value(tf.reduce_sum(y)) is None
        assert tf.get_static_value(tf.random.uniform([]) * x) is None
        _, rows = tf.while_loop(
            lambda j, _: j < n,
            lambda j, rows: (j + 1, rows.write(j, tf.gradients(y[j], x)[0])),
            [0, tf.TensorArray(tf.float32, n)],
        )
        return rows.stack()

    np.testing.assert_array_equal(f(tf.constant(2.0)), np.diag([4.0, 8.0, 12.0]))
