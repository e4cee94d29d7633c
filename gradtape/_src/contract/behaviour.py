"""Checks of behaviour: values, inferred shapes, what rules keep alive, errors, memory."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradtape._src.base import dtypes, errors
from gradtape._src.base.dtypes import DType
from gradtape._src.contract.cases import Case, allowed, array_of, cases, large_cases, tensor
from gradtape._src.contract.compare import TOLERANCES, differences, each, spec, tolerance
from gradtape._src.contract.derivatives import smooth
from gradtape._src.ops.table import Row
from gradtape._src.tensors import hooks

_WRONG_VALUE = (TypeError, ValueError)
_EVERYTHING = (1 << 64) - 1


def _kind(array: np.ndarray) -> str:
    """NumPy's letter for the kind of type; the width of integers is not compared with references."""
    return {"u": "i"}.get(array.dtype.kind, array.dtype.kind)


def _in_range(expected: np.ndarray, dtype: DType) -> np.ndarray:
    """A reference's value, converted to the type of the result.

    NumPy sums small integers in large ones, ours wrap around. A reference's largest double represents the largest
    number of the type.
    """
    if dtype.is_integer and expected.dtype.kind in "iu":
        return expected.astype(dtype.as_numpy_dtype)
    if not dtype.is_floating:
        return expected
    largest = np.finfo(np.float64).max
    return np.where(np.abs(expected) == largest, np.sign(expected) * float(dtype.max), expected)


def _check_value(case: Case) -> Iterator[str]:
    outs, expected = case.call(case.tensors()), case.reference()
    if len(outs) != len(expected):
        yield f"{case.row.name}: value in {case.where}: expected {len(expected)} results, got {len(outs)}"
        return
    for k, (out, e) in enumerate(zip(outs, expected, strict=True)):
        what = "value" if len(outs) == 1 else f"value of result {k}"
        actual = array_of(out)
        if _kind(e) != _kind(actual):
            start = f"{case.row.name}: {what} in {case.where}"
            yield f"{start}: expected type like {e.dtype}, got {out.dtype.name}"
        limit = tolerance(TOLERANCES, out.dtype, *case.dtypes) * case.row.tolerance
        yield from differences(what, case, actual, _in_range(e, out.dtype), limit)


class _Trace:
    """Stands in for a tensor without a value, and records the last call with it."""

    def __init__(self) -> None:
        self.calls: list[tuple] = []

    def trace(self, op: Any, operands: tuple, results: tuple, attrs: tuple) -> None:
        self.calls.append((op, attrs))
        for r in results:
            r._symbol = self


def _check_inferred(case: Case) -> Iterator[str]:
    row = case.row
    actual = case.call(case.tensors())
    try:
        inferred = case.call(case.symbols(_Trace()))
    except (errors.UnimplementedError, errors.Untraceable):
        return  # an op written in Python, which only runs on values
    if len(actual) != len(inferred) and not row.shape_from_values:
        yield f"{row.name}: inferred results in {case.where}: expected {len(actual)}, got {len(inferred)}"
        return
    for k, (a, i) in enumerate(zip(actual, inferred, strict=False)):
        same = len(a.shape) == len(i.shape) if row.shape_from_values else tuple(a.shape) == tuple(i.shape)
        if not same or a.dtype is not i.dtype:
            which = "" if len(actual) == 1 else f" of result {k}"
            yield f"{row.name}: inferred shape{which} in {case.where}: expected {spec(a)}, got {spec(i)}"


def _check_unchanged(case: Case) -> Iterator[str]:
    """Checks that operands keep their values, and results share no memory that NumPy can write to."""
    arrays = [np.array(a) for a in case.arrays]
    given = [tensor(a, d) if d is dtypes.bfloat16 else a for a, d in zip(arrays, case.dtypes, strict=True)]
    operands = case.tensors()
    before = [bytes(memoryview(x)) for x in operands]
    case.call(operands)
    for name, x, b in zip(case.names, operands, before, strict=True):
        if bytes(memoryview(x)) != b:
            yield f"{case.row.name}: operand {name} in {case.where}: the op changed its value"
    outs = case.call(given)
    values = [bytes(memoryview(o)) for o in outs]
    for a in arrays:
        a[...] = 1
    for o in outs:
        np.atleast_1d(o.numpy())[...] = 1
    if [bytes(memoryview(o)) for o in outs] != values:
        yield f"{case.row.name}: result in {case.where}: it shares its memory with a NumPy array"


def _kind_of_call(row: Row, operands: list, attrs: tuple) -> tuple:
    """The key of calls that the engine assumes to read the same values (`kind_of_call` in core/py/record.cpp)."""
    ranks = () if row.kind == "elementwise" else tuple(len(x.shape) for x in operands)
    shown = [len(a) if isinstance(a, tuple) else a if isinstance(a, (bool, DType)) else None for a in attrs]
    return len(operands), tuple(x.dtype.is_complex for x in operands), ranks, tuple(shown)


