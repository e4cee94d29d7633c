"""Derivatives of functions on XLA: sparse ones, custom ones, second ones, Jacobians; steps of optimizers."""

import numpy as np
import pytest

import gradtape as tf
from gradtape import _core

X = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], np.float32)


def ways(f):
    """The function natively and on XLA."""
    return [tf.function(f), tf.function(f, jit_compile=True)]


def assert_same(results, rtol=1e-5):
    native, xla = ([tf.convert_to_tensor(t).numpy() for t in tf.nest.flatten(r)] for r in results)
    assert len(native) == len(xla) > 0
    for a, b in zip(native, xla, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)


def test_sparse_gradients():
    table = tf.Variable(np.arange(10, dtype=np.float32).reshape(5, 2))

    def inside(i):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.gather(table, i) ** 2)
        return tape.gradient(y, table)

    for f in ways(inside):
        g = f(tf.constant([1, 3, 1]))
        assert isinstance(g, tf.IndexedSlices) and g.indices.numpy().tolist() == [1, 3, 1]
        assert tf.convert_to_tensor(g).numpy()[1].tolist() == [8.0, 12.0]
    for f in ways(lambda i: tf.gather(table, i) * 2.0):
        with tf.GradientTape() as tape:
            y = f(tf.constant([0, 0]))
        g = tape.gradient(y, table)
        assert isinstance(g, tf.IndexedSlices)
        assert tf.convert_to_tensor(g).numpy()[0].tolist() == [4.0, 4.0]


def test_indexed_slices_as_arguments():
    slices = tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([0, 2]), tf.constant([4, 1]))
    for f in ways(lambda s: tf.convert_to_tensor(s) * 2.0):
        assert f(slices).numpy().tolist() == [[2.0], [0.0], [4.0], [0.0]]


@pytest.mark.parametrize("make", [
    lambda: tf.optimizers.SGD(0.1, momentum=0.9), lambda: tf.optimizers.Adam(0.1), lambda: tf.optimizers.RMSprop(0.1),
    lambda: tf.optimizers.Adam(0.1, gradient_accumulation_steps=2), lambda: tf.optimizers.Adam(0.1, clipnorm=0.5),
    lambda: tf.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=2),
    lambda: tf.optimizers.AdamW(0.1, weight_decay=0.1), lambda: tf.optimizers.Adagrad(0.1),
], ids=["momentum", "adam", "rmsprop", "accumulation", "clipnorm", "ema", "adamw", "adagrad"])  # fmt: skip
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_steps_of_optimizers(make, sparse):
    results = []
    for engine in ("native", "xla"):
        tf.config.set_engine(engine)
        w, b = tf.Variable(X), tf.Variable([1.0, 2.0], constraint=lambda v: tf.clip_by_value(v, 0.0, 1.5))
        optimizer = make()
        i = tf.constant([0, 2, 0])
        for _ in range(4):
            with tf.GradientTape() as tape:
                rows = tf.gather(w, i) if sparse else w
                loss = tf.reduce_sum((rows + b) ** 2)
            optimizer.apply_gradients(zip(tape.gradient(loss, [w, b]), [w, b], strict=True))
        results.append(
            [
                w.read_value(),
                b.read_value(),
                *(v.read_value() for v in optimizer.variables if v.dtype.is_floating),
            ]
        )
    assert_same(results, 1e-4)


def test_a_step_with_an_index_out_of_range_is_refused(engine):
    w = tf.Variable(X)
    optimizer = tf.optimizers.SGD(0.1)
    good = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([1]), tf.constant([3, 2]))
    bad = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([7]), tf.constant([3, 2]))
    optimizer.apply_gradients([(good, w)])
    before = w.numpy()
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError, IndexError)):
        optimizer.apply_gradients([(bad, w)])
    np.testing.assert_array_equal(w.numpy(), before)


def test_custom_gradients():
    @tf.custom_gradient
    def clipped(x):
        return x * x, lambda g: tf.clip_by_value(g * 2.0 * x, -1.0, 1.0)

    def inside(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = clipped(x * 3.0)
        return tape.gradient(y, x)

    assert_same([f(tf.constant(X)) for f in ways(inside)])
    found = []
    for f in ways(clipped):
        x = tf.constant(X)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x * 3.0)
        found.append(tape.gradient(y, x))
    assert_same(found)


