"""Rewrites a graph into a smaller one with the same results.

One walk over the nodes, in order, does constant folding, algebra and common subexpressions: when
a node is visited, its operands are already simplified. A second walk,
backwards, removes dead code. The algebraic rules are those of the rows (`simplify=`, `ops/rewriting.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base.contexts import unrecorded
from gradtape._src.base.dtypes import DIFFERENTIABLE
from gradtape._src.graph.ir import Callback, Graph, Node, Value
from gradtape._src.ops.rewriting import FOLDED, broadcast, number_of
from gradtape._src.ops.table import TABLE
from gradtape._src.tensors import conversion

_BROADCAST = TABLE["broadcast_to"].op


class Builder:
    """Writes the new graph; rules use it to add nodes."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.seen: dict[tuple, tuple[Value, ...]] = {}
        self.line: Any = None  # of the current node, for new nodes

    def add(self, name: str, *operands: Value, attrs: tuple = ()) -> Value:
        """The result of a primitive applied to values of the new graph, simplified too."""
        return self.apply(TABLE[name].op, list(operands), attrs, None)[0]

    def apply(
        self, op: Any, operands: list[Value], attrs: tuple, specs: list[tuple] | None
    ) -> tuple[Value, ...]:
        if isinstance(op, Callback):
            return self.write(op, operands, attrs, specs or [])
        if operands and operands[0].constant is not None and all(v.constant is not None for v in operands):
            specs = specs or infer(op, operands, attrs)
            if all(prod(shape) <= FOLDED.now() for shape, _ in specs):
                return self._fold(op, operands, attrs)
        if op.row.kind == "elementwise":
            narrow = [v if v.constant is None and v.node is None else _narrow(self, v) for v in operands]
            if narrow != operands:
                shape = broadcast(*(v.shape for v in operands))
                if prod(broadcast(*(v.shape for v in narrow))) < prod(shape):
                    (result,) = self.apply(op, narrow, attrs, None)
                    return (self.add("broadcast_to", result, attrs=(shape,)),)
                operands = _without_broadcasts(operands, narrow, shape)
        rule = op.row.simplify
        if rule is not None:
            simpler = rule(self, operands, attrs)
            if simpler is not None:
                return (simpler,)
        key = (op, tuple(map(id, operands)), attrs)
        cached = self.seen.get(key)
        if cached is not None:
            return cached
        if specs is None:
            specs = infer(op, operands, attrs)
        results = self.seen[key] = self.write(op, operands, attrs, specs)
        return results

    def take(self, node: Node) -> Iterable[tuple[Value, Value]]:
        """Copies a node of another graph without simplifying it; its operands are values of the new graph.

        If the new graph already has an equal node, nothing is added, and the results of that node are returned.
        """
        if not isinstance(node.op, Callback):
            key = (node.op, tuple(map(id, node.operands)), node.attrs)
            results = self.seen.setdefault(key, node.results)
            if results is not node.results:
                return zip(node.results, results, strict=True)
        self.graph.nodes.append(node)
        return ()

    def write(self, op: Any, operands: list[Value], attrs: tuple, specs: list[tuple]) -> tuple[Value, ...]:
        """The results of an op that is added without simplifying it."""
        results = self.graph.add(op, operands, attrs, specs)
        self.graph.nodes[-1].line = self.line
        return results

    def _fold(self, op: Any, operands: list[Value], attrs: tuple) -> tuple[Value, ...]:
        with unrecorded():
            results = _core.apply(op, [v.constant for v in operands], attrs)
        return tuple(self.graph.constant(r) for r in results)

    def constant(self, value: Any, dtype: int) -> Value:
        """A number or an array as a value of the new graph."""
        return self.graph.constant(conversion.convert(value, dtype))


def infer(op: Any, operands: list[Value], attrs: tuple) -> list[tuple]:
    """Shapes and types of an op's results."""
    return _core.infer(op, [(v.dtype, v.shape) for v in operands], attrs)


