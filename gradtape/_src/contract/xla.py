"""Checks of the XLA lowerings: a row's samples, and their gradients, have the same values as natively, and calls
that native code refuses are refused.

All cases of a row and an element type are one program, because compiling takes most of the time. JAX is imported
when a check runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradtape._src import engines
from gradtape._src.base.dtypes import DIFFERENTIABLE, float32
from gradtape._src.base.errors import Untraceable
from gradtape._src.contract.cases import Case, allowed, array_of, cases
from gradtape._src.contract.compare import TOLERANCES, differences, tolerance
from gradtape._src.graph.callable import GraphFunction, replay
from gradtape._src.graph.ir import Graph, symbolic
from gradtape._src.ops.table import Row

_WIDER = 16.0  # XLA's kernels differ from ours: the factor on the tolerances of values


def lowered(row: Row) -> Iterator[str]:
    """Checks that values and gradients on XLA equal those of native code, in the usual element type of the row."""
    if row.xla:
        yield from _in_type(row, _usual(row))
        yield from _refusals(row)


def other_types(row: Row) -> Iterator[str]:
    """The same in all other element types."""
    if row.xla:
        for dtype in allowed(row):
            if dtype != _usual(row):
                yield from _in_type(row, dtype)


def _usual(row: Row) -> Any:
    return float32 if float32 in allowed(row) else allowed(row)[0]


def _in_type(row: Row, dtype: Any) -> Iterator[str]:
    some = list(cases(row, [dtype]))
    yield from _differences("on XLA", some, [_forward(case) for case in some])
    if row.differentiable and row.gradient_samples != [] and dtype._code in DIFFERENTIABLE:
        some = list(cases(row, [dtype], row.gradient_samples))
        yield from _differences("gradient on XLA", some, [_backward(case) for case in some])


def _forward(case: Case) -> GraphFunction | None:
    graph = Graph()
    xs = [symbolic(graph.input(tuple(x.shape), x.dtype._code)) for x in case.tensors()]
    try:
        graph.outputs = [graph.value_of(o) for o in case.call(xs)]
    except Untraceable:  # a shape that depends on values
        return None
    return GraphFunction(graph, case.row.name)


def _backward(case: Case) -> GraphFunction | None:
    """The gradients for ones as cotangents, as a function of the operands."""
    forward = _forward(case)
    if forward is None:
        return None
    d = forward.derivative(tuple(x.dtype._code in DIFFERENTIABLE for x in case.tensors()))
    graph = Graph()
    xs = [symbolic(graph.input(v.shape, v.dtype)) for v in forward.graph.inputs]
    ys = replay(d.forward.graph, xs)
    ones = [graph.ones_like(ys[k]) for k in d.cotangents]
    outs = replay(d.backward.graph, [*(xs[i] if where == "in" else ys[i] for where, i in d.reads), *ones])
    graph.outputs = [graph.value_of(o) for o in outs]
    return GraphFunction(graph, f"gradient of {case.row.name}")


def _differences(what: str, some: list[Case], functions: list[GraphFunction | None]) -> Iterator[str]:
    """Compares one XLA program for all functions with the native one."""
    pairs = [(case, f.graph) for case, f in zip(some, functions, strict=True) if f is not None]
    graph, counts = Graph(), []
    for _, one in pairs:
        xs = [symbolic(graph.input(v.shape, v.dtype)) for v in one.inputs]
        graph.outputs += [graph.value_of(y) for y in replay(one, xs)]
        counts.append(len(one.outputs))
    if not graph.outputs:
        return
    inputs = [t for case, _ in pairs for t in case.tensors()]
    try:
        program = engines.xla_on("cpu").program(graph)
        results = iter(program.run(inputs))
    except Exception as e:
        yield f"{pairs[0][0].row.name}: {what} ({pairs[0][0].dtype.name}): raised {type(e).__name__}: {e}"
        return
    if program.translation.on_host:
        yield f"{pairs[0][0].row.name}: {what}: runs on the host: {sorted(set(program.translation.on_host))}"
    natives: Iterator[Any] = iter(GraphFunction(graph).program.run(inputs))
    for (case, _), count in zip(pairs, counts, strict=True):
        limit = _WIDER * tolerance(TOLERANCES, *case.dtypes) * case.row.tolerance
        for _ in range(count):
            yield from differences(what, case, array_of(next(results)), array_of(next(natives)), limit)


def _refusals(row: Row) -> Iterator[str]:
    """Checks that samples that are wrong only by their values are refused when a program runs."""
    types = allowed(row)
    dtype = float32 if float32 in types else types[0]
    for number, (sample, name, fragment) in enumerate(row.bad):
        case = Case(row, number, sample, dtype, strict=False)
        try:
            function = _forward(case)
        except Exception:  # refused while the graph was made
            continue
        if function is None:
            continue
        start = f"{row.name}: error on XLA of bad {case.where}"
        try:
            engines.xla_on("cpu").program(function.graph).run(case.tensors())
        except Exception as e:
            if type(e).__name__ != name or fragment not in str(e):
                yield f"{start}: expected {name} with {fragment!r}, got {type(e).__name__}: {e}"
        else:
            yield f"{start}: expected {name}, but nothing was raised"
