"""Singular values, eigenvalues, functions of matrices and norms: what the contract test of the rows does
not cover, above all derivatives of functions that do not depend on the phases of complex vectors."""

import re

import numpy as np
import pytest

import gradtape as tf
from gradtape.errors import InvalidArgumentError
from gradtape.testing import central_differences

RNG = np.random.default_rng(1)


def normal(*shape, complex_=False):
    x = RNG.normal(size=shape)
    return x + 1j * RNG.normal(size=shape) if complex_ else x


def gradient(f, x):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x).numpy()


def check(f, x, tolerance=1e-6):
    """First and second derivatives of a real function against central differences."""
    np.testing.assert_allclose(
        gradient(f, x),
        central_differences(lambda a: float(f(tf.constant(a)).numpy()), x),
        atol=tolerance,
        rtol=tolerance,
    )
    w = normal(*x.shape, complex_=np.iscomplexobj(x))

    def slope(a):
        with tf.GradientTape() as tape:
            tape.watch(a)
            y = f(a)
        g = tape.gradient(y, a)
        return tf.reduce_sum(tf.math.real(tf.math.conj(g) * w) if np.iscomplexobj(x) else g * w)

    numeric = central_differences(lambda a: float(slope(tf.constant(a)).numpy()), x)
    np.testing.assert_allclose(gradient(slope, x), numeric, atol=10 * tolerance, rtol=10 * tolerance)


W = RNG.normal(size=(6, 6))


def weigh(x):
    """A real function of a matrix of complex numbers that treats all elements differently."""
    m, n = x.shape[-2:]
    size = tf.math.real(x * tf.math.conj(x)) if x.dtype.is_complex else x * x
    return tf.reduce_sum(size * W[:m, :n])


# ---- complex vectors ----


def self_adjoint(x):
    return x + tf.linalg.adjoint(x)


def test_eigh_of_complex_matrices():
    x = normal(4, 4, complex_=True)
    check(lambda a: weigh(tf.linalg.eigh(self_adjoint(a))[1]), x)
    check(lambda a: tf.reduce_sum(tf.math.real(tf.linalg.eigh(self_adjoint(a))[0]) * W[0, :4]), x)
    check(lambda a: tf.reduce_sum(tf.math.real(tf.linalg.eigvalsh(self_adjoint(a))) * W[0, :4]), x)


def spectral_function(a):
    """log of a positive matrix by its eigenvalues: every vector, with its phase, appears twice."""
    w, v = tf.linalg.eigh(tf.matmul(a, a, adjoint_b=True) + np.eye(4))
    return weigh(tf.matmul(v * tf.cast(tf.math.log(tf.math.real(w)), v.dtype), v, adjoint_b=True))


def test_functions_by_eigenvalues():
    check(spectral_function, normal(4, 4, complex_=True), 1e-5)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_svd_of_complex_matrices(shape):
    x = normal(*shape, complex_=True)
    check(lambda a: weigh(tf.linalg.svd(a)[1]) + weigh(tf.linalg.svd(a)[2]), x)
    check(lambda a: tf.reduce_sum(tf.linalg.svd(a)[0] * W[0, : min(shape)]), x)

    def polar(a):
        _, u, v = tf.linalg.svd(a)
        return weigh(tf.matmul(u, v, adjoint_b=True)) + tf.reduce_sum(
            tf.math.real(tf.matmul(u, v, adjoint_b=True))
        )

    check(polar, x)


def test_eig_of_complex_matrices():
    x = normal(3, 3, complex_=True)
    check(lambda a: weigh(tf.linalg.eig(a)[1]), x)
    check(lambda a: tf.reduce_sum(tf.math.real(tf.linalg.eig(a)[0] ** 3)), x)
    check(lambda a: tf.reduce_sum(tf.math.real(tf.linalg.eigvals(a) ** 3)), x)


def test_eig_of_real_matrices_with_complex_pairs():
    x = normal(4, 4) + np.diag([1.0, 2.0, 3.0, 4.0])
    x[0, 1], x[1, 0] = 5.0, -5.0
    check(lambda a: weigh(tf.linalg.eig(a)[1]), x, 1e-5)
    check(lambda a: tf.reduce_sum(tf.math.imag(tf.linalg.eigvals(a)) ** 2), x, 1e-5)


