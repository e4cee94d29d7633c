"""Reductions of rows in the middle of clusters: the result of one is read while its row is in the cache."""

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.engines.native.fuse import Cluster, fuse
from gradtape._src.engines.native.lower import compile_graph, lowered
from gradtape._src.graph.ir import Graph, symbolic
from gradtape._src.graph.simplify import simplify


def layer_norm(x, scale, offset):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3)


def rms_norm(x, scale, offset):
    return x * tf.math.rsqrt(tf.reduce_mean(x * x, -1, keepdims=True) + 1e-3) * scale + offset


def softmax(x, scale, offset):
    e = tf.exp(scale * x - tf.reduce_max(scale * x, -1, keepdims=True))
    return e / tf.reduce_sum(e, -1, keepdims=True) + offset


def without_keepdims(x, scale, offset):
    mean = tf.reduce_mean(x, -1)
    away = tf.reduce_sum(tf.abs(x - tf.expand_dims(mean, -1)), -1)
    return x / tf.expand_dims(away + 1.0, -1) * scale + offset


FUNCTIONS = [layer_norm, rms_norm, softmax, without_keepdims]
SHAPES = [(1, 5), (5, 1), (7, 13), (13, 13), (64, 64), (37, 3), (130, 257), (3, 5000), (2, 3, 65), (3, 9000)]


def data(shape, dtype="float32", seed=3):
    rng = np.random.default_rng(seed)
    shapes = [shape, shape[-1:], shape[-1:], shape]
    return [tf.cast(rng.uniform(-2, 2, s), dtype) for s in shapes]


def both(f):
    """Value and gradient; the last operand is the cotangent."""

    def run(x, scale, offset, g):
        with tf.GradientTape() as tape:
            tape.watch([x, scale, offset])
            y = f(x, scale, offset)
        return [y, *tape.gradient(y, [x, scale, offset], output_gradients=g)]

    return run


def steps_of(f, *shapes, dtype=tf.float32):
    graph = Graph()
    outs = f(*[symbolic(graph.input(s, dtype._code)) for s in shapes])
    graph.outputs = [graph.value_of(t) for t in (outs if isinstance(outs, (list, tuple)) else [outs])]
    return fuse(simplify(graph)), graph


@pytest.mark.parametrize("f", FUNCTIONS)
def test_a_whole_chain_with_its_gradient_is_one_cluster(f):
    steps, _ = steps_of(both(f), (40, 20), (20,), (20,), (40, 20))
    (cluster,) = [s for s in steps if isinstance(s, Cluster)]
    rest = [v for s in steps if s is not cluster for v in s.operands]
    assert all(v.size <= 40 for v in rest)  # such as the sum of two gradients of the scale
    assert cluster.columns and len(cluster.epilogues) >= 2  # the gradients of scale and offset


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("f", FUNCTIONS)
def test_programs_agree_with_ops(f, shape, dtype):
    operands = data(shape, dtype)
    limit = {"float32": 3e-5, "float64": 1e-12, "float16": 1e-2, "bfloat16": 1e-1}[dtype]
    for a, b in zip(both(f)(*operands), tf.function(both(f))(*operands), strict=True):
        a, b = np.asarray(a, "float64"), np.asarray(b, "float64")
        np.testing.assert_allclose(b, a, rtol=limit, atol=limit * max(1.0, np.abs(a).max()))


@pytest.mark.parametrize("shape", [(3, 5), (5, 5), (6, 17)])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_gradients_are_central_differences(f, shape):
    x, scale, offset, g = data(shape, "float64")
    compiled = tf.function(both(f))
    _, *gradients = compiled(x, scale, offset, g)

    def total(*operands):
        return float(tf.reduce_sum(g * f(*operands)))

    operands = [x.numpy(), scale.numpy(), offset.numpy()]
    for k, gradient in enumerate(gradients):
        for at in np.ndindex(operands[k].shape):
            near = []
            for step in (1e-6, -1e-6):
                moved = [a.copy() for a in operands]
                moved[k][at] += step
                near.append(total(*map(tf.constant, moved)))
            assert abs((near[0] - near[1]) / 2e-6 - gradient.numpy()[at]) < 1e-6


