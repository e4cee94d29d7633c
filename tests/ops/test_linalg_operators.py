"""`tf.linalg.LinearOperator...`: every operator does what its dense matrix does."""

import numpy as np
import pytest

import gradtape as tf
from gradtape.errors import InvalidArgumentError

RNG = np.random.default_rng(3)
L = tf.linalg
A = RNG.normal(size=(3, 3)) + 3 * np.eye(3)
B = RNG.normal(size=(4, 2, 2)) + 3 * np.eye(2)
C = A + 1j * RNG.normal(size=(3, 3))
D = np.array([0.5, 1.5])
S = A @ A.T


def full(x, **hints):
    return L.LinearOperatorFullMatrix(tf.constant(x), **hints)


OPERATORS = {
    "full": lambda: full(A),
    "full, batch": lambda: full(B),
    "full, complex": lambda: full(C),
    "full, definite": lambda: full(S, is_self_adjoint=True, is_positive_definite=True),
    "diag": lambda: L.LinearOperatorDiag(tf.constant(D)),
    "diag, complex": lambda: L.LinearOperatorDiag(tf.constant(D + 1j)),
    "identity": lambda: L.LinearOperatorIdentity(3, dtype=tf.float64),
    "identity, batch": lambda: L.LinearOperatorIdentity(2, batch_shape=[3], dtype=tf.float64),
    "scaled": lambda: L.LinearOperatorScaledIdentity(3, tf.constant(D)),
    "scaled, complex": lambda: L.LinearOperatorScaledIdentity(2, tf.constant(1 + 2j)),
    "triangular": lambda: L.LinearOperatorLowerTriangular(tf.constant(A)),
    "triangular, complex": lambda: L.LinearOperatorLowerTriangular(tf.constant(C)),
    "kronecker": lambda: L.LinearOperatorKronecker(
        [full(A), L.LinearOperatorDiag(tf.constant(D)), full(B[0])]
    ),
    "kronecker, batch": lambda: L.LinearOperatorKronecker([full(A), full(B)]),
    "block diag": lambda: L.LinearOperatorBlockDiag([full(A), L.LinearOperatorDiag(tf.constant(D))]),
    "block diag, batch": lambda: L.LinearOperatorBlockDiag([full(A), full(B)]),
    "block triangular": lambda: L.LinearOperatorBlockLowerTriangular(
        [[full(A)], [full(np.ones((2, 3))), full(B[0])]]
    ),
    "composition": lambda: L.LinearOperatorComposition(
        [full(A), L.LinearOperatorLowerTriangular(tf.constant(A))]
    ),
    "householder": lambda: L.LinearOperatorHouseholder(tf.constant(D)),
    "permutation": lambda: L.LinearOperatorPermutation([2, 0, 1], dtype=tf.float64),
    "tridiag": lambda: L.LinearOperatorTridiag(
        tf.constant(RNG.normal(size=(3, 4)) + np.array([[0], [4], [0]]))
    ),
    "toeplitz": lambda: L.LinearOperatorToeplitz(tf.constant([5.0, 1.0, 2.0]), tf.constant([5.0, -1.0, 0.5])),
    "circulant": lambda: L.LinearOperatorCirculant(tf.constant([1.0 + 1j, 2.0, 3.0]), tf.complex128),
    "circulant 2": lambda: L.LinearOperatorCirculant2D(
        tf.constant(1 + RNG.uniform(size=(2, 3))), tf.complex128
    ),
    "circulant 3": lambda: L.LinearOperatorCirculant3D(
        tf.constant(1 + RNG.uniform(size=(2, 2, 2))), tf.complex128
    ),
    "low rank": lambda: L.LinearOperatorLowRankUpdate(
        L.LinearOperatorDiag(tf.constant([1.0, 2.0, 3.0], tf.float64)), tf.constant(A[:, :2]), tf.constant(D)
    ),
    "low rank, two sides": lambda: L.LinearOperatorLowRankUpdate(
        full(A), tf.constant(A[:, :1]), v=tf.constant(A[:, 1:2])
    ),
    "adjoint": lambda: full(C).adjoint(),
    "inverse": lambda: full(A).inverse(),
}


