"""`rt[...]`: rows, ranges of rows and columns, new axes."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import gradtape as tf
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError
from gradtape.ragged import rows
from gradtape.ragged.moving import cut, size_of, take, take_ranges, uniform
from gradtape.ragged.tensor import RaggedTensor, make

_ALL = slice(None)


@one_call
def getitem(rt: Any, key: Any) -> Any:
    """The part of a ragged tensor selected by a key.

    Keys are those of tensors: integers, slices, `...` and `tf.newaxis`. An integer in a ragged dimension other than
    the outermost one is an error, since some rows may not have it.
    """
    return _rows(rt, list(key) if isinstance(key, (list, tuple)) else [key])


def _rows(rt: Any, keys: list) -> Any:
    """Applies keys from the outermost dimension on."""
    if not isinstance(rt, RaggedTensor):
        return rt[tuple(keys)] if keys else rt
    if not keys:
        return rt
    key, *inner = keys
    if key is Ellipsis:
        return _rows(rt, _without_ellipsis(keys, rt.shape.rank))
    if key is None:
        rest = _rows(rt, inner)
        if not isinstance(rest, RaggedTensor):
            return tf.expand_dims(rest, 0)
        n = size_of(rest)
        return uniform(rest, n, 1, rest._row_partition.array().dtype)
    if isinstance(key, slice):
        return _columns(_range_of_rows(rt, key), inner)
    n = size_of(rt)
    at = _number(key)
    if at >= n:
        raise IndexError(f"Row key {key} out of bounds: there are {n} rows.")
    if at < -n:
        raise InvalidArgumentError(f"slice index {at} of dimension 0 out of bounds: there are {n} rows.")
    splits = rt._row_partition.array()
    at %= n
    return _rows(cut(rt._values, int(splits[at]), int(splits[at + 1])), inner)


def _range_of_rows(rt: RaggedTensor, key: slice) -> RaggedTensor:
    if key == _ALL:
        return rt
    at = range(size_of(rt))[_numbers(key)]
    if at.step == 1:
        return cut(rt, at.start, max(at.stop, at.start))
    return take(rt, np.arange(at.start, at.stop, at.step))


def _columns(rt: Any, keys: list) -> Any:
    """Applies keys for the dimensions after the outermost one."""
    if not keys:
        return rt
    if not isinstance(rt, RaggedTensor):
        return rt[(_ALL, *keys)]
    key, *inner = keys
    dtype = rt._row_partition.array().dtype
    if key is Ellipsis:
        return _columns(rt, _without_ellipsis(keys, rt._values.shape.rank))
    if key is None:
        rest = _columns(rt, inner)
        if not isinstance(rest, RaggedTensor):
            return tf.expand_dims(rest, 1)
        return uniform(rest, 1, size_of(rest), dtype)
    if isinstance(key, slice):
        sliced = rt if key == _ALL else _range_of_columns(rt, key)
        return sliced.with_values(_columns(sliced._values, inner))
    length = rt._row_partition.static_uniform_row_length
    if length is None:
        raise ValueError("Cannot index into an inner ragged dimension.")
    at = _number(key)
    if not -length <= at < length:
        raise InvalidArgumentError(
            f"Index out of bounds when indexing into a ragged tensor\ngot {at}, in rows of {length}."
        )
    return _columns(take(rt._values, np.arange(size_of(rt)) * length + at % length), inner)


def _range_of_columns(rt: RaggedTensor, key: slice) -> RaggedTensor:
    """Applies Python's slicing to each row."""
    key = _numbers(key)
    splits = rt._row_partition.array()
    lengths = np.diff(splits)
    step = 1 if key.step is None else key.step
    lowest, highest = (0, lengths) if step > 0 else (-1, lengths - 1)

    def bound(at: int | None, default: Any) -> Any:
        if at is None:
            return default + 0 * lengths
        return np.minimum(at, highest) if at >= 0 else np.maximum(lengths + at, lowest)

    start = bound(key.start, lowest if step > 0 else highest)
    stop = bound(key.stop, highest if step > 0 else lowest)
    counts = rows.counts(start, stop, step).astype(splits.dtype)
    start += splits[:-1]
    if step == 1:
        values = take_ranges(rt._values, start, counts)
    else:
        values = take(rt._values, rows.ranges(start, counts, step))
    length = rt._row_partition.static_uniform_row_length
    if length is not None:
        return uniform(values, len(range(length)[key]), len(lengths), splits.dtype)
    return make(values, rows.splits_of(counts))


def _without_ellipsis(keys: list, rank: int | None) -> list:
    """The keys with one dimension of the leading ellipsis removed."""
    if rank is None:
        raise ValueError("Ellipsis not supported for unknown shape RaggedTensors")
    count = sum(key is not None for key in keys)
    if count > rank + 1:
        raise IndexError("Too many indices for RaggedTensor")
    return keys[1:] if count == rank + 1 else [_ALL, *keys]


def _number(key: Any) -> int:
    if isinstance(key, (tf.Tensor, tf.Variable)):
        key = rows.array_of(key)
        if key.ndim:
            raise TypeError(
                f"keys of a ragged tensor are numbers and slices; got a tensor of shape {key.shape}"
            )
        key = key[()]
    try:
        return operator.index(key)
    except TypeError:
        raise TypeError(f"keys of a ragged tensor are integers and slices; got {key!r}") from None


def _numbers(key: slice) -> slice:
    """A slice of numbers, from a slice that may contain tensors."""
    parts = []
    for part, words in ((key.start, "offsets"), (key.stop, "offsets"), (key.step, "strides")):
        try:
            parts.append(None if part is None else _number(part))
        except TypeError:
            raise TypeError(f"slice {words} must be integers or None; got {part!r}") from None
    if parts[2] == 0:
        raise InvalidArgumentError("Requires delta != 0: slice strides must be non-zero.")
    return slice(*parts)