def test_recompute_grad():
    w = tf.Variable(X)
    block = tf.recompute_grad(lambda x: tf.sin(x @ tf.transpose(w)))
    found = []
    for f in ways(lambda x: tf.reduce_sum(block(x) ** 2)):
        with tf.GradientTape() as tape:
            y = f(tf.constant(X))
        found.append(tape.gradient(y, w))
    assert_same(found)


def test_stop_gradient_and_unconnected():
    for f in ways(lambda x, y: tf.stop_gradient(x) * y):
        x, y = tf.constant(2.0), tf.constant(3.0)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, y])
            z = f(x, y)
        assert tape.gradient(z, x) is None and tape.gradient(z, y).numpy() == 2.0
        assert tape.gradient(z, x, unconnected_gradients="zero").numpy() == 0.0


def test_jacobians():
    def f(x):
        return tf.sin(x) @ tf.constant([[1.0, 2.0, 3.0], [0.5, 0.1, 0.2]])

    def jacobians(g):
        x = tf.constant(X)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = g(x)
        return tape.jacobian(y, x), tape.batch_jacobian(y, x)

    assert_same([jacobians(g) for g in ways(f)])
    assert_same([jacobians(g) for g in ways(f)])

    def inside(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.jacobian(y, x)

    assert_same([g(tf.constant(X)) for g in ways(inside)])


def test_hessians():
    def f(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(tf.sin(x) * x)
            g = inner.gradient(y, x)
        return outer.jacobian(g, x)

    assert_same([g(tf.constant(X)) for g in ways(f)])


def test_vectorized_map_and_forward_mode():
    for maps in (lambda g: tf.vectorized_map(g, tf.constant(X)), lambda g: tf.map_fn(g, tf.constant(X))):
        assert_same([maps(g) for g in ways(lambda row: tf.reduce_sum(tf.exp(row)) * row)])
    found = []
    for g in ways(lambda x: tf.sin(x) * x):
        x = tf.constant(X)
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as acc:
            y = g(x)
        found.append(acc.jvp(y))
    assert_same(found)


def test_a_loop_over_a_tape_compiles_its_pass_once():
    """A tape around a function of another engine runs its rules one by one; compiling is tried once, without a warning."""
    f = tf.function(lambda x: tf.sin(x) * x, jit_compile=True)
    x = tf.constant(X)
    _core.clear_compiled()
    found = []
    for _ in range(6):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(f(x) ** 2)
        found.append(tape.gradient(y, x).numpy())
    assert all((g == found[0]).all() for g in found)
    assert _core.compile_info()["failures"] <= 1


def test_gradients_of_several_results():
    def f(x, y):
        return x * y, tf.sin(x), y + 1.0

    found = []
    for g in ways(f):
        x, y = tf.constant(X), tf.constant(2.0)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, y])
            a, b, c = g(x, y)
        found.append(
            [tape.gradient(a, [x, y]), tape.gradient(b, x), tape.gradient([a, c], y), tape.gradient(b, y)]
        )
    assert found[0][-1] is None and found[1][-1] is None
    assert_same([r[:-1] for r in found])


def test_an_optimizer_follows_the_engine():
    w = tf.Variable([1.0, 2.0])
    optimizer = tf.optimizers.SGD(0.1)

    def step():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(w * w)
        optimizer.apply_gradients([(tape.gradient(y, w), w)])
        return type(optimizer._programs.last).__name__

    found = [step()]
    tf.config.set_engine("xla")
    found += [step(), step()]
    tf.config.set_engine("native")
    found += [step()]
    with tf.device("/XLA_CPU:0"):
        found += [step()]
    assert found == ["Update", "XlaStep", "XlaStep", "Update", "XlaStep"]
    assert len(optimizer._programs) == 2
    np.testing.assert_allclose(w.numpy(), [0.8**5, 2 * 0.8**5], rtol=1e-5)
