"""Special functions on XLA, in double for every float type as natively: the gamma family, inverses of erf, and others.

If lax has a function with full precision, it is used. Derivatives of `igamma` with respect to its parameter are
Taylor polynomials (jets); Bessel functions are in `bessel.py`, integrals in `integrals.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.scipy import special as jax_special

from gradtape._src.engines.xla.ops import bessel, integrals
from gradtape._src.engines.xla.ops.integrals import polynomial

_MOST_TERMS = 100000  # of a series; for x near a it takes a few times sqrt(a)
Jet = list[Any]  # a number and its derivatives with respect to a parameter, divided by factorials


def _in_double(function: Callable) -> Callable:
    """Applies a function of float64 arrays of one shape to any floats; empty arrays need no program."""

    @functools.wraps(function)
    def compute(*operands: Any) -> Any:
        given = jnp.broadcast_arrays(*(x.astype(jnp.float64) for x in operands))
        return function(*given) if given[0].size else given[0]

    return compute


# ---- the gamma family ----

lgamma, digamma = _in_double(lax.lgamma), _in_double(lax.digamma)


@_in_double
def zeta(s: Any, q: Any) -> Any:
    """Hurwitz' zeta function, the sum of `(q + k)^-s`."""
    return _zeta(s, q)


def _zeta(s: Any, q: Any) -> Any:
    """lax's for positive `q`; for negative `q`, the terms (k - a)^-s, k = 1, ..., m, are those of positive numbers."""
    m = jnp.maximum(-jnp.floor(q), 0)
    a, even = q + m, jnp.fmod(s, 2) == 0
    positive, first, last = lax.zeta(jnp.stack([s] * 3), jnp.stack([a, 1 - a, m + 1 - a]))
    negative = jnp.where(q < 0, first - last, 0)
    out = positive + jnp.where(even, negative, -negative)
    out = jnp.where(s == jnp.inf, q**-s, out)
    out = jnp.where(q == jnp.inf, 0, jnp.where((q < 0) & (s != jnp.floor(s)), jnp.nan, out))
    out = jnp.where((q <= 0) & (q == jnp.floor(q)), jnp.where(even, jnp.inf, jnp.nan), out)
    out = jnp.where((s > 1) & (q == q), out, jnp.nan)
    return jnp.where(s == 1, jnp.inf, out)


@_in_double
def polygamma(n: Any, x: Any) -> Any:
    """The derivative of order `n` of digamma; NaN for a fractional order."""
    size = jnp.exp(lax.lgamma(n + 1)) * _zeta(n + 1, x)
    out = jnp.where(jnp.fmod(n, 2) == 1, size, -size)
    return jnp.where(n == 0, lax.digamma(x), jnp.where((n > 0) & (n == jnp.floor(n)), out, jnp.nan))


@_in_double
def betainc(a: Any, b: Any, x: Any) -> Any:
    """The regularised incomplete beta function."""
    valid = (a > 0) & (b > 0) & (x >= 0) & (x <= 1) & jnp.isfinite(a + b)
    return jnp.where(valid, lax.betainc(a, b, x), jnp.nan)


@_in_double
def igamma(a: Any, x: Any) -> Any:
    """The lower regularised incomplete gamma function."""
    (lower, _), valid = _both_igammas(a, x), (a >= 0) & (x >= 0) & ((a > 0) | (x == 0))
    edge = jnp.where(x == 0, 0.0, jnp.where(a == jnp.inf, jnp.where(x == jnp.inf, jnp.nan, 0.0), 1.0))
    return jnp.where(valid, jnp.where(_inner(a, x)[0], lower, edge), jnp.nan)


@_in_double
def igammac(a: Any, x: Any) -> Any:
    """The upper regularised incomplete gamma function, `1 - igamma(a, x)`."""
    (_, upper), valid = _both_igammas(a, x), (a > 0) & (x >= 0)
    edge = jnp.where(x == 0, 1.0, jnp.where(a == jnp.inf, jnp.where(x == jnp.inf, jnp.nan, 1.0), 0.0))
    return jnp.where(valid, jnp.where(_inner(a, x)[0], upper, edge), jnp.nan)


def _both_igammas(a: Any, x: Any) -> tuple[Any, Any]:
    """igamma and igammac of positive numbers: one by its series or fraction, the other as the difference from 1."""
    _, a, x = _inner(a, x)
    series, lower, upper = _series_and_fraction(a, x, 0)
    part = _gamma_power(a, x) * jnp.where(series, lower[0], a * upper[0])
    return jnp.where(series, part, 1 - part), jnp.where(series, 1 - part, part)


