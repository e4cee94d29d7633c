"""Ops that XLA runs on the host: printing, assertions, Python code, errors. All behave as they do natively."""

import gc
import logging
import threading

import numpy as np
import pytest

import gradtape as tf


def jit(f):
    return tf.function(f, jit_compile=True)


# ---- printing --------------------------------------------------------------------------------------


def test_prints_come_in_order(capfd):
    @jit
    def f(x):
        tf.print("first", x)
        y = x * 2.0
        tf.print("second", y)
        for i in tf.range(3):
            tf.print("in the loop", i)
        if y > 3.0:
            tf.print("then")
        else:
            tf.print("else")
        tf.print("last")
        return y

    f(tf.constant(2.0))
    lines = capfd.readouterr().err.splitlines()
    assert lines == ["first 2", "second 4", *(f"in the loop {i}" for i in range(3)), "then", "last"]
    f(tf.constant(1.0))
    assert "else" in capfd.readouterr().err.splitlines()


def test_a_loop_whose_residuals_need_more_room_prints_once(capfd):
    @jit
    def f(x):
        for i in tf.range(70):
            tf.print(i)
            x = x * 1.01
        return x

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert capfd.readouterr().err.split() == [str(i) for i in range(70)]
    assert tape.gradient(y, x).numpy() == pytest.approx(1.01**70, rel=1e-4)


# ---- what native code refuses ------------------------------------------------------------------------


def refused(f, *args):
    """What native code and XLA raise; both have the same class, and the same first line."""
    found = []
    for way in (tf.function(f), jit(f)):
        with pytest.raises(Exception) as e:
            way(*args)
        found.append((type(e.value), str(e.value).splitlines()[0]))
    assert found[0] == found[1]
    return found[1]


def test_an_assertion_that_fails_changes_nothing():
    v = tf.Variable([1.0, 2.0])

    @jit
    def f(x):
        v.assign_add([1.0, 1.0])
        tf.debugging.assert_positive(x, message="not like this")
        v.assign_add([1.0, 1.0])
        return x

    f(tf.constant(1.0))
    assert v.numpy().tolist() == [3.0, 4.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="not like this"):
        f(tf.constant(-1.0))
    assert v.numpy().tolist() == [3.0, 4.0]
    f(tf.constant(1.0))
    assert v.numpy().tolist() == [5.0, 6.0]