@pytest.fixture(params=OPERATORS, ids=lambda n: n.replace(", ", "-").replace(" ", "-"))
def operator(request):
    return OPERATORS[request.param]()


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-5)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def test_it_is_its_dense_matrix(operator):
    dense = operator.to_dense().numpy()
    n = dense.shape[-1]
    assert tuple(operator.shape) == dense.shape and operator.dtype.as_numpy_dtype == dense.dtype
    assert operator.domain_dimension == n and tuple(operator.batch_shape) == dense.shape[:-2]
    assert operator.shape_tensor().numpy().tolist() == list(dense.shape)
    x = RNG.normal(size=(n, 2)).astype(dense.dtype)
    close(operator.matmul(x), dense @ x)
    close(operator @ tf.constant(x), dense @ x)
    close(operator.matmul(x, adjoint=True), adjoint(dense) @ x)
    close(operator.matmul(x.T, adjoint_arg=True), dense @ np.conj(x))
    close(operator.matvec(x[:, 0]), dense @ x[:, 0])
    close(operator.solve(x), np.linalg.inv(dense) @ x)
    close(operator.solve(x, adjoint=True), np.linalg.inv(adjoint(dense)) @ x)
    close(operator.solvevec(x[:, 0]), np.linalg.inv(dense) @ x[:, 0])
    close(tf.constant(x.T) @ operator, x.T @ dense)
    close(tf.matmul(operator, tf.constant(x)), dense @ x)


def test_its_numbers(operator):
    dense = operator.to_dense().numpy()
    close(operator.diag_part(), np.diagonal(dense, 0, -2, -1))
    close(operator.trace(), np.trace(dense, 0, -2, -1))
    with np.errstate(all="ignore"):  # NumPy's, of complex numbers on aarch64: right, with false warnings
        expected, (_, logarithm) = np.linalg.det(dense), np.linalg.slogdet(dense)
    close(operator.determinant(), expected)
    close(operator.log_abs_determinant(), logarithm)
    close(operator.cond(), np.linalg.cond(dense))
    close(operator.add_to_tensor(np.ones(dense.shape, dense.dtype)), dense + 1)
    if operator.is_self_adjoint:
        close(np.sort(np.real(operator.eigvals().numpy()), -1), np.linalg.eigvalsh(dense))
    else:
        with pytest.raises(NotImplementedError, match="Only self-adjoint"):
            operator.eigvals()


def test_operators_made_of_it(operator):
    dense = operator.to_dense().numpy()
    close(operator.adjoint().to_dense(), adjoint(dense))
    close(operator.H.to_dense(), adjoint(dense))
    close(operator.inverse().to_dense(), np.linalg.inv(dense))
    close(operator.inverse().inverse().to_dense(), dense)
    close((operator @ operator).to_dense(), dense @ dense)
    close(operator.matmul(operator, adjoint=True).to_dense(), adjoint(dense) @ dense)
    if operator.is_self_adjoint and operator.is_positive_definite:
        low = operator.cholesky().to_dense().numpy()
        close(low @ adjoint(low), dense)
    else:
        with pytest.raises(ValueError, match="Cholesky"):
            operator.cholesky()


def test_products_stay_simple():
    diag, eye = L.LinearOperatorDiag([1.0, 2.0]), L.LinearOperatorIdentity(2)
    assert (eye @ diag) is diag and (diag @ eye) is diag
    assert isinstance(diag @ diag, L.LinearOperatorDiag)
    assert isinstance(diag @ L.LinearOperatorZeros(2), L.LinearOperatorZeros)
    blocks = L.LinearOperatorBlockDiag([diag, eye])
    assert isinstance(blocks @ blocks, L.LinearOperatorBlockDiag)
    assert isinstance(diag @ full(np.eye(2, dtype=np.float32)), L.LinearOperatorComposition)


def test_blocks_as_lists():
    blocks = L.LinearOperatorBlockDiag([full(A), full(B[0])])
    x = [tf.constant(RNG.normal(size=(3, 1))), tf.constant(RNG.normal(size=(2, 1)))]
    y = blocks.matmul(x)
    assert len(y) == 2
    close(y[1], B[0] @ x[1].numpy())
    close(blocks.solve(y)[0], x[0])
    close(blocks.solvevec(blocks.matvec([v[:, 0] for v in x]))[1], x[1][:, 0])


