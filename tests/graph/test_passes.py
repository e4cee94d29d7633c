"""The passes between a graph and its program: each keeps the graph well formed and its results.

`check` runs a graph through all of them and checks the guarantees of each: well-formed graphs, steps in a valid order,
no overlap of values that are alive at the same time, and the same results as the graph applied op by op.
"""

import contextlib
import gc

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.base.dtypes import SIZES
from gradtape._src.engines.native import lower, plan
from gradtape._src.engines.native.fuse import Cluster, fuse
from gradtape._src.engines.native.lower import compile_graph
from gradtape._src.engines.native.products import join_products
from gradtape._src.graph.callable import replay
from gradtape._src.graph.ir import Callback, Graph, Node, symbolic, verify
from gradtape._src.graph.simplify import simplify

SHAPES = [
    (),
    (1,),
    (7,),
    (0, 3),
    (1, 1),
    (7, 13),
    (3, 5000),
    (5000, 3),
    (1, 70001),
    (130, 257),
    (2, 3, 5),
    (1025, 9),
]
LIMITS = {"float32": 2e-5, "float64": 1e-12, "float16": 1e-2, "bfloat16": 5e-2}


def trace(f, *arrays):
    """The graph of `f` for arguments like these arrays."""
    graph = Graph()
    tensors = [tf.constant(a) for a in arrays]
    outs = f(*[symbolic(graph.input(tuple(t.shape), t.dtype._code)) for t in tensors])
    graph.outputs = [graph.value_of(t) for t in (outs if isinstance(outs, (list, tuple)) else [outs])]
    return graph


def names(graph):
    return [node.name for node in graph.nodes]


def numbers(seed, *shapes, dtype="float32"):
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.uniform(-2, 2, s)).astype(dtype) for s in shapes]


def steps_of(graph):
    return fuse(simplify(graph))


def clusters_of(graph):
    return [s for s in steps_of(graph) if isinstance(s, Cluster)]


@contextlib.contextmanager
def planned():
    """Collects what `plan` was given and what it decided."""
    seen, original = [], plan.plan

    def spy(graph, steps, aliases, *rest):
        places, arena = original(graph, steps, aliases, *rest)
        seen.append((graph, steps, aliases, places, arena))
        return places, arena

    lower.plan.plan = spy
    try:
        yield seen
    finally:
        lower.plan.plan = original


def check_order(graph, steps):
    """Every node is in one step, after the nodes it reads."""
    done = set()
    for step in steps:
        nodes = step.nodes if isinstance(step, Cluster) else [step]
        inside = set()
        for node in nodes:
            for v in node.operands:
                assert v.node is None or v.node in done or v.node in inside, f"{node} runs too early"
                if isinstance(step, Cluster):
                    assert v.node not in step.epilogues, "an epilogue is read before all tiles are done"
            assert node not in done and node not in inside
            inside.add(node)
        done |= inside
    assert done == set(graph.nodes)


def check_plan(graph, steps, aliases, places, arena):
    """No two values of the arena overlap while both are alive; results are not in the arena."""

    def root(v):
        while v in aliases:
            v = aliases[v]
        return v

    outputs = {root(v) for v in graph.outputs}
    born = {v: i for i, s in enumerate(steps) for v in s.results}
    dies = dict(born)
    for i, s in enumerate(steps):
        for v in s.operands:
            dies[root(v)] = i
    # A result of some ops is a view of an operand, or of a part of it, and keeps it alive.
    for s in reversed(steps):
        if s.what == "op" and s.object._shares:
            for v in s.operands:
                if root(v) in born:
                    views = [r for r in s.results if r.size * SIZES[r.dtype] <= v.size * SIZES[v.dtype]]
                    ends = [len(steps) if r in outputs else dies[r] for r in views]
                    dies[root(v)] = max([dies[root(v)], *ends])
    live = []
    for v, i in born.items():
        place, at = places[v]
        assert (v in outputs) <= (place != plan.ARENA), "a result is in memory that is used again"
        if place == plan.ARENA:
            nbytes = v.size * SIZES[v.dtype]
            assert at >= 0 and at + nbytes <= arena and at % 64 == 0
            live.append((at, at + max(nbytes, 1), i, dies[v]))
    for k, (lo, hi, start, end) in enumerate(live):
        for lo2, hi2, start2, end2 in live[:k]:
            assert hi <= lo2 or hi2 <= lo or end < start2 or end2 < start, (
                "two values share a place while both are alive"
            )


