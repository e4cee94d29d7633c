"""Factorisations and linear systems: what the contract test of the rows does not cover. Numbers called
TensorFlow's come from TensorFlow 2.21."""

import numpy as np
import pytest

import gradtape as tf
from gradtape import _core
from gradtape._src.ops.table import TABLE
from gradtape.errors import InvalidArgumentError

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4)) + 4 * np.eye(4)
S = A @ A.T
C = A + 1j * RNG.normal(size=(4, 4))
H = C @ C.conj().T


def gradients(f, *values):
    values = [tf.constant(v) for v in values]
    with tf.GradientTape() as tape:
        tape.watch(values)
        y = f(*values)
    return [None if g is None else g.numpy() for g in tape.gradient(y, values)]


def close(actual, expected, tolerance=1e-9):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


# ---- Cholesky ----


def test_cholesky_reads_the_lower_triangle_alone():
    x = np.array([[4.0, 99.0], [2.0, 5.0]])
    close(tf.linalg.cholesky(x), [[2.0, 0.0], [1.0, 2.0]])


def test_gradient_of_cholesky_is_symmetric_as_in_tensorflow():
    (g,) = gradients(tf.linalg.cholesky, np.array([[2.0, 1.0], [1.0, 3.0]]))
    close(g, [[0.25583364, 0.19543951], [0.19543951, 0.31622777]], 1e-7)


@pytest.mark.parametrize("n", [2, 12, 13, 70])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_cholesky_of_all_sizes(n, dtype):
    x = RNG.normal(size=(3, n, n)) + (1j * RNG.normal(size=(3, n, n)) if np.dtype(dtype).kind == "c" else 0)
    x = (x @ np.conj(np.swapaxes(x, -1, -2)) + n * np.eye(n)).astype(dtype)
    low = tf.linalg.cholesky(x).numpy()
    assert low.dtype == dtype and np.all(np.triu(low, 1) == 0)
    np.testing.assert_allclose(low @ np.conj(np.swapaxes(low, -1, -2)), x, rtol=1e-4, atol=1e-4 * n)


@pytest.mark.parametrize("n", [3, 40])
def test_cholesky_of_an_indefinite_matrix(n):
    x = -np.eye(n, dtype=np.float32)
    with pytest.raises(InvalidArgumentError, match="Cholesky decomposition was not successful"):
        tf.linalg.cholesky(x)
    with pytest.raises(InvalidArgumentError, match="Cholesky decomposition was not successful"):
        tf.function(tf.linalg.cholesky)(tf.constant(x))
    batch = np.stack([np.eye(n, dtype=np.float32), x])
    with pytest.raises(InvalidArgumentError):
        tf.linalg.cholesky(batch)


@pytest.mark.parametrize("n", [3, 40])
def test_cholesky_passes_nan_on(n):
    x = np.eye(n)
    x[0, 0] = np.nan
    assert np.isnan(tf.linalg.cholesky(x).numpy()).any()


def test_cholesky_solve_and_logdet():
    b = RNG.normal(size=(4, 2))
    close(tf.linalg.cholesky_solve(tf.linalg.cholesky(S), b), np.linalg.solve(S, b))
    close(tf.linalg.logdet(S), np.linalg.slogdet(S)[1])
    out = tf.linalg.logdet(H)
    assert out.dtype is tf.float64
    close(out, np.linalg.slogdet(H)[1])
    close(gradients(tf.linalg.logdet, S)[0], np.linalg.inv(S))


# ---- LU ----


def test_lu_factors():
    x = np.array([[0.0, 1.0, 2.0], [2.0, 3.0, 1.0], [4.0, 1.0, 1.0]])
    out = tf.linalg.lu(x)
    low, up = np.tril(out.lu, -1) + np.eye(3), np.triu(out.lu)
    close(low @ up, x[out.p.numpy()])
    assert out.p.dtype is tf.int32 and tf.linalg.lu(x, tf.int64).p.dtype is tf.int64
    close(tf.linalg.lu_reconstruct(*out), x)
    close(tf.linalg.lu_matrix_inverse(*out), np.linalg.inv(x))


def test_lu_solve_broadcasts_and_has_gradients():
    b = RNG.normal(size=(3, 4, 1))
    close(tf.linalg.lu_solve(*tf.linalg.lu(A), b), np.linalg.solve(A, b))
    mine = gradients(lambda a, y: tf.linalg.lu_solve(*tf.linalg.lu(a), y), A, b[0])
    true = gradients(tf.linalg.solve, A, b[0])
    for g, e in zip(mine, true, strict=True):
        close(g, e)


