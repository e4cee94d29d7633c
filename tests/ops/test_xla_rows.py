"""Rows of the op table on XLA, beyond their samples: edges of types, long tails, random numbers, and errors."""

from importlib.util import find_spec

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.ops.table import TABLE

NEEDS_JAX = pytest.mark.skipif(
    find_spec("jax") is None, reason='JAX is not installed: pip install "gradtape[xla]"'
)


@NEEDS_JAX
def test_lowerings_exist():
    from gradtape._src.engines.xla.lowering import named

    for row in TABLE.values():
        if row.xla:
            assert callable(named(row.xla)), row.name


def same(function, *operands, digits=None):
    """Compares a function natively and on XLA; `digits` of floats, all of them if None."""
    expected, actual = (tf.nest.flatten(f(*operands)) for f in (function, _on_xla(function)))
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        assert (a.dtype, a.shape) == (e.dtype, e.shape)
        wide = [x.numpy().astype(np.float32) if x.dtype == tf.bfloat16 else x.numpy() for x in (a, e)]
        if digits is None:
            np.testing.assert_array_equal(*wide)
        else:
            np.testing.assert_allclose(*wide, rtol=10.0**-digits, atol=10.0**-digits)


def _on_xla(function):
    return tf.function(function, jit_compile=True)


# ---- errors ----

INTS = tf.constant([4, 0, 3])
LOGITS = tf.zeros([4, 2, 3])
LENGTHS = tf.constant([2, 1])
LABELS = tf.constant([[1, 2], [2, 0]])
REFUSED = {
    "floordiv": (lambda x: 7 // x, (INTS,), "Integer division by zero"),
    "floormod": (lambda x: 7 % x, (INTS,), "Integer division by zero"),
    "truncatediv": (lambda x: tf.truncatediv(7, x), (INTS,), "Integer division by zero"),
    "uniform": (
        lambda n: tf.random.stateless_uniform([2], [1, 2], 5, n, tf.int32), (tf.constant(5),), "minval < maxval",
    ),
    "ctc labels": (lambda x: tf.nn.ctc_loss(x, LOGITS, LENGTHS, tf.constant([4, 3])), (LABELS + 2,), r"labels\[0,0\] = 3"),
    "ctc lengths": (lambda n: tf.nn.ctc_loss(LABELS, LOGITS, LENGTHS, n), (tf.constant([4, 5]),), r"logit_length\[1\] = 5"),
}  # fmt: skip


@NEEDS_JAX
@pytest.mark.parametrize(("function", "operands", "words"), REFUSED.values(), ids=REFUSED)
def test_refused(function, operands, words):
    for call in (function, _on_xla(function)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            call(*operands)


# ---- types ----


@NEEDS_JAX
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64, np.uint64])
def test_casts_of_numbers_out_of_range(dtype):
    if np.issubdtype(dtype, np.floating):
        x = np.array([np.nan, np.inf, -np.inf, 300.7, -300.7, 1e10, -1e20, 2.9, -0.5, 0.0], dtype)
    else:
        x = np.array([0, 1, 300, 2**40 + 5, 2**63 - 1, np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    names = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 bool float16 bfloat16 float32 complex64"
    same(lambda x: [tf.cast(x, name) for name in names.split()], tf.constant(x))


@NEEDS_JAX
def test_casts_of_complex_numbers():
    same(
        lambda x: [tf.cast(x, t) for t in (tf.float32, tf.bool, tf.complex128)], tf.constant([1 + 2j, 3j, 0])
    )


@NEEDS_JAX
def test_bitcasts():
    types = tf.uint8, tf.float32, tf.int64, tf.complex64
    same(lambda x: [tf.bitcast(x, t) for t in types], tf.constant([[1, 2], [3, -4]]))
    same(lambda x: [tf.bitcast(x, t) for t in types], tf.constant([1 + 2j, 3]))


@NEEDS_JAX
def test_integers_wrap():
    def functions(x):
        return [
            tf.reduce_sum(x), tf.reduce_prod(x), tf.reduce_mean(x), tf.reduce_sum(x * x), x + x, -x, abs(x), x**3,
            x // tf.constant(-1, tf.int8), x // tf.constant(7, tf.int8), x % tf.constant(-7, tf.int8),
            tf.truncatediv(x, tf.constant(-1, tf.int8)), tf.truncatemod(x, tf.constant(7, tf.int8)),
            tf.bitwise.left_shift(x, x), tf.bitwise.right_shift(x, x),
        ]  # fmt: skip

    same(functions, tf.constant([-128, 127, 100, -3, 9, -1, 8, 2], tf.int8))


# ---- not numbers, and nothing ----


@NEEDS_JAX
def test_not_numbers():
    x = tf.constant(
        [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -4.0]
    )  # quotients are exact, in any order of steps
    y = x[:, None]

    def functions(x, y):
        return [
            tf.maximum(x, y), tf.minimum(x, y), tf.clip_by_value(x, -2.0, np.nan), x // y, x % y, tf.truncatemod(x, y),
            tf.math.divide_no_nan(x, y), tf.math.multiply_no_nan(x, y), tf.sign(x), tf.nn.relu(x), tf.round(x),
            tf.math.xdivy(x, y), tf.argmax(x), tf.argmin(x), tf.reduce_max(x), tf.reduce_logsumexp(x),
            tf.reduce_logsumexp(tf.stack([x, -x]), 0), tf.math.is_inf(x), x < y, x == y,
        ]  # fmt: skip

    same(functions, x, y)
    same(lambda x, y: [tf.pow(x, y), tf.math.xlogy(x, y), tf.nn.gelu(x), tf.nn.silu(x)], x, y, digits=6)


@NEEDS_JAX
def test_nothing():
    def functions(x):
        reductions = tf.reduce_sum, tf.reduce_prod, tf.reduce_max, tf.reduce_min, tf.reduce_logsumexp
        return [f(x, 0) for f in reductions] + [tf.signal.fft(tf.complex(x, x)), tf.math.lgamma(x)]

    same(functions, tf.zeros([0, 3]))


# ---- special functions ----

TAILS = np.array(
    [0.0, -0.0, 1e-30, 0.3, 1, 1.6, 2, 5, 7, 12.5, 19.9, 20.1, 39, 41, 700, 1e5, 1e9, np.inf, np.nan]
)
UNARY = (
    "lgamma digamma erfinv erfcinv ndtri dawsn expint spence fresnel_cos fresnel_sin bessel_i0 bessel_i0e bessel_i1 "
    "bessel_i1e bessel_j0 bessel_j1 bessel_k0 bessel_k0e bessel_k1 bessel_k1e bessel_y0 bessel_y1"
).split()
BINARY = "polygamma zeta igamma igammac igamma_grad_a1 igamma_grad_a2 gamma_sample_grad".split()


@NEEDS_JAX
@pytest.mark.parametrize("names", [UNARY[:11], UNARY[11:]], ids=["integrals", "bessel"])
def test_special_functions_of_one_operand(names):
    x = np.concatenate([TAILS, -TAILS, np.linspace(-3, 3, 61), np.linspace(-30, 30, 97)])
    same(lambda x: [TABLE[name].op(x) for name in names], tf.constant(x), digits=11)


@NEEDS_JAX
@pytest.mark.parametrize("names", [BINARY[:2], BINARY[2:]], ids=["zeta", "igamma"])
def test_special_functions_of_two_operands(names):
    parameters = [0.0, 0.02, 1, 2, 3.5, 9, 60, 1e4, np.nan, -1]
    if names != BINARY[:2]:
        parameters.append(np.inf)
    a, x = np.meshgrid(parameters, [*TAILS, 1e4, 1.02e4, -0.3, -2, -70.3])
    same(lambda a, x: [TABLE[name].op(a, x) for name in names], tf.constant(a), tf.constant(x), digits=10)


# ---- random numbers ----

STREAM = tf.constant([87654321, 5, -3], tf.int64)


@NEEDS_JAX
@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64])
def test_random_floats(dtype):
    def functions(stream):
        names = "random_uniform", "random_normal", "truncated_normal"
        return [TABLE[name].op(stream, shape=[3, 31], dtype=dtype) for name in names]

    same(functions, STREAM, digits={tf.float16: 3, tf.bfloat16: 2, tf.float32: 5, tf.float64: 13}[dtype])


