"""`tf.ragged.cross` and `cross_hashed`: all combinations of the values in a row of each input."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as tf
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.hashes import fingerprint
from gradtape.ragged import rows
from gradtape.ragged.conversion import from_sparse
from gradtape.ragged.making import as_values
from gradtape.ragged.moving import as_ragged
from gradtape.ragged.tensor import RaggedTensor, make

_HASH_KEY = 956888297470
_FACTOR = np.uint64(0xC6A4A7935BD1E995)
_SHIFT = np.uint64(47)


def cross(inputs: Any, name: str | None = None) -> Any:
    """The combinations as strings: the values, joined by `_X_`.

    Args:
      inputs: a list of dense, ragged and sparse tensors of strings or integers, with two dimensions and equally many rows.

    >>> import gradtape as tf
    >>> tf.ragged.cross([tf.ragged.constant([[1], [2, 3]]), [[4], [5]]])
    <tf.RaggedTensor [[b'1_X_4'], [b'2_X_5', b'3_X_5']]>
    """
    parts, dtype = _inputs(inputs)
    return _cross(parts, dtype)


def cross_hashed(
    inputs: Any, num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> Any:
    """The combinations as numbers: their hashes.

    Args:
      inputs: as for `cross`.
      num_buckets: the numbers are below this, if it is not 0.
      hash_key: the initial value of the hash.

    >>> import gradtape as tf
    >>> tf.ragged.cross_hashed([tf.ragged.constant([[1], [2, 3]]), [[4], [5]]], num_buckets=100).shape
    TensorShape([2, None])
    """
    parts, dtype = _inputs(inputs)
    return _cross_hashed(parts, dtype, num_buckets, _HASH_KEY if hash_key is None else hash_key)


def _inputs(inputs: Any) -> tuple[list, Any]:
    """The inputs as ragged tensors of int64 or strings; and the type of the splits."""
    if not isinstance(inputs, (list, tuple)):
        raise TypeError("Inputs must be a list")
    tensors = []
    for i, t in enumerate(inputs):
        t = from_sparse(t) if isinstance(t, tf.SparseTensor) else as_values(t)
        if t.dtype.is_integer:
            t = t.with_flat_values(tf.cast(t.flat_values, tf.int64)) if _ragged(t) else tf.cast(t, tf.int64)
        elif t.dtype != tf.string:
            raise ValueError(f"Unexpected dtype for inputs[{i}]: {t.dtype!r}")
        if _ragged(t) and t.ragged_rank != 1:
            raise ValueError("tf.ragged.cross only supports inputs with rank=2")
        tensors.append(t)
    ragged = [t for t in tensors if _ragged(t)]
    short = ragged and all(t._row_partition.dtype == tf.int32 for t in ragged)
    return tensors, tf.int32 if short else tf.int64


def _ragged(t: Any) -> bool:
    return isinstance(t, RaggedTensor)


def _combined(parts: list) -> tuple[list[np.ndarray], np.ndarray]:
    """For each input, the positions of its values in the combinations; and the number of combinations in each row."""
    for t in parts:
        if t.shape.rank != 2:
            raise InvalidArgumentError(
                f"tf.ragged.cross only supports inputs with rank=2; got shape {t.shape}."
            )
    splits = [as_ragged(t, 1)._row_partition.array().astype(np.int64) for t in parts]
    if len({len(s) for s in splits}) > 1:
        raise InvalidArgumentError("inputs must all have the same batch dimension size.")
    lengths = [np.diff(s) for s in splits]
    counts = np.prod(lengths, axis=0).astype(np.int64)
    row, at = rows.ids_of(rows.splits_of(counts)), rows.offsets_of(rows.splits_of(counts))
    places = []
    for s, n in zip(reversed(splits), reversed(lengths), strict=True):
        places.append(s[row] + at % np.maximum(n[row], 1))
        at = at // np.maximum(n[row], 1)
    return places[::-1], counts


@one_call
def _cross(parts: list, dtype: Any) -> Any:
    places, counts = _combined(parts)
    columns = [_words(as_ragged(t, 1).flat_values)[at] for t, at in zip(parts, places, strict=True)]
    joined = np.array([b"_X_".join(words) for words in zip(*columns, strict=True)], object)
    values = tf.constant(joined.tolist() if joined.size else [], tf.string)
    return make(values, rows.splits_of(counts), dtype)


def _words(values: Any) -> np.ndarray:
    array = rows.array_of(values) if values.dtype != tf.string else values.numpy()
    flat = [v if isinstance(v, bytes) else str(v).encode() for v in array.reshape(-1).tolist()]
    out = np.empty(len(flat), object)
    out[:] = flat
    return out


@one_call
def _cross_hashed(parts: list, dtype: Any, num_buckets: int, hash_key: int) -> Any:
    places, counts = _combined(parts)
    hashes = np.full(int(counts.sum()), hash_key % 2**64, np.uint64)
    for t, at in zip(parts, places, strict=True):
        hashes = _combine(hashes, _hashes(as_ragged(t, 1).flat_values)[at])
    limit = num_buckets if num_buckets > 0 else 2**63 - 1
    values = rows.tensor_of((hashes % np.uint64(limit)).astype(np.int64))
    return make(values, rows.splits_of(counts), dtype)


def _hashes(values: Any) -> np.ndarray:
    if values.dtype == tf.string:
        return np.array([fingerprint(word) for word in _words(values)], np.uint64)
    return rows.array_of(values).reshape(-1).astype(np.int64).view(np.uint64)


def _mixed(x: np.ndarray) -> np.ndarray:
    return x ^ (x >> _SHIFT)


def _combine(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Combines two fingerprints into one, as TensorFlow does."""
    with np.errstate(over="ignore"):
        out = (first ^ _FACTOR ^ (_mixed(second * _FACTOR) * _FACTOR)) * _FACTOR
        return _mixed(_mixed(out) * _FACTOR)
