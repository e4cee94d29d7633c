"""Scaled dot-product attention as one op, which never stores the matrix of scores.

For 16-bit floats the matrix products are 16-bit; scores, exponentials, sums and the second result are float32.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.ops import contraction, movement, reduction
from gradtape._src.ops.batching import _all, _row
from gradtape._src.ops.casting import cast
from gradtape._src.ops.comparison import select
from gradtape._src.ops.creation import zeros
from gradtape._src.ops.exponential import exp
from gradtape._src.ops.samples import call, inside
from gradtape._src.ops.table import FLOAT, composite, opaque
from gradtape._src.tensors.conversion import as_tensor

__all__ = ["scaled_dot_product_attention"]


def _causal_mask(queries: int, keys: int) -> np.ndarray:
    return np.arange(keys) <= np.arange(queries)[:, None]


def _wide(x):
    return cast(x, "float32") if x.dtype.size == 2 else x


def _scores(q, k, bias, scale, causal):
    scores = contraction.matmul(_wide(q), _wide(k), transpose_b=True) * scale
    if bias.ndim:
        scores = scores + _wide(bias)
    if causal:
        mask = as_tensor(_causal_mask(q.shape[-2], k.shape[-2]))
        scores = select(mask, scores, as_tensor(np.asarray(-np.inf, scores.dtype.as_numpy_dtype)))
    return scores


def _plain_grad(g, q, k, v, bias, out, lse, scale, causal):
    """`attention_grad` as a composite of small ops, which a tape differentiates."""
    kinds = [x.dtype for x in (q, k, v)]
    g, q, k, v, out, lse = (_wide(x) for x in (g, q, k, v, out, lse))
    p = exp(_scores(q, k, bias, scale, causal) - movement.expand_dims(lse, -1))
    dp = contraction.matmul(g, v, transpose_b=True)
    ds = p * (dp - reduction.reduce_sum(g * out, -1, keepdims=True)) * scale
    grads = (
        contraction.matmul(ds, k),
        contraction.matmul(ds, q, transpose_a=True),
        contraction.matmul(p, g, transpose_a=True),
    )
    return tuple(cast(x, kind) for x, kind in zip(grads, kinds, strict=True))


def _differentiated(f, point, cotangents):
    """Gradients of `f` with respect to its arguments, by a tape."""
    tape = _core.Tape()
    tape._configure(True, False)
    xs = [movement.identity(x) for x in point]
    with tape:
        for x in xs:
            tape._watch(x)
        ys = f(*xs)
    pairs = [(y, h) for y, h in zip(ys, cotangents, strict=True) if h is not None]
    return tape._backward([y for y, _ in pairs], [h for _, h in pairs], xs)


# Each operand has a rule of its own, so that the gradient with respect to the bias, which needs the scores, is computed
# only when it is asked for. A compiled pass merges what the rules have in common.


def _attention_rule(operand):
    def rule(g, q, k, v, bias, out, scale, causal):
        gx = (
            None
            if g[0] is None
            else attention_grad(g[0], q, k, v, bias, out[0], out[1], scale, causal)[operand]
        )
        if g[1] is None or operand == 2:
            return gx
        (through_lse,) = _differentiated(
            lambda x: (
                reduction.reduce_logsumexp(_scores(*((x, k), (q, x))[operand], bias, scale, causal), -1),
            ),
            (q if operand == 0 else k,),
            (g[1],),
        )
        return through_lse if gx is None else gx + through_lse

    return rule


def _bias_rule(g, q, k, v, bias, out, scale, causal):
    if not bias.ndim:
        return None
    p = exp(_scores(q, k, bias, scale, causal) - movement.expand_dims(out[1], -1))
    gx = None
    if g[0] is not None:
        g0 = _wide(g[0])
        dp = contraction.matmul(g0, _wide(v), transpose_b=True)
        gx = p * (dp - reduction.reduce_sum(g0 * _wide(out[0]), -1, keepdims=True))
    if g[1] is not None:
        through_lse = p * movement.expand_dims(g[1], -1)
        gx = through_lse if gx is None else gx + through_lse
    return cast(gx, bias.dtype)


def _attention_grad_rule(operand):
    def rule(hs, g, q, k, v, bias, out, lse, results, scale, causal):
        if operand == 4 and not bias.ndim:
            return None
        operands = [g, q, k, v, bias, out, lse]

        def plain(x):
            return _plain_grad(*operands[:operand], x, *operands[operand + 1 :], scale, causal)

        # It is linear in g, so the point does not matter, and g need not be a residual.
        point = zeros(g.shape, g.dtype) if operand == 0 else operands[operand]
        return _differentiated(plain, (point,), hs)[0]

    return rule


def _np_scores(q, k, bias, scale, causal):
    scores = q @ np.swapaxes(k, -1, -2) * scale + (bias if np.ndim(bias) else 0)  # a scalar means: no bias
    return np.where(_causal_mask(q.shape[-2], k.shape[-2]), scores, -np.inf) if causal else scores


def _np_attention(q, k, v, bias, scale, causal):
    scores = _np_scores(q, k, bias, scale, causal)
    high = scores.max(-1, keepdims=True, initial=-np.inf)
    e = np.exp(scores - high)
    total = e.sum(-1, keepdims=True)
    return (e / total) @ v, (high + np.log(total))[..., 0]


def _np_grad(g, q, k, v, bias, out, lse, scale, causal):
    # `out` and `lse` are independent operands here: any numbers are allowed.
    p = np.exp(_np_scores(q, k, bias, scale, causal) - lse[..., None])
    ds = p * (g @ np.swapaxes(v, -1, -2) - (g * out).sum(-1, keepdims=True)) * scale
    return ds @ k, np.swapaxes(ds, -1, -2) @ q, np.swapaxes(p, -1, -2) @ g


def _batch(name: str) -> Any:
    def rule(size, batched, operands, attrs):
        places = 3 if name == "attention" else 4
        bias = operands[places]
        marks = list(batched)
        marks[places] = True
        wide = bias if batched[places] else movement.expand_dims(bias, 0) if bias.ndim else bias
        if batched[places] and bias.ndim == 1:  # one number per row: no bias
            wide = bias[0]
        aligned = _all(size, marks, [wide if i == places else x for i, x in enumerate(operands)])
        return _row(name, aligned, attrs)

    return rule


_CALLS = [
    call((3, 4), (5, 4), (5, 2), (), scale=0.5, causal=False),
    call((2, 3, 4), (2, 5, 4), (2, 5, 4), (2, 3, 5), scale=1.0, causal=False),
    call((2, 2, 6, 3), (2, 2, 6, 3), (2, 2, 6, 2), (1, 2, 6, 6), scale=0.7, causal=True),
    call((0, 3, 4), (0, 3, 4), (0, 3, 4), (), scale=1.0, causal=False),
    call((2, 70, 4), (2, 300, 4), (2, 300, 3), (), scale=0.5, causal=True),
]

attention_grad = opaque(
    "attention_grad", FLOAT, "g q k v bias out lse:Free scale:Float causal:Bool", many=True, gaps=True, linear="g",
    xla="attention.attention_grad",
    rule=tuple(_attention_grad_rule(k) for k in range(7)), numpy=_np_grad, batch=_batch("attention_grad"),
    samples=[  # lse is not far below the largest score, as in a real call
        call((3, 2), (3, 4), (5, 4), (5, 2), (), (3, 2), inside(2, 4, 3), scale=0.5, causal=False),
        call((2, 2, 6, 2), (2, 2, 6, 3), (2, 2, 6, 3), (2, 2, 6, 2), (1, 2, 6, 6), (2, 2, 6, 2), inside(2, 4, 2, 2, 6),
             scale=0.7, causal=True),
    ],
    tolerance=4.0,
    doc="The gradients of `attention` with respect to queries, keys and values, from its results.",
)  # fmt: skip

attention = opaque(
    "attention", FLOAT, "q k v bias scale:Float causal:Bool", many=True, gaps=True, xla="attention.attention",
    rule=(*(_attention_rule(k) for k in range(3)), _bias_rule), numpy=_np_attention, samples=_CALLS,
    batch=_batch("attention"), tolerance=4.0,
    bad=[
        (call((3, 4), (5, 3), (5, 2), (), scale=1.0, causal=False), "InvalidArgumentError", "must have shapes"),
        (call((3, 4), (5, 4), (5, 2), (3, 4), scale=1.0, causal=False), "InvalidArgumentError", "the bias must"),
    ],
    doc="`softmax(scale * q kᵀ + bias) v`, computed in blocks, and the log-sum-exp of the scores.",
)  # fmt: skip


@composite("nn.scaled_dot_product_attention")
def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, mask: Any = None, is_causal: bool = False, scale: float | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """`softmax(scale * query keyᵀ + mask) value`, computed in blocks, without storing the matrix of scores.

    Args:
      query, key, value: `[..., queries, width]`, `[..., keys, width]` and `[..., keys, value width]`, with
        the same leading axes, such as batch and heads.
      mask: booleans (True: attend) or numbers to add to the scores; it broadcasts to `[..., queries, keys]`.
      is_causal: query i attends to keys 0 to i only.
      scale: by default `1 / sqrt(width)`.

    Returns:
      A tensor `[..., queries, value width]`; zeros for a query that may attend to no key.
    """
    q, k, v = as_tensor(query), as_tensor(key), as_tensor(value)
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    none = as_tensor(np.zeros((), q.dtype.as_numpy_dtype))
    bias = none
    if mask is not None:
        bias = as_tensor(mask)
        if bias.dtype.is_bool:
            bias = select(bias, none, as_tensor(np.asarray(-np.inf, q.dtype.as_numpy_dtype)))
        lead = (1,) * (q.ndim - bias.ndim) + tuple(bias.shape)[:-2]
        shape = [*lead[: q.ndim - 2], q.shape[-2], k.shape[-2]]
        bias = movement.broadcast_to(bias, shape)
    return attention(q, k, v, bias, factor, bool(is_causal))[0]
