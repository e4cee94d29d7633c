"""Arithmetic on row splits, as NumPy arrays: where rows start, the row of each value, the values of each row.

A partition of n values into rows is an array of splits `[0, ..., n]`: row i is `values[splits[i]:splits[i + 1]]`.
Positions are computed here; the values themselves move in one op that tapes record, `take_runs` for whole parts of
rows, or `tf.gather`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base.errors import Untraceable
from gradtape._src.base.room import want_room
from gradtape._src.tensors import conversion


def is_known(value: Any) -> bool:
    """Whether a tensor has values, unlike the symbols of a function that is being traced."""
    return value._symbol is None


def array_of(value: Any) -> np.ndarray:
    """The elements of a tensor, as a read-only array.

    Raises:
      Untraceable: if there are none yet; the call is then made at run time.
    """
    if isinstance(value, _core.Tensor):
        if value._symbol is not None:
            raise Untraceable("the shape of a result depends on the row splits of a ragged tensor")
        return np.asarray(value)
    return value.numpy() if isinstance(value, _core.Variable) else np.asarray(value)


def tensor_of(array: np.ndarray, dtype: Any = None) -> Any:
    """An array as a tensor, optionally of another integer type."""
    if dtype is not None and array.dtype != dtype.as_numpy_dtype:
        array = array.astype(dtype.as_numpy_dtype)
    return conversion.convert(array)


def splits_of(lengths: np.ndarray) -> np.ndarray:
    """The splits of rows of these lengths."""
    splits = np.zeros(len(lengths) + 1, lengths.dtype)
    np.cumsum(lengths, out=splits[1:])
    return splits


def lengths_of(ids: np.ndarray, count: int) -> np.ndarray:
    """The number of values in each of `count` rows, from the row of each value."""
    return np.bincount(ids, minlength=want_room(max(count, int(ids.max(initial=-1)) + 1))).astype(ids.dtype)


def ids_of(splits: np.ndarray) -> np.ndarray:
    """The row of each value."""
    want_room(splits[-1])
    return np.repeat(np.arange(len(splits) - 1, dtype=splits.dtype), np.diff(splits))


def offsets_of(splits: np.ndarray) -> np.ndarray:
    """The position of each value in its row."""
    want_room(splits[-1])
    return np.arange(splits[-1], dtype=splits.dtype) - np.repeat(splits[:-1], np.diff(splits))


def ranges(starts: np.ndarray, lengths: np.ndarray, step: Any = 1) -> np.ndarray:
    """The numbers `start, start + step, ...` of several ranges, concatenated."""
    splits = splits_of(lengths)
    want_room(splits[-1])
    at = np.arange(splits[-1], dtype=splits.dtype)
    if isinstance(step, int):
        out = np.repeat(starts - step * splits[:-1], lengths)
        out += at if step == 1 else at * step
        return out
    return np.repeat(starts, lengths) + (at - np.repeat(splits[:-1], lengths)) * step


def counts(start: np.ndarray, limit: np.ndarray, step: Any) -> np.ndarray:
    """The number of elements in `range(start, limit, step)`, at least 0."""
    return np.maximum(-((start - limit) // step), 0)


def first(wrong: np.ndarray) -> int:
    """The position of the first element that is true."""
    return int(np.flatnonzero(wrong)[0])
