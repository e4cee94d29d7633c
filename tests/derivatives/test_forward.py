"""ForwardAccumulator through everything a program may contain, compared with products with the Jacobian.
TensorFlow's behaviour is tested in `tests/semantics/test_forward.py`."""

import gc
import weakref

import numpy as np
import pytest

import gradtape as tf

from .differences import compiling, differences
from .test_jacobian import double
from .test_jacobian_through import FUNCTIONS, MATRICES, M, X, exists

Accumulator = tf.autodiff.ForwardAccumulator
T = double(0.3, -1.0, 0.5)


def jvp(f, x=X, t=T):
    with Accumulator(x, t) as acc:
        y = f(x)
    return acc.jvp(y)


def product(f, x, t):
    j = differences(lambda a: f(tf.constant(a)).numpy(), x.numpy())
    return np.tensordot(j, t.numpy(), t.ndim)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_through(name):
    f = FUNCTIONS[name]
    expected = product(f, X, T)
    inside = tf.function(lambda x, t: jvp(f, x, t))
    through = tf.function(f)
    with compiling(True):
        for got in (*(jvp(f) for _ in range(3)), inside(X, T), inside(X, T), jvp(through), jvp(through)):
            assert got.dtype == tf.float64
            np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", [n for n in MATRICES if exists(MATRICES[n])])
def test_matrices(name):
    t = tf.constant(np.random.default_rng(0).normal(size=(3, 3)))
    np.testing.assert_allclose(jvp(MATRICES[name], M, t), product(MATRICES[name], M, t), rtol=1e-5, atol=1e-6)


SMOOTH = [n for n in FUNCTIONS if n not in ("stop_gradient",)]