# ---- values ----


def test_decompositions_put_together_again():
    for complex_ in (False, True):
        x = normal(3, 5, 4, complex_=complex_)
        s, u, v = tf.linalg.svd(x)
        assert s.dtype is tf.float64
        np.testing.assert_allclose(
            tf.matmul(u * tf.cast(s, u.dtype)[..., None, :], v, adjoint_b=True), x, atol=1e-12
        )
        s, u, v = tf.linalg.svd(x, full_matrices=True)
        assert (s.shape, u.shape, v.shape) == ((3, 4), (3, 5, 5), (3, 4, 4))
        np.testing.assert_allclose(tf.matmul(u, u, adjoint_a=True)[0], np.eye(5), atol=1e-12)
        y = x[:, :4] + np.conj(np.swapaxes(x[:, :4], 1, 2))
        w, v = tf.linalg.eigh(y)
        assert w.dtype is v.dtype  # as in TensorFlow, complex ones of complex matrices
        np.testing.assert_allclose(tf.matmul(v * w[..., None, :], v, adjoint_b=True), y, atol=1e-12)
        w, v = tf.linalg.eig(x[:, :4])
        np.testing.assert_allclose(tf.matmul(x[:, :4].astype(complex), v), v * w[..., None, :], atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 3), (5, 2), (2, 5), (6, 6), (1, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_svd_of_many_small_matrices(shape, dtype):
    """Small matrices have a loop of their own; it leaves zero and rank-deficient ones to LAPACK."""
    x = normal(20, *shape, complex_=np.dtype(dtype).kind == "c").astype(dtype)
    x[1], x[2], x[4, :, 0] = 0, 1, x[4, :, -1]
    x[5] *= 1e-30
    x[6] *= 1e30
    eps = np.finfo(dtype).eps
    s, u, v = (part.numpy() for part in tf.linalg.svd(x))
    size = np.abs(x).max((1, 2), keepdims=True) + np.finfo(dtype).tiny
    assert np.all(np.diff(s) <= 0)
    np.testing.assert_allclose(
        (u * s[:, None]) @ np.conj(np.swapaxes(v, 1, 2)) / size, x / size, atol=50 * eps
    )
    for part in (u, v):
        gram = np.conj(np.swapaxes(part, 1, 2)) @ part
        np.testing.assert_allclose(gram, np.broadcast_to(np.eye(gram.shape[-1]), gram.shape), atol=50 * eps)


def test_vectors_have_a_positive_largest_component():
    for v in (tf.linalg.eigh(normal(20, 6, 6))[1], tf.linalg.svd(normal(20, 6, 6))[1]):
        largest = np.take_along_axis(v.numpy(), np.argmax(np.abs(v), 1)[:, None], 1)
        assert (largest > 0).mean() > 0.98  # of nearly equal ones, the first is used


def test_eigenvalues_are_in_order():
    w = tf.linalg.eigvals(normal(10, 7, 7)).numpy()
    assert np.all(np.diff(w.real, axis=-1) >= 0)
    assert np.all(tf.linalg.eig(np.array([[0.0, 1.0], [-1.0, 0.0]]))[0].numpy() == [1j, -1j])


def test_eigh_reads_the_lower_triangle_and_has_gradients_there():
    x = np.array([[1.0, 99.0], [2.0, 3.0]])
    np.testing.assert_allclose(tf.linalg.eigvalsh(x), np.linalg.eigvalsh(x))
    g = gradient(lambda a: tf.linalg.eigh(a)[0][0], x)
    assert g[0, 1] == 0 and g[1, 0] != 0


@pytest.mark.parametrize(
    ("f", "x"), [(lambda a: tf.linalg.eigh(a)[1], np.eye(3)), (lambda a: tf.linalg.svd(a)[1], np.eye(3))]
)
def test_gradients_are_finite_where_values_coincide(f, x):
    assert np.all(gradient(f, x) == 0)  # as in TensorFlow


def test_not_a_number():
    x = np.full((2, 2), np.nan)
    assert all(np.isnan(part.numpy()).all() for part in tf.linalg.svd(x))
    assert np.isnan(tf.linalg.svd(x, compute_uv=False).numpy()).all()
    assert np.isnan(tf.linalg.pinv(x).numpy()).all()
    for f, words in ((tf.linalg.eigh, "Self-adjoint eigen"), (tf.linalg.eig, "Eigen decomposition")):
        with pytest.raises(InvalidArgumentError, match=words):
            f(x)
    with pytest.raises(InvalidArgumentError):
        tf.linalg.eigvals(np.full((2, 2), np.inf))


def test_svd_has_no_gradient_of_many_extra_columns():
    x = tf.constant(normal(4, 2))
    with tf.GradientTape() as tape:
        tape.watch(x)
        s, _, _ = tf.linalg.svd(x, full_matrices=True)
    with pytest.raises(NotImplementedError, match=r"abs\(m - n\) > 1"):
        tape.gradient(s, x)


def test_matrix_rank():
    assert tf.linalg.matrix_rank(np.ones((3, 2))).numpy() == 1
    assert tf.linalg.matrix_rank(np.ones((3, 2), np.int32)).dtype is tf.int32
    assert tf.linalg.matrix_rank(np.diag([3.0, 2.0, 1.0]), tol=1.5).numpy() == 2
    assert tf.linalg.matrix_rank(normal(4, 3, 3)).numpy().tolist() == [3] * 4
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        tf.linalg.matrix_rank(np.ones(3))


def test_eigh_tridiagonal():
    alpha, beta = np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0])
    dense = np.diag(alpha) + np.diag(beta, 1) + np.diag(beta, -1)
    expected = np.linalg.eigvalsh(dense)
    np.testing.assert_allclose(tf.linalg.eigh_tridiagonal(alpha, beta), expected)
    w, v = tf.linalg.eigh_tridiagonal(alpha, beta, eigvals_only=False)
    np.testing.assert_allclose(dense @ v.numpy(), v.numpy() * w.numpy(), atol=1e-12)
    np.testing.assert_allclose(
        tf.linalg.eigh_tridiagonal(alpha, beta, select="i", select_range=(1, 2)), expected[1:]
    )
    np.testing.assert_allclose(
        tf.linalg.eigh_tridiagonal(alpha, beta, select="v", select_range=(0.0, 2.5)), expected[:2]
    )
    check(lambda b: tf.reduce_sum(tf.linalg.eigh_tridiagonal(alpha, b) * W[0, :3]), beta)
    with pytest.raises(ValueError, match="select must have a value"):
        tf.linalg.eigh_tridiagonal(alpha, beta, select="x")
    with pytest.raises(ValueError, match="same type"):
        tf.linalg.eigh_tridiagonal(alpha, beta.astype(complex))


