"""Element-wise functions: exponentials, logarithms, trigonometry, rounding, erf."""

from __future__ import annotations

import math

import numpy as np

from gradtape._src.ops.arithmetic import conjugate, divide_no_nan, reciprocal, sqrt, square
from gradtape._src.ops.comparison import not_equal
from gradtape._src.ops.samples import at, call, floats, pairs
from gradtape._src.ops.table import COMPLEX, FLOAT, REAL, elementwise
from gradtape._src.tensors import above

_FC = FLOAT | COMPLEX


def _one_minus_square(x):
    """`1 - x²`, accurate near 1 and -1."""
    return (1 - x) * (1 + x)


def _nonzero(x):
    """1 where `x` is not 0, and 0 where it is."""
    return above.ops.cast(not_equal(x, 0), x.dtype)


exp = elementwise(
    "exp", _FC, deriv=lambda x, out: out, xla="jnp.exp",
    numpy=np.exp, samples=floats(), names="exp math.exp", doc="The exponential of each element.",
)  # fmt: skip

expm1 = elementwise(
    "expm1", _FC, deriv=lambda x, out: exp(x), xla="jnp.expm1",  # out + 1 loses digits where exp(x) is small
    numpy=np.expm1, samples=floats(), names="math.expm1", doc="`exp(x) - 1`, accurate near 0.",
)  # fmt: skip

log = elementwise(
    "log", _FC, vjp=lambda g, x, out: g / conjugate(x), xla="jnp.log",
    numpy=np.log, samples=floats(0.2, 3), names="math.log", edges=[((at(0.0),), (np.inf,))],
    doc="The natural logarithm of each element.",
)  # fmt: skip

log1p = elementwise(
    "log1p", _FC, vjp=lambda g, x, out: g / conjugate(1 + x), xla="jnp.log1p",
    numpy=np.log1p, samples=floats(-0.7, 3), names="math.log1p", doc="`log(1 + x)`, accurate near 0.",
)  # fmt: skip

sin = elementwise(
    "sin", _FC, deriv=lambda x, out: cos(x), xla="jnp.sin",
    numpy=np.sin, samples=floats(-4, 4), names="sin math.sin", doc="The sine of each element.",
)  # fmt: skip

cos = elementwise(
    "cos", _FC, deriv=lambda x, out: -sin(x), xla="jnp.cos",
    numpy=np.cos, samples=floats(-4, 4), names="cos math.cos", doc="The cosine of each element.",
)  # fmt: skip

tan = elementwise(
    "tan", _FC, deriv=lambda x, out: 1 + square(out), xla="jnp.tan",
    numpy=np.tan, samples=floats(-1, 1), names="tan math.tan", doc="The tangent of each element.",
)  # fmt: skip

asin = elementwise(
    "asin", _FC, deriv=lambda x, out: reciprocal(sqrt(_one_minus_square(x))), xla="jnp.arcsin",
    numpy=np.arcsin, samples=floats(-0.9, 0.9), names="asin math.asin", doc="The inverse sine of each element.",
)  # fmt: skip

acos = elementwise(
    "acos", _FC, deriv=lambda x, out: -reciprocal(sqrt(_one_minus_square(x))), xla="jnp.arccos",
    numpy=np.arccos, samples=floats(-0.9, 0.9), names="acos math.acos", doc="The inverse cosine of each element.",
)  # fmt: skip

atan = elementwise(
    "atan", _FC, deriv=lambda x, out: reciprocal(1 + square(x)), xla="jnp.arctan",
    numpy=np.arctan, samples=floats(), names="atan math.atan", doc="The inverse tangent of each element.",
)  # fmt: skip

atan2 = elementwise(
    "atan2", FLOAT, args="y x", xla="jnp.arctan2",
    vjp=(
        lambda g, y, x, out: x * (g / (square(x) + square(y))),
        lambda g, y, x, out: -y * (g / (square(x) + square(y))),
    ),
    numpy=np.arctan2, samples=pairs(0.3, 2, -2, -0.3), names="atan2 math.atan2",
    doc="The angle of the point (x, y) in [-π, π].",
)  # fmt: skip

hypot = elementwise(
    "hypot", FLOAT, args="x y", xla="jnp.hypot",
    vjp=(lambda g, x, y, out: g * divide_no_nan(x, out), lambda g, x, y, out: g * divide_no_nan(y, out)),
    numpy=np.hypot, samples=pairs(0.3, 2, -2, -0.3),
    doc="The length of the vector (x, y), without overflow or underflow of the squares. The gradient at 0 is 0.",
)  # fmt: skip

sinh = elementwise(
    "sinh", _FC, deriv=lambda x, out: cosh(x), xla="jnp.sinh",
    numpy=np.sinh, samples=floats(), names="sinh math.sinh", doc="The hyperbolic sine of each element.",
)  # fmt: skip

cosh = elementwise(
    "cosh", _FC, deriv=lambda x, out: sinh(x), xla="jnp.cosh",
    numpy=np.cosh, samples=floats(), names="cosh math.cosh", doc="The hyperbolic cosine of each element.",
)  # fmt: skip

