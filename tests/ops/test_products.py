"""Products of float32, float16 and bfloat16: summed in float32 and rounded once, with any instructions of the processor;
products of int8 in int32."""

import os
import subprocess
import sys

import numpy as np
import pytest

import gradtape as tf
from gradtape.backend import einsum_of_bytes

FORMATS = (tf.float32, tf.bfloat16, tf.float16)
SIGNIFICANT = {tf.float32: 24, tf.bfloat16: 8, tf.float16: 11}  # bits


def matrix(rng, dtype, *shape):
    return tf.cast(rng.normal(size=shape).astype(np.float32), dtype)


def wide(x):
    return tf.cast(x, tf.float64).numpy()


def close(actual, a, b, dtype, product=np.matmul):
    """The rounding of the result, and that of a sum in float32: k steps of at most 2^-24 of the sum of absolute values."""
    assert actual.dtype is dtype
    exact, absolute = product(a, b), product(abs(a), abs(b))
    k = a.shape[-1]
    bound = abs(exact) * 2.0 ** -SIGNIFICANT[dtype] + absolute * (k + 8) * 2.0**-23 + 2.0**-25
    error = abs(wide(actual) - exact)
    assert actual.shape == exact.shape
    assert (error <= bound).all(), (error / bound).max()


# Around the sides of register tiles (6 rows, 16 and 64 columns), blocks (192 rows, 512 columns, 384 terms) and pairs,
# and of those that stay with OpenBLAS.
SIZES = [
    (1, 1, 1), (1, 64, 7), (2, 16, 2), (5, 15, 3), (6, 17, 8), (7, 33, 31), (13, 63, 33), (12, 65, 64), (96, 48, 65),
    (97, 129, 383), (101, 70, 385), (193, 66, 769),
    (400, 600, 500), (1000, 20, 9), (24, 600, 100), (300, 3, 40), (3, 20, 1500), (200, 200, 1025), (130, 1100, 18),
]  # fmt: skip


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)
@pytest.mark.parametrize("m, n, k", SIZES)
def test_products_of_all_sizes_and_transposes(dtype, m, n, k):
    rng = np.random.default_rng(0)
    a, b = matrix(rng, dtype, m, k), matrix(rng, dtype, k, n)
    for ta in (False, True):
        for tb in (False, True):
            x, y = tf.transpose(a) if ta else a, tf.transpose(b) if tb else b
            close(tf.matmul(x, y, transpose_a=ta, transpose_b=tb), wide(a), wide(b), dtype)


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)
@pytest.mark.parametrize(
    "left, right",
    [
        ((5, 9, 21), (5, 21, 19)), ((2, 3, 8, 16), (2, 1, 16, 70)), ((4, 7, 33), (33, 20)), ((6, 5), (3, 5, 9)),
        ((300, 4, 4), (300, 4, 4)), ((2, 130, 256), (2, 256, 300)), ((1, 3, 3), (2, 3, 3)),
    ],
)  # fmt: skip
def test_batches(dtype, left, right):
    rng = np.random.default_rng(1)
    a, b = matrix(rng, dtype, *left), matrix(rng, dtype, *right)
    close(a @ b, wide(a), wide(b), dtype)
    turned = tf.linalg.matrix_transpose(a), tf.linalg.matrix_transpose(b)
    close(tf.matmul(turned[0], b, transpose_a=True), wide(a), wide(b), dtype)
    close(tf.matmul(a, turned[1], transpose_b=True), wide(a), wide(b), dtype)


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)
def test_long_sums(dtype):
    """A gradient over a large batch: few results and many terms, which are divided between threads."""
    rng = np.random.default_rng(2)
    a, b = matrix(rng, dtype, 20001, 6), matrix(rng, dtype, 20001, 70)
    close(tf.matmul(a, b, transpose_a=True), wide(a).T, wide(b), dtype)


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)
def test_sums_are_in_float32(dtype):
    """4096 ones in a 16-bit sum would stop at 256 or 2048."""
    ones = tf.ones([7, 5001], dtype)
    expected = tf.cast(tf.cast(5001.0, dtype), tf.float64).numpy()
    assert (wide(tf.matmul(ones, ones, transpose_b=True)) == expected).all()


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)
@pytest.mark.parametrize("m, n, k", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)])
def test_products_without_elements(dtype, m, n, k):
    y = tf.zeros([m, k], dtype) @ tf.zeros([k, n], dtype)
    assert y.shape == (m, n)
    assert (wide(y) == 0).all()


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)
@pytest.mark.parametrize("n", [3, 16, 70])
def test_special_values(dtype, n):
    """Non-finite values stay in their rows and columns, also at the ends of panels."""
    a = np.ones([n, n], np.float32)
    b = np.ones([n, n], np.float32)
    a[1, n - 1], b[n - 1, 2] = np.inf, np.nan
    y = wide(tf.cast(a, dtype) @ tf.cast(b, dtype))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(y, a.astype(np.float64) @ b)
    a[1, 0] = -np.inf  # inf - inf
    assert np.isnan(wide(tf.cast(a, dtype) @ tf.ones([n, n], dtype))[1]).all()