def reads(row: Row) -> Iterator[str]:
    """Checks that a rule reads the same values in all calls of a kind: the engine asks only once, and keeps no more."""
    seen: dict[tuple, tuple[tuple, str]] = {}
    for case in smooth(row, [d for d in allowed(row) if d.is_floating or d.is_complex]):
        probe, operands = _Trace(), case.tensors()
        try:
            case.call(case.symbols(probe))
        except (errors.UnimplementedError, errors.Untraceable):
            return  # an op written in Python
        own = [attrs for op, attrs in probe.calls if op is row.op]
        if len(own) != 1:
            continue  # the call went to the op's Python fallback
        masks = tuple(hooks.reads(row.op, tuple(operands), case.call(operands), own[0]))
        for k, bits in enumerate(masks):
            which = "rule" if row.joint else f"rule of {row.operands[k].name}"
            start = f"{row.name}: reads in {case.where}: the {which}"
            if row.kind == "movement" and bits:
                yield f"{start} of a movement should keep no values, but reads {bits:b}"
            elif bits == _EVERYTHING and row.native:
                yield f"{start} cannot be traced, so that every value is kept"
        before, where = seen.setdefault(_kind_of_call(row, operands, own[0]), (masks, case.where))
        if before != masks:
            shown = [f"{b:b}" for b in before], [f"{b:b}" for b in masks]
            yield f"{row.name}: reads in {case.where}: expected {shown[0]} as in {where}, got {shown[1]}"


# ---- errors -----------------------------------------------------------------------------------


def _class(name: str) -> type[Exception]:
    return getattr(errors, name, None) or getattr(builtins, name)


def _raises(row: Row, what: str, expected: Any, fragment: str, call: Callable[[], Any]) -> Iterator[str]:
    shown = " or ".join(c.__name__ for c in expected) if isinstance(expected, tuple) else expected.__name__
    try:
        call()
    except Exception as e:
        if not isinstance(e, expected) or fragment not in str(e):
            outcome = f"{shown} with {fragment!r}" if fragment else shown
            yield f"{row.name}: error of {what}: expected {outcome}, got {type(e).__name__}: {e}"
    else:
        yield f"{row.name}: error of {what}: expected {shown}, but nothing was raised"


def _stated_errors(row: Row) -> Iterator[str]:
    types = allowed(row)
    dtype = dtypes.float32 if dtypes.float32 in types else types[0]
    for number, (sample, name, fragment) in enumerate(row.bad):
        case = Case(row, number, sample, dtype, strict=False)
        what = f"bad {case.where}"
        yield from _raises(row, what, _class(name), fragment, functools.partial(case.call, case.tensors()))


def _derived_errors(row: Row) -> Iterator[str]:
    """Calls that are wrong for every op with such a signature."""
    case = next(cases(row, allowed(row)), None)
    if case is None:
        return
    op, operands = row.op, case.tensors()
    good = case.keywords(operands)
    if any(p.default is ... for p in row.params):
        yield from _raises(row, "a call without arguments", TypeError, "", lambda: op())
    many = [None] * (len(row.params) + 1)
    yield from _raises(row, "too many arguments", TypeError, "", lambda: op(*many))
    yield from _raises(row, "an unknown argument", TypeError, "", lambda: op(**good, no_such_argument=1))
    for p in row.operands:
        if p.default is not ...:
            continue
        for value, expected in (
            (None, _WRONG_VALUE if p.kind == "Operands" else ValueError),
            (..., _WRONG_VALUE),
        ):
            call = good | {p.name: value}
            yield from _raises(row, f"{p.name}={value!r}", expected, "", functools.partial(op, **call))
    common = [k for k, p in enumerate(case.params) if p.kind in ("Operand", "Operands")]
    missing = [d for d in dtypes.BY_CODE if not row.dtypes >> d._code & 1]
    if common and missing:
        wrong = list(operands)
        for k in common:
            wrong[k] = tensor(np.ones(case.arrays[k].shape), missing[-1])
        what = f"{missing[-1].name} operands"
        yield from _raises(row, what, errors.InvalidArgumentError, "", lambda: case.call(wrong))
    if len(common) > 1 and {dtypes.float32, dtypes.float64} <= set(allowed(row)):
        mixed = list(operands)
        for k, d in zip(common, [dtypes.float32, *[dtypes.float64] * len(common)], strict=False):
            mixed[k] = tensor(np.ones(case.arrays[k].shape), d)
        what = "float32 and float64 operands"
        # TensorFlow's division checks the types in Python.
        either = (errors.InvalidArgumentError, TypeError)
        yield from _raises(row, what, either, "", lambda: case.call(mixed))


def wrong_calls(row: Row) -> Iterator[str]:
    yield from _stated_errors(row)
    yield from _derived_errors(row)


def values(row: Row) -> Iterator[str]:
    for dtype in allowed(row):
        some = list(cases(row, [dtype]))
        if not some:
            yield f"{row.name}: value: no sample makes sense in {dtype.name}, a type that the row allows"
        yield from each("value", _check_value, [*some, *large_cases(row, dtype)])


def inferred(row: Row) -> Iterator[str]:
    return each("inferred shape", _check_inferred, cases(row, allowed(row)))


def unchanged(row: Row) -> Iterator[str]:
    return each("operands", _check_unchanged, cases(row, allowed(row)[-1:]))
