"""NumPy references of the special functions: integrals and series by brute force."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)
_EULER = 0.57721566490153286061


def _integral(f: Callable, lo: float, hi: float, panels: int = 6) -> float:
    """The integral of `f` over [lo, hi] by Gauss-Legendre quadrature, in panels of equal width."""
    edges = np.linspace(lo, hi, panels + 1)
    half = np.diff(edges)[:, None] / 2
    return float(np.sum(half * _WEIGHTS * f(edges[:-1, None] + half * (1 + _NODES))))


def _each(f: Callable) -> Callable:
    """Applies a function of numbers to arrays, element by element."""
    many = np.vectorize(f, otypes=[float])

    def over(*arrays: Any) -> np.ndarray:
        shape = np.broadcast_shapes(*(np.shape(a) for a in arrays))
        return many(*arrays) if math.prod(shape) else np.zeros(shape)

    return over


# ---- the gamma family ---------------------------------------------------------------------------

lgamma = _each(math.lgamma)


@_each
def digamma(x: float) -> float:
    if x < 0.5:
        return float(digamma(1 - x)) - math.pi / math.tan(math.pi * x)
    # psi(x) = log x + the integral of exp(-x t) (1/t - 1/(1 - exp(-t))), shifted to x >= 8
    shift = sum(1 / (x + k) for k in range(8))
    x += 8
    rest = _integral(lambda t: np.exp(-x * t) * (1 / t - 1 / -np.expm1(-t)), 1e-12, 8)
    return math.log(x) + rest - shift - 0.5e-12


def zeta(s: Any, q: Any) -> np.ndarray:
    # the first terms, then the Euler-Maclaurin formula for the tail
    s, q = np.broadcast_arrays(s, q)
    end = q + 400
    head = np.sum((q[..., None] + np.arange(400)) ** -s[..., None], -1)
    tail = s * end ** (-s - 1) / 12 - s * (s + 1) * (s + 2) * end ** (-s - 3) / 720
    return head + end ** (1 - s) / (s - 1) + end**-s / 2 + tail


@_each
def polygamma(n: float, x: float) -> float:
    if n == 0:
        return float(digamma(x))
    return (-1) ** (int(n) + 1) * math.gamma(n + 1) * float(zeta(n + 1, x))


def _igamma(a: float, x: float) -> float:
    if x == 0:
        return 0.0
    terms, term = [1.0], 1.0
    for n in range(1, 400):
        term *= x / (a + n)
        terms.append(term)
    return math.exp(a * math.log(x) - x - math.lgamma(a + 1)) * math.fsum(terms)


igamma = _each(_igamma)
igammac = _each(lambda a, x: 1 - _igamma(a, x))


def _complex_lgamma(z: np.ndarray) -> np.ndarray:
    """By Stirling's series at a large argument, and the recurrence back."""
    shift, z = sum(np.log(z + k) for k in range(15)), z + 15
    rest = sum(
        c / z**n for c, n in ((1 / 12, 1), (-1 / 360, 3), (1 / 1260, 5), (-1 / 1680, 7), (1 / 1188, 9))
    )
    return (z - 0.5) * np.log(z) - z + math.log(2 * math.pi) / 2 + rest - shift


def igamma_derivative(order: int, a: Any, x: Any) -> np.ndarray:
    """By Cauchy's integral over a circle around `a`."""
    a, x = (v[..., None] for v in np.broadcast_arrays(a, x))
    radius, turn = 0.4, np.exp(2j * math.pi * np.arange(48) / 48)
    z = a + radius * turn
    term, total = np.ones_like(z), np.ones_like(z)
    for n in range(1, 80):
        term = term * x / (z + n)
        total = total + term
    values = np.exp(z * np.log(x) - x - _complex_lgamma(z + 1)) * total
    return math.factorial(order) / radius**order * np.mean(values / turn**order, -1).real


def gamma_sample_grad(a: Any, x: Any) -> np.ndarray:
    return -igamma_derivative(1, a, x) * np.exp(x + lgamma(a) - (a - 1) * np.log(x))


@_each
def betainc(a: float, b: float, x: float) -> float:
    if x > 0.5:
        return 1 - float(betainc(b, a, 1 - x))
    return math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)) * _powers(a, b, x)


