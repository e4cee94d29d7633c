"""Crosses of features: all combinations of the values of several tensors in a row, as strings or hashes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.hashes import fingerprint
from gradtape._src.ops.casting import cast
from gradtape._src.ops.creation import constant
from gradtape._src.ops.static import array_of
from gradtape.sparse.ordering import check_inside
from gradtape.sparse.tensor import SparseTensor, make_sparse, places_of, sizes_of

_MASK = 2**64 - 1
_MULTIPLIER = 0xC6A4A7935BD1E995
_DEFAULT_KEY = 0xDECAFCAFFE


def _columns(inputs: Any, words: str) -> tuple[list[dict[int, list]], int]:
    """For each tensor, sparse ones first, the values of each nonempty row; and the number of rows."""
    if not isinstance(inputs, (list, tuple)):
        raise TypeError("Inputs must be a list")
    if not all(isinstance(x, (SparseTensor, _core.Tensor)) for x in inputs):
        raise TypeError(words)
    out: list[dict[int, list]] = []
    heights = []
    for x in sorted(inputs, key=lambda x: not isinstance(x, SparseTensor)):
        values = x.values if isinstance(x, SparseTensor) else x
        values = array_of(values if values.dtype == dtypes.string else cast(values, dtypes.int64))
        rank = len(sizes_of(x)) if isinstance(x, SparseTensor) else values.ndim
        if rank != 2:
            raise InvalidArgumentError(
                f"cross: expected matrices [batch, features]; got a tensor of rank {rank}."
            )
        if isinstance(x, SparseTensor):
            rows: dict[int, list] = {}
            check_inside("cross", places_of(x), sizes_of(x))
            for row, value in zip(places_of(x)[:, 0].tolist(), values.tolist(), strict=True):
                rows.setdefault(row, []).append(value)
            heights.append(sizes_of(x)[0])
        else:
            rows = dict(enumerate(values.tolist()))
            heights.append(len(rows))
        out.append(rows)
    if len(set(heights)) > 1:
        raise InvalidArgumentError(f"cross: Expected batch size {heights[0]}; got {heights}.")
    return out, heights[0] if heights else 0


def _crossed(columns: list, height: int, join: Any) -> tuple[np.ndarray, list, list[int]]:
    """The combinations of each row: their positions, the results of `join`, and the shape."""
    places, values, widest = [], [], 0
    for row in sorted(set.intersection(*map(set, columns))) if columns else []:
        crossed = [join(c) for c in itertools.product(*(rows[row] for rows in columns))]
        places += [(row, k) for k in range(len(crossed))]
        values += crossed
        widest = max(widest, len(crossed))
    return np.array(places, np.int64).reshape(-1, 2), values, [height, widest]


def cross(inputs: Any, name: str | None = None, separator: Any = None) -> Any:
    """Strings for all combinations of the values in each row of several matrices, sparse or dense.

    Args:
      separator: inserted between the parts, `_X_` by default.

    Returns:
      A sparse tensor of strings.
    """
    between = b"_X_" if separator is None else bytes(array_of(constant(separator)))
    columns = _columns(inputs, "All inputs must be Tensor or SparseTensor.")
    places, values, shape = _crossed(
        *columns, lambda c: between.join(v if isinstance(v, bytes) else b"%d" % v for v in c)
    )
    return make_sparse(places, constant(values, dtypes.string, [len(values)]), shape)


def cross_hashed(inputs: Any, num_buckets: Any = 0, hash_key: Any = None, name: str | None = None) -> Any:
    """Hashes of all combinations of the values in each row of several matrices, sparse or dense.

    Args:
      num_buckets: hashes are taken modulo this number; modulo 2^63 - 1 if it is 0.
      hash_key: the initial value of the hash.

    Returns:
      A sparse tensor of int64.
    """
    columns = _columns(inputs, "All inputs must be SparseTensors")
    key, limit = hash_key or _DEFAULT_KEY, num_buckets or 2**63 - 1

    def hashed(combination: tuple) -> int:
        total = key
        for value in combination:
            total = _joined(total, fingerprint(value) if isinstance(value, bytes) else value & _MASK)
        return total % limit

    places, values, shape = _crossed(*columns, hashed)
    return make_sparse(places, constant(values, dtypes.int64, [len(values)]), shape)


def _mixed(x: int) -> int:
    return x ^ (x >> 47)


def _joined(a: int, b: int) -> int:
    """Combines two fingerprints."""
    out = a ^ _MULTIPLIER
    out ^= _mixed(b * _MULTIPLIER & _MASK) * _MULTIPLIER & _MASK
    out = out * _MULTIPLIER & _MASK
    return _mixed(_mixed(out) * _MULTIPLIER & _MASK)
