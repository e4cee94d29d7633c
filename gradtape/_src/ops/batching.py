"""Batching rules: how ops run over one more leading axis, for rows that need a rule of their own.

`rule(size, batched, operands, attrs)` gets operands, of which those marked in `batched` have a new leading
axis of length `size`, and returns the result with that axis, or None, which means: loop over the slices. Rows
with `batch="leading"` need no rule; see `batching/batch.py`.
"""

from __future__ import annotations

from typing import Any

from gradtape import _core
from gradtape._src.ops.table import TABLE
from gradtape._src.tensors import above


def _row(name: str, operands: list, attrs: tuple) -> Any:
    results = _core.apply(TABLE[name].op, operands, attrs)
    return tuple(results) if TABLE[name].many else results[0]


def _broadcast(x: Any, batched: bool, size: int) -> Any:
    return x if batched else above.ops.broadcast_to(x, [size, *x.shape])


def _all(size: int, batched: list[bool], operands: list) -> list:
    return [_broadcast(x, b, size) for x, b in zip(operands, batched, strict=True)]


def _with_rank(x: Any, rank: int) -> Any:
    """Inserts axes of size 1 after the new axis, so that each slice has `rank` axes."""
    return (
        above.ops.reshape(x, [x.shape[0], *([1] * (rank + 1 - x.ndim)), *x.shape[1:]])
        if x.ndim <= rank
        else x
    )


# ---- shapes -------------------------------------------------------------------------------------


def sum_to(size, batched, operands, attrs):
    (x,), (shape,) = operands, attrs
    ones = [1] * (x.ndim - 1 - len(shape))
    return above.ops.reshape(_row("sum_to", [x], ((size, *ones, *shape),)), [size, *shape])


def broadcast_to(size, batched, operands, attrs):
    (x,), (shape,) = operands, attrs
    return _row("broadcast_to", [_with_rank(x, len(shape))], ((size, *shape),))


def squeeze(size, batched, operands, attrs):
    (x,) = operands
    return above.ops.reshape(x, [size, *(d for d in x.shape[1:] if d != 1)])


def fill(size, batched, operands, attrs):
    (value,), (dims,) = operands, attrs
    return above.ops.broadcast_to(_with_rank(value, len(dims)), [size, *dims])


# ---- the same op with longer attributes ---------------------------------------------------------


def tile(size, batched, operands, attrs):
    return _row("tile", operands, ((1, *attrs[0]),))


def roll(size, batched, operands, attrs):
    shift, axes = attrs
    rank = operands[0].ndim - 1
    return _row("roll", operands, (shift, tuple(a % rank + 1 for a in axes)))


def pad(size, batched, operands, attrs):
    if batched[1]:
        return None
    return _row("pad", operands, ((0, 0, *attrs[0]),))


def mirror_pad(size, batched, operands, attrs):
    return _row("mirror_pad", operands, ((0, 0, *attrs[0]), attrs[1]))


def mirror_unpad(size, batched, operands, attrs):
    return _row("mirror_unpad", operands, ((0, 0, *attrs[0]), attrs[1]))


def index(size, batched, operands, attrs):
    begin, step, count, shape = attrs
    return _row("index", operands, ((0, *begin), (1, *step), (size, *count), (size, *shape)))


def unindex(size, batched, operands, attrs):
    begin, step, count, shape = attrs
    return _row("unindex", operands, ((0, *begin), (1, *step), (size, *count), (size, *shape)))


def index_update(size, batched, operands, attrs):
    begin, step, count = attrs
    x, value = operands
    value = _with_rank(value, len(count)) if batched[1] else value
    value = above.ops.broadcast_to(value, [size, *count])
    return _row(
        "index_update", [_broadcast(x, batched[0], size), value], ((0, *begin), (1, *step), (size, *count))
    )


def split(size, batched, operands, attrs):
    return _row("split", operands, (attrs[0] + 1, attrs[1]))


# ---- products -----------------------------------------------------------------------------------


