"""Element-wise arithmetic: sums, products, quotients, powers, remainders, complex parts."""

from __future__ import annotations

import numpy as np

from gradtape._src.base import errors
from gradtape._src.ops import rewriting
from gradtape._src.ops.samples import at, call, floats, ints, pairs
from gradtape._src.ops.table import ALL, COMPLEX, FLOAT, INT, NUMBER, REAL, TEXT, WIDE, elementwise, opaque
from gradtape._src.tensors import above

_SHAPES = ("InvalidArgumentError", "Incompatible shapes")
_MISFIT = [(call((2,), (3,)), *_SHAPES), (call((2, 3), (2,)), *_SHAPES)]


def conjugate(x):
    """The conjugate of `x`, for rules that divide or multiply by an operand; a real `x` is returned as it is."""
    return conj(x) if x.dtype.is_complex else x


conj = elementwise(
    "conj", COMPLEX, args="x", linear="x", xla="jnp.conj",
    vjp=lambda g, x, out: conj(g),
    numpy=np.conj, samples=floats(), doc="The complex conjugate of `x`.",
)  # fmt: skip

real = elementwise(
    "real", COMPLEX, args="input", linear="input", xla="jnp.real",
    vjp=lambda g, x, out: complex_(g, zero(g)),
    numpy=np.real, samples=floats(), doc="The real part of a complex tensor.",
)  # fmt: skip

imag = elementwise(
    "imag", COMPLEX, args="input", linear="input", xla="jnp.imag",
    vjp=lambda g, x, out: complex_(zero(g), g),
    numpy=np.imag, samples=floats(), doc="The imaginary part of a complex tensor.",
)  # fmt: skip

complex_ = elementwise(
    "complex", WIDE, args="real imag", linear="real+imag", xla="lax.complex",
    vjp=(lambda g, x, y, out: real(g), lambda g, x, y, out: imag(g)),
    numpy=lambda x, y: x + 1j * y, samples=pairs(), names="complex dtypes.complex", bad=_MISFIT,
    doc="The complex tensor `real + i·imag`.",
)  # fmt: skip

zero = elementwise(
    "zero", ALL, deriv=0, linear="x", pattern="nothing", xla="jnp.zeros_like",
    numpy=np.zeros_like, samples=floats(), doc="Zeros of the shape and type of `x`; used by rules.",
)  # fmt: skip

add = elementwise(
    "add", NUMBER | TEXT, args="x y", deriv=(1, 1), xla="jnp.add",
    linear="x+y", first="add", second="add add", simplify=rewriting.add,
    numpy=np.add, samples=pairs(), names="add math.add", bad=_MISFIT,
    doc="`x + y`, element-wise, with broadcasting.",
)  # fmt: skip

subtract = elementwise(
    "sub", NUMBER, args="x y", deriv=(1, -1), xla="jnp.subtract",
    linear="x+y", first="sub", second="sub from", simplify=rewriting.sub,
    numpy=np.subtract, samples=pairs(), names="subtract math.subtract", bad=_MISFIT,
    doc="`x - y`, element-wise, with broadcasting.",
)  # fmt: skip

multiply = elementwise(
    "mul", NUMBER, args="x y", xla="jnp.multiply",
    linear="x y", first="mul", second="mul mul", simplify=rewriting.mul,
    deriv=(lambda x, y, out: y, lambda x, y, out: x),
    numpy=np.multiply, samples=pairs(), names="multiply math.multiply", bad=_MISFIT,
    doc="`x * y`, element-wise, with broadcasting.",
)  # fmt: skip

divide = elementwise(
    "div", FLOAT | COMPLEX, args="x y", true_division=True, xla="jnp.divide",
    linear="x", second="div under", simplify=rewriting.div,
    vjp=(lambda g, x, y, out: g / conjugate(y), lambda g, x, y, out: g * conjugate(-out / y)),
    numpy=np.divide, samples=pairs(lo2=0.5), bad=_MISFIT,
    edges=[((at(1.0), at(0.0)), (np.inf, -np.inf))],
    doc="`x / y`, element-wise, with broadcasting; integers are divided as floats.",
)  # fmt: skip

negative = elementwise(
    "neg", NUMBER, deriv=-1, linear="x", simplify=rewriting.neg, xla="jnp.negative",
    numpy=np.negative, samples=floats(), names="negative math.negative", doc="`-x`, element-wise.",
)  # fmt: skip