def check(f, *arrays, limit=None):
    """Runs `f` through all passes; returns the simplified graph."""
    graph = trace(f, *arrays)
    tensors = [tf.constant(a) for a in arrays]
    expected = [np.array(t) for t in replay(graph, tensors)]
    verify(graph)
    simple = simplify(graph)
    verify(simple)
    assert [(v.shape, v.dtype) for v in simple.outputs] == [(v.shape, v.dtype) for v in graph.outputs]
    close(replay(simple, tensors), expected, limit)
    assert len(simplify(simple).nodes) <= len(simple.nodes)
    steps = fuse(simple)
    check_order(simple, steps)
    with planned() as seen:
        program = compile_graph(graph)
    for one in seen:
        check_plan(*one)
    first = program.run(tensors)
    close(first, expected, limit)
    copies = [np.array(t) for t in first]
    other = [tf.constant(np.flip(a, 0) if a.ndim else a) for a in arrays]
    close(program.run(other), [np.array(t) for t in replay(graph, other)], limit)
    for t, c in zip(first, copies, strict=True):
        np.testing.assert_array_equal(t, c)  # a later run does not change earlier results
    for t, a in zip(tensors, arrays, strict=True):
        np.testing.assert_array_equal(t, a)
    return simple


def close(actual, expected, limit=None):
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        a = np.array(a)
        assert a.shape == e.shape and a.dtype == e.dtype
        if a.dtype.kind in "iub":
            np.testing.assert_array_equal(a, e)
        else:
            scale = max(1.0, float(np.max(np.abs(e), initial=0, where=np.isfinite(e))))
            tolerance = limit or LIMITS.get(a.dtype.name, 2e-5)
            np.testing.assert_allclose(a / scale, e / scale, rtol=0, atol=tolerance)


# ---- simplify ---------------------------------------------------------------------------------


def test_constants_are_folded():
    c = tf.constant([1.0, 2.0])
    graph = trace(lambda x: x + tf.exp(c) * 2.0, np.float32([1, 2]))
    assert names(simplify(graph)) == ["add"]


def test_nodes_of_constants_are_folded():
    graph = Graph()
    x = graph.input((2,), tf.float32._code)
    c = graph.constant(tf.constant([1.0, 2.0]))
    (e,) = graph.add(tf.exp, [c], (), [((2,), c.dtype)])
    (y,) = graph.add(tf.add, [x, e], (), [((2,), c.dtype)])
    graph.outputs = [y, e]
    simple = simplify(graph)
    verify(simple)
    assert names(simple) == ["add"]
    np.testing.assert_allclose(simple.outputs[1].constant, np.exp([1.0, 2.0]), rtol=1e-6)


def test_common_subexpressions_are_one():
    simple = check(lambda x: tf.sin(x) * 2.0 + tf.cos(tf.sin(x)), *numbers(0, (3,)))
    assert names(simple).count("sin") == 1


def test_equal_ops_with_other_attributes_stay_two():
    simple = check(
        lambda x: (tf.reduce_sum(x, 0, True), tf.reduce_sum(x, 1, True), tf.reduce_sum(x, 0)),
        *numbers(1, (3, 3)),
    )
    assert names(simple).count("sum") == 3


def test_dead_code_is_removed():
    def f(x):
        tf.exp(x) @ x
        return x + 1.0

    assert names(check(f, *numbers(2, (3, 3)))) == ["add"]


def test_broadcasts_of_operands_go():
    simple = check(
        lambda x, r: x * tf.broadcast_to(r, [4, 3]) + tf.broadcast_to(r[0], [4, 3]), *numbers(3, (4, 3), (3,))
    )
    assert "broadcast_to" not in names(simple)


def test_a_broadcast_that_makes_the_shape_stays():
    simple = check(lambda r: tf.broadcast_to(r, [4, 3]) + 1.0, *numbers(4, (3,)))
    assert simple.outputs[0].shape == (4, 3)


@pytest.mark.parametrize("perm", [(0, 2, 1), (1, 0, 2), (2, 1, 0), (0, 1, 2)])
def test_transposes_go_into_products(perm):
    simple = check(lambda x, y: tf.matmul(tf.transpose(x, perm), y), *numbers(5, (3, 3, 3), (3, 3, 3)))
    assert ("transpose" not in names(simple)) == (perm in ((0, 2, 1), (0, 1, 2)))


