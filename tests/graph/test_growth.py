"""The cost of compiling grows linearly with the program. Steps and bytes are counted, not seconds."""

import json
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import gradtape as tf
from gradtape import _core
from gradtape._src.engines.native import fuse, lower, plan
from gradtape._src.graph.callable import GraphFunction
from gradtape._src.graph.ir import Graph, Node, Value, verify
from gradtape._src.graph.simplify import simplify
from gradtape._src.ops.table import TABLE

_N_LOG_N = 1.25  # log(4 n) / log(n) for the sizes here
F32 = 11


def _op(graph, name, *operands, attrs=(), shape=None):
    return graph.add(
        TABLE[name].op, list(operands), attrs, [(operands[0].shape if shape is None else shape, F32)]
    )[0]


def chain(g, x, n):
    for _ in range(n):
        x = _op(g, "sin", x)
    return [x]


def results(g, x, n):
    return [_op(g, "sin", _op(g, "mul", x, _number(g, k))) for k in range(n // 2)]


def tree(g, x, n):
    level = results(g, x, n)
    while len(level) > 1:
        level = [
            _op(g, "mul", *level[k : k + 2]) if level[k + 1 :] else level[k] for k in range(0, len(level), 2)
        ]
    return level


def ladder(g, x, n):
    a, b = x, _op(g, "exp", x)
    for _ in range(n // 2):
        a, b = _op(g, "mul", _op(g, "sin", a), b), a
    return [a, b]


def alive(g, x, n):
    """Products that are all alive at the same time, read in reverse order."""
    made = [_op(g, "matmul", x, _op(g, "add", x, _number(g, k)), attrs=(False, False)) for k in range(n // 3)]
    y = made[0]
    for v in made[::-1]:
        y = _op(g, "matmul", y, v, attrs=(False, False))
    return [y]


def shapes(g, x, n):
    """Aliases of the results of products, and aliases of these."""
    y = x
    for _ in range(n // 3):
        y = _op(g, "matmul", y, x, attrs=(False, False))
        y = _op(g, "expand_dims", y, attrs=(0,), shape=(1, *y.shape))
        y = _op(g, "squeeze", y, attrs=((0,),), shape=y.shape[1:])
    return [y]


def sums(g, x, n):
    """Reductions at the end of clusters."""
    return [_op(g, "sum", v, attrs=((0, 1), False), shape=()) for v in results(g, x, n)]


def updates(g, x, n):
    """New values of n / 4 variables."""
    out = []
    for _ in range(n // 4):
        v = g.input(x.shape, F32)
        out.append(_op(g, "sub", v, _op(g, "mul", _op(g, "tanh", v), x)))
    return out


PROGRAMS = (chain, results, tree, ladder, alive, shapes, sums, updates)


def _number(g, k):
    return g.constant(_core.scalar(1.0 + k, F32))


def _graph(make, n):
    g = Graph()
    x = g.input((2, 2), F32)
    g.outputs = make(g, x, n)
    return g


def _count_steps(f):
    """How many functions a call of `f` calls, how often values and nodes are compared or looked up included."""
    count = 0

    def note(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    with pytest.MonkeyPatch.context() as patch:
        for kind in (Value, Node):  # so that each comparison in a search through a list counts
            patch.setattr(kind, "__eq__", lambda a, b: a is b)
            patch.setattr(kind, "__hash__", lambda a: id(a) >> 4)
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            f()
        finally:
            sys.setprofile(before)
    return count


def _peak_bytes(f):
    tracemalloc.start()
    try:
        f()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _compile(graph):
    updates = [k + 1 for k in range(len(graph.outputs))] if len(graph.inputs) > 1 else None
    return lower.compile_graph(graph, updates)


def _growth(measure, run, make, n):
    """How much more `run` costs for a graph of four times the size, over four times the cost."""
    run(_graph(make, 60))  # creates caches
    small, large = (
        measure(lambda graph=graph: run(graph)) for graph in (_graph(make, n), _graph(make, 4 * n))
    )
    return large / (4 * small)


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda f: f.__name__)
def test_steps_of_compiling(monkeypatch, make):
    monkeypatch.setattr(fuse, "WINDOW", 64)  # the work within a window may be quadratic
    assert _growth(_count_steps, _compile, make, 300) < _N_LOG_N


@pytest.mark.parametrize("make", [chain, ladder], ids=lambda f: f.__name__)
def test_memory_of_fusing(monkeypatch, make):
    monkeypatch.setattr(fuse, "WINDOW", 64)
    assert _growth(_peak_bytes, fuse.fuse, make, 500) < _N_LOG_N


def test_steps_of_finding_holes():
    def many(n):
        holes = plan._Holes()
        places = [holes.take(64) for _ in range(n)]
        for at in places[::2]:
            holes.give(at, 64)
        for _ in range(n // 2):
            holes.take(64)

    small, large = (_count_steps(lambda n=n: many(n)) for n in (250, 1000))
    assert large < 4 * _N_LOG_N * small


@pytest.mark.parametrize("make", [chain, results, updates], ids=lambda f: f.__name__)
def test_steps_of_differentiating(make):
    def derivative(graph):
        GraphFunction(graph).derivative((True,) * len(graph.inputs))

    assert _growth(_count_steps, derivative, make, 300) < _N_LOG_N


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda f: f.__name__)
def test_windows_change_no_result(monkeypatch, make):
    whole = _compile(_graph(make, 300))
    monkeypatch.setattr(fuse, "WINDOW", 32)
    cut = _compile(_graph(make, 300))
    inputs = [
        tf.constant(np.full((2, 2), 0.3 + 0.001 * k, np.float32))
        for k in range(len(_graph(make, 300).inputs))
    ]
    for a, b in zip(whole.run(inputs), cut.run(inputs), strict=True):
        np.testing.assert_array_equal(a, b)


def test_no_cluster_reaches_over_a_window(monkeypatch):
    monkeypatch.setattr(fuse, "WINDOW", 32)
    graph = simplify(_graph(tree, 300))
    verify(graph)
    index = {node: i for i, node in enumerate(graph.nodes)}
    steps = fuse.fuse(graph)
    clusters = [s for s in steps if isinstance(s, fuse.Cluster)]
    assert clusters and all(len({index[node] // 32 for node in c.nodes}) == 1 for c in clusters)
    assert sum(len(s.nodes) if isinstance(s, fuse.Cluster) else 1 for s in steps) == len(graph.nodes)


def test_a_simplified_graph_is_not_simplified_again():
    graph = simplify(_graph(ladder, 20))
    assert graph.simplified and simplify(graph) is graph and simplify(graph, final=True) is graph
    divided = Graph()
    x, y = divided.input((2,), 4), divided.input((2,), 4)
    divided.outputs = list(divided.add(TABLE["floordiv"].op, [x, y], (), [((2,), 4)]))
    divided = simplify(divided)
    assert [n.name for n in simplify(divided, final=True).nodes] == ["divisor", "floordiv"]


def test_a_broadcast_of_a_broadcast_is_left_out():
    g = Graph()
    x, y = g.input((), F32), g.input((5, 3), F32)
    row = _op(g, "broadcast_to", x, attrs=((3,),), shape=(3,))
    g.outputs = [_op(g, "add", y, _op(g, "broadcast_to", row, attrs=((5, 3),), shape=(5, 3)))]
    assert [n.name for n in simplify(g).nodes] == ["add"]


# ---- holes of the arena -----------------------------------------------------------------------


def test_holes_are_those_of_a_plain_search():
    """The smallest hole that fits, of equal ones the first, joined with its neighbours."""
    rng = np.random.default_rng(3)
    holes, free, size, taken = plan._Holes(), [], 0, []
    for _ in range(2000):
        if taken and rng.random() < 0.48:
            at, nbytes = taken.pop(int(rng.integers(len(taken))))
            holes.give(at, nbytes)
            merged = []
            for begin, have in sorted([*free, (at, nbytes)]):
                if merged and sum(merged[-1]) == begin:
                    merged[-1] = (merged[-1][0], merged[-1][1] + have)
                else:
                    merged.append((begin, have))
            free = merged
            continue
        nbytes = 64 * int(rng.integers(1, 9))
        fitting = [(have, begin) for begin, have in free if have >= nbytes]
        if fitting:
            have, at = min(fitting)
            free.remove((at, have))
            free = sorted([*free, *([(at + nbytes, have - nbytes)] if have > nbytes else [])])
        else:
            at = free.pop()[0] if free and sum(free[-1]) == size else size
            size = at + nbytes
        assert holes.take(nbytes) == at and holes.size == size
        taken.append((at, nbytes))
    assert sorted(holes.free.items()) == free


# ---- tapes ------------------------------------------------------------------------------------


def _gradient(n, x):
    with tf.GradientTape() as tape:
        y = x * 1.0
        for _ in range(n):
            y = tf.sin(y)
    return tape.gradient(y, x)


@pytest.fixture
def compiler():
    before = _core.is_compiling()
    _core.set_compile(True)
    _core.clear_compiled()
    yield
    _core.clear_compiled()
    _core.set_compile(before)


def test_long_passes_need_more_repetitions(compiler):
    if _core.sightings_needed(0) != 2:
        pytest.skip("GRADTAPE_COMPILE=always")
    needed = [_core.sightings_needed(n) for n in (10, 2_999, 3_000, 10_000, 100_000, 1_000_000)]
    assert needed == [2, 2, 3, 10, 100, 100]
    x = tf.Variable(0.5)
    for sighting in range(1, 6):
        _gradient(4_000, x)
        assert _core.compile_info()["programs"] == (sighting >= 4)


def test_parts_of_a_long_pass_share_programs(compiler):
    x = tf.Variable(0.5)
    found = []
    for n in (40_000, 160_000):
        _core.clear_compiled()
        _gradient(n, x)
        found.append(_core.compile_info())
    assert found[0]["structures"] == found[1]["structures"] <= 3
    if _core.sightings_needed(0) == 2:  # the first and the last part occurred once
        assert found[0]["programs"] == found[1]["programs"] == 1


def _loop(w, table, x):
    """Two states, weights that all iterations read, rows of a table."""
    a, b = x, tf.ones_like(x)
    middle = None
    for k in range(1_500):
        row = tf.gather(table, [k % 3])[0]
        a, b = tf.tanh(a * w + row), b + 0.01 * a * row
        if k == 700:
            middle = a
    return tf.reduce_sum(a * b), middle


def _several_results(w, table, x):
    for _ in range(900):
        p, q, r = tf.unstack(tf.tanh(x * w), axis=0)
        x = tf.stack([q, r * p, p + 0.5]) + table[0]
    return tf.reduce_sum(x), x


def _zeros_and_python(w, table, x):
    @tf.custom_gradient
    def own(v):
        return v * 2.0, lambda g: g * 3.0

    for k in range(2_500):
        x = 0.5 * tf.sin(x * w) + tf.round(x) * 1e-3
        if k == 5:
            x = own(x) * 0.25
    return tf.reduce_sum(x * table[1]), x


def _complex(w, table, x):
    z = tf.complex(x, x * 0.5)
    for _ in range(1_500):
        z = z * tf.complex(w, 0.1 * w) * 0.9 + tf.complex(table[0], x)
    return tf.math.real(tf.reduce_sum(z)), z


@pytest.mark.parametrize("program", [_loop, _several_results, _zeros_and_python, _complex])
@pytest.mark.parametrize("persistent", [False, True])
def test_a_pass_in_parts_is_the_pass(compiler, program, persistent):
    w = tf.Variable([0.3, -0.6, 0.9])
    table = tf.Variable(np.linspace(-0.5, 0.5, 9, dtype=np.float32).reshape(3, 3))
    x = tf.constant([0.1, 0.2, -0.4])
    unused = tf.Variable(1.0)

    def derivatives():
        with tf.GradientTape(persistent=persistent) as tape:
            tape.watch(x)
            y, middle = program(w, table, x)
        sources = [w, table, x, unused, middle]
        gradients = tape.gradient(y, sources)
        if persistent:
            gradients += tape.gradient(
                [y, middle], sources, output_gradients=[tf.constant(2.0), tf.ones_like(middle)]
            )
        return [None if g is None else tf.convert_to_tensor(g).numpy() for g in gradients]

    _core.set_compile(False)
    expected = derivatives()
    _core.set_compile(True)
    for _ in range(5):
        for got, wanted in zip(derivatives(), expected, strict=True):
            assert (got is None) == (wanted is None)
            if wanted is not None:
                np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=1e-6)
    assert _core.compile_info()["programs"] > 0


def test_a_pass_in_parts_is_followed_by_outer_tapes(compiler):
    x = tf.Variable([0.3, 0.7], dtype=tf.float64)

    def second():
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = x * 1.0
                for _ in range(3_000):
                    y = y + 1e-3 * tf.sin(y)
            g = inner.gradient(y, x)
        return outer.gradient(g, x).numpy()

    _core.set_compile(False)
    expected = second()
    _core.set_compile(True)
    for _ in range(5):
        np.testing.assert_allclose(second(), expected, rtol=1e-9)


_CHILD = """
import json, resource, sys
import gradtape as tf

def gradient(n):
    with tf.GradientTape() as tape:
        y = x * 1.0
        for _ in range(n):
            y = tf.sin(y)
    return float(tape.gradient(y, x))

x = tf.Variable(0.5)
n, times, more = json.loads(sys.argv[1])
gradient(10), gradient(10)
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more,) * 2)
print(json.dumps([gradient(n) for _ in range(times)]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("setting", "n", "times", "more"),
    [("1", 100_000, 3, 1_500_000_000), ("always", 24_000, 2, 500_000_000)],
    ids=["rules", "compiled"],
)
def test_a_long_chain_fits_into_little_memory(setting, n, times, more):
    got = subprocess.run(
        [sys.executable, "-c", _CHILD, json.dumps([n, times, more])],
        capture_output=True, text=True, check=False,
        env={"GRADTAPE_COMPILE": setting, "GRADTAPE_NUM_THREADS": "1", "PATH": ""},
    )  # fmt: skip
    assert got.returncode == 0, got.stderr[-2000:]
    y, expected = 0.5, 1.0
    for _ in range(n):
        expected *= np.cos(y)
        y = np.sin(y)
    np.testing.assert_allclose(json.loads(got.stdout), [expected] * times, rtol=2e-2)


def _resident() -> float:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096 / 2**20


_knows_its_size = pytest.mark.skipif(
    not os.path.exists("/proc/self/statm"), reason="only Linux tells what a process holds"
)


def _recorded(n):
    x = tf.constant(0.7)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(n):
            y = y * x
    return tape, y


@_knows_its_size
@pytest.mark.skipif(
    "free-threading" in sys.version, reason="records are of the system's allocator, which keeps their memory"
)
def test_a_long_tape_gives_its_memory_back():
    """In slabs: 75 MB of records and scalars, a few of which belong to live objects."""
    _recorded(1000)
    before = _resident()
    held = _recorded(200_000)
    most = _resident()
    del held
    assert most - before > 60
    assert _resident() - before < 0.25 * (most - before)


@_knows_its_size
def test_the_memory_of_a_long_tape_is_used_again():
    _recorded(200_000)
    before = _resident()
    for _ in range(5):
        _recorded(200_000)
    assert _resident() - before < 60  # less than one of the five
