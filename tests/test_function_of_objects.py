"""Functions as packages use them: of objects that are called, decorated late, traced inside of other functions."""

import numpy as np
import pytest

import gradtape as tf


class Scale:
    """Called like a function, with attributes."""

    def __init__(self):
        self.w = tf.Variable(2.0)
        self.name = "mine"

    def __call__(self, x):
        return x * self.w


def test_a_function_shows_the_attributes_of_the_object_that_it_calls():
    scale = Scale()
    f = tf.function(scale)
    assert f.w is scale.w and f(tf.constant(3.0)) == 6.0


def test_a_decorator_is_put_inside():
    f = tf.function(lambda x: x + 1.0)
    f._decorate(lambda inner: lambda x: 10.0 * inner(x))
    assert f(tf.constant(1.0)) == 20.0
    with pytest.raises(ValueError, match="cannot be decorated after they have been traced"):
        f._decorate(lambda inner: inner)


def test_traces_of_a_function_that_is_made_while_another_is_traced():
    v = tf.Variable([[1.0, 2.0]])

    @tf.function
    def f(x):
        g = tf.function(lambda x, w: tf.matmul(x, w, transpose_b=True))
        concrete = g.get_concrete_function(x, v)
        concrete.add_to_graph()
        concrete.add_gradient_functions_to_graph()
        assert concrete.output_shapes == [3, 1]
        return g(x, v)

    np.testing.assert_array_equal(f(tf.ones([3, 2])), [[3.0]] * 3)


@pytest.mark.parametrize("first", [lambda x: tf.random.normal([3, 2]) * 0.0 + 1.0, lambda x: tf.ones([3, 2])])
def test_variables_begin_with_numbers_drawn_in_functions_of_any_size(first):
    made = []

    @tf.function(input_signature=[tf.TensorSpec([None, None, 3])])
    def f(x):
        if not made:
            made.append(tf.Variable(first(x)))
        return x @ made[0]

    np.testing.assert_array_equal(f(tf.ones([1, 2, 3])), [[[3.0, 3.0]] * 2])


@pytest.mark.parametrize("size", [None, 2])
def test_variables_begin_with_zeros_like_what_depends_on_arguments(size):
    made = []

    @tf.function(input_signature=[tf.TensorSpec([size, 3])])
    def f(x):
        mean = tf.reduce_mean(x, 0)
        if not made:
            made.append(tf.Variable(tf.zeros_like(mean)))
        return made[0].assign_add(mean)

    np.testing.assert_array_equal(f(tf.ones([2, 3])), [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(f(tf.ones([2, 3])), [2.0, 2.0, 2.0])


def test_initial_values_cannot_depend_on_arguments():
    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def f(x):
        return tf.Variable(tf.reduce_mean(x, 0)) + 1.0

    with pytest.raises(ValueError, match="could not be lifted out"):
        f(tf.ones([2, 3]))


def test_methods_of_arrays_are_mapped_over_arrays():
    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def f(x):
        arrays = [tf.TensorArray(tf.float32, tf.shape(x)[0]) for _ in range(2)]
        for i in tf.range(tf.shape(x)[0]):
            arrays = [a.write(i, x[i]) for a in arrays]
        return tf.nest.map_structure(tf.TensorArray.stack, arrays)

    for stacked in f(tf.ones([3, 2])):
        np.testing.assert_array_equal(stacked, np.ones([3, 2]))


def test_calls_that_xla_would_compile():
    one, two = tf.constant(1.0), tf.constant(2.0)
    assert [float(t) for t in tf.xla.experimental.compile(lambda x: x + 1.0, [one])] == [2.0]
    assert [float(t) for t in tf.xla.experimental.compile(lambda x, y: (x + y, x), [one, two])] == [3.0, 1.0]
    assert tf.xla.experimental.compile(lambda: None) == []
    with tf.xla.experimental.jit_scope():
        assert one + two == 3.0


def test_sizes_of_variables_that_vary_and_fit_no_trial():
    """As GPflow's SciPy optimizer: a vector of one length is taken apart by the shapes of variables without one."""
    a, b = (tf.Variable(np.arange(n, dtype=np.float64), shape=[None]) for n in (2, 3))
    c = tf.Variable(2.0, dtype=tf.float64)

    @tf.function
    def parts(vector):
        at, found = 0, []
        for v in (a, b, c):
            size = tf.reduce_prod(tf.shape(v))
            found.append(tf.reshape(vector[at : at + size], tf.shape(v)) * v)
            at += size
        return found

    vector = tf.range(1.0, 7.0, dtype=tf.float64)
    for n in (2, 2, 4, 1, 2):
        a.assign(np.full(n, 2.0))
        b.assign(np.full(5 - n, 3.0))
        for _ in range(2):
            with tf.GradientTape() as tape:
                x, y, z = parts(vector)
                total = tf.reduce_sum(x) + tf.reduce_sum(y)
            np.testing.assert_allclose(x, 2.0 * np.arange(1, n + 1))
            np.testing.assert_allclose(y, 3.0 * np.arange(n + 1, 6))
            assert float(z) == 12.0
            np.testing.assert_allclose(tape.gradient(total, a), np.arange(1, n + 1))
