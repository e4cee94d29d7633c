"""Finds results that may overwrite an input: the new value of a variable replaces the old one.

The result must come from the last step that reads the input. An element-wise step reads and writes the same
element, so it may overwrite; in a cluster, nothing after the operation that writes the result may read the input,
since operations work on a tile one after the other.
"""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import Any

from gradtape._src.engines.native import fuse
from gradtape._src.engines.native.plan import last_reads
from gradtape._src.graph.ir import Graph, Value

_INPUT, _OUTPUT = 0, 1  # kinds of registers, as in lower


def in_place(
    graph: Graph,
    steps: list[Any],
    aliases: dict[Value, Value],
    wanted: list[int],
    local: bool = False,
    checked: bool = False,
) -> list[int]:
    """For each result, the input that it may overwrite, among the `wanted` ones, or -1.

    `local`: nothing else sees the inputs, even if the program fails. `checked`: the caller guarantees that no index
    is out of range; otherwise no variable may be overwritten before the last step that can fail.
    """
    called = {v for s in steps if s.what == "call" for v in s.operands}
    if not local and any(s.what == "call" for s in steps):
        return []  # Python code may fail, and then no variable may have changed
    producer = {v: i for i, s in enumerate(steps) for v in s.results}
    last_read = last_reads(graph, steps, aliases)
    last_risk = -1 if local or checked else max((i for i, s in enumerate(steps) if _may_fail(s)), default=-1)
    outside = {*graph.outputs, *aliases.values()}
    returned = Counter(graph.outputs)
    orders: dict[int, _Order] = {}  # of the clusters looked at so far

    def safe(out: Value, x: Value) -> bool:
        at = producer.get(out)
        if (
            at is None
            or (x.shape, x.dtype) != (out.shape, out.dtype)
            or x in outside
            or x in called  # Python code may keep its arguments
            or returned[out] > 1
            or at < last_risk
        ):
            return False
        read = last_read.get(x, -1)
        if read != at:
            return read < at
        if steps[at].what != "cluster":
            return _reads_before_writing(steps[at], x)
        if at not in orders:
            orders[at] = _Order(steps[at])
        return orders[at].reads_before_writing(x, out)

    return [
        i if i >= 0 and safe(out, graph.inputs[i]) else -1
        for out, i in zip(graph.outputs, wanted, strict=True)
    ]


def _may_fail(step: Any) -> bool:
    """Whether a step can fail because of the values of its operands, or for lack of memory.

    A scatter checks indices before it writes. Element-wise steps need no memory besides their tiles (core/program.cpp).
    """
    if step.what == "cluster":
        return bool(step.object[4])  # epilogues
    return step.what == "op" and step.object.row.kind != "elementwise"


def _reads_before_writing(step: Any, x: Value) -> bool:
    over = step.object.row.in_place
    return all(k in over for k, v in enumerate(step.operands) if v is x)


class _Order:
    """Which operation of a cluster is the last to read an operand, and which writes a result."""

    def __init__(self, step: Any) -> None:
        outer, inner, registers, ops, epilogues, _ = step.object
        operand = {
            n: step.operands[which]
            for n, (kind, broadcast, _, which) in enumerate(registers)
            if kind == _INPUT and (broadcast == fuse.FULL or outer * inner == 1)
        }
        self.reads: dict[Value, float] = {}
        self.writes: dict[Value, int] = {}
        for k, (_, _, _, into, ins) in enumerate(ops):
            self.reads.update((operand[n], k) for n in ins if n in operand)
            if isinstance(into, int) and registers[into][0] == _OUTPUT:  # others are reductions
                self.writes.setdefault(step.results[registers[into][3]], k)
        self.reads.update((operand[e[3]], inf) for e in epilogues if e[3] in operand)

    def reads_before_writing(self, x: Value, out: Value) -> bool:
        return x in self.reads and out in self.writes and self.reads[x] <= self.writes[out]
