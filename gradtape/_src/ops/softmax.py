"""Softmax and log-softmax, and the fused rows of the cross-entropies (`losses.py` has the public functions)."""

from __future__ import annotations

import numpy as np

from gradtape._src.base import errors
from gradtape._src.ops.creation import convert_to_tensor
from gradtape._src.ops.exponential import exp
from gradtape._src.ops.movement import expand_dims, transpose
from gradtape._src.ops.reduction import reduce_sum
from gradtape._src.ops.samples import at, call, ints
from gradtape._src.ops.selection import one_hot
from gradtape._src.ops.table import FLOAT, opaque

__all__ = [
    "log_softmax", "log_softmax_grad", "softmax", "softmax_grad", "softmax_xent", "sparse_softmax_xent",
]  # fmt: skip

_ROWS = [call((3,)), call((2, 3)), call((2, 2, 4)), call((0, 3)), call((2, 0)), call(at([[1e3, 1e3, -1e3]]))]
_PAIRS = [call((3,), (3,)), call((2, 3), (2, 3)), call((2, 2, 4), (2, 2, 4)), call((0, 3), (0, 3))]
_RANK = (call(()), "InvalidArgumentError", "must have >= 1 dimension")
_SAME = (call((2, 3), (3, 3)), "InvalidArgumentError", "same shape")


def _sum_last(x):
    return reduce_sum(x, -1, True)


# ---- softmax ------------------------------------------------------------------------------------


def _np_softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True, initial=-np.inf))
    return e / e.sum(-1, keepdims=True)


def _over_axis(op):
    """The composite for other axes than the last, the only one that `op` handles."""

    def over_axis(logits, axis=None, name=None):
        x = convert_to_tensor(logits)
        rank = x.ndim
        axis = -1 if axis is None else int(axis)
        if axis == -1 or axis == rank - 1:
            return op(x)
        if not -rank <= axis < rank:
            raise errors.InvalidArgumentError(
                f"{op.op_name}: `dim` must be in the range [{-rank}, {rank}) where {rank} is the number of "
                f"dimensions in the input. Received: dim={axis}"
            )
        perm = list(range(rank))
        perm[axis], perm[-1] = perm[-1], perm[axis]
        return transpose(op(transpose(x, perm)), perm)

    return over_axis


softmax_grad = opaque(
    "softmax_grad", FLOAT, "out g", linear="g", xla="softmax.softmax_grad",
    batch="leading",
    rule=(
        lambda h, out, g, dx: h * (g - _sum_last(g * out)) - g * _sum_last(h * out),
        lambda h, out, g, dx: softmax_grad(out, h),
    ),
    numpy=lambda out, g: out * (g - np.sum(g * out, -1, keepdims=True)), samples=_PAIRS, bad=[_SAME],
    doc="`(g - Σ g·out)·out` over the last axis: the gradient of softmax in one pass.",
)  # fmt: skip


def _softmax_axis(logits, axis=None, name=None):
    return _softmax_over(logits, axis)


softmax = opaque(
    "softmax", FLOAT, "logits axis:Extra=None", xla="softmax.softmax",
    batch="leading",
    rule=lambda g, x, out: softmax_grad(out, g),
    numpy=lambda logits: _np_softmax(logits), samples=_ROWS, bad=[_RANK], fallback=_softmax_axis,
    names="nn.softmax math.softmax",
    doc="`exp(x) / Σ exp(x)` over `axis` (the last one by default), without overflow.",
)  # fmt: skip
_softmax_over = _over_axis(softmax)

log_softmax_grad = opaque(
    "log_softmax_grad", FLOAT, "out g", linear="g", xla="softmax.log_softmax_grad",
    batch="leading",
    rule=(
        lambda h, out, g, dx: -h * exp(out) * _sum_last(g),
        lambda h, out, g, dx: h - _sum_last(h * exp(out)),
    ),
    numpy=lambda out, g: g - np.exp(out) * np.sum(g, -1, keepdims=True), samples=_PAIRS, bad=[_SAME],
    doc="`g - exp(out) · Σ g` over the last axis: the gradient of log_softmax in one pass.",
)  # fmt: skip


