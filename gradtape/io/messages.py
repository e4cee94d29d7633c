"""The contents of records: the features of `tf.train.Example` and `tf.train.SequenceExample`, read from their bytes.

No `tf.train.Example` is created: the core finds names and values (`core/py/records.cpp`), NumPy converts the numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.reading import reading

_NAMES = {1: "string", 2: "float32", 3: "int64"}  # the kinds of lists, by their field
_TYPES = {2: "<f4", 3: "<i8"}


def parts(data: bytes, count: int) -> list[dict[str, bytes]]:
    """The maps in the first fields of a message."""
    try:
        return _core.maps_of(data, count)
    except Exception:
        with reading(f"Could not parse example input, value: {data[:40]!r}: ", InvalidArgumentError):
            raise


def equal_rows(features: tuple[bytes | None, ...], dtype: Any, size: int) -> Any:
    """The values of features with `size` numbers each; None if there are none, or one is not such a feature."""
    for kind, numpy_type in _TYPES.items():
        if _NAMES[kind] == dtype.name:
            try:
                numbers = _core.rows_of(features, kind, size)
            except ValueError:
                return None  # read one by one, they say which one it is
            return np.frombuffer(numbers, numpy_type) if numbers else None
    return None


def values(key: str, data: bytes | None, dtype: Any) -> Any:
    """The values of a feature; None if there are none."""
    if data is None:
        return None
    try:
        kind, payload = _core.feature_of(data)
        numbers = payload if kind < 2 else np.frombuffer(payload, _TYPES[kind])
    except Exception:
        with reading(f"Key: {key}.  Can't parse serialized Example: ", InvalidArgumentError):
            raise
    if kind == 0:
        return None
    if _NAMES[kind] != dtype.name:
        raise InvalidArgumentError(
            f"Key: {key}.  Data types don't match. Data type: {_NAMES[kind]} but expected type: {dtype.name}."
        )
    return numbers
