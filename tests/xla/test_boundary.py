"""Arguments and results on XLA: types, shapes, devices, sizes that are not known, functions in functions."""

import copy
import logging

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.base import settings

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


def jit(f):
    return tf.function(f, jit_compile=True)


TYPES = [
    tf.bool, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64, tf.float16, tf.bfloat16,
    tf.float32, tf.float64, tf.complex64, tf.complex128,
]  # fmt: skip
LARGE = {
    tf.int64: 2**40 + 1,
    tf.uint64: 2**63 + 5,
    tf.float64: 1.0 + 2.0**-40,
    tf.complex128: 1.0 + 2.0**-40 + 1j,
}


@pytest.mark.parametrize("value", ["a", np.float32(1.5)], ids=["string", "float8_e5m2"])
def test_types_that_xla_lacks_run_natively(value):
    """A function that returns a constant or its argument has no node that would show the type to the engine."""
    x = tf.constant(value) if isinstance(value, str) else tf.constant(value, "float8_e5m2")
    for y in (jit(lambda: tf.identity(x))(), jit(lambda: tf.zeros([], x.dtype))(), jit(lambda y: y)(x)):
        assert y.dtype is x.dtype
    assert jit(lambda: tf.identity(x))().numpy() == x.numpy() == jit(lambda y: y)(x).numpy()


@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: d.name)
def test_types(dtype):
    values = tf.cast(tf.constant([0, 1, 1]), dtype)
    if dtype in LARGE:
        values = tf.constant([LARGE[dtype]] * 3, dtype)
    v = tf.Variable(values)

    @jit
    def f(x):
        v.assign(x)
        return (
            x,
            tf.reverse(x, [0]),
            tf.zeros([0, 2], dtype),
            x[0],
            tf.numpy_function(lambda a: a, [x], dtype),
        )

    for _ in range(3):  # arguments from the host, then from the device
        same, turned, nothing, scalar, through = f(values)
        for got in (same, through, v):
            assert got.dtype == dtype
            assert got.numpy().tolist() == values.numpy().tolist()
        assert turned.numpy().tolist() == values.numpy().tolist()[::-1]
        assert nothing.shape == (0, 2) and nothing.numpy().size == 0 and nothing.dtype == dtype
        assert scalar.shape == () and scalar.numpy() == values.numpy()[0]
    assert f(turned)[0].numpy().tolist() == turned.numpy().tolist()


def test_nothing_in_nothing_out():
    v = tf.Variable(1)
    f = jit(lambda: [v.assign_add(1), None][1])
    assert f() is None and v.numpy() == 2
    assert jit(lambda: tf.constant(3.0))().numpy() == 3.0
    assert jit(lambda: None)() is None
    assert jit(lambda x: None)(tf.constant(1.0)) is None
    assert jit(lambda x: {"a": [x], "b": (3, None)})(tf.constant(1.0))["a"][0].numpy() == 1.0


def test_empty_tensors():
    f = jit(lambda x: (tf.reduce_sum(x), x + 1.0, tf.concat([x, x], 0)))
    total, more, both = f(tf.zeros([0, 3]))
    assert total.numpy() == 0.0 and more.numpy().shape == (0, 3) and both.shape == (0, 3)
    assert f(more)[0].numpy() == 0.0


def test_the_same_tensor_twice():
    x = tf.constant([1.0, 2.0])
    f = jit(lambda a, b: (a + b, a, b))
    for _ in range(2):
        total, a, b = f(x, x)
        assert total.numpy().tolist() == [2.0, 4.0] and a.numpy().tolist() == b.numpy().tolist() == [1.0, 2.0]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x, x)[0]
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 2.0]


def test_constants_from_outside():
    big, small = tf.constant(np.arange(1000.0)), tf.constant(3)
    array = np.ones(1000)
    f = jit(lambda x: tf.reduce_sum(big * array) * x + tf.cast(small, tf.float64))
    assert f(tf.constant(2.0, tf.float64)).numpy() == 999 * 1000 + 3
    made = jit(lambda: big * 2.0)()
    assert jit(lambda: made + 1.0)().numpy()[3] == 7.0


def test_arrays_of_numpy_and_numbers_are_arguments():
    f = jit(lambda x, k: x * k)
    assert f(np.array([1.0, 2.0], np.float32), tf.constant(2.0)).numpy().tolist() == [2.0, 4.0]
    assert f(tf.constant(4), 3).numpy() == 12


def test_results_are_tensors():
    y = jit(lambda x: x * 2.0)(tf.constant([1.0, 2.0]))
    assert y.device == CPU
    assert np.asarray(y).tolist() == y.numpy().tolist() == np.from_dlpack(y).tolist() == [2.0, 4.0]
    assert (y + 1.0).numpy().tolist() == [3.0, 5.0] and y[1].numpy() == 4.0 and float(y[0]) == 2.0
    assert tf.function(lambda t: t * 3.0)(y).numpy().tolist() == [6.0, 12.0]
    assert [float(e) for e in y] == [2.0, 4.0] and len(y) == 2 and bool(y[0] > 1.0)
    assert memoryview(y).tolist() == [2.0, 4.0]
    assert "numpy=array([2., 4.]" in repr(y)
    assert copy.deepcopy({"y": y})["y"].numpy().tolist() == [2.0, 4.0]
    with pytest.raises((ValueError, TypeError)):
        y.numpy().__array_interface__["data"][1] or np.asarray(memoryview(y)).__setitem__(0, 1.0)
    assert y.numpy().tolist() == [2.0, 4.0]