CASES = {
    "gather": (lambda t, i: tf.gather(t, i), np.arange(3.0), np.array([0, 7])),
    "gather_negative": (lambda t, i: tf.gather(t, i), np.arange(3.0), np.array([-1])),
    "gather_nd": (lambda t, i: tf.gather_nd(t, i), np.ones((2, 2)), np.array([[0, 2]])),
    "index": (lambda t, i: t[i], np.arange(3.0), np.array(5)),
    "floordiv": (lambda a, b: a // b, np.array([4, 3]), np.array([2, 0])),
    "mod": (lambda a, b: a % b, np.array([4, 3]), np.array([2, 0])),
    "embedding": (lambda t, i: tf.nn.embedding_lookup(t, i), np.ones((4, 2)), np.array([[1, 4]])),
    "scatter": (lambda i, x: tf.scatter_nd(i, x, [3]), np.array([[5]]), np.array([1.0])),
    "segment": (lambda x, s: tf.math.unsorted_segment_sum(x, s, 2), np.ones(3), np.array([0, 1, 9])),
    "labels": (
        lambda y, z: tf.nn.sparse_softmax_cross_entropy_with_logits(y, z), np.array([3]), np.zeros((1, 3), np.float32),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_errors_are_those_of_native_code(case):
    f, *args = CASES[case]
    args = [tf.constant(a) for a in args]
    try:
        tf.function(f)(*args)
    except Exception:
        refused(f, *args)
    else:
        np.testing.assert_array_equal(jit(f)(*args).numpy(), tf.function(f)(*args).numpy())


def test_an_index_out_of_range_changes_nothing():
    v, table = tf.Variable(1.0), tf.Variable(np.eye(3, dtype=np.float32))

    @jit
    def f(i):
        v.assign_add(1.0)
        row = tf.gather(table, i)
        table.assign(table * 2.0)
        return row

    assert f(tf.constant(1)).numpy().tolist() == [0.0, 1.0, 0.0]
    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError, match="not in"):
            f(tf.constant(3))
        assert v.numpy() == 2.0 and table.numpy()[0, 0] == 2.0
    assert f(tf.constant(0)).numpy().tolist() == [2.0, 0.0, 0.0]
    assert v.numpy() == 3.0


def test_in_loops_and_branches_too():
    def f(t, n):
        total = tf.zeros([])
        for i in tf.range(n):
            if i > 1:
                total += tf.gather(t, i)
        return total

    t = tf.constant([1.0, 2.0, 3.0, 4.0])
    assert jit(f)(t, tf.constant(4)).numpy() == 7.0
    refused(f, t, tf.constant(5))


def test_a_wrong_shape_is_an_error_of_tracing():
    refused(lambda x: x + tf.ones([3]), tf.ones([2]))


# ---- Python's code ------------------------------------------------------------------------------------


class Mine(Exception):
    """An error of the user's."""


@pytest.mark.parametrize("way", [tf.py_function, tf.numpy_function], ids=["py_function", "numpy_function"])
def test_errors_of_callbacks_keep_class_and_message(way, caplog):
    v = tf.Variable(1.0)

    def fails(x):
        if x > 1:
            raise Mine("mine, and nobody else's")
        return x

    @jit
    def f(x):
        y = way(fails, [x], tf.float32)
        v.assign_add(1.0)
        return y

    f(tf.constant(0.5))
    for _ in range(2):
        with pytest.raises(Mine, match="nobody else's"):
            f(tf.constant(2.0))
        assert v.numpy() == 2.0
    assert f(tf.constant(1.0)).numpy() == 1.0 and v.numpy() == 3.0
    assert not caplog.records


def test_py_function_under_tapes():
    f = jit(lambda x: tf.py_function(lambda t: t * t, [x * 2.0], tf.float32) + x)
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert (y.numpy(), tape.gradient(y, x).numpy()) == (39.0, 25.0)

    @jit
    def g(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.py_function(lambda t: t * t * t, [x], tf.float32)
        return tape.gradient(y, x)

    assert g(x).numpy() == 27.0


def test_a_callback_may_call_functions_and_change_variables():
    v = tf.Variable(0.0)
    inner = jit(lambda x: x * 3.0)

    def python(x):
        v.assign_add(x)
        return inner(x)

    for way in (tf.function, jit):
        v.assign(0.0)
        f = way(lambda x: tf.py_function(python, [x], tf.float32) + v)
        assert f(tf.constant(2.0)).numpy() == 8.0 and v.numpy() == 2.0


def test_callbacks_run_in_the_thread_of_the_call():
    threads = []
    f = jit(
        lambda x: tf.numpy_function(lambda a: (threads.append(threading.get_ident()), a)[1], [x], tf.float32)
    )
    f(tf.constant(1.0)), f(tf.constant(2.0))
    assert threads == [threading.get_ident()] * 2


def test_an_interrupt_in_a_callback_comes_out():
    def interrupted(a):
        if a > 1.0:
            raise KeyboardInterrupt
        return a

    v = tf.Variable(0.0)
    f = jit(lambda x: v.assign(tf.numpy_function(interrupted, [x], tf.float32)))
    with pytest.raises(KeyboardInterrupt):
        f(tf.constant(2.0))
    assert v.numpy() == 0.0 and f(tf.constant(1.0)).numpy() == 1.0


def test_numpy_function_sees_arrays():
    kinds = []
    f = jit(lambda x: tf.numpy_function(lambda a: (kinds.append(type(a)), a + 1)[1], [x], tf.int64))
    assert f(tf.constant([1, 2], tf.int64)).numpy().tolist() == [2, 3]
    assert kinds == [np.ndarray]


# ---- rows on the host ---------------------------------------------------------------------------------


def test_a_row_without_a_lowering_runs_and_is_named_once(caplog):
    from gradtape._src.engines.xla import translate

    translate._told.clear()

    def f(x):
        return tf.linalg.sqrtm(x) + x

    x = tf.constant([[4.0, 1.0], [0.0, 9.0]])
    with caplog.at_level(logging.WARNING, "gradtape"):
        for _ in range(2):
            np.testing.assert_allclose(jit(f)(x).numpy(), tf.function(f)(x).numpy(), rtol=1e-5)
    told = [r.getMessage() for r in caplog.records if "XLA" in r.getMessage()]
    assert len(told) == 1
    assert "matrix_sqrt" in told[0] or "sqrtm" in told[0]
    assert "test_host.py" in told[0]


def test_rows_on_the_host_have_gradients():
    x = tf.constant([[4.0, 1.0], [0.5, 9.0]])
    found = []
    for jit_compile in (True, None):
        f = tf.function(lambda x: tf.reduce_sum(tf.linalg.sqrtm(x) ** 2 * x), jit_compile=jit_compile)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        found.append(tape.gradient(y, x).numpy())
    np.testing.assert_allclose(*found, rtol=1e-4)


def test_residuals_are_freed():
    from gradtape._src.engines.xla import residuals

    f = jit(
        lambda x: tf.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, tf.sin(x)), [tf.constant(0), x])[1]
    )

    def step():
        x = tf.constant([1.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    step()
    gc.collect()
    before = sum(isinstance(o, residuals.Residuals) for o in gc.get_objects())
    for _ in range(3):
        step()
    gc.collect()
    assert sum(isinstance(o, residuals.Residuals) for o in gc.get_objects()) <= before
