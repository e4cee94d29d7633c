"""Cumulative sums, products and log-sum-exps along an axis, and the recurrence that their gradients use."""

from __future__ import annotations

import numpy as np

from gradtape._src.ops import movement
from gradtape._src.ops.arithmetic import conjugate
from gradtape._src.ops.exponential import exp
from gradtape._src.ops.samples import at, call
from gradtape._src.ops.table import FLOAT, NUMBER, opaque

__all__ = ["cumprod", "cumsum", "cumulative_logsumexp", "linear_recurrence"]


def _next(x, axis, reverse):
    """Shifts `x` by one against the direction of the scan: each place gets the next element, the last one 0."""
    if x.shape[axis] == 0:
        return x
    part = [slice(None)] * len(x.shape)
    part[axis] = slice(None, -1) if reverse else slice(1, None)
    pads = [[0, 0] for _ in x.shape]
    pads[axis] = [1, 0] if reverse else [0, 1]
    return movement.pad(x[tuple(part)], pads)


_SCANS = [
    call((3,)), call((2, 3)), call((2, 3), axis=1, exclusive=True), call((2, 3), axis=-1, reverse=True),
    call((1,)), call((2, 3, 2), axis=1, exclusive=True, reverse=True), call((0, 3)), call((2, 0), axis=1),
]  # fmt: skip
_BAD = [
    (call((2, 3), axis=2), "InvalidArgumentError", "out of range"),
    (call(()), "InvalidArgumentError", "out of range"),
]


def _reference(accumulate, neutral):
    def scan(x, axis=0, exclusive=False, reverse=False):
        y = np.moveaxis(x, axis, 0)
        y = accumulate(y[::-1] if reverse else y, axis=0)
        if exclusive and len(y):
            y = np.concatenate([np.full_like(y[:1], neutral), y[:-1]])
        return np.moveaxis(y[::-1] if reverse else y, 0, axis)

    return scan


cumsum = opaque(
    "cumsum", NUMBER, "x axis:Axis=0 exclusive:Bool=False reverse:Bool=False", linear="x", xla="scan.cumsum",
    batch="leading",
    rule=lambda g, x, out, axis, exclusive, reverse: cumsum(g, axis, exclusive, not reverse),
    numpy=_reference(np.cumsum, 0), samples=_SCANS, bad=_BAD, names="cumsum math.cumsum",
    doc="The cumulative sum of `x` along `axis`. With `exclusive`, each element is left out of its own sum.",
)  # fmt: skip


def _numpy_recurrence(a, b, axis=0, reverse=False):
    a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    out, state = np.zeros_like(b), 0
    for i in reversed(range(len(b))) if reverse else range(len(b)):
        state = out[i] = a[i] * state + b[i]
    return np.moveaxis(out, 0, axis)


def _recurrence_wrt_b(g, a, axis, reverse):
    return linear_recurrence(conjugate(_next(a, axis, reverse)), g, axis, not reverse)


def _recurrence_wrt_a(g, a, b, out, axis, reverse):
    before = _next(out, axis, not reverse)
    return _recurrence_wrt_b(g, a, axis, reverse) * conjugate(before)


linear_recurrence = opaque(
    "linear_recurrence", NUMBER, "a b axis:Axis=0 reverse:Bool=False", linear="b",
    xla="scan.linear_recurrence",
    batch="leading",
    rule=(_recurrence_wrt_a, lambda g, a, b, out, axis, reverse: _recurrence_wrt_b(g, a, axis, reverse)),
    numpy=_numpy_recurrence,
    samples=[
        call((4,), (4,)), call((2, 3), (2, 3), axis=1), call((3, 2), (3, 2), reverse=True), call((1,), (1,)),
        call((0, 3), (0, 3)), call(at([2.0, 0.0, 3.0]), (3,)),
    ],
    bad=[(call((3,), (2,)), "InvalidArgumentError", "same shape")],
    doc="`out[i] = a[i] * out[i - 1] + b[i]` along `axis`, with 0 before the first element.",
)  # fmt: skip


def _cumprod_rule(g, x, out, axis, exclusive, reverse):
    """The product of the elements before, times a recurrence over the cotangents after.

    Neither divides by `x`, so the derivative is correct where `x` is 0 (TensorFlow's is not).
    """
    before = cumprod(x, axis, True, reverse)
    after = _recurrence_wrt_b(_next(g, axis, reverse) if exclusive else g, x, axis, reverse)
    return conjugate(before) * after


cumprod = opaque(
    "cumprod", NUMBER, "x axis:Axis=0 exclusive:Bool=False reverse:Bool=False", rule=_cumprod_rule,
    xla="scan.cumprod",
    batch="leading",
    numpy=_reference(np.cumprod, 1),
    samples=[*_SCANS, call(at([2.0, 0.0, 3.0, 0.0])), call(at([2.0, 0.0, 3.0]), exclusive=True)],
    bad=_BAD, edges=[((at([2.0, 0.0, 3.0]),), ([1.0, 8.0, 0.0],))], names="math.cumprod",
    doc="The cumulative product of `x` along `axis`. Its gradient is correct where elements are 0.",
)  # fmt: skip


def _cumulative_logsumexp_rule(g, x, out, axis, exclusive, reverse):
    """A cumulative log-sum-exp never decreases, so the exponents below are at most 0."""
    total = cumulative_logsumexp(x, axis, False, reverse)
    step = exp(total - _next(total, axis, reverse))
    return exp(x - total) * linear_recurrence(
        step, _next(g, axis, reverse) if exclusive else g, axis, not reverse
    )


cumulative_logsumexp = opaque(
    "cumlogsumexp", FLOAT, "x axis:Axis=0 exclusive:Bool=False reverse:Bool=False", xla="scan.cumlogsumexp",
    batch="leading",
    rule=_cumulative_logsumexp_rule,
    numpy=_reference(np.logaddexp.accumulate, -np.inf), samples=_SCANS,
    gradient_samples=[s for s in _SCANS if not s.attrs.get("exclusive")],  # exclusive ones begin with -inf
    bad=_BAD, names="math.cumulative_logsumexp",
    doc="The cumulative `log(sum(exp(x)))` along `axis`, without overflow.",
)  # fmt: skip
