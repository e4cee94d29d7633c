"""Checks of the facts that a row states (`gradtape/_src/ops/facts.py`): passes over graphs rely on them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.batching.linear import linear_sets
from gradtape._src.batching.sparsity import through
from gradtape._src.batching.units import Units
from gradtape._src.batching.units import through as units_through
from gradtape._src.contract.cases import Case, allowed, array_of, cases, large_cases, tensor
from gradtape._src.contract.compare import TOLERANCES, differences, each, tolerance
from gradtape._src.engines.native.lower import compile_graph
from gradtape._src.graph.callable import replay
from gradtape._src.graph.ir import Graph, Node, symbolic
from gradtape._src.graph.simplify import simplify as simplified
from gradtape._src.ops.table import NO_RULE, TABLE, Row
from gradtape._src.state.variable import Variable

_MOST_ELEMENTS = 48  # limit on the elements of an operand that are changed one by one
_A, _B = 0.75, -1.25  # of a linear combination; sums of powers of two, so that products are exact


def _doubles(row: Row) -> list:
    wide = [d for d in allowed(row) if d in (dtypes.float64, dtypes.complex128)]
    return wide or [d for d in allowed(row) if d in (dtypes.float32, dtypes.complex64)][:1]


def _floats(case: Case) -> list[int]:
    return [k for k, d in enumerate(case.dtypes) if d.is_floating or d.is_complex]


def _run(case: Case, arrays: Sequence[Any]) -> list[Any]:
    operands = [tensor(np.asarray(a), d) for a, d in zip(arrays, case.dtypes, strict=True)]
    return list(case.call(operands))


def _random(case: Case, k: int, rng: Any) -> np.ndarray:
    shape = np.shape(case.arrays[k])
    x = rng.uniform(-2, 2, shape)
    return np.asarray(x + 1j * rng.uniform(-2, 2, shape) if case.dtypes[k].is_complex else x)


def _node_of(case: Case) -> Node | None:
    """The call of a sample as a node of a graph; None unless it is a single node of the row's op."""
    graph = Graph()
    operands = [
        symbolic(graph.input(np.shape(a), d._code)) for a, d in zip(case.arrays, case.dtypes, strict=True)
    ]
    try:
        outs = case.call(operands)
    except Exception:
        return None  # its shape depends on values, or it cannot be traced
    nodes = [n for n in graph.nodes if n.op is case.row.op]
    if len(nodes) != 1 or len(graph.nodes) != 1:
        return None
    graph.outputs = [graph.value_of(o) for o in outs]
    return nodes[0]


# ---- linear -----------------------------------------------------------------------------------


def _is_linear(case: Case, some: Sequence[int]) -> str | None:
    """How f(ax + by) = a f(x) + b f(y) fails for these operands; None if it holds."""
    rng = case.rng(11)
    combined, other = list(case.arrays), list(case.arrays)
    for k in some:
        other[k] = _random(case, k, rng)
        combined[k] = _A * np.asarray(case.arrays[k]) + _B * other[k]
    for one, two, both in zip(*(_run(case, xs) for xs in (case.arrays, other, combined)), strict=True):
        x, y, z = (array_of(out) for out in (one, two, both))
        if z.dtype.kind not in "fc":
            return f"a floating result, got {both.dtype.name}"
        if not np.all(np.isfinite(x)):
            return "a finite result"
        limit = 100 * tolerance(TOLERANCES, both.dtype, *case.dtypes) * case.row.tolerance
        for line in differences("", case, z, _A * x + _B * y, limit * max(1.0, np.max(np.abs(x), initial=0))):
            return line.partition(": expected ")[2]
    return None


def _has_rule(row: Row, position: int) -> bool:
    """Whether gradients flow through an operand, given as a position in the signature."""
    return bool(row.rules) and row.rules[0 if row.joint else position][0] != NO_RULE


def _sets_of(case: Case, some: Sequence[int]) -> list[int]:
    """The operands of a sample that belong to these positions of the signature."""
    names = [case.row.operands[k].name for k in some]
    return [k for k, p in enumerate(case.params) if p.name in names]


