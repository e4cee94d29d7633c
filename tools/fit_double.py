"""Coefficients of the polynomials in `core/kernels/double_*.h`: fits them in many digits, prints their errors.

    pip install mpmath && python tools/fit_double.py [name ...]

Each is the weighted least squares fit at Chebyshev's points, of the relative error of the function it is used in,
which is within a factor of two of the minimax error. The first coefficients, whose last digits matter, are rounded
to double one after another, and the others are fitted again each time (Brisebarre, Muller and Tisserand, "Computing
machine-efficient polynomial approximations", ACM TOMS 32, 2006, explain why). It computes with 90 digits, since the
normal equations lose half of them.
"""

import sys

import mpmath
from mpmath import mpf

mpmath.mp.dps = 90
GRID = 201


def least_squares(values, weights, points, powers):
    """Coefficients c that make the sum of (weights * (sum c_k x^powers_k - values))^2 least."""
    n = len(powers)
    rows = [[w * x**p for p in powers] for x, w in zip(points, weights, strict=True)]
    columns = list(zip(*rows, strict=True))
    right = [v * w for v, w in zip(values, weights, strict=True)]
    normal, side = mpmath.matrix(n, n), mpmath.matrix(n, 1)
    for i in range(n):
        side[i] = mpmath.fdot(columns[i], right)
        for j in range(i + 1):
            normal[i, j] = normal[j, i] = mpmath.fdot(columns[i], columns[j])
    return list(mpmath.lu_solve(normal, side))


def fit(function, powers, first, last, weight, rounded=3):
    """Coefficients of x^powers as doubles, the lowest first, and the largest of weight * |error|."""
    middle, radius = (mpf(last) + first) / 2, (mpf(last) - first) / 2
    points = [middle - radius * mpmath.cos(mpmath.pi * k / GRID) for k in range(GRID + 1)]
    points = [x for x in points if weight(x)]
    values, weights = [function(x) for x in points], [abs(weight(x)) for x in points]
    done = []
    powers = list(powers)
    for _ in range(min(rounded, len(powers) - 1)):
        head = mpf(float(least_squares(values, weights, points, powers)[0]))
        done.append(head)
        values = [v - head * x ** powers[0] for v, x in zip(values, points, strict=True)]
        powers.pop(0)
    rest = [mpf(float(c)) for c in least_squares(values, weights, points, powers)]
    error = max(
        w * abs(mpmath.fdot(rest, [x**p for p in powers]) - v)
        for x, v, w in zip(points, values, weights, strict=True)
    )
    return done + rest, error


def show(name, coefficients, error):
    print(f"// {name}: error 2^{float(mpmath.log(error, 2)):.1f}")
    print("  " + ", ".join(float(c).hex() for c in coefficients))


LOG2 = mpmath.log(2)
STEP = (LOG2 * mpf("-0.4002"), LOG2 * mpf("0.6002"))  # of expm1, sinh and tanh


def of_square(function):
    """function(sqrt(z)) of z: for polynomials in x^2."""
    return lambda z: function(mpmath.sqrt(z))


def exp():
    half = LOG2 / 2 * mpf("1.0002")

    def rest(r):  # (exp(r) - 1 - r) / r^2
        with mpmath.workdps(180):
            return (mpmath.expm1(r) - r) / r**2 if r else mpf(1) / 2

    show("exp: (exp(r) - 1 - r) / r^2", *fit(rest, range(10), -half, half, lambda r: r**2))
    show(
        "expm1: the same, relative to exp(r) - 1",
        *fit(rest, range(11), *STEP, lambda r: r**2 / mpmath.expm1(r) if r else 0, 4),
    )
    small = LOG2 / 512 * mpf("1.001")
    show("without FMA: the first to log(2) / 512", *fit(rest, range(3), -small, small, lambda r: r**2, 1))
    show(
        "without FMA: the second to log(2) / 512",
        *fit(rest, range(4), -small, small, lambda r: r**2 / mpmath.expm1(r) if r else 0, 1),
    )


def log():
    def rest(z):  # (2 atanh(s) - 2 s) / s^3 of z = s^2
        with mpmath.workdps(180):
            s = mpmath.sqrt(z)
            return (2 * mpmath.atanh(s) - 2 * s) / s**3 if z else mpf(2) / 3

    last = (3 - 2 * mpmath.sqrt(2)) ** 2  # ((sqrt(2) - 1) / (sqrt(2) + 1))^2
    show("log: (2 atanh(s) - 2 s) / s^3", *fit(rest, range(7), 0, last * mpf("1.0001"), lambda z: z))

    def more(z):
        with mpmath.workdps(180):
            s = mpmath.sqrt(z)
            return (2 * mpmath.atanh(s) - 2 * s - 2 * s**3 / 3) / s**5 if z else mpf(2) / 5

    show(
        "pow: (2 atanh(s) - 2 s - 2 s^3 / 3) / s^5",
        *fit(more, range(8), 0, last * mpf("1.0001"), lambda z: z * z),
    )
    show("atanh: as log, s to 0.25", *fit(rest, range(9), 0, mpf("0.0626"), lambda z: z))


