"""The entry points of the library, each as something to interrupt and a check that it works afterwards.

`ENTRY_POINTS[name]()` returns `(act, again)`: `act()` is interrupted, and `again()` uses the same objects once more
and raises AssertionError if they are broken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as tf

ENTRY_POINTS: dict[str, Callable[[], tuple[Callable, Callable]]] = {}


def _entry_point(make: Callable) -> Callable:
    ENTRY_POINTS[make.__name__.replace("_", " ")] = make
    return make


def _is(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-4, atol=1e-4)


@_entry_point
def tape() -> tuple:
    x = tf.Variable([1.0, 2.0])

    def act() -> None:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.sin(x) * x)
        _is(tape.gradient(y, x), np.sin([1, 2]) + np.array([1, 2]) * np.cos([1, 2]))

    return act, act


@_entry_point
def nested_tapes() -> tuple:
    x = tf.constant([1.0, 2.0])

    def act() -> None:
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = x**3
            g = inner.gradient(y, x)
            with outer.stop_recording():
                z = y * 2.0
        _is(outer.gradient(g, x), [6.0, 12.0])
        assert outer.gradient(z, x) is None

    return act, act


@_entry_point
def jacobian() -> tuple:
    x = tf.constant([1.0, 2.0])

    def act() -> None:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.sin(x) * x[::-1]
        assert tape.jacobian(y, x).shape == (2, 2)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x[:, None] * x[:, None]
            rows = tf.reshape(x, [2, 1])
            z = rows * rows
        tape.jacobian([y, z][0], x)

    return act, act


@_entry_point
def function() -> tuple:
    v = tf.Variable(2.0)

    @tf.function
    def f(x):
        return tf.reduce_sum(x * v) + 1.0

    def act() -> None:
        _is(f(tf.constant([1.0, 2.0])), 7.0)
        _is(f(tf.constant([1.0, 2.0])), 7.0)

    return act, act


@_entry_point
def gradient_of_function() -> tuple:
    v = tf.Variable(2.0)

    @tf.function
    def f(x):
        return tf.sin(x * v)

    def act() -> None:
        x = tf.constant([1.0, 2.0])
        for _ in range(2):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            _is(tape.gradient(y, x), 2 * np.cos([2.0, 4.0]))

    return act, act


@_entry_point
def function_that_assigns() -> tuple:
    v, n = tf.Variable([1.0, 1.0]), tf.Variable(0)

    @tf.function
    def f(x):
        n.assign_add(1)
        v.assign(v * 0.0 + x)
        return v * 2.0

    def act() -> None:
        _is(f(tf.constant(3.0)), [6.0, 6.0])

    def again() -> None:
        whole = v.numpy().tolist()
        assert whole in ([1.0, 1.0], [3.0, 3.0]), whole
        assert (whole == [3.0, 3.0]) == bool(int(n) > 0), (whole, int(n))
        act()

    return act, again


@_entry_point
def control_flow() -> tuple:
    @tf.function
    def f(x, n):
        i, y = tf.constant(0), x
        while i < n:
            y, i = y * 2.0, i + 1
        if tf.reduce_sum(x) > 0.0:
            y = y + 1.0
        for _ in tf.range(2):
            y = y + x
        return tf.cond(n > 100, lambda: y * 0.0, lambda: y)

    def act() -> None:
        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x, tf.constant(2))
        _is(y, [7.0, 13.0])
        _is(tape.gradient(y, x), [6.0, 6.0])

    return act, act


@_entry_point
def eager_control_flow() -> tuple:
    x = tf.constant([1.0, 2.0, 3.0])

    def act() -> None:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * x), (0, x))[1]
            y = tf.cond(tf.reduce_sum(y) > 0.0, lambda: y, lambda: -y)
            y = tf.map_fn(lambda r: r * 2.0, y)
        _is(tape.gradient(y, x), 6.0 * np.array([1.0, 4.0, 9.0]))

    return act, act


@_entry_point
def optimizer() -> tuple:
    v, w = tf.Variable([1.0, 2.0]), tf.Variable([[3.0]])
    adam = tf.optimizers.Adam(0.5)

    def act() -> None:
        adam.apply_gradients([(tf.ones([2]), v), (tf.ones([1, 1]), w)])

    def again() -> None:
        done = int(adam.iterations)
        assert done in (0, 1), done
        moved = [bool(np.allclose(a, b, atol=1e-4)) for a, b in [(v, [0.5, 1.5]), (w, [[2.5]])]]
        assert all(moved) == any(moved) == bool(done), (v, w, done)
        act()
        _is(v, np.array([1.0, 2.0]) - 0.5 * (done + 1))

    return act, again


@_entry_point
def optimizer_in_function() -> tuple:
    v = tf.Variable([1.0, 2.0])
    sgd = tf.optimizers.SGD(0.25, momentum=0.9)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(v * v)
        sgd.apply_gradients([(tape.gradient(loss, v), v)])
        return loss

    def again() -> None:
        _is(v, [[1.0, 2.0], [0.5, 1.0]][int(sgd.iterations)])
        step()

    return step, again


@_entry_point
def custom_gradient() -> tuple:
    @tf.custom_gradient
    def f(x):
        y = tf.sin(x)

        def grad(g):
            return g * 5.0 * tf.cos(x)

        return y, grad

    compiled = tf.function(lambda x: f(x) * 2.0)

    def act() -> None:
        x = tf.constant([0.0, 0.0])
        for call, expected in ((f, 5.0), (compiled, 10.0)):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = call(x)
            _is(tape.gradient(y, x), [expected] * 2)

    return act, act


@_entry_point
def forward_accumulator() -> tuple:
    x = tf.constant([1.0, 2.0])

    def act() -> None:
        with tf.autodiff.ForwardAccumulator(x, tf.ones([2])) as acc:
            y = x * x
            inside = acc.jvp(y)
            with tf.GradientTape() as tape:
                tape.watch(x)
                z = x**3
            g = tape.gradient(z, x)
        _is(inside, [2.0, 4.0])
        _is(acc.jvp(g), [6.0, 12.0])

    return act, act


@_entry_point
def vectorized_map() -> tuple:
    def act() -> None:
        _is(
            tf.vectorized_map(lambda r: tf.reduce_sum(r) * r, tf.constant([[1.0, 2.0], [3.0, 4.0]])),
            [[3, 6], [21, 28]],
        )

    return act, act


@_entry_point
def recompute_grad() -> tuple:
    v = tf.Variable(2.0)

    @tf.recompute_grad
    def f(x):
        return tf.sin(x * v)

    def act() -> None:
        x = tf.constant([0.0, 0.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        gx, gv = tape.gradient(y, [x, v])
        _is(gx, [2.0, 2.0])
        _is(gv, 0.0)

    return act, act


@_entry_point
def debug_lines() -> tuple:
    x = tf.Variable(3.0)

    def act() -> None:
        with tf.debug.lines():
            with tf.GradientTape() as tape:
                y = tf.stop_gradient(x) * 2.0
            str(tape.explain(y, x))

    return act, act


@_entry_point
def check_numerics() -> tuple:
    x = tf.Variable([1.0, 2.0])

    def act() -> None:
        with tf.debug.check_numerics(), tf.GradientTape() as tape:
            y = tf.math.log(x)
        _is(tape.gradient(y, x), [1.0, 0.5])

    return act, act


@_entry_point
def tracked_assignments() -> tuple:
    v = tf.Variable([1.0, 2.0])

    def act() -> None:
        v.assign([1.0, 2.0])
        x = tf.constant([3.0, 4.0])
        with tf.GradientTape(track_assign=True) as tape:
            tape.watch(x)
            v.assign(x * v)
            y = v * x
        _is(tape.gradient(y, x), [6.0, 16.0])

    return act, act


@_entry_point
def python_function() -> tuple:
    @tf.function
    def f(x):
        return tf.py_function(lambda t: t * 2.0, [x], tf.float32) + tf.numpy_function(np.sin, [x], tf.float32)

    def act() -> None:
        _is(f(tf.constant([0.0, 0.0])), [0.0, 0.0])

    return act, act


@_entry_point
def dataset() -> tuple:
    data = tf.data.Dataset.range(6).map(lambda i: i * 2).batch(2)

    def act() -> None:
        assert [b.numpy().tolist() for b in data] == [[0, 2], [4, 6], [8, 10]]

    return act, act


_models: list = []


@_entry_point
def keras_step() -> tuple:
    if not _models:
        keras = tf.keras
        keras.utils.set_random_seed(1)
        _models.append(keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]))
    model = _models[0]
    model.compile("sgd", "mse")
    x, y = np.ones([4, 3], "f4"), np.ones([4, 2], "f4")

    def act() -> None:
        model.train_on_batch(x, y)

    def again() -> None:
        act()
        assert np.isfinite(np.concatenate([w.ravel() for w in model.get_weights()])).all()

    return act, again