def test_lu_of_wrong_arguments():
    factors, perm = tf.linalg.lu(A)
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        tf.linalg.lu_solve(factors, perm, np.ones(4))
    with pytest.raises(InvalidArgumentError, match="as many rows"):
        tf.linalg.lu_solve(factors, perm, np.ones((3, 1)))
    with pytest.raises(ValueError, match="square"):
        tf.linalg.lu_reconstruct(np.ones((2, 3)), perm)
    with pytest.raises(ValueError, match="one permutation"):
        tf.linalg.lu_reconstruct(factors, perm[:2])


# ---- QR ----


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3)])
@pytest.mark.parametrize("full", [False, True])
def test_qr(shape, full):
    x = RNG.normal(size=shape) + 1j * RNG.normal(size=shape)
    out = tf.linalg.qr(x, full_matrices=full)
    close(tf.matmul(out.q, out.r), x)
    k = out.q.shape[-1]
    close(tf.matmul(out.q, out.q, adjoint_a=True), np.broadcast_to(np.eye(k), (*shape[:-2], k, k)))
    assert np.allclose(np.tril(out.r.numpy(), -1), 0)


def test_qr_has_no_gradient_of_extra_columns():
    x = tf.constant(RNG.normal(size=(4, 2)))
    with tf.GradientTape() as tape:
        tape.watch(x)
        q, _ = tf.linalg.qr(x, full_matrices=True)
    with pytest.raises(NotImplementedError, match="QrGrad not implemented when nrows > ncols"):
        tape.gradient(q, x)


# ---- systems ----


def test_solve_in_a_function_and_with_many_right_sides():
    b = RNG.normal(size=(4, 300)).astype(np.float32)
    a = A.astype(np.float32)
    np.testing.assert_allclose(
        tf.function(tf.linalg.solve)(a, b), np.linalg.solve(a, b), rtol=1e-3, atol=1e-4
    )


def test_jacobian_of_solve_folds_right_sides_into_columns():
    b = tf.constant(RNG.normal(size=(4, 2)))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(b)
        x = tf.linalg.solve(A, b)
        y = tf.linalg.triangular_solve(A, b)
    close(tape.jacobian(x, b), np.einsum("ij,kl->ikjl", np.linalg.inv(A), np.eye(2)))
    close(tape.jacobian(y, b), np.einsum("ij,kl->ikjl", np.linalg.inv(np.tril(A)), np.eye(2)))


def test_vectorized_map_over_matrices_and_right_sides():
    a = np.stack([A, A.T, 2 * A])
    b = RNG.normal(size=(3, 4, 2))
    close(tf.vectorized_map(lambda m: tf.linalg.solve(m, b[0]), tf.constant(a)), np.linalg.solve(a, b[0]))
    close(tf.vectorized_map(lambda y: tf.linalg.solve(A, y), tf.constant(b)), np.linalg.solve(A, b))
    both = tf.vectorized_map(
        lambda p: tf.linalg.triangular_solve(p[0], p[1]), (tf.constant(a), tf.constant(b))
    )
    close(both, np.linalg.solve(np.tril(a), b))
    close(tf.vectorized_map(tf.linalg.inv, tf.constant(a)), np.linalg.inv(a))


def test_wide_triangular_systems_are_cut_for_threads():
    a = (np.tril(RNG.normal(size=(130, 130))) + 20 * np.eye(130)).astype(np.float32)
    b = RNG.normal(size=(130, 777)).astype(np.float32)
    for adjoint in (False, True):
        expected = np.linalg.solve(a.T if adjoint else a, b)
        np.testing.assert_allclose(
            tf.linalg.triangular_solve(a, b, adjoint=adjoint), expected, rtol=1e-3, atol=1e-4
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize(("n", "k"), [(8, 3), (9, 1), (40, 130), (128, 16), (129, 200), (200, 128)])
def test_systems_and_inverses_of_all_sizes(n, k, batch, dtype):
    """Small ones are solved here, larger ones by LAPACK, and many rows of a single matrix in several parts."""
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=(*batch, n, n)) + n * np.eye(n), rng.normal(size=(*batch, n, k))
    if np.issubdtype(dtype, np.complexfloating):
        a, b = a + 1j * rng.normal(size=a.shape), b + 1j * rng.normal(size=b.shape)
    a[..., [0, -1], :] = a[..., [-1, 0], :]  # so that rows must change places
    tolerance = 1e-5 if np.finfo(dtype).bits == 32 else 1e-12
    for adjoint in (False, True):
        matrix = np.conj(np.swapaxes(a, -1, -2)) if adjoint else a
        close(
            tf.linalg.solve(a.astype(dtype), b.astype(dtype), adjoint), np.linalg.solve(matrix, b), tolerance
        )
        close(tf.linalg.inv(a.astype(dtype), adjoint), np.linalg.inv(matrix), tolerance)