def test_transposes_of_both_operands_and_of_transposed_reads():
    def f(x, y):
        return [
            tf.transpose(x) @ tf.transpose(y),
            tf.matmul(tf.transpose(x), y, transpose_a=True),
            tf.matmul(x, tf.transpose(y), transpose_b=True),
            tf.transpose(tf.transpose(x)),
        ]

    assert "transpose" not in names(check(f, *numbers(6, (4, 4), (4, 4))))


@pytest.mark.parametrize("flags", [(a, b) for a in (False, True) for b in (False, True)])
@pytest.mark.parametrize("side", [0, 1])
def test_products_with_equal_rows_read_one(side, flags):
    shapes = [(7, 5) if not flags[0] else (5, 7), (5, 3) if not flags[1] else (3, 5)]
    (other,) = numbers(27, shapes[1 - side])
    same = np.tile(numbers(28, shapes[side][1:])[0], (shapes[side][0], 1))

    def f(x):
        pair = (tf.constant(same), x) if side == 0 else (x, tf.constant(same))
        return tf.matmul(*pair, transpose_a=flags[0], transpose_b=flags[1])

    simple = simplify(trace(f, other))
    assert all(v.constant is None or 1 in v.shape or not v.shape for n in simple.nodes for v in n.operands)
    check(f, other)


def test_broadcasts_move_behind_element_wise_ops():
    def f(x):
        return tf.broadcast_to(x, (5, 7)) * 3.0 + 1.0

    (x,) = numbers(29, (5, 1))
    assert names(simplify(trace(f, x)))[-1] == "broadcast_to"
    check(f, x)


def test_means_become_sums():
    simple = check(
        lambda x: [tf.reduce_mean(x), tf.reduce_mean(x, 0), tf.reduce_mean(x, [1], True)], *numbers(7, (4, 5))
    )
    assert "mean" not in names(simple) and names(simple).count("sum") == 3


def test_mean_of_nothing_is_not_a_number():
    graph = trace(lambda x: tf.reduce_mean(x, 0), np.zeros((0, 3), np.float32))
    assert np.isnan(compile_graph(graph).run([tf.zeros([0, 3])])[0]).all()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * 1.0,
        lambda x: x + 0.0,
        lambda x: x - 0.0,
        lambda x: x / 1.0,
        lambda x: tf.negative(-x),
        lambda x: x**1.0,
        lambda x: tf.reshape(tf.reshape(x, [6]), [2, 3]),
        lambda x: tf.identity(tf.cast(x, tf.float32)),
        lambda x: tf.broadcast_to(x, [2, 3]),
    ],
)
def test_ops_without_effect_are_removed(f):
    assert names(check(f, *numbers(8, (2, 3)))) == []


@pytest.mark.parametrize(
    "f, expected",
    [
        (lambda x: x**2.0, ["square"]),
        (lambda x: (x * 2.0) * 4.0, ["mul"]),
        (lambda x: x + (-tf.sin(x)), ["sin", "sub"]),
        (lambda x: x - (-tf.sin(x)), ["sin", "add"]),
        (lambda x: -(x - tf.sin(x)), ["sin", "sub"]),
        (lambda x: x / 4.0, ["mul"]),
    ],
)
def test_algebra(f, expected):
    assert names(check(f, *numbers(9, (2, 3)))) == expected


def test_algebra_keeps_the_shape():
    one = np.ones((2, 1, 1), np.float32)
    simple = check(lambda x: [x * one[:1], x + 0.0 * one, x**one, x / one, x - 0 * one], *numbers(10, (3,)))
    assert {v.shape for v in simple.outputs} == {(1, 1, 3), (2, 1, 3)}


def test_factors_that_overflow_together_stay_apart():
    check(lambda x: (x * 1e-30) * 1e-30 * 1e30, np.float32([1e20, 1e25]))
    check(lambda x: (x * 1e30) * 1e30, np.float32([1e-30, 1e-35]))
    check(lambda x: x / 1e-40, np.float32([0, 1e-38]))
    check(lambda x: x / 3e38, np.float32([1e38, 3e38]))


