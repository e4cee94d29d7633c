"""Sorting along an axis, the largest elements, and binary search."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops import casting, indexed, movement
from gradtape._src.ops.comparison import is_finite, logical_and
from gradtape._src.ops.reduction import reduce_all, reduce_sum
from gradtape._src.ops.samples import at, call, ints
from gradtape._src.ops.table import BOOL, REAL, composite, opaque
from gradtape._src.tensors.conversion import as_tensor, as_tensors

__all__ = ["argsort", "in_top_k", "searchsorted", "sort", "top_k"]

_SORTS = [
    call((5,)), call((3, 4)), call((3, 4), axis=0), call((2, 3, 2), axis=1, descending=True), call((0,)),
    call((2, 0)), call((3, 1), axis=0), call(ints([3, 1, 2, 1]), descending=True),
]  # fmt: skip
_BAD_AXIS = [
    (call((2, 3), axis=2), "InvalidArgumentError", "out of range"),
    (call(()), "InvalidArgumentError", "out of range"),
]


def _numpy_order(x, axis=-1, descending=False):
    if not descending:
        return np.argsort(x, axis=axis, kind="stable").astype(np.int32)
    # Reversed before and after, so that equal elements keep their order.
    order = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - order, axis).astype(np.int32)


order_of = opaque(
    "argsort", REAL | BOOL, "values axis:Axis=-1 descending:Bool=False", rule=None, xla="sort.argsort",
    batch="leading",
    numpy=_numpy_order, samples=[*_SORTS, call(at([2.0, 1.0, 2.0, 1.0]))], bad=_BAD_AXIS,
    doc="The indices that sort `values` along `axis`; equal elements keep their order.",
)  # fmt: skip


def _sort_rule(g, x, out, axis, descending):
    return indexed.put_along_add(g, order_of(x, axis, descending), axis, x.shape)


sorted_of = opaque(
    "sort", REAL | BOOL, "values axis:Axis=-1 descending:Bool=False", xla="sort.sort",
    batch="leading",
    rule=_sort_rule,
    numpy=lambda x, axis=-1, descending=False: np.take_along_axis(x, _numpy_order(x, axis, descending), axis),
    samples=_SORTS, gradient_samples=_SORTS[:-1], bad=_BAD_AXIS, doc="`values` sorted along `axis`.",
)  # fmt: skip


_TOPS = [call((5,)), call((3, 4), k=2), call((2, 3, 4), k=4), call((3, 4), k=0), call((0, 3), k=2)]


def _numpy_top_k(x, k=1, sorted=True):
    order = _numpy_order(x, -1, True)[..., :k]
    return np.take_along_axis(x, order, -1), order


top_k_of = opaque(
    "top_k", REAL, "input k:Int=1 sorted:Bool=True", many=True, xla="sort.top_k",
    batch="leading",
    rule=lambda g, x, out, k, sorted: indexed.put_along_add(g[0], out[1], len(x.shape) - 1, x.shape),
    numpy=_numpy_top_k,
    samples=[*_TOPS, call(ints([1, 3, 3, 2]), k=3)], gradient_samples=_TOPS,
    bad=[
        (call((3,), k=4), "InvalidArgumentError", "must have at least k columns"),
        (call((3,), k=-1), "InvalidArgumentError", "Need k >= 0"),
        (call(()), "InvalidArgumentError", "must be >= 1-D"),
    ],
    doc="The `k` largest elements of each row, and their indices.",
)  # fmt: skip


def _numpy_place(sequence, values, right=False):
    rows = zip(sequence.reshape(-1, sequence.shape[-1]), values.reshape(-1, values.shape[-1]), strict=True)
    places = [np.searchsorted(x, y, "right" if right else "left") for x, y in rows]
    return np.stack(places).reshape(values.shape).astype(np.int32)


place_of = opaque(
    "searchsorted", REAL, "sorted_sequence values right:Bool=False", rule=None, xla="sort.searchsorted",
    batch="leading",
    numpy=_numpy_place,
    samples=[
        call(at([1.0, 2.0, 2.0, 4.0]), at([2.0, 0.0, 5.0])),
        call(at([1.0, 2.0, 2.0, 4.0]), at([2.0, 0.0, 5.0]), right=True),
        call(at([[1.0, 2.0], [3.0, 4.0]]), at([[1.5], [1.5]])),
    ],
    bad=[(call((2, 3), (3, 1)), "InvalidArgumentError", "must match")],
    doc="The index at which each of `values` would be inserted into a sorted sequence.",
)  # fmt: skip


# ---- the public functions ----


def _descending(direction):
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(
            f"sort: `direction` should be one of ['ASCENDING', 'DESCENDING']; got {direction!r}."
        )
    return direction == "DESCENDING"


@composite("sort")
def sort(values, axis=-1, direction="ASCENDING", name=None):
    """`values` sorted along `axis`."""
    return sorted_of(values, axis, _descending(direction))


@composite("argsort")
def argsort(values, axis=-1, direction="ASCENDING", stable=False, name=None):
    """The indices that sort `values` along `axis`; always stable."""
    return order_of(values, axis, _descending(direction))


class TopKV2(NamedTuple):
    """What `top_k` returns."""

    values: _core.Tensor
    indices: _core.Tensor


@composite("math.top_k nn.top_k")
def top_k(input, k=1, sorted=True, index_type=dtypes.int32, name=None):
    """The `k` largest elements along the last axis and their indices; of equal elements, the first come first."""
    values, indices = top_k_of(input, k, sorted)
    if dtypes.as_dtype(index_type) is not dtypes.int32:
        indices = casting.cast(indices, index_type)
    return TopKV2(values, indices)


@composite("math.in_top_k nn.in_top_k")
def in_top_k(targets, predictions, k, name=None):
    """Whether the target class of each row is among its `k` largest predictions, ties included."""
    targets, predictions = as_tensor(targets), as_tensor(predictions)
    if len(predictions.shape) != 2:
        raise InvalidArgumentError(f"in_top_k: predictions must be 2-dimensional; got {predictions.shape}.")
    if len(targets.shape) != 1 or targets.shape[0] != predictions.shape[0]:
        raise InvalidArgumentError(
            f"in_top_k: First dimension of predictions {predictions.shape} must match length of targets "
            f"{targets.shape}."
        )
    valid = logical_and(targets >= 0, targets < predictions.shape[1])
    column = movement.expand_dims(targets * casting.cast(valid, targets.dtype), 1)
    target = indexed.take_along(predictions, column, 1)
    larger = reduce_sum(casting.cast(predictions > target, dtypes.int32), 1)
    return logical_and(logical_and(valid, reduce_all(is_finite(predictions), 1)), larger < k)


@composite("searchsorted")
def searchsorted(sorted_sequence, values, side="left", out_type=dtypes.int32, name=None):
    """The index at which each of `values` would be inserted into `sorted_sequence`, row by row."""
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: `side` must be either 'right' or 'left'; got {side!r}.")
    sequence, values = as_tensors(sorted_sequence, values)
    if not len(sequence.shape) or not len(values.shape):
        raise InvalidArgumentError(
            f"searchsorted: operands need at least one axis; got {sequence.shape} and {values.shape}."
        )
    shape = values.shape
    if len(shape) != len(sequence.shape):  # batch axes are flattened
        sequence = movement.reshape(sequence, [int(np.prod(sequence.shape[:-1])), sequence.shape[-1]])
        values = movement.reshape(values, [int(np.prod(shape[:-1])), shape[-1]])
    out = place_of(sequence, values, side == "right")
    if len(out.shape) != len(shape):
        out = movement.reshape(out, shape)
    return out if dtypes.as_dtype(out_type) is dtypes.int32 else casting.cast(out, out_type)
