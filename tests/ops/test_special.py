"""Special functions at their poles, edges and far out; the numbers are those of TensorFlow 2.21 and mpmath."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

import gradtape as tf

inf, nan = np.inf, np.nan


def f64(*values):
    return tf.constant(values, tf.float64)


EDGES = {
    "bessel_i0e": ([-inf, 0.0, 40.0, inf], [0, 1, 0.06327828, 0]),
    "bessel_i1e": ([-inf, -40.0, 0.0, inf], [0, -0.0624822291, 0, 0]),
    "bessel_k0": ([-1.0, 0.0, 40.0, inf], [inf, inf, 8.39286110e-19, 0]),
    "bessel_k1e": ([-1.0, 0.0, 40.0, inf], [inf, inf, 2.00009967e-01, 0]),
    "bessel_y0": ([-1.0, 0.0, 2.0], [-inf, -inf, 0.51037567]),
    "bessel_y1": ([-1.0, 0.0, 2.0], [-inf, -inf, -0.107032432]),
    "bessel_j0": ([-inf, 0.0, 40.0], [nan, 1, 0.00736689]),
    "dawsn": ([-40.0, 1e9, inf], [-1.25039099e-02, 5e-10, 0]),
    "expint": ([-1.0, 0.0, 40.0], [nan, -inf, 6.03971826e15]),
    "fresnel_cos": ([-inf, -40.0, 1e300], [-0.5, -0.499998417, 0.5]),
    "fresnel_sin": ([1e-10, 40.0, inf], [5.23598776e-31, 0.492042254, 0.5]),
    "spence": ([-1.0, 0.0, 1.0, 40.0, inf], [nan, np.pi**2 / 6, 0, -8.33029753, nan]),
}


@pytest.mark.parametrize("name", EDGES)
def test_edges(name):
    x, expected = EDGES[name]
    np.testing.assert_allclose(getattr(tf.math.special, name)(f64(*x)), expected, rtol=1e-7, atol=1e-15)
    assert np.isnan(getattr(tf.math.special, name)(f64(nan))).all()


def _floats():
    """Kinds of float32: a sample of all bit patterns, some ranges completely, the ends of ranges, and NaN."""
    every = np.arange(0, 1 << 32, 9973, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = [
        np.float32(v).view(np.uint32) + np.arange(-3000, 3000)
        for v in (0.183, 0.25, 0.5493, 0.9155, 3.92, 9.02)
    ]
    some = np.concatenate(near).astype(np.uint32).view(np.float32)
    edges = np.float32(
        [0, inf, nan, 1e-45, 1.1754942e-38, 1.1754944e-38, 3.4028235e38, 9.1, 4, 10.0546, 88.8, 104]
    )
    return np.concatenate([every, some, -some, edges, -edges])


@pytest.mark.parametrize(
    "name",
    "exp expm1 log log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc".split(),
)
def test_two_units_of_the_last_place(name):
    """In float32, against the functions of double. tests/native/float_check.cpp checks all floats."""
    function, x = getattr(tf.math, name), _floats()
    got = function(x).numpy()
    with np.errstate(over="ignore", invalid="ignore"):
        exact = function(x.astype(np.float64)).numpy()
        rounded = exact.astype(np.float32)
        off = np.abs(got - exact) / np.spacing(np.abs(rounded))
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(got[~finite], rounded[~finite])
    assert off[finite].max() <= 2
    np.testing.assert_array_equal(np.signbit(got[finite]), np.signbit(rounded[finite]))


@pytest.mark.parametrize("function", [tf.tanh, tf.math.erf], ids=["tanh", "erf"])
def test_odd_functions_keep_small_numbers_and_the_sign_of_zero(function):
    x = np.float32([0.0, -0.0, 1e-45, -1e-45, 1e-40, 1e-20, inf, -inf])
    y = function(x).numpy()
    np.testing.assert_array_equal(np.signbit(y), np.signbit(x))
    np.testing.assert_array_equal(y, -function(-x).numpy())
    np.testing.assert_array_equal(y[-2:], [1, -1])
    if function is tf.tanh:
        np.testing.assert_array_equal(y[:6], x[:6])


def test_poles_of_the_gamma_family():
    np.testing.assert_array_equal(tf.math.lgamma(f64(-2, 0, inf)), [inf, inf, inf])
    np.testing.assert_array_equal(tf.math.digamma(f64(-2, 0, inf)), [nan, nan, inf])
    np.testing.assert_array_equal(
        tf.math.zeta(f64(1, 0.5, 2, 3, 1.5), f64(1, 1, 0, 0, -0.5)), [inf, nan, inf, nan, nan]
    )
    np.testing.assert_array_equal(tf.math.polygamma(f64(1.5, -1, 1), f64(1, 1, -1)), [nan, nan, inf])
    np.testing.assert_array_equal(
        tf.math.igamma(f64(1, 0, -1, 2, inf), f64(0, 1, 1, inf, 1)), [0, nan, nan, 1, 0]
    )
    np.testing.assert_array_equal(
        tf.math.betainc(f64(1, 1, 0, 1), f64(1, 1, 1, 1), f64(0, 1, 0.5, 1.5)), [0, 1, nan, nan]
    )


def test_inverses_undo():
    x = f64(-0.999999, -0.3, 1e-12, 0.9)
    np.testing.assert_allclose(tf.math.erf(tf.math.erfinv(x)), x, rtol=1e-13)
    np.testing.assert_allclose(
        tf.math.erfc(tf.math.erfcinv(f64(1e-200, 0.3, 1.9))), [1e-200, 0.3, 1.9], rtol=1e-12
    )
    np.testing.assert_allclose(tf.math.ndtri(f64(1e-10, 0.5)), [-6.361340902404056, 0], rtol=1e-12)
    np.testing.assert_array_equal(tf.math.ndtri(f64(0, 1, -0.1)), [-inf, inf, nan])


def test_incomplete_gamma_of_large_parameters():
    # mpmath
    np.testing.assert_allclose(tf.math.igamma(f64(1e6, 1e4, 50), f64(1e6 + 500, 1e4, 20)),
                               [0.691550475771497, 0.501329808339955, 1.24589260797194e-08], rtol=1e-12)  # fmt: skip
    total = tf.math.igamma(f64(3e3), f64(3.1e3)) + tf.math.igammac(f64(3e3), f64(3.1e3))
    np.testing.assert_allclose(total, [1.0], rtol=1e-13)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_derivatives_of_igamma_by_its_parameter(order):
    def nested(a, x, depth):
        if depth == 0:
            return tf.math.igamma(a, x)
        with tf.GradientTape() as tape:
            tape.watch(a)
            y = nested(a, x, depth - 1)
        return tape.gradient(y, a)

    a, x, h = f64(1.7), f64(2.3), 1e-4
    expected = (nested(a + h, x, order - 1) - nested(a - h, x, order - 1)) / (2 * h)
    np.testing.assert_allclose(nested(a, x, order), expected, rtol=1e-5)


def test_lbeta():
    with tf.GradientTape() as tape:
        x = f64(0.5, 2.0, 3.0)
        tape.watch(x)
        y = tf.math.lbeta(x)
    np.testing.assert_allclose(y, -2.692301844134071)
    np.testing.assert_allclose(
        tape.gradient(y, x), np.subtract([-1.96351003, 0.42278434, 0.92278434], 1.611093), atol=1e-5
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least one axis"):
        tf.math.lbeta(2.0)


def test_nextafter():
    np.testing.assert_array_equal(tf.math.nextafter(f64(1.0), f64(2.0)), [np.nextafter(1.0, 2.0)])
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.math.nextafter(tf.constant(1, tf.int32), 2)


def test_gamma_family_beside_its_poles():
    """Near 0 and the negative integers digamma is -1 / distance, to the last digits."""
    for x in (1e-20, 1e-300, 1e-5):
        np.testing.assert_allclose(
            tf.math.digamma(f64(-x, x)), [1 / x - np.euler_gamma, -1 / x - np.euler_gamma]
        )
    x = f64(-1e-20, -1e-8, -3 - 2**-40)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.math.lgamma(x)
    np.testing.assert_allclose(
        tape.gradient(y, x), [1e20, 1e8 - np.euler_gamma, 2.0**40 + 1.2561176684319], rtol=1e-14
    )


def test_scaled_bessel_functions_far_out():
    x = f64(1e8, 1e15, 1e30, 1e300)
    expected = np.sqrt(np.pi / 2 / x.numpy())
    for name in ("bessel_k0e", "bessel_k1e"):
        np.testing.assert_allclose(getattr(tf.math.special, name)(x), expected, rtol=1e-8)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_xlogy_in_16_bits_rounds_the_logarithm_first(dtype):
    """As TensorFlow does: log in float, rounded to 16 bits, then the product."""
    rng = np.random.default_rng(3)
    x, y = (tf.cast(tf.constant(rng.uniform(0.1, 3, 200)), dtype) for _ in range(2))
    for function, log in ((tf.math.xlogy, tf.math.log), (tf.math.xlog1py, tf.math.log1p)):
        rounded = x * tf.cast(log(tf.cast(y, tf.float32)), dtype)
        np.testing.assert_array_equal(tf.cast(function(x, y), tf.float32), tf.cast(rounded, tf.float32))


@pytest.mark.parametrize("dtype, rtol", [("complex64", 2e-6), ("complex128", 1e-14)])
def test_complex_log1p_far_from_zero(dtype, rtol):
    z = np.array([-1 + 1e-4j, -1 - 1e-7j, 3e19 + 3e19j, -3 + 0j, 2, 0.1 + 0.2j, -0.4 + 0.1j], dtype)
    expected = np.log(1 + z.astype(np.complex128)).astype(dtype)
    np.testing.assert_allclose(tf.math.log1p(tf.constant(z)).numpy(), expected, rtol=rtol)
    tiny = np.array([1e-20 + 1e-20j, 1e-10 - 1e-12j], dtype)
    np.testing.assert_allclose(tf.math.log1p(tf.constant(tiny)).numpy(), tiny, rtol=1e-6)


@pytest.mark.parametrize("dtype, rtol, far", [("complex64", 2e-6, 100.0), ("complex128", 1e-14, 800.0)])
def test_complex_expm1_where_it_overflows(dtype, rtol, far):
    z = np.array([far + 1j, far + 2j, far, far - 1j], dtype)
    out = tf.math.expm1(tf.constant(z)).numpy()
    np.testing.assert_array_equal(out.real, [np.inf, -np.inf, np.inf, np.inf])
    np.testing.assert_array_equal(out.imag, [np.inf, np.inf, 0, -np.inf])
    z = np.array([50 + 3j, 3, -100 + 1j, 1e-3 + 2j, 80 + 0.5j], dtype)
    expected = np.exp(z.astype(np.complex128)) - 1
    np.testing.assert_allclose(tf.math.expm1(tf.constant(z)).numpy(), expected, rtol=rtol, atol=1e-30)


def normal_tail(x):
    """The normal distribution below -x, for x from 3 on, in 50 digits: Laplace's continued fraction."""
    fraction = x
    for k in range(300, 0, -1):
        fraction = x + k / fraction
    pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494")
    return (-x * x / 2).exp() / (2 * pi).sqrt() / fraction


def test_gelu_of_float64_far_below_0():
    xs = np.random.RandomState(5).uniform(-37, -3, 300)
    got = tf.nn.gelu(tf.constant(xs)).numpy()
    with localcontext(prec=50):
        exact = [Decimal(x) * normal_tail(-Decimal(x)) for x in xs]
        off = [
            abs(Decimal(g) - e) / Decimal(np.spacing(abs(float(e)))) for g, e in zip(got, exact, strict=True)
        ]
    assert max(off) < 5