def simplify(graph: Graph, final: bool = False) -> Graph:
    """The graph after constant folding, algebra, common subexpressions and dead code.

    A `final` graph will not be differentiated, so custom gradients are left out of it. A simplified graph is
    walked again only if it has nodes that a final graph must not have.
    """
    if graph.simplified and not (final and any(map(_is_replaced, graph.nodes))):
        return graph
    builder = Builder()
    new: dict[Value, Value] = {v: builder.graph.input(v.shape, v.dtype) for v in graph.inputs}

    def renew(v: Value) -> Value:
        return new[v] if v.constant is None else builder.graph.constant(v.constant)

    for node in live(graph):
        replaced = final and _is_replaced(node)
        if replaced and isinstance(node.op, Callback):
            new.update((r, renew(v)) for r, v in zip(node.results, node.operands, strict=False))
            continue
        builder.line = node.line
        operands = [renew(v) for v in node.operands]
        inside = None
        if replaced:
            if node.op.row.checked:
                operands[1] = _checked(builder, node.op.row.checked, operands[1])
            inside = _written_out(node)
        if inside is not None:
            results = _inline(builder, inside, operands)
        else:
            results = builder.apply(node.op, operands, node.attrs, [(v.shape, v.dtype) for v in node.results])
        new.update(zip(node.results, results, strict=True))
    builder.graph.outputs = [renew(v) for v in graph.outputs]
    builder.graph.nodes = live(builder.graph)
    builder.graph.simplified = True
    return builder.graph


def _is_replaced(node: Node) -> bool:
    """Whether a final graph must not contain this node."""
    op = node.op
    if isinstance(op, Callback):
        return op.passes_on
    return bool(op.row.checked) or (not op.row.native and _written_out(node) is not None)


def _written_out(node: Node) -> Graph | None:
    """The graph of a user-defined op that is composed of ops; None for any other op."""
    if isinstance(node.op, Callback) or node.op.row.native:
        return None
    expand = getattr(node.op, "expand", None)
    return expand and expand([(v.dtype, v.shape) for v in node.operands], node.attrs)


def _inline(builder: Builder, graph: Graph, operands: list[Value]) -> tuple[Value, ...]:
    env = dict(zip(graph.inputs, operands, strict=True))

    def renew(v: Value) -> Value:
        return env[v] if v.constant is None else builder.graph.constant(v.constant)

    for node in graph.nodes:
        specs = [(v.shape, v.dtype) for v in node.results]
        results = builder.apply(node.op, [renew(v) for v in node.operands], node.attrs, specs)
        env.update(zip(node.results, results, strict=True))
    return tuple(renew(v) for v in graph.outputs)


_FITS: dict[str, Callable] = {"divisor": np.all, "exponent": lambda y: np.all(y >= 0)}


def _checked(b: Builder, check: str, y: Value) -> Value:
    """An integer divisor or exponent, checked at run time for zero or its sign, as eager ops check it."""
    if y.dtype in DIFFERENTIABLE or (y.constant is not None and _FITS[check](np.asarray(y.constant))):
        return y
    return b.add(check, y)


def live(graph: Graph) -> list[Node]:
    """The nodes that an output depends on, in order."""
    needed = set(graph.outputs)
    alive = []
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.results) or (isinstance(node.op, Callback) and node.op.effect):
            alive.append(node)
            needed.update(node.operands)
    return alive[::-1]


def _narrow(b: Builder, v: Value) -> Value:
    """The value that `v` is a broadcast of; for a constant with equal elements, that number."""
    while v.node is not None and v.node.op is _BROADCAST:
        v = v.node.operands[0]
    if v.constant is not None and v.size > 1 and number_of(v) is not None:
        return b.constant(number_of(v), v.dtype)
    return v


def _without_broadcasts(operands: list[Value], narrow: list[Value], shape: tuple[int, ...]) -> list[Value]:
    """Removes explicit broadcasts from the operands of an element-wise op, which broadcasts by itself."""
    out = list(operands)
    for i, v in enumerate(narrow):
        trial = [*out[:i], v, *out[i + 1 :]]
        if v is not out[i] and broadcast(*(t.shape for t in trial)) == shape:
            out = trial
    return out