@pytest.mark.parametrize("name", SMOOTH)
def test_forward_over_reverse(name):
    """The Hessian times a vector, in three orders of modes."""
    f = FUNCTIONS[name]

    def total(x):
        return tf.reduce_sum(tf.sin(f(x)))

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = total(x)
        return tf.convert_to_tensor(tape.gradient(y, x))

    def reverse_over_forward(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            dy = jvp(total, x)
        return tf.convert_to_tensor(tape.gradient(dy, x))

    def forward_over_forward(x):
        units = tf.unstack(tf.eye(3, dtype=tf.float64))
        return tf.stack([jvp(lambda x, u=u: jvp(total, x, u), x) for u in units])

    expected = product(gradient, X, T)
    for way in (lambda x: jvp(gradient, x), reverse_over_forward, forward_over_forward):
        np.testing.assert_allclose(way(X), expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(tf.function(way)(X), expected, rtol=1e-5, atol=1e-6)


def test_tangents_that_are_variables_and_nested_primals():
    v = tf.Variable([1.0, 2.0], dtype=tf.float64)
    t = tf.Variable([3.0, 4.0], dtype=tf.float64)
    with Accumulator((v, {"x": X}), (t, {"x": T})) as acc:
        y = [v * X[0], X * X]
    first, second = acc.jvp(y)
    np.testing.assert_allclose(first, t.numpy() * 0.7 + v.numpy() * 0.3)
    np.testing.assert_allclose(second, 2 * X.numpy() * T.numpy())


def test_the_tangent_is_that_of_the_start():
    t = tf.Variable([1.0, 1.0, 1.0], dtype=tf.float64)
    with Accumulator(X, t) as acc:
        y = X * X
    t.assign([0.0, 0.0, 0.0])
    np.testing.assert_allclose(acc.jvp(y), 2 * X.numpy())


def test_variables_in_a_module():
    w, b = tf.Variable(np.ones([3, 2])), tf.Variable(np.zeros(2))
    x = tf.constant(np.arange(6.0).reshape(2, 3))
    tw, tb = tf.ones([3, 2], tf.float64), tf.constant([1.0, 2.0], tf.float64)

    def model(x):
        return tf.matmul(x, w) + b

    for call in (model, tf.function(model)):
        with Accumulator([w, b], [tw, tb]) as acc:
            y = call(x)
        np.testing.assert_allclose(acc.jvp(y), x.numpy() @ tw.numpy() + tb.numpy())


def test_a_variable_that_is_not_a_primal_is_a_constant():
    v = tf.Variable(2.0, dtype=tf.float64)
    with Accumulator(X, T) as acc:
        y, z = X * v, v * 3.0
    np.testing.assert_allclose(acc.jvp(y), 2 * T.numpy())
    assert acc.jvp(z) is None


def test_a_variable_that_is_assigned_on_the_way():
    v = tf.Variable(2.0, dtype=tf.float64)
    with Accumulator(v, tf.constant(1.0, tf.float64)) as acc:
        y = v * v
        v.assign(5.0)
        z = v * v
    np.testing.assert_allclose([acc.jvp(y), acc.jvp(z)], [4.0, 10.0])


def test_one_accumulator_inside_another_with_other_primals():
    a, b = double(2.0), double(3.0)
    one = tf.constant(1.0, tf.float64)
    with Accumulator(a, one) as outer, Accumulator(b, one) as inner:
        y = a**2 * b**3
        dy = inner.jvp(y)
    np.testing.assert_allclose(dy, 4 * 27)
    np.testing.assert_allclose(outer.jvp(dy), 4 * 27)
    np.testing.assert_allclose(outer.jvp(y), 4 * 27)
    np.testing.assert_allclose(inner.jvp(y), 4 * 27)


def test_tangents_that_depend_on_the_primals():
    """The tangent of the inner accumulator depends on x, which the outer derivative takes into account."""
    x = double(2.0)
    one = tf.constant(1.0, tf.float64)
    with Accumulator(x, one) as outer:
        with Accumulator(x, x * x) as inner:
            y = tf.sin(x)
        dy = inner.jvp(y)  # cos(x) x²
    np.testing.assert_allclose(outer.jvp(dy), 2 * 2.0 * np.cos(2.0) - 4 * np.sin(2.0))


def test_gradients_by_the_tangent():
    """A JVP is linear in the tangent, and its gradient with respect to the tangent is a VJP."""
    with tf.GradientTape() as tape:
        tape.watch(T)
        dy = jvp(lambda x: tf.sin(x) * tf.reduce_sum(x))
    g = tape.gradient(dy, T)
    j = differences(lambda a: np.sin(a) * a.sum(), X.numpy())
    np.testing.assert_allclose(g, j.sum(0), rtol=1e-6)


def test_a_tape_inside_and_an_accumulator_inside_that():
    def third(x):
        with Accumulator(x, T) as outer:
            with tf.GradientTape() as tape:
                tape.watch(x)
                with Accumulator(x, T) as inner:
                    y = tf.reduce_sum(x**4)
                dy = inner.jvp(y)
            g = tape.gradient(dy, x)
        return outer.jvp(g)

    expected = 24 * X.numpy() * T.numpy() ** 2
    for _ in range(3):
        np.testing.assert_allclose(third(X), expected)
    np.testing.assert_allclose(tf.function(third)(X), expected)


def test_jacobian_over_forward_and_forward_over_jacobian():
    def f(x):
        return tf.sin(x) * tf.reduce_sum(x)

    with tf.GradientTape() as tape:
        tape.watch(X)
        dy = jvp(f)
    first = tape.jacobian(dy, X)

    def jacobian(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.jacobian(y, x)

    np.testing.assert_allclose(jvp(jacobian), first, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(first, product(jacobian, X, T), rtol=1e-6, atol=1e-8)


def test_many_directions_at_once():
    """An accumulator inside vectorized_map: the columns of a Jacobian in one forward pass."""
    columns = tf.vectorized_map(
        lambda t: jvp(lambda x: tf.sin(x) * tf.reduce_sum(x), X, t), tf.eye(3, dtype=tf.float64)
    )
    j = differences(lambda a: np.sin(a) * a.sum(), X.numpy())
    np.testing.assert_allclose(columns, j.T, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0)])
def test_sizes(shape):
    x = tf.ones(shape, tf.float64)
    got = jvp(lambda x: x * x, x, x * 3.0)
    assert got.shape == shape
    np.testing.assert_array_equal(got, 6 * np.ones(shape))
    np.testing.assert_array_equal(jvp(tf.reduce_sum, x, x * 3.0), 3 * np.sum(np.ones(shape)))


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32])
def test_types(dtype):
    x = tf.constant([1.0, 2.0], dtype)
    got = jvp(lambda x: x * x, x, tf.ones_like(x))
    assert got.dtype == dtype
    np.testing.assert_array_equal(tf.cast(got, tf.float32), [2, 4])
    wide = jvp(lambda x: tf.cast(x, tf.float64) * 2.0, x, tf.ones_like(x))
    assert wide.dtype == tf.float64
    np.testing.assert_array_equal(wide, [2, 2])


