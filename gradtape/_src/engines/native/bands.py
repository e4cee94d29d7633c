"""Finds bands: consecutive steps that treat the rows of their values independently.

The examples of a batch in a recurrent layer, or in a narrow network, are independent until their losses are summed.
Rows are divided into blocks, and a thread takes a block through all steps of a band (core/bands.h): threads do not
wait for each other between steps, and the result of a step is in the cache when the next step reads it. This pays
for steps that are long enough to run in parallel, but too short to do so efficiently one by one.

In a band a value is either *cut*, so that a block has only its own rows, or read *whole*: weights, which are
computed before the band.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

from gradtape._src.base.dtypes import SIZES
from gradtape._src.engines.native import fuse
from gradtape._src.engines.native.joins import Part
from gradtape._src.graph.ir import Graph, Value

_MOST_BLOCKS = 8
_FEWEST_ROWS = 8  # in a block
_LONGEST = 512  # steps in a band; programs can be interrupted between bands
_WORTH = 50_000  # the least time of all steps on one thread, in nanoseconds
_EACH = 1_500  # the same for a step, on average
_OF_A_BLOCK = (
    5_000  # the same for a step in a block, if there are more than a few blocks, because each has a cost
)
_FEW = 4
# Larger products are divided separately, into blocks of both sides that suit the caches.
_LARGEST_PRODUCT = 600_000  # nanoseconds
_LARGEST_WHOLE = 1 << 19  # bytes: every block reads them
_INPUT, _OUTPUT = 0, 1  # kinds of registers, as in lower

Cut = tuple[bool, ...]


class Band(NamedTuple):
    first: int
    blocks: int
    cut: list[Cut]  # for each step, which of its operands are

    @property
    def end(self) -> int:
        return self.first + len(self.cut)


def find(
    graph: Graph, steps: list[Any], aliases: dict[Value, Value], parts: dict[Value, Part], over: list[int]
) -> list[Band]:
    """The bands among the steps.

    `parts` are values inside others. `over`: for each output, the input that it may overwrite, or -1.
    """
    # Inputs that are overwritten when an output is computed.
    changes = {v: graph.inputs[i] for v, i in zip(graph.outputs, over, strict=False) if i >= 0}
    changes.update((v, part.of) for v, part in parts.items())
    joined = {part.of for part in parts.values()}
    bands: list[Band] = []
    i = 0
    while i < len(steps):
        band, end = None, i + 1
        if _is_product(steps[i]):
            band, end = _grown(i, steps, aliases, changes, joined)
        if band is not None:
            bands.append(band)
        i = max(end, i + 1)
    return bands


def _grown(
    first: int,
    steps: list[Any],
    aliases: dict[Value, Value],
    changes: dict[Value, Value],
    joined: set[Value],
) -> tuple[Band | None, int]:
    """The band that begins with a product, if it pays, and the index of the first step after it."""
    rows = steps[first].results[0].shape[0]
    blocks = next((n for n in range(_MOST_BLOCKS, 1, -1) if rows % n == 0 and rows // n >= _FEWEST_ROWS), 0)
    if not blocks:
        return None, first + 1
    written: set[Value] = set()
    whole: set[Value] = set()
    cuts: list[Cut] = []
    cost = 0.0
    for step in steps[first : first + _LONGEST]:
        cut = _cut(step, blocks)
        if cut is None:
            break
        roots = [aliases.get(v, v) for v in step.operands]
        # Blocks of values that are made of parts are not blocks of the parts.
        read = {v for v, c in zip(roots, cut, strict=True) if not c or v in joined}
        changed = {*step.results, *(changes[v] for v in step.results if v in changes)}
        if written & read or changed & (whole | read):
            break
        written |= changed
        whole |= read
        cuts.append(cut)
        cost += _nanoseconds(step)
    end = first + len(cuts)
    while blocks > _FEW and blocks % 2 == 0 and cost < _OF_A_BLOCK * len(cuts) * blocks:
        blocks //= 2
    pays = len(cuts) > 1 and cost >= _WORTH and cost >= _EACH * len(cuts)
    return Band(first, blocks, cuts) if pays else None, end


def _is_product(step: Any) -> bool:
    return step.what == "op" and step.object.row.pattern == "product" and step.results[0].shape != ()


def _nanoseconds(step: Any) -> float:
    """The approximate time of a step on one thread."""
    size = max([v.size for v in (*step.operands, *step.results)], default=0)
    if _is_product(step):
        return sqrt(float(step.operands[0].size) * step.operands[1].size * step.results[0].size) / 50
    return size * 0.1 * (len(step.object[3]) if step.what == "cluster" else 1)


def _cut(step: Any, blocks: int) -> Cut | None:
    """Which operands of a step are cut in a band; None if it cannot be in one."""
    if step.what == "cluster":
        return _cut_of_cluster(step, blocks)
    if step.what != "op" or step.object.row.by_rows is None:
        return None
    if _is_product(step) and _nanoseconds(step) > _LARGEST_PRODUCT:
        return None
    cut = step.object.row.by_rows([v.shape for v in step.operands], step.attrs)
    if cut is None:
        return None
    for v, c in zip(step.operands, cut, strict=True):
        if not c and v.size * SIZES[v.dtype] > _LARGEST_WHOLE:
            return None
    parts = [*(v for v, c in zip(step.operands, cut, strict=True) if c), *step.results]
    return cut if all(v.shape and v.size and v.shape[0] % blocks == 0 for v in parts) else None


def _cut_of_cluster(step: Any, blocks: int) -> Cut | None:
    outer, inner, registers, _, epilogues, _ = step.object
    if epilogues or (outer if outer > 1 else inner) % blocks:
        return None
    by_rows = {fuse.FULL, fuse.COLUMN} if outer > 1 else {fuse.FULL}
    cut: dict[int, bool] = {}
    for kind, broadcast, _, which in registers:
        if kind == _OUTPUT and broadcast not in by_rows:
            return None
        if kind == _INPUT and cut.setdefault(which, broadcast in by_rows) != (broadcast in by_rows):
            return None  # read in two ways
        if kind == _INPUT and outer == 1 and broadcast in (fuse.ROW, fuse.COLUMN):
            return None
    return tuple(cut.get(k, True) for k in range(len(step.operands)))