def matmul(size, batched, operands, attrs):
    """One large product if the second factor is the same for the whole batch, otherwise a batch of products."""
    ops = above.ops
    a, b = operands
    ta, tb = attrs
    if batched[0] and not batched[1] and b.ndim == 2 and not ta:
        flat = _row("matmul", [ops.reshape(a, [_count(a.shape[:-1]), a.shape[-1]]), b], attrs)
        return ops.reshape(flat, [*a.shape[:-1], flat.shape[-1]])
    if batched[0] and not batched[1] and b.ndim == 2 and a.ndim == 3 and a.shape[2] == 1:
        # a column, transposed: a row
        return _row("matmul", [ops.reshape(a, [size, 1, a.shape[1]]), b], (False, tb))
    rank = max(x.ndim - m for x, m in zip(operands, batched, strict=True))
    return _row(
        "matmul", [_with_rank(x, rank) if m else x for x, m in zip(operands, batched, strict=True)], attrs
    )


def _count(shape: Any) -> int:
    n = 1
    for d in shape:
        n *= d
    return n


# ---- indices ------------------------------------------------------------------------------------


def gather(size, batched, operands, attrs):
    ops = above.ops
    x, indices = operands
    (axis,) = attrs
    if not batched[1]:
        return _row("gather", [x, indices], (axis + 1,))
    if not batched[0]:
        out = _row("gather", [x, indices], (axis,))
        return ops.transpose(out, [axis, *range(axis), *range(axis + 1, out.ndim)]) if axis else out
    return _row("gather_batched", operands, (axis + 1, 1))


def gather_batched(size, batched, operands, attrs):
    axis, dims = attrs
    dims = dims + operands[1].ndim - batched[1] if dims < 0 else dims
    return _row("gather_batched", _all(size, batched, operands), (axis + 1, dims + 1))


def gather_grad(size, batched, operands, attrs):
    axis, dims, shape = attrs
    dims = dims + operands[1].ndim - batched[1] if dims < 0 else dims
    if dims == 0 and not batched[1]:
        return _row("gather_grad", operands, (axis + 1, 0, (size, *shape)))
    return _row("gather_grad", _all(size, batched, operands), (axis + 1, dims + 1, (size, *shape)))


def scatter_rows_add(size, batched, operands, attrs):
    return gather_grad(size, batched, operands, (0, 0, attrs[0]))


def gather_nd(size, batched, operands, attrs):
    return _row("gather_nd", _all(size, batched, operands), (attrs[0] + 1,))


def _numbered(indices: Any, size: int) -> Any:
    """Indices of the whole batch, each preceded by its position in the batch."""
    ops = above.ops
    numbers = ops.reshape(ops.range_(size, dtype=indices.dtype), [size, *([1] * (indices.ndim - 1))])
    return ops.concat([ops.broadcast_to(numbers, [*indices.shape[:-1], 1]), indices], -1)


def scatter_nd(size, batched, operands, attrs):
    indices, updates = _all(size, batched, operands)
    return _row("scatter_nd", [_numbered(indices, size), updates], ((size, *attrs[0]),))


def tensor_scatter(name: str) -> Any:
    """The rule of `tensor_scatter_update`, `_add`, `_sub`, `_min` and `_max`."""

    def rule(size, batched, operands, attrs):
        x, indices, updates = _all(size, batched, operands)
        return _row(name, [x, _numbered(indices, size), updates], attrs)

    return rule


def segments(name: str) -> Any:
    """The rule of the unsorted segment ops: each element of the batch has segments of its own."""

    def rule(size, batched, operands, attrs):
        ops = above.ops
        data, ids = _all(size, batched, operands)
        (count,) = attrs
        first = ops.reshape(ops.range_(size, dtype=ids.dtype) * count, [size, *([1] * (ids.ndim - 1))])
        ids = ops.where(ids < 0, ids, ids + first)
        out = _row(name, [data, ids], (size * count,))
        return ops.reshape(out, [size, count, *out.shape[1:]])

    return rule


def runs(name: str) -> Any:
    """The rule of `take_runs` and `add_runs`: the new axis becomes the second one, a part of the rows that move."""

    def rule(size, batched, operands, attrs):
        if any(batched[1:]):
            return None
        x, *places = operands
        swapped = [1, 0, *range(2, x.ndim)]
        ops = above.ops
        return ops.transpose(_row(name, [ops.transpose(x, swapped), *places], attrs), swapped)

    return rule


def boolean_unmask(size, batched, operands, attrs):
    axis, shape = attrs
    return None if batched[1] else _row("boolean_unmask", operands, (axis + 1, (size, *shape)))


def one_hot(size, batched, operands, attrs):
    if batched[1] or batched[2]:
        return None
    return _row("one_hot", operands, (attrs[0], attrs[1] + 1))
