"""Compiled backward passes: which structures are recognised, and that results stay the same."""

import threading

import numpy as np
import pytest

import gradtape as tf
from gradtape import _core


@pytest.fixture(autouse=True)
def empty_cache():
    _core.clear_compiled()
    _core.set_compile(True)
    yield
    _core.set_compile(True)
    _core.clear_compiled()


def network(seed=0, widths=(4, 16, 2)):
    rng = np.random.default_rng(seed)
    return [
        tf.Variable(rng.normal(size=shape).astype("f") * 0.5)
        for i, o in zip(widths[:-1], widths[1:], strict=True)
        for shape in ((i, o), (o,))
    ]


def apply(variables, x):
    for i in range(0, len(variables) - 2, 2):
        x = tf.tanh(x @ variables[i] + variables[i + 1])
    return x @ variables[-2] + variables[-1]


def loss_and_gradients(variables, x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(apply(variables, x) - y))
    return loss, tape.gradient(loss, variables)


def data(n=8):
    rng = np.random.default_rng(1)
    return tf.constant(rng.normal(size=(n, 4)).astype("f")), tf.constant(rng.normal(size=(n, 2)).astype("f"))


def test_second_sight_compiles_and_third_runs_the_program():
    variables, (x, y) = network(), data()
    hits = []
    for _ in range(4):
        loss_and_gradients(variables, x, y)
        hits.append((_core.compile_info()["programs"], _core.compile_info()["hits"]))
    assert hits == [(0, 0), (1, 0), (1, 1), (1, 2)]


def test_program_equals_rules_while_values_change():
    variables, (x, y) = network(), data()
    for _ in range(5):
        _, compiled = loss_and_gradients(variables, x, y)
        _core.set_compile(False)
        _, plain = loss_and_gradients(variables, x, y)
        _core.set_compile(True)
        for c, p in zip(compiled, plain, strict=True):
            np.testing.assert_allclose(c.numpy(), p.numpy(), rtol=1e-6, atol=1e-7)
        for v, g in zip(variables, compiled, strict=True):
            v.assign_sub(0.1 * g)
    assert _core.compile_info()["hits"] > 0


def test_switch_turns_it_off():
    _core.set_compile(False)
    variables, (x, y) = network(), data()
    for _ in range(3):
        loss_and_gradients(variables, x, y)
    assert _core.compile_info()["structures"] == 0


def test_other_shapes_are_other_structures():
    variables = network()
    for n in (3, 3, 5, 5, 3, 5):
        loss_and_gradients(variables, *data(n))
    info = _core.compile_info()
    assert (info["structures"], info["programs"], info["hits"]) == (2, 2, 2)


def test_a_variable_assigned_between_two_reads_keeps_both_values():
    v = tf.Variable(3.0)
    for _ in range(3):
        v.assign(3.0)
        with tf.GradientTape() as tape:
            a = v * v
            v.assign(5.0)
            b = v * v
            total = a + b
        assert tape.gradient(total, v).numpy() == 16.0
    assert _core.compile_info()["programs"] == 1


def test_same_tensor_twice_and_two_equal_tensors_are_distinguished():
    x, z = tf.constant([1.0, 2.0]), tf.constant([1.0, 2.0])
    for _ in range(3):
        for second in (x, z):
            with tf.GradientTape() as tape:
                tape.watch([x, z])
                y = tf.reduce_sum(x * second)
            gx, gz = tape.gradient(y, [x, z])
            if second is x:
                np.testing.assert_allclose(gx.numpy(), [2.0, 4.0])
                assert gz is None
            else:
                np.testing.assert_allclose(gx.numpy(), [1.0, 2.0])
                np.testing.assert_allclose(gz.numpy(), [1.0, 2.0])


def test_output_gradients_are_inputs_of_the_program():
    x = tf.constant([1.0, 2.0, 3.0])
    for weight in (1.0, 2.0, -3.0, 0.5):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        g = tape.gradient(y, x, output_gradients=tf.fill([3], weight))
        np.testing.assert_allclose(g.numpy(), 2 * weight * x.numpy(), rtol=1e-6)
    assert _core.compile_info()["programs"] == 1


def test_several_targets_and_unconnected_sources():
    x, w = tf.Variable(2.0), tf.Variable(1.0)
    for _ in range(3):
        with tf.GradientTape() as tape:
            a, b = x * x, tf.sin(x)
        gx, gw = tape.gradient([a, b], [x, w])
        np.testing.assert_allclose(gx.numpy(), 4.0 + np.cos(2.0), rtol=1e-6)
        assert gw is None