@pytest.mark.parametrize("shape", [(1024, 256), (5000, 40), (64, 4096), (30000, 3), (300, 1025)])
def test_the_number_of_threads_does_not_matter(shape):
    operands = data(shape)
    before = tf.config.threading.get_intra_op_parallelism_threads()
    try:
        for f in FUNCTIONS:
            compiled, seen = tf.function(both(f)), []
            for threads in (1, 2):
                tf.config.threading.set_intra_op_parallelism_threads(threads)
                seen.append([r.numpy().tobytes() for r in compiled(*operands)])
            assert seen[0] == seen[1]
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(before)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_non_finite_values_stay_in_their_row(f, number):
    x, scale, offset, g = data((300, 65))
    x = tf.tensor_scatter_nd_update(x, [[7, 64]], [number])
    y, gx, _, _ = tf.function(both(f))(x, scale, offset, g)
    expected, gx_expected, _, _ = both(f)(x, scale, offset, g)
    for a, b in ((y, expected), (gx, gx_expected)):
        np.testing.assert_array_equal(np.isfinite(a), np.isfinite(b))
        assert np.isfinite(np.delete(a.numpy(), 7, axis=0)).all()


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
@pytest.mark.parametrize("f", [layer_norm, rms_norm])
def test_empty(f, shape):
    for a, b in zip(both(f)(*data(shape)), tf.function(both(f))(*data(shape)), strict=True):
        assert a.shape == b.shape
        np.testing.assert_array_equal(a, b)


