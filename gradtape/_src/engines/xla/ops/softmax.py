"""Softmax and cross-entropies over the last axis on XLA. As natively, half floats are computed in float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from gradtape._src.engines.xla.ops.indexed import inside


def softmax(x: Array) -> Array:
    """`exp(x) / Σ exp(x)`; a row of float32 with +inf in it is NaN there and 0 elsewhere, as natively."""
    e, _ = _exponentials(_wide(x))
    total = _sum(e)
    return jnp.where(jnp.isnan(total), e, e / total) if e.dtype == jnp.float32 else e / total


def log_softmax(x: Array) -> Array:
    """`x - log Σ exp(x)`."""
    e, shifted = _exponentials(_wide(x))
    return shifted - jnp.log(_sum(e))


def softmax_grad(out: Array, g: Array) -> Array:
    """`(g - Σ g·out)·out`."""
    out, g = _wide(out), _wide(g)
    return (g - _sum(g * out)) * out


def log_softmax_grad(out: Array, g: Array) -> Array:
    """`g - exp(out) · Σ g`."""
    out, g = _wide(out), _wide(g)
    return g - jnp.exp(out) * _sum(g)


def softmax_xent(x: Array, labels: Array) -> tuple[Array, Array]:
    """Cross-entropies with given probabilities, and their derivatives. A class of weight 0 costs nothing."""
    labels = _wide(labels)
    e, shifted = _exponentials(_wide(x))
    total = _sum(e)
    costs = jnp.where(labels != 0, labels * (jnp.log(total) - shifted), 0)
    return jnp.sum(costs, -1), e / total - labels


def sparse_softmax_xent(x: Array, labels: Array, *, check: Callable[[Any], None]) -> tuple[Array, Array]:
    """Cross-entropies with class numbers, and their derivatives."""
    check(inside(labels, x.shape[-1]))
    e, shifted = _exponentials(_wide(x))
    total = _sum(e)
    own = lax.broadcasted_iota(labels.dtype, x.shape, x.ndim - 1) == labels[..., None]
    losses = jnp.log(total)[..., 0] - jnp.sum(jnp.where(own, shifted, 0), -1)
    return losses, e / total - own.astype(e.dtype)


def _exponentials(x: Array) -> tuple[Array, Array]:
    """`exp(x - max x)`, and the exponents."""
    shifted = x - jnp.max(x, -1, keepdims=True, initial=-jnp.inf)
    return jnp.exp(shifted), shifted


def _sum(x: Array) -> Array:
    return jnp.sum(x, -1, keepdims=True)


def _wide(x: Array) -> Array:
    return x.astype(jnp.float32) if x.dtype in (jnp.float16, jnp.bfloat16) else x