abs_ = elementwise(
    "abs", NUMBER, xla="jnp.abs",
    vjp=lambda g, x, out: (complex_(g, zero(g)) if x.dtype.is_complex else g) * sign(x),
    numpy=np.abs, samples=floats(), names="abs math.abs",
    edges=[((at(0.0),), (0.0,))],
    doc="The absolute value of each element; for a complex number, its modulus.",
)  # fmt: skip


def _widen(x):
    """A real tensor as a complex one."""
    return complex_(x, zero(x))


def _sign_vjp(g, x, out):
    """Zero for real numbers. For x / |x| of a complex number: the part of `g` perpendicular to x, divided by |x|."""
    if not x.dtype.is_complex:
        return zero(g)
    return divide_no_nan(g - out * _widen(real(conj(out) * g)), _widen(abs_(x)))


sign = elementwise(
    "sign", NUMBER, vjp=_sign_vjp, xla="jnp.sign",
    numpy=np.sign, samples=floats(), names="sign math.sign", edges=[((at(0.0),), (0.0,))],
    doc="-1, 0 or 1 where an element is negative, zero or positive; for complex numbers `x / |x|`.",
)  # fmt: skip

square = elementwise(
    "square", NUMBER, deriv=lambda x, out: x + x, first="mul", xla="jnp.square",
    numpy=np.square, samples=floats(), names="square math.square", doc="`x * x`, element-wise.",
)  # fmt: skip

sqrt = elementwise(
    "sqrt", FLOAT | COMPLEX, deriv=lambda x, out: 0.5 / out, no_nan=True, xla="jnp.sqrt",
    numpy=np.sqrt, samples=floats(0.2, 3), names="sqrt math.sqrt",
    edges=[((at(0.0),), (np.inf,))],
    doc="The square root of each element. A zero cotangent at 0 gives a zero gradient.",
)  # fmt: skip

rsqrt = elementwise(
    "rsqrt", FLOAT | COMPLEX, deriv=lambda x, out: -0.5 * out * out * out, no_nan=True, xla="lax.rsqrt",
    numpy=lambda x: 1 / np.sqrt(x), samples=floats(0.2, 3), names="math.rsqrt",
    doc="`1 / sqrt(x)`, element-wise.",
)  # fmt: skip

reciprocal = elementwise(
    "reciprocal", FLOAT | COMPLEX, deriv=lambda x, out: -out * out, no_nan=True, xla="jnp.reciprocal",
    numpy=np.reciprocal, samples=floats(0.3, 3), names="math.reciprocal", doc="`1 / x`, element-wise.",
)  # fmt: skip


def _real_part(g):
    return _widen(real(g)) if g.dtype.is_complex else g


squared_difference = elementwise(
    "squared_difference", NUMBER, args="x y", xla="arithmetic.squared_difference",
    # The result is real for complex operands too, so only the real part of `g` counts.
    vjp=(lambda g, x, y, out: 2 * (x - y) * _real_part(g), lambda g, x, y, out: 2 * (y - x) * _real_part(g)),
    numpy=lambda x, y: np.conj(x - y) * (x - y), samples=pairs(),
    names="math.squared_difference", bad=_MISFIT, doc="`(x - y)²`, element-wise; for complex numbers `|x - y|²`.",
)  # fmt: skip


def _log_where_positive(x):
    """log(x) where it exists, 0 elsewhere: the derivative of a power with respect to its exponent."""
    ops = above.ops
    ok = ops.not_equal(x, 0) if x.dtype.is_complex else ops.greater(x, 0)
    return ops.select(ok, ops.log(ops.select(ok, x, 1)), 0)


pow_ = elementwise(
    "pow", NUMBER, args="x y", no_negative=True, simplify=rewriting.pow_, xla="arithmetic.power",
    deriv=(lambda x, y, out: y * pow_(x, y - 1), lambda x, y, out: out * _log_where_positive(x)),
    numpy=np.power, samples=pairs(0.3, 2), bad=_MISFIT,
    edges=[((at(0.0), at(1.0)), (1.0, 0.0)), ((at(-2.0), at(2.0)), (-4.0, 0.0))],
    doc="`x ** y`, element-wise. The derivative with respect to `y` is 0 where `x <= 0`.",
)  # fmt: skip

