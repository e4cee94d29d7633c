"""Matrix products, counts, sums of embeddings, maps over rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as tf
from gradtape._src.base import nest
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.room import want_room
from gradtape._src.base.type_spec import TypeSpec
from gradtape.ragged import rows
from gradtape.ragged.conversion import to_tensor
from gradtape.ragged.joining import stack
from gradtape.ragged.making import as_values
from gradtape.ragged.moving import as_ragged, size_of, take
from gradtape.ragged.spec import RaggedTensorSpec
from gradtape.ragged.tensor import RaggedTensor, make


@one_call
def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: Any = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> Any:
    """`tf.matmul` of each matrix of a batch; their shapes may differ."""
    if transpose_a and adjoint_a:
        raise ValueError("Only one of transpose_a and adjoint_a can be True.")
    if transpose_b and adjoint_b:
        raise ValueError("Only one of transpose_b and adjoint_b can be True.")
    a, b = as_values(a), as_values(b)
    if a.dtype != b.dtype:
        raise ValueError("`a` and `b` must have the same dtype.")
    if a.shape.rank != b.shape.rank or a.shape.rank < 2:
        raise ValueError("`a` and `b` must have the same rank.")
    options = {
        "transpose_a": transpose_a,
        "transpose_b": transpose_b,
        "adjoint_a": adjoint_a,
        "adjoint_b": adjoint_b,
    }
    if output_type is not None:
        options["output_type"] = output_type
    return _matmul(a, b, options)


def _matmul(a: Any, b: Any, options: dict) -> Any:
    rank = a.shape.rank
    if rank == 2:
        return tf.matmul(_matrix(a), _matrix(b), **options)
    if rank > 3:
        a, b = as_ragged(a, 1), as_ragged(b, 1)
        if not np.array_equal(a._row_partition.array(), b._row_partition.array()):
            raise InvalidArgumentError("Batch dimensions of `a` and `b` do not have the same size.")
        return a.with_values(_matmul(a._values, b._values, options))
    n = size_of(a)
    if size_of(b) != n:
        raise InvalidArgumentError("Batch dimensions of `a` and `b` do not have the same size.")
    # The results have different numbers of columns if `b` may.
    across = options["transpose_b"] or options["adjoint_b"]
    ragged = isinstance(b, RaggedTensor) and (b.ragged_rank == 2 or across)
    parts = [tf.matmul(_matrix(a[i]), _matrix(b[i]), **options) for i in range(n)]
    dtype = (a if isinstance(a, RaggedTensor) else b)._row_partition.array().dtype
    if not parts:
        flat = tf.zeros([0], a.dtype) if ragged else tf.zeros([0, b.shape[-1] or 0], a.dtype)
        return make(make(flat, np.zeros(1, dtype)) if ragged else flat, np.zeros(1, dtype))
    outer = rows.splits_of(np.array([p.shape[0] for p in parts], dtype))
    if not ragged:
        return make(tf.concat(parts, 0), outer)
    lengths = np.concatenate([np.full(p.shape[0], p.shape[1], dtype) for p in parts])
    flat = tf.concat([tf.reshape(p, [-1]) for p in parts], 0)
    return make(make(flat, rows.splits_of(lengths)), outer)


def _matrix(x: Any) -> Any:
    if not isinstance(x, RaggedTensor):
        return x
    dense = to_tensor(x)
    if dense.shape.num_elements() != x.flat_values.shape.num_elements():
        raise InvalidArgumentError(
            "The matrices in `a` and `b` may not be ragged in their innermost dimension."
        )
    return dense


@one_call
def bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = tf.int32,
    name: str | None = None,
    axis: Any = None,
    binary_output: bool = False,
) -> Any:
    """`tf.math.bincount`: of all values, or of each row (`axis=-1`)."""
    _check_counts(axis, weights, binary_output)
    if not axis:
        weights = None if weights is None else _same_rows(arr, weights).flat_values
        return tf.math.bincount(
            arr.flat_values, weights, minlength, maxlength, dtype, binary_output=binary_output
        )
    flat = arr.flat_values
    array = rows.array_of(flat if flat.dtype.is_integer else tf.cast(flat, tf.int32))
    if array.size and array.min() < 0:
        raise InvalidArgumentError(
            f"Input must be non-negative; got {array.min()} at {rows.first(array < 0)}."
        )
    count = int(array.max(initial=-1)) + 1
    count = count if minlength is None else max(int(minlength), count)
    count = count if maxlength is None else min(int(maxlength), count)
    row = rows.ids_of(arr._row_partition.array())
    inside = array < count
    cells = row[inside] * count + array[inside]
    n = size_of(arr)
    if weights is not None:
        values = take(_same_rows(arr, weights).flat_values, np.flatnonzero(inside))
        return tf.reshape(tf.math.unsorted_segment_sum(values, cells, n * count), [n, count])
    numbers = np.bincount(cells, minlength=want_room(n, count)).reshape(n, count)
    return tf.cast(np.minimum(numbers, 1) if binary_output else numbers, dtype)


def _check_counts(axis: Any, weights: Any, binary_output: bool) -> None:
    if weights is not None and binary_output:
        raise ValueError(
            "Arguments `binary_output` and `weights` are mutually exclusive. Please specify only one."
        )
    if axis not in (None, 0, -1):
        raise ValueError(
            f"Unsupported value for argument axis={axis}. Only 0 and -1 are currently supported."
        )


def _same_rows(values: RaggedTensor, weights: Any) -> RaggedTensor:
    if not isinstance(weights, RaggedTensor):
        raise ValueError(
            "`weights` must be a RaggedTensor if `values` is a RaggedTensor. Received argument "
            f"weights={weights} of type: {type(weights).__name__}."
        )
    if not np.array_equal(values._row_partition.array(), weights._row_partition.array()):
        raise InvalidArgumentError("'weights' and 'values' must have the same row splits.")
    return weights


def embedding_lookup(params: Any, ids: Any, max_norm: Any = None, name: str | None = None) -> Any:
    """`tf.nn.embedding_lookup`."""
    if params is None:
        raise ValueError("params must be specified.")
    if isinstance(params, (list, tuple)) and not params:
        raise ValueError("params should not be empty.")
    if ids.dtype not in (tf.int32, tf.int64):
        raise ValueError(
            f"The values contained by the inputs have type {ids.dtype} and cannot be processed. All values should be "
            "indices, either of type `int32` or `int64`."
        )
    return ids.with_flat_values(tf.nn.embedding_lookup(params, ids.flat_values, max_norm=max_norm))


@one_call
def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    combiner: Any = None,
    max_norm: Any = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Any:
    """`tf.nn.embedding_lookup_sparse`: the embeddings of each row, combined."""
    combiner = "mean" if combiner is None else combiner
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError(f"combiner must be one of 'mean', 'sqrtn' or 'sum', got {combiner}")
    if sp_weights is not None:
        if not isinstance(sp_weights, RaggedTensor):
            raise TypeError(
                f"sp_ids must be of the same type as sp_weights, received {type(sp_ids).__name__!r} for sp_ids and "
                f"{type(sp_weights).__name__!r} for sp_weights."
            )
        sp_ids.values.shape.assert_is_compatible_with(sp_weights.values.shape)
        sp_ids.shape.assert_is_compatible_with(sp_weights.shape)
    splits = sp_ids._row_partition.array()
    ids, count = rows.ids_of(splits), len(splits) - 1
    looked_up = tf.nn.embedding_lookup(params, sp_ids.flat_values, max_norm=max_norm)
    shape = [-1, *[1] * (looked_up.shape.rank - 1)]
    weights = None if sp_weights is None else tf.cast(sp_weights.flat_values, looked_up.dtype)
    if weights is not None:
        looked_up = looked_up * tf.reshape(weights, shape)
    total = tf.math.unsorted_segment_sum(looked_up, ids, count)
    if combiner == "sum":
        return total
    if weights is None:
        share = tf.constant(np.maximum(np.diff(splits), 1), looked_up.dtype)
        return total / tf.reshape(share if combiner == "mean" else tf.sqrt(share), shape)
    if combiner == "mean":
        share = tf.math.unsorted_segment_sum(weights, ids, count)
    else:
        share = tf.sqrt(tf.math.unsorted_segment_sum(tf.square(weights), ids, count))
    return tf.math.divide_no_nan(total, tf.reshape(share, shape))


def map_fn(
    fn: Callable,
    elems: Any,
    dtype: Any = None,
    parallel_iterations: Any = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """`tf.map_fn` over the rows of ragged tensors; results are stacked, as ragged tensors if the signature says so."""
    flat = [as_values(x) for x in nest.flatten(elems)]
    sizes = [rows.array_of(x.nrows()) if isinstance(x, RaggedTensor) else x.shape[0] for x in flat]
    if len({int(n) for n in sizes}) > 1:
        raise ValueError(f"elements have different numbers of rows: {[int(n) for n in sizes]}")
    signature = fn_output_signature if fn_output_signature is not None else dtype
    if signature is None:
        signature = nest.map_structure(_spec_of_row, elems)
    results = [fn(nest.pack_sequence_as(elems, [x[i] for x in flat])) for i in range(int(sizes[0]))]
    if not results:
        return nest.map_structure(_none_of, signature)
    nest.assert_same_structure(signature, results[0])
    columns = zip(*[nest.flatten(r) for r in results], strict=True)
    joined = [_stacked(list(c), spec) for c, spec in zip(columns, nest.flatten(signature), strict=True)]
    return nest.pack_sequence_as(results[0], joined)


def _spec_of_row(elem: Any) -> Any:
    """The default spec of the results of `fn`: that of its arguments."""
    return as_values(elem)._type_spec._unbatch() if isinstance(elem, RaggedTensor) else as_values(elem).dtype


def _stacked(values: list, spec: Any) -> Any:
    values = [as_values(v) for v in values]
    if isinstance(spec, RaggedTensorSpec):
        for v in values:
            if not spec.is_compatible_with(v):
                raise InvalidArgumentError(f"map_fn: fn gave {v}, which does not fit the signature {spec}.")
        whole = spec._batch(len(values))
        return stack(values).with_row_splits_dtype(whole.row_splits_dtype)
    declared = spec.dtype if isinstance(spec, TypeSpec) else tf.as_dtype(spec)  # type: ignore[attr-defined]
    for v in values:
        if v.dtype != declared:
            raise TypeError(f"map_fn: fn returned {v.dtype.name}, and its signature says {declared.name}.")
        if isinstance(v, RaggedTensor):
            raise ValueError(
                "map_fn: fn returned a ragged tensor. Hint: fn_output_signature=tf.RaggedTensorSpec(...)."
            )
    return tf.stack(values)


def _none_of(spec: Any) -> Any:
    """The stack of no results."""
    if isinstance(spec, RaggedTensorSpec):
        whole = spec._batch(0)
        dims = [d or 0 for d in whole.shape[whole.ragged_rank + 1 :]] if whole.shape.rank else []
        flat = tf.zeros([0, *dims], whole.dtype)
        return whole._from_components([flat, *[tf.zeros([1], whole.row_splits_dtype)] * whole.ragged_rank])
    if isinstance(spec, TypeSpec):
        return tf.zeros([0, *[d or 0 for d in spec.shape]], spec.dtype)  # type: ignore[attr-defined]
    return tf.zeros([0], spec)