def test_zeros():
    zero = L.LinearOperatorZeros(2, 3, batch_shape=[4], is_self_adjoint=False, is_square=False)
    assert zero.to_dense().shape == (4, 2, 3) and zero.matmul(np.ones((3, 5), np.float32)).shape == (4, 2, 5)
    assert zero.adjoint().shape == (4, 3, 2)
    square = L.LinearOperatorZeros(2)
    assert square.determinant().numpy() == 0 and square.log_abs_determinant().numpy() == -np.inf
    with pytest.raises(NotImplementedError, match="singular"):
        square.solve(np.ones((2, 1), np.float32))
    with pytest.raises(ValueError, match="singular"):
        square.inverse()


def test_variables_are_read_when_used_and_have_gradients():
    scale = tf.Variable([1.0, 2.0])
    operator = L.LinearOperatorDiag(scale)
    assert operator.trainable_variables == (scale,)

    @tf.function
    def loss():
        return operator.log_abs_determinant() + tf.reduce_sum(operator.solvevec([1.0, 1.0]))

    scale.assign([2.0, 4.0])
    with tf.GradientTape() as tape:
        y = loss()
    assert y.numpy() == pytest.approx(np.log(8) + 0.75)
    np.testing.assert_allclose(tape.gradient(y, scale), [1 / 2 - 1 / 4, 1 / 4 - 1 / 16])


