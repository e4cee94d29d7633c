"""Branches and loops in graphs: values, derivatives of any order, variables, effects, memory."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import gradtape as tf
from gradtape import _core


def orders(f, x, n=3):
    """The value and `n` derivatives, each tape around the one before."""
    if n == 0:
        return [f(x)]
    with tf.GradientTape() as tape:
        tape.watch(x)
        below = orders(f, x, n - 1)
    return [*below, tape.gradient(below[-1], x, unconnected_gradients="zero")]


def same(f, *values, n=3):
    """The function as a graph is the function run eagerly: tapes outside, and inside."""
    for value in values:
        x = tf.constant(value)
        expected = [t.numpy() for t in orders(f, x, n)]
        for g in (lambda v: orders(tf.function(f), v, n), tf.function(lambda v: orders(f, v, n))):
            for have, want in zip(g(x), expected, strict=True):
                np.testing.assert_allclose(have.numpy(), want, rtol=5e-4, atol=1e-5)


# ---- branches -----------------------------------------------------------------------------------


def test_cond():
    same(lambda x: tf.cond(x > 0, lambda: x * x * x, lambda: tf.exp(x)), 1.5, -0.5)


def test_cond_with_structures():
    def f(x):
        out = tf.cond(x > 0, lambda: {"a": (x, x * x), "b": [1.0]}, lambda: {"a": (tf.sin(x), x), "b": [x]})
        return out["a"][0] * out["a"][1] * out["b"][0]

    same(f, 1.5, -0.5)


def test_cond_returns_python_numbers_as_tensors():
    f = tf.function(lambda x: tf.cond(x > 0, lambda: 2, lambda: 1))
    assert f(tf.constant(1.0)).dtype is tf.int32
    assert [f(tf.constant(v)).numpy() for v in (1.0, -1.0)] == [2, 1]
    assert tf.function(lambda x: tf.cond(x > 0, lambda: None, lambda: None))(tf.constant(1.0)) is None


def test_cond_of_python_values_is_decided_while_tracing():
    f = tf.function(lambda x, flag: tf.cond(flag, lambda: x, lambda: x / 0))
    assert f(tf.constant(1.0), True).numpy() == 1.0


def test_branches_that_do_not_depend_on_the_source():
    same(lambda x: tf.cond(x > 0, lambda: tf.constant(3.0), lambda: x * x) * x, 1.5, -0.5)
    f = tf.function(lambda x, y: tf.cond(x > 0, lambda: y * y, lambda: y))
    x, y = tf.constant(1.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = f(x, y)
    gx, gy = tape.gradient(z, [x, y])
    assert gx is None
    assert gy.numpy() == 6.0


def test_only_one_branch_runs(capfd):
    def say(word, x):
        tf.print(word)
        return x

    f = tf.function(lambda x: tf.cond(x > 0, lambda: say("yes", x), lambda: say("no", x)))
    f(tf.constant(1.0))
    f(tf.constant(-1.0))
    assert capfd.readouterr().err == "yes\nno\n"


def test_effects_run_once_under_a_tape(capfd):
    def body(x):
        tf.print("here", x)
        return x * x

    f = tf.function(lambda x: tf.cond(x > 0, lambda: body(x), lambda: x))
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert tape.gradient(y, x).numpy() == 4.0
    assert capfd.readouterr().err == "here 2\n"


def test_switch_case():
    def f(x):
        index = tf.cast(x, tf.int32)
        return tf.switch_case(index, [lambda: x * x, lambda: tf.sin(x), lambda: x * 3.0])

    same(f, 0.5, 1.5, 2.5, 7.5, -3.0)

    def sparse(x):
        return tf.switch_case(
            tf.cast(x, tf.int32), {5: lambda: x * x, 2: lambda: tf.sin(x)}, default=lambda: x
        )

    same(sparse, 5.5, 2.5, 3.5, 0.5)


def test_case():
    def f(x):
        return tf.case([(x > 3.0, lambda: x), (x > 1.0, lambda: x * x)], default=lambda: tf.exp(x))

    same(f, 4.0, 2.0, 0.0)
    g = tf.function(lambda x: tf.case([(x > 3.0, lambda: x), (x > 1.0, lambda: x * x)]))
    assert g(tf.constant(2.0)).numpy() == 4.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="None of conditions evaluated as True"):
        g(tf.constant(0.0))


@pytest.mark.parametrize(
    "branches, kind, text",
    [
        ((lambda x: (x, x), lambda x: x), TypeError, "same number, type, and overall structure"),
        ((lambda x: x, lambda x: 1), TypeError, "have different types"),
        ((lambda x: None, lambda x: x), ValueError, "Lengths of branch outputs of cond must match"),
    ],
)
def test_cond_errors(branches, kind, text):
    yes, no = branches
    with pytest.raises(kind, match=text):
        tf.function(lambda x: tf.cond(x > 0, lambda: yes(x), lambda: no(x)))(tf.constant(1.0))


def test_shapes_that_depend_on_the_branch_run_eagerly():
    f = tf.function(lambda x: tf.cond(x > 0, lambda: tf.stack([x]), lambda: tf.stack([x, x])))
    assert f(tf.constant(1.0)).shape == [1]
    assert f(tf.constant(-1.0)).shape == [2]


# ---- loops --------------------------------------------------------------------------------------


def test_while_loop():
    same(
        lambda x: tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, y * x + tf.sin(y)), (0, x))[1],
        0.7,
        -1.1,
    )


def test_number_of_iterations_depends_on_values():
    same(lambda x: tf.while_loop(lambda y: y < 40.0, lambda y: [y * y + x], [x])[0], 1.5, 3.0, 50.0)


def test_no_iterations():
    def f(x):
        return tf.while_loop(lambda i, y: i < 0, lambda i, y: (i + 1, y * x), (0, x * x))[1]

    same(f, 2.0)


def test_while_loop_structures():
    def f(x):
        def body(i, state):
            return i + 1, {"a": state["b"][0] * x, "b": (state["a"], state["b"][1] + 1.0)}

        _, s = tf.while_loop(lambda i, s: i < 3, body, (tf.constant(0), {"a": x, "b": (x * x, 1.0)}))
        return s["a"] * s["b"][0] * s["b"][1]

    same(f, 1.2)
    kept = tf.function(lambda x: tf.while_loop(lambda i, y: i < 2, lambda i, y: [i + 1, y * y], [0, x]))(
        tf.constant(2.0)
    )
    assert isinstance(kept, list)


def test_maximum_iterations():
    f = tf.function(
        lambda x: tf.while_loop(lambda y: y < 1e6, lambda y: (y * 2.0,), (x,), maximum_iterations=3)
    )
    assert f(tf.constant(1.0))[0].numpy() == 8.0
    assert f(tf.constant(1e7))[0].numpy() == 1e7


@pytest.mark.parametrize(
    "body, kind, text",
    [
        (lambda y: [tf.stack([y, y])], ValueError, "enters the loop with shape"),
        (lambda y: [tf.cast(y, tf.int32)], TypeError, "enters the loop with type"),
        (lambda y: [y, y], ValueError, "same nested structure"),
    ],
)
def test_while_loop_errors(body, kind, text):
    with pytest.raises(kind, match=text):
        tf.function(lambda x: tf.while_loop(lambda y: y < 10.0, body, [x]))(tf.constant(1.0))


def test_loops_in_loops_and_branches():
    def inner(x, n):
        return tf.while_loop(lambda j, y: j < n, lambda j, y: (j + 1, y * x * 0.9 + 0.1), (0, x))[1]

    def f(x):
        def body(i, y):
            return i + 1, tf.cond(y > 1.0, lambda: inner(y, i), lambda: y + inner(x, 2) * x)

        return tf.while_loop(lambda i, y: i < 4, body, (0, x))[1]

    same(f, 0.8, 1.3, n=2)


def test_gradients_of_captured_tensors_and_variables():
    v = tf.Variable([[1.0, 2.0], [3.0, -1.0]])
    scale = tf.constant(0.3)  # captured from outside of the function

    def f(x):
        def body(i, y):
            return i + 1, tf.tanh(tf.matmul(y, v) * scale)

        return tf.reduce_sum(tf.while_loop(lambda i, y: i < 5, body, (0, x))[1])

    x = tf.constant([[0.5, -0.2]])
    found = []
    for g in (f, tf.function(f)):
        with tf.GradientTape() as tape:
            tape.watch([x, scale])
            y = g(x)
        found.append([t.numpy() for t in tape.gradient(y, [x, v, scale])])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_variables_assigned_in_loops():
    v = tf.Variable(1.0)

    @tf.function
    def f(n):
        def body(i):
            v.assign(v * 2.0 + 1.0)
            return [i + 1]

        tf.while_loop(lambda i: i < n, body, [0])
        return v.read_value()

    assert f(tf.constant(3)).numpy() == 15.0
    assert v.numpy() == 15.0
    assert f(tf.constant(0)).numpy() == 15.0


def test_condition_reads_an_assigned_variable():
    v = tf.Variable(1.0)

    @tf.function
    def f():
        def body(i):
            v.assign(v * 3.0)
            return [i + 1]

        return tf.while_loop(lambda i: v < 50.0, body, [0])[0]

    assert f().numpy() == 4
    assert v.numpy() == 81.0


def test_tape_inside_of_a_loop_body():
    """Gradient descent as a loop, differentiated with respect to the starting point (MAML)."""

    def f(x):
        def body(i, w):
            with tf.GradientTape() as tape:
                tape.watch(w)
                loss = tf.square(w - 3.0) * tf.sin(w)
            return i + 1, w - 0.1 * tape.gradient(loss, w)

        return tf.while_loop(lambda i, w: i < 4, body, (0, x))[1]

    same(f, 0.5, n=2)


def test_a_persistent_tape_asks_twice():
    @tf.function
    def f(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (0, x))[1]
            z = y * y
        return tape.gradient(y, x), tape.gradient(z, x)

    assert [t.numpy() for t in f(tf.constant(2.0))] == [32.0, 8 * 128.0]


def test_a_tape_around_a_function_with_a_tape():
    """The outer tape needs more residuals than the inner one, and the loop saves them too."""
    w = tf.Variable(1.5)

    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * w + x * y), (0, x))[1]
        return y * tape.gradient(y, x)

    x = tf.constant(0.7)
    found = []
    for g in (f, tf.function(f)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            z = g(x)
        found.append([z.numpy(), *(t.numpy() for t in tape.gradient(z, [x, w]))])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)


def test_integers_and_booleans_are_carried():
    @tf.function
    def collatz(n):
        return tf.while_loop(
            lambda n, steps, big: n > 1,
            lambda n, steps, big: (
                tf.where(n % 2 == 0, n // 2, 3 * n + 1),
                steps + 1,
                tf.logical_or(big, n > 1000),
            ),
            (n, 0, False),
        )

    assert [t.numpy() for t in collatz(tf.constant(27))] == [1, 111, True]


def test_many_iterations():
    @tf.function
    def f(x):
        return tf.while_loop(lambda i, y: i < 20000, lambda i, y: (i + 1, y * 0.9999 + x), (0, x))[1]

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    q = 0.9999
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), q**20000 + (1 - q**20000) / (1 - q), rtol=1e-2)


def test_random_numbers_are_new_in_each_iteration():
    @tf.function
    def f():
        ta = tf.TensorArray(tf.float32, size=8)
        for i in tf.range(8):
            ta = ta.write(i, tf.random.uniform([]))
        return ta.stack()

    assert len(set(f().numpy().tolist())) == 8
    assert set(f().numpy().tolist()) != set(f().numpy().tolist())


def test_residuals_of_iterations_are_freed(counted_memory):
    @tf.function
    def f(x):
        return tf.while_loop(lambda i, y: i < 50, lambda i, y: (i + 1, tf.sin(y) * x), (0, x))[1]

    x = tf.ones([1000])

    def run(ask):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x) if ask else None

    run(True), run(False)
    gc.collect()
    before = _core.memory_info()["live_bytes"]
    for _ in range(5):
        run(True), run(False)
    gc.collect()
    assert _core.memory_info()["live_bytes"] <= before + 100_000


def test_errors_inside_of_a_loop():
    @tf.function
    def f(x):
        for i in tf.range(3):
            tf.debugging.assert_less(i, 2, message="too far")
            x = x + 1.0
        return x

    with pytest.raises(tf.errors.InvalidArgumentError, match="too far"):
        f(tf.constant(1.0))


# ---- rows, arrays, Python functions -------------------------------------------------------------


ROWS = [
    lambda x, w: tf.map_fn(lambda r: r * w, x),
    lambda x, w: tf.map_fn(lambda r: tf.reduce_sum(r * w), x),
    lambda x, w: tf.map_fn(lambda r: (r[0] * w, tf.reduce_sum(r[1])), (x, x * x), (tf.float32, tf.float32)),
    lambda x, w: tf.scan(lambda a, r: a * r + w, x),
    lambda x, w: tf.scan(lambda a, r: a * r + w, x, initializer=w),
    lambda x, w: tf.scan(lambda a, r: a * r + w, x, reverse=True),
    lambda x, w: tf.foldl(lambda a, r: a * r + w, x),
    lambda x, w: tf.foldr(lambda a, r: a * r + w, x, initializer=w),
    lambda x, w: tf.py_function(lambda a: a * a, [w], tf.TensorSpec([3], tf.float32)) * x,
    lambda x, w: tf.vectorized_map(lambda r: r * w, x),
]


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_rows(number):
    f = ROWS[number]
    x, w = tf.constant([[0.5, 1.0, 2.0], [1.5, -1.0, 0.3]]), tf.constant([0.1, 0.2, 0.3])
    found = []
    for g in (f, tf.function(f)):
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            y = g(x, w)
        grads = tape.gradient(y, [x, w], unconnected_gradients="zero")
        found.append([t.numpy() for t in (*tf.nest.flatten(y), *map(tf.convert_to_tensor, grads))])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5)


def test_map_fn_type_error():
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match="TensorArray dtype is float32 but Op is trying to write dtype int32",
    ):
        tf.function(lambda x: tf.map_fn(lambda r: tf.cast(r, tf.int32), x))(tf.constant([1.0, 2.0]))


def test_array_scatter_unstack_concat():
    @tf.function
    def f(x):
        ta = tf.TensorArray(tf.float32, size=4, element_shape=[2])
        ta = ta.scatter([3, 1], x)
        other = tf.TensorArray(tf.float32, size=2).unstack(x)
        total = tf.zeros([2])
        for i in tf.range(2):
            total += other.read(i)
        return ta.stack(), ta.concat(), total

    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    a, b, total = f(x)
    assert a.numpy().tolist() == [[0, 0], [3, 4], [0, 0], [1, 2]]
    assert b.numpy().tolist() == [0, 0, 3, 4, 0, 0, 1, 2]
    assert total.numpy().tolist() == [4, 6]


def test_arrays_whose_size_depends_on_values_run_eagerly():
    @tf.function
    def f(x):
        ta = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(10):
            ta = ta.write(i, x)
            x = x * 2.0
            if x > 5.0:
                break
        return ta.stack()

    assert f(tf.constant(1.0)).numpy().tolist() == [1, 2, 4]
    assert f(tf.constant(4.0)).numpy().tolist() == [4]


def test_python_functions_run_each_time():
    seen = []

    def note(a):
        seen.append(float(a))
        return a * 2.0

    f = tf.function(lambda x: tf.py_function(note, [x], tf.TensorSpec([], tf.float32)) + 1.0)
    assert [f(tf.constant(v)).numpy() for v in (1.0, 2.0)] == [3.0, 5.0]
    assert seen == [1.0, 2.0]
    # Without a shape in its signature the function around it cannot be traced.
    g = tf.function(lambda x: tf.py_function(note, [x], tf.float32) + 1.0)
    assert [g(tf.constant(v)).numpy() for v in (1.0, 2.0)] == [3.0, 5.0]
    h = tf.function(lambda x: tf.numpy_function(lambda a: a * 3, [x], tf.TensorSpec([], tf.float32)) * x)
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = h(x)
    assert y.numpy() == 12.0
    assert tape.gradient(y, x).numpy() == 6.0
