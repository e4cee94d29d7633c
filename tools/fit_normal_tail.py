"""The coefficients of the normal distribution's tail in `core/kernels/activations.cpp`: fits them, prints their error.

    pip install numpy mpmath && python tools/fit_normal_tail.py

For y >= 0, P(X > y) = exp(-y^2 / 2) R(y), where R falls from 1/2 like 1 / y. As Shepherd and Laframboise do for
erfc ("Chebyshev Approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < inf", Math. Comp. 36, 1981), R is divided by
a rational function of the same decay and the rest is a polynomial in it: R(y) = t Q(t) with t = 1 / (1 + C y). Q has
the least largest relative error where the tail is a float (Lawson's iteration: least squares whose weights grow with
the errors). C is the multiple of 1/32 that lets the float32 steps round least.
"""

import mpmath
import numpy as np

C = 11 / 32
DEGREE = 8
LAST = 13.2  # exp(-y^2 / 2) is less than the smallest normal float from there on
POINTS, ROUNDS = 600, 200


def ratio(y):
    """R(y), to more digits than a double has."""
    y = mpmath.mpf(float(y))
    return mpmath.erfc(y / mpmath.sqrt(2)) * mpmath.exp(y * y / 2) / 2


def fit():
    """The coefficients of Q, the constant first, and their largest relative error."""
    first = 1 / (1 + C * LAST)
    middle, radius = (1 + first) / 2, (1 - first) / 2
    t = middle + radius * np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS)
    wanted = np.array([float(ratio((1 / s - 1) / C) / s) for s in t])
    rows = np.polynomial.chebyshev.chebvander((t - middle) / radius, DEGREE) / wanted[:, None]
    weights = np.ones(POINTS)
    best, least = None, np.inf
    for _ in range(ROUNDS):
        root = np.sqrt(weights)
        found = np.linalg.lstsq(rows * root[:, None], root, rcond=None)[0]
        errors = np.abs(rows @ found - 1)
        if errors.max() < least:
            best, least = found, errors.max()
        weights *= errors / errors.max() + 1e-3
        weights /= weights.sum()
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


def main():
    coefficients, error = fit()
    print(f"relative error {error:.1e}")
    print("from the highest power on:", ", ".join(f"{c:.9g}f" for c in coefficients[::-1]))
    y = np.linspace(0, 13, 20001, dtype=np.float32)
    exact = np.array([float(ratio(v) * mpmath.exp(-(mpmath.mpf(float(v)) ** 2) / 2)) for v in y])
    ulps = np.abs(tail_in_float(y, coefficients) - exact) / np.spacing(exact.astype(np.float32))
    print(f"in float32: at most {ulps.max():.2f} ulp, on average {ulps.mean():.2f}")


if __name__ == "__main__":
    main()