@NEEDS_JAX
def test_uniform_floats_have_the_same_bits():
    same(
        lambda stream: [
            TABLE["random_uniform"].op(stream, shape=[1001], dtype=t) for t in ("float32", "float64")
        ],
        STREAM,
    )


@NEEDS_JAX
def test_random_integers():
    def functions(stream):
        bits = [
            TABLE["random_bits"].op(stream, shape=[9], dtype=t)
            for t in ("int32", "uint32", "int64", "uint64")
        ]
        low, high = (tf.constant(x, tf.int64) for x in (-(2**62), 2**62 + 7))
        wide = TABLE["random_uniform_int"].op(low, high, stream, shape=[50], dtype="int64")
        return [*bits, wide, TABLE["random_shuffle_perm"].op(stream, n=300)]

    same(functions, STREAM)


@NEEDS_JAX
def test_random_classes():
    logits = np.random.default_rng(0).normal(size=(6, 40)).astype(np.float32)
    logits[0, 3], logits[1, :39], logits[2] = np.nan, -np.inf, np.inf
    same(lambda x, s: TABLE["categorical"].op(x, s, num_samples=200), tf.constant(logits), STREAM)


@NEEDS_JAX
def test_random_numbers_by_rejection():
    alpha = tf.constant([0.01, 0.5, 1.0, 1.5, 30.0, 1e6, 0.0, -1.0, np.inf, np.nan], tf.float64)
    rates = tf.constant([0.0, 0.3, 9.9, 10.0, 40.0, 1e4, -1.0, 1e12])
    counts = tf.constant([10.0, 1000.0, 1e6, 50.0, 0.0, 7.0, 7.0, np.nan, 200.0])
    probs = tf.constant([0.5, 0.02, 0.97, 0.5, 0.5, 0.0, 1.0, 0.5, 0.04])

    def functions(alpha, rates, counts, probs, stream):
        return [
            TABLE["random_gamma"].op(alpha, stream, shape=[40]),
            TABLE["random_gamma"].op(tf.cast(alpha, "float32"), stream, shape=[]),
            TABLE["random_poisson"].op(rates, stream, shape=[40], dtype="int32"),
            TABLE["random_poisson"].op(rates, stream, shape=[3, 2], dtype="float16"),
            TABLE["random_binomial"].op(counts, probs, stream, shape=[40], dtype="float64"),
        ]

    same(functions, alpha, rates, counts, probs, STREAM, digits=11)
