"""Strings: an op that moves or compares elements does to strings what it does to integers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gradtape._src.base import dtypes
from gradtape._src.contract.cases import Case, array_of, cases
from gradtape._src.ops.table import TEXT, Row
from gradtape._src.tensors import text


def applies(row: Row) -> bool:
    """Whether the op takes strings, and moves them: joining them is another thing than adding integers."""
    return bool(row.dtypes & TEXT) and not text.has_own(row.name)


def _words(array: np.ndarray) -> Any:
    """Strings in the place of integers; an op that puts zeros in puts empty strings in."""
    return text.make(text.array((b"%d" % v if v else b"" for v in array.reshape(-1).tolist()), array.shape))


def strings(row: Row) -> Iterator[str]:
    """Every sample, with strings for the operands of the common type: the same elements end up in the same places."""
    for case in cases(row, [dtypes.int64]):
        yield from _check(case)


def _check(case: Case) -> Iterator[str]:
    common = [p.kind in ("Operand", "Operands") for p in case.params]
    if not any(common):
        return
    given = [
        _words(a) if is_common else x
        for a, x, is_common in zip(case.arrays, case.tensors(), common, strict=True)
    ]
    for out, number in zip(case.call(given), case.call(case.tensors()), strict=True):
        moved = out.dtype is dtypes.string
        expected = array_of(_words(array_of(number))) if moved else array_of(number)
        if not np.array_equal(array_of(out), expected):
            yield f"{case.row.name}: strings in {case.where}: expected {expected.tolist()}, got {array_of(out).tolist()}"
