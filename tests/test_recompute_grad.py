"""recompute_grad: the memory it saves, by the allocator's counters, and that nothing else changes."""

import gc

import numpy as np
import pytest

import gradtape as tf
from gradtape import _core
from gradtape._src.graph.custom import barrier
from gradtape._src.graph.ir import Graph, symbolic
from gradtape._src.graph.simplify import simplify

LAYERS = 24
ROWS, WIDTH = 2048, 32


def chain(functions):
    def run(x):
        for f in functions:
            x = f(x)
        return x

    return run


class Network:
    """24 layers of a multi-layer perceptron, each x + gelu(x W) V with a hidden layer four times as wide."""

    def __init__(self):
        rng = np.random.default_rng(0)

        def weights(*shape):
            return tf.Variable(rng.normal(0, 0.1, shape).astype(np.float32))

        self.pairs = [(weights(WIDTH, 4 * WIDTH), weights(4 * WIDTH, WIDTH)) for _ in range(LAYERS)]
        self.variables = [v for pair in self.pairs for v in pair]
        self.x = tf.constant(rng.normal(size=(ROWS, WIDTH)).astype(np.float32))

    def layer(self, i):
        w, v = self.pairs[i]
        return lambda x: x + tf.matmul(tf.nn.gelu(tf.matmul(x, w)), v)

    def step(self, how, mode):
        layers = [self.layer(i) for i in range(LAYERS)]
        if how == "blocks":
            layers = [tf.recompute_grad(f) for f in layers]
        elif how == "nested":
            blocks = [tf.recompute_grad(chain(layers[i : i + 2])) for i in range(0, LAYERS, 2)]
            layers = [tf.recompute_grad(chain(blocks[i : i + 4])) for i in range(0, len(blocks), 4)]
        net = chain(layers)

        def loss(x):
            return tf.reduce_mean(net(x) ** 2)

        if mode == "tape outside":
            loss = tf.function(loss)

        def step(x):
            with tf.GradientTape() as tape:
                y = loss(x)
            return tape.gradient(y, self.variables)

        return tf.function(step) if mode == "tape inside" else step


def peak_of(step, x):
    """The peak of the bytes in use during a step, once everything is traced and compiled; and its results."""
    for _ in range(2):
        step(x)
    gc.collect()
    before = _core.memory_info()["live_bytes"]
    _core.reset_peak_memory()
    grads = step(x)
    return _core.memory_info()["peak"] - before, [np.asarray(g) for g in grads]


@pytest.mark.parametrize("mode", ["eager", "tape inside", "tape outside"])
def test_24_layers_in_a_third_of_the_memory(mode, counted_memory):
    net = Network()
    plain, expected = peak_of(net.step("plain", mode), net.x)
    for how, share in (("blocks", 1 / 3), ("nested", 1 / 4)):
        peak, grads = peak_of(net.step(how, mode), net.x)
        assert peak <= share * plain, f"{how}: {peak / plain:.2f} of the plain peak"
        for g, e in zip(grads, expected, strict=True):
            np.testing.assert_allclose(g, e, rtol=1e-4, atol=1e-7)


def test_a_tape_holds_the_arguments_alone(counted_memory):
    def deep(x):
        for _ in range(20):
            x = tf.sin(x)
        return x

    x = tf.ones([100_000])
    kept = []
    for f in (deep, tf.recompute_grad(deep)):
        gc.collect()
        before = _core.memory_info()["live_bytes"]
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
            kept.append(_core.memory_info()["live_bytes"] - before)
        tape.gradient(y, x)
        del tape, y
    assert kept[1] < kept[0] / 5


# ---- values ---------------------------------------------------------------------------------


def orders(f, *xs):
    """Value, gradients, and gradients of their sum."""
    xs = [tf.constant(x) for x in xs]
    with tf.GradientTape() as outer:
        outer.watch(xs)
        with tf.GradientTape() as inner:
            inner.watch(xs)
            y = f(*xs)
        grads = inner.gradient(y, xs)
    return [y, *grads, *outer.gradient(grads, xs)]


@pytest.mark.parametrize("mode", ["eager", "tape outside", "tape inside"])
def test_every_order_is_that_of_the_plain_function(mode):
    w = tf.Variable([[0.3, -0.2], [0.1, 0.5]])

    def plain(x, y):
        return tf.reduce_sum(tf.tanh(tf.matmul(x, w)) * y) * tf.reduce_sum(x)

    def recomputed(x, y):
        return tf.recompute_grad(lambda x, *, y: tf.tanh(tf.matmul(x, w)) * y)(x, y=y)

    def blocks(x, y):
        return tf.reduce_sum(recomputed(x, y)) * tf.reduce_sum(x)

    run = {
        "eager": lambda f: lambda *xs: orders(f, *xs),
        "tape outside": lambda f: lambda *xs: orders(tf.function(f), *xs),
        "tape inside": lambda f: tf.function(lambda *xs: orders(f, *xs)),
    }[mode]
    xs = tf.constant([[0.5, 1.0], [-1.0, 2.0]]), tf.constant([[1.0, 2.0], [3.0, 4.0]])
    for _ in range(3):
        for got, want in zip(run(blocks)(*xs), run(plain)(*xs), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5)


