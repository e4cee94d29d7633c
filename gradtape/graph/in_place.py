"""Finds results that may be written over an input: the new value of a variable over the old one.

The result must come from the last step that reads the input. An element-wise step reads and
writes the same element, so it may; in a cluster, nothing behind the operation that writes the
result may read the input, since operations work on a tile one after the other.
"""

from __future__ import annotations

from typing import Any

from gradtape.graph import fuse
from gradtape.graph.ir import Graph, Value

_INPUT, _OUTPUT = 0, 1  # kinds of registers, as in lower


def in_place(
    graph: Graph,
    steps: list[Any],
    aliases: dict[Value, Value],
    wanted: list[int],
    local: bool = False,
    checked: bool = False,
) -> list[int]:
    """For each result the input it may be written over, out of the `wanted` ones, or -1.

    `local`: nobody sees the inputs again, also when the program fails. `checked`: the caller made sure
    that no index is out of range; else a step that may still fail must not find a variable changed.
    """
    called = {v for s in steps if s.what == "call" for v in s.operands}
    if not local and any(s.what == "call" for s in steps):
        return []  # Python code may fail half-way, and then no variable may have changed
    made = {v: s for s in steps for v in s.results}
    readers: dict[Value, list[Any]] = {}
    for s in steps:
        for v in dict.fromkeys(s.operands):
            readers.setdefault(v, []).append(s)
    order = {id(s): i for i, s in enumerate(steps)}
    last_risk = -1 if local or checked else max((i for i, s in enumerate(steps) if _may_fail(s)), default=-1)
    outside = {*graph.outputs, *aliases.values()}

    def safe(out: Value, x: Value) -> bool:
        step = made.get(out)
        if (
            step is None
            or (x.shape, x.dtype) != (out.shape, out.dtype)
            or x in outside
            or x in called  # Python code may hold on to what it is given
            or graph.outputs.count(out) > 1
        ):
            return False
        if order[id(step)] < last_risk or any(order[id(r)] > order[id(step)] for r in readers.get(x, ())):
            return False
        return x not in step.operands or _reads_before_writing(step, out, x)

    return [
        i if i >= 0 and safe(out, graph.inputs[i]) else -1
        for out, i in zip(graph.outputs, wanted, strict=True)
    ]


def _may_fail(step: Any) -> bool:
    """Whether a step looks at values that can be wrong. A scatter does so before it writes."""
    return step.what == "op" and step.object.row.kind in ("indexed", "opaque")


def _reads_before_writing(step: Any, out: Value, x: Value) -> bool:
    if step.what == "op":
        if step.object.op_name.startswith("tensor_scatter"):
            return step.operands[0] is x and x not in step.operands[1:]
        return step.object.row.kind == "elementwise"
    outer, inner, registers, ops, tails, _ = step.object
    mine = {
        n for n, (kind, spread, _, which) in enumerate(registers)
        if kind == _INPUT and step.operands[which] is x and (spread == fuse.FULL or outer * inner == 1)
    }  # fmt: skip
    written = [
        k
        for k, op in enumerate(ops)
        if registers[op[3]][0] == _OUTPUT and step.results[registers[op[3]][3]] is out
    ]
    reads = [k for k, op in enumerate(ops) if mine & set(op[4])]
    return (
        bool(mine and written)
        and max(reads, default=-1) <= written[0]
        and not any(t[3] in mine for t in tails)
    )