# ---- sizes ----------------------------------------------------------------------------------------------


def test_one_trace_for_all_sizes():
    traces = []

    @tf.function(jit_compile=True, input_signature=[tf.TensorSpec([None, 2])])
    def f(x):
        traces.append(1)
        return tf.reduce_sum(x @ tf.ones([2, 3]), 0), tf.shape(x)[0]

    for n in (1, 4, 4, 4, 0, 7, 7):
        total, size = f(tf.ones([n, 2]))
        assert total.numpy().tolist() == [2.0 * n] * 3 and size.numpy() == n
    assert len(traces) == 1


def test_sizes_that_depend_on_values():
    f = jit(lambda x: tf.reduce_sum(tf.boolean_mask(x, x > 1.0) * 2.0))
    assert [f(tf.constant(x)).numpy() for x in ([1.0, 2.0], [2.0, 3.0], [0.0, 0.0])] == [4.0, 10.0, 0.0]


def test_gradients_of_any_size():
    w = tf.Variable([[1.0], [2.0]])
    f = tf.function(
        lambda x: tf.reduce_mean((x @ w) ** 2), jit_compile=True, input_signature=[tf.TensorSpec([None, 2])]
    )
    for n in (3, 3, 3, 5, 5):
        with tf.GradientTape() as tape:
            y = f(tf.ones([n, 2]))
        np.testing.assert_allclose(tape.gradient(y, w).numpy(), [[6.0], [6.0]], rtol=1e-5)


# ---- functions in functions -------------------------------------------------------------------------------


def test_functions_in_functions():
    inner_jit, inner = jit(lambda x: x * 2.0), tf.function(lambda x: x + 1.0)
    x = tf.constant(3.0)
    assert tf.function(lambda x: inner_jit(x) + inner(x))(x).numpy() == 10.0
    assert jit(lambda x: inner_jit(x) + inner(x))(x).numpy() == 10.0
    assert jit(lambda x: tf.cond(x > 1.0, lambda: inner(x), lambda: inner_jit(x)))(x).numpy() == 4.0


def test_a_function_runs_where_a_part_of_it_is_to():
    inner = jit(lambda x: x * 2.0)
    outer = tf.function(lambda x: inner(x) + 1.0)
    outer(tf.constant(1.0))
    (concrete,) = outer._concrete
    assert concrete.graph_function.engine.name == "xla"


def test_methods_and_modules():
    class Dense(tf.Module):
        def __init__(self):
            self.w = tf.Variable(tf.ones([2, 2]))

        @tf.function(jit_compile=True)
        def __call__(self, x):
            return x @ self.w

    a, b = Dense(), Dense()
    b.w.assign(b.w * 3.0)
    assert a(tf.ones([1, 2])).numpy().tolist() == [[2.0, 2.0]]
    assert b(tf.ones([1, 2])).numpy().tolist() == [[6.0, 6.0]]


# ---- what is shown of a function ------------------------------------------------------------------------------


def test_pretty_and_profile_of_a_function():
    f = jit(lambda x: tf.sin(x) * 2.0)
    x = tf.constant([1.0])
    f(x)
    assert "sin" in f.pretty(x)
    with pytest.raises(tf.errors.UnimplementedError, match="XLA"):
        f.profile(x)
    assert f.get_concrete_function(x)(x).numpy() == f(x).numpy()
    assert f.experimental_get_tracing_count() == 1


def test_run_functions_eagerly(monkeypatch):
    monkeypatch.setattr(settings, "run_functions_eagerly", False)
    seen = []
    f = jit(lambda x: seen.append(tf.executing_eagerly()) or x + 1.0)
    tf.config.run_functions_eagerly(True)
    assert f(tf.constant(1.0)).numpy() == 2.0 and seen == [True]


def test_a_function_that_checks_itself():
    f = tf.function(lambda x: tf.sin(x) @ x, jit_compile=True, check=True)
    x = tf.constant([[0.1, 0.2], [0.3, 0.4]])
    np.testing.assert_allclose(f(x).numpy(), np.sin(x) @ x.numpy(), rtol=1e-5)


def test_nothing_is_logged(caplog):
    v = tf.Variable([1.0, 2.0])
    with caplog.at_level(logging.INFO):
        for _ in range(4):
            with tf.GradientTape() as tape:
                y = jit(lambda x: v * x)(tf.constant([1.0, 2.0])) * v
            tape.gradient(y, v)
    assert [r.getMessage() for r in caplog.records if r.name.startswith("gradtape")] == []