tanh_grad = elementwise(
    "tanh_grad", FLOAT, args="out g", linear="g", xla="exponential.tanh_grad",
    vjp=(lambda h, out, g, dx: h * (-2 * out * g), lambda h, out, g, dx: tanh_grad(out, h)),
    numpy=lambda out, g: g * (1 - out * out), samples=pairs(-0.9, 0.9),
    doc="`g * (1 - out²)`: the gradient of tanh in one pass.",
)  # fmt: skip

tanh = elementwise(
    "tanh", _FC, xla="jnp.tanh",
    vjp=lambda g, x, out: g * conjugate(1 - square(out)) if out.dtype.is_complex else tanh_grad(out, g),
    numpy=np.tanh, samples=floats(-3, 3), names="tanh math.tanh nn.tanh",
    doc="The hyperbolic tangent of each element.",
)  # fmt: skip

asinh = elementwise(
    "asinh", _FC, deriv=lambda x, out: reciprocal(cosh(out)), xla="jnp.arcsinh",
    numpy=np.arcsinh, samples=floats(), names="asinh math.asinh", doc="The inverse hyperbolic sine of each element.",
)  # fmt: skip

acosh = elementwise(
    "acosh", _FC, deriv=lambda x, out: reciprocal(sinh(out)), xla="jnp.arccosh",
    numpy=np.arccosh, samples=floats(1.2, 3), names="acosh math.acosh",
    doc="The inverse hyperbolic cosine of each element.",
)  # fmt: skip

atanh = elementwise(
    "atanh", _FC, deriv=lambda x, out: reciprocal(_one_minus_square(x)), xla="jnp.arctanh",
    numpy=np.arctanh, samples=floats(-0.9, 0.9), names="atanh math.atanh",
    doc="The inverse hyperbolic tangent of each element.",
)  # fmt: skip

erf = elementwise(
    "erf", FLOAT, deriv=lambda x, out: (2 / math.sqrt(math.pi)) * exp(-square(x)), xla="lax.erf",
    numpy=np.vectorize(math.erf, otypes=[float]), samples=floats(), names="math.erf",
    doc="The Gauss error function of each element.",
)  # fmt: skip

erfc = elementwise(
    "erfc", FLOAT, deriv=lambda x, out: (-2 / math.sqrt(math.pi)) * exp(-square(x)), xla="lax.erfc",
    numpy=np.vectorize(math.erfc, otypes=[float]), samples=floats(), names="math.erfc",
    doc="`1 - erf(x)`, accurate for large `x`.",
)  # fmt: skip

floor = elementwise(
    "floor", REAL, deriv=None, numpy=np.floor, samples=floats(), names="floor math.floor", xla="jnp.floor",
    doc="Each element rounded down. It has no gradient.",
)  # fmt: skip

ceil = elementwise(
    "ceil", REAL, deriv=None, numpy=np.ceil, samples=floats(), names="math.ceil", xla="jnp.ceil",
    doc="Each element rounded up. It has no gradient.",
)  # fmt: skip

round_ = elementwise(
    "round", REAL, deriv=None, numpy=np.round, samples=[*floats(), call(at([0.5, 1.5, -0.5, 2.5]))], xla="jnp.round",
    names="round math.round", doc="Each element rounded to the nearest integer, halves to the even one. It has no gradient.",
)  # fmt: skip

rint = elementwise(
    "rint", FLOAT, deriv=None, numpy=np.rint, samples=floats(), names="math.rint", xla="jnp.rint",
    doc="Each element rounded to the nearest integer, halves to the even one. It has no gradient.",
)  # fmt: skip

trunc = elementwise(
    "trunc", FLOAT, xla="jnp.trunc",
    deriv=None, numpy=np.trunc, samples=floats(), doc="Each element rounded towards zero.",
)  # fmt: skip

xlogy = elementwise(
    "xlogy", _FC, args="x y", linear="x", xla="exponential.xlogy",
    vjp=(
        lambda g, x, y, out: g * conjugate(xlogy(_nonzero(x), y)),
        lambda g, x, y, out: g * conjugate(xdivy(x, y)),
    ),
    numpy=lambda x, y: np.where(x == 0, 0, x * np.log(np.where(x == 0, 1, y))), samples=pairs(0.3, 2),
    names="math.xlogy", edges=[((at(0.0), at(0.0)), (0.0, 0.0))], doc="`x * log(y)`, and 0 where `x` is 0.",
)  # fmt: skip

xlog1py = elementwise(
    "xlog1py", _FC, args="x y", linear="x", xla="exponential.xlog1py",
    vjp=(
        lambda g, x, y, out: g * conjugate(xlog1py(_nonzero(x), y)),
        lambda g, x, y, out: g * conjugate(xdivy(x, y + 1)),
    ),
    numpy=lambda x, y: np.where(x == 0, 0, x * np.log1p(y)), samples=pairs(0.3, 2),
    names="math.xlog1py", doc="`x * log(1 + y)`, and 0 where `x` is 0.",
)  # fmt: skip

xdivy = elementwise(
    "xdivy", _FC, args="x y", linear="x", xla="exponential.xdivy",
    vjp=(
        lambda g, x, y, out: g * conjugate(xdivy(_nonzero(x), y)),
        lambda g, x, y, out: g * conjugate(-xdivy(x, square(y))),
    ),
    numpy=lambda x, y: np.where(x == 0, 0, x / y), samples=pairs(0.3, 2),
    names="math.xdivy", doc="`x / y`, and 0 where `x` is 0.",
)  # fmt: skip
