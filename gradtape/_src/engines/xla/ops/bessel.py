"""Bessel functions of order 0 and 1 of float64 arrays on XLA, by integrals and series instead of tables of digits.

J and Y up to 20 are trapezoidal sums over the angle in Bessel's integral, which is periodic: with n nodes they are
exact except for Bessel functions of order 2n. From 20 on, the terms of Hankel's expansion fall below 1e-17 before
they grow.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

_EULER = 0.57721566490153286061
_FAR = 20.0


# ---- J and Y ----

# The integrand has the period pi and is even around pi / 2, so 28 nodes do the work of 56.
_COUNT = 28
_ANGLES = math.pi * (np.arange(_COUNT) + 0.5) / (2 * _COUNT)
_SINES = np.sin(_ANGLES)
# Neumann's series Y_0 = 2/pi (log(x/2) + euler) J_0 + 4/pi sum (-1)^(k+1) J_2k / k, each J_2k by the same nodes.
_ORDERS = np.arange(1, _COUNT)[:, None]
_NEUMANN = 4 / math.pi * np.sum((-1.0) ** (_ORDERS + 1) / _ORDERS * np.cos(2 * _ORDERS * _ANGLES), 0) / _COUNT


def _near_j0(x: Any) -> Any:
    return jnp.mean(jnp.cos(x[..., None] * _SINES), -1)


def _near_j1(x: Any) -> Any:
    return jnp.mean(jnp.sin(x[..., None] * _SINES) * _SINES, -1)


def _near_y0(x: Any) -> Any:
    rest = jnp.sum(jnp.cos(x[..., None] * _SINES) * _NEUMANN, -1)
    return 2 / math.pi * (jnp.log(x / 2) + _EULER) * _near_j0(x) + rest


def _near_y1(x: Any) -> Any:
    """Minus the derivative of Y_0."""
    rest = jnp.sum(jnp.sin(x[..., None] * _SINES) * (_SINES * _NEUMANN), -1)
    return 2 / math.pi * ((jnp.log(x / 2) + _EULER) * _near_j1(x) - _near_j0(x) / x) + rest


def _hankel(order: int, terms: int = 24) -> list[float]:
    """The coefficients of (i / x)^k in Hankel's expansion."""
    out = [1.0]
    for k in range(1, terms):
        out.append(out[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return out


def _far(order: int, x: Any, second: bool) -> Any:
    """sqrt(2 / (pi x)) (P cos(phase) - Q sin(phase)), or the same a quarter turn later: J or Y."""
    square, p, q = 1 / (x * x), jnp.zeros_like(x), jnp.zeros_like(x)
    coefficients = _hankel(order)
    for k in range(len(coefficients) - 2, -1, -2):
        sign = (-1) ** (k // 2)
        p, q = p * square + sign * coefficients[k], q * square + sign * coefficients[k + 1]
    q = q / x
    # cos and sin of x - pi/4 (- pi/2) from those of x, whose argument is exact
    c, s = (jnp.cos(x) + jnp.sin(x)) * math.sqrt(0.5), (jnp.sin(x) - jnp.cos(x)) * math.sqrt(0.5)
    c, s = (s, -c) if order else (c, s)
    return jnp.sqrt(2 / (math.pi * x)) * (p * s + q * c if second else p * c - q * s)


def j0(x: Any) -> Any:
    """The first kind, order 0; NaN at infinity."""
    u = jnp.abs(x)
    out = jnp.where(u < _FAR, _near_j0(jnp.minimum(u, _FAR)), _far(0, jnp.maximum(u, _FAR), False))
    return jnp.where(jnp.isfinite(u), out, jnp.nan)


def j1(x: Any) -> Any:
    """The first kind, order 1; NaN at infinity."""
    u = jnp.abs(x)
    out = jnp.where(u < _FAR, _near_j1(jnp.minimum(u, _FAR)), _far(1, jnp.maximum(u, _FAR), False))
    return jnp.where(jnp.isfinite(u), jnp.where(x < 0, -out, out), jnp.nan)


def y0(x: Any) -> Any:
    """The second kind, order 0; NaN at infinity."""
    out = jnp.where(x < _FAR, _near_y0(jnp.minimum(x, _FAR)), _far(0, jnp.maximum(x, _FAR), True))
    return jnp.where(x <= 0, -jnp.inf, jnp.where(jnp.isfinite(x), out, jnp.nan))


def y1(x: Any) -> Any:
    """The second kind, order 1; NaN at infinity."""
    out = jnp.where(x < _FAR, _near_y1(jnp.minimum(x, _FAR)), _far(1, jnp.maximum(x, _FAR), True))
    return jnp.where(x <= 0, -jnp.inf, jnp.where(jnp.isfinite(x), out, jnp.nan))


# ---- K ----

_STEPS = np.arange(1, 33)
_TERMS = 14


def _small_k(order: int, x: Any) -> Any:
    """exp(x) K_n(x) for x < 1 by the power series."""
    factor = 1 / np.cumprod([1.0, *(k * (k + order) for k in range(1, _TERMS))])
    halves = np.arange(1, _TERMS)
    gains = 0.5 / halves + 0.5 / (halves + order)
    psi = np.cumsum([0.5 * order - _EULER, *gains])  # the mean of psi(k + 1) and psi(k + n + 1)
    q, log_half = x * x / 4, jnp.log(x / 2)
    total = jnp.zeros_like(x)
    for c, h in zip(factor[::-1], psi[::-1], strict=True):
        total = total * q + c * (h - log_half)
    return jnp.exp(x) * (1 / x - x / 2 * total if order else total)


def _large_k(order: int, x: Any) -> Any:
    """The integral of exp(-x (cosh t - 1)) cosh(n t) over t > 0 by the trapezoidal rule."""
    step = 0.35 / (jnp.sqrt(x) + 0.4)
    s = 2 * jnp.square(jnp.sinh(_STEPS * step[..., None] / 2))  # cosh t - 1
    return step * (0.5 + jnp.sum(jnp.exp(-x[..., None] * s) * ((1 + s) if order else 1), -1))


def _scaled_k(order: int, x: Any) -> Any:
    out = jnp.where(x < 1, _small_k(order, jnp.clip(x, 0, 1)), _large_k(order, jnp.maximum(x, 1)))
    return jnp.where(x <= 0, jnp.inf, jnp.where(x == jnp.inf, 0, out))


def scaled_k0(x: Any) -> Any:
    """`exp(x) K_0(x)`."""
    return _scaled_k(0, x)


def scaled_k1(x: Any) -> Any:
    """`exp(x) K_1(x)`."""
    return _scaled_k(1, x)