def _np_log_softmax(x):
    shifted = x - np.max(x, -1, keepdims=True, initial=-np.inf)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def _log_softmax_axis(logits, axis=None, name=None):
    return _log_softmax_over(logits, axis)


log_softmax = opaque(
    "log_softmax", FLOAT, "logits axis:Extra=None", xla="softmax.log_softmax",
    batch="leading",
    rule=lambda g, x, out: log_softmax_grad(out, g),
    numpy=_np_log_softmax,
    samples=_ROWS, bad=[_RANK], fallback=_log_softmax_axis, names="nn.log_softmax math.log_softmax",
    doc="`x - log Σ exp(x)` over `axis` (the last one by default), without overflow.",
)  # fmt: skip
_log_softmax_over = _over_axis(log_softmax)


# ---- cross-entropies ----------------------------------------------------------------------------
#
# The forward pass computes the loss and, from the same exponentials, its derivative `back` with respect to the
# logits. Only these rules use `back`, so it has a cotangent only if the gradient itself is differentiated.


def _through_loss(g, back):
    return expand_dims(g[0], -1) * back


def _xent_logits(g, x, labels, out):
    gx = None if g[0] is None else _through_loss(g, out[1])
    if g[1] is None:
        return gx
    second = softmax_grad(out[1] + labels, g[1])
    return second if gx is None else gx + second


def _xent_labels(g, x, labels, out):
    gy = None if g[0] is None else -_through_loss(g, log_softmax(x))
    if g[1] is None:
        return gy
    return -g[1] if gy is None else gy - g[1]


def _sparse_xent_logits(g, x, labels, out):
    gx = None if g[0] is None else _through_loss(g, out[1])
    if g[1] is None:
        return gx
    hot = one_hot(labels, x.shape[-1], dtype=x.dtype)
    second = softmax_grad(out[1] + hot, g[1])
    return second if gx is None else gx + second


def _np_xent(x, labels):
    s = x - np.max(x, -1, keepdims=True)
    log_p = s - np.log(np.exp(s).sum(-1, keepdims=True))
    return -np.sum(labels * log_p, -1), np.exp(log_p) - labels


softmax_xent = opaque(
    "softmax_xent", FLOAT, "logits labels", many=True, gaps=True, xla="softmax.softmax_xent",
    batch="leading",
    rule=(_xent_logits, _xent_labels),
    numpy=_np_xent,
    samples=[call((3,), (3,)), call((2, 3), (2, 3)), call((0, 3), (0, 3)), call((2, 2, 4), (2, 2, 4))],
    # As in TensorFlow, the derivative assumes that the labels add up to 1.
    gradient_samples=[
        call((3,), at([0.2, 0.5, 0.3])), call((2, 3), at([[0.1, 0.2, 0.7], [1.0, 0.0, 0.0]])),
        call((0, 3), (0, 3)),
    ],
    bad=[
        (call((2, 3), (2, 2)), "InvalidArgumentError", "must be same size"),
        (call((2, 0), (2, 0)), "InvalidArgumentError", "at least one class"),
    ],
    doc="The cross-entropy of softmax(logits) with probabilities, and its derivative with respect to the logits.",
)  # fmt: skip

sparse_softmax_xent = opaque(
    "sparse_softmax_xent", FLOAT, "logits labels:Index", many=True, gaps=True,
    xla="softmax.sparse_softmax_xent",
    batch="leading",
    rule=(_sparse_xent_logits, None),
    numpy=lambda x, labels: _np_xent(x, np.eye(x.shape[-1])[labels]),
    samples=[
        call((3,), ints(2)), call((2, 3), ints([0, 2])), call((2, 2, 4), ints([[0, 3], [1, 1]], "int64")),
        call((0, 3), ints(np.zeros(0, int))),
    ],
    bad=[
        (call((1, 2), ints([5])), "InvalidArgumentError", "label value of 5 which is outside"),
        (call((2, 3), ints([1])), "InvalidArgumentError", "same first dimension"),
    ],
    doc="The cross-entropy of softmax(logits) with class indices, and its derivative with respect to the logits.",
)  # fmt: skip