def test_a_gaussian_with_a_triangular_scale():
    """The log density of a multivariate normal, as programs for statistics compute it."""
    tril = tf.Variable(np.linalg.cholesky(S))
    x = tf.constant(RNG.normal(size=3))

    def log_prob():
        scale = L.LinearOperatorLowerTriangular(tril)
        z = scale.solvevec(x)
        return -0.5 * tf.reduce_sum(z * z) - scale.log_abs_determinant()

    expected = -0.5 * x.numpy() @ np.linalg.solve(S, x.numpy()) - 0.5 * np.linalg.slogdet(S)[1]
    assert log_prob().numpy() == pytest.approx(expected)
    with tf.GradientTape() as tape:
        y = log_prob()
    g = tape.gradient(y, tril).numpy()
    assert np.all(np.triu(g, 1) == 0) and np.all(np.diag(g) != 0)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda: full(S, is_positive_definite=True, is_non_singular=False),
            ValueError,
            "always non-singular",
        ),
        (lambda: L.LinearOperatorDiag([1.0], is_self_adjoint=False), ValueError, "always self adjoint"),
        (lambda: L.LinearOperatorLowerTriangular(A, is_square=False), ValueError, "Only square"),
        (lambda: L.LinearOperatorFullMatrix([[1, 2], [3, 4]]), TypeError, "must have dtype"),
        (lambda: L.LinearOperatorFullMatrix([1.0, 2.0]), ValueError, "at least 2 dimensions"),
        (lambda: L.LinearOperatorIdentity(2, is_square=False), ValueError, "always square"),
        (lambda: L.LinearOperatorComposition([]), ValueError, "non-empty list"),
        (lambda: L.LinearOperatorKronecker([full(A), L.LinearOperatorIdentity(2)]), TypeError, "same dtype"),
        (lambda: full(A).matmul(np.ones((4, 1))), ValueError, "Dimensions 3 and 4 are not compatible"),
        (lambda: full(A).matmul(tf.ones((3, 1))), TypeError, "Expected argument to have dtype"),
        (lambda: full(A[:2]).solve(np.ones((2, 1))), NotImplementedError, "not be square"),
        (lambda: full(A[:2]).determinant(), NotImplementedError, "not be square"),
        (lambda: full(A, is_non_singular=False).solve(np.ones((3, 1))), NotImplementedError, "singular"),
        (lambda: full(np.ones((2, 2))).assert_non_singular(), InvalidArgumentError, "Singular matrix"),
        (lambda: full(A).assert_self_adjoint(), InvalidArgumentError, "not equal to its adjoint"),
    ],
)
def test_wrong_uses(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_conjugate_gradient():
    a = full(np.array([[4.0, 1.0], [1.0, 3.0]]), is_self_adjoint=True, is_positive_definite=True)
    state = tf.linalg.experimental.conjugate_gradient(a, tf.constant([1.0, 2.0], tf.float64))
    assert state.i.numpy() == 2
    np.testing.assert_allclose(state.x, [1 / 11, 7 / 11], atol=1e-10)
    solve = tf.function(lambda b: tf.linalg.experimental.conjugate_gradient(a, b, max_iter=5).x)
    np.testing.assert_allclose(solve(tf.constant([1.0, 2.0], tf.float64)), [1 / 11, 7 / 11], atol=1e-10)
    near = L.LinearOperatorDiag(tf.constant([1 / 4, 1 / 3], tf.float64), is_positive_definite=True)
    state = tf.linalg.experimental.conjugate_gradient(
        a, tf.constant([1.0, 2.0], tf.float64), preconditioner=near
    )
    np.testing.assert_allclose(state.x, [1 / 11, 7 / 11], atol=1e-10)
    with pytest.raises(ValueError, match="self-adjoint, positive definite"):
        tf.linalg.experimental.conjugate_gradient(full(A), np.ones(3))


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: tf.linalg.LinearOperatorIdentity([1]), "num_rows must be a 0-D Tensor"),
        (lambda: tf.linalg.LinearOperatorIdentity(-1), "num_rows must be non-negative"),
        (lambda: tf.linalg.LinearOperatorIdentity(2, batch_shape=[-1]), "batch_shape must be non-negative"),
        (lambda: tf.linalg.LinearOperatorIdentity(2, batch_shape=[[1]]), "batch_shape must be a 1-D Tensor"),
        (lambda: tf.linalg.LinearOperatorScaledIdentity(-1, 2.0), "num_rows must be non-negative"),
        (lambda: tf.linalg.LinearOperatorZeros(2, -1), "num_columns must be non-negative"),
        (lambda: tf.linalg.LinearOperatorZeros(2, 3), "initialized as is_square=True"),
        (lambda: tf.linalg.LinearOperatorZeros(2, is_self_adjoint=False), "always self adjoint"),
        (lambda: tf.linalg.LinearOperatorToeplitz([1.0, 2.0], [1.0]), "Expected square matrix"),
        (lambda: tf.linalg.LinearOperatorPermutation([1, 1, 2]), "unique integers from 0 to 2"),
        (
            lambda: tf.linalg.LinearOperatorLowRankUpdate(
                tf.linalg.LinearOperatorIdentity(3), tf.ones([4, 2])
            ),
            "Dimensions 3 and 4 are not compatible",
        ),
    ],
)
def test_operators_of_sizes_that_do_not_fit(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_a_multiple_of_zero_is_singular():
    tf.linalg.LinearOperatorScaledIdentity(3, [1.0, -2.0]).assert_non_singular()
    with pytest.raises(tf.errors.InvalidArgumentError, match="singular"):
        tf.linalg.LinearOperatorScaledIdentity(3, [1.0, 0.0]).assert_non_singular()


def test_products_of_triangles_and_diagonals_are_triangles():
    matrix, diagonal = np.tril(np.random.default_rng(0).normal(size=[3, 3])), np.array([1.0, 2.0, 3.0])
    triangle, diag = tf.linalg.LinearOperatorLowerTriangular(matrix), tf.linalg.LinearOperatorDiag(diagonal)
    for product, expected in (
        (diag @ triangle, diagonal[:, None] * matrix),
        (triangle @ diag, matrix * diagonal),
    ):
        assert isinstance(product, tf.linalg.LinearOperatorLowerTriangular)
        np.testing.assert_allclose(product.to_dense(), expected)


def test_shapes_of_operators_of_unknown_sizes():
    """TensorFlow Probability uses them while Keras 2 traces a graph with an unknown batch size."""

    @tf.function(input_signature=[tf.TensorSpec([None, 2, 3])])
    def sizes(diag):
        operator = tf.linalg.LinearOperatorDiag(diag)
        return (
            operator.shape_tensor(), operator.batch_shape_tensor(), operator.tensor_rank_tensor(),
            operator.domain_dimension_tensor(), operator.range_dimension_tensor(),
        )  # fmt: skip

    for n in (1, 5):
        found = [t.numpy().tolist() for t in sizes(tf.ones([n, 2, 3]))]
        assert found == [[n, 2, 3, 3], [n, 2], 4, 3, 3]
