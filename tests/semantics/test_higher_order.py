"""Derivatives of derivatives: nested tapes, gradient penalties, one persistent tape."""

import numpy as np
import pytest

from .lib import assert_close, tf


def test_N1_second_order():
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x**3
        first = inner.gradient(y, x)
    assert_close(first, 27.0)
    assert_close(outer.gradient(first, x), 18.0)


def test_N1_third_order():
    x = tf.Variable(2.0)
    with tf.GradientTape() as a:
        with tf.GradientTape() as b:
            with tf.GradientTape() as c:
                y = x**4
            first = c.gradient(y, x)
        second = b.gradient(first, x)
    assert_close(second, 48.0)
    assert_close(a.gradient(second, x), 48.0)


def test_N1_inner_gradient_outside_the_outer_block_is_unconnected():
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        y = x**3
    first = inner.gradient(y, x)
    assert outer.gradient(first, x) is None


def test_N1_inner_gradient_may_be_called_inside_its_own_block():
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        y = x**3
        first = inner.gradient(y, x)
    assert_close(outer.gradient(first, x), 18.0)


def test_N1_mixed_partial_derivatives():
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            z = x**2 * y**3
        gx, gy = inner.gradient(z, [x, y])
    assert_close(outer.gradient(gx, [x, y])[0], 54.0)
    assert_close(outer.gradient(gx, [x, y])[1], 108.0)
    assert_close(outer.gradient(gy, [x, y])[0], 108.0)
    assert_close(outer.gradient(gy, [x, y])[1], 72.0)


def penalty(x, w, v):
    """mean((|d critic/dx| - 1)^2) of the critic tanh(x w) v, by a tape."""
    with tf.GradientTape() as inner:
        inner.watch(x)
        score = tf.matmul(tf.tanh(tf.matmul(x, w)), v)
    norms = tf.norm(inner.gradient(score, x), axis=1)
    return tf.reduce_mean((norms - 1.0) ** 2)


def numpy_penalty(x, w, v):
    slope = (1 - np.tanh(x @ w) ** 2) * v[:, 0]
    norms = np.linalg.norm(slope @ w.T, axis=1)
    return np.mean((norms - 1.0) ** 2)


def central_differences(f, values, i, step=1e-5):
    """Numeric gradient of the scalar `f(*values)` with respect to `values[i]`."""
    result = np.zeros_like(values[i])
    for index in np.ndindex(result.shape):
        ends = []
        for sign in (1, -1):
            moved = [v.copy() for v in values]
            moved[i][index] += sign * step
            ends.append(f(*moved))
        result[index] = (ends[0] - ends[1]) / (2 * step)
    return result


def test_N2_gradient_penalty():
    rng = np.random.default_rng(0)
    values = [rng.normal(size=shape) for shape in [(4, 3), (3, 5), (5, 1)]]
    x = tf.constant(values[0])
    w, v = tf.Variable(values[1]), tf.Variable(values[2])
    with tf.GradientTape() as outer:
        p = penalty(x, w, v)
    assert_close(p, numpy_penalty(*values))
    gw, gv = outer.gradient(p, [w, v])
    assert_close(gw, central_differences(numpy_penalty, values, 1), rtol=1e-5, atol=1e-8)
    assert_close(gv, central_differences(numpy_penalty, values, 2), rtol=1e-5, atol=1e-8)