def test_overflow_is_infinite():
    x = tf.constant([[3e38, 3e38]], tf.bfloat16)
    assert wide(tf.matmul(x, x, transpose_b=True)) == np.inf
    assert wide(tf.matmul(x, -x, transpose_b=True)) == -np.inf
    y = tf.constant([[60000.0, 60000.0]], tf.float16)
    assert wide(tf.matmul(y, tf.ones_like(y), transpose_b=True)) == np.inf


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)
def test_gradients_are_products(dtype):
    rng = np.random.default_rng(3)
    a, b, g = matrix(rng, dtype, 4, 9, 70), matrix(rng, dtype, 70, 33), matrix(rng, dtype, 4, 9, 33)
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        y = tf.matmul(a, b)
    ga, gb = tape.gradient(y, [a, b], output_gradients=g)
    close(ga, wide(g), wide(b).T, dtype)
    close(gb, wide(a).reshape(-1, 70).T, wide(g).reshape(-1, 33), dtype)


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)
def test_einsum_and_tensordot(dtype):
    rng = np.random.default_rng(4)
    q, k = matrix(rng, dtype, 2, 7, 3, 16), matrix(rng, dtype, 2, 9, 3, 16)
    scores = tf.einsum("bqhd,bkhd->bhqk", q, k)
    close(scores, wide(q).transpose(0, 2, 1, 3), wide(k).transpose(0, 2, 3, 1), dtype)
    x, w = matrix(rng, dtype, 2, 5, 20), matrix(rng, dtype, 20, 18)
    close(tf.tensordot(x, w, 1), wide(x), wide(w), dtype)


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)
def test_the_number_of_threads_does_not_matter(dtype):
    rng = np.random.default_rng(5)
    pairs = [
        (matrix(rng, dtype, 300, 700), matrix(rng, dtype, 700, 600)),
        (matrix(rng, dtype, 8, 60, 64), matrix(rng, dtype, 8, 64, 200)),
        (matrix(rng, dtype, 5, 9000), matrix(rng, dtype, 9000, 7)),
    ]
    found = []
    before = tf.config.threading.get_intra_op_parallelism_threads()
    try:
        for threads in (1, 2, 3):
            tf.config.threading.set_intra_op_parallelism_threads(threads)
            found.append([wide(a @ b) for a, b in pairs])
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(before)
    for other in found[1:]:
        for x, y in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(x, y)


_BY_LEVEL = """
import numpy as np, gradtape as tf
rng = np.random.default_rng(6)
for dtype in (tf.float32, tf.bfloat16, tf.float16):
    a, b = (tf.cast(rng.integers(-8, 9, [40, 40]).astype(np.float32), dtype) for _ in range(2))
    print(tf.cast(a @ b, tf.float32).numpy().tobytes().hex())
a, b = (rng.integers(-128, 128, [40, 40]).astype(np.int8) for _ in range(2))
print(tf.matmul(a, b, output_type=tf.int32).numpy().tobytes().hex())
"""


def test_every_instruction_set_gives_the_exact_product_of_small_integers():
    """Sums of small integers are rounded only once, so processors with and without the instruction agree."""
    outputs = set()
    for level in ("2", "3", "4"):
        run = subprocess.run(
            [sys.executable, "-c", _BY_LEVEL],
            env={**os.environ, "GRADTAPE_ISA": level},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(run.stdout)
    assert len(outputs) == 1


# ---- int8, to int32 ----


@pytest.mark.parametrize("m, n, k", SIZES)
def test_products_of_bytes_are_exact(m, n, k):
    rng = np.random.default_rng(10)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (k, n)))
    expected = a.astype(np.int64) @ b.astype(np.int64)
    for ta in (False, True):
        for tb in (False, True):
            x, y = (a.T if ta else a), (b.T if tb else b)
            found = tf.matmul(x, y, transpose_a=ta, transpose_b=tb, output_type=tf.int32)
            assert found.dtype is tf.int32
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("abc,cd->abd", [(2, 5, 7), (7, 33)]),
        ("abc,cde->abde", [(2, 5, 7), (7, 3, 20)]),
        ("abde,dec->abc", [(2, 5, 3, 20), (3, 20, 17)]),
        ("aecd,abcd->acbe", [(2, 5, 3, 8), (2, 6, 3, 8)]),
        ("ab,ab->ab", [(300, 2), (300, 2)]),
        ("ab,bc->b", [(300, 4), (4, 3)]),
        ("ab->b", [(300, 4)]),
        ("ab,bc,cd->ad", [(3, 4), (4, 5), (5, 6)]),
    ],
)
def test_einsum_of_bytes_is_that_of_int32(equation, shapes):
    rng = np.random.default_rng(2)
    xs = [rng.integers(-128, 128, shape).astype(np.int8) for shape in shapes]
    wanted = np.einsum(equation, *(x.astype(np.int32) for x in xs))
    compiled = tf.function(lambda *xs: einsum_of_bytes(equation, *xs))
    for run in (lambda *xs: einsum_of_bytes(equation, *xs), compiled):
        out = run(*map(tf.constant, xs))
        assert out.dtype is tf.int32
        np.testing.assert_array_equal(out, wanted)
