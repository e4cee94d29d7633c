"""Normalisation by moments on XLA: of rows, and of channels over the batch."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax


def layer_norm(x: Array, scale: Array, offset: Array, epsilon: float) -> tuple[Array, Array, Array]:
    """`(x - mean) rstd scale + offset` over the last axis, with the means and `rstd`."""
    mean = jnp.mean(x, -1, keepdims=True)
    away = x - mean
    rstd = lax.rsqrt(jnp.mean(away * away, -1, keepdims=True) + epsilon)
    return away * rstd * scale + offset, mean, rstd


def layer_norm_grad(g: Array, x: Array, scale: Array, mean: Array, rstd: Array) -> tuple[Array, Array, Array]:
    """The gradients of `layer_norm` with respect to x, scale and offset."""
    y, h, rows = (x - mean) * rstd, g * scale, tuple(range(x.ndim - 1))
    gx = rstd * (h - jnp.mean(h, -1, keepdims=True) - y * jnp.mean(h * y, -1, keepdims=True))
    return gx, jnp.sum(g * y, rows), jnp.sum(g, rows)


def rms_norm(x: Array, scale: Array, epsilon: float) -> tuple[Array, Array]:
    """`x rstd scale` over the last axis, and `rstd`."""
    rstd = lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + epsilon)
    return x * rstd * scale, rstd


def rms_norm_grad(g: Array, x: Array, scale: Array, rstd: Array) -> tuple[Array, Array]:
    """The gradients of `rms_norm` with respect to x and scale."""
    y, h = x * rstd, g * scale
    gx = rstd * (h - y * jnp.mean(h * y, -1, keepdims=True))
    return gx, jnp.sum(g * y, tuple(range(x.ndim - 1)))


def batch_norm(
    x: Array, scale: Array, offset: Array, epsilon: float, axis: int
) -> tuple[Array, Array, Array]:
    """`(x - mean) / sqrt(variance + epsilon) · scale + offset` for each channel, with the mean and the variance."""
    over = _others(x, axis)
    mean = jnp.mean(x, over, keepdims=True)
    away = x - mean
    variance = jnp.mean(away * away, over)
    factor = lax.rsqrt(variance + epsilon) * scale
    out = away * _channel(factor, x, axis) + _channel(offset, x, axis)
    return out, mean.reshape(scale.shape), variance


def batch_norm_grad(
    g: Array, x: Array, scale: Array, mean: Array, variance: Array, epsilon: float, axis: int
) -> tuple[Array, Array, Array]:
    """The gradients of `batch_norm` with respect to x, scale and offset."""
    over, rstd = _others(x, axis), lax.rsqrt(variance + epsilon)
    y = (x - _channel(mean, x, axis)) * _channel(rstd, x, axis)
    gscale, goffset = jnp.sum(g * y, over), jnp.sum(g, over)
    n = max(x.size // max(x.shape[axis], 1), 1)
    by_mean, by_scale = _channel(goffset / n, x, axis), _channel(gscale / n, x, axis)
    return _channel(scale * rstd, x, axis) * (g - by_mean - y * by_scale), gscale, goffset


def _others(x: Array, axis: int) -> tuple[int, ...]:
    return tuple(i for i in range(x.ndim) if i != axis)


def _channel(y: Array, x: Array, axis: int) -> Array:
    """One number per channel, in a shape that broadcasts with `x`."""
    return y.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
