"""Jacobians: the backward pass as a graph, run over all rows of the identity at once.

`pullback` gives the graph: its inputs are the residuals of the tape and one cotangent, its outputs gradients.
`jacobian` runs it over a batch of unit cotangents (reverse mode), or its transpose, which maps
tangents of a source to the tangent of the target, over unit tangents (forward mode), whichever
needs fewer rows. Rows that do not all fit into `config.jacobian_memory` run in chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import errors, settings
from gradtape._src.base.contexts import aside
from gradtape._src.base.dtypes import SIZES
from gradtape._src.base.progress import Progress
from gradtape._src.batching.batch import broadcast_rows, replay_batched
from gradtape._src.batching.linear import is_linear
from gradtape._src.batching.units import Units
from gradtape._src.control.control_ops import build, specs_of, zeros
from gradtape._src.graph.callable import GraphFunction, extract, pack, replay
from gradtape._src.graph.ir import Graph, Value, symbolic
from gradtape._src.graph.simplify import simplify
from gradtape._src.graph.sketch import sketch
from gradtape._src.graph.trace import Trace, never_runs
from gradtape._src.tensors.conversion import densify, read


class Seed(NamedTuple):
    """The rows of the identity in a shape; with `batch`, repeated for that many examples."""

    shape: tuple[int, ...]
    dtype: Any
    batch: int | None = None

    @staticmethod
    def of(x: Any) -> Seed:
        return Seed(tuple(x.shape), x.dtype)

    @property
    def rows(self) -> int:
        return _count(self.shape)

    def units(self) -> Units:
        return Units.identity(self.shape, self.dtype, self.batch)

    def chunk(self, start: int, count: int) -> Any:
        """Some of the rows, as a tensor."""
        flat = ops.one_hot(ops.range_(start, start + count), self.rows, dtype=self.dtype)
        if self.batch is None:
            return ops.reshape(flat, [count, *self.shape])
        return ops.broadcast_to(ops.reshape(flat, [count, 1, *self.shape]), [count, self.batch, *self.shape])


class Pullback(NamedTuple):
    """A backward pass as a graph, with its residuals."""

    function: GraphFunction  # inputs: the residuals, then the cotangent; outputs: dense gradients
    residuals: list
    places: list  # where among the outputs the gradient of each source is, or None


def pullback(tape: Any, y: Any, sources: list) -> Pullback | None:
    """The backward pass from `y`: from the cache if the tape has seen its structure, else traced.

    None if a custom gradient in the pass needs values and cannot be traced.
    """
    compiled = tape._pullback([y], sources)
    if compiled is not None:
        function, residuals = compiled
        return Pullback(function, residuals, function.places)
    outer = _core.current_trace()
    trace = Trace(outer if isinstance(outer, Trace) else None)
    seed = symbolic(trace.input(tuple(y.shape), y.dtype._code))
    try:
        with aside(trace):
            grads = [None if g is None else densify(g) for g in tape._backward([y], [seed], list(sources))]
            places, flat = pack(grads)
            trace.outputs = [trace.value_of(t) for t in flat]
    except errors.OUT_OF_RESOURCES:
        raise
    except Exception:  # it may work row by row; if not, the error is raised there, about values
        return None
    residuals = [read(e) for e in trace.externals]
    trace.externals.clear()  # the trace is a reference cycle, which may live on for a while; its tensors must not
    graph = extract(trace.nodes, [*trace.inputs[1:], trace.inputs[0]], trace.outputs)
    return Pullback(GraphFunction(graph, "gradient"), residuals, places)


def transposed(function: GraphFunction, output: int) -> GraphFunction:
    """The pass from one source's tangent to the tangent of the target.

    A backward pass is linear in its cotangent, so its own backward pass with respect to the cotangent is the
    forward pass, whatever the value of the cotangent; here it is zero.
    """
    cached = function.tangents.get(output)
    if cached is None:
        graph = function.graph
        out = Graph()
        with aside(out):
            residuals = [symbolic(out.input(v.shape, v.dtype)) for v in graph.inputs[:-1]]
            target = graph.outputs[output]
            tangent = symbolic(out.input(target.shape, target.dtype))
            seed = out.constant_symbol(zeros((graph.inputs[-1].shape, graph.inputs[-1].dtype)))
        with aside(out):
            tape = _core.Tape()
            tape._configure(True, False)
            with tape:
                tape._watch(seed)
                y = replay(graph, [*residuals, seed])[output]
            (g,) = tape._backward([y], [tangent], [seed])
        out.outputs = [out.value_of(seed if g is None else densify(g))]  # zeros, if they are not connected
        cached = function.tangents[output] = GraphFunction(simplify(out), "tangent")
    return cached


def jacobians_of(tape: Any, y: Any, sources: list) -> list:
    """For each source a tensor `[*y.shape, *source.shape]`, or None if `y` does not depend on it."""
    shape = tuple(y.shape)
    if never_runs():
        return _sketched(tape, y, sources, [[*shape, *s.shape] for s in sources])
    pull = pullback(tape, y, sources)
    if pull is not None and _forward_is_cheaper(pull, y, sources):
        tangents = [_pushed(pull, i, Seed.of(s)) for i, s in enumerate(sources)]
        rows = [None if t is None else _first_axis_last(t) for t in tangents]
    else:
        rows = _pulled(pull, tape, y, sources, Seed.of(y))
    return [
        None if r is None else ops.reshape(r, [*shape, *s.shape]) for r, s in zip(rows, sources, strict=True)
    ]


def _forward_is_cheaper(pull: Pullback, y: Any, sources: list) -> bool:
    """Whether the sources have fewer elements than the target, and forward mode gives the same result. Gradients
    of complex numbers are conjugates, tangents are not; a custom gradient may do anything."""
    reached = [s for s, p in zip(sources, pull.places, strict=True) if p is not None]
    if any(x.dtype.is_complex for x in (y, *reached)):
        return False
    return 0 < sum(_count(s.shape) for s in reached) < y._numel and is_linear(pull.function)


def _count(shape: Sequence[int]) -> int:
    n = 1
    for d in shape:
        n *= d
    return n


def _first_axis_last(t: Any) -> Any:
    """`[n, *shape]` as a matrix with n columns."""
    n = t.shape[0]
    return ops.transpose(ops.reshape(t, [n, t._numel // n]), [1, 0])


def batch_jacobian_of(tape: Any, y: Any, x: Any) -> Any:
    """The tensor `[batch, *y.shape[1:], *x.shape[1:]]`, or None if `y` does not depend on `x`."""
    batch, inner, within = y.shape[0], tuple(y.shape)[1:], tuple(x.shape)[1:]
    shape = [batch, *inner, *within]
    if 0 in shape:
        return None
    if never_runs():
        return _sketched(tape, y, [x], [shape])[0]
    pull = pullback(tape, y, [x])
    # Examples are independent, so one row serves the same element of every example.
    if pull is not None and _forward_is_cheaper(pull, y, [x]):
        rows, order = _pushed(pull, 0, Seed(within, x.dtype, batch)), [1, 2, 0]
    else:
        (rows,), order = _pulled(pull, tape, y, [x], Seed(inner, y.dtype, batch)), [1, 0, 2]
    if rows is None:
        return None
    return ops.reshape(ops.transpose(ops.reshape(rows, [rows.shape[0], batch, -1]), order), shape)


def _sketched(tape: Any, y: Any, sources: list, shapes: list) -> list:
    """Jacobians when only shapes are needed: with trial sizes they might not fit into memory."""
    grads = tape._backward([y], [ops.ones(y.shape, y.dtype)], list(sources))
    return [
        None if g is None else sketch(tuple(shape), g.dtype._code, [densify(g)], linear=True)
        for g, shape in zip(grads, shapes, strict=True)
    ]


def _row_by_row(tape: Any, y: Any, sources: list, seed: Seed) -> list:
    """For each source the gradients `[rows, *source.shape]`, one backward pass at a time."""
    if not seed.rows:  # even without rows, one pass is needed to see which sources are connected
        once = tape._backward([y], [ops.zeros(y.shape, y.dtype)], list(sources))
        pairs = zip(once, sources, strict=True)
        return [None if g is None else ops.zeros([0, *s.shape], s.dtype) for g, s in pairs]
    seeds = ops.unstack(seed.chunk(0, seed.rows), axis=0)
    passes = []
    with Progress("Jacobian", seed.rows, "rows") as progress:
        for row in seeds:
            passes.append(tape._backward([y], [row], list(sources)))
            progress.step()
    columns = zip(*passes, strict=True)
    return [None if column[0] is None else ops.stack([densify(g) for g in column], 0) for column in columns]


def _pulled(pull: Pullback | None, tape: Any, y: Any, sources: list, seed: Seed) -> list:
    """For each source the gradients `[rows, *source.shape]` of unit cotangents, or None: reverse mode."""
    if pull is None:
        return _row_by_row(tape, y, sources, seed)
    if all(p is None for p in pull.places):
        return [None] * len(pull.places)
    outs = _all_rows(pull.function, pull.residuals, seed)
    return [None if p is None else outs[p] for p in pull.places]


def _pushed(pull: Pullback, which: int, seed: Seed) -> Any:
    """The tangents `[rows, *y.shape]` of unit tangents of one source, or None: forward mode."""
    place = pull.places[which]
    if place is None:
        return None
    function = transposed(pull.function, place)
    return _all_rows(function, pull.residuals, seed)[0]


def _all_rows(function: GraphFunction, residuals: list, seed: Seed) -> list:
    """The outputs of a function whose last input is a row of the identity, for all rows."""
    if _rows_that_fit(function, seed.rows) < seed.rows or not is_linear(function):
        return in_chunks(function, residuals, seed.chunk, seed.rows)
    marks = (*(False for _ in residuals), True)
    function.seen += 1
    if function.seen < _core.sightings_needed(len(function.graph.nodes)) or any(
        t._symbol is not None for t in residuals
    ):
        outs, has = replay_batched(function.graph, [*residuals, seed.units()], marks, seed.rows)
    else:
        outs, has = _compiled(function, marks, seed)(residuals)
    return [o if h else broadcast_rows(o, seed.rows) for o, h in zip(outs, has, strict=True)]


def _compiled(function: GraphFunction, marks: tuple[bool, ...], seed: Seed) -> Callable[[list], tuple]:
    """The same as a function of the residuals only: the rows of the identity are part of the program."""
    key = (seed.shape, seed.batch)
    cached = function.jacobians.get(key)
    if cached is None:
        has: list = []

        def run(residuals: list) -> list:
            outs, marked = replay_batched(function.graph, [*residuals, seed.units()], marks, seed.rows)
            has[:] = marked
            return outs

        program = build(specs_of(function.graph.inputs[:-1]), run, function.name)
        program = GraphFunction(simplify(program.graph), function.name)
        cached = function.jacobians[key] = lambda residuals: (program(residuals), has)
    return cached


def in_chunks(
    function: GraphFunction, residuals: list, rows_of: Callable[[int, int], Any], rows: int
) -> list:
    """The same with `rows_of(start, count)` as the last input, as many rows at a time as fit into memory."""
    if not rows:
        return _run(function, [*residuals, rows_of(0, 0)], 0)
    chunk = _rows_that_fit(function, rows)
    parts = []
    with Progress("Jacobian", rows, "rows") as progress:
        for start in range(0, rows, chunk):
            # The last chunk starts earlier instead of being shorter, so that it can use the same program.
            first = min(start, rows - chunk)
            outs = _run(function, [*residuals, rows_of(first, chunk)], chunk)
            parts.append([o[start - first :] for o in outs] if start > first else outs)
            progress.step(first + chunk - start)
    return [
        column[0] if len(column) == 1 else ops.concat(list(column), 0) for column in zip(*parts, strict=True)
    ]


def _run(function: GraphFunction, given: list, rows: int) -> list:
    marks = (*(False for _ in given[1:]), True)
    function.seen += 1
    if function.seen < _core.sightings_needed(len(function.graph.nodes)) or any(
        t._symbol is not None for t in given
    ):
        outs, has = replay_batched(function.graph, given, marks, rows)
    else:
        batched, has = function.batched(marks, rows)
        outs = batched(given)
    return [o if h else broadcast_rows(o, rows) for o, h in zip(outs, has, strict=True)]


def _rows_that_fit(function: GraphFunction, rows: int) -> int:
    """How many rows may run at once so that their intermediate values fit into memory."""
    if function.row_bytes < 0:
        function.row_bytes = _peak(function.graph)
    return max(1, min(rows, settings.jacobian_memory // max(1, function.row_bytes)))


def _peak(graph: Graph) -> int:
    """Bytes alive at once per row, at most: values that depend on the last input and are not outputs."""
    depends: dict[Value, int] = {graph.inputs[-1]: _bytes(graph.inputs[-1])}
    last: dict[Value, int] = {}
    for i, node in enumerate(graph.nodes):
        for v in node.operands:
            last[v] = i
        if any(v in depends for v in node.operands):
            depends.update((r, _bytes(r)) for r in node.results)
    alive = peak = sum(depends[v] for v in graph.inputs if v in depends)
    outputs = set(graph.outputs)
    for i, node in enumerate(graph.nodes):
        alive += sum(depends.get(r, 0) for r in node.results if r not in outputs)
        peak = max(peak, alive)
        alive -= sum(depends.get(v, 0) for v in set(node.operands) if last[v] == i and v not in outputs)
    return peak


def _bytes(v: Value) -> int:
    return v.size * SIZES[v.dtype]
