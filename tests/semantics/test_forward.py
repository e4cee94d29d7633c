"""tf.autodiff.ForwardAccumulator."""

import numpy as np
import pytest

from .lib import assert_close, differs_on_tensorflow, logged_warnings, tf

Accumulator = tf.autodiff.ForwardAccumulator


def jvp(f, primals, tangents, **options):
    """The derivative of `f(*primals)` along `tangents`, all given as values."""
    primals = [tf.constant(p) for p in primals]
    tangents = [tf.constant(t) for t in tangents]
    with Accumulator(primals, tangents) as acc:
        y = f(*primals)
    return acc.jvp(y, **options)


def test_F1_jacobian_times_vector():
    j = jvp(lambda x: x[0] * x, [[2.0, 3.0]], [[1.0, 0.5]])
    assert_close(j, [4.0, 4.0])


def test_F1_several_primals():
    assert_close(jvp(lambda x, y: x * y, [2.0, 3.0], [1.0, 10.0]), 23.0)


def test_F1_nested_structures():
    x, y = tf.constant(2.0), tf.constant([3.0, 4.0])
    tangents = {"a": tf.constant(1.0), "b": [tf.constant([1.0, -1.0])]}
    with Accumulator({"a": x, "b": [y]}, tangents) as acc:
        z = {"product": x * y, "rest": (x * x, [tf.reduce_sum(y)])}
    found = acc.jvp(z)
    assert_close(found["product"], [3.0 + 2.0, 4.0 - 2.0])
    assert_close(found["rest"][0], 4.0)
    assert_close(found["rest"][1][0], 0.0)


def test_F1_variables():
    v = tf.Variable([1.0, 2.0])
    with Accumulator(v, tf.constant([1.0, 10.0])) as acc:
        y = v * v
    assert_close(acc.jvp(y), [2.0, 40.0])


def test_F1_the_tangent_of_a_primal():
    x = tf.constant([1.0, 2.0])
    v = tf.Variable(3.0)
    with Accumulator([x, v], [tf.constant([5.0, 6.0]), tf.constant(7.0)]) as acc:
        assert_close(acc.jvp(x), [5.0, 6.0])
    assert_close(acc.jvp(x), [5.0, 6.0])
    assert_close(acc.jvp(v), 7.0)


def test_F1_inside_and_after_the_context():
    x = tf.constant(2.0)
    with Accumulator(x, tf.constant(1.0)) as acc:
        y = x * x
        assert_close(acc.jvp(y), 4.0)
        z = y * x
        assert_close(acc.jvp(z), 12.0)
        assert_close(acc.jvp(y), 4.0)
    assert_close(acc.jvp(z), 12.0)
    assert_close(acc.jvp(y), 4.0)


def test_F1_after_the_context_nothing_is_recorded():
    x = tf.constant(2.0)
    with Accumulator(x, tf.constant(1.0)) as acc:
        y = x * x
    z = y * 3.0
    assert acc.jvp(z) is None


def test_F2_unconnected():
    x, other = tf.constant(2.0), tf.constant([1.0, 2.0])
    with Accumulator(x, tf.constant(1.0)) as acc:
        y = other * 2.0
    assert acc.jvp(y) is None
    assert acc.jvp(other) is None
    assert_close(acc.jvp(y, unconnected_gradients=tf.UnconnectedGradients.ZERO), [0.0, 0.0])
    assert_close(acc.jvp(y, unconnected_gradients="zero"), [0.0, 0.0])


def test_F2_results_without_a_derivative():
    x = tf.constant([2.0, 1.0])
    with Accumulator(x, tf.ones_like(x)) as acc:
        y = tf.argmax(x)
    assert acc.jvp(y) is None


def test_F2_integer_primals_are_warned_about():
    n = tf.constant(3)
    with logged_warnings() as messages, Accumulator(n, tf.constant(1)) as acc:
        y = n * 2
    assert "The dtype of the watched primal must be floating (e.g. tf.float32), got tf.int32" in messages
    assert acc.jvp(y) is None


def test_F2_the_same_primal_twice_is_an_error():
    x = tf.constant(2.0)
    with pytest.raises(ValueError, match="was specified as a primal multiple times"):
        Accumulator([x, x], [tf.constant(1.0), tf.constant(2.0)])


def test_F2_the_words_of_the_error():
    v = tf.Variable(2.0)
    with pytest.raises(
        ValueError,
        match="This may indicate an error. If it was intended, please sum the corresponding tangents.",
    ):
        Accumulator([v, v], [tf.constant(1.0), tf.constant(2.0)])


def test_F2_entering_twice_is_an_error():
    acc = Accumulator(tf.constant(1.0), tf.constant(1.0))
    with acc, pytest.raises(ValueError, match="Accumulator is already recording."), acc:
        pass


def test_F2_entering_again_goes_on():
    x = tf.constant(2.0)
    acc = Accumulator(x, tf.constant(1.0))
    with acc:
        y = x * x
    between = y * x
    with acc:
        z = y * x
    assert acc.jvp(between) is None
    assert_close(acc.jvp(z), 12.0)


