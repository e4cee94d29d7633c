"""Rows on XLA beyond their samples: NaN, infinities, ties and windows; and the check of the contract itself."""

import numpy as np
import pytest

from gradtape import constant, testing
from gradtape._src import engines
from gradtape._src.graph.callable import GraphFunction
from gradtape._src.graph.ir import Graph, symbolic
from gradtape._src.ops.samples import at, call, floats, ints
from gradtape._src.ops.table import FLOAT, TABLE, elementwise, indexed
from gradtape._src.ops.windows import results_of

pytest.importorskip("jax", reason="needs gradtape[xla]")

NAN, INF = np.nan, np.inf


def same(name, arrays, *attrs):
    """Computes a row on XLA and natively, and compares."""
    tensors = [constant(a) for a in arrays]
    graph = Graph()
    out = TABLE[name].op(*(symbolic(graph.input(tuple(t.shape), t.dtype._code)) for t in tensors), *attrs)
    graph.outputs = [graph.value_of(o) for o in (out if isinstance(out, (tuple, list)) else [out])]
    on_xla = engines.xla_on("cpu").program(graph).run(tensors)
    native = GraphFunction(graph).program.run(tensors)
    for x, y in zip(on_xla, native, strict=True):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-4, atol=1e-5)


def f32(*rows):
    return np.array(rows, np.float32)


ROW = f32([1, NAN, 3, INF, 3, -INF, -0.0, 0.0, NAN, 2, -INF, np.finfo("f").min, np.finfo("f").max])


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_nan_is_last_in_both_orders(name, descending):
    same(name, [ROW], -1, descending)


@pytest.mark.parametrize("k", [1, 5, 9, 13])
def test_nan_is_never_among_the_largest(k):
    same("top_k", [ROW], k, True)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint64", "bool"])
def test_integers_are_sorted_downwards(dtype):
    values = np.array([3, -128, 127, 3, 0, -1, 5]).astype(dtype)
    same("argsort", [values], -1, True)
    same("sort", [values], -1, True)


@pytest.mark.parametrize("how", ["sum", "prod", "max", "min"])
def test_segments_without_rows_and_rows_without_a_segment(how):
    ids = np.array([0, 0, 1, 2, 2, -1], np.int32)
    same(f"unsorted_segment_{how}", [f32(1, NAN, -INF, 2, 5, NAN), ids], 4)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cumlogsumexp"])
@pytest.mark.parametrize(("exclusive", "reverse"), [(False, True), (True, False), (True, True)])
def test_scans_of_infinities(name, exclusive, reverse):
    x = f32([1, 2, INF, 4], [-INF, 1, NAN, 2], [-INF, -INF, -INF, 3])
    same(name, [x], 1, exclusive, reverse)


def test_the_last_update_at_a_place_stays():
    same("tensor_scatter_update", [f32(1, 2, 3), np.array([[1], [1], [0], [1]]), f32(4, 5, 6, 7)])


WINDOWS = {
    "apart": ((2, 8, 6, 3), ([2, 3], [2, 3], [1, 1], [])),
    "apart, over the edge": ((2, 9, 7, 3), ([2, 2], [2, 2], [1, 1], [-1])),
    "far apart": ((2, 9, 11, 3), ([2, 2], [3, 3], [1, 1], [])),
    "apart, padded": ((2, 9, 11, 3), ([2, 2], [2, 2], [1, 1], [1, 1, 1, 1])),
    "overlapping": ((2, 9, 11, 3), ([3, 3], [2, 2], [1, 1], [-1])),
    "large": ((1, 9, 11, 2), ([6, 5], [1, 1], [1, 1], [-1])),
    "with holes": ((2, 21, 3), ([3], [1], [3], [])),
}


@pytest.mark.parametrize("values", ["ties", "nan", "infinities", "all -inf"])
@pytest.mark.parametrize("windows", WINDOWS)
def test_the_first_of_the_largest_elements(windows, values):
    shape, window = WINDOWS[windows]
    rng = np.random.default_rng(1)
    x = rng.integers(0, 3, shape).astype(np.float32)
    if values == "nan":
        x[rng.random(shape) < 0.1] = NAN
    elif values == "infinities":
        x[rng.random(shape) < 0.3] = INF
        x[rng.random(shape) < 0.3] = -INF
    elif values == "all -inf":
        x[:] = -INF
    g = rng.normal(size=(shape[0], *results_of(shape[1:-1], *window), shape[-1])).astype(np.float32)
    same("max_pool", [x], *window)
    same("max_pool_argmax", [x], *window, True)
    same("max_unpool", [x, g], *window)


@pytest.mark.parametrize("causal", [False, True])
def test_queries_that_may_look_at_nothing(causal):
    rng = np.random.default_rng(2)
    q, k, v, g = (rng.normal(size=(2, 3, n, 4)).astype(np.float32) for n in (5, 7, 7, 5))
    bias = np.where(rng.random((2, 1, 5, 7)) < 0.4, -INF, 0).astype(np.float32)
    bias[0, 0, 2] = -INF
    out, lse = TABLE["attention"].op(q, k, v, bias, 0.5, causal)
    same("attention", [q, k, v, bias], 0.5, causal)
    same("attention_grad", [g, q, k, v, bias, out.numpy(), lse.numpy()], 0.5, causal)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_infinities(name):
    same(name, [f32([1, -INF, 2], [-INF, -INF, -INF], [NAN, 1, 2], [INF, 1, 2])])


def test_large_matrices_are_halved_before_their_exponential():
    x = np.random.default_rng(3).normal(size=(2, 4, 4)) * np.array([20.0, 0.1])[:, None, None]
    same("expm", [x])
    same("expm", [np.full((1, 2, 2), INF)])


# ---- the check of the contract ----


@pytest.fixture
def table():
    before = dict(TABLE)
    yield TABLE
    TABLE.clear()
    TABLE.update(before)


def test_a_lowering_to_another_function_is_found(table):
    elementwise(
        "test_tanh", FLOAT, native="tanh", deriv=lambda x, out: 1 - out * out, numpy=np.tanh, samples=floats(-3, 3),
        doc="tanh", xla="jnp.sin",
    )  # fmt: skip
    with pytest.raises(testing.ContractError, match="on XLA"):
        testing.check_op(TABLE["test_tanh"], ["xla"])


def test_a_lowering_that_refuses_nothing_is_found(table):
    indexed(
        "test_gather", FLOAT, "params indices:Index axis:Axis=0", native="gather", rule=(None, None),
        numpy=np.take, samples=[call(at([1.0, 2.0]), ints([1]))], doc="gather", xla="jnp.take",
        bad=[(call((2, 3), ints([5])), "InvalidArgumentError", "indices[0] = 5 is not in [0, 2)")],
    )  # fmt: skip
    with pytest.raises(testing.ContractError, match="nothing was raised"):
        testing.check_op(TABLE["test_gather"], ["xla"])
