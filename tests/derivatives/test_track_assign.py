"""GradientTape(track_assign=True): assigned values keep their history."""

import numpy as np
import pytest

import gradtape as tf


def test_without_the_flag_an_assignment_ends_the_history():
    x, z = tf.constant(3.0), tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        z.assign(x * x)
        y = z * 2
    assert tape.gradient(y, x) is None
    assert float(tape.gradient(y, z)) == 2


def test_with_it_the_value_comes_from_where_it_came_from():
    x, z = tf.constant(3.0), tf.Variable(1.0)
    with tf.GradientTape(persistent=True, track_assign=True) as tape:
        tape.watch(x)
        z.assign(x * x)
        y = z * 2
    assert float(tape.gradient(y, x)) == 12
    assert tape.gradient(y, z) is None  # the initial value of z is overwritten
    assert float(z) == 9


def test_a_variable_as_source_has_its_initial_value():
    z = tf.Variable(3.0)
    with tf.GradientTape(track_assign=True) as tape:
        z.assign(z * z)
        z.assign_add(z)
        y = z * z
    assert float(tape.gradient(y, z)) == pytest.approx(4 * 4 * 27)  # y = (2 z^2)^2


def test_a_constant_begins_anew():
    z = tf.Variable(3.0)
    with tf.GradientTape(track_assign=True) as tape:
        z.assign(5.0)
        y = z * z
    assert float(tape.gradient(y, z)) == 10


def test_every_way_to_change_a_variable():
    v = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape(track_assign=True) as tape:
        v.scatter_nd_update([[0]], [v[1] * v[1]])
        v[2].assign(v[0] * 2)
        v.assign_sub(tf.stack([v[1], 0.0, 0.0]))
        y = tf.reduce_sum(v * v)
    # v = [b^2 - b, b, 2 b^2]
    b = 2.0
    np.testing.assert_allclose(
        tape.gradient(y, v).numpy(), [0, 2 * (b * b - b) * (2 * b - 1) + 2 * b + 16 * b**3, 0]
    )


def test_after_the_context_everything_is_as_before():
    z = tf.Variable(2.0)
    with tf.GradientTape(track_assign=True):
        z.assign(z * 3)
    with tf.GradientTape() as tape:
        y = z * z
    assert float(tape.gradient(y, z)) == 12


def unrolled(make, start, steps=3):
    """A few steps of an optimizer, and the gradient of the final loss with respect to the start."""
    w, b = tf.Variable(start), tf.Variable(0.5, dtype=tf.float64)
    optimizer = make()
    with tf.GradientTape(track_assign=True) as outer:
        for _ in range(steps):
            with tf.GradientTape() as inner:
                loss = tf.reduce_sum((w * w - b) ** 2)
            grads = inner.gradient(loss, [w, b])
            if optimizer is None:
                w.assign_sub(0.01 * grads[0])
                b.assign(b - 0.01 * grads[1])
            else:
                optimizer.apply_gradients(zip(grads, [w, b], strict=True))
        final = tf.reduce_sum(tf.sin(w) + b)
    return float(final), outer.gradient(final, w).numpy()


@pytest.mark.parametrize(
    "make",
    [
        lambda: None,
        lambda: tf.optimizers.SGD(0.01),
        lambda: tf.optimizers.SGD(0.01, momentum=0.9, nesterov=True),
        lambda: tf.optimizers.Adam(0.01),
        lambda: tf.optimizers.RMSprop(0.01, clipnorm=1.0),
        lambda: tf.optimizers.AdamW(0.01, weight_decay=0.1),
    ],
    ids=["assign", "SGD", "Nesterov", "Adam", "RMSprop", "AdamW"],
)
def test_meta_gradients_through_an_optimizer(make):
    start, eps = np.array([1.0, 2.0]), 1e-6
    _, found = unrolled(make, start)
    numeric = [
        (unrolled(make, start + eps * e)[0] - unrolled(make, start - eps * e)[0]) / (2 * eps)
        for e in np.eye(2)
    ]
    np.testing.assert_allclose(found, numeric, rtol=1e-5)


def test_the_step_is_the_same_with_and_without():
    def run(flag):
        v, optimizer = tf.Variable([1.0, -2.0]), tf.optimizers.Adam(0.1)
        for _ in range(3):
            with tf.GradientTape(track_assign=flag):
                optimizer.apply_gradients([(2 * v, v)])
        return v.numpy()

    np.testing.assert_allclose(run(True), run(False), rtol=1e-6)


def test_an_inner_tape_may_watch_by_hand():
    w = tf.Variable(2.0)
    with tf.GradientTape(track_assign=True) as outer:
        for _ in range(2):
            with tf.GradientTape(watch_accessed_variables=False) as inner:
                inner.watch(w)
                loss = w**3
            w.assign_sub(0.1 * inner.gradient(loss, w))
        y = w * 1.0
    w0 = 2.0
    w1 = w0 - 0.3 * w0**2
    assert float(w) == pytest.approx(w1 - 0.3 * w1**2, rel=1e-5)
    assert float(outer.gradient(y, w)) == pytest.approx((1 - 0.6 * w1) * (1 - 0.6 * w0), rel=1e-5)


def test_functions_read_and_assign_too():
    w = tf.Variable(2.0)

    @tf.function
    def double():
        w.assign(w * 2)
        return w + 1

    with tf.GradientTape(track_assign=True) as tape:
        double()
        y = double() * w
    # w: 2 -> 4 -> 8; y = (4 w0 + 1) * 4 w0
    assert float(y) == 72
    assert float(tape.gradient(y, w)) == pytest.approx(32 * 2 + 4)


def test_two_tracking_tapes():
    w = tf.Variable(3.0)
    with tf.GradientTape(track_assign=True) as outer:
        w.assign(w * w)
        with tf.GradientTape(track_assign=True) as inner:
            w.assign(w * 2)
            y = w * w
        g = inner.gradient(y, w)  # y = 4 w1^2
    assert float(g) == pytest.approx(8 * 9)
    assert float(outer.gradient(y, w)) == pytest.approx(16 * 27)
