"""Which elements of a backward pass's results depend on which elements of its cotangent.

A backward pass is linear in the cotangent, so its graph determines which derivatives can be nonzero, for all
values. Each value that depends on the cotangent gets a boolean matrix: a row per element, a column per
element of the cotangent. If an op is not known to be sparse, all elements of its results count as dependent
on all elements of its operands: the pattern may be too large, never too small.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base.dtypes import DIFFERENTIABLE, float64
from gradtape._src.graph.ir import Callback, Graph, Node, Value
from gradtape._src.tensors.conversion import densify


def pattern(graph: Graph, residuals: list, output: int) -> Any:
    """The pattern of an output with respect to the last input, as a `scipy.sparse` matrix."""
    import scipy.sparse as sparse

    values: dict[Value, Any] = dict(zip(graph.inputs, residuals, strict=False))
    seed = graph.inputs[-1]
    depends = {seed: sparse.identity(seed.size, dtype=bool, format="csr")}
    for node in graph.nodes:
        if any(v in depends for v in node.operands):
            depends.update(zip(node.results, through(node, depends, values), strict=True))
        elif not isinstance(node.op, Callback) and all(
            v in values or v.constant is not None for v in node.operands
        ):
            operands = [values[v] if v.constant is None else v.constant for v in node.operands]
            values.update(zip(node.results, _core.apply(node.op, operands, node.attrs), strict=True))
    out = graph.outputs[output]
    if out not in depends:
        return sparse.csr_matrix((out.size, seed.size), dtype=bool)
    return depends[out]


def through(node: Node, depends: dict, values: dict) -> list:
    """The patterns of a node's results, according to its row, from the patterns of its operands and the
    values of operands that are known."""
    pattern = node.op.row.pattern
    if pattern == "aligned":
        return [_aligned(node, depends)]
    if pattern == "adds":
        return [_added(node, depends, values)]
    if pattern == "moves":
        moved = _moved(node, depends, values)
        if moved is not None:
            return moved
    if pattern == "product":
        return [_product(node, depends)]
    if pattern == "nothing":
        return _nothing(node, depends)
    return _everything(node, depends)


def _aligned(node: Node, depends: dict) -> Any:
    out = node.results[0]
    total = None
    for v in node.operands:
        if v in depends:
            places = np.broadcast_to(np.arange(v.size).reshape(v.shape), out.shape).reshape(-1)
            part = depends[v] if v.size == out.size else depends[v][places]
            total = part if total is None else total + part
    return total


def _positions(v: Value, first: int = 1) -> Any:
    """The indices of the elements, counted from `first`, as doubles, which represent them exactly."""
    return ops.convert_to_tensor(np.arange(first, first + v.size, dtype=np.float64).reshape(v.shape))


def _value(v: Value, values: dict) -> Any:
    return v.constant if v.constant is not None else values.get(v)


def _moved(node: Node, depends: dict, values: dict) -> list | None:
    """Runs the op on the indices of the elements; 0 marks places that no element reaches."""
    import scipy.sparse as sparse

    operands = []
    parts = []
    first = 1
    for v in node.operands:
        if v in depends:
            operands.append(_positions(v, first))
            parts.append(depends[v])
            first += v.size
        elif v.dtype in DIFFERENTIABLE:
            operands.append(_zeros(v))
        else:
            operands.append(_value(v, values))
            if operands[-1] is None:
                return None
    attrs = tuple(
        float64 if p.kind == "Dtype" else a for p, a in zip(node.op.row.attributes, node.attrs, strict=True)
    )
    results = _core.apply(node.op, operands, attrs)
    columns = parts[0].shape[1]
    rows = sparse.vstack([sparse.csr_matrix((1, columns), dtype=bool), *parts], format="csr")
    return [rows[r.numpy().astype(np.int64).reshape(-1)] for r in results]


def _zeros(v: Value) -> Any:
    return ops.convert_to_tensor(np.zeros(v.shape))


def _ones(v: Value) -> Any:
    return ops.convert_to_tensor(np.ones(v.shape))


def _added(node: Node, depends: dict, values: dict) -> Any:
    """Runs the op's transpose on the indices of the results, which shows where each element goes."""
    import scipy.sparse as sparse

    out = node.results[0]
    operands = [
        _zeros(v) if v in depends or v.dtype in DIFFERENTIABLE else _value(v, values) for v in node.operands
    ]
    sources = [x for x, v in zip(operands, node.operands, strict=True) if v in depends]
    if any(x is None for x in operands):
        return _everything(node, depends)[0]
    tape = _core.Tape()
    tape._configure(True, False)
    with tape:
        for x in sources:
            tape._watch(x)
        y = _core.apply(node.op, operands, node.attrs)[0]
    # Each element is scaled by a factor; dividing by the transpose of ones cancels it.
    numbers, ones = (tape._backward([y], [g], sources) for g in (_positions(out), _ones(out)))
    total = None
    for v, number, one in zip((v for v in node.operands if v in depends), numbers, ones, strict=True):
        if number is None:
            continue
        factor = densify(one).numpy().reshape(-1)
        used = np.flatnonzero(factor)
        to = np.rint(densify(number).numpy().reshape(-1)[used] / factor[used]).astype(np.int64) - 1
        gather = sparse.csr_matrix(
            (np.ones(len(used), bool), (to, used)), shape=(out.size, v.size), dtype=bool
        )
        part = _any(gather @ depends[v])
        total = part if total is None else total + part
    return _nothing(node, depends)[0] if total is None else total


