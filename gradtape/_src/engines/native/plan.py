"""Decides where values live in memory: which values share one block, and their offsets in it."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from itertools import chain
from types import MappingProxyType
from typing import Any

from gradtape._src.engines.native.bands import Band
from gradtape._src.engines.native.joins import Part, bytes_of
from gradtape._src.graph.ir import Graph, Value

# The order is that of Place in core/program.h.
INPUT, CONSTANT, ARENA, FRESH, ALIAS, JOINED = range(6)
_ALIGNMENT = 64


def plan(
    graph: Graph,
    steps: list[Any],
    aliases: dict[Value, Value],
    parts: Mapping[Value, Part] = MappingProxyType({}),
    bands: Sequence[Band] = (),
) -> tuple[dict[Value, tuple[int, Any]], int]:
    """The place of every value, and the size of the arena in bytes.

    `aliases` maps values to the values whose memory they share, `parts` to the values that contain them.
    """
    places: dict[Value, tuple[int, Any]] = {v: (INPUT, i) for i, v in enumerate(graph.inputs)}

    returned = {aliases.get(v, v) for v in graph.outputs}
    last = last_reads(graph, steps, aliases, by_size=True)
    for v in [*(v for s in steps for v in s.operands), *graph.outputs, *aliases.values()]:
        if v.constant is not None:
            places.setdefault(v, (CONSTANT, 0))
    holes = _Holes()
    for v, part in parts.items():  # memory is in use while any part of it is
        last[part.of] = max(last.get(part.of, 0), last.get(v, 0))
    dying: dict[int, list[Value]] = {}
    for v, i in last.items():
        dying.setdefault(i, []).append(v)
    sizes: dict[Value, tuple[int, int]] = {}
    in_bands = _InBands(holes, steps, aliases, bands)
    for i, step in enumerate(steps):
        in_bands.enter(i)
        for v in step.results:
            if v in returned:
                places[v] = (FRESH, 0)
                continue
            own = parts[v].of if v in parts else v
            if own not in sizes:
                nbytes = max(_ALIGNMENT, -(-bytes_of(own) // _ALIGNMENT) * _ALIGNMENT)
                sizes[own] = (in_bands.take(own, nbytes), nbytes)
            if v in parts:
                places[own] = (JOINED, sizes[own][0])
                places[v] = (ARENA, sizes[own][0] + parts[v].offset)
                continue
            places[v] = (ARENA, sizes[v][0])
            if v not in last:  # never read, but the step writes it beside its other results
                dying.setdefault(i, []).append(v)
        for v in dying.get(i, ()):
            if v in sizes:
                in_bands.give(v, *sizes[v])
    places.update((v, (ALIAS, of)) for v, of in aliases.items())
    return places, holes.size


def last_reads(
    graph: Graph, steps: list[Any], aliases: dict[Value, Value], by_size: bool = False
) -> dict[Value, int]:
    """The last step that reads the memory of a value: directly, through an alias, or as a part of it.

    `by_size`: a result larger than an operand does not share its memory; otherwise any result of some ops may.
    """

    def root(v: Value) -> Value:
        return aliases.get(v, v)

    returned = {root(v) for v in graph.outputs}
    last: dict[Value, int] = {}
    for i, step in enumerate(steps):
        for v in step.operands:
            last[root(v)] = i
    # A result that may share an operand's memory (a slice) keeps it in use as long as itself.
    for i in reversed(range(len(steps))):
        step = steps[i]
        if step.what == "call" or (step.what == "op" and step.object._shares):
            ends = [(bytes_of(r), len(steps) if r in returned else last.get(r, i)) for r in step.results]
            for v in step.operands:
                end = max((end for size, end in ends if not by_size or size <= bytes_of(v)), default=i)
                last[root(v)] = max(last[root(v)], end)
    return last


class _InBands:
    """The rules for memory within a band.

    Blocks of rows go through a band each at its own pace. The place of a value can be reused at once only by a
    value of equal length, so that a block writes where it has read itself, and only if no block reads all of the
    first value. Other places are free when the band ends.
    """

    def __init__(
        self, holes: _Holes, steps: list[Any], aliases: dict[Value, Value], bands: Sequence[Band]
    ) -> None:
        self.holes, self.steps, self.aliases = holes, steps, aliases
        self.bands = iter(bands)
        self.band = next(self.bands, None)
        self.inside = False
        self.whole: set[Value] = set()  # values that blocks of the band read as a whole
        self.left: list[tuple[int, int]] = []
        self.exact: dict[int, list[tuple[int, int]]] = {}  # free places, by their size in bytes

    def enter(self, i: int) -> None:
        """Called before step i."""
        if self.inside and self.band is not None and i == self.band.end:
            for place in (*self.left, *chain.from_iterable(self.exact.values())):
                self.holes.give(*place)
            self.left, self.exact, self.inside = [], {}, False
            self.band = next(self.bands, None)
        if self.band is not None and i == self.band.first:
            self.inside = True
            steps = self.steps[self.band.first : self.band.end]
            self.whole = {
                self.aliases.get(v, v)
                for step, cut in zip(steps, self.band.cut, strict=True)
                for v, c in zip(step.operands, cut, strict=True)
                if not c
            }

    def take(self, v: Value, nbytes: int) -> int:
        places = self.exact.get(bytes_of(v)) if self.inside else None
        return places.pop()[0] if places else self.holes.take(nbytes)

    def give(self, v: Value, offset: int, nbytes: int) -> None:
        if not self.inside:
            self.holes.give(offset, nbytes)
        elif v in self.whole:
            self.left.append((offset, nbytes))
        else:
            self.exact.setdefault(bytes_of(v), []).append((offset, nbytes))


class _Holes:
    """Free stretches of the arena. The smallest that fits is used; of equal ones, the first."""

    def __init__(self) -> None:
        self.size = 0
        self.free: dict[int, int] = {}  # bytes by offset
        self.ends: dict[int, int] = {}  # the same holes: offset by end
        # For each size, a heap of offsets; and the sizes in order. A hole that is used up stays in its heap until
        # it comes to the top, where `free` shows that it is gone. There are few different sizes: n of them need an
        # arena of n * n / 2 lines.
        self.offsets: dict[int, list[int]] = {}
        self.sizes: list[int] = []

    def take(self, nbytes: int) -> int:
        k = bisect_left(self.sizes, nbytes)
        while k < len(self.sizes):
            have = self.sizes[k]
            offsets = self.offsets[have]
            while offsets and self.free.get(offsets[0]) != have:
                heappop(offsets)
            if offsets:
                offset = offsets[0]
                self._remove(offset)
                if have > nbytes:
                    self._add(offset + nbytes, have - nbytes)
                return offset
            del self.offsets[have], self.sizes[k]
        offset = self.ends.get(self.size, self.size)
        if offset < self.size:  # grow the last hole
            self._remove(offset)
        self.size = offset + nbytes
        return offset

    def give(self, offset: int, nbytes: int) -> None:
        before, behind = self.ends.get(offset), offset + nbytes
        if behind in self.free:
            nbytes += self._remove(behind)
        if before is not None:
            nbytes += self._remove(before)
            offset = before
        self._add(offset, nbytes)

    def _add(self, offset: int, nbytes: int) -> None:
        self.free[offset] = nbytes
        self.ends[offset + nbytes] = offset
        if nbytes not in self.offsets:
            self.offsets[nbytes] = []
            insort(self.sizes, nbytes)
        heappush(self.offsets[nbytes], offset)

    def _remove(self, offset: int) -> int:
        nbytes = self.free.pop(offset)
        del self.ends[offset + nbytes]
        return nbytes
