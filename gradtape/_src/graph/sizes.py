"""Candidate sizes, the likeliest first, for a call that fails with the sizes of a world.

An unknown size may have to equal a size of another operand, a number among the arguments, or the sum or product of
numbers (`split`, `reshape`), or be a size that the call turns into one of these. An operand of unknown rank may have to
have the shape of another one, or some of its axes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base.dtypes import BY_CODE
from gradtape._src.base.shape import TensorShape
from gradtape._src.graph.calls import Call, Frame, leaves_of, values_in
from gradtape._src.tensors import conversion

Shape = tuple[int, ...]
_HIGHEST_RANK = 5
_USUAL = (2, 3, 4)  # sizes that functions often require: coordinates, colours


class Wanted:
    """The known sizes and shapes in a call, and the unknown sizes of its operands, in a world of this sample size."""

    def __init__(self, call: Call, frame: Frame, sample: int, downwards: bool) -> None:
        every = dict.fromkeys(values_in((call.args, call.kwargs)))
        self.values = [v for v in every if v.variable is None]
        self._dims = [frame[v]._dims for v in self.values]
        self._gaps = [
            (i, k) for i, v in enumerate(self.values) for k, d in enumerate(v.static or ()) if d is None
        ]
        self._unknown = [i for i, v in enumerate(self.values) if v.static is None]
        self._sample = sample
        self._downwards = downwards
        self._given = [
            *leaves_of((call.args, call.kwargs)),
            *(frame[v] for v in every if v.variable is not None),
        ]
        arguments = (*call.args, *call.kwargs.values())
        self._lengths = [len(x) for x in arguments if isinstance(x, (list, tuple))]
        arrays = [x.numpy() for x in map(frame.__getitem__, self.values) if x._symbol is None]
        self._specs = list(_specs_in((*arguments, *arrays)))
        self._lists = [s for s in self._specs if None not in s]
        self._shapes = self._own_shapes()

    def choices(self) -> Iterator[list[Shape]]:
        """Shapes for all operands, the likeliest first."""
        for change in self._changes():
            yield [
                tuple(change.get((i, k), d) for k, d in enumerate(dims)) for i, dims in enumerate(self._dims)
            ]
        if self._unknown:
            for shape in self._of_unknown_rank():
                same = [shape if i in self._unknown else dims for i, dims in enumerate(self._dims)]
                others = self._with_numbers(shape)
                yield from (*others, same) if self._downwards else (same, *others)
            gaps = [(gap, n) for n in (1, *_USUAL) for gap in self._gaps]
            for shape in self._of_unknown_rank():
                dims = [shape if i in self._unknown else dims for i, dims in enumerate(self._dims)]
                for (i, k), n in gaps:
                    yield [(*d[:k], n, *d[k + 1 :]) if i == j else d for j, d in enumerate(dims)]

    def _own_shapes(self) -> list[Shape]:
        shapes: list[Shape] = [d for i, d in enumerate(self._dims) if i not in self._unknown]
        shapes += [x._dims for x in self._given if isinstance(x, _core.Tensor)]
        variables = [conversion.leaf_of(x) for x in self._given]  # Keras variables too
        shapes += [tuple(v._value_shape) for v in variables if isinstance(v, _core.Variable)]
        shapes += [x.shape for x in self._given if isinstance(x, np.ndarray)]
        return list(dict.fromkeys(shapes))

    # ---- gaps ---------------------------------------------------------------------------------

    def _changes(self) -> Iterator[dict]:
        """Other sizes for gaps: the required element count, those of another shape, one, a column, or two of these."""
        likely, derived = self._sizes()
        columns: dict[int, list] = {}
        for i, k in self._gaps:
            columns.setdefault(k - len(self._dims[i]), []).append((i, k))
        pairs = [(a, b) for j, a in enumerate(self._gaps) for b in self._gaps[:j]]
        yield from self._of_size()
        yield from self._aligned()
        for sizes in (likely, derived):
            yield from ({gap: n} for n in sizes for gap in self._gaps)
            yield from (
                dict.fromkeys(column, n) for n in sizes for column in columns.values() if len(column) > 1
            )
            if sizes is likely:
                yield from ({a: n, b: m} for n in likely for m in likely for a, b in pairs)

    def _of_size(self) -> Iterator[dict]:
        """Sizes that give an operand as many elements as a shape among the arguments: `reshape(x, [2, 3])`."""
        for shape in self._lists:
            count = math.prod(shape)
            for i, v in enumerate(self.values):
                mine = [gap for gap in self._gaps if gap[0] == i]
                product = math.prod(d for d in v.static or () if d is not None)
                if mine and product and count >= 0 and count % product == 0:
                    yield {**dict.fromkeys(mine, 1), mine[0]: count // product}

    def _aligned(self) -> Iterator[dict]:
        """Sizes that give all operands the shape of one of them, as element-wise ops require."""
        for shape in self._shapes:
            if self._sample not in shape:
                from_end = {(i, k): k - len(self._dims[i]) for i, k in self._gaps}
                yield {gap: shape[k] for gap, k in from_end.items() if -k <= len(shape)}

    def _sizes(self) -> tuple[list[int], list[int]]:
        """Candidates for an unknown size: other sizes, and sizes that the call turns into those."""
        dims = list(dict.fromkeys(d for shape in (*self._shapes, *self._dims) for d in shape))
        candidates = [d for d in dims if d != self._sample]
        candidates += [
            1,
            *self._lengths,
            *(x for x in self._given if type(x) is int and 0 < x < self._sample),
        ]
        candidates += [sum(numbers) for numbers in self._lists]
        candidates += [len(shape) for shape in self._shapes]
        candidates += _USUAL
        candidates = list(dict.fromkeys(n for n in candidates if n >= 0))
        sizes: dict[int, None] = {}
        for d in dims:
            for n in candidates:
                if d and n * self._sample % d == 0:
                    sizes.setdefault(n * self._sample // d)
                sizes.setdefault(n + self._sample - d)
        sizes.update(dict.fromkeys(n * self._sample for n in candidates))
        return candidates, [n for n in sizes if n > 0 and n not in candidates]

    # ---- ranks --------------------------------------------------------------------------------

    def _of_unknown_rank(self) -> Iterator[Shape]:
        """Shapes of every rank. Each world begins at the other end: if both find the same rank, it is the only one."""
        likely = [n for n in self._sizes()[0] if n != self._sample]
        own = [*self._shapes, *(tuple(self._sample if d is None else d for d in s) for s in self._specs)]
        ranks = range(_HIGHEST_RANK)
        for rank in reversed(ranks) if self._downwards else ranks:
            anything = (self._sample,) * rank
            more = anything[1:]
            ends = [shape for n in likely for shape in ((*more, n), (n, *more))]
            shapes = [anything, *(ends if rank else ())]
            for shape in own:
                beside = (self._sample,) * max(rank - len(shape), 0)
                for whole in ((*beside, *shape[-rank:]), (*shape[:rank], *beside)) if rank else ():
                    shapes += self._parts_of(whole)
            yield from dict.fromkeys(shapes)

    def _with_numbers(self, shape: Shape) -> Iterator[list[Shape]]:
        """This shape, and integers that describe its axes: `pad(x, paddings)`, `tile(x, multiples)`."""
        numbers = [i for i in self._unknown if BY_CODE[self.values[i].dtype].is_integer]
        if 0 < len(numbers) < len(self.values):
            for own in ((*shape, 1), (), (len(shape),), (len(shape), 2)):
                among = {i: own if i in numbers else shape for i in self._unknown}
                yield [among.get(i, dims) for i, dims in enumerate(self._dims)]

    def _parts_of(self, shape: Shape) -> Iterator[Shape]:
        """Variants of a shape in which one axis, all axes but one, or all axes are kept, and the others are unknown."""
        n = self._sample
        for k in range(len(shape)):
            yield tuple(d if j == k else n for j, d in enumerate(shape))
        for k in range(len(shape)):
            yield tuple(n if j == k else d for j, d in enumerate(shape))
        yield shape


def _specs_in(args: Sequence[Any]) -> Iterator[list]:
    """The shapes and other lists of numbers among the arguments; a shape may have gaps."""
    for x in args:
        if isinstance(x, TensorShape):
            x = x.as_list() if x.rank else ()
        if isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype.kind in "iu":
            x = x.tolist()
        if isinstance(x, (list, tuple)) and x and all(d is None or type(d) is int for d in x):
            yield list(x)
