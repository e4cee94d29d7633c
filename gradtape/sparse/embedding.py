"""Sums and means of the embeddings of sparse ids."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape._src.base.calls import one_call
from gradtape._src.base.room import want_room
from gradtape._src.ops import casting
from gradtape._src.ops.arithmetic import divide_no_nan, sqrt, square
from gradtape._src.ops.embedding import embedding_lookup
from gradtape._src.ops.indexed import gather
from gradtape._src.ops.join import concat
from gradtape._src.ops.movement import reshape
from gradtape._src.ops.segments import unsorted_segment_sum
from gradtape._src.ops.static import array_of
from gradtape._src.tensors.conversion import as_tensor
from gradtape.sparse.tensor import SparseTensor


def _combine(params: Any, ids: Any, rows: Any, weights: Any, combiner: Any, max_norm: Any, count: Any) -> Any:
    """The combined embeddings of the ids in each of `count` rows."""
    combiner = "mean" if combiner is None else combiner
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError(f"combiner must be one of 'mean', 'sqrtn' or 'sum', got {combiner}")
    looked_up = embedding_lookup(params, ids, max_norm)
    w = None if weights is None else casting.cast(as_tensor(weights), looked_up.dtype)
    column = [-1] + [1] * (looked_up.ndim - 1)
    total = unsorted_segment_sum(looked_up if w is None else looked_up * reshape(w, column), rows, count)
    if combiner == "sum":
        return total
    if w is None:
        w = casting.cast(as_tensor(np.ones(ids.shape[0])), looked_up.dtype)
    by = unsorted_segment_sum(w if combiner == "mean" else square(w), rows, count)
    return divide_no_nan(total, reshape(by if combiner == "mean" else sqrt(by), column))


@one_call
def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    combiner: Any = None,
    max_norm: Any = None,
    name: str | None = None,
    allow_fast_lookup: Any = False,
) -> Any:
    """The combined embeddings of each row of `sp_ids`: mean, sum, or sum divided by the square root of the number.

    Args:
      params: the table, or a list of its parts.
      sp_ids: a SparseTensor of ids, every row with at least one.
      sp_weights: a SparseTensor of weights at the same indices, or None for 1.
      combiner: "mean" (the default), "sum" or "sqrtn".
      max_norm: embeddings with a larger norm are scaled down to this norm.
    """
    if not isinstance(sp_ids, SparseTensor):
        raise TypeError(f"sp_ids must be SparseTensor, got {type(sp_ids)}")
    if sp_weights is not None and not isinstance(sp_weights, SparseTensor):
        raise TypeError(f"sp_weights must be either None or SparseTensor, got {type(sp_weights)}")
    if sp_weights is not None:
        sp_ids.values.shape.assert_is_compatible_with(sp_weights.values.shape)
    rows = array_of(sp_ids.indices)[:, 0]
    weights = None if sp_weights is None else sp_weights.values
    count = int(rows[-1]) + 1 if rows.size else 0
    return _combine(params, sp_ids.values, as_tensor(rows), weights, combiner, max_norm, count)


@one_call
def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: Any = "mean",
    default_id: Any = None,
    max_norm: Any = None,
    name: str | None = None,
    allow_fast_lookup: Any = False,
) -> Any:
    """Like `embedding_lookup_sparse`; ids below 0 and weights of 0 or less are ignored.

    Rows without any id get the embedding of `default_id`, or zeros.
    """
    if embedding_weights is None or (isinstance(embedding_weights, (list, tuple)) and not embedding_weights):
        raise ValueError(f"Missing embedding_weights {embedding_weights}.")
    places, ids = array_of(sparse_ids.indices), array_of(sparse_ids.values)
    shape = sparse_ids.shape.as_list()
    count = want_room(*shape[:-1])
    rows = np.ravel_multi_index(places[:, :-1].T, shape[:-1]) if len(places) else np.zeros(0, np.int64)
    good = ids >= 0
    if sparse_weights is not None and combiner != "sum":
        good &= array_of(sparse_weights.values) > 0
    keep = np.flatnonzero(good)
    weights = None if sparse_weights is None else gather(sparse_weights.values, as_tensor(keep))
    rows, ids = rows[keep], ids[keep]
    if default_id is not None:
        missing = np.setdiff1d(np.arange(count), rows)
        rows, ids = np.append(rows, missing), np.append(ids, np.full(len(missing), default_id))
        if weights is not None:
            ones = casting.cast(as_tensor(np.ones(len(missing))), weights.dtype)
            weights = concat([weights, ones], 0)
    out = _combine(embedding_weights, as_tensor(ids), as_tensor(rows), weights, combiner, max_norm, count)
    return reshape(out, [*shape[:-1], *out.shape[1:]])
