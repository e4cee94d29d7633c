"""Integrals without a closed form of float64 arrays on XLA: Dawson, the exponential integral, Fresnel, the dilogarithm."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

_EULER = 0.57721566490153286061


def polynomial(coefficients: Iterable[float], x: Any) -> Any:
    """Horner's scheme; the coefficient of the lowest power comes first."""
    out = jnp.zeros_like(x)
    for c in reversed(list(coefficients)):
        out = out * x + float(c)
    return out


# ---- Dawson ----

_WIDTH, _REACH = 0.25, 27  # the distance of Rybicki's curves, and the distance at which they have no weight
_DAWSON_NEAR = np.cumprod([1.0, *(-2 / (2 * k + 1) for k in range(1, 18))])
_DAWSON_FAR = np.cumprod([0.5, *((2 * k - 1) / 2 for k in range(1, 24))])


def dawsn(x: Any) -> Any:
    """The power series, a sum of Gaussians at odd multiples of a width (Rybicki 1989), an asymptotic series."""
    u = jnp.abs(x)
    near = u * polynomial(_DAWSON_NEAR, jnp.square(jnp.minimum(u, 0.5)))
    some = jnp.clip(u, 0.5, 7)[..., None]
    odd = 2 * jnp.floor(0.5 * some / _WIDTH + 0.5) + np.arange(-_REACH, _REACH + 1, 2)
    curves = jnp.sum(jnp.exp(-jnp.square(some - odd * _WIDTH)) / odd, -1) / math.sqrt(math.pi)
    far = polynomial(_DAWSON_FAR, 1 / jnp.square(jnp.maximum(u, 7))) / u
    return jnp.copysign(jnp.where(u < 0.5, near, jnp.where(u > 7, far, curves)), x)


# ---- the exponential integral ----

_FACTORIALS = np.cumprod([1.0, *range(1, 40)])


def expint(x: Any) -> Any:
    """Ei(x) of positive x: the power series below 40, an asymptotic series above."""
    small = jnp.clip(x, 0, 40)

    def add(k: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        term, total = carry
        term = term * small / k
        return term, total + term / k

    series = lax.fori_loop(1, 160, add, (jnp.ones_like(x), jnp.zeros_like(x)))[1]
    near = _EULER + jnp.log(small) + series
    far = jnp.exp(x) / x * polynomial(_FACTORIALS, 1 / jnp.maximum(x, 40))
    out = jnp.where(x < 40, near, far)
    return jnp.where((x >= 0) & (x != jnp.inf), out, jnp.nan)


# ---- Fresnel ----

_NEAR, _DEPTH = 1.6, 120


def _fresnel_series(u: Any) -> Any:
    """C + iS from the powers of i t, t = pi/2 u²."""
    t = math.pi / 2 * u * u
    coefficients = 1 / (np.cumprod([1.0, *range(1, 36)]) * (2 * np.arange(36) + 1))
    signs = np.array([1, 1, -1, -1])[np.arange(36) % 4] * coefficients
    square = t * t
    return u * lax.complex(polynomial(signs[::2], square), t * polynomial(signs[1::2], square))


def _fresnel_fraction(u: Any) -> Any:
    """C + iS from the continued fraction of the complementary error function, from below."""
    b = lax.complex(jnp.ones_like(u), -math.pi * u * u)

    def up(i: Any, f: Any) -> Any:
        k = _DEPTH - i
        return b + 4 * (k - 1) - (2 * k - 1) * (2 * k) / f

    h = lax.complex(u, -u) / lax.fori_loop(0, _DEPTH, up, b + 4.0 * _DEPTH)
    # The phase pi/2 u², reduced while it is exact: u = n + f.
    n = jnp.round(u)
    f = u - n
    phase = math.pi / 2 * (jnp.fmod(n * n, 4) + jnp.fmod(2 * n * f, 4) + f * f)
    return (0.5 + 0.5j) * (1 - lax.complex(jnp.cos(phase), jnp.sin(phase)) * h)


def _fresnel(x: Any) -> Any:
    u = jnp.abs(x)
    out = jnp.where(
        u < _NEAR, _fresnel_series(jnp.minimum(u, _NEAR)), _fresnel_fraction(jnp.clip(u, _NEAR, 1e7))
    )
    return jnp.where(u > 1e7, 0.5 + 0.5j, out)


def fresnel_cos(x: Any) -> Any:
    """The integral of cos(pi t² / 2) from 0 to x."""
    return jnp.where(jnp.isnan(x), x, jnp.copysign(jnp.real(_fresnel(x)), x))


def fresnel_sin(x: Any) -> Any:
    """The integral of sin(pi t² / 2) from 0 to x."""
    return jnp.where(jnp.isnan(x), x, jnp.copysign(jnp.imag(_fresnel(x)), x))


# ---- the dilogarithm ----

# B_2k / (2k + 1)! for k = 1, 2, ...
_BERNOULLI = (
    1 / 36, -1 / 3600, 1 / 211680, -1 / 10886400, 1 / 526901760, -691 / 16999766784000, 1 / 1120863744000,
    -3617 / 181400588328960000, 43867 / 97072790126247936000, -174611 / 16860010916664115200000,
)  # fmt: skip


def spence(x: Any) -> Any:
    """The integral of log(t) / (1 - t) from 1 to x: a series in log(x) in [1/2, 2], elsewhere by two reflections."""
    high = x > 2
    y = jnp.where(high, 1 / x, x)
    low = y < 0.5
    u = -jnp.log(jnp.where(low, 1 - y, y))
    q = u * u
    out = u - q / 4 + u * q * polynomial(_BERNOULLI, q)
    out = jnp.where(low, math.pi**2 / 6 - jnp.log(y) * jnp.log1p(-y) - out, out)
    out = jnp.where(high, -0.5 * jnp.square(jnp.log(x)) - out, out)
    out = jnp.where(x == 0, math.pi**2 / 6, out)
    return jnp.where((x >= 0) & (x != jnp.inf), out, jnp.nan)