def test_F2_structures_must_match():
    x, t = tf.constant(1.0), tf.constant(1.0)
    with pytest.raises((ValueError, TypeError)):
        Accumulator([x], t)
    with pytest.raises((ValueError, TypeError)):
        Accumulator([x, tf.constant(2.0)], [t])


def test_F3_forward_over_forward():
    x = tf.constant(2.0)
    with Accumulator(x, tf.constant(1.0)) as outer:
        with Accumulator(x, tf.constant(1.0)) as inner:
            y = x**3
        dy = inner.jvp(y)
    assert_close(dy, 12.0)
    assert_close(outer.jvp(dy), 12.0)
    assert_close(outer.jvp(y), 12.0)


def test_F3_three_times_forward():
    x = tf.constant(1.1)
    with Accumulator(x, tf.constant(-2.0)) as first:
        with Accumulator(x, tf.constant(-2.0)) as second:
            with Accumulator(x, tf.constant(-2.0)) as third:
                y = tf.exp(x)
            d1 = third.jvp(y)
        d2 = second.jvp(d1)
    d3 = first.jvp(d2)
    assert_close([d1, d2, d3], np.exp(np.float32(1.1)) * np.array([-2.0, 4.0, -8.0]))


def test_F3_forward_over_backward_is_a_hessian_product():
    x, v = tf.constant([1.0, 2.0]), tf.constant([1.0, 3.0])
    with Accumulator(x, v) as acc:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x[0] ** 2 * x[1]
        g = tape.gradient(y, x)
    assert_close(g, [4.0, 1.0])
    assert_close(acc.jvp(g), [10.0, 2.0])


def test_F3_backward_over_forward():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        with Accumulator(x, tf.constant([1.0, 3.0])) as acc:
            y = x[0] ** 2 * x[1]
        dy = acc.jvp(y)
    assert_close(dy, 7.0)
    assert_close(tape.gradient(dy, x), [10.0, 2.0])


def test_F3_inside_a_function():
    @tf.function
    def f(x, t):
        with Accumulator(x, t) as acc:
            y = tf.sin(x) * x
        return y, acc.jvp(y)

    x, t = tf.constant([0.5, 1.0]), tf.constant([1.0, -1.0])
    for _ in range(2):
        _, j = f(x, t)
        assert_close(j, (np.cos(x) * x + np.sin(x)) * t)


def test_F3_through_a_function():
    @tf.function
    def f(x):
        return tf.sin(x) * x, x

    x, t = tf.constant([0.5, 1.0]), tf.constant([1.0, -1.0])
    for _ in range(3):
        with Accumulator(x, t) as acc:
            y, same = f(x)
        assert_close(acc.jvp(y), (np.cos(x) * x + np.sin(x)) * t)
        assert_close(acc.jvp(same), t)


def test_F3_forward_over_backward_in_a_function():
    @tf.function
    def hvp(x, v):
        with Accumulator(x, v) as acc:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(x**3) * x[0]
            g = tape.gradient(y, x)
        return acc.jvp(g)

    x, v = np.array([1.0, 2.0]), np.array([1.0, -1.0])
    hessian = np.array([[12.0, 12.0], [12.0, 12.0]])
    assert_close(hvp(tf.constant(x), tf.constant(v)), hessian @ v, atol=1e-5)


@pytest.mark.parametrize("inside", [False, True])
def test_F3_while_loops(inside):
    def f(x):
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), [0, x])[1]

    def run(x):
        with Accumulator(x, tf.constant([1.0, 0.5])) as acc:
            y = f(x)
        return acc.jvp(y)

    run = tf.function(run) if inside else run
    assert_close(run(tf.constant([2.0, 3.0])), [32.0, 54.0])


@pytest.mark.parametrize("inside", [False, True])
def test_F3_branches(inside):
    def run(x):
        with Accumulator(x, tf.ones_like(x)) as acc:
            y = tf.cond(x > 1.0, lambda: x * x, lambda: x * 3.0)
        return acc.jvp(y)

    run = tf.function(run) if inside else run
    assert_close(run(tf.constant(2.0)), 4.0)
    assert_close(run(tf.constant(0.5)), 3.0)


def test_F3_stop_gradient():
    x = tf.constant(3.0)
    with Accumulator(x, tf.constant(1.0)) as acc:
        stopped = tf.stop_gradient(x)
        y = stopped * x
    assert acc.jvp(stopped) is None
    assert_close(acc.jvp(y), 3.0)


def test_F3_gathers():
    table, t = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([[1.0, 1.0], [2.0, 3.0]])
    with Accumulator(table, t) as acc:
        y = tf.gather(table, [1, 1, 0]) ** 2
    assert_close(acc.jvp(y), [[12.0, 24.0], [12.0, 24.0], [2.0, 4.0]])