maximum = elementwise(
    "maximum", REAL, args="x y", xla="jnp.maximum",
    vjp=(lambda g, x, y, out: _select(x >= y, g, 0), lambda g, x, y, out: _select(x >= y, 0, g)),
    numpy=np.maximum, samples=pairs(), names="maximum math.maximum", bad=_MISFIT,
    edges=[((at(1.0), at(1.0)), (1.0, 0.0))],
    doc="The larger of `x` and `y`, element-wise. At a tie `x` gets the gradient.",
)  # fmt: skip

minimum = elementwise(
    "minimum", REAL, args="x y", xla="jnp.minimum",
    vjp=(lambda g, x, y, out: _select(x <= y, g, 0), lambda g, x, y, out: _select(x <= y, 0, g)),
    numpy=np.minimum, samples=pairs(), names="minimum math.minimum", bad=_MISFIT,
    edges=[((at(1.0), at(1.0)), (1.0, 0.0))],
    doc="The smaller of `x` and `y`, element-wise. At a tie `x` gets the gradient.",
)  # fmt: skip


def _select(condition, x, y):
    return above.ops.select(condition, x, y)


clip = elementwise(
    "clip", REAL, args="t clip_value_min clip_value_max", xla="arithmetic.clip",
    vjp=(
        lambda g, x, lo, hi, out: _select((x >= lo) & (x <= hi), g, 0),
        lambda g, x, lo, hi, out: _select(minimum(x, hi) < lo, g, 0),
        lambda g, x, lo, hi, out: _select((x > hi) & (hi >= lo), g, 0),
    ),
    numpy=lambda x, lo, hi: np.maximum(np.minimum(x, hi), lo),
    samples=[
        call((2, 3), at(-0.5), at(0.7)), call((3,), at([-1.0, 0.0, 0.5]), at(0.7)), call((), at(-1.0), at(1.0)),
        call((2, 3), at(1.0), at(2.0)), call((0, 3), at(0.0), at(1.0)), call((2, 3), at(1.0), at(-1.0)),
    ],
    edges=[((at(1.0), at(-1.0), at(1.0)), (1.0, 0.0, 0.0)), ((at(2.0), at(-1.0), at(1.0)), (0.0, 0.0, 1.0))],
    doc="`x` clipped to [lo, hi]. The gradient passes inside and at the bounds. If `lo > hi`, the result is `lo`.",
)  # fmt: skip

divisor = opaque(
    "divisor", INT, "x", xla="arithmetic.divisor",
    rule=None, numpy=lambda x: x, samples=[call(ints([1, 2])), call(ints(-3))], batch="leading",
    bad=[(call(ints([1, 0])), "InvalidArgumentError", "Integer division by zero")],
    doc="`x`, or an error if it contains a zero: compiled programs check divisors of integers with it.",
)  # fmt: skip


def _exponent(x):
    if (np.asarray(x) < 0).any():
        raise errors.InvalidArgumentError(None, None, "Integers to negative integer powers are not allowed")
    return x


exponent = opaque(
    "exponent", INT, "x", xla="arithmetic.exponent", python=_exponent,
    rule=None, numpy=lambda x: x, samples=[call(ints([1, 0])), call(ints(3))], batch="leading",
    bad=[(call(ints([1, -1])), "InvalidArgumentError", "negative integer powers are not allowed")],
    doc="`x`, or an error if it contains a negative number: compiled programs check exponents of integers with it.",
)  # fmt: skip

floordiv = elementwise(
    "floordiv", REAL, args="x y", deriv=None, no_zero=True, xla="arithmetic.floordiv",
    numpy=np.floor_divide, samples=pairs(-5, 5, 0.5, 3), names="math.floordiv floordiv", bad=_MISFIT,
    doc="`floor(x / y)`, element-wise. It has no gradient.",
)  # fmt: skip

floormod = elementwise(
    "floormod", REAL, args="x y", xla="arithmetic.floormod",
    vjp=(lambda g, x, y, out: g, lambda g, x, y, out: g * -floordiv(x, y)), no_zero=True,
    numpy=np.mod, samples=pairs(-5, 5, 0.7, 3), names="math.floormod floormod math.mod", bad=_MISFIT,
    doc="The remainder of `floordiv(x, y)`; it has the sign of `y`.",
)  # fmt: skip

