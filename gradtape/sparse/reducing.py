"""Sums and maxima over axes of sparse tensors, sums of indexed rows, and counts of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.room import want_room
from gradtape._src.ops import statistics
from gradtape._src.ops.arithmetic import maximum, sqrt
from gradtape._src.ops.casting import cast
from gradtape._src.ops.creation import ones
from gradtape._src.ops.indexed import gather, gather_batched
from gradtape._src.ops.movement import reshape
from gradtape._src.ops.segments import unsorted_segment_max, unsorted_segment_sum
from gradtape._src.ops.static import array_of
from gradtape._src.tensors.conversion import as_tensor
from gradtape.sparse.arranging import to_dense
from gradtape.sparse.ordering import check_inside, keys_of
from gradtape.sparse.tensor import (
    SparseTensor,
    SparseTensorValue,
    as_sparse,
    make_sparse,
    places_of,
    sizes_of,
)


def _reduced(op: str, sp_input: Any, axis: Any, keepdims: Any, output_is_sparse: bool, largest: bool) -> Any:
    x = as_sparse(sp_input)
    places, sizes = places_of(x), sizes_of(x)
    rank = len(sizes)
    axes = np.arange(rank) if axis is None else np.reshape(array_of(axis), -1)
    for a in axes.tolist():
        if not -rank <= a < rank:
            raise InvalidArgumentError(
                f"{op}: Invalid reduction dimension {a}, for input with {rank} dimensions."
            )
    reduced_axes = {int(a) % rank for a in axes}
    remaining = [d for d in range(rank) if d not in reduced_axes]
    inner, outer = [sizes[d] for d in remaining], [1 if d in reduced_axes else n for d, n in enumerate(sizes)]
    shape = outer if keepdims else inner
    check_inside(op, places, sizes)
    keys = keys_of(places[:, remaining], inner) if remaining else np.zeros(len(places), np.int64)
    if not output_is_sparse:
        n = want_room(*inner, item=x.dtype.size)
        if not largest:
            return reshape(unsorted_segment_sum(x.values, keys, n), shape)
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    values = (unsorted_segment_max if largest else unsorted_segment_sum)(
        x.values, group.reshape(-1), len(first)
    )
    if not output_is_sparse:  # without elements, the maximum is 0
        return reshape(unsorted_segment_sum(values, keys[first], n), shape)
    if keepdims:
        new = places[first].copy()
        new[:, sorted(reduced_axes)] = 0
    else:
        new = places[first][:, remaining]
    return make_sparse(new, values, shape)


def _reduction(op: str, largest: bool, doc: str) -> Callable:
    def reduced(
        sp_input: Any,
        axis: Any = None,
        keepdims: Any = None,
        output_is_sparse: Any = False,
        name: str | None = None,
    ) -> Any:
        return _reduced(op, sp_input, axis, keepdims, output_is_sparse, largest)

    reduced.__name__ = reduced.__qualname__ = op
    reduced.__doc__ = f"The {doc}"
    return reduced


reduce_sum = _reduction(
    "reduce_sum", False,
    "sum of a sparse tensor over some axes (all by default), as a dense tensor unless `output_is_sparse`.",
)  # fmt: skip
reduce_max = _reduction(
    "reduce_max", True,
    """largest element of a sparse tensor over some axes (all by default); those that are missing do not count.

    It is 0 where there are none.
    """,
)  # fmt: skip


# ---- rows of a dense tensor -----------------------------------------------------------------------


def _segments(
    op: str, data: Any, indices: Any, segment_ids: Any, num_segments: Any
) -> tuple[Any, np.ndarray, int]:
    """The indexed rows, their segments, and the number of segments."""
    x, at, ids = as_tensor(data), array_of(as_tensor(indices)), array_of(as_tensor(segment_ids))
    if at.ndim != 1 or ids.ndim != 1 or at.size != ids.size:
        raise InvalidArgumentError(f"{op}: segment_ids and indices should have same size.")
    outside = (at < 0) | (at >= x.shape[0])
    if outside.any():
        k = int(outside.argmax())
        raise InvalidArgumentError(f"{op}: Bad: indices[{k}] == {at[k]} out of range [0, {x.shape[0]})")
    n = int(ids[-1]) + 1 if ids.size else 0
    if num_segments is not None:
        n = int(array_of(num_segments))
    if ids.size and ids[0] < 0:
        raise InvalidArgumentError(
            f"{op}: Segment id {ids[0]} out of range [0, {n}), possibly because 'segment_ids' input is not sorted."
        )
    if (ids[1:] < ids[:-1]).any():
        raise InvalidArgumentError(f"{op}: segment ids are not increasing")
    if num_segments is not None and ids.size and ids[-1] >= n:
        raise InvalidArgumentError(f"{op}: segment ids must be < num_segments")
    return gather_batched(x, at.astype(np.int64), 0, 0), ids.astype(np.int64), n


def _segment_reduction(op: str, divisor: Callable | None, doc: str) -> Callable:
    """A sum over the rows of each segment, divided by a function of their number."""

    def reduced(
        data: Any,
        indices: Any,
        segment_ids: Any,
        num_segments: Any = None,
        name: str | None = None,
        sparse_gradient: Any = False,
    ) -> Any:
        x = as_tensor(data)
        if divisor is not None and not x.dtype.is_floating:
            raise InvalidArgumentError(
                f"Value for attr 'T' of {x.dtype.name} is not in the list of allowed values: bfloat16, half, float, double"
            )
        rows, ids, n = _segments(op, x, indices, segment_ids, num_segments)
        total = unsorted_segment_sum(rows, ids, n)
        if divisor is None:
            return total
        count = maximum(unsorted_segment_sum(ones([len(ids)], dtypes.int64), ids, n), 1)
        return total / reshape(divisor(cast(count, x.dtype)), [n, *[1] * (x.ndim - 1)])

    reduced.__name__ = reduced.__qualname__ = op
    reduced.__doc__ = f"For each segment the {doc}."
    return reduced


segment_sum = _segment_reduction(
    "segment_sum", None, "sum of the rows `data[indices[i]]` with its id; `segment_ids` must be sorted"
)
segment_mean = _segment_reduction(
    "segment_mean", lambda n: n, "mean of the rows `data[indices[i]]` with its id; 0 for an empty segment"
)
segment_sqrt_n = _segment_reduction(
    "segment_sqrt_n",
    sqrt,
    "sum of the rows `data[indices[i]]` with its id, divided by the root of their number",
)


# ---- counts ---------------------------------------------------------------------------------------


def bincount(
    values: Any,
    weights: Any = None,
    axis: Any = 0,
    minlength: Any = None,
    maxlength: Any = None,
    binary_output: Any = False,
    name: str | None = None,
) -> Any:
    """The number of occurrences of each integer, as a sparse tensor without the integers that do not occur.

    Args:
      values: nonnegative integers, of rank 1 or 2, or a sparse matrix of them.
      weights: the weight of each value, instead of 1; of the same shape.
      axis: -1 counts in each row, 0 or None in all rows together.
      minlength, maxlength: limits for the length of the result; larger integers are left out.
      binary_output: 1 for each integer that occurs, however often.
    """
    if axis not in (None, 0, -1):
        raise ValueError(
            f"Unsupported value for argument axis={axis}. Only 0 and -1 are currently supported."
        )
    if binary_output and weights is not None:
        raise ValueError(
            "Arguments `binary_output` and `weights` are mutually exclusive. Please specify only one."
        )
    rows, numbers, factors, height, dtype = _counted(values, weights, axis)
    if (numbers < 0).any():
        raise InvalidArgumentError("bincount: Input values must all be non-negative")
    length = int(numbers.max()) + 1 if numbers.size else 0
    if minlength is not None:
        length = max(length, int(array_of(minlength)))
    if maxlength is not None:
        length = min(length, int(array_of(maxlength)))
    keep = np.flatnonzero(numbers < length)
    _, first, group = np.unique(
        rows[keep] * max(length, 1) + numbers[keep], return_index=True, return_inverse=True
    )
    if binary_output:
        counts = ones([len(first)], dtype)
    elif factors is None:
        counts = cast(np.bincount(group.reshape(-1), minlength=len(first)), dtype)
    else:
        counts = unsorted_segment_sum(gather(factors, keep), group.reshape(-1), len(first))
    places = np.stack([rows[keep], numbers[keep]], -1)[first]
    return (
        make_sparse(places[:, 1:], counts, [length])
        if height is None
        else make_sparse(places, counts, [height, length])
    )


def _counted(values: Any, weights: Any, axis: Any) -> tuple[np.ndarray, np.ndarray, Any, int | None, Any]:
    """The row, integer and weight of each value; the number of rows, None if they count as one; the type."""
    if isinstance(values, (SparseTensor, SparseTensorValue)):
        x: Any = as_sparse(values)
        places, numbers = places_of(x), array_of(x.values)
        rows, height = (places[:, 0], sizes_of(x)[0]) if len(sizes_of(x)) == 2 else (None, None)
        if weights is not None:
            w = as_sparse(weights)
            if not np.array_equal(places_of(w), places) or sizes_of(w) != sizes_of(x):
                raise InvalidArgumentError("'weights' and 'values' must have the same indices.")
            weights = w.values
    else:
        x = as_tensor(values)
        numbers, rows, height = array_of(x), None, None
        if weights is not None:
            weights = as_tensor(weights)
            if weights.shape != x.shape:
                raise InvalidArgumentError(
                    "bincount: Weights and data must have the same shape. Weight shape: "
                    f"{weights.shape}; data shape: {x.shape}"
                )
            weights = reshape(weights, [-1])
        if numbers.ndim == 2:
            height = len(numbers)
            rows = np.repeat(np.arange(height), numbers.shape[1])
        numbers = numbers.reshape(-1)
    if x.dtype not in (dtypes.int32, dtypes.int64):
        raise InvalidArgumentError(
            f"Value for attr 'T' of {x.dtype.name} is not in the list of allowed values: int32, int64"
        )
    if axis != -1 or rows is None:
        rows, height = np.zeros(len(numbers), np.int64), None
    return rows, numbers.astype(np.int64), weights, height, x.dtype


def dense_bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
    axis: Any = None,
    binary_output: Any = False,
) -> Any:
    """`tf.math.bincount` of a sparse tensor: missing elements do not count."""
    x = as_sparse(arr)
    w = None if weights is None else as_sparse(weights)
    if axis != -1 or len(sizes_of(x)) < 2:
        values = None if w is None else w.values
        return statistics.bincount(x.values, values, minlength, maxlength, dtype, None, axis, binary_output)
    out = to_dense(bincount(x, w, -1, minlength, maxlength, binary_output))
    return cast(out, dtype) if w is None else out
