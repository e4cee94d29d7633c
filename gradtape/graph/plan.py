"""Decides where values live: which share one block of memory, and where in it."""

from __future__ import annotations

from typing import Any

from gradtape.graph.ir import Graph, Value

# The order is that of Place in core/program.h.
INPUT, CONSTANT, ARENA, FRESH, ALIAS = range(5)
_WIDTHS = (1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16)
_ALIGNMENT = 64


def plan(
    graph: Graph, steps: list[Any], aliases: dict[Value, Value]
) -> tuple[dict[Value, tuple[int, Any]], int]:
    """The place of every value, and the size of the arena in bytes."""
    places: dict[Value, tuple[int, Any]] = {v: (INPUT, i) for i, v in enumerate(graph.inputs)}

    def root(v: Value) -> Value:
        while v in aliases:
            v = aliases[v]
        return v

    kept = {root(v) for v in graph.outputs}
    last: dict[Value, int] = {}
    for i, step in enumerate(steps):
        for v in step.operands:
            last[root(v)] = i
    # A result that may be where an operand is (a slice) keeps the operand's place as long as its own.
    for i in reversed(range(len(steps))):
        step = steps[i]
        if step.what == "call" or (step.what == "op" and step.object._shares):
            end = max((len(steps) if r in kept else last.get(r, i) for r in step.results), default=i)
            for v in step.operands:
                last[root(v)] = max(last[root(v)], end)
    for v in [*(v for s in steps for v in s.operands), *graph.outputs, *aliases.values()]:
        if v.constant is not None:
            places.setdefault(v, (CONSTANT, 0))
    holes = _Holes()
    dying: dict[int, list[Value]] = {}
    for v, i in last.items():
        dying.setdefault(i, []).append(v)
    sizes: dict[Value, tuple[int, int]] = {}
    for i, step in enumerate(steps):
        for v in step.results:
            if v in kept:
                places[v] = (FRESH, 0)
                continue
            nbytes = max(_ALIGNMENT, -(-v.size * _WIDTHS[v.dtype] // _ALIGNMENT) * _ALIGNMENT)
            offset = holes.take(nbytes)
            sizes[v] = (offset, nbytes)
            places[v] = (ARENA, offset)
            if v not in last:  # nobody reads it, but the step writes it beside its other results
                dying.setdefault(i, []).append(v)
        for v in dying.get(i, ()):
            if v in sizes:
                holes.give(*sizes[v])
    for v in aliases:
        _place_alias(v, aliases, places)
    return places, holes.size


def _place_alias(v: Value, aliases: dict[Value, Value], places: dict[Value, tuple[int, Any]]) -> None:
    if v in places:
        return
    if aliases[v] in aliases:
        _place_alias(aliases[v], aliases, places)
    places[v] = (ALIAS, aliases[v])


class _Holes:
    """Free stretches of the arena; the smallest that fits is taken."""

    def __init__(self) -> None:
        self.size = 0
        self.free: list[tuple[int, int]] = []  # (offset, bytes), by offset

    def take(self, nbytes: int) -> int:
        best = None
        for k, (_, have) in enumerate(self.free):
            if have >= nbytes and (best is None or have < self.free[best][1]):
                best = k
        if best is None:
            if self.free and sum(self.free[-1]) == self.size:  # grow the last hole
                offset = self.free.pop()[0]
            else:
                offset = self.size
            self.size = offset + nbytes
            return offset
        offset, have = self.free[best]
        if have == nbytes:
            del self.free[best]
        else:
            self.free[best] = (offset + nbytes, have - nbytes)
        return offset

    def give(self, offset: int, nbytes: int) -> None:
        self.free.append((offset, nbytes))
        self.free.sort()
        merged: list[tuple[int, int]] = []
        for at, have in self.free:
            if merged and sum(merged[-1]) == at:
                merged[-1] = (merged[-1][0], merged[-1][1] + have)
            else:
                merged.append((at, have))
        self.free = merged