def test_the_parts_of_a_large_inverse_are_the_same_on_any_number_of_threads():
    a = np.random.default_rng(1).normal(size=(300, 300)) + 30 * np.eye(300)
    before, got = _core.num_threads(), []
    try:
        for threads in (1, 2, 3):
            _core.set_num_threads(threads)
            got.append((tf.linalg.inv(a).numpy(), tf.linalg.solve(a, a.T, True).numpy()))
    finally:
        _core.set_num_threads(before)
    for inverse, solution in got[1:]:
        assert (inverse == got[0][0]).all()
        assert (solution == got[0][1]).all()


def test_a_large_matrix_without_an_inverse():
    a = np.ones((200, 200))
    for call in (lambda: tf.linalg.inv(a), lambda: tf.linalg.solve(a, a)):
        with pytest.raises(InvalidArgumentError, match="not invertible"):
            call()


def test_determinants_neither_overflow_nor_underflow_on_the_way():
    x = np.diag([1e30, 1e30, 1e-30, 1e-30]).astype(np.float32)
    assert tf.linalg.det(x).numpy() == pytest.approx(1.0, rel=1e-5)
    big = tf.linalg.slogdet(np.eye(200) * 1e10)
    assert big.sign.numpy() == 1 and big.log_abs_determinant.numpy() == pytest.approx(200 * np.log(1e10))
    assert np.isinf(tf.linalg.det(np.eye(200) * 1e10).numpy())
    assert tf.linalg.slogdet(np.ones((2, 2))).log_abs_determinant.numpy() == -np.inf


def test_slogdet_of_complex_matrices_is_complex():
    out = tf.linalg.slogdet(C)
    sign, log = np.linalg.slogdet(C)
    assert out.log_abs_determinant.dtype is tf.complex128
    close(out.sign, sign)
    close(out.log_abs_determinant, log)


