"""Sums, means, products, minima and maxima of rows with the same segment id; partition and stitch.

The unsorted forms are rows of the table. The sorted ones (`segment_sum`, ...) have as many segments as the last id
plus one; an empty segment is 0 (1 for the product).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops import batching, casting
from gradtape._src.ops.arithmetic import conjugate, divide_no_nan, floordiv, maximum, sqrt
from gradtape._src.ops.comparison import equal, greater_equal, logical_and, select
from gradtape._src.ops.indexed import gather
from gradtape._src.ops.join import concat
from gradtape._src.ops.movement import reshape
from gradtape._src.ops.samples import call, ints
from gradtape._src.ops.static import array_of
from gradtape._src.ops.table import NUMBER, REAL, composite, indexed
from gradtape._src.tensors import conversion
from gradtape._src.tensors.conversion import as_tensor

__all__ = [
    "dynamic_partition", "dynamic_stitch", "segment_max", "segment_mean", "segment_min", "segment_prod",
    "segment_sum",
    "unsorted_segment_max", "unsorted_segment_mean", "unsorted_segment_min", "unsorted_segment_prod",
    "unsorted_segment_sqrt_n", "unsorted_segment_sum",
]  # fmt: skip


def _gather_segments(y, ids):
    """Gathers the row of `y` for each id; zeros for negative ids, which belong to no segment."""
    rows = gather(y, maximum(ids, 0))
    in_segment = reshape(greater_equal(ids, 0), [*ids.shape, *[1] * (y.ndim - 1)])
    return select(in_segment, rows, 0)


def _extremum_rule(g, x, ids, out, num_segments):
    """Divides the cotangent equally among the rows that equal the extremum."""
    in_segment = reshape(greater_equal(ids, 0), [*ids.shape, *[1] * (out.ndim - 1)])
    chosen = logical_and(equal(x, gather(out, maximum(ids, 0))), in_segment)
    count = unsorted_segment_sum(casting.cast(chosen, g.dtype), ids, num_segments)
    # The share of an empty segment is 0, not NaN.
    return select(chosen, _gather_segments(divide_no_nan(g, count), ids), 0)


def _product_rule(g, x, ids, out, num_segments):
    """The gradient is the product of the other rows of the segment, also where some of them are zero."""
    is_zero = equal(x, 0)
    others = select(is_zero, 1, x)
    zeros = _gather_segments(unsorted_segment_sum(casting.cast(is_zero, g.dtype), ids, num_segments), ids)
    product = _gather_segments(unsorted_segment_prod(others, ids, num_segments), ids)
    is_factor = select(is_zero, equal(zeros, 1), equal(zeros, 0))
    factor = select(is_factor, product / others, 0)
    return _gather_segments(g, ids) * conjugate(factor)


def _numpy_segments(function, start):
    def segments(x, ids, num_segments):
        out = np.full((num_segments, *x.shape[ids.ndim :]), start(x.dtype), x.dtype)
        rows = np.reshape(x, (ids.size, *x.shape[ids.ndim :]))
        for row, i in zip(rows, ids.reshape(-1), strict=True):
            if i >= 0:
                out[i] = function(out[i], row)
        return out

    return segments


def _lowest(dtype):
    return np.finfo(dtype).min if dtype.kind == "f" else np.iinfo(dtype).min


def _highest(dtype):
    return np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max


_ARGS = "data segment_ids:Index num_segments:Int"
_FULL = [
    call((3,), ints([1, 0, 1]), num_segments=2), call((3, 2), ints([0, -1, 0]), num_segments=1),
    call((2, 2, 3), ints([[0, 1], [1, 0]]), num_segments=2),
]  # fmt: skip
_EMPTY = [
    call((3, 2), ints([2, 0, 2]), num_segments=3),
    call((2, 2), ints([2, 0]), num_segments=3),
    call((0, 2), ints(np.zeros([0], int)), num_segments=2),
]
_BAD = [
    (
        call((2, 3), ints([2, 3]), num_segments=3),
        "InvalidArgumentError",
        "segment_ids[1] = 3 is out of range [0, 3)",
    ),
    (
        call((2, 3), ints([0, 0, 1]), num_segments=3),
        "InvalidArgumentError",
        "does not start with segment_ids.shape",
    ),
    (call((2,), ints([0, 0]), num_segments=-1), "InvalidArgumentError", "num_segments must be non-negative"),
]

unsorted_segment_sum = indexed(
    "unsorted_segment_sum", NUMBER, _ARGS, linear="data", pattern="adds", xla="segments.unsorted_segment_sum",
    batch=batching.segments("unsorted_segment_sum"),
    rule=(lambda g, x, ids, out, num_segments: _gather_segments(g, ids), None),
    numpy=_numpy_segments(np.add, lambda t: 0), samples=[*_FULL, *_EMPTY], bad=_BAD,
    names="math.unsorted_segment_sum",
    doc="The sum of the rows of `data` in each of `num_segments` segments; negative ids are "
        "left out.",
)  # fmt: skip

unsorted_segment_max = indexed(
    "unsorted_segment_max", REAL, _ARGS, rule=(_extremum_rule, None), xla="segments.unsorted_segment_max",
    batch=batching.segments("unsorted_segment_max"),
    numpy=_numpy_segments(np.maximum, _lowest), samples=_FULL, bad=_BAD, names="math.unsorted_segment_max",
    doc="The element-wise maximum of the rows of each segment; the lowest number for an empty one. Ties "
        "share the gradient.",
)  # fmt: skip

unsorted_segment_min = indexed(
    "unsorted_segment_min", REAL, _ARGS, rule=(_extremum_rule, None), xla="segments.unsorted_segment_min",
    batch=batching.segments("unsorted_segment_min"),
    numpy=_numpy_segments(np.minimum, _highest), samples=_FULL, bad=_BAD, names="math.unsorted_segment_min",
    doc="The element-wise minimum of the rows of each segment; the highest number for an empty one. "
        "Ties share the gradient.",
)  # fmt: skip

unsorted_segment_prod = indexed(
    "unsorted_segment_prod", NUMBER, _ARGS, rule=(_product_rule, None), xla="segments.unsorted_segment_prod",
    batch=batching.segments("unsorted_segment_prod"),
    numpy=_numpy_segments(np.multiply, lambda t: 1), samples=[*_FULL, *_EMPTY], bad=_BAD,
    names="math.unsorted_segment_prod",
    doc="The element-wise product of the rows of each segment; 1 for an empty one.",
)  # fmt: skip


def _counts(x: Any, ids: Any, num_segments: Any) -> Any:
    """The number of rows of each segment, at least 1, in a shape that broadcasts with the sums."""
    ones = conversion.convert(np.ones(tuple(ids.shape)), x.dtype.real_dtype._code)
    count = maximum(unsorted_segment_sum(ones, ids, num_segments), 1)
    count = casting.cast(count, x.dtype) if x.dtype.is_complex else count
    return reshape(count, [-1, *[1] * (x.ndim - ids.ndim)])


@composite("math.unsorted_segment_mean")
def unsorted_segment_mean(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
    """The mean of the rows of each segment; 0 for an empty one."""
    x, ids = as_tensor(data), as_tensor(segment_ids)
    return unsorted_segment_sum(x, ids, num_segments) / _counts(x, ids, num_segments)


@composite("math.unsorted_segment_sqrt_n")
def unsorted_segment_sqrt_n(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
    """The sum of the rows of each segment, divided by the square root of their number."""
    x, ids = as_tensor(data), as_tensor(segment_ids)
    return unsorted_segment_sum(x, ids, num_segments) / sqrt(_counts(x, ids, num_segments))


# ---- sorted ids ----


def _sorted(op: str, data: Any, segment_ids: Any) -> tuple[Any, Any, int]:
    x, ids = as_tensor(data), as_tensor(segment_ids)
    values = array_of(ids)
    if values.ndim != 1 or x.ndim == 0 or values.size != x.shape[0]:
        raise InvalidArgumentError(
            f"{op}: segment_ids should be the same size as dimension 0 of input; got data: "
            f"{x.dtype.name}{list(x.shape)}, "
            f"segment_ids: {ids.dtype.name}{list(ids.shape)}."
        )
    if (values[1:] < values[:-1]).any():
        raise InvalidArgumentError(
            f"{op}: segment ids are not increasing. Hint: tf.math.unsorted_{op} takes them in any order."
        )
    if values.size and values[0] < 0:
        raise InvalidArgumentError(f"{op}: segment ids must be >= 0; got {values[0]}.")
    return x, ids, int(values[-1]) + 1 if values.size else 0


@composite("math.segment_sum")
def segment_sum(data: Any, segment_ids: Any, name: str | None = None) -> Any:
    """The sum of the rows of each segment. `segment_ids` must be sorted."""
    return unsorted_segment_sum(*_sorted("segment_sum", data, segment_ids))


@composite("math.segment_prod")
def segment_prod(data: Any, segment_ids: Any, name: str | None = None) -> Any:
    """The product of the rows of each segment. `segment_ids` must be sorted."""
    return unsorted_segment_prod(*_sorted("segment_prod", data, segment_ids))


@composite("math.segment_mean")
def segment_mean(data: Any, segment_ids: Any, name: str | None = None) -> Any:
    """The mean of the rows of each segment. `segment_ids` must be sorted."""
    x, ids, n = _sorted("segment_mean", data, segment_ids)
    divide = floordiv if x.dtype.is_integer else lambda a, b: a / b
    return divide(unsorted_segment_sum(x, ids, n), _counts(x, ids, n))


def _extremum(op: str, of: Any, data: Any, segment_ids: Any) -> Any:
    x, ids, n = _sorted(op, data, segment_ids)
    out = of(x, ids, n)
    rows = np.bincount(array_of(ids), minlength=n)
    return out if rows.all() else select((rows > 0).reshape(-1, *[1] * (x.ndim - 1)), out, 0)


@composite("math.segment_max")
def segment_max(data: Any, segment_ids: Any, name: str | None = None) -> Any:
    """The element-wise maximum of the rows of each segment. `segment_ids` must be sorted. Ties share the gradient."""
    return _extremum("segment_max", unsorted_segment_max, data, segment_ids)


@composite("math.segment_min")
def segment_min(data: Any, segment_ids: Any, name: str | None = None) -> Any:
    """The element-wise minimum of the rows of each segment. `segment_ids` must be sorted. Ties share the gradient."""
    return _extremum("segment_min", unsorted_segment_min, data, segment_ids)


# ---- partition and stitch ----


@composite("dynamic_partition")
def dynamic_partition(data: Any, partitions: Any, num_partitions: int, name: str | None = None) -> list:
    """Splits `data` into `num_partitions` parts: part i has the rows where `partitions` is i, in order."""
    x, parts = as_tensor(data), as_tensor(partitions)
    rank, values = parts.ndim, array_of(parts)
    if tuple(x.shape)[:rank] != values.shape:
        raise InvalidArgumentError(
            "dynamic_partition: data.shape must start with partitions.shape, got data.shape = "
            f"{list(x.shape)}, partitions.shape = {list(parts.shape)}"
        )
    wrong = np.argwhere((values < 0) | (values >= num_partitions))
    if len(wrong):
        position = ",".join(str(i) for i in wrong[0])
        raise InvalidArgumentError(
            f"dynamic_partition: partitions[{position}] = {values[tuple(wrong[0])]} is not in [0, "
            f"{num_partitions})"
        )
    rows = reshape(x, [values.size, *tuple(x.shape)[rank:]])
    return [gather(rows, np.flatnonzero(values == i)) for i in range(num_partitions)]


@composite("dynamic_stitch")
def dynamic_stitch(indices: Any, data: Any, name: str | None = None) -> Any:
    """Merges the rows of all `data` into one tensor: `out[indices[k][i]] = data[k][i]`.

    If an index occurs more than once, the last row is used; rows of missing indices are 0.
    """
    places = [array_of(as_tensor(i)) for i in indices]
    tensors = [as_tensor(d) for d in data]
    if not places or len(places) != len(tensors):
        raise InvalidArgumentError(
            f"dynamic_stitch: expected as many indices as data, at least one; got {len(places)} and "
            f"{len(tensors)}."
        )
    inner = list(tensors[0].shape)[places[0].ndim :]
    for k, (i, d) in enumerate(zip(places, tensors, strict=True)):
        if list(d.shape) != [*i.shape, *inner]:
            raise InvalidArgumentError(
                f"dynamic_stitch: data[{k}].shape must start with indices[{k}].shape and go on with "
                f"{inner}; got "
                f"{list(d.shape)} and {list(i.shape)}."
            )
    flat = np.concatenate([i.reshape(-1) for i in places])
    if flat.size and flat.min() < 0:
        raise InvalidArgumentError(f"dynamic_stitch: indices must be >= 0; got {flat.min()}.")
    source = np.full(int(flat.max(initial=-1)) + 1, -1)
    for row, place in enumerate(flat):
        source[place] = row
    rows = concat(
        [
            reshape(d, [-1, *inner] if 0 not in inner else [i.size, *inner])
            for i, d in zip(places, tensors, strict=True)
        ],
        0,
    )
    if not source.size:
        return rows
    out = gather(rows, np.maximum(source, 0))
    return out if source.min() >= 0 else select((source >= 0).reshape(-1, *[1] * len(inner)), out, 0)