def test_algebra_leaves_nan_and_infinity():
    check(
        lambda x: [x * 0.0, x - x, x / x, x**2.0, tf.negative(-x), x / 2.0],
        np.float32([np.inf, -np.inf, np.nan, 1]) * 1,
    )


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8", "int64", "complex64", "float16"])
def test_algebra_of_other_types(dtype):
    a = np.array([1, 2, 3, 4]).astype(dtype)
    check(lambda x: [(x * 3) * 5, x + x - x, x * 1, x + 0, x * x], a)


def test_half_precision_is_divided_as_it_is():
    check(lambda x: [x / 60000.0, x / 3.0], np.float16([1000, 60000, 3]), limit=1e-7)


# ---- fuse -------------------------------------------------------------------------------------


def test_a_chain_is_one_cluster():
    (step,) = steps_of(trace(lambda x: tf.exp(tf.sin(x) * 2.0 + x), *numbers(11, (50,))))
    assert isinstance(step, Cluster) and len(step.nodes) == 4


def test_a_node_alone_is_no_cluster():
    (step,) = steps_of(trace(tf.exp, *numbers(12, (5,))))
    assert isinstance(step, Node)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_row_column_and_scalar_operands(shape, dtype):
    if len(shape) < 2:
        shapes = [shape, shape, (), ()]
    else:
        shapes = [shape, shape[-1:], (*shape[:1], *(1,) * (len(shape) - 1)), ()]
    x, row, column, scalar = numbers(13, *shapes, dtype=dtype)
    check(lambda x, r, c, s: tf.tanh(x * r + c) * s - tf.sin(x - c) / (r * r + 2.0), x, row, column, scalar)


@pytest.mark.parametrize("shape", [s for s in SHAPES if len(s) > 1 and 0 not in s and s[0] > 1])
def test_operands_that_repeat_are_in_the_cluster(shape):
    x, row, column = numbers(14, shape, shape[-1:], (shape[0], *(1,) * (len(shape) - 1)))
    if len(shape) == 2:
        assert len(steps_of(trace(lambda x, r, c: tf.exp(x * r + c), x, row, column))) == 1


