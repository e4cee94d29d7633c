"""Compares results: the tolerances, and one readable line about the worst element."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from gradtape._src.base.dtypes import DType
from gradtape._src.contract.cases import Case

# By element type, relative to the larger of 1 and the absolute expected value.
TOLERANCES = {
    "float64": 1e-12,
    "complex128": 1e-12,
    "float32": 3e-6,
    "complex64": 3e-6,
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
}
"""Tolerances of results."""

NUMERICAL = {
    "float64": 1e-6,
    "complex128": 1e-6,
    "float32": 1e-2,
    "complex64": 1e-2,
    "float16": 0.1,
    "bfloat16": 0.2,
}
"""Tolerances of gradients against central differences of results of this type."""


def _digits(x: Any, y: Any) -> tuple[str, str]:
    """Two numbers with enough digits to tell them apart."""
    for digits in (5, 8, 12, 17):
        shown = f"{x:.{digits}g}", f"{y:.{digits}g}"
        if shown[0] != shown[1]:
            break
    return shown


def differences(what: str, case: Case, actual: Any, expected: Any, tolerance: float) -> Iterator[str]:
    """One line about the worst element, if it is off by more than `tolerance`."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    start = f"{case.row.name}: {what} in {case.where}: expected "
    if actual.shape != expected.shape:
        yield f"{start}shape {expected.shape}, got {actual.shape}"
        return
    if actual.dtype.kind in "iub":
        wrong = np.asarray(actual != expected, np.float64)
    else:
        with np.errstate(all="ignore"):
            wrong = np.abs(actual - expected) / np.maximum(np.abs(expected), 1)
        same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
        wrong = np.where(same, 0.0, np.where(np.isnan(wrong), np.inf, wrong))
    if wrong.size == 0 or wrong.max() <= tolerance:
        return
    at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    a, e = actual[at], expected[at]
    place = f" at [{', '.join(str(int(i)) for i in at)}]" if at else ""
    if actual.dtype.kind == "b":
        yield f"{start}{bool(e)}, got {bool(a)}{place}"
        return
    shown_e, shown_a = _digits(e, a)
    with np.errstate(all="ignore"):
        relative = float(np.abs(a - e) / np.abs(e)) if np.abs(e) > 0 else np.inf
    error = f" (relative error {relative:.0e})" if np.isfinite(relative) else ""
    yield f"{start}{shown_e}, got {shown_a}{place}{error}"


def tolerance(table: dict[str, float], *types: DType | None) -> float:
    """The largest tolerance of several element types; integers and booleans are exact."""
    return max((table.get(d.name, 0.0) for d in types if d is not None), default=0.0)


def each(what: str, check: Callable[[Case], Iterator[str]], some: Iterable[Case]) -> Iterator[str]:
    """The failures of all cases; an exception counts as a failure."""
    for case in some:
        try:
            yield from check(case)
        except Exception as e:
            yield f"{case.row.name}: {what} in {case.where}: raised {type(e).__name__}: {e}"


def spec(x: Any) -> str:
    return f"{x.dtype.name}{list(x.shape)}"
