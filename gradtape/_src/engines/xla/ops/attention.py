"""Scaled dot-product attention on XLA: its two products, with softmax between them."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax


def attention(q: Array, k: Array, v: Array, bias: Array, scale: float, causal: bool) -> tuple[Array, Array]:
    """`softmax(scale q k' + bias) v`, and the logarithms of the sums of exponentials.

    A query that may not attend to any key gives zeros.
    """
    scores = _scores(q, k, bias, scale, causal)
    high = jnp.max(scores, -1, keepdims=True, initial=-jnp.inf)
    high = jnp.where(high == -jnp.inf, 0, high)
    e = jnp.exp(scores - high)
    total = jnp.sum(e, -1, keepdims=True)
    out = jnp.matmul(e, _wide(v)) / jnp.where(total == 0, 1, total)
    return out.astype(v.dtype), (high + jnp.log(total))[..., 0]


def attention_grad(
    g: Array, q: Array, k: Array, v: Array, bias: Array, out: Array, lse: Array, scale: float, causal: bool
) -> tuple[Array, Array, Array]:
    """The gradients with respect to queries, keys and values."""
    of_q, of_k, of_v = q.dtype, k.dtype, v.dtype
    g, q, k, v, out, lse = (_wide(x) for x in (g, q, k, v, out, lse))
    p = jnp.exp(_scores(q, k, bias, scale, causal) - lse[..., None])
    p = jnp.where(jnp.isinf(lse)[..., None], 0, p)
    inner = jnp.sum(g * out, -1, keepdims=True)
    ds = p * (jnp.matmul(g, _transposed(v)) - inner) * scale
    gq, gk, gv = jnp.matmul(ds, k), jnp.matmul(_transposed(ds), q), jnp.matmul(_transposed(p), g)
    return gq.astype(of_q), gk.astype(of_k), gv.astype(of_v)


def _scores(q: Array, k: Array, bias: Array, scale: float, causal: bool) -> Array:
    scores = jnp.matmul(_wide(q), _transposed(_wide(k))) * scale
    if bias.ndim:  # a scalar means no bias
        scores = scores + _wide(bias)
    if causal:
        query, key = (lax.broadcasted_iota(jnp.int32, scores.shape[-2:], axis) for axis in (0, 1))
        scores = jnp.where(key <= query, scores, -jnp.inf)
    return scores


def _wide(x: Array) -> Array:
    return x.astype(jnp.float32) if x.dtype.itemsize == 2 else x


def _transposed(x: Array) -> Array:
    return jnp.swapaxes(x, -1, -2)
