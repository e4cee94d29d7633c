"""Special functions: the gamma family, inverses of erf, Bessel functions, integrals without a closed form.

The native functions compute in double for every float type. Where TensorFlow has no derivative (with respect to the
order of `polygamma` and `zeta`, and the parameters of `betainc`), there is none here.
"""

from __future__ import annotations

import math

from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops.arithmetic import reciprocal, sign, square
from gradtape._src.ops.comparison import equal, select
from gradtape._src.ops.exponential import cos, exp, log, sin, xlog1py, xlogy
from gradtape._src.ops.reduction import reduce_sum
from gradtape._src.ops.samples import at, call, floats, inside, pairs
from gradtape._src.ops.table import FLOAT, TABLE, composite, elementwise
from gradtape._src.tensors.conversion import as_tensor

__all__ = [
    "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "betainc", "digamma", "erfcinv", "erfinv",
    "gamma_sample_grad", "igamma", "igammac", "lbeta", "lgamma", "ndtri", "polygamma", "zeta",
]  # fmt: skip


def reference(name):
    """The reference of that name in `quadrature.py`, which is imported on first use."""

    def compute(*arrays):
        from gradtape._src.ops import quadrature

        return getattr(quadrature, name)(*arrays)

    return compute


# ---- the gamma family ---------------------------------------------------------------------------

lgamma = elementwise(
    "lgamma", FLOAT, deriv=lambda x, out: digamma(x), xla="special.lgamma",
    numpy=reference("lgamma"), samples=[*floats(0.2, 4), call(inside(-2.9, -2.1, 3))], names="math.lgamma",
    doc="The logarithm of |gamma(x)|, element-wise.",
)  # fmt: skip

digamma = elementwise(
    "digamma", FLOAT, deriv=lambda x, out: polygamma(1, x), xla="special.digamma",
    numpy=reference("digamma"), samples=[*floats(0.2, 4), call(inside(-2.9, -2.1, 3))], names="math.digamma",
    doc="The derivative of `lgamma`, element-wise; NaN at its poles.",
)  # fmt: skip

_ORDERS = [
    call(at(1.0), (inside(0.5, 3))), call(at([0.0, 1.0, 2.0, 3.0]), inside(0.5, 3, 4)),
    call(at([[1.0], [2.0]]), inside(0.5, 3, 1, 3)), call(inside(1, 2, 0, 3), inside(1, 2, 1, 3)),
]  # fmt: skip

polygamma = elementwise(
    "polygamma", FLOAT, args="a x", deriv=(None, lambda a, x, out: polygamma(a + 1, x)), xla="special.polygamma",
    numpy=reference("polygamma"), samples=_ORDERS, names="math.polygamma",
    doc="The derivative of order `a` of `digamma`, element-wise; NaN for a fractional order. No gradient with "
    "respect to `a`.",
)  # fmt: skip

zeta = elementwise(
    "zeta", FLOAT, args="x q", deriv=(None, lambda x, q, out: -x * zeta(x + 1, q)), xla="special.zeta",
    numpy=reference("zeta"), samples=pairs(1.6, 4, 0.5, 3), names="math.zeta",
    doc="The Hurwitz zeta function: the sum of `(q + k)^-x` over k = 0, 1, ... No gradient with respect to `x`.",
)  # fmt: skip


def _density(a, x):
    """The density of the gamma distribution: the derivative of igamma with respect to x."""
    return exp(xlogy(a - 1, x) - x - lgamma(a))


def _density_derivative(order, a, x):
    """A derivative of the density with respect to `a`: the density times a Bell polynomial of the exponent's derivatives."""
    bells: list = [1.0]
    slopes = [log(x) - digamma(a)] + [-polygamma(k, a) for k in range(1, order)]
    for n in range(order):
        bells.append(sum(math.comb(n, j) * bells[j] * slopes[n - j] for j in range(n + 1)))
    return _density(a, x) * bells[order]


_MOST_ORDERS = 4


def _igamma_wrt_a(order):
    """The row of one derivative of igamma with respect to `a`."""

    def by_a(g, a, x, out):
        return g * (_wrt_a[order](a, x) if order < _MOST_ORDERS else math.nan)

    return elementwise(
        f"igamma_grad_a{order}", FLOAT, args="a x", xla=f"special.igamma_grad_a{order}",
        vjp=(by_a, lambda g, a, x, out: g * _density_derivative(order, a, x)),
        numpy=lambda a, x: reference("igamma_derivative")(order, a, x),
        samples=pairs(0.6, 3, 0.3, 4), doc=f"The derivative of order {order} of igamma with respect to `a`.",
    )  # fmt: skip


_wrt_a = [_igamma_wrt_a(order) for order in range(1, _MOST_ORDERS + 1)]
igamma_grad_a = _wrt_a[0]
for _last in _wrt_a[-2:]:  # their second derivatives, beyond the last order, are NaN
    TABLE[_last.op_name].gradient_samples = []
    TABLE[_last.op_name].tolerance = 100.0  # the reference is less accurate