def test_a_column_that_is_read_as_a_row_is_not_in_the_cluster():
    """A sum over columns of a square matrix has the shape of a row."""
    x = tf.reshape(tf.range(36.0), [6, 6])

    def f(x):
        total = tf.reduce_sum(x * 2.0, 1)
        return [x * 2.0 - total, (x + 1.0) * tf.exp(-total / 100.0) + tf.reduce_max(x, 1, keepdims=True)]

    for a, b in zip(f(x), tf.function(f)(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_long_rows_of_elements_of_different_widths():
    """A row goes through operations in pieces, which must not overwrite others that are still to be read."""

    def f(x, y):
        far, near = tf.exp(x) > y, x * y > 0.1
        total = tf.reduce_sum(tf.cast(far, x.dtype) * y, -1, keepdims=True)
        z = tf.where(far, x - total, y * total)
        w = tf.where(near, z * z, tf.tanh(z) + x)
        return [w / tf.reduce_max(tf.abs(w), -1, keepdims=True) + tf.cast(near, x.dtype) * z, z]

    for shape in ((9, 2100), (3, 8000)):
        x, _, _, y = data(shape, "float64")
        for a, b in zip(f(x, y), tf.function(f)(x, y), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-10)


def test_rows_of_different_lengths_are_in_different_clusters():
    def f(x):
        y = tf.exp(x)
        a = y / tf.reduce_sum(y, [1, 2], keepdims=True)
        return [a, y / tf.reduce_sum(y, 2, keepdims=True) + a]

    x = data((5, 6, 7))[0]
    for a, b in zip(f(x), tf.function(f)(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_one_reduction_alone_runs_as_the_op():
    """Nothing is saved if only one node reads the whole tile."""
    steps, _ = steps_of(lambda x: tf.sqrt(tf.reduce_mean(x, -1) + 1.0) * 2.0, (40, 20))
    assert not isinstance(steps[0], Cluster) and steps[0].name == "sum"
    assert len(steps) == 2 and not steps[1].columns


def test_other_shapes_of_a_reduction_alone():
    def f(x):
        total = tf.reduce_sum(x, -1)
        column = tf.expand_dims(total, -1)
        return [column, tf.sqrt(column) * 2.0 + 1.0, tf.exp(-total)]

    x = tf.abs(data((9, 11))[0])
    for a, b in zip(f(x), tf.function(f)(x), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_row_that_comes_to_be_a_column_is_not_in_the_cluster():
    """`y` is read as a row by the cluster whose columns are computed with it."""

    def f(x, y):
        y = tf.exp(y) + 1.0
        z = x * y
        return [z, z / tf.expand_dims(tf.reduce_sum(z, 1) * y, 1)]

    x, y, _, _ = data((12, 12))
    for a, b in zip(f(x, y), tf.function(f)(x, y), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4)


def test_results_of_reductions_leave_in_both_shapes():
    def f(x):
        total = tf.reduce_sum(x * x, -1)
        column = tf.expand_dims(total, -1)
        return [total, column, x / column, tf.sqrt(column)]

    x = data((9, 11))[0]
    for a, b in zip(f(x), tf.function(f)(x), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_products_are_summed_without_being_written_down():
    _, graph = steps_of(lambda x, y: x / tf.reduce_sum(x * y, -1, keepdims=True), (40, 20), (20,))
    (step,) = lowered(graph)[1]
    assert [op[0] for op in step.object[3]] == ["mul.sum", "div"]


def test_a_variable_is_written_over_after_its_rows_were_read():
    v = tf.Variable(data((50, 30))[0])

    @tf.function
    def step():
        v.assign(v / tf.sqrt(tf.reduce_sum(v * v, -1, keepdims=True)) * 2.0)

    expected = v.numpy() / np.sqrt((v.numpy() ** 2).sum(-1, keepdims=True)) * 2
    step()
    np.testing.assert_allclose(v, expected, rtol=1e-6)
    step()
    np.testing.assert_allclose(v, expected, rtol=1e-6)


def test_a_reduction_is_fused_with_a_cluster_that_reads_the_same():
    def f(x, g):
        bias = tf.reduce_sum(g, 0)
        return [bias, g * tf.exp(x)]

    steps, _ = steps_of(f, (40, 20), (40, 20))
    (cluster,) = steps
    assert [n.name for n in cluster.epilogues] == ["sum"]


def test_a_reduction_is_not_fused_with_ops_that_wait_for_it():
    def f(x, g):
        bias = tf.reduce_sum(g, 0)
        return g * tf.exp(x) + bias

    x, _, _, g = data((40, 20))
    np.testing.assert_allclose(tf.function(f)(x, g), f(x, g), rtol=1e-5)


@pytest.mark.parametrize("number", [0.1, 1.0])
def test_the_sum_of_equal_numbers_is_a_product(number):
    f = tf.function(lambda: tf.reduce_sum(tf.fill([300, 7], number), 0))
    np.testing.assert_allclose(f(), [300 * number] * 7, rtol=1e-6)


def test_a_program_whose_shapes_do_not_fit_is_refused(monkeypatch):
    """A reduction of rows gives a column: nothing else may be stored."""
    from gradtape._src.engines.native import lower

    right = lower._cluster_step
    changes = {
        "tile": lambda registers: [(k, 0 if b == 3 else b, w, n) for k, b, w, n in registers],
        "column": lambda registers: [(k, 3 if k == 2 else b, w, n) for k, b, w, n in registers],
    }
    for change in changes.values():

        def wrong(cluster, leaving, change=change):
            step = right(cluster, leaving)
            outer, inner, registers, *rest = step.object
            step.object = (outer, inner, change(registers), *rest)
            return step

        monkeypatch.setattr(lower, "_cluster_step", wrong)
        _, graph = steps_of(both(layer_norm), (40, 20), (20,), (20,), (40, 20))
        with pytest.raises(ValueError, match="cluster"):
            compile_graph(graph)