@_in_double
def igamma_grad_a1(a: Any, x: Any) -> Any:
    """The first derivative of igamma with respect to `a`."""
    return _igamma_derivative(1, a, x)


@_in_double
def igamma_grad_a2(a: Any, x: Any) -> Any:
    """The second derivative."""
    return _igamma_derivative(2, a, x)


@_in_double
def igamma_grad_a3(a: Any, x: Any) -> Any:
    """The third derivative."""
    return _igamma_derivative(3, a, x)


@_in_double
def igamma_grad_a4(a: Any, x: Any) -> Any:
    """The fourth derivative."""
    return _igamma_derivative(4, a, x)


def _igamma_derivative(order: int, a: Any, x: Any) -> Any:
    usual, some_a, some_x = _inner(a, x)
    out = _gamma_power(some_a, some_x) * math.factorial(order) * _igamma_jet(some_a, some_x, order)[order]
    return jnp.where(usual, out, jnp.where((a > 0) & (x >= 0), 0.0, jnp.nan))


@_in_double
def gamma_sample_grad(a: Any, x: Any) -> Any:
    """How a sample of the gamma distribution moves with `a` at a constant quantile: -(d igamma / da) / density."""
    usual, some_a, some_x = _inner(a, x)
    out = -_igamma_jet(some_a, some_x, 1)[1] * some_x / some_a
    return jnp.where(usual, out, jnp.where((a > 0) & (x == 0), 0.0, jnp.nan))


def _inner(a: Any, x: Any) -> tuple[Any, Any, Any]:
    """Where both are positive, and the operands with harmless values elsewhere."""
    usual = (a > 0) & (x > 0) & jnp.isfinite(a) & jnp.isfinite(x)
    return usual, jnp.where(usual, a, 1.0), jnp.where(usual, x, 1.0)


_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def _gamma_power(a: Any, x: Any) -> Any:
    """`x^a exp(-x) / gamma(a + 1)`; for large a by Stirling's formula, which avoids subtracting large numbers."""
    away, large = (x - a) / a, jnp.maximum(a, 10.0)
    rest = polynomial(_STIRLING, 1 / (large * large)) / large + 0.5 * jnp.log(2 * math.pi * large)
    exponent = jnp.where(
        a < 10, a * jnp.log(x) - x - lax.lgamma(a + 1), large * (jnp.log1p(away) - away) - rest
    )
    return jnp.exp(exponent)


# ---- jets: Taylor polynomials in the parameter `a` of igamma ----


def _times(x: Jet, y: Jet) -> Jet:
    return [sum(x[j] * y[k - j] for j in range(k + 1)) for k in range(len(x))]


def _over(x: Jet, y: Jet) -> Jet:
    out: Jet = []
    for k in range(len(x)):
        out.append((x[k] - sum(y[j] * out[k - j] for j in range(1, k + 1))) / y[0])
    return out


def _line(value: Any, slope: Any, order: int) -> Jet:
    """The jet of a linear function."""
    return [value, *([slope] + [0.0] * order)[:order]]


def _from_below(step: Callable[[Any, Jet], Jet], steps: Any, start: Jet) -> Jet:
    """Evaluates a series or continued fraction from its last term, whose index is given, to its first."""

    def up(carry: tuple[Any, Jet]) -> tuple[Any, Jet]:
        n, inner = carry
        return n - 1, step(n, inner)

    last = jnp.floor(jnp.minimum(steps, _MOST_TERMS))
    return lax.while_loop(lambda carry: carry[0] > 0, up, (last, start))[1]


def _lower_series(a: Any, x: Any, order: int) -> Jet:
    """igamma over `_gamma_power`: 1 + x / (a + 1) (1 + x / (a + 2) (1 + ...))."""

    def step(n: Any, inner: Jet) -> Jet:
        rest = _over([x * c for c in inner], _line(a + n, 1.0, order))
        return [1 + rest[0], *rest[1:]]

    terms = 20 + 10 * jnp.sqrt(jnp.max(a))  # the last term is below 1e-17
    return _from_below(step, terms, [jnp.ones_like(x), *[jnp.zeros_like(x)] * order])


