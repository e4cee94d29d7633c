"""Checks for the tests of the passes between a graph and its program.

`check` runs a graph through all of them and checks the guarantees of each: well-formed graphs, steps in a valid order,
no overlap of values that are alive at the same time, and the same results as the graph applied op by op.
"""

import contextlib

import numpy as np

import gradtape as tf
from gradtape._src.base.dtypes import SIZES
from gradtape._src.engines.native import lower, plan
from gradtape._src.engines.native.fuse import Cluster, fuse
from gradtape._src.engines.native.lower import compile_graph
from gradtape._src.graph.callable import replay
from gradtape._src.graph.ir import Graph, symbolic, verify
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
