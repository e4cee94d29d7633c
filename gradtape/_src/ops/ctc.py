"""Connectionist temporal classification: `tf.nn.ctc_loss` and the functions around it.

The native op computes the loss and, from the same probabilities of paths, its derivative with respect to the logits.
The derivative of that is a native op as well, so there are second-order gradients.
"""

from __future__ import annotations

import math

import numpy as np

from gradtape._src.base import dtypes, errors
from gradtape._src.ops.moments import as_type, in_float
from gradtape._src.ops.movement import reshape, transpose
from gradtape._src.ops.samples import call, ints
from gradtape._src.ops.static import array_of
from gradtape._src.ops.table import WIDE, composite, opaque
from gradtape._src.tensors.conversion import as_tensor

__all__ = ["collapse_repeated", "ctc_loss", "ctc_unique_labels"]


def _np_paths(logits, labels, blank):
    """The probability of `labels`, by enumerating all paths, and the posterior of each class at each step."""
    steps, classes = logits.shape
    p = np.exp(logits - logits.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    total, share = 0.0, np.zeros_like(p)
    for path in np.ndindex(*[classes] * steps):
        short = [c for i, c in enumerate(path) if c != blank and (i == 0 or path[i - 1] != c)]
        if short == list(labels):
            weight = math.prod(p[t, c] for t, c in enumerate(path))
            total += weight
            for t, c in enumerate(path):
                share[t, c] += weight
    return total, p, share


def _np_ctc(logits, labels, label_length, logit_length, blank_index=0):
    loss, back = np.zeros(logits.shape[1]), np.zeros(logits.shape)
    for b in range(logits.shape[1]):
        steps = logit_length[b]
        total, p, share = _np_paths(logits[:steps, b], labels[b, : label_length[b]], blank_index)
        loss[b] = -math.log(total) if total else math.inf
        back[:steps, b] = p - share / total if total else 0
    return loss, back


_ARGS = "labels:Index label_length:Index logit_length:Index"
_LABELS = ints([[1, 2], [2, 0]]), ints([2, 1]), ints([4, 3])
_SAMPLES = [
    call((4, 2, 3), *_LABELS),
    call((3, 1, 3), ints([[0, 0]]), ints([2], "int64"), ints([3]), blank_index=2),  # a path through a blank
    call((3, 2, 2), ints([[1], [1]]), ints([0, 1]), ints([3, 1])),
]
_BAD = [
    (call((4, 3), *_LABELS), "InvalidArgumentError", "[time, batch, classes]"),
    (call((4, 2, 3), ints([[1, 5], [2, 0]]), ints([2, 1]), ints([4, 3])), "InvalidArgumentError", "labels[0,1] = 5"),
    (call((4, 2, 3), ints([[1, 2], [2, 0]]), ints([3, 1]), ints([4, 3])), "InvalidArgumentError", "label_length[0] = 3"),
    (call((4, 2, 3), ints([[1, 2], [2, 0]]), ints([2, 1]), ints([5, 3])), "InvalidArgumentError", "logit_length[0] = 5"),
    (call((4, 2, 3), *_LABELS, blank_index=3), "InvalidArgumentError", "blank_index must be in [0, 3)"),
]  # fmt: skip


def _np_ctc_grad(logits, labels, label_length, logit_length, direction, blank_index=0):
    step = 1e-5
    rest = labels, label_length, logit_length, blank_index
    ahead, behind = (_np_ctc(logits + s * direction, *rest)[1] for s in (step, -step))
    far, near = (_np_ctc(logits + s * direction, *rest)[1] for s in (2 * step, -2 * step))
    return (8 * (ahead - behind) - (far - near)) / (12 * step)


def _ctc_grad_rule(g, x, labels, label_length, logit_length, direction, out, blank_index):
    """The gradient with respect to `direction`: the Hessian is symmetric, so this is another product with it."""
    return ctc_loss_grad(x, labels, label_length, logit_length, g, blank_index)


def _no_third(g, *_):
    raise LookupError(
        "ctc_loss: only first and second derivatives are implemented; got a request for the third."
    )


ctc_loss_grad = opaque(
    "ctc_loss_grad", WIDE, f"logits {_ARGS} direction blank_index:Int=0", linear="direction", xla="ctc.ctc_loss_grad",
    rule=(_no_third, None, None, None, _ctc_grad_rule), gradient_samples=[], numpy=_np_ctc_grad, tolerance=1e4,
    samples=[call(*s.operands, s.operands[0], **s.attrs) for s in _SAMPLES], bad=[],
    doc="The derivative of the gradient of `ctc_loss` with respect to the logits in a direction.",
)  # fmt: skip


def _ctc_rule(g, x, labels, label_length, logit_length, out, blank_index):
    gx = None if g[0] is None else reshape(g[0], [1, -1, 1]) * out[1]
    if g[1] is None:
        return gx
    more = ctc_loss_grad(x, labels, label_length, logit_length, g[1], blank_index)
    return more if gx is None else gx + more


ctc_loss_op = opaque(
    "ctc_loss", WIDE, f"logits {_ARGS} blank_index:Int=0", many=True, gaps=True, xla="ctc.ctc_loss",
    rule=(_ctc_rule, None, None, None), numpy=_np_ctc, samples=_SAMPLES, bad=_BAD,
    gradient_samples=[],  # the second derivative of its second result is the third of the loss; see tests/ops/test_ctc.py
    doc="The CTC loss of each example (infinite if no path fits), and its derivative with respect to the logits.",
)  # fmt: skip


@composite("nn.ctc_loss")
def ctc_loss(
    labels,
    logits,
    label_length,
    logit_length,
    logits_time_major=True,
    unique=None,
    blank_index=None,
    name=None,
):
    """The negative logarithm of the probability of `labels` under `softmax(logits)`, over all alignments.

    Args:
      labels: integers [batch, length] (or a SparseTensor, then without `label_length`).
      logits: floats [time, batch, classes], or [batch, time, classes] if not `logits_time_major`.
      label_length, logit_length: the numbers of labels and of time steps of each example.
      blank_index: the class of the blank, 0 by default; negative numbers count from the end.

    Returns:
      The losses [batch]: infinite, with a gradient of 0, where there are too few time steps for the labels.
    """
    x = as_tensor(logits)
    if x.ndim != 3:
        raise errors.InvalidArgumentError(
            f"ctc_loss: logits must have three axes; got {x.dtype.name}{list(x.shape)}."
        )
    if not logits_time_major:
        x = transpose(x, [1, 0, 2])
    if hasattr(labels, "dense_shape"):
        if blank_index is None:
            raise ValueError(
                "ctc_loss: Argument `blank_index` must be provided when labels is a SparseTensor."
            )
        labels, label_length = _dense_labels(labels)
    blank = 0 if blank_index is None else int(blank_index)
    blank = blank + x.shape[2] if blank < 0 else blank
    wide = in_float(x)
    loss = ctc_loss_op(wide, _indices(labels), _indices(label_length), _indices(logit_length), blank)[0]
    return as_type(loss, x.dtype)


def _indices(value):
    x = as_tensor(value)
    return x if x.dtype in (dtypes.int32, dtypes.int64) else as_type(x, dtypes.int64)


def _dense_labels(sparse):
    """Converts a sparse matrix of labels to a dense one and the length of each row."""
    indices, values = array_of(sparse.indices), array_of(sparse.values)
    rows, most = (int(d) for d in array_of(sparse.dense_shape))
    dense = np.zeros((rows, most), np.int64)
    dense[indices[:, 0], indices[:, 1]] = values
    length = np.bincount(indices[:, 0], minlength=rows) if len(indices) else np.zeros(rows, np.int64)
    return as_tensor(dense), as_tensor(length)


@composite("nn.ctc_unique_labels")
def ctc_unique_labels(labels, name=None):
    """The distinct labels of each row in order of appearance, and the index of each label among them.

    TensorFlow's `ctc_loss` is faster with them as `unique`; here it makes no difference.
    """
    x = array_of(as_tensor(labels))
    unique, place = np.zeros_like(x, np.int64), np.zeros_like(x, np.int32)
    for r, row in enumerate(x):
        first: dict = {}
        for i, label in enumerate(row.tolist()):
            place[r, i] = first.setdefault(label, len(first))
        unique[r, : len(first)] = list(first)
    return [as_tensor(unique), as_tensor(place)]


@composite("nn.collapse_repeated")
def collapse_repeated(labels, seq_length, name=None):
    """`labels` with consecutive repetitions merged, padded with zeros, and the new lengths."""
    x, lengths = array_of(as_tensor(labels)), array_of(as_tensor(seq_length))
    rows = []
    for row, n in zip(x.tolist(), lengths.tolist(), strict=True):
        rows.append([label for i, label in enumerate(row[:n]) if i == 0 or row[i - 1] != label])
    most = max((len(r) for r in rows), default=0)
    out = np.zeros((len(rows), most), x.dtype)
    for r, row in enumerate(rows):
        out[r, : len(row)] = row
    return as_tensor(out), as_tensor(np.array([len(r) for r in rows], lengths.dtype))