def _upper_fraction(a: Any, x: Any, order: int) -> Jet:
    """igammac over `_gamma_power * a`: 1 / (x + 1 - a + 1 (a - 1) / (x + 3 - a + 2 (a - 2) / (x + 5 - a + ...)))."""

    def step(n: Any, inner: Jet) -> Jet:
        rest = _over(_line(n * (a - n), n, order), inner)
        return [c + r for c, r in zip(_line(x - 1 - a + 2 * n, -1.0, order), rest, strict=True)]

    terms = 140 + 16 * jnp.sqrt(jnp.max(a))
    last = _line(x + 1 - a + 2 * jnp.floor(jnp.minimum(terms, _MOST_TERMS)), -1.0, order)
    return _over(_line(1.0, 0.0, order), _from_below(step, terms, [c + jnp.zeros_like(x) for c in last]))


def _power_jet(a: Any, x: Any, order: int) -> Jet:
    """The jet of `_gamma_power`, divided by its value: exp of the jet of (a + t) log x - lgamma(a + t + 1)."""
    slope = jnp.log1p((x - a) / a) - (lax.digamma(a + 1) - jnp.log(a))
    slopes = [jnp.where(a < 10, jnp.log(x) - lax.digamma(a + 1), slope)]
    slopes += [-((-1) ** k) * lax.zeta(jnp.full_like(a, k), a + 1) / k for k in range(2, order + 1)]
    out: Jet = [jnp.ones_like(a)]
    for k in range(1, order + 1):
        out.append(sum(j * slopes[j - 1] * out[k - j] for j in range(1, k + 1)) / k)
    return out


def _series_and_fraction(a: Any, x: Any, order: int) -> tuple[Any, Jet, Jet]:
    """Where the series converges faster, the series there, and the fraction elsewhere."""
    series = (x <= 1) | (x <= a)
    lower = _lower_series(jnp.where(series, a, 1.0), jnp.where(series, x, 1.0), order)
    return series, lower, _upper_fraction(jnp.where(series, 1.0, a), jnp.where(series, 2.0, x), order)


def _igamma_jet(a: Any, x: Any, order: int) -> Jet:
    """The derivatives of igamma, divided by `_gamma_power` and factorials; correct from the first order on."""
    series, lower, upper = _series_and_fraction(a, x, order)
    rest = _times(_line(a, 1.0, order), upper)
    either = [jnp.where(series, p, -q) for p, q in zip(lower, rest, strict=True)]
    return _times(_power_jet(a, x, order), either)


# ---- inverses of the error function ----

erfinv = _in_double(lax.erf_inv)
ndtri = _in_double(jax_special.ndtri)


@_in_double
def erfcinv(x: Any) -> Any:
    """The inverse of `erfc`."""
    return -math.sqrt(0.5) * jax_special.ndtri(x / 2)


# ---- Bessel functions ----

bessel_i0e, bessel_i1e = _in_double(lax.bessel_i0e), _in_double(lax.bessel_i1e)
bessel_j0, bessel_j1 = _in_double(bessel.j0), _in_double(bessel.j1)
bessel_y0, bessel_y1 = _in_double(bessel.y0), _in_double(bessel.y1)
bessel_k0e, bessel_k1e = _in_double(bessel.scaled_k0), _in_double(bessel.scaled_k1)


@_in_double
def bessel_i0(x: Any) -> Any:
    """The modified function of the first kind of order 0."""
    return jnp.exp(jnp.abs(x)) * lax.bessel_i0e(x)


@_in_double
def bessel_i1(x: Any) -> Any:
    """The modified function of the first kind of order 1."""
    return jnp.exp(jnp.abs(x)) * lax.bessel_i1e(x)


@_in_double
def bessel_k0(x: Any) -> Any:
    """The modified function of the second kind of order 0."""
    return jnp.where(x <= 0, jnp.inf, jnp.exp(-x) * bessel.scaled_k0(x))


@_in_double
def bessel_k1(x: Any) -> Any:
    """The modified function of the second kind of order 1."""
    return jnp.where(x <= 0, jnp.inf, jnp.exp(-x) * bessel.scaled_k1(x))


# ---- integrals without a closed form ----

dawsn, expint, spence = (
    _in_double(integrals.dawsn),
    _in_double(integrals.expint),
    _in_double(integrals.spence),
)
fresnel_cos, fresnel_sin = _in_double(integrals.fresnel_cos), _in_double(integrals.fresnel_sin)
