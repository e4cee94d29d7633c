"""custom_gradient beyond TensorFlow: words of its errors, what it keeps alive, functions, batches.

What it has in common with TensorFlow is in tests/semantics/test_custom_gradient.py.
"""

import gc
import math

import numpy as np
import pytest

import gradtape as tf
from gradtape import _core


def gradient(f, *xs):
    xs = [tf.convert_to_tensor(x) for x in xs]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    g = tape.gradient(y, xs)
    return g[0] if len(g) == 1 else g


# ---- errors ---------------------------------------------------------------------------------


def wrong(shape, which):
    def f(first, pair):
        def grad(dy):
            grads = [tf.zeros_like(first), *map(tf.zeros_like, pair)]
            grads[which] = tf.ones(shape)
            return grads

        return first + pair[0] + pair[1], grad

    return tf.custom_gradient(f)


@pytest.mark.parametrize(
    ("which", "name"), [(0, "argument 'first'"), (2, r"argument 'pair' \(part 1 of 2\)")]
)
@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "function"])
def test_a_wrong_shape_names_function_argument_and_shapes(which, name, wrap):
    f = wrong([5], which)
    words = rf"the gradient that wrong.<locals>.f gives for its {name} does not fit; expected shape \[3\]; got float32\[5\]"
    x = tf.ones([3])
    with pytest.raises(ValueError, match=words):
        gradient(wrap(lambda x: f(x, (x, x))), x)


def test_a_wrong_shape_of_a_variable_and_of_unnamed_arguments():
    v = tf.Variable([1.0, 2.0], name="weights")
    f = tf.custom_gradient(lambda x: (x * v, lambda dy, variables: (dy, [tf.ones([3])])))
    with pytest.raises(ValueError, match=r"for the variable 'weights:0' does not fit; expected shape \[2\]"):
        gradient(f, [1.0, 2.0])
    f = tf.custom_gradient(lambda *xs: (xs[0] * xs[1], lambda dy: (dy, tf.ones([3]))))
    with pytest.raises(ValueError, match="for its argument number 1 does not fit"):
        gradient(f, [1.0, 2.0], [1.0, 2.0])


def test_the_result_and_a_function_are_needed():
    with pytest.raises(TypeError, match="must return its result and the function that gives its gradient"):
        tf.custom_gradient(lambda x: (x, None))(tf.constant(1.0))


def test_text_and_objects_count_as_arguments():
    f = tf.custom_gradient(lambda x, mode: (x * 2, lambda dy: (dy * 3, None)))
    assert gradient(lambda x: f(x, "fast"), 1.0).numpy() == 3.0
    assert gradient(tf.function(lambda x: f(x, "fast")), 1.0).numpy() == 3.0


# ---- what is kept -----------------------------------------------------------------------------


def test_nothing_is_kept_that_grad_does_not_hold(counted_memory):
    @tf.custom_gradient
    def deep(x):
        for _ in range(20):
            x = tf.sin(x)
        return x, lambda dy: dy

    x = tf.ones([100_000])
    gc.collect()
    before = _core.memory_info()["live_bytes"]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = deep(x)
    kept = _core.memory_info()["live_bytes"] - before
    assert kept < 2 * 400_000 + 100_000  # the result
    assert tape.gradient(y, x).shape == x.shape


def test_looking_for_variables_records_nothing(counted_memory):
    v = tf.Variable(tf.ones([100_000]))
    live = []

    @tf.custom_gradient
    def f():
        x = v
        for _ in range(20):
            x = tf.sin(x)
        live.append(_core.memory_info()["live_bytes"])
        return x, lambda dy, variables: ((), [dy])

    gc.collect()
    before = _core.memory_info()["live_bytes"]
    f()
    assert live[0] - before < 3 * 400_000


# ---- functions, batches, numbers ------------------------------------------------------------


@tf.custom_gradient
def steep_square(x):
    return x * x, lambda upstream: upstream * 100.0 * x


def test_python_numbers_take_the_type_of_the_argument():
    f = tf.custom_gradient(lambda x: (x * 2, lambda dy: 3.5))
    x = tf.constant(1.0, tf.float64)
    g = gradient(tf.function(lambda x: f(x)), x)
    assert g.dtype is tf.float64 and g.numpy() == 3.5


def test_vectorized_map_and_its_gradient():
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.vectorized_map(lambda r: steep_square(r), x)
    np.testing.assert_allclose(y, [1, 4, 9])
    np.testing.assert_allclose(tape.gradient(y, x), [100, 200, 300])


def test_a_gradient_that_reads_values_has_a_jacobian():
    f = tf.custom_gradient(lambda x: (x * x, lambda dy: tf.constant(dy.numpy() * 5 * x.numpy())))
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_allclose(tape.jacobian(y, x), [[5, 0], [0, 10]])


def test_forward_mode_follows_the_code_or_transposes_the_gradient():
    x = tf.constant(2.0)
    opaque = tf.custom_gradient(lambda x: (tf.constant(x.numpy() ** 2), lambda dy: dy * 100.0 * x))
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        y, z = steep_square(x), opaque(x)
    assert acc.jvp(y).numpy() == 4.0
    assert acc.jvp(z).numpy() == 200.0


def test_values_under_a_tape_keep_their_own_history():
    """A node that passes values on, run on values, must not give the operand another history."""
    f = tf.function(lambda x: steep_square(x))
    x = tf.constant(3.0)
    for _ in range(3):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            a = x * x
            y = f(a)
        assert tape.gradient(y, x).numpy() == 100.0 * 9 * 6
        assert tape.gradient(a, x).numpy() == 6.0


def test_a_variable_has_words_while_a_function_is_traced():
    v = tf.Variable(2.0, name="v")
    seen = []
    tf.function(lambda: seen.append(repr(v)))()
    assert seen == ["<tf.Variable 'v:0' shape=() dtype=float32>"]


def test_gradients_that_call_their_function_are_traced_twice():
    @tf.custom_gradient
    def wave(x):
        return tf.sin(x), lambda g: -g * wave(x - math.pi / 2)  # the cosine is minus the sine a quarter back

    x = tf.constant(0.7)

    @tf.function
    def f(x):
        return wave(x)

    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        first = inner.gradient(y, x)
    second = outer.gradient(first, x)
    np.testing.assert_allclose([y, first, second], [math.sin(0.7), math.cos(0.7), -math.sin(0.7)], rtol=1e-5)
    with (
        pytest.raises(tf.errors.UnimplementedError, match="can be differentiated 2 times"),
        tf.GradientTape() as third,
    ):
        third.watch(x)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            first = inner.gradient(y, x)
        outer.gradient(first, x)