igamma = elementwise(
    "igamma", FLOAT, args="a x", xla="special.igamma",
    vjp=(lambda g, a, x, out: g * _wrt_a[0](a, x), lambda g, a, x, out: g * _density(a, x)),
    numpy=reference("igamma"), samples=pairs(0.4, 3, 0.3, 5), names="math.igamma",
    doc="The lower regularised incomplete gamma function, differentiable with respect to both operands.",
)  # fmt: skip

igammac = elementwise(
    "igammac", FLOAT, args="a x", xla="special.igammac",
    vjp=(lambda g, a, x, out: -g * _wrt_a[0](a, x), lambda g, a, x, out: -g * _density(a, x)),
    numpy=reference("igammac"), samples=pairs(0.4, 3, 0.3, 5), names="math.igammac",
    doc="The upper regularised incomplete gamma function `1 - igamma(a, x)`, differentiable with respect to both operands.",
)  # fmt: skip


def _sample_grad_wrt_a(g, a, x, out):
    return -g * (_wrt_a[1](a, x) / _density(a, x) + out * (log(x) - digamma(a)))


gamma_sample_grad = elementwise(
    "gamma_sample_grad", FLOAT, args="alpha sample", xla="special.gamma_sample_grad",
    vjp=(_sample_grad_wrt_a, lambda g, a, x, out: g * (digamma(a) - log(x) - out * ((a - 1) / x - 1))),
    numpy=reference("gamma_sample_grad"), samples=pairs(0.6, 3, 0.3, 4),
    doc="The derivative of a sample of the gamma distribution with respect to `alpha`, at a constant quantile.",
)  # fmt: skip


def _beta_density(a, b, x):
    return exp(xlogy(a - 1, x) + xlog1py(b - 1, -x) - (lgamma(a) + lgamma(b) - lgamma(a + b)))


betainc = elementwise(
    "betainc", FLOAT, args="a b x", xla="special.betainc",
    vjp=(None, None, lambda g, a, b, x, out: g * _beta_density(a, b, x)),
    numpy=reference("betainc"),
    samples=[
        call(inside(0.5, 3), inside(0.5, 3), inside(0.1, 0.9)),
        call(inside(0.5, 3, 3), inside(0.5, 3, 3), inside(0.1, 0.9, 3)),
        call(inside(0.5, 3, 2, 1), inside(0.5, 3, 1, 3), inside(0.1, 0.9, 2, 3)),
        call(inside(1, 2, 0, 3), at(2.0), inside(0.1, 0.9, 3)),
    ],
    names="math.betainc",
    doc="The regularised incomplete beta function. No gradient with respect to `a` and `b`, as in TensorFlow.",
)  # fmt: skip


@composite("math.lbeta")
def lbeta(x, name=None):
    """`log |Beta(x)|` over the last axis: the sum of the lgammas less the lgamma of the sum."""
    x = as_tensor(x)
    if x.ndim == 0:
        raise InvalidArgumentError("lbeta: `x` needs at least one axis; got a scalar.")
    return reduce_sum(lgamma(x), -1) - lgamma(reduce_sum(x, -1))


# ---- inverses of the error function -------------------------------------------------------------

erfinv = elementwise(
    "erfinv", FLOAT, deriv=lambda x, out: (math.sqrt(math.pi) / 2) * exp(square(out)), xla="special.erfinv",
    numpy=reference("erfinv"), samples=floats(-0.9, 0.9), names="math.erfinv",
    doc="The inverse of `erf`, element-wise.",
)  # fmt: skip

erfcinv = elementwise(
    "erfcinv", FLOAT, deriv=lambda x, out: (-math.sqrt(math.pi) / 2) * exp(square(out)), xla="special.erfcinv",
    numpy=reference("erfcinv"), samples=floats(0.1, 1.9), names="math.erfcinv",
    doc="The inverse of `erfc`, element-wise.",
)  # fmt: skip

ndtri = elementwise(
    "ndtri", FLOAT, deriv=lambda x, out: math.sqrt(2 * math.pi) * exp(square(out) / 2), xla="special.ndtri",
    numpy=reference("ndtri"), samples=floats(0.1, 0.9), names="math.ndtri",
    doc="The quantile of the standard normal distribution, element-wise.",
)  # fmt: skip

# ---- Bessel functions ---------------------------------------------------------------------------


def _over_x(out, x, at_zero):
    """`out / x`, and its limit at 0."""
    zero = equal(x, 0)
    return select(zero, at_zero, out / select(zero, 1, x))


def _bessel(name, deriv, doc, lo=-3.0, edges=(), math_too=False):
    return elementwise(
        name, FLOAT, deriv=deriv, numpy=reference(name), samples=floats(lo, 3), edges=edges, doc=doc, xla=f"special.{name}",
        names=f"math.special.{name} math.{name}" if math_too else f"math.special.{name}",
    )  # fmt: skip