def _any(m: Any) -> Any:
    m = m.astype(bool)
    m.sum_duplicates()
    return m


def _product(node: Node, depends: dict) -> Any:
    """A row of a product depends on a row of the first factor, a column on a column of the second."""
    out = node.results[0]
    total = None
    for i, v in enumerate(node.operands):
        if v not in depends:
            continue
        flipped = bool(node.attrs and node.attrs[i])
        contracted = -1 if (i == 0) != flipped else -2
        shape = list(v.shape)
        shape[contracted] = 1
        groups = np.broadcast_to(np.arange(int(np.prod(shape))).reshape(shape), v.shape).reshape(-1)
        rows = _grouped(depends[v], groups, int(np.prod(shape)))
        numbers = np.arange(int(np.prod(shape))).reshape(shape)
        if flipped:
            numbers = np.swapaxes(numbers, -1, -2)
        part = rows[np.broadcast_to(numbers, out.shape).reshape(-1)]
        total = part if total is None else total + part
    return total


def _grouped(m: Any, groups: np.ndarray, count: int) -> Any:
    import scipy.sparse as sparse

    gather = sparse.csr_matrix(
        (np.ones(len(groups), bool), (groups, np.arange(len(groups)))), shape=(count, len(groups)), dtype=bool
    )
    return _any(gather @ m)


def _nothing(node: Node, depends: dict) -> list:
    import scipy.sparse as sparse

    columns = next(iter(depends.values())).shape[1]
    return [sparse.csr_matrix((v.size, columns), dtype=bool) for v in node.results]


def _everything(node: Node, depends: dict) -> list:
    import scipy.sparse as sparse

    rows = [_grouped(depends[v], np.zeros(v.size, np.int64), 1) for v in node.operands if v in depends]
    row = rows[0]
    for r in rows[1:]:
        row = row + r
    return [sparse.csr_matrix(row[np.zeros(v.size, np.int64)]) for v in node.results]


def colours(pattern: Any) -> np.ndarray:
    """A greedy colouring: a number for each column, different for columns that share a row."""
    columns = pattern.tocsc()
    taken = [0] * pattern.shape[0]  # for each row the colours in it, as bits
    out = np.zeros(pattern.shape[1], np.int64)
    start, rows = columns.indptr, columns.indices
    for j in range(pattern.shape[1]):
        mine = rows[start[j] : start[j + 1]].tolist()
        used = 0
        for i in mine:
            used |= taken[i]
        colour = (~used & (used + 1)).bit_length() - 1
        out[j] = colour
        for i in mine:
            taken[i] |= 1 << colour
    return out