@differs_on_tensorflow(
    "TensorFlow gives the tangent of the values in the sparse gradient", raises=AssertionError
)
def test_F3_forward_over_a_sparse_gradient():
    table = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with Accumulator(table, tf.ones([2, 2])) as acc:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.gather(table, [1, 1]) ** 3)
        g = tf.convert_to_tensor(tape.gradient(y, table))
    assert_close(acc.jvp(g), [[0.0, 0.0], [36.0, 48.0]])


def test_F3_complex():
    z = tf.constant([1 + 2j, 3 - 1j], tf.complex64)
    t = tf.constant([1 + 0j, 0 + 1j], tf.complex64)
    with Accumulator(z, t) as acc:
        y = z * z
        r = tf.abs(z)
    assert_close(acc.jvp(y), [2 + 4j, 2 + 6j])
    assert_close(acc.jvp(r), [1 / np.sqrt(5), -1 / np.sqrt(10)])


def test_F4_assign_does_not_propagate():
    v, x = tf.Variable(1.0), tf.constant(2.0)
    with Accumulator([v, x], [tf.constant(5.0), tf.constant(1.0)]) as acc:
        v.assign(x * x)
        y = v * 3.0
    assert_close(acc.jvp(v), 5.0)
    assert_close(acc.jvp(y), 15.0)


def test_F5_custom_gradients_are_differentiated_by_their_forward_code():
    @tf.custom_gradient
    def f(x):
        return x * 2.0, lambda g: g * 100.0

    x = tf.constant(3.0)
    with Accumulator(x, tf.constant(1.0)) as acc:
        y = f(x)
    assert_close(acc.jvp(y), 2.0)


@tf.custom_gradient
def doubled(x):
    """Has a custom gradient of 100 x, though its derivative is 2."""
    return x * 2.0, lambda g: g * 100.0 * x


def test_F5_a_tape_beside_the_accumulator_follows_the_gradient():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with Accumulator(x, tf.constant(1.0)) as acc:
            y = doubled(x)
        dy = acc.jvp(y)
    assert_close(dy, 2.0)
    assert_close(tape.gradient(y, x), 300.0)


def test_F5_forward_over_the_gradient():
    x = tf.constant(3.0)
    with Accumulator(x, tf.constant(1.0)) as acc:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = doubled(x) ** 2
        g = tape.gradient(y, x)
    assert_close(g, 2 * 6.0 * 300.0)
    # 4x · 100x from the forward code of the values that the gradient reads, and from the gradient's own code
    assert_close(acc.jvp(g), 4 * 300.0 + 12.0 * 100.0)
    assert_close(acc.jvp(y), 2 * 6.0 * 2.0)


def test_F5_several_arguments_and_results():
    @tf.custom_gradient
    def f(x, y):
        return (x * y, x + y), lambda g, h: (g * 1000.0, h * 1000.0)

    x, y = tf.constant(3.0), tf.constant(5.0)
    with Accumulator([x, y], [tf.constant(1.0), tf.constant(2.0)]) as acc:
        a, b = f(x, y)
        c = a * b
    assert_close(acc.jvp(a), 5.0 + 6.0)
    assert_close(acc.jvp(b), 3.0)
    assert_close(acc.jvp(c), 11.0 * 8.0 + 15.0 * 3.0)


def test_F5_grad_pass_through():
    x = tf.constant([1.5, -0.5])
    with Accumulator(x, tf.ones_like(x)) as acc:
        y = tf.grad_pass_through(tf.floor)(x)
    j = acc.jvp(y)
    assert j is None or np.all(np.isin(j, [0.0, 1.0]))


def test_F5_opaque_forward_code_is_differentiated_by_the_gradient():
    @tf.custom_gradient
    def f(x):
        return tf.constant(x.numpy() ** 2), lambda g: g * 100.0

    x = tf.constant(3.0)
    with Accumulator(x, tf.constant(1.0)) as acc:
        y = f(x)
    assert_close(acc.jvp(y), 100.0)


@differs_on_tensorflow("TensorFlow finds the wrong shape when an op computes with it")
def test_F2_a_tangent_of_another_shape_is_an_error():
    with pytest.raises(ValueError, match=r"expected shape \[2\]; got float32\[3\]"):
        Accumulator(tf.constant([1.0, 2.0]), tf.constant([1.0, 2.0, 3.0]))


def test_F2_a_tangent_of_another_type_is_an_error():
    x = tf.constant([1.0, 2.0])
    with pytest.raises(ValueError, match="float32"):
        with Accumulator(x, tf.constant([1, 2])) as acc:
            y = x * x
        acc.jvp(y)


def test_F2_arrays_and_numbers_as_tangents():
    x = tf.constant([1.0, 2.0])
    for tangent in (np.float32([1.0, 1.0]), np.float64([1.0, 1.0]), 1.0):
        with Accumulator(x, tangent) as acc:
            y = x * x
        assert_close(acc.jvp(y), [2.0, 4.0])
