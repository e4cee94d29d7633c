"""Coefficients of the polynomials of float in `core/kernels`: fits them, prints their errors.

    pip install numpy mpmath && python tools/fit_float.py

All minimize the largest relative error of the function they are used in (Lawson's iteration: least squares whose
weights grow with the errors).

**exp, tanh, erf** (`explog.h`, `tanherf.h`). exp(r) - 1 and tanh(r) of small r, minus r itself, which is exact;
-log(erfc(y)) - y, whose error is weighted by its effect on erf, that is by erfc / erf.

**log, sine, cosine, the inverse functions, the hyperbolic ones, 2^x** (`explog.h`, `trig.h`, `hyperbolic.h`,
`power.h`): the remainder after its first terms, which are exact, on the interval of the reduced argument.

**The normal distribution's tail** (`activations.cpp`). For y >= 0, P(X > y) = exp(-y^2 / 2) R(y), where R falls from
1/2 like 1 / y. As Shepherd and Laframboise do for erfc ("Chebyshev Approximation of (1 + 2x) exp(x^2) erfc x in
0 <= x < inf", Math. Comp. 36, 1981), R is divided by a rational function of the same decay and the rest is a polynomial
in it: R(y) = t Q(t) with t = 1 / (1 + C y). Q is fitted where the tail is a float. C is the multiple of 1/32 that lets
the float32 steps round least.
"""

import mpmath
import numpy as np

C = 11 / 32
DEGREE = 8
LAST = 13.2  # exp(-y^2 / 2) is less than the smallest normal float from there on
POINTS, ROUNDS = 600, 200
SMALL = 2.0**-12


def ratio(y):
    """R(y), to more digits than a double has."""
    y = mpmath.mpf(float(y))
    return mpmath.erfc(y / mpmath.sqrt(2)) * mpmath.exp(y * y / 2) / 2


def lawson(rows, values):
    """The coefficients that bring rows @ coefficients nearest to `wanted`, and the largest difference."""
    weights = np.ones(len(rows))
    best, least = None, np.inf
    for _ in range(ROUNDS):
        root = np.sqrt(weights)
        coefficients = np.linalg.lstsq(rows * root[:, None], values * root, rcond=None)[0]
        errors = np.abs(rows @ coefficients - values)
        if errors.max() < least:
            best, least = coefficients, errors.max()
        weights *= errors / errors.max() + 1e-3
        weights /= weights.sum()
    return best, least


def fit_rest(function, powers, first, last, weight, start=lambda x: x):
    """Coefficients of x^powers that make start(x) + ... the function, errors times `weight`, the lowest power first."""
    middle, radius = (mpmath.mpf(last) + first) / 2, (mpmath.mpf(last) - first) / 2
    points = [middle - radius * mpmath.cos(mpmath.pi * (k + 0.5) / POINTS) for k in range(POINTS)]
    rows = np.array([[float(x**p * weight(x)) for p in powers] for x in points])
    scale = np.abs(rows).max(0)
    coefficients, error = lawson(
        rows / scale, np.array([float((function(x) - start(x)) * weight(x)) for x in points])
    )
    return coefficients / scale, error


def fit_tangent():
    """tan(r) / r - 1 = q (u0 + u1 q) / (1 + d1 q + d2 q^2) with q = r^2: solved for tan(r) / r as (1 + p1 q + p2 q^2)
    over the same, weighted by the denominator of the turn before."""
    r = np.pi / 4 * 1.005 * (1 - np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS)) / 2
    q, values = r * r, np.array([float(mpmath.tan(x) / x) for x in r])
    bottom = np.ones(POINTS)
    for _ in range(5):
        rows = np.stack([q, q * q, -values * q, -values * q * q], 1) / (values * bottom)[:, None]
        (p1, p2, d1, d2), error = lawson(rows, (values - 1) / (values * bottom))
        bottom = 1 + d1 * q + d2 * q * q
    return [p1 - d1, p2 - d2, d1, d2], error


def fit_tail(ratio, c, degree, last):
    """The coefficients of Q, the constant first, and their largest relative error."""
    first = 1 / (1 + c * last)
    middle, radius = (1 + first) / 2, (1 - first) / 2
    t = middle + radius * np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS)
    values = np.array([float(ratio((1 / s - 1) / c) / s) for s in t])
    rows = np.polynomial.chebyshev.chebvander((t - middle) / radius, degree) / values[:, None]
    best, least = lawson(rows, np.ones(POINTS))
    polynomial = np.polynomial.Chebyshev(best, [first, 1]).convert(kind=np.polynomial.Polynomial)
    return polynomial.coef, least