# ---- functions of matrices ----


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("scale", [1e-3, 0.1, 1.0, 3.0, 10.0])
def test_expm(dtype, scale):
    """Through all degrees of the approximant, against eigenvalues of a normal matrix."""
    q = np.linalg.qr(normal(5, 5))[0]
    w = scale * np.array([-1.0, -0.5, 0.0, 0.3, 0.7])
    out = tf.linalg.expm(((q * w) @ q.T).astype(dtype)).numpy()
    assert out.dtype == dtype
    limit = 1e-4 if np.dtype(dtype).itemsize == 4 or dtype is np.complex64 else 1e-11
    np.testing.assert_allclose(out, (q * np.exp(w)) @ q.T, rtol=limit, atol=limit * np.exp(0.7 * scale))


def test_roots_and_logarithms():
    x = normal(3, 4, 4, complex_=True) + 5 * np.eye(4)
    root = tf.linalg.sqrtm(x)
    np.testing.assert_allclose(tf.matmul(root, root), x, atol=1e-11)
    np.testing.assert_allclose(tf.linalg.expm(tf.linalg.logm(x)), x, atol=1e-10)
    real = tf.linalg.sqrtm(np.array([[0.0, 1.0], [-1.0, 0.0]]))
    np.testing.assert_allclose(real, np.array([[1, 1], [-1, 1]]) / np.sqrt(2), atol=1e-12)
    assert tf.matrix_square_root is tf.linalg.sqrtm
    assert np.isnan(tf.linalg.sqrtm(np.diag([-4.0, 9.0])).numpy()).all()
    assert np.isnan(tf.linalg.logm(np.diag([0j, 2])).numpy()).all()
    assert np.all(tf.linalg.sqrtm(np.zeros((2, 2))).numpy() == 0)
    with pytest.raises(InvalidArgumentError, match="not defined for float64"):
        tf.linalg.logm(np.eye(2))