def test_persistent_tape():
    x = tf.Variable([1.0, 2.0])
    for _ in range(3):
        with tf.GradientTape(persistent=True) as tape:
            y = tf.reduce_sum(x**3)
            z = y * y
        np.testing.assert_allclose(tape.gradient(y, x).numpy(), 3 * x.numpy() ** 2, rtol=1e-6)
        np.testing.assert_allclose(tape.gradient(z, x).numpy(), 2 * 9 * 3 * x.numpy() ** 2, rtol=1e-6)


def test_sparse_gradients():
    table = tf.Variable(np.arange(12.0, dtype="f").reshape(4, 3))
    for ids in ([0, 2, 2], [1, 1, 3], [3, 0, 0]):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.square(tf.gather(table, ids)))
        g = tape.gradient(y, table)
        assert isinstance(g, tf.IndexedSlices)
        assert g.indices.numpy().tolist() == ids
        np.testing.assert_allclose(g.values.numpy(), 2 * table.numpy()[ids])
    assert _core.compile_info()["programs"] == 1


@pytest.mark.parametrize("order", [2, 3])
def test_nested_tapes_compile_and_agree(order):
    x = tf.constant([0.3, 1.2, -0.7])

    def derivative(n):
        if n == 0:
            return tf.sin(x) * tf.exp(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = derivative(n - 1)
        return tape.gradient(y, x)

    _core.set_compile(False)
    expected = derivative(order).numpy()
    _core.set_compile(True)
    for _ in range(order + 3):
        np.testing.assert_allclose(derivative(order).numpy(), expected, rtol=1e-5)
    assert _core.compile_info()["hits"] > 0


def test_gradient_penalty():
    variables, (x, _) = network(), data()

    def penalty():
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                inner.watch(x)
                score = tf.reduce_sum(apply(variables, x))
            g = inner.gradient(score, x)
            value = tf.reduce_mean(tf.square(tf.norm(g, axis=1) - 1.0))
        return outer.gradient(value, variables, unconnected_gradients="zero")

    _core.set_compile(False)
    expected = [g.numpy() for g in penalty()]
    _core.set_compile(True)
    for _ in range(6):
        for g, e in zip(penalty(), expected, strict=True):
            np.testing.assert_allclose(g.numpy(), e, rtol=1e-4, atol=1e-6)


def test_custom_gradients_run_as_they_are():
    @tf.custom_gradient
    def double(x):
        return x * 2.0, lambda g: g * 100.0

    x = tf.Variable(1.0)
    for _ in range(4):
        with tf.GradientTape() as tape:
            y = double(x) * 3.0
        assert tape.gradient(y, x).numpy() == 300.0


def test_cache_is_bounded():
    x = tf.constant(1.0)
    for n in range(1100):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for bit in range(11):
                y = tf.sin(y) if n >> bit & 1 else tf.cos(y)
        tape.gradient(y, x)
    assert _core.compile_info()["structures"] <= 1024


def test_structures_that_are_never_repeated_stop_being_compiled():
    x = tf.constant(1.0)

    def once(n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for bit in range(12):
                y = tf.sin(y) if n >> bit & 1 else tf.cos(y)
        return tape.gradient(y, x)

    for n in range(2400):  # each is seen twice, compiled, and pushed out unused
        once(n)
        once(n)
    before = _core.compile_info()["programs"]
    for n in range(2400, 2500):
        once(n)
        once(n)
    assert before < 2400
    assert _core.compile_info()["programs"] - before < 100


def test_threads_share_programs_safely():
    variables, (x, y) = network(), data(64)
    _core.set_compile(False)
    expected = [g.numpy() for g in loss_and_gradients(variables, x, y)[1]]
    _core.set_compile(True)
    wrong = []

    def work():
        for _ in range(100):
            _, grads = loss_and_gradients(variables, x, y)
            for g, e in zip(grads, expected, strict=True):
                if not np.allclose(g.numpy(), e, rtol=1e-5, atol=1e-6):
                    wrong.append(g)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_nothing_of_a_step_outlives_it(counted_memory):
    x = tf.Variable(tf.ones([1024, 64]))
    w = tf.Variable(tf.ones([64, 64]))

    def step():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.tanh(x @ w))
        tape.gradient(y, [x, w])

    for _ in range(3):
        step()
    before = tf.config.memory_info()["live_bytes"]
    for _ in range(5):
        step()
    assert tf.config.memory_info()["live_bytes"] - before < 1000


def test_unconnected_targets_and_sources_are_not_mixed_up():
    x, a, b = tf.constant(1.0), tf.constant(2.0), tf.constant(3.0)
    for _ in range(3):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x
        assert tape.gradient([a, y], x).numpy() == 2.0
        none, gx = tape.gradient(y, [b, x])
        assert none is None and gx.numpy() == 2.0
        assert tape.gradient([a], [b, b, x]) == [None, None, None]
        assert tape.gradient([a, a, b], [x]) == [None]