def test_real_parts_and_real_numbers_as_complex_ones():
    def f(x):
        z = tf.complex(x, x[::-1] * x)
        return tf.abs(z * z) + tf.math.real(tf.math.conj(z) * tf.constant(1 + 2j, tf.complex128))

    np.testing.assert_allclose(jvp(f), product(f, X, T), rtol=1e-6)


def test_custom_gradients_without_forward_code():
    @tf.custom_gradient
    def f(x):
        return tf.constant(x.numpy() ** 2), lambda g: 2.0 * g * x

    np.testing.assert_allclose(jvp(f), 2 * X.numpy() * T.numpy())


def test_py_function():
    f = lambda x: tf.py_function(lambda x: x * float(x[0]), [x], tf.float64)  # noqa: E731
    np.testing.assert_allclose(jvp(f), T.numpy() * 0.7)


def test_numpy_function_has_no_tangent():
    assert jvp(lambda x: tf.numpy_function(np.sin, [x], tf.float64)) is None


def test_sparse_gradients():
    table = tf.Variable(np.arange(6.0).reshape(3, 2))
    t = tf.constant(np.ones([3, 2]))
    with Accumulator(table, t) as acc:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.nn.embedding_lookup(table, [0, 2, 2]) ** 3)
        g = tape.gradient(y, table)
        assert isinstance(g, tf.IndexedSlices)
        dense = tf.convert_to_tensor(g)
    expected = 6 * table.numpy() * np.array([[1], [0], [2]])
    np.testing.assert_allclose(acc.jvp(dense), expected)


def test_sparse_tangents():
    table = tf.Variable(np.arange(6.0).reshape(3, 2))
    t = tf.IndexedSlices(tf.ones([1, 2], tf.float64), tf.constant([1]), tf.constant([3, 2]))
    with Accumulator([table], [t]) as acc:
        y = table * table
    np.testing.assert_allclose(acc.jvp(y), 2 * table.numpy() * [[0], [1], [0]])


# ---- errors -------------------------------------------------------------------------------------


def test_words_of_errors():
    with pytest.raises(ValueError, match="a primal is not a tensor or Variable; got 'float'"):
        Accumulator(3.0, 1.0)
    with pytest.raises(ValueError, match="expected float64; got float32"):
        Accumulator(X, tf.ones([3]))
    with pytest.raises(ValueError, match=r"expected shape \[3\]; got float64\[2\]"):
        Accumulator(X, tf.ones([2], tf.float64))
    with pytest.raises(ValueError, match="same nested structure"):
        Accumulator([X], [T, T])
    acc = Accumulator(X, T)
    with pytest.raises(AttributeError, match="a target is not a tensor"):
        acc.jvp(3.0)
    with pytest.raises(ValueError, match="Unknown value for unconnected_gradients"):
        acc.jvp(X, unconnected_gradients="some")


def test_an_error_inside_ends_the_recording():
    acc = Accumulator(X, T)
    with pytest.raises(ZeroDivisionError), acc:
        y = X * X
        raise ZeroDivisionError
    assert not acc._tape._recording
    np.testing.assert_allclose(acc.jvp(y), 2 * X.numpy() * T.numpy())
    with acc:
        pass


def test_nothing_is_kept_when_it_is_gone(counted_memory):
    x = tf.ones([1000])
    acc = Accumulator(x, x)
    with acc:
        y = tf.exp(x) * 2.0
    before = tf.config.memory_info()["live_bytes"]
    gone = weakref.ref(acc) if hasattr(acc, "__weakref__") else None
    del acc
    gc.collect()
    assert gone is None or gone() is None
    assert tf.config.memory_info()["live_bytes"] < before
    assert y.shape == [1000]