def trig():
    half = mpmath.pi / 2 * mpf("1.0001")

    def sin(z):
        with mpmath.workdps(180):
            x = mpmath.sqrt(z)
            return (mpmath.sin(x) - x) / x**3 if z else -mpf(1) / 6

    def cos(z):
        with mpmath.workdps(180):
            x = mpmath.sqrt(z)
            return (mpmath.cos(x) - 1 + z / 2) / z**2 if z else mpf(1) / 24

    weight = of_square(lambda x: x**3 / mpmath.sin(x) if x else 0)
    show("sin: (sin(x) - x) / x^3 to pi / 2", *fit(sin, range(9), 0, half**2, weight))
    quarter = (mpmath.pi / 4 * mpf("1.0001")) ** 2
    show("tan: (sin(x) - x) / x^3 to pi / 4", *fit(sin, range(6), 0, quarter, weight))
    show("tan: (cos(x) - 1 + x^2 / 2) / x^4 to pi / 4", *fit(cos, range(6), 0, quarter, lambda z: z * z))


def inverse():
    def atan(z):
        with mpmath.workdps(180):
            x = mpmath.sqrt(z)
            return (mpmath.atan(x) - x) / x**3 if z else -mpf(1) / 3

    last = (mpmath.sqrt(2) - 1) * mpf("1.0001")
    weight = of_square(lambda x: x**3 / mpmath.atan(x) if x else 0)
    show("atan: (atan(x) - x) / x^3 to sqrt(2) - 1", *fit(atan, range(11), 0, last**2, weight))

    def asin(z):
        with mpmath.workdps(180):
            x = mpmath.sqrt(z)
            return (mpmath.asin(x) - x) / x**3 if z else mpf(1) / 6

    weight = of_square(lambda x: x**3 / mpmath.asin(x) if x else 0)
    show("asin: (asin(x) - x) / x^3 to 1/2", *fit(asin, range(12), 0, mpf("0.2501"), weight))


def gamma():
    def log_gamma(z):
        near = {0: 1 - mpmath.euler, -1: mpmath.euler}
        return near[z] if z in near else mpmath.loggamma(2 + z) / (z * (z + 1))

    fitted = fit(log_gamma, range(25), -1, mpf("0.5"), lambda z: 1 / log_gamma(z))
    show("lgamma: log(gamma(2 + z)) / (z (z + 1))", *fitted)


def hyperbolic():
    half = STEP[1] ** 2

    def sinh(z):
        with mpmath.workdps(180):
            x = mpmath.sqrt(z)
            return (mpmath.sinh(x) - x) / x**3 if z else mpf(1) / 6

    def cosh(z):
        with mpmath.workdps(180):
            return (mpmath.cosh(mpmath.sqrt(z)) - 1) / z if z else mpf(1) / 2

    show("sinh: (sinh(r) - r) / r^3", *fit(sinh, range(6), 0, half, lambda z: z))
    show("cosh: (cosh(r) - 1) / r^2", *fit(cosh, range(6), 0, half, lambda z: z))


def erf():
    def tail(z):  # y exp(y^2) erfc(y) of z = 1 / y^2
        y = 1 / mpmath.sqrt(z)
        return y * mpmath.exp(y * y) * mpmath.erfc(y)

    show(
        "erfc: y exp(y^2) erfc(y) from 6, of 1 / y^2",
        *fit(tail, range(11), 1 / mpf("27.5") ** 2, 1 / mpf("5.99") ** 2, lambda z: 1 / tail(z)),
    )

    # The integral of t^2k exp(-2 a t) / k! (-1)^k from 0 to 1, divided by a^first without its terms before that.
    def part(k, first, a):
        terms = ((-2 * a) ** (j - first) / mpmath.factorial(j) / (j + 2 * k + 1) for j in range(first, 40))
        return (-1) ** k * mpf(-2) ** first * mpmath.fsum(terms) / mpmath.factorial(k)

    half = mpf(1) / 256  # of the distance of points
    last = 6 * half

    def beside_erf(a):  # how much of erf a step is, at most, where x0 h = a
        if a == 0:
            return mpf(1)
        x = abs(a) / half
        return min(mpf(1), 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-x * x) * half / mpmath.erf(x))

    def show_parts(name, share, counts):
        functions = [
            lambda a: part(0, 1, a),
            lambda a: part(1, 0, a),
            # With most of the part of h^6, whose rest is less than 2^-55.
            lambda a: part(2, 0, a) + mpf("0.78") * half**2 * part(3, 0, a),
        ]
        weights = [
            lambda a: abs(a) * share(a),
            lambda a: half**2 * share(a),
            lambda a: half**4 * share(a),
        ]
        for k in range(3):
            fitted = fit(functions[k], range(counts[k]), -last, last, weights[k], 2)
            show(f"{name}: the part of h^{2 * k}", *fitted)

    show_parts("erf", beside_erf, (5, 4, 2))
    show_parts("erfc", lambda a: 12 * half, (6, 5, 3))


if __name__ == "__main__":
    for name in sys.argv[1:] or ["exp", "log", "trig", "inverse", "gamma", "hyperbolic", "erf"]:
        globals()[name]()