truncatediv = elementwise(
    "truncatediv", REAL, args="x y", deriv=None, no_zero=True, xla="arithmetic.truncatediv",
    numpy=lambda x, y: np.trunc(x / y).astype(x.dtype), samples=pairs(-5, 5, 0.7, 3),
    names="truncatediv", bad=_MISFIT, doc="`x / y` rounded towards zero. It has no gradient.",
)  # fmt: skip

truncatemod = elementwise(
    "truncatemod", REAL, args="x y", xla="arithmetic.truncatemod",
    vjp=(lambda g, x, y, out: g, lambda g, x, y, out: g * -truncatediv(x, y)), no_zero=True,
    numpy=np.fmod, samples=pairs(-5, 5, 0.7, 3), names="truncatemod", bad=_MISFIT,
    doc="The remainder of `truncatediv(x, y)`; it has the sign of `x`.",
)  # fmt: skip

divide_no_nan = elementwise(
    "div_no_nan", FLOAT | COMPLEX, args="x y", true_division=True, linear="x", xla="arithmetic.div_no_nan",
    vjp=(
        lambda g, x, y, out: divide_no_nan(g, conjugate(y)),
        lambda g, x, y, out: g * conjugate(divide_no_nan(-out, y)),
    ),
    numpy=lambda x, y: np.where(y == 0, 0, x / np.where(y == 0, 1, y)), samples=pairs(lo2=0.5),
    bad=_MISFIT, edges=[((at(1.0), at(0.0)), (0.0, 0.0))], doc="`x / y`, and 0 where `y` is 0.",
)  # fmt: skip

multiply_no_nan = elementwise(
    "mul_no_nan", FLOAT | COMPLEX, args="x y", linear="x y", xla="arithmetic.mul_no_nan",
    vjp=(
        lambda g, x, y, out: multiply_no_nan(g, conjugate(y)),
        lambda g, x, y, out: multiply_no_nan(conjugate(x), g),
    ),
    numpy=lambda x, y: np.where(y == 0, 0, x * y), samples=pairs(), bad=_MISFIT,
    doc="`x * y`, and 0 where `y` is 0 even if `x` is infinite or NaN.",
)  # fmt: skip

fma = elementwise(
    "fma", NUMBER, args="x y z", xla="arithmetic.fma",
    deriv=(lambda x, y, z, out: y, lambda x, y, z, out: x, 1), linear="x+z y+z",
    numpy=lambda x, y, z: x * y + z,
    samples=[call((2, 3), (3,), ()), call((3,), (3,), (3,)), call((0, 3), (3,), ())],
    doc="`x * y + z`, element-wise.",
)  # fmt: skip

bitwise_and = elementwise(
    "bitwise_and", INT, args="x y", numpy=np.bitwise_and, xla="jnp.bitwise_and",
    samples=[call(ints([1, 2, 7]), ints([3, 2, 5]))], names="bitwise.bitwise_and", doc="`x & y` of integers.",
)  # fmt: skip

bitwise_or = elementwise(
    "bitwise_or", INT, args="x y", numpy=np.bitwise_or, xla="jnp.bitwise_or",
    samples=[call(ints([1, 2, 7]), ints([3, 2, 5]))], names="bitwise.bitwise_or", doc="`x | y` of integers.",
)  # fmt: skip

bitwise_xor = elementwise(
    "bitwise_xor", INT, args="x y", numpy=np.bitwise_xor, xla="jnp.bitwise_xor",
    samples=[call(ints([1, 2, 7]), ints([3, 2, 5]))], names="bitwise.bitwise_xor", doc="`x ^ y` of integers.",
)  # fmt: skip

left_shift = elementwise(
    "left_shift", INT, args="x y", numpy=np.left_shift, xla="jnp.left_shift",
    samples=[call(ints([1, 2, 7]), ints([3, 2, 5]))], names="bitwise.left_shift", doc="`x << y` of integers.",
)  # fmt: skip

right_shift = elementwise(
    "right_shift", INT, args="x y", numpy=np.right_shift, xla="jnp.right_shift",
    samples=[call(ints([100, 20, 7]), ints([3, 2, 5]))], names="bitwise.right_shift", doc="`x >> y` of integers.",
)  # fmt: skip

invert = elementwise(
    "invert", INT, xla="jnp.invert",
    numpy=np.invert, samples=[call(ints([1, 2, 7]))], names="bitwise.invert", doc="`~x` of integers.",
)  # fmt: skip
