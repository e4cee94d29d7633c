"""Checks of user-defined ops: samples, and a `jvp` that is the derivative."""

from __future__ import annotations

from collections.abc import Iterator

from gradtape._src.contract.behaviour import _Trace
from gradtape._src.contract.cases import Case, array_of
from gradtape._src.contract.compare import differences, each
from gradtape._src.contract.derivatives import _floats, _Setting, smooth
from gradtape._src.contract.forward import _slopes
from gradtape._src.ops.table import Row
from gradtape._src.tensors import hooks
from gradtape._src.tensors.conversion import as_tensor

_EVERYTHING = (1 << 64) - 1


def _attributes(case: Case) -> tuple:
    """The attributes of the sample as rules get them."""
    probe = _Trace()
    case.call(case.symbols(probe))
    return next(attrs for op, attrs in probe.calls if op is case.row.op)


def is_first_order(row: Row) -> bool:
    """Whether the rule reads values, so that its results cannot be differentiated."""
    if row.native or not row.differentiable:
        return False
    case = next(smooth(row), None)
    if case is None:
        return False
    operands = case.tensors()
    return _EVERYTHING in hooks.reads(row.op, tuple(operands), case.call(operands), _attributes(case))


def _check_jvp(case: Case) -> Iterator[str]:
    s = _Setting(case)
    out = case.call(s.operands)
    tangents = dict(zip(s.sources, s.direction, strict=True))
    ts = [tangents.get(k) for k in range(len(s.operands))]
    whole = tuple(out) if case.row.many else out[0]
    pushed = case.row.op.jvp(ts[0] if len(ts) == 1 else tuple(ts), *s.operands, whole, *_attributes(case))
    some = [as_tensor(t) for t in (pushed if case.row.many else [pushed])]
    for k, (t, slope) in enumerate(zip(_floats(some), _slopes(s), strict=True)):
        what = "jvp" if len(some) == 1 else f"jvp of result {k}"
        yield from differences(what, case, array_of(t), slope, max(1, len(s.xs)) * s.numerical)


def jvp(row: Row) -> Iterator[str]:
    """The tangent from a user-defined op's `jvp`, against central differences."""
    if getattr(row.op, "jvp", None) is not None:
        yield from each("jvp", _check_jvp, smooth(row))
