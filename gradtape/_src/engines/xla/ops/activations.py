"""Activation functions on XLA that jax.nn lacks, or does not compute to full precision."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

_SLOPE, _CUBE = 2 * math.sqrt(2 / math.pi), 2 * math.sqrt(2 / math.pi) * 0.044715


def relu_grad(out: Any, g: Any) -> Any:
    """`g` where `out > 0`, else 0."""
    return jnp.where(out > 0, g, 0)


def leaky_relu_grad(x: Any, alpha: Any, g: Any) -> Any:
    """`g` where `x > 0`, else `alpha * g`."""
    return jnp.where(x > 0, g, alpha * g)


def sigmoid_grad(out: Any, g: Any) -> Any:
    """`g * out * (1 - out)`."""
    return g * (out * (1 - out))


def _normal_below(x: Any) -> Any:
    """The probability that a standard normal number is below `x`, from its tail, which preserves precision."""
    return lax.erfc(x * -math.sqrt(0.5)) / 2


def gelu(x: Any) -> Any:
    """`x * P(X <= x)` for a standard normal X."""
    return x * _normal_below(x)


def gelu_slope(x: Any) -> Any:
    """The derivative of `gelu`."""
    return _normal_below(x) + x * jnp.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))


def gelu_tanh(x: Any) -> Any:
    """`x * (1 + tanh(u)) / 2`, which is `x * sigmoid(2u)`."""
    return x * jax.nn.sigmoid(x * (_SLOPE + _CUBE * x * x))