_AT_0, _HALF_AT_0 = [((at(0.0),), (0.0,))], [((at(0.0),), (0.5,))]

bessel_i0 = _bessel(
    "bessel_i0", lambda x, out: bessel_i1(x), "The modified Bessel function of the first kind of order 0.",
    edges=_AT_0, math_too=True,
)  # fmt: skip
bessel_i1 = _bessel(
    "bessel_i1", lambda x, out: bessel_i0(x) - _over_x(out, x, 0.5),
    "The modified Bessel function of the first kind of order 1.", edges=_HALF_AT_0, math_too=True,
)  # fmt: skip
bessel_i0e = _bessel(
    "bessel_i0e", lambda x, out: bessel_i1e(x) - sign(x) * out, "`exp(-|x|) bessel_i0(x)`, element-wise.",
    edges=_AT_0, math_too=True,
)  # fmt: skip
bessel_i1e = _bessel(
    "bessel_i1e", lambda x, out: bessel_i0e(x) - sign(x) * out - _over_x(out, x, 0.5),
    "`exp(-|x|) bessel_i1(x)`, element-wise.", edges=_HALF_AT_0, math_too=True,
)  # fmt: skip
bessel_j0 = _bessel(
    "bessel_j0", lambda x, out: -bessel_j1(x), "The Bessel function of the first kind of order 0.", edges=_AT_0,
)  # fmt: skip
bessel_j1 = _bessel(
    "bessel_j1", lambda x, out: bessel_j0(x) - _over_x(out, x, 0.5),
    "The Bessel function of the first kind of order 1.", edges=_HALF_AT_0,
)  # fmt: skip
bessel_k0 = _bessel(
    "bessel_k0", lambda x, out: -bessel_k1(x), "The modified Bessel function of the second kind of order 0.", 0.3,
)  # fmt: skip
bessel_k1 = _bessel(
    "bessel_k1", lambda x, out: -bessel_k0(x) - out / x,
    "The modified Bessel function of the second kind of order 1.", 0.3,
)  # fmt: skip
bessel_k0e = _bessel(
    "bessel_k0e", lambda x, out: out - bessel_k1e(x), "`exp(x) bessel_k0(x)`, element-wise.", 0.3,
)  # fmt: skip
bessel_k1e = _bessel(
    "bessel_k1e", lambda x, out: out * (1 - reciprocal(x)) - bessel_k0e(x), "`exp(x) bessel_k1(x)`, element-wise.", 0.3,
)  # fmt: skip
bessel_y0 = _bessel(
    "bessel_y0", lambda x, out: -bessel_y1(x), "The Bessel function of the second kind of order 0.", 0.3,
)  # fmt: skip
bessel_y1 = _bessel(
    "bessel_y1", lambda x, out: bessel_y0(x) - out / x, "The Bessel function of the second kind of order 1.", 0.3,
)  # fmt: skip

# ---- integrals without a closed form ------------------------------------------------------------

dawsn = elementwise(
    "dawsn", FLOAT, xla="special.dawsn",
    deriv=lambda x, out: 1 - 2 * x * out, numpy=reference("dawsn"), samples=floats(-3, 3),
    names="math.special.dawsn", doc="Dawson's integral `exp(-x²) ∫ exp(t²) dt` from 0 to x.",
)  # fmt: skip

expint = elementwise(
    "expint", FLOAT, xla="special.expint",
    deriv=lambda x, out: exp(x) / x, numpy=reference("expint"), samples=floats(0.2, 4),
    names="math.special.expint", doc="The exponential integral `∫ exp(t)/t dt` from -inf to x > 0; NaN for x < 0.",
)  # fmt: skip

fresnel_cos = elementwise(
    "fresnel_cos", FLOAT, xla="special.fresnel_cos",
    deriv=lambda x, out: cos((math.pi / 2) * square(x)), numpy=reference("fresnel_cos"),
    samples=floats(-1.5, 1.5), names="math.special.fresnel_cos", doc="Fresnel's integral `∫ cos(πt²/2) dt` from 0 to x.",
)  # fmt: skip

fresnel_sin = elementwise(
    "fresnel_sin", FLOAT, xla="special.fresnel_sin",
    deriv=lambda x, out: sin((math.pi / 2) * square(x)), numpy=reference("fresnel_sin"),
    samples=floats(-1.5, 1.5), names="math.special.fresnel_sin", doc="Fresnel's integral `∫ sin(πt²/2) dt` from 0 to x.",
)  # fmt: skip


def _spence_derivative(x, out):
    one = equal(x, 1)
    return select(one, -1, log(x) / (1 - select(one, 2, x)))


spence = elementwise(
    "spence", FLOAT, xla="special.spence",
    deriv=_spence_derivative, numpy=reference("spence"), samples=floats(0.2, 3),
    names="math.special.spence", edges=[((at(1.0),), (-1.0,))],
    doc="Spence's integral `∫ log(t)/(1 - t) dt` from 1 to x, the dilogarithm of `1 - x`.",
)  # fmt: skip