def test_keyword_arguments_have_gradients():
    f = tf.recompute_grad(lambda x, s: x * s)
    x, s = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch([x, s])
        y = f(x, s=s)
    assert [g.numpy() for g in tape.gradient(y, [x, s])] == [3.0, 2.0]


def test_variables_integers_options_and_functions_inside():
    v, table = tf.Variable(2.0), tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    scale = tf.function(lambda x: x * v)

    @tf.recompute_grad
    def f(rows, variable, option):
        assert option == "rows"
        return tf.reduce_sum(scale(tf.gather(variable, rows)), 0)

    with tf.GradientTape() as tape:
        y = f(tf.constant([1, 1]), table, option="rows")
    gt, gv = tape.gradient(y, [table, v])
    assert isinstance(gt, tf.IndexedSlices)
    np.testing.assert_allclose(tf.convert_to_tensor(gt), [[0, 0], [4, 4]])
    assert gv.numpy() == 14.0
    assert {id(x) for x in tape.watched_variables()} == {id(v), id(table)}


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "function"])
def test_the_second_run_draws_the_same_numbers(wrap):
    generator = tf.random.Generator.from_seed(3)

    @tf.recompute_grad
    def block(x):
        inner = tf.recompute_grad(lambda x: tf.nn.dropout(x, 0.5) * generator.uniform(x.shape))
        return tf.nn.dropout(inner(x), 0.5)

    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = block(x)
        return y, tape.gradient(y, x)

    step = wrap(step)
    x = tf.ones([1000])
    seen = []
    for _ in range(3):
        y, g = step(x)
        np.testing.assert_allclose(y, g, rtol=1e-6)  # linear, and x is 1
        seen.append(y.numpy())
    assert not np.array_equal(seen[0], seen[1]) and not np.array_equal(seen[1], seen[2])


def test_methods():
    class Block(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(3.0)

        @tf.recompute_grad
        def __call__(self, x):
            return x * self.w

    block = Block()
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = block(x)
    assert [g.numpy() for g in tape.gradient(y, [x, block.w])] == [3.0, 2.0]


def test_jacobians_run_forward_once():
    calls = []

    @tf.recompute_grad
    def f(x):
        calls.append(1)
        return tf.sin(x) * x

    x = tf.constant([0.5, 1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    j = tape.jacobian(y, x)
    np.testing.assert_allclose(j, np.diag(np.sin(x) + np.cos(x) * x), rtol=1e-6, atol=1e-7)
    assert len(calls) == 2


# ---- the barrier ----------------------------------------------------------------------------


def test_simplification_does_not_look_through_a_barrier():
    graph = Graph()
    x, g = symbolic(graph.input((4,), 11)), symbolic(graph.input((4,), 11))
    a = tf.exp(x)
    hidden, _ = barrier([x, g])
    graph.outputs = [graph.value_of(t) for t in (a, tf.exp(x), tf.exp(hidden))]
    names = [node.name for node in simplify(graph).nodes]
    assert names == ["exp", "barrier", "exp"]


def test_a_barrier_is_no_step_and_passes_values_and_gradients_on():
    f = tf.function(lambda x: tf.exp(barrier([x, x * 2.0])[1]))
    x = tf.constant([0.5, 1.0])
    for _ in range(3):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        np.testing.assert_allclose(y, np.exp([1.0, 2.0]), rtol=1e-6)
        np.testing.assert_allclose(tape.gradient(y, x), 2 * np.exp([1.0, 2.0]), rtol=1e-6)
    program = f.get_concrete_function(x).graph_function.program
    assert not any("call" in what for what, _ in program.profile([x], 1))


def test_second_derivatives_of_functions_with_variables_read_late():
    """The first gradient reads the variable when it is computed, and can be differentiated with respect to it."""
    v, x = tf.Variable(2.0), tf.constant(3.0)
    f = tf.function(tf.recompute_grad(lambda x: x * x * v))
    for run in (f, tf.function(lambda x: tf.vectorized_map(f, x[None])[0])):
        v.assign(2.0)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = run(x)
            v.assign(5.0)
            g = tape.gradient(y, x)
        assert float(g) == 30.0
        assert [float(h) for h in outer.gradient(g, [x, v])] == [10.0, 6.0]


def test_no_second_derivative_where_the_first_does_not_depend():
    """In functions as in eager code: the arguments of the second forward pass do not lead to its cotangent."""
    x = tf.constant(3.0)
    for f in (tf.recompute_grad(lambda p: p - p), tf.recompute_grad(tf.sign)):

        def second(x, f=f):
            with tf.GradientTape() as outer:
                outer.watch(x)
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = f(x)
                g = tape.gradient(y, x)
            return outer.gradient(g, x)

        assert second(x) is None
        assert tf.function(second)(x) is None
        assert second(x, tf.function(f)) is None
