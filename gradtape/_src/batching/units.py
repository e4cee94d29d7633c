"""A sparse representation of rows of the identity on their way through a backward pass.

A Jacobian runs a pass over all unit vectors at once. Element-wise ops, and ops that only move elements, leave
one nonzero element in each of them. Such a batch is stored as `Units` instead of a matrix: the values,
without the new axis, and for each value the row that it belongs to. The work is that of a single pass until
an op mixes elements, and an exact zero stays zero whatever it is multiplied by.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base.dtypes import BY_CODE, float64
from gradtape._src.graph.ir import Callback, Node

# Masks of up to this many elements are constants of a compiled Jacobian.
_FOLDED = 1 << 16
# A batch with more terms than this is stored as a matrix.
_MOST_TERMS = 8


class Term(NamedTuple):
    """A batch in which every element is zero in all rows but one: element k is `value[k]` in row `places[k]`,
    and zero everywhere if `places[k]` is -1."""

    value: Any
    places: np.ndarray


class Units:
    """A batch of rows as a sum of terms, each of the shape of one row."""

    def __init__(self, terms: list[Term], size: int) -> None:
        self.terms = terms
        self.size = size

    @staticmethod
    def identity(shape: tuple[int, ...], dtype: Any, batch: int | None) -> Units:
        """Unit vectors of a shape; with `batch`, repeated for that many examples."""
        size = int(np.prod(shape, dtype=np.int64))
        places = np.arange(size).reshape(shape)
        if batch is not None:
            places = np.broadcast_to(places, (batch, *shape))
        return Units([Term(ops.ones(places.shape, dtype), places)], size)

    def dense(self) -> Any:
        """The batch as a tensor."""
        return _sum([self._rows(t) for t in self.terms])

    def _rows(self, term: Term) -> Any:
        numbers = np.arange(self.size).reshape(-1, *([1] * term.places.ndim))
        if term.places.size * self.size <= _FOLDED:
            mask = ops.convert_to_tensor(numbers == term.places)
        else:
            places = ops.convert_to_tensor(np.ascontiguousarray(term.places, np.int32))
            mask = ops.equal(ops.convert_to_tensor(numbers.astype(np.int32)), places)
        return ops.select(mask, term.value, ops.zeros([], term.value.dtype))


def _sum(tensors: list) -> Any:
    total = tensors[0]
    for t in tensors[1:]:
        total = total + t
    return total


def through(node: Node, operands: list, marks: list[bool]) -> list | None:
    """The results of a node if they are sparse, or cheap to compute; None if the rows are needed."""
    moving = [k for k, m in enumerate(marks) if m]
    if isinstance(node.op, Callback) or not all(isinstance(operands[k], Units) for k in moving):
        return None
    size = operands[moving[0]].size
    pattern = node.op.row.pattern
    if pattern == "aligned":
        return _joined(_elementwise(node, operands, moving), size)
    if pattern == "moves":
        if not all(marks) or (len(moving) > 1 and any(len(x.terms) > 1 for x in operands)):
            return None
        count = len(operands[0].terms)
        moved = [_moved(node, [x.terms[k] for x in operands]) for k in range(count)]
        return [_joined(list(terms), size)[0] for terms in zip(*moved, strict=True)]
    if pattern == "product" and len(moving) == 1:
        return _all([_product(node, operands, moving[0], t, size) for t in operands[moving[0]].terms], size)
    if pattern == "adds" and all(marks) and len(operands) == 1 and not node.results[0].shape:
        return _all([_total(node, t, size) for t in operands[0].terms], size)
    return None


def _joined(terms: list[Term], size: int) -> list:
    """Adds up terms that have the same places."""
    out: list[Term] = []
    for t in terms:
        same = next((k for k, o in enumerate(out) if np.array_equal(o.places, t.places)), None)
        if same is None:
            out.append(t)
        else:
            out[same] = Term(out[same].value + t.value, t.places)
    units = Units(out, size)
    return [units if len(out) <= _MOST_TERMS else units.dense()]


def _all(parts: list, size: int) -> list | None:
    """The sum of a node's results over the terms: as terms, or as tensors with all rows."""
    if any(p is None for p in parts):
        return None
    if all(isinstance(p, Term) for p in parts):
        return _joined(parts, size)
    return [_sum([Units([p], size).dense() if isinstance(p, Term) else p for p in parts])]


def _elementwise(node: Node, operands: list, moving: list[int]) -> list[Term]:
    """A pass is linear in its seed, so terms go through one by one, with the other operands that depend on
    the seed set to zero; zero stays zero."""
    shape = node.results[0].shape
    if len({len(operands[k].terms) for k in moving}) == 1 and all(
        np.array_equal(a.places, b.places)
        for k in moving
        for a, b in zip(operands[k].terms, operands[moving[0]].terms, strict=True)
    ):
        sets = [[operands[k].terms[i] if k in moving else None for k in range(len(operands))]
                for i in range(len(operands[moving[0]].terms))]  # fmt: skip
    else:
        sets = [
            [t if k == one else None for k in range(len(operands))]
            for one in moving
            for t in operands[one].terms
        ]
    out = []
    for chosen in sets:
        xs = []
        for k, (x, v) in enumerate(zip(operands, node.operands, strict=True)):
            term = chosen[k]
            xs.append(
                term.value if term is not None else ops.zeros(v.shape, BY_CODE[v.dtype]) if k in moving else x
            )
        places = next(t.places for t in chosen if t is not None)
        out.append(Term(_core.apply(node.op, xs, node.attrs)[0], np.broadcast_to(places, shape)))
    return out


def _moved(node: Node, terms: list[Term]) -> list[Term]:
    """The row indices move like the elements."""
    numbers = [ops.convert_to_tensor(t.places + 1.0) for t in terms]
    kinds = [p.kind for p in node.op.row.attributes]
    attrs = tuple(float64 if k == "Dtype" else a for k, a in zip(kinds, node.attrs, strict=True))
    places = [r.numpy().astype(np.int64) - 1 for r in _core.apply(node.op, numbers, attrs)]
    values = _core.apply(node.op, [t.value for t in terms], node.attrs)
    return [Term(v, p) for v, p in zip(values, places, strict=True)]


def _product(node: Node, operands: list, which: int, term: Term, size: int) -> Any:
    other = operands[1 - which]
    flipped, other_flipped = (bool(node.attrs and node.attrs[k]) for k in (which, 1 - which))
    if term.value.ndim != 2 or other.ndim != 2:
        return None
    if which == 0 and not flipped and term.places.shape[1] == size and (term.places == np.arange(size)).all():
        # Row i of the identity takes row i of the other factor.
        w = ops.transpose(other, [1, 0]) if other_flipped else other
        return ops.expand_dims(ops.transpose(term.value, [1, 0]), 2) * ops.expand_dims(w, 1)
    if term.places.shape[int(flipped != (which == 0))] == 1:
        # A product over an axis of one element is an outer product: no elements are mixed.
        xs = [term.value, other] if which == 0 else [other, term.value]
        places = term.places.T if flipped else term.places
        return Term(_core.apply(node.op, xs, node.attrs)[0], np.broadcast_to(places, node.results[0].shape))
    return None


def _total(node: Node, term: Term, size: int) -> Any:
    """The sum of all elements: in row k it is element k, times its factor in the sum."""
    if not np.array_equal(term.places.reshape(-1), np.arange(size)):
        return None
    ones = ops.ones(term.value.shape, float64)
    factor = float(_core.apply(node.op, [ones], node.attrs)[0].numpy()) / max(size, 1)
    row = ops.reshape(term.value, [size])
    return row if factor == 1 else row * factor
