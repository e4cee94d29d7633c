"""Positions for the boxes of a graph: layers from top to bottom, few crossings, straight long edges.

Sugiyama's method in its plain form: layers by longest path; edges over several layers get a bend in each; orders
within layers by the mean position of the neighbours, swept down and up; then coordinates as near to those of the
neighbours as the widths of the boxes allow.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

Key = Any
_GAP_X, _GAP_Y = 18.0, 34.0
_BEND = 6.0  # the width reserved for an edge that crosses a layer
_SWEEPS = 8
_LONGEST = 40  # an edge over more layers than this is straight: otherwise bends would outnumber boxes


class Layout(NamedTuple):
    """Centres of boxes, paths of edges, and the size of the drawing."""

    places: dict[Key, tuple[float, float]]
    ways: dict[tuple[Key, Key], list[tuple[float, float]]]  # bends between the two ends
    width: float
    height: float


def layered(sizes: dict[Key, tuple[float, float]], edges: list[tuple[Key, Key]]) -> Layout:
    """A layout of boxes of these sizes, given in an order in which edges point forwards."""
    layer = _layers(sizes, edges)
    rows: dict[int, list[Key]] = defaultdict(list)
    for k in sizes:
        rows[layer[k]].append(k)
    above: dict[Key, list[Key]] = defaultdict(list)
    below: dict[Key, list[Key]] = defaultdict(list)
    bends: dict[tuple[Key, Key], list[Key]] = {}
    for a, b in dict.fromkeys(edges):
        chain = [a]
        if layer[b] - layer[a] <= _LONGEST:
            chain += [("bend", a, b, i) for i in range(layer[a] + 1, layer[b])]
        bends[a, b] = chain[1:]
        for i, bend in enumerate(chain[1:], layer[a] + 1):
            rows[i].append(bend)
        chain.append(b)
        for x, y in zip(chain, chain[1:], strict=False):
            below[x].append(y)
            above[y].append(x)
    ordered = [rows[i] for i in sorted(rows)]
    _order(ordered, above, below)
    width = {k: s[0] for k, s in sizes.items()}
    x = _coordinates(ordered, above, below, width)
    return _finish(ordered, sizes, x, bends)


def _layers(sizes: dict, edges: list) -> dict[Key, int]:
    """Puts final results as high as their longest path allows, and every other box just above the first that uses it."""
    layer = dict.fromkeys(sizes, 0)
    into: dict[Key, list[Key]] = defaultdict(list)
    users: dict[Key, list[Key]] = defaultdict(list)
    for a, b in edges:
        into[b].append(a)
        users[a].append(b)
    for k in sizes:
        if into[k]:
            layer[k] = max(layer[a] for a in into[k]) + 1
    for k in reversed(list(sizes)):
        if users[k]:
            layer[k] = min(layer[b] for b in users[k]) - 1
    return layer


def _order(rows: list[list[Key]], above: dict, below: dict) -> None:
    """Sorts each row by the mean position of its neighbours in the previous row, sweeping down and up."""
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        neighbours = above if down else below
        place: dict[Key, float] = {}
        for row in rows if down else reversed(rows):
            position = {k: i / max(len(row) - 1, 1) for i, k in enumerate(row)}

            def wanted(k: Key, position: dict = position, place: dict = place) -> float:
                near = [place[n] for n in neighbours.get(k, ()) if n in place]  # noqa: B023 - one row at a time
                return sum(near) / len(near) if near else position[k]

            row.sort(key=wanted)
            place |= {k: i / max(len(row) - 1, 1) for i, k in enumerate(row)}


def _coordinates(rows: list[list[Key]], above: dict, below: dict, width: dict) -> dict[Key, float]:
    x: dict[Key, float] = {}
    for row in rows:
        at = 0.0
        for k in row:
            at += width.get(k, _BEND) / 2
            x[k] = at
            at += width.get(k, _BEND) / 2 + _GAP_X
        for k in row:
            x[k] -= at / 2
    for sweep in range(_SWEEPS):
        last = sweep == _SWEEPS - 1
        for row in rows if sweep % 2 == 0 else reversed(rows):
            targets = []
            for k in row:
                near = above.get(k, ()) if sweep % 2 == 0 else below.get(k, ())
                near = (*near, *below.get(k, ())) if last else near
                targets.append(sum(x[n] for n in near) / len(near) if near else x[k])
            for k, v in zip(row, _apart(row, targets, width), strict=True):
                x[k] = v
    return x


def _apart(row: list[Key], targets: list[float], width: dict) -> list[float]:
    """The positions nearest to the wanted ones (least squares) at which boxes do not overlap.

    After subtracting the room that the boxes before it need, each position must be at least the previous one:
    isotonic regression, by pooling neighbours that are out of order.
    """
    room, at = [], 0.0
    for i, k in enumerate(row):
        if i:
            at += (width.get(row[i - 1], _BEND) + width.get(k, _BEND)) / 2 + _GAP_X
        room.append(at)
    pools: list[tuple[float, int]] = []  # mean, members
    for target, r in zip(targets, room, strict=True):
        mean, n = target - r, 1
        while pools and pools[-1][0] > mean:
            m, k = pools.pop()
            mean, n = (m * k + mean * n) / (n + k), n + k
        pools.append((mean, n))
    means = [mean for mean, n in pools for _ in range(n)]
    return [m + r for m, r in zip(means, room, strict=True)]


def _finish(rows: list[list[Key]], sizes: dict, x: dict, bends: dict) -> Layout:
    margin, y = 12.0, 12.0
    left = min((x[k] - sizes.get(k, (_BEND, 0))[0] / 2 for k in x), default=0.0) - margin
    places: dict[Key, tuple[float, float]] = {}
    for row in rows:
        tall = max((sizes[k][1] for k in row if k in sizes), default=0.0)
        for k in row:
            places[k] = (x[k] - left, y + tall / 2)
        y += tall + _GAP_Y
    right = max((places[k][0] + sizes.get(k, (_BEND, 0))[0] / 2 for k in places), default=0.0)
    ways = {edge: [places[b] for b in chain] for edge, chain in bends.items()}
    boxes = {k: places[k] for k in sizes}
    return Layout(boxes, ways, right + margin, y - _GAP_Y + margin)
