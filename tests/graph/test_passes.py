"""All passes between a graph and its program together: effects in order, random graphs."""

import gc

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.engines.native import lower
from gradtape._src.engines.native.fuse import Cluster, fuse
from gradtape._src.engines.native.lower import compile_graph
from gradtape._src.graph.ir import Callback, Graph, symbolic, verify
from gradtape._src.graph.simplify import simplify
from tests.graph.pass_checks import check, check_order, close, numbers, trace


def logger(log, name, effect=True):
    def run(*xs):
        log.append(name)
        return [x + 1.0 for x in xs]

    return Callback(name, run, effect)


def test_effects_are_kept_in_order():
    log = []
    graph = Graph()
    x = symbolic(graph.input((3,), tf.float32._code))
    spec = [((3,), tf.float32._code)]
    a = tf.exp(x)
    logger(log, "first")([x], spec)
    (b,) = logger(log, "second")([x], spec)
    (c,) = logger(log, "third")([a * b], spec)
    logger(log, "fourth")([tf.sin(x)], spec)
    logger(log, "dropped", effect=False)([x], spec)
    graph.outputs = [graph.value_of(t) for t in (a * b, tf.sin(c))]
    simple = simplify(graph)
    verify(simple)
    check_order(simple, fuse(simple))
    program = compile_graph(graph)
    value = np.float32([0.5, 1, 2])
    for _ in range(2):
        outs = program.run([tf.constant(value)])
        product = np.exp(value) * (value + 1)
        close(outs, [product, np.sin(product + 1)])
    assert log == ["first", "second", "third", "fourth"] * 2


def test_equal_effects_are_not_one():
    log = []
    graph = Graph()
    x = symbolic(graph.input((), tf.float32._code))
    spec = [((), tf.float32._code)]
    op = logger(log, "tick")
    (a,), (b,) = op([x], spec), op([x], spec)
    graph.outputs = [graph.value_of(a + b)]
    assert float(compile_graph(graph).run([tf.constant(1.0)])[0]) == 4.0
    assert log == ["tick", "tick"]


def test_a_callback_may_keep_its_arguments():
    kept = []
    graph = Graph()
    x = symbolic(graph.input((4, 4), tf.float32._code))
    keep = Callback("keep", lambda t: kept.append(t) or [], True)
    y = tf.sin(x @ x)
    keep([y], [])
    graph.outputs = [graph.value_of(tf.exp(tf.cos(y @ x) @ x))]
    program = compile_graph(graph)
    (a,) = numbers(33, (4, 4))
    for k in (1.0, 2.0, 3.0):
        program.run([tf.constant(k * a)])
    for k, t in zip((1.0, 2.0, 3.0), kept, strict=True):
        np.testing.assert_allclose(t, np.sin((k * a) @ (k * a)), rtol=1e-4, atol=1e-4)


_UNARY = [
    tf.sin,
    tf.tanh,
    tf.sigmoid,
    tf.square,
    tf.negative,
    tf.abs,
    lambda x: x * 0.5,
    lambda x: x + 0.0,
    lambda x: x / 3.0,
]
_BINARY = [tf.add, tf.subtract, tf.multiply, tf.maximum, lambda x, y: tf.where(x > y, x, y * 0.5)]
_OTHER = [
    lambda x: tf.transpose(x), lambda x: tf.tanh(x @ x), lambda x: tf.reduce_sum(x, 0) * 0.1, lambda x: x[0],
    lambda x: tf.reduce_mean(x, 1, True), lambda x: tf.reduce_max(x), lambda x: tf.broadcast_to(x[1], (6, 6)),
    lambda x: tf.reshape(tf.reshape(x, [36]), [6, 6]), lambda x: tf.concat([x[3:], x[:3]], 0),
    lambda x: tf.nn.softmax(x), lambda x: tf.cast(tf.cast(x, tf.float64) * 0.3, tf.float32),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs(seed):
    rng = np.random.default_rng(seed)

    def f(*inputs):
        pool = list(inputs)
        draw = np.random.default_rng(seed + 1000)
        for _ in range(int(draw.integers(5, 60))):
            x, y = (pool[max(0, len(pool) - 1 - int(draw.exponential(4)))] for _ in range(2))
            kind = draw.integers(4)
            if kind == 0:
                pool.append(_UNARY[draw.integers(len(_UNARY))](x))
            elif kind == 3 and tuple(x.shape) == (6, 6):
                pool.append(_OTHER[draw.integers(len(_OTHER))](x))
            else:
                pool.append(tf.tanh(_BINARY[draw.integers(len(_BINARY))](x, y)))
        return [pool[-1], *(pool[int(draw.integers(len(pool)))] for _ in range(4))]

    arrays = [np.asarray(rng.uniform(-1, 1, s), np.float32) for s in ((6, 6), (6, 6), (6, 1), (6,), ())]
    check(f, *arrays, limit=1e-4)


def test_big_graphs_keep_every_node():
    """Every node of a deep graph is in exactly one step."""

    def f(x, w):
        for _ in range(150):
            y = tf.tanh(x @ w)
            x = y * x + tf.transpose(y) * 0.1 + tf.reduce_sum(y)
        return x

    graph = simplify(trace(f, *numbers(34, (4, 4), (4, 4))))
    placed = [n for step in fuse(graph) for n in (step.nodes if isinstance(step, Cluster) else [step])]
    assert len(placed) == len(graph.nodes) and set(placed) == set(graph.nodes)


def test_no_garbage_is_collected_while_a_graph_is_compiled(monkeypatch):
    graph = trace(lambda x: tf.sin(x) * 2.0, *numbers(0, (3,)))
    seen = []
    monkeypatch.setattr(lower, "lowered", lambda *args: seen.append(gc.isenabled()) or 1 / 0)
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        compile_graph(graph)
    assert gc.isenabled() and seen == [False]
    try:
        gc.disable()  # as a program may
        with pytest.raises(ZeroDivisionError):
            compile_graph(graph)
        assert not gc.isenabled()
    finally:
        gc.enable()