def tail_in_float(y, coefficients):
    """What the kernel computes, step by step in float32; only exp is taken to be exact."""
    one = np.float32(1)
    t = one / (one + np.float32(C) * y)
    q = np.zeros_like(y)
    for c in coefficients[::-1]:
        q = q * t + np.float32(c)
    head = (y.view(np.uint32) & np.uint32(0xFFFFF000)).view(np.float32)  # 12 bits: its square is exact
    rest = np.float32(-0.5) * (y - head) * (y + head)
    power = np.exp(np.float64(head) ** 2 * -0.5 + rest).astype(np.float32)
    return t * q * power


def show(name, coefficients, error):
    digits = ", ".join(f"{c:.9e}f" for c in np.float32(coefficients)[::-1])
    print(f"{name}: relative error {error:.1e}; from the highest power on: {digits}")


# Name, function, its first terms, the powers that follow, the interval.
PARTS = [
    ("log(1 + f)", mpmath.log1p, lambda f: f - f * f / 2, range(3, 12), 0.5**0.5 - 1, 2**0.5 - 1),
    ("sin(r), |r| < pi / 2", mpmath.sin, lambda r: r, range(3, 11, 2), SMALL, np.pi / 2 * 1.002),
    ("erf(r), without FMA", mpmath.erf, lambda r: r, range(1, 15, 2), SMALL, 1),
    ("asin(s)", mpmath.asin, lambda s: s, range(3, 13, 2), SMALL, 0.5),
    ("atan(r)", mpmath.atan, lambda r: r, range(3, 19, 2), SMALL, 1),
    ("sinh(r)", mpmath.sinh, lambda r: r, range(3, 9, 2), SMALL, 0.46),
    ("cosh(r)", mpmath.cosh, lambda r: 1 + r * r / 2, range(4, 8, 2), SMALL, 0.46),
    ("atanh(s)", mpmath.atanh, lambda s: s, range(3, 11, 2), SMALL, 0.2032),
    (
        "2 atanh(s), of log(1 + x) to 1",
        lambda s: 2 * mpmath.atanh(s),
        lambda s: 2 * s,
        range(3, 11, 2),
        SMALL,
        1 / 3,
    ),
]


def main():
    half = 1.001 * np.log(2) / 2
    show("exp(r) - 1", *fit_rest(mpmath.expm1, range(2, 7), -half, half, lambda x: 1 / mpmath.expm1(x)))
    show("tanh(r)", *fit_rest(mpmath.tanh, (3, 5, 7), 2.0**-16, 0.2225, lambda x: 1 / mpmath.tanh(x)))
    show(
        "-log(erfc(y))",
        *fit_rest(
            lambda x: -mpmath.log(mpmath.erfc(x)),
            range(1, 10), 2.0**-14, 3.93, lambda x: mpmath.erfc(x) / mpmath.erf(x),
        ),
    )  # fmt: skip
    for name, function, start, powers, first, last in PARTS:
        show(name, *fit_rest(function, powers, first, last, lambda x, f=function: 1 / f(x), start))
    show("tan(r), d2 d1 u1 u0", *fit_tangent())
    show("2^r - 1", *fit_rest(lambda r: 2**r - 1, range(1, 7), -0.5001, 0.5001, lambda r: 2**-r, lambda r: 0))
    log2 = lambda s: 2 * mpmath.atanh(s) / mpmath.log(2)  # noqa: E731
    fitted, error = fit_rest(
        log2, range(3, 11, 2), SMALL, 0.17158, lambda s: 1 / log2(s), lambda s: 2 * s / mpmath.log(2)
    )
    print(
        f"log2((1 + s) / (1 - s)): relative error {error:.1e}; {', '.join(f'{c:.17e}' for c in fitted[::-1])}"
    )
    coefficients, error = fit_tail(ratio, C, DEGREE, LAST)
    show("tail", coefficients, error)
    y = np.linspace(0, 13, 20001, dtype=np.float32)
    exact = np.array([float(ratio(v) * mpmath.exp(-(mpmath.mpf(float(v)) ** 2) / 2)) for v in y])
    ulps = np.abs(tail_in_float(y, coefficients) - exact) / np.spacing(exact.astype(np.float32))
    print(f"tail in float32: at most {ulps.max():.2f} ulp, on average {ulps.mean():.2f}")


if __name__ == "__main__":
    main()
