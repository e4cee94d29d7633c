"""Small programs of unknown sizes: tapes, accumulators, arrays and loops, run at several sizes of one trace."""

import numpy as np
import pytest

from tests.semantics.lib import tf

spec = tf.TensorSpec


def of_vector(f):
    return tf.function(f, input_signature=[spec([None])])


def vector(n):
    return np.sin(np.arange(1.0, n + 1)).astype(np.float32)


# ---- tapes and accumulators -----------------------------------------------------------------------


def test_forward_accumulator():
    @of_vector
    def f(x):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as acc:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(tf.sin(x) * x)
            g = tape.gradient(y, x)
        tangent = acc.jvp(g)
        assert tangent.shape.as_list() == [None]
        return acc.jvp(y), tangent

    for n in (1, 3, 1, 3):
        x = vector(n)
        first, second = f(tf.constant(x))
        np.testing.assert_allclose(first, np.sum(np.sin(x) + x * np.cos(x)), rtol=1e-5)
        np.testing.assert_allclose(second, 2 * np.cos(x) - x * np.sin(x), rtol=1e-5)


def test_an_accumulator_around_a_loop():
    @of_vector
    def f(x):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as acc:
            y = tf.zeros_like(x)
            for i in tf.range(3):
                y += x**2 * tf.cast(i, tf.float32)
        return acc.jvp(y)

    for n in (1, 3, 1):
        np.testing.assert_allclose(f(tf.constant(vector(n))), 6 * vector(n), rtol=1e-5)


def test_accumulators_of_variables_and_in_each_other():
    v = tf.Variable(2.0)

    @of_vector
    def f(x):
        with tf.autodiff.ForwardAccumulator(v, tf.constant(1.0)) as outer:
            with tf.autodiff.ForwardAccumulator(v, tf.constant(1.0)) as inner:
                y = 3.0 * x * v**3
            z = x + 1.0
            first = inner.jvp(y)
        return first, outer.jvp(first), outer.jvp(z, unconnected_gradients="zero"), outer.jvp(z)

    for n in (2, 4, 2):
        first, second, zero, none = f(tf.constant(vector(n)))
        np.testing.assert_allclose(first, 36 * vector(n), rtol=1e-5)
        np.testing.assert_allclose(second, 36 * vector(n), rtol=1e-5)
        np.testing.assert_array_equal(zero, np.zeros(n))
        assert none is None


def test_tapes_that_are_reset():
    v, w = tf.Variable(2.0), tf.Variable(3.0)

    @of_vector
    def f(x):
        with tf.GradientTape() as tape:
            y = x * v
            tape.reset()
            z = tf.reduce_sum(x * w)
            count = len(tape.watched_variables())
        return tape.gradient([y, z], [v, w]), count

    for n in (1, 3, 3):
        (gv, gw), count = f(tf.constant(vector(n)))
        assert gv is None and int(count) == 1
        np.testing.assert_allclose(gw, vector(n).sum(), rtol=1e-5)


def test_a_gradient_on_a_way_that_a_run_does_not_take_is_zero():
    table = tf.Variable(tf.ones([4, 2]))

    @tf.function(input_signature=[spec([None]), spec([None], tf.int32)])
    def f(x, rows):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y, z = tf.constant(0.0), tf.constant(0.0)
            for i in tf.range(tf.size(x)):
                y += x[i] ** 2
                z += tf.reduce_sum(tf.gather(table, rows))
        return tape.gradient(y, x), tf.convert_to_tensor(tape.gradient(z, table))

    for n in (0, 2, 0, 2):
        g, of_table = f(tf.constant(vector(n)), tf.constant([1, 3]))
        np.testing.assert_allclose(g, 2 * vector(n), rtol=1e-6)
        np.testing.assert_array_equal(of_table, np.outer([0, n, 0, n], [1, 1]))


# ---- arrays ---------------------------------------------------------------------------------------


def test_an_array_of_nothing_has_the_shape_of_its_elements():
    @tf.function(input_signature=[spec([None, 2])])
    def f(x):
        array = tf.TensorArray(tf.float32, tf.shape(x)[0])
        for i in tf.range(tf.shape(x)[0]):
            array = array.write(i, x[i] * 2.0)
        return array.stack()

    for n in (0, 3, 0):
        assert f(tf.ones([n, 2])).shape == (n, 2)


def test_arrays_of_elements_of_different_sizes():
    seen = []

    @of_vector
    def f(x):
        n = tf.size(x)
        joined = tf.TensorArray(tf.float32, n, element_shape=[None])
        for i in tf.range(n):
            joined = joined.write(i, x[:i])
        parts = tf.TensorArray(tf.float32, 2, infer_shape=False).split(x, [n - 1, 1])
        seen.extend([str(joined.concat().shape), str(parts.concat().shape), str(parts.read(1).shape)])
        return joined.concat(), parts.concat()

    for n in (1, 4, 1):
        joined, parts = f(tf.constant(vector(n)))
        np.testing.assert_array_equal(joined, np.concatenate([vector(i) for i in range(n)]))
        np.testing.assert_array_equal(parts, vector(n))
    assert seen == ["(None,)", "<unknown>", "<unknown>"]


def test_an_array_learns_the_shape_of_its_elements():
    @of_vector
    def f(x):
        array = tf.TensorArray(tf.float32, 2).write(0, x)
        array = array.write(1, tf.ones([3]))
        assert array.element_shape.as_list() == [3] and array.stack().shape.as_list() == [2, 3]
        return array.stack()

    assert f(tf.zeros([3])).numpy().tolist() == [[0.0] * 3, [1.0] * 3]
    with pytest.raises(tf.errors.InvalidArgumentError):
        f(tf.zeros([2]))


def test_elements_that_do_not_fit():
    @of_vector
    def f(x):
        array = tf.TensorArray(tf.float32, 2).write(0, tf.ones([4]))
        return array.write(1, tf.ones([3])).stack()

    with pytest.raises(ValueError, match=r"Inconsistent shapes: saw \(3,\) but expected \(4,\)"):
        f(tf.ones([2]))


def test_writing_past_the_end():
    @of_vector
    def f(x):
        array = tf.TensorArray(tf.float32, 2)
        for i in tf.range(tf.size(x)):
            array = array.write(i, x[i])
        return array.stack()

    assert f(tf.ones([2])).numpy().tolist() == [1.0, 1.0]
    with pytest.raises(tf.errors.InvalidArgumentError):
        f(tf.ones([3]))


# ---- loops ----------------------------------------------------------------------------------------


def test_a_loop_over_nothing_that_makes_a_variable():
    @of_vector
    def f(x):
        for e in x:
            y = e * 2.0
        return e + y

    assert f(tf.constant([1.0, 2.0])).numpy() == 6.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="loop must iterate at least once to initialize"):
        f(tf.zeros([0]))
