"""Two outcomes of one call side by side: what differs, in one line each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .calling import Outcome, Value

# How far results may be apart, relative to the larger of 1 and the expected value: both libraries round,
# and TensorFlow's float32 functions are good to a few units in the sixth digit.
TOLERANCES = {
    "float64": 1e-9, "complex128": 1e-9, "float32": 2e-5, "complex64": 2e-5, "float16": 8e-3, "bfloat16": 5e-2,
}  # fmt: skip
_LOSS = {"gradient": 5.0, "second": 25.0}  # derivatives add up more roundings

# Messages of TensorFlow without a kernel for an element type or layout. That gradtape has one is not counted as a
# difference.
_NO_KERNEL = re.compile(
    r"could not find device|value for attr 't\w*' of \w+ is not in the list of allowed values|data type is not supported|"
    r"only supports nhwc|was expected to be a float tensor but is a double tensor|"
    r"was expected to be a double tensor but is a float tensor|"
    r"requested dtype float32 for tensor with dtype float64"
)


class Difference(NamedTuple):
    """A way in which the libraries differ in one call."""

    kind: str
    words: str


def _name(e: BaseException) -> str:
    return type(e).__name__


def _first_line(e: BaseException) -> str:
    text = " ".join(str(e).split())
    return f"{_name(e)}: {text[:150]}"


def has_no_kernel(e: BaseException) -> bool:
    """Whether TensorFlow has no kernel for the element type, rather than rejecting the call itself."""
    return _NO_KERNEL.search(str(e).lower()) is not None


def same_class(ours: BaseException, theirs: BaseException) -> bool:
    """Whether code that catches TensorFlow's exception catches ours."""
    return _name(theirs) in {c.__name__ for c in type(ours).__mro__}


def _types(x: Any) -> set[str]:
    """The element types in a nested result."""
    if isinstance(x, Value):
        return {x.dtype}
    if isinstance(x, dict):
        x = tuple(x.values())
    return set().union(*map(_types, x)) if isinstance(x, tuple) else set()


def _coarsest(results: Any) -> float:
    """The tolerance of the least exact element type: an intermediate float32 makes float64 gradients inexact too."""
    return max((TOLERANCES.get(t, 0.0) for t in _types(results)), default=0.0)


def _numbers(kind: str, where: str, ours: Value, theirs: Value, tolerance: float) -> Iterator[Difference]:
    if ours.array.shape != theirs.array.shape:
        yield Difference("shape", f"{where}: here {ours.array.shape}, TensorFlow {theirs.array.shape}")
        return
    if ours.dtype != theirs.dtype:
        yield Difference("dtype", f"{where}: here {ours.dtype}, TensorFlow {theirs.dtype}")
        return
    if theirs.array.dtype.kind not in "fc":
        wrong = ours.array != theirs.array
    else:
        wide = np.complex128 if theirs.array.dtype.kind == "c" else np.float64
        a, b = ours.array.astype(wide), theirs.array.astype(wide)
        with np.errstate(all="ignore"):
            size = np.abs(b)
            largest = np.max(np.where(np.isfinite(size), size, 0), initial=0.0)
            bound = tolerance * np.maximum(np.maximum(1.0, size), 0.1 * largest)
            close = (np.abs(a - b) <= bound) | (a == b) | (np.isnan(a) & np.isnan(b))
        wrong = ~close
    if np.any(wrong):
        at = tuple(int(k) for k in np.argwhere(wrong)[0])
        count = f"{int(np.sum(wrong))} of {wrong.size}"
        yield Difference(
            kind, f"{where}{list(at) or ''}: here {ours.array[at]}, TensorFlow {theirs.array[at]} ({count})"
        )


def _nested(kind: str, where: str, ours: Any, theirs: Any, tolerance: float) -> Iterator[Difference]:
    if isinstance(ours, Value) and isinstance(theirs, Value):
        if ours.kind != theirs.kind:
            yield Difference("class", f"{where}: here {ours.kind}, TensorFlow {theirs.kind}")
        yield from _numbers(kind, where, ours, theirs, tolerance)
    elif isinstance(ours, dict) and isinstance(theirs, dict) and ours.keys() == theirs.keys():
        for key in ours:
            yield from _nested(kind, f"{where}.{key}", ours[key], theirs[key], tolerance)
    elif isinstance(ours, tuple) and isinstance(theirs, tuple) and len(ours) == len(theirs):
        for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            yield from _nested(kind, f"{where}({k})", a, b, tolerance)
    elif isinstance(ours, float) and isinstance(theirs, float):
        if not np.isclose(ours, theirs, rtol=1e-6, equal_nan=True):
            yield Difference(kind, f"{where}: here {ours}, TensorFlow {theirs}")
    elif type(ours) is not type(theirs) or ours != theirs:
        yield Difference(
            kind if kind != "value" else "class", f"{where}: here {_short(ours)}, TensorFlow {_short(theirs)}"
        )


def _short(x: Any) -> str:
    if isinstance(x, Value):
        return f"{x.kind} {x.dtype}{list(x.array.shape)}"
    return repr(x) if not isinstance(x, (dict, tuple)) else f"{type(x).__name__} of {len(x)}"


def _values_only(x: Any) -> Any:
    """Shapes and types of results, for numbers that are random."""
    if isinstance(x, Value):
        return Value(np.zeros(x.array.shape, np.int8), x.dtype, x.kind)
    if isinstance(x, dict):
        return {k: _values_only(v) for k, v in x.items()}
    return tuple(map(_values_only, x)) if isinstance(x, tuple) else x


def compare(
    ours: Outcome, theirs: Outcome, factor: float = 1.0, numbers: bool = True
) -> Iterator[Difference]:
    """Every way in which two outcomes differ; a call that only gradtape supports is `wider`, not a difference."""
    if theirs.error is not None:
        if ours.error is None:
            kind = "wider" if has_no_kernel(theirs.error) else "accepted"
            yield Difference(kind, f"here a result, TensorFlow {_first_line(theirs.error)}")
        elif not same_class(ours.error, theirs.error):
            yield Difference(
                "error", f"here {_first_line(ours.error)}; TensorFlow {_first_line(theirs.error)}"
            )
        return
    if ours.error is not None:
        yield Difference("refused", f"here {_first_line(ours.error)}; TensorFlow a result")
        return
    a, b = ours.results, theirs.results
    if not numbers:
        a, b = _values_only(a), _values_only(b)
    tolerance = factor * _coarsest((theirs.results, theirs.gradients))
    yield from _nested("value", "result", a, b, tolerance)
    if not numbers:
        return
    if theirs.gradient_error is not None:
        if ours.gradient_error is None and ours.gradients is not None:
            nothing = all(g is None for g in ours.gradients)
            kind = "wider" if not nothing else "no gradient"
            yield Difference(kind, f"gradient: here one, TensorFlow {_first_line(theirs.gradient_error)}")
        return
    if ours.gradient_error is not None:
        yield Difference("gradient", f"here {_first_line(ours.gradient_error)}")
        return
    yield from _nested(
        "gradient", "gradient", ours.gradients, theirs.gradients, tolerance * _LOSS["gradient"]
    )
    if isinstance(theirs.second, BaseException):
        return
    if isinstance(ours.second, BaseException):
        yield Difference("second", f"second order: here {_first_line(ours.second)}")
        return
    yield from _nested("second", "second order", ours.second, theirs.second, tolerance * _LOSS["second"])