def linear(row: Row) -> Iterator[str]:
    """Checks that an op is linear in the operands that it declares, and declares all operands it is linear in."""
    some = [c for c in cases(row, _doubles(row)) if any(np.size(c.arrays[k]) for k in _floats(c))]
    floats = sorted({row.operands.index(c.params[k]) for c in some for k in _floats(c)})

    def name(positions: Sequence[int]) -> str:
        return "+".join(row.operands[k].name for k in positions)

    for positions in row.linear:
        for case in some:
            wrong = _is_linear(case, _sets_of(case, positions))
            if wrong:
                yield f"{row.name}: linear in {name(positions)} in {case.where}: expected {wrong}"
        if not any(_has_rule(row, k) for k in positions) and row.pattern != "nothing":
            yield f"{row.name}: linear in {name(positions)}: it has no rule there, so that it cannot be transposed"
    undeclared: list[tuple[int, ...]] = []
    if not row.native and some and _is_made_of_ops(some[0]):
        return  # their ops declare it
    for count in range(len(floats), 0, -1):
        for positions in itertools.combinations(floats, count):
            said = any(set(positions) <= set(declared) for declared in (*row.linear, *undeclared))
            if (
                not said
                and all(_has_rule(row, k) for k in positions)
                and some
                and _always_linear(some, positions)
            ):
                undeclared.append(positions)
                yield f'{row.name}: it is linear in {name(positions)} and does not say so: linear="{name(positions)}"'


def _is_made_of_ops(case: Case) -> bool:
    node = _node_of(case)
    return (
        node is not None
        and node.op.expand([(v.dtype, v.shape) for v in node.operands], node.attrs) is not None
    )


def _always_linear(some: list[Case], positions: Sequence[int]) -> bool:
    try:
        return all(_is_linear(case, _sets_of(case, positions)) is None for case in some)
    except Exception:
        return False  # values other than those of the samples need not make sense


# ---- pattern ----------------------------------------------------------------------------------


def _changes(case: Case, k: int, step: float) -> list[np.ndarray]:
    """For each result, the matrix of its changes when elements of operand k change: one column per element."""
    base = [array_of(out) for out in _run(case, case.arrays)]
    columns: list[list[np.ndarray]] = []
    x = np.asarray(case.arrays[k])
    for i in range(x.size):
        moved = x.copy()
        moved.reshape(-1)[i] += step
        outs = [array_of(out) for out in _run(case, [*case.arrays[:k], moved, *case.arrays[k + 1 :]])]
        with np.errstate(all="ignore"):
            columns.append([
                np.where((a == b) | ((a != a) & (b != b)), 0.0, (1.0 * a - b) / step).reshape(-1)
                for a, b in zip(outs, base, strict=True)
            ])  # fmt: skip
    return [np.stack(column, 1) for column in zip(*columns, strict=True)]


def _check_pattern(case: Case) -> Iterator[str]:
    node = _node_of(case)
    if node is None or not case.finite:
        return
    import scipy.sparse as sparse

    row = case.row
    sets = linear_sets(row, len(case.arrays))
    for k in _floats(case):
        size = np.size(case.arrays[k])
        if not 0 < size <= _MOST_ELEMENTS or not any(node.operands[k].size for k in range(len(case.arrays))):
            continue
        if row.pattern not in ("aligned", "") and not any(k in some for some in sets):
            continue  # the pattern is about the linear operands
        values = {
            v: tensor(np.asarray(a), d)
            for j, (v, a, d) in enumerate(zip(node.operands, case.arrays, case.dtypes, strict=True))
            if j != k
        }
        depends = {node.operands[k]: sparse.identity(size, dtype=bool, format="csr")}
        # For linear operands a large change is better: it costs fewer digits.
        slopes = _changes(case, k, 1.0 if any(k in some for some in sets) else 1e-3)
        for r, (claimed, slope) in enumerate(zip(through(node, depends, values), slopes, strict=True)):
            outside = ~(np.abs(slope) <= 1e-9) & ~claimed.toarray()
            if outside.any():
                i, j = np.argwhere(outside)[0]
                yield (
                    f"{row.name}: pattern {row.pattern!r} of {case.names[k]} in {case.where}: element {int(i)} of "
                    f"result {r} depends on element {int(j)}"
                )
        yield from _check_units(case, node, k, slopes)


