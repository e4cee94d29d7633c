"""Sums, products, quotients and extrema of sparse tensors, and functions of their values.

The operators `*` and `/` accept a dense tensor, which is broadcast to the shape of the sparse one; only its
elements at the positions of the sparse one are used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes, nest
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops import arithmetic as dense
from gradtape._src.ops.casting import cast
from gradtape._src.ops.creation import convert_to_tensor
from gradtape._src.ops.exponential import exp
from gradtape._src.ops.indexed import gather, gather_nd, tensor_scatter_add
from gradtape._src.ops.join import concat
from gradtape._src.ops.movement import stop_gradient
from gradtape._src.ops.segments import unsorted_segment_max, unsorted_segment_sum
from gradtape._src.ops.static import array_of
from gradtape.sparse.ordering import keys_of, union
from gradtape.sparse.tensor import (
    SparseTensor,
    SparseTensorValue,
    as_sparse,
    make_sparse,
    places_of,
    sizes_of,
)

# ---- with a dense tensor --------------------------------------------------------------------------


def _at_places(x: SparseTensor, y: Any) -> Any:
    """The elements of `y`, broadcast to the shape of `x`, at the positions of `x`."""
    if y.ndim == 0:
        return y
    sizes = sizes_of(x)
    aligned = sizes[len(sizes) - y.ndim :]
    if y.ndim > len(sizes) or any(d not in (1, n) for d, n in zip(y.shape, aligned, strict=True)):
        raise InvalidArgumentError(
            "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: "
            f"{sizes} vs. {y.shape.as_list()}"
        )
    places = x.indices[:, len(sizes) - y.ndim :]
    return gather_nd(y, places * convert_to_tensor([int(d != 1) for d in y.shape], dtypes.int64))


@one_call
def times(x: Any, y: Any) -> SparseTensor:
    y = convert_to_tensor(y, x.dtype)
    return x.with_values(x.values * _at_places(x, y))


@one_call
def divided(x: Any, y: Any) -> SparseTensor:
    y = convert_to_tensor(y, x.dtype)
    values, by = x.values, _at_places(x, y)
    if x.dtype.is_integer:  # like `/` of dense tensors
        wide = dtypes.float32 if x.dtype.size < 4 else dtypes.float64
        values, by = cast(values, wide), cast(by, wide)
    return x.with_values(values / by)


def _rtimes(x: SparseTensor, y: Any) -> Any:
    # As in TensorFlow, a number or an array on the left is an error.
    return times(x, y) if isinstance(y, (_core.Tensor, _core.Variable)) else NotImplemented


for _name, _operator in (
    ("__mul__", times),
    ("__rmul__", _rtimes),
    ("__truediv__", divided),
    ("__div__", divided),
):
    setattr(SparseTensor, _name, lambda x, y, f=_operator: f(x, y))


# ---- of two sparse tensors ------------------------------------------------------------------------


def _want_alike(op: str, a: SparseTensor, b: SparseTensor) -> list[int]:
    """The common sizes of two tensors, which must have the same shape and type."""
    if a.dtype != b.dtype:
        raise InvalidArgumentError(
            f"cannot compute {op} as input #4(zero-based) was expected to be a {a.dtype.name} tensor but is a "
            f"{b.dtype.name} tensor"
        )
    a_sizes, b_sizes = sizes_of(a), sizes_of(b)
    if len(a_sizes) != len(b_sizes):
        raise InvalidArgumentError(
            f"{op}: Input indices must have the same dimension, got {len(a_sizes)} and {len(b_sizes)}"
        )
    for axis, (m, n) in enumerate(zip(a_sizes, b_sizes, strict=True)):
        if m != n:
            raise InvalidArgumentError(
                f"{op}: Operands' shapes do not match: got {m} and {n} for dimension {axis}"
            )
    return a_sizes


def add(a: Any, b: Any, threshold: Any = 0) -> Any:
    """The sum of two tensors of one shape, at least one of them sparse; dense if one of them is.

    Args:
      threshold: sums with a smaller absolute value are left out, if both tensors are sparse.

    Raises:
      TypeError: if neither is sparse.
    """
    kinds = (SparseTensor, SparseTensorValue)
    if not isinstance(a, kinds) and not isinstance(b, kinds):
        raise TypeError("At least one input should be SparseTensor; do you mean to use tf.add()?")
    if isinstance(a, kinds) and isinstance(b, kinds):
        a, b = as_sparse(a), as_sparse(b)
        sizes = _want_alike("SparseAdd", a, b)
        places, (at_a, at_b) = union([places_of(a), places_of(b)], sizes)
        at = np.concatenate([at_a, at_b])
        values = unsorted_segment_sum(concat([a.values, b.values], 0), at, len(places))
        limit = array_of(threshold)
        if limit > 0:
            alone = np.bincount(at, minlength=len(places)) < 2
            keep = np.flatnonzero(alone | (np.abs(array_of(values)) >= limit))
            places, values = places[keep], gather(values, keep)
        return make_sparse(places, values, sizes)
    if isinstance(b, kinds):
        a, b = b, a
    a = as_sparse(a)
    b = convert_to_tensor(b, a.dtype)
    sizes = sizes_of(a)
    if len(sizes) != b.ndim:
        raise InvalidArgumentError(
            f"SparseTensorDenseAdd: Two operands have different ranks; received: {len(sizes)} and {b.ndim}"
        )
    for axis, (m, n) in enumerate(zip(sizes, b.shape, strict=True)):
        if m != n:
            raise InvalidArgumentError(
                f"SparseTensorDenseAdd: Dimension {axis} does not equal (no broadcasting is supported): sparse side "
                f"{m} vs dense side {n}"
            )
    return tensor_scatter_add(b, a.indices, a.values)


def _extremum(op: str, function: Callable, a: Any, b: Any) -> SparseTensor:
    a, b = as_sparse(a), as_sparse(b)
    sizes = _want_alike(op, a, b)
    places, (at_a, at_b) = union([places_of(a), places_of(b)], sizes)
    n = len(places)
    values = function(unsorted_segment_sum(a.values, at_a, n), unsorted_segment_sum(b.values, at_b, n))
    return make_sparse(places, values, sizes)


def maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> Any:
    """The element-wise maximum of two sparse tensors; missing elements count as 0."""
    return _extremum("SparseSparseMaximum", dense.maximum, sp_a, sp_b)


def minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> Any:
    """The element-wise minimum of two sparse tensors; missing elements count as 0."""
    return _extremum("SparseSparseMinimum", dense.minimum, sp_a, sp_b)


# ---- functions of the values ----------------------------------------------------------------------


def map_values(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Applies `op` to the values of sparse tensors among the arguments; returns a sparse tensor at their positions.

    Raises:
      ValueError: if no argument is sparse, or the result has another length.
      InvalidArgumentError: if they do not have the same indices.
    """
    tensors = [x for x in nest.flatten((args, kwargs)) if isinstance(x, SparseTensor)]
    if not tensors:
        raise ValueError("No SparseTensor in argument list of map_values")
    first = tensors[0]
    for x in tensors[1:]:
        if sizes_of(x) != sizes_of(first):
            raise InvalidArgumentError(f"Mismatched shapes! {sizes_of(first)} and {sizes_of(x)}")
        if not np.array_equal(places_of(x), places_of(first)):
            raise InvalidArgumentError("Mismatched indices! Condition x == y did not hold.")
    args, kwargs = nest.map_structure(
        lambda x: x.values if isinstance(x, SparseTensor) else x, (args, kwargs)
    )
    return first.with_values(op(*args, **kwargs))


def softmax(sp_input: Any, name: str | None = None) -> Any:
    """Softmax along the last axis, for rank 2 or more; missing elements count as minus infinity."""
    x = as_sparse(sp_input)
    if not x.dtype.is_floating:
        raise InvalidArgumentError(
            f"Value for attr 'T' of {x.dtype.name} is not in the list of allowed values: half, float, double"
        )
    sizes = sizes_of(x)
    if len(sizes) < 2:
        raise InvalidArgumentError(f"SparseSoftmax: Input should have rank >= 2, but received shape: {sizes}")
    rows, group = np.unique(keys_of(places_of(x)[:, :-1], sizes[:-1]), return_inverse=True)
    group, n = group.reshape(-1), len(rows)
    top = stop_gradient(unsorted_segment_max(x.values, group, n))
    e = exp(x.values - gather(top, group))
    return x.with_values(e / gather(unsorted_segment_sum(e, group, n), group))