def test_gradient_of_det_needs_the_inverse():
    x = tf.constant([[1.0, 2.0], [2.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.linalg.det(x)
    with pytest.raises(InvalidArgumentError, match="not invertible"):
        tape.gradient(y, x)


# ---- least squares ----


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
@pytest.mark.parametrize("fast", [True, False])
def test_lstsq(shape, fast):
    a, b = RNG.normal(size=shape), RNG.normal(size=(shape[0], 2))
    close(tf.linalg.lstsq(a, b, fast=fast), np.linalg.lstsq(a, b, rcond=None)[0], 1e-7)


def test_lstsq_of_a_matrix_without_full_rank():
    close(tf.linalg.lstsq(np.ones((3, 2)), np.ones((3, 1)), fast=False), [[0.5], [0.5]])
    with pytest.raises(InvalidArgumentError):
        tf.linalg.lstsq(np.ones((3, 2)), np.ones((3, 1)))
    close(tf.linalg.lstsq(np.ones((3, 2)), np.ones((3, 1)), l2_regularizer=0.1), [[0.49180328]] * 2, 1e-7)


def test_both_ways_of_lstsq_have_the_same_gradients():
    a, b = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 2))
    quick = gradients(lambda x, y: tf.linalg.lstsq(x, y), a, b)
    slow = gradients(lambda x, y: tf.linalg.lstsq(x, y, fast=False), a, b)
    for g, e in zip(quick, slow, strict=True):
        close(g, e, 1e-7)


def test_pinv():
    x = RNG.normal(size=(2, 5, 3))
    close(tf.linalg.pinv(x), np.linalg.pinv(x))
    close(tf.linalg.pinv(np.ones((3, 2))), np.full((2, 3), 1 / 6))
    close(tf.linalg.pinv(np.diag([1.0, 0.4]), rcond=0.5), np.diag([1.0, 0.0]))
    close(tf.linalg.pinv(np.stack([np.diag([1.0, 0.4])] * 2), rcond=[0.5, 0.1])[1], np.diag([1.0, 2.5]))
    with pytest.raises(TypeError, match="`float`-like"):
        tf.linalg.pinv(np.ones((3, 2), np.int32))
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        tf.linalg.pinv(np.ones(3))


# ---- banded ----


def test_tridiagonal_forms():
    dense = np.array([[4.0, 1.0, 0.0], [2.0, 5.0, 1.5], [0.0, 3.0, 6.0]])
    above, main, below = np.array([1.0, 1.5, 0.0]), np.array([4.0, 5.0, 6.0]), np.array([0.0, 2.0, 3.0])
    b = RNG.normal(size=(3, 2))
    x = np.linalg.solve(dense, b)
    close(tf.linalg.tridiagonal_solve(np.stack([above, main, below]), b), x)
    close(tf.linalg.tridiagonal_solve([above, main, below], b, diagonals_format="sequence"), x)
    close(tf.linalg.tridiagonal_solve([above[:2], main, below[1:]], b, diagonals_format="sequence"), x)
    close(tf.linalg.tridiagonal_solve(dense, b, diagonals_format="matrix"), x)
    close(tf.linalg.tridiagonal_solve(np.stack([above, main, below]), b[:, 0]), x[:, 0])
    close(tf.linalg.tridiagonal_solve(dense, b.T, diagonals_format="matrix", transpose_rhs=True), x)
    close(tf.linalg.tridiagonal_matmul(dense, b, diagonals_format="matrix"), dense @ b)
    close(tf.linalg.tridiagonal_solve(np.array([[7.0]]), [[14.0]], diagonals_format="matrix"), [[2.0]])


def test_tridiagonal_needs_pivots():
    dense = np.array([[0.0, 1.0], [1.0, 0.0]])
    close(tf.linalg.tridiagonal_solve(dense, np.array([1.0, 2.0]), diagonals_format="matrix"), [2.0, 1.0])
    without = tf.linalg.tridiagonal_solve(
        dense, np.array([1.0, 2.0]), diagonals_format="matrix", partial_pivoting=False
    )
    assert not np.isfinite(without.numpy()).all()
    assert np.isnan(tf.linalg.tridiagonal_solve(np.zeros((3, 3)), np.ones(3)).numpy()).all()
    huge = tf.linalg.tridiagonal_solve(np.zeros((3, 3)), np.ones(3), perturb_singular=True).numpy()
    assert np.isfinite(huge).all() and (huge > 1e300).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tf.linalg.tridiagonal_solve(np.zeros((2, 3)), np.ones(3)), "Expected 3 diagonals got 2"),
        (lambda: tf.linalg.tridiagonal_solve(np.zeros((3, 3)), np.ones(4)), "got 3 and 4"),
        (
            lambda: tf.linalg.tridiagonal_solve(np.zeros((3, 3)), np.ones(3), diagonals_format="x"),
            "Unrecognized",
        ),
        (
            lambda: tf.linalg.tridiagonal_solve(np.zeros((3, 3)), np.ones((2, 3, 1))),
            "rank of rhs to be 1 or 2",
        ),
    ],
)
def test_tridiagonal_of_wrong_arguments(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_banded_triangular_solve():
    bands = np.array([[2.0, 3.0, 4.0], [9.0, 1.0, 1.0]])
    close(tf.linalg.banded_triangular_solve(bands, np.ones((3, 1)))[:, 0], [0.5, 1 / 6, 5 / 24])
    close(tf.linalg.banded_triangular_solve(bands, np.ones((3, 1)), adjoint=True)[:, 0], [0.375, 0.25, 0.25])
    upper = np.array([[1.0, 1.0, 9.0], [2.0, 3.0, 4.0]])
    close(tf.linalg.banded_triangular_solve(upper, np.ones((3, 1)), lower=False)[:, 0], [0.375, 0.25, 0.25])


# ---- types ----


@pytest.mark.parametrize(
    "name", ["cholesky", "inv", "det", "qr", "svd", "eigh", "eig", "lu", "expm", "sqrtm"]
)
def test_integers_are_refused(name):
    with pytest.raises(InvalidArgumentError, match="not defined for int32"):
        getattr(tf.linalg, name)(np.eye(2, dtype=np.int32))


def test_only_known_functions_have_a_tangent():
    for function in (0.0, "sin", None):
        with pytest.raises(ValueError, match="matrix_function_tangent: expected function to be one of"):
            TABLE["matrix_function_tangent"].op(tf.eye(2), tf.eye(2), function)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("n", [2, 8])  # larger ones are LAPACK's, which has complex numbers overflow here
def test_pivots_whose_reciprocal_is_no_number(dtype, n):
    tiny = np.finfo(dtype).smallest_subnormal * 64
    a = np.eye(n, dtype=dtype)
    a[0, 0] = tiny
    b = np.full((n, 1), 2, dtype)
    b[0] = tiny
    np.testing.assert_allclose(tf.linalg.solve(a, b), np.where(np.arange(n) == 0, 1, 2)[:, None], rtol=1e-6)
    np.testing.assert_allclose(tf.linalg.solve(a, b, adjoint=True)[0, 0], 1, rtol=1e-6)
    np.testing.assert_allclose(tf.linalg.det(a), tiny)