def _check_units(case: Case, node: Node, k: int, slopes: list[np.ndarray]) -> Iterator[str]:
    """Checks that rows of the identity pass through a linear op like the matrix of the op."""
    alone = next((s for s in linear_sets(case.row, len(case.arrays)) if k in s), None)
    if alone is None or case.dtypes[k].is_complex:
        return
    operands: list[Any] = [
        tensor(np.zeros_like(a) if j in alone else np.asarray(a), d)
        for j, (a, d) in enumerate(zip(case.arrays, case.dtypes, strict=True))
    ]
    operands[k] = Units.identity(np.shape(case.arrays[k]), case.dtypes[k], None)
    marks = [j == k for j in range(len(operands))]
    for out, slope in zip(units_through(node, operands, marks) or (), slopes, strict=False):
        dense = array_of(out.dense() if isinstance(out, Units) else out)
        what = f"rows of the identity through {case.names[k]}"
        yield from differences(
            what, case, dense.reshape(slope.shape[::-1]), slope.T, 1e-6 * case.row.tolerance
        )


def pattern(row: Row) -> Iterator[str]:
    """Checks that no element of a result depends on an element that the pattern excludes."""
    return each("pattern", _check_pattern, cases(row, _doubles(row)))


# ---- simplification ---------------------------------------------------------------------------

_CHANGES: dict[str, Callable[[Any], Any]] = {
    "itself": lambda x: x,
    "-x": lambda x: TABLE["neg"].op(x),
    "x - 0.5": lambda x: TABLE["sub"].op(x, tensor(np.asarray(0.5), x.dtype)),
    "2x": lambda x: TABLE["mul"].op(x, tensor(np.asarray(2.0), x.dtype)),
    "reshaped": lambda x: TABLE["reshape"].op(TABLE["reshape"].op(x, [-1]), x.shape),
    "transposed": lambda x: (
        TABLE["transpose"].op(TABLE["transpose"].op(x, None), None) if len(x.shape) > 1 else x
    ),
    "turned": lambda x: (
        TABLE["transpose"].op(
            tensor(np.swapaxes(x.numpy(), -1, -2), x.dtype), (*range(len(x.shape) - 2), -1, -2)
        )
        if x._symbol is None and len(x.shape) > 1
        else x
    ),
}
_NUMBERS = (0.0, 1.0, -1.0, 2.0, 3.0, 0.1)


def _check_simplify(case: Case) -> Iterator[str]:
    floats = _floats(case)
    tensors = case.tensors()
    for change, function in _CHANGES.items():
        yield from _same_when_simple(case, tensors, dict.fromkeys(floats, function), {}, change)
    for k, number in itertools.product(floats, _NUMBERS):
        constant = tensor(np.full(np.shape(case.arrays[k]), number), case.dtypes[k])
        yield from _same_when_simple(case, tensors, {}, {k: constant}, f"{case.names[k]} = {number}")
        for other in floats:
            if other != k:
                function = _CHANGES["2x"]
                yield from _same_when_simple(
                    case, tensors, {other: function}, {k: constant}, f"{number} and 2x"
                )


def _same_when_simple(
    case: Case, tensors: list, changes: dict[int, Callable], constants: dict[int, Any], what: str
) -> Iterator[str]:
    graph = Graph()
    given = [k for k in range(len(tensors)) if k not in constants]
    symbols = {k: symbolic(graph.input(tuple(tensors[k].shape), tensors[k].dtype._code)) for k in given}
    operands = [
        constants[k] if k in constants else changes[k](symbols[k]) if k in changes else symbols[k]
        for k in range(len(tensors))
    ]
    outs = case.call(operands)
    if not any(isinstance(o, _core.Tensor) and o._symbol is not None for o in outs):
        return
    graph.outputs = [graph.value_of(o) for o in outs]
    inputs = [tensors[k] for k in given]
    expected, got = replay(graph, inputs), replay(simplified(graph, final=True), inputs)
    limit = 4 * tolerance(TOLERANCES, *case.dtypes) * case.row.tolerance
    for e, g in zip(expected, got, strict=True):
        if (tuple(e.shape), e.dtype) != (tuple(g.shape), g.dtype):
            yield f"{case.row.name}: simplified with {what} in {case.where}: expected {e!r}, got {g!r}"
        else:
            yield from differences(f"simplified with {what}", case, array_of(g), array_of(e), limit)


def simplify(row: Row) -> Iterator[str]:
    """Checks that the result of a simplification rule has the same value as the op."""
    if row.simplify is not None:
        some = [d for d in allowed(row) if d in (dtypes.float32, dtypes.float64)] or _doubles(row)
        yield from each("simplification", _check_simplify, cases(row, some))


# ---- programs ---------------------------------------------------------------------------------


