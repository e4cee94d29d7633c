"""Checks of values that Python holds: an op that moves or compares elements treats strings, and types that are only
stored, like integers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradtape._src.base import dtypes
from gradtape._src.contract.cases import Case, array_of, cases, tensor
from gradtape._src.ops.table import STORED, TEXT, Row
from gradtape._src.tensors import stored as stored_types
from gradtape._src.tensors import text

_FLOAT, _INTEGER = dtypes.as_dtype("float8_e4m3fn"), dtypes.as_dtype("uint4")  # each has the integers 0 to 15


def has_text(row: Row) -> bool:
    """Whether the op takes strings and only moves them, unlike `add`, which joins them."""
    return bool(row.dtypes & TEXT) and not text.has_own(row.name)


def has_stored(row: Row) -> bool:
    """Whether the op takes types that are only stored, and moves their elements."""
    return bool(row.dtypes & STORED) and not stored_types.has_own(row.name)


def _words(array: np.ndarray) -> Any:
    """Strings in place of integers; zeros that an op inserts become empty strings."""
    return text.make(text.array((b"%d" % v if v else b"" for v in array.reshape(-1).tolist()), array.shape))


def strings(row: Row) -> Iterator[str]:
    """Every sample, with strings for the operands of the common type: the same elements end up at the same places."""
    for case in cases(row, [dtypes.int64]):
        yield from _check(case, dtypes.string, lambda array: array, _words)


def stored(row: Row) -> Iterator[str]:
    """Every sample, with small numbers of a stored type for the operands of the common type."""
    for case in cases(row, [dtypes.int64]):
        for dtype in (_FLOAT, _INTEGER):
            yield from _check(
                case, dtype, lambda array: array & 15, lambda array, d=dtype: stored_types.convert(array, d)
            )


def _check(case: Case, dtype: Any, small: Callable, convert: Callable) -> Iterator[str]:
    common = [p.kind in ("Operand", "Operands") for p in case.params]
    if not any(common):
        return
    numbers = [
        tensor(small(a), dtypes.int64) if is_common else x
        for a, x, is_common in zip(case.arrays, case.tensors(), common, strict=True)
    ]
    given = [
        convert(small(a)) if is_common else x
        for a, x, is_common in zip(case.arrays, case.tensors(), common, strict=True)
    ]
    for out, number in zip(case.call(given), case.call(numbers), strict=True):
        expected = array_of(convert(array_of(number))) if out.dtype is dtype else array_of(number)
        if not np.array_equal(array_of(out), expected):
            what = f"{case.row.name}: {dtype.name} in {case.where}"
            yield f"{what}: expected {expected.tolist()}, got {array_of(out).tolist()}"
