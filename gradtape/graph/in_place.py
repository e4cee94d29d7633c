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


def in_place(graph: Graph, steps: list[Any], aliases: dict[Value, Value], wanted: list[int]) -> list[int]:
    """For each result the input it may be written over, out of the `wanted` ones, or -1."""
    if any(s.what == "call" for s in steps):
        return []  # Python code may fail half-way, and then no variable may have changed
    made = {v: s for s in steps for v in s.results}
    readers: dict[Value, list[Any]] = {}
    for s in steps:
        for v in dict.fromkeys(s.operands):
            readers.setdefault(v, []).append(s)
    order = {id(s): i for i, s in enumerate(steps)}
    outside = {*graph.outputs, *aliases.values()}

    def safe(out: Value, x: Value) -> bool:
        step = made.get(out)
        if (
            step is None
            or (x.shape, x.dtype) != (out.shape, out.dtype)
            or x in outside
            or graph.outputs.count(out) > 1
        ):
            return False
        if any(order[id(r)] > order[id(step)] for r in readers.get(x, ())):
            return False
        return x not in step.operands or _reads_before_writing(step, out, x)

    return [
        i if i >= 0 and safe(out, graph.inputs[i]) else -1
        for out, i in zip(graph.outputs, wanted, strict=True)
    ]


def _reads_before_writing(step: Any, out: Value, x: Value) -> bool:
    if step.what == "op":
        if step.object.op_name.startswith("tensor_scatter"):
            return step.operands[0] is x and x not in step.operands[1:]
        return step.object.row.kind == "elementwise"
    _, _, registers, ops, tails, _ = step.object
    mine = {
        n for n, (kind, spread, _, which) in enumerate(registers)
        if kind == _INPUT and step.operands[which] is x and spread == fuse.FULL
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