def _on(name: str, number: float) -> Callable[[Any], Any]:
    """An element-wise op with a number; for types that are not floats, the one available."""

    def run(t: Any) -> Any:
        if t.dtype.is_bool:
            return TABLE["logical_not"].op(t)
        return TABLE[name].op(t, tensor(np.asarray(number), t.dtype)) if t.dtype.is_floating else t

    return run


_NEIGHBOURS = {name: _on(name, 1.25) for name in ("add", "sub", "mul", "maximum")}
_NEIGHBOURS["div"] = _on("div", 2.0)  # a program multiplies by the reciprocal, which is exact


def _check_program(case: Case) -> Iterator[str]:
    """Runs the op after and before other element-wise ops: in clusters, in pairs, and at their end."""
    tensors = case.tensors()
    places = [k for k, d in enumerate(case.dtypes) if d.is_floating or d.is_bool]
    for (name, other), place in itertools.product(_NEIGHBOURS.items(), [*places, None]):

        def function(xs: list, other: Callable = other, place: int | None = place) -> list:
            if place is None:
                return [other(out) for out in case.call(xs)]
            return list(case.call([other(x) if k == place else x for k, x in enumerate(xs)]))

        graph = Graph()
        outs = function([symbolic(graph.input(tuple(x.shape), x.dtype._code)) for x in tensors])
        graph.outputs = [graph.value_of(o) for o in outs]
        what = f"program before {name}" if place is None else f"program after {name} of {case.names[place]}"
        limit = 8 * tolerance(TOLERANCES, *case.dtypes) * case.row.tolerance
        for e, g in zip(function(tensors), compile_graph(graph).run(tensors), strict=True):
            yield from differences(what, case, array_of(g), array_of(e), limit)


def programs(row: Row) -> Iterator[str]:
    """Checks that reductions and pairs of loops give the same results in a program as the op alone."""
    if row.each_row or row.first or row.second or row.alias:
        some = [d for d in allowed(row) if d in (dtypes.float32, dtypes.float64, dtypes.bool)]
        for dtype in some:
            yield from each("program", _check_program, [*cases(row, [dtype]), *large_cases(row, dtype)])


# ---- rows -------------------------------------------------------------------------------------


def _check_by_rows(case: Case) -> Iterator[str]:
    """The op on the first row, and on the others, gives those rows of its results."""
    node = _node_of(case)
    if node is None or not node.results:
        return
    assert case.row.by_rows is not None
    cut = case.row.by_rows([v.shape for v in node.operands], node.attrs)
    shape = node.results[0].shape
    if cut is None or not shape or shape[0] < 2:
        return
    tensors = case.tensors()
    expected = [array_of(out) for out in case.call(tensors)]
    blocks = []
    for some in (slice(0, 1), slice(1, None)):
        given = [x[some] if c else x for x, c in zip(tensors, cut, strict=True)]
        blocks.append([array_of(out) for out in _core.apply(case.row.op, given, node.attrs)])
    limit = 4 * tolerance(TOLERANCES, *case.dtypes) * case.row.tolerance
    for e, first, rest in zip(expected, *blocks, strict=True):
        yield from differences("row by row", case, np.concatenate([first, rest]), e, limit)


def by_rows(row: Row) -> Iterator[str]:
    """Checks that rows of a result depend only on the rows that the fact names."""
    if row.by_rows is not None:
        some = [d for d in allowed(row) if d in (dtypes.float32, dtypes.bool)]
        for dtype in some:
            yield from each("rows", _check_by_rows, [*cases(row, [dtype]), *large_cases(row, dtype)])


# ---- in place ---------------------------------------------------------------------------------


def _check_in_place(case: Case) -> Iterator[str]:
    node = _node_of(case)
    if node is None:
        return
    out = node.results[0]
    for k in case.row.in_place:
        x = node.operands[k]
        if (x.shape, x.dtype) != (out.shape, out.dtype) or len(node.results) > 1:
            continue
        expected, inputs = case.call(case.tensors())[0], case.tensors()
        inputs[k] = Variable(inputs[k])  # nothing else holds its memory, so the program overwrites it
        compile_graph(x.graph, [k], checked=True).update(inputs, (inputs[k],))
        what = f"written over {case.names[k]}"
        yield from differences(what, case, array_of(inputs[k]), array_of(expected), 0.0)


def in_place(row: Row) -> Iterator[str]:
    """Checks that a result that overwrites an operand equals one in memory of its own."""
    if row.in_place:
        yield from each(
            "in place", _check_in_place, [*cases(row, allowed(row)[-1:]), *large_cases(row, allowed(row)[-1])]
        )