def _powers(a: float, b: float, x: float) -> float:
    """The integral of t^(a-1) (1-t)^(b-1) over (0, x), x <= 1/2, by the series of the second factor."""
    total, coefficient = [], 1.0
    for n in range(200):
        total.append(coefficient * x ** (a + n) / (a + n))
        coefficient *= (n + 1 - b) / (n + 1)
    return math.fsum(total)


# ---- normal quantiles ---------------------------------------------------------------------------


def _quantile(p: float) -> float:
    """The normal quantile by bisection of its distribution function."""
    if p in (0.0, 1.0):
        return math.inf if p else -math.inf
    lo, hi = -40.0, 40.0
    for _ in range(200):
        mid = (lo + hi) / 2
        lo, hi = (mid, hi) if math.erfc(-mid / math.sqrt(2)) / 2 < p else (lo, mid)
    return lo


ndtri = _each(_quantile)
erfinv = _each(
    lambda x: _quantile((x + 1) / 2) / math.sqrt(2) if x < 0 else -_quantile((1 - x) / 2) / math.sqrt(2)
)
erfcinv = _each(lambda x: -_quantile(x / 2) / math.sqrt(2))

# ---- Bessel functions ---------------------------------------------------------------------------


def _over_angle(f: Callable) -> float:
    return _integral(f, 0, math.pi) / math.pi


bessel_i0 = _each(lambda x: _over_angle(lambda t: np.exp(x * np.cos(t))))
bessel_i1 = _each(lambda x: _over_angle(lambda t: np.exp(x * np.cos(t)) * np.cos(t)))
bessel_i0e = _each(lambda x: _over_angle(lambda t: np.exp(x * np.cos(t) - abs(x))))
bessel_i1e = _each(lambda x: _over_angle(lambda t: np.exp(x * np.cos(t) - abs(x)) * np.cos(t)))
bessel_j0 = _each(lambda x: _over_angle(lambda t: np.cos(x * np.sin(t))))
bessel_j1 = _each(lambda x: _over_angle(lambda t: np.cos(t - x * np.sin(t))))


def _reach(x: float) -> float:
    """The upper limit, beyond which exp(-x sinh t) is negligible."""
    return math.asinh(60 / x)


@_each
def bessel_y0(x: float) -> float:
    wave = _over_angle(lambda t: np.sin(x * np.sin(t)))
    return wave - 2 / math.pi * _integral(lambda t: np.exp(-x * np.sinh(t)), 0, _reach(x))


@_each
def bessel_y1(x: float) -> float:
    wave = _over_angle(lambda t: np.sin(x * np.sin(t) - t))
    return wave - 2 / math.pi * _integral(lambda t: np.sinh(t) * np.exp(-x * np.sinh(t)), 0, _reach(x))


bessel_k0e = _each(lambda x: _integral(lambda t: np.exp(-x * (np.cosh(t) - 1)), 0, _reach(x)))
bessel_k1e = _each(lambda x: _integral(lambda t: np.cosh(t) * np.exp(-x * (np.cosh(t) - 1)), 0, _reach(x)))
bessel_k0 = _each(lambda x: math.exp(-x) * float(bessel_k0e(x)))
bessel_k1 = _each(lambda x: math.exp(-x) * float(bessel_k1e(x)))

# ---- other integrals ----------------------------------------------------------------------------

dawsn = _each(lambda x: _integral(lambda t: np.exp(t * t - x * x), 0, x))
fresnel_sin = _each(lambda x: _integral(lambda t: np.sin(math.pi / 2 * t * t), 0, x))
fresnel_cos = _each(lambda x: _integral(lambda t: np.cos(math.pi / 2 * t * t), 0, x))


@_each
def expint(x: float) -> float:
    return _EULER + math.log(x) + _integral(lambda t: np.expm1(t) / t, 0, x)


@_each
def spence(x: float) -> float:
    def f(t: np.ndarray) -> np.ndarray:
        return np.where(np.abs(t - 1) < 1e-9, -1, np.log(t) / np.where(t == 1, 1, 1 - t))

    # t = exp(-u) below 1, where log(t) is steep
    if x < 1:
        return _integral(lambda u: np.exp(-u) * u / np.where(u == 0, 1, -np.expm1(-u)), 0, -math.log(x))
    return _integral(f, 1, x)