@pytest.mark.parametrize(
    "reduce", [tf.reduce_sum, tf.reduce_max, tf.reduce_min, tf.reduce_prod, tf.reduce_mean]
)
@pytest.mark.parametrize("shape", SHAPES)
def test_epilogues(shape, reduce):
    (x,) = numbers(15, shape)
    axes = [None, *range(len(shape)), *([(0, 1)] if len(shape) > 1 else [])]
    for axis in axes:
        for keep in (False, True):
            # Products of thousands of numbers must stay near one.
            check(lambda x, a=axis, k=keep: reduce(1.0 + 1e-3 * tf.sin(x), axis=a, keepdims=k), x, limit=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_several_epilogues_of_one_cluster(shape, dtype):
    (x,) = numbers(16, shape, dtype=dtype)

    def f(x):
        y = tf.tanh(x)
        z = y * y
        last = tf.reduce_sum(z, axis=-1) if shape else z
        first = tf.reduce_max(y, axis=0) if shape and shape[0] else y
        return [y, tf.reduce_sum(z), last, first, tf.reduce_sum(y, axis=-1) if shape else y]

    check(f, x, limit=1e-4 if dtype == "float32" else None)


@pytest.mark.parametrize("over, inner", [((0,), 13), ((1,), 13), ((0, 1), 0)])
def test_epilogues_are_in_the_cluster(over, inner):
    graph = trace(lambda x: tf.reduce_sum(tf.exp(x) * x, axis=over), *numbers(17, (7, 13)))
    (cluster,) = steps_of(graph)
    ending = cluster.columns if over == (1,) else cluster.epilogues
    assert len(ending) == 1 and cluster.inner == inner


def _kernels(graph):
    return [op[0] for s in lower.lowered(graph)[1] if s.what == "cluster" for op in s.object[3]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("second", [tf.add, tf.subtract, tf.multiply, tf.divide])
@pytest.mark.parametrize("first", [tf.add, tf.subtract, tf.multiply, lambda x, y: tf.square(x)])
def test_two_operations_in_one_loop(first, second, dtype):
    """A fused pair gives the same bits as its two operations, whichever operand the first one is."""
    x, y, z = numbers(30, (7, 13), (7, 13), (13,), dtype=dtype)
    for f in (lambda x, y, z: second(first(x, y), z), lambda x, y, z: second(z, first(x, y))):
        graph = trace(f, x, y, z)
        (kernel,) = _kernels(graph)
        assert "." in kernel
        (out,) = compile_graph(graph).run([tf.constant(a) for a in (x, y, z)])
        np.testing.assert_array_equal(out.numpy(), np.asarray(f(x, y, z)))


def test_a_value_that_is_read_twice_is_not_fused_into_a_pair():
    (x, y) = numbers(31, (7,), (7,))

    def f(x, y):
        t = x * y
        return [t + x, t - y]

    assert _kernels(trace(f, x, y)) == ["mul", "add", "sub"]
    check(f, x, y)
    check(lambda x, y: [x * y, x * y + x], x, y)
    check(lambda x, y: [tf.reduce_sum(x * y), (x - y) * (x - y), (x + y) / (x * y)], x, y)


@pytest.mark.parametrize("shape", [(5,), (7, 13), (3, 5000), (0, 3)])
def test_epilogues_of_booleans(shape):
    check(
        lambda x: [
            tf.reduce_any(x > 1.9),
            tf.reduce_all(x > -1.99, axis=0),
            tf.reduce_any(tf.logical_not(x < 0), axis=-1),
        ],
        *numbers(18, shape),
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_mixed_types_in_a_cluster(shape):
    def f(x):
        wide = tf.cast(x * 2.0, tf.float64) + 0.5
        mask = tf.cast(wide > 0.25, tf.float32)
        number = tf.cast(tf.round(x * 10.0), tf.int32) * 3
        half = tf.cast(tf.cast(x, tf.float16), tf.float32)
        return [
            mask * x + half,
            wide * tf.cast(number, tf.float64),
            tf.where(wide > 0, x, -x),
            number,
            wide > 0,
        ]

    check(f, *numbers(19, shape))


def test_complex_numbers_in_a_cluster():
    def f(x, y):
        z = tf.complex(x, y) * tf.complex(y, x)
        return [tf.math.real(z) + tf.math.imag(z) * x, tf.math.conj(z)]

    check(f, *numbers(20, (9, 7), (9, 7)))


def test_readers_of_an_epilogue_are_in_another_cluster():
    def f(x):
        y = tf.exp(x)
        return [
            y / tf.reduce_sum(y),
            y / tf.reduce_sum(y, axis=-1, keepdims=True),
            y - tf.reduce_max(y, axis=0),
        ]

    check(f, *numbers(21, (6, 5)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shape", [*(s for s in SHAPES if len(s) > 1), (3, 8192), (3, 8193), (40, 64), (64, 64)]
)
def test_ops_that_read_a_reduction_of_their_row(shape, dtype):
    x, scale, other = numbers(27, shape, shape[-1:], shape, dtype=dtype)

    def f(x, scale, other):
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        y = (x - mean) * tf.math.rsqrt(variance + 1e-3) * scale
        top = tf.reduce_max(tf.abs(y), axis=-1, keepdims=True) + 1.0
        z = tf.exp(y / top) * other
        total = tf.reduce_sum(z * scale, axis=-1)
        far = tf.cast(z > tf.reshape(total, top.shape), z.dtype)
        return [
            y,
            total,
            total * 2.0,
            far,
            tf.reduce_sum(far * y, axis=0),
            tf.reduce_sum(other),
            z / (top * top),
        ]

    check(f, x, scale, other, limit=2e-3 if dtype == "float32" else 1e-10)


def test_clusters_with_epilogues_become_one():
    def f(x):
        y, z = tf.exp(x), tf.cos(x)
        return [tf.reduce_sum(y), tf.reduce_max(z), y * z]

    x = numbers(25, (6, 5))
    (cluster,) = steps_of(trace(f, *x))
    assert len(cluster.epilogues) == 2
    check(f, *x)


def test_clusters_that_read_each_others_epilogues_stay_apart():
    def f(x):
        y = tf.exp(x)
        z = tf.cos(x) - tf.reduce_sum(y)
        return [y * z, tf.reduce_max(z)]

    check(f, *numbers(26, (6, 5)))


def test_the_ones_that_a_gradient_starts_from_are_not_computed_with():
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.tanh(x) * tf.exp(-x * x) + tf.sin(x))
        return y, tape.gradient(y, x)

    shown = tf.function(f).pretty(tf.zeros([5000]))
    assert "constant" not in shown and shown.count("one loop") == 1


def test_clusters_do_not_wait_for_each_other():
    def f(p, q):
        a, d = tf.exp(p), tf.sin(q)
        e = d * tf.transpose(a)  # so the cluster of d waits for a ...
        return [a + d, e]  # ... and that of a would wait for d

    check(f, *numbers(22, (5, 5), (5, 5)))


def test_clusters_do_not_wait_for_each_other_over_a_third():
    def f(p, q, r):
        a, b, c = tf.exp(p), tf.sin(q), tf.cos(r)
        x = b * tf.transpose(a)
        y = c * tf.transpose(b)
        return [x, y, a + c, tf.transpose(x) + y]

    check(f, *numbers(23, (4, 4), (4, 4), (4, 4)))


def test_long_chains():
    def f(x, w):
        for k in range(200):
            x = tf.tanh(x @ w + float(k)) if k % 10 == 9 else x * 0.99 + tf.sin(x) * 0.01
        return [x, tf.reduce_sum(x)]

    check(f, *numbers(24, (3, 3), (3, 3)))


def test_a_value_read_often():
    def f(x):
        y = tf.exp(x)
        return [y + k for k in range(12)] + [tf.reduce_sum(y * float(k)) for k in range(6)] + [y]

    check(f, *numbers(25, (40,)))


# ---- plan -------------------------------------------------------------------------------------


def test_memory_is_used_again():
    def f(x):
        for _ in range(20):
            x = tf.tanh(x @ x)
        return x

    with planned() as seen:
        compile_graph(trace(f, *numbers(26, (32, 32))))
    ((_, _, _, _, arena),) = seen
    assert arena <= 4 * 32 * 32 * 4


def test_an_unread_result_beside_a_read_one():
    def f(x):
        values, _ = tf.math.top_k(x, k=2)
        _, places = tf.math.top_k(tf.sin(x), k=3)
        return [values * 2.0, tf.cast(places, tf.float32) + 1.0]

    check(f, *numbers(27, (4, 6)))


def test_second_results_of_ops_keep_their_place():
    labels = tf.constant([0, 2, 1])

    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x)
        return tape.gradient(y, x) * 2.0

    check(f, *numbers(28, (3, 4)))


def test_results_that_are_inputs_constants_and_each_other():
    c = tf.constant([5.0])

    def f(x, y):
        z = tf.exp(x)
        return [x, y, z, z, tf.identity(z), tf.reshape(z, [6]), tf.reshape(x, [3, 2]), c + 0.0 * x[0, 0], x]

    check(f, *numbers(29, (2, 3), (4,)))


def test_a_result_that_is_a_constant():
    graph = Graph()
    graph.input((2,), tf.float32._code)
    c = graph.constant(tf.constant([1.0, 2.0]))
    graph.outputs = [c, c, graph.inputs[0]]
    outs = compile_graph(graph).run([tf.constant([3.0, 4.0])])
    assert [list(np.array(o)) for o in outs] == [[1, 2], [1, 2], [3, 4]]


def test_a_graph_without_nodes_or_outputs():
    graph = Graph()
    graph.input((2,), tf.float32._code)
    assert list(compile_graph(graph).run([tf.zeros([2])])) == []


def test_views_of_values_that_die():
    def f(x):
        y = tf.sin(x @ x)
        part, row = y[1:3], y[0]
        z = tf.cos(y @ y)  # takes memory while the views are alive
        w = tf.exp(z @ x)
        return [part, row + 1.0, w[2:], tf.reshape(part, [-1]), part @ w, tf.split(w, 2)[1] * 1.5]

    check(f, *numbers(30, (4, 4)))


def test_reshapes_of_values_that_die():
    def f(x):
        y = tf.sin(x @ x)
        flat = tf.reshape(y, [16])
        z = tf.cos(x @ tf.exp(x))
        return [
            tf.reduce_sum(tf.sort(flat)[:3]) + z,
            tf.expand_dims(flat, 0) * 2.0,
            tf.squeeze(tf.reshape(z, [1, 16])),
        ]

    check(f, *numbers(31, (4, 4)))


def test_sizes_of_zero():
    def f(x, y):
        return [
            tf.exp(x @ y),
            tf.reduce_sum(x, 0),
            tf.reduce_sum(tf.exp(x)),
            tf.concat([tf.sin(x), x], 0),
            y + 1.0,
        ]

    check(f, np.zeros((0, 3), np.float32), *numbers(32, (3, 2)))


# ---- effects ----------------------------------------------------------------------------------


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


# ---- random graphs ----------------------------------------------------------------------------

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


def test_a_variable_is_not_written_over_while_a_slice_of_it_is_needed():
    """A leading slice is a part of the variable's memory."""
    v = tf.Variable([1.0, 2.0, 3.0])

    @tf.function
    def swap():
        first = v[0]
        v.assign_add(v)
        other = v - 1.0
        v[0].assign(first)
        return other

    for _ in range(2):
        v.assign([1.0, 2.0, 3.0])
        assert swap().numpy().tolist() == [1.0, 3.0, 5.0]
        assert v.numpy().tolist() == [1.0, 4.0, 6.0]


# ---- sums of products -----------------------------------------------------------------------------


def _factors(flags, count=6, rows=30, inner=4, columns=50):
    shapes = [
        (inner, rows) if flags[0] else (rows, inner),
        (columns, inner) if flags[1] else (inner, columns),
    ]
    return numbers(7, *(shapes * count))


@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("rest", [0, 2])
def test_a_sum_of_products_is_one_product(flags, rest):
    def f(*xs):
        xs, more = xs[: len(xs) - rest], xs[len(xs) - rest :]
        total = None
        for k in range(0, len(xs), 2):
            product = tf.matmul(xs[k], xs[k + 1], *flags)
            total = product if total is None else total + product
            if k == 4:
                for x in more:
                    total = total + x
        return tf.sin(total), xs[0] + 1.0

    arrays = [*_factors(flags), *numbers(8, *[(30, 50)] * rest)]
    check(f, *arrays)
    joined = join_products(simplify(trace(f, *arrays), final=True))
    verify(joined)
    assert names(joined).count("matmul") == 1 and names(joined).count("add") == rest + 1


@pytest.mark.parametrize("kind", ["few", "read", "large", "mixed"])
def test_sums_of_products_that_stay(kind):
    def f(*xs):
        products = [tf.matmul(xs[k], xs[k + 1], *flags) for k in range(0, len(xs), 2)]
        total = products[0]
        for p in products[1:]:
            total = total + p
        return (total, *products) if kind == "read" else total

    flags = (True, False)
    arrays = _factors(flags, 3 if kind == "few" else 6, inner=40 if kind == "large" else 4)
    if kind == "mixed":  # float16 is summed up in another type
        arrays = [a.astype("float16") for a in arrays]
    check(f, *arrays)
    graph = simplify(trace(f, *arrays), final=True)
    assert join_products(graph) is graph


def test_joining_products_leaves_the_other_nodes_and_finds_equal_ones():
    flags = (True, False)
    arrays = _factors(flags)

    def f(*xs):
        ys = [tf.sin(x) for x in xs]
        total = tf.matmul(ys[0], ys[1], *flags)
        for k in range(2, len(ys), 2):
            total = total + tf.matmul(ys[k], ys[k + 1], *flags)
        return tf.stack(ys[::2]) * 2.0, total

    graph = simplify(trace(f, *arrays), final=True)
    joined = join_products(graph)
    verify(joined)
    assert [n for n in joined.nodes if n.name == "sin"] == [n for n in graph.nodes if n.name == "sin"]
    assert names(joined).count("stack") == 2  # of the first factors, once for both, and of the second ones
    check(f, *arrays)


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


def test_steps_of_a_recurrent_net_share_one_gradient_product():
    w = tf.Variable(numbers(9, (24, 24))[0] / 8)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            h = tf.zeros([3, 24])
            for t in range(8):
                h = tf.tanh(h @ w + x[t])
            loss = tf.reduce_sum(h * h)
        return tape.gradient(loss, w)

    x = tf.constant(numbers(10, (8, 3, 24))[0])
    by_hand, delta = np.zeros((24, 24)), None
    states = [np.zeros((3, 24))]
    for t in range(8):
        states.append(np.tanh(states[-1] @ w.numpy() + x.numpy()[t]))
    delta = 2 * states[-1]
    for t in range(7, -1, -1):
        delta = delta * (1 - states[t + 1] ** 2)
        by_hand += states[t].T @ delta
        delta = delta @ w.numpy().T
    np.testing.assert_allclose(step(x), by_hand, rtol=1e-4, atol=1e-5)
    products = [line for line in str(step.profile(x, repeats=1)).splitlines() if "matmul" in line]
    assert sum("[21,24] [21,24]" in line for line in products) == 1