def test_expm_in_a_function():
    f = tf.function(lambda a: tf.reduce_sum(tf.linalg.expm(a) ** 2))
    x = 0.3 * normal(3, 3)
    np.testing.assert_allclose(
        gradient(f, x), gradient(lambda a: tf.reduce_sum(tf.linalg.expm(a) ** 2), x), atol=1e-12
    )


# ---- norms ----


def test_the_2_norm_of_matrices():
    x = normal(2, 3, 4)
    expected = np.linalg.norm(x, 2, (1, 2))
    np.testing.assert_allclose(tf.norm(x, ord=2, axis=(1, 2)), expected)
    np.testing.assert_allclose(tf.norm(x, ord=2, axis=[-2, -1], keepdims=True), expected[:, None, None])
    np.testing.assert_allclose(tf.norm(x, ord=2, axis=(0, 2)), np.linalg.norm(x, 2, (0, 2)))
    check(lambda a: tf.norm(a, ord=2, axis=[0, 1]), normal(3, 2))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_eigh_tridiagonal_of_complex_numbers(dtype):
    """beta is the diagonal above the main one, whose imaginary part is ignored, as in TensorFlow."""
    alpha, beta = normal(5, complex_=True).astype(dtype), normal(4, complex_=True).astype(dtype)
    matrix = np.diag(alpha.real) + np.diag(beta, 1) + np.diag(beta.conj(), -1)
    w, v = (t.numpy() for t in tf.linalg.eigh_tridiagonal(alpha, beta, eigvals_only=False))
    np.testing.assert_allclose(matrix @ v, v * w, atol=1e3 * np.finfo(dtype).eps)
    np.testing.assert_allclose(w, np.linalg.eigvalsh(matrix), rtol=1e3 * np.finfo(dtype).eps)
    chosen, vectors = tf.linalg.eigh_tridiagonal(alpha, beta, False, "v", (w[1], w[3]))
    np.testing.assert_array_equal(chosen, w[1:4])
    np.testing.assert_array_equal(vectors, v[:, 1:4])


def test_eigh_tridiagonal_takes_both_ends_of_an_interval():
    def values(low, high):
        return tf.linalg.eigh_tridiagonal([1.0, 2.0, 3.0], [0.0, 0.0], select="v", select_range=(low, high))

    np.testing.assert_array_equal(values(1.0, 2.0), [1, 2])
    np.testing.assert_array_equal(values(1.1, 1.9), [])
    for select, range_ in (("v", (2.0, 1.0)), ("v", (1.0, 1.0)), ("i", (2, 1))):
        with pytest.raises(InvalidArgumentError, match="Got empty"):
            tf.linalg.eigh_tridiagonal([1.0, 2.0, 3.0], [0.0, 0.0], select=select, select_range=range_)


@pytest.mark.parametrize("op", [lambda x: tf.linalg.svd(x, compute_uv=False), tf.linalg.eigvalsh])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_values_alone_are_decomposed_once_for_value_and_gradient(op, dtype):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(5, 5)) + (1j * rng.normal(size=(5, 5)) if dtype is np.complex128 else 0)
    x = tf.constant(x + np.conj(x.T), dtype)
    weights = tf.cast(tf.range(1.0, 6.0), op(x).dtype)

    @tf.function
    def both(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            values = op(x)
        return values, tape.gradient(values, x, output_gradients=weights)

    values, gradient = both(x)
    np.testing.assert_allclose(values, op(x), rtol=1e-12)
    text = both.pretty(x)
    assert len(re.findall(r"= (svd|eigh)\w*\(", text)) == 1
    assert "svdvals" not in text
    assert "eigvalsh" not in text
    # A step in a direction that leaves x self-adjoint: the values change as the gradient predicts.
    step = rng.normal(size=(5, 5)) + (1j * rng.normal(size=(5, 5)) if dtype is np.complex128 else 0)
    step = 1e-6 * (step + np.conj(step.T))
    moved = np.sum(weights.numpy() * (op(x + step).numpy() - op(x - step).numpy())).real / 2
    np.testing.assert_allclose(np.sum(np.conj(gradient.numpy()) * step).real, moved, rtol=1e-6)