def test_N2_gradient_step_inside_the_outer_tape():
    """Meta-learning: differentiate through an update made with a gradient."""
    w = tf.Variable(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            loss = w**3
        updated = w - 0.1 * inner.gradient(loss, w)
        meta_loss = updated**2
    assert_close(meta_loss, (2 - 0.1 * 12) ** 2)
    assert_close(outer.gradient(meta_loss, w), 2 * 0.8 * (1 - 0.1 * 12))


def test_N3_one_persistent_tape_gives_second_order():
    """The idiom of physics-informed networks."""
    t, x = tf.constant([[0.5], [1.0]]), tf.constant([[2.0], [3.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([t, x])
        u = tf.sin(t) * x**3
        u_x = tape.gradient(u, x)
        u_t = tape.gradient(u, t)
    assert_close(u_x, np.sin(t) * 3 * np.square(x))
    assert_close(u_t, np.cos(t) * np.power(x, 3))
    assert_close(tape.gradient(u_x, x), np.sin(t) * 6 * np.asarray(x))
    assert_close(tape.gradient(u_x, t), np.cos(t) * 3 * np.square(x))


A = np.array([[0.3, -0.7, 1.1], [0.9, 0.4, -0.2]])
SMOOTH = {
    "add": lambda x: x + x * x,
    "div": lambda x: 1.0 / (2.0 + x),
    "pow": lambda x: (2.0 + x) ** 2.5,
    "exp": lambda x: tf.exp(x),
    "log": lambda x: tf.math.log(2.0 + x),
    "sqrt": lambda x: tf.sqrt(2.0 + x),
    "rsqrt": lambda x: tf.math.rsqrt(2.0 + x),
    "sin": lambda x: tf.sin(x),
    "cos": lambda x: tf.cos(x),
    "tanh": lambda x: tf.tanh(x),
    "sigmoid": lambda x: tf.sigmoid(x),
    "softplus": lambda x: tf.math.softplus(x),
    "elu": lambda x: tf.nn.elu(x),
    "square": lambda x: tf.square(x),
    "matmul": lambda x: tf.matmul(x, x, transpose_b=True) ** 2,
    "transpose": lambda x: tf.transpose(x) ** 3,
    "reshape": lambda x: tf.reshape(x, [-1]) ** 3,
    "concat": lambda x: tf.concat([x, x * x], 0) ** 2,
    "stack": lambda x: tf.stack([x, x * x]) ** 2,
    "slice": lambda x: x[:, 1:] ** 3,
    "gather": lambda x: tf.gather(x, [1, 1, 0]) ** 3,
    "where": lambda x: tf.where(x > 0, x**3, x**2),
    "reduce_sum": lambda x: tf.reduce_sum(x, 0) ** 3,
    "reduce_mean": lambda x: tf.reduce_mean(x, 1) ** 3,
    "reduce_prod": lambda x: tf.reduce_prod(x, 1) ** 2,
    "reduce_max": lambda x: tf.reduce_max(x, 1) ** 3,
    "reduce_logsumexp": lambda x: tf.reduce_logsumexp(x, 1),
    "cumsum": lambda x: tf.cumsum(x, 1) ** 3,
    "norm": lambda x: tf.norm(x, axis=1),
    "reduce_std": lambda x: tf.math.reduce_std(x, 1),
    "softmax": lambda x: tf.nn.softmax(x) ** 2,
    "log_softmax": lambda x: tf.nn.log_softmax(x) ** 2,
    "softmax_ce": lambda x: tf.nn.softmax_cross_entropy_with_logits(
        labels=tf.constant([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]], tf.float64), logits=x
    ),
    "sigmoid_ce": lambda x: tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.ones_like(x) * 0.3, logits=x),
    "broadcast": lambda x: x[:, :, None] ** 2 * x[:, None, :],
    "maximum": lambda x: tf.maximum(x, 0.1) ** 3,
    "clip_by_norm": lambda x: tf.clip_by_norm(x, 0.5) ** 2,
}


@pytest.mark.parametrize("name", SMOOTH)
def test_N4_gradients_are_themselves_differentiable(name):
    def weighted_gradient(x):
        """A scalar of the first derivative that depends on every entry of it."""
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = SMOOTH[name](x)
        g = tf.convert_to_tensor(inner.gradient(y, x))
        return tf.reduce_sum(g * tf.constant(np.arange(1.0, 7.0).reshape(2, 3)))

    x = tf.constant(A)
    with tf.GradientTape() as outer:
        outer.watch(x)
        s = weighted_gradient(x)
    numeric = central_differences(lambda a: float(weighted_gradient(tf.constant(a))), [A], 0)
    second = outer.gradient(s, x, unconnected_gradients="zero")
    assert_close(tf.convert_to_tensor(second), numeric, rtol=1e-6, atol=1e-7)
