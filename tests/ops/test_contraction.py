"""matmul, matvec, tensordot, einsum, cross, trace: what the contract test of the rows does not cover."""

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.ops.table import TABLE

RNG = np.random.default_rng(0)


def array(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def cplx(*shape):
    return (array(*shape) + 1j * array(*shape)).astype(np.complex64)


A, B, S, T = array(2, 3), array(3, 4), array(4, 4), array(2, 3, 4)
Q, K = array(2, 5, 3, 4), array(2, 6, 3, 4)


def gradients(f, *values):
    values = [tf.constant(v) for v in values]
    with tf.GradientTape() as tape:
        for v in values:
            tape.watch(v)
        y = f(*values)
    return tape.gradient(y, values)


def close(actual, expected, rtol=1e-4):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=1e-5)


# ---- matmul ----


def test_matmul_is_the_native_op():
    assert tf.matmul is TABLE["matmul"].op is tf.linalg.matmul


def test_each_rule_reads_the_other_operand_only():
    a, b = tf.constant(A), tf.constant(B)
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        tf.matmul(a, b)
    reads = tf.matmul._reads
    assert reads[0] == 0b10
    assert reads[1] == 0b01


def test_matmul_of_lists_variables_and_arrays():
    close(tf.matmul([[1.0, 2.0]], [[3.0], [4.0]]), [[11.0]])
    assert tf.matmul([[1, 2]], [[3], [4]]).dtype is tf.int32
    close(tf.Variable(A) @ B, A @ B)
    close(tf.matmul(A, b=tf.Variable(B)), A @ B)


def test_adjoints():
    x, y = cplx(3, 2), cplx(3, 4)
    close(tf.matmul(x, y, adjoint_a=True), x.conj().T @ y)
    close(tf.matmul(x.T, y.T, adjoint_b=True), x.T @ y.conj())
    close(tf.matmul(A, B, a_is_sparse=True, name="product"), A @ B)
    with pytest.raises(ValueError, match="transpose_a"):
        tf.matmul(x, y, transpose_a=True, adjoint_a=True)


def test_output_type():
    x = np.array([[100, 100]], np.int8)
    assert tf.matmul(x, x.T, output_type=tf.int32).numpy().tolist() == [[20000]]


def test_complex_gradient_conjugates_the_other_operand():
    x, y = cplx(2, 3), cplx(3, 4)
    gx, gy = gradients(tf.matmul, x, y)
    ones = np.ones((2, 4))
    close(gx, ones @ y.conj().T)
    close(gy, x.conj().T @ ones)


def test_gradient_of_a_shared_matrix_is_one_product(monkeypatch):
    """A batch times one matrix: the gradient of the matrix needs no batched product and no sum."""
    from gradtape._src.ops import contraction

    shapes = []
    original = contraction.matmul
    monkeypatch.setattr(
        contraction,
        "matmul",
        lambda a, b, *flags: shapes.append((a.shape, b.shape)) or original(a, b, *flags),
    )
    _, gb = gradients(original, T, S)
    close(gb, np.einsum("bij,bik->jk", T, np.ones((2, 3, 4))))
    assert ((6, 4), (6, 4)) in [tuple(map(tuple, s)) for s in shapes]


def test_wrong_ranks_and_sizes():
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"Matrix size-incompatible: In\[0\]: \[2,3\], In\[1\]: \[2,3\]"
    ):
        tf.matmul(A, A)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"In\[0\] ndims must be >= 2"):
        tf.matmul([1.0, 2.0, 3.0], B)
    with pytest.raises(tf.errors.InvalidArgumentError, match="double|float64"):
        tf.matmul(tf.constant(A), tf.constant(B, tf.float64))


def test_matvec():
    v = array(3)
    close(tf.linalg.matvec(A, v), A @ v)
    close(tf.linalg.matvec(A, [1.0, 2.0], transpose_a=True), A.T @ [1.0, 2.0])
    close(tf.linalg.matvec(T, T[:, 0]), np.einsum("bij,bj->bi", T, T[:, 0]))
    x, w = cplx(2, 3), cplx(2)
    close(tf.linalg.matvec(x, w, adjoint_a=True), x.conj().T @ w)
    ga, gv = gradients(tf.linalg.matvec, A, v)
    close(ga, np.tile(v, (2, 1)))
    close(gv, A.sum(0))


# ---- tensordot ----

TENSORDOTS = [
    (A, B, 1), (A, B, 0), (A, A, 2), (A, B, [[1], [0]]), (B, A, [[0], [1]]), (A, B, (1, 0)), (A, B, [-1, 0]),
    (T, A, [[0, 1], [0, 1]]), (T, A, [[-2, 0], [-1, 0]]), (Q, K, [[0, 2, 3], [0, 2, 3]]), (Q, T, [[2], [1]]),
    (Q, K, [[3, 0], [3, 0]]), (T, T, 3), (array(0, 3), B, 1),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "axes"), TENSORDOTS)
def test_tensordot(a, b, axes):
    close(tf.tensordot(a, b, axes), np.tensordot(a, b, axes))
    ga, gb = gradients(lambda x, y: tf.tensordot(x, y, axes), a, b)
    assert ga.shape == a.shape
    assert gb.shape == b.shape


def test_tensordot_axes_as_tensor():
    close(tf.linalg.tensordot(A, B, tf.constant([[1], [0]])), A @ B)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (3, "larger"),
        (-1, "at least 0"),
        ([0], "length 2"),
        ([[0], [0, 1]], "Different number"),
        ([[5], [0]], "out of range"),
    ],
)
def test_wrong_tensordot(axes, message):
    with pytest.raises(ValueError, match=message):
        tf.tensordot(A, B, axes)


# ---- einsum ----

EINSUMS = [
    ("ij,jk->ik", A, B), ("ij,jk", A, B), ("ij->ji", A), ("ij->", A), ("ba", A), ("ii", S), ("ii->i", S),
    ("aab->ba", array(2, 2, 3)), ("aba->ab", array(2, 3, 2)), ("aaa->a", array(2, 2, 2)),
    ("aaa", array(2, 2, 2)),
    ("...ij,jk->...ik", T, S), ("...ij,jk", T, S), ("bqhd,bkhd->bhqk", Q, K),
    ("bhqk,bkhd->bqhd", array(2, 3, 5, 6), K),
    ("i,j->ij", S[0], S[1]), ("i,j->ji", S[0], B[0]), ("i,i->i", S[0], S[1]), ("i,i->", S[0], S[1]),
    ("i,i", S[0], S[1]),
    ("ij,jk,kl->il", A, B, S), ("ij,jk,kl,l->i", A, B, S, S[0]), ("a...,b...->ab...", array(2, 1), B),
    ("...i,...i->...", T, T[0]), ("abc,ab->c", T, A), ("abc,cd,ab->d", T, S, A), ("ijk,lk->jil", T, S),
    ("Ab,bC->CA", A, B), (" i j , j k -> i k ", A, B), ("i...j,jk->...ik", Q, S), ("ij,ij->ij", A, A),
    ("ij,j->ij", A, A[0]),
    ("ij,kj->", A, A), ("...->...", A), ("ii,i->i", S, S[0]),
    ("...ij,...jk->...ik", array(2, 5, 3, 4), array(1, 4, 2)),
    ("ab,cd->dbca", A, B), ("bij,bj->bi", T, T[:, 0]), ("bi,bij->bj", A, T),
    ("ij,ik->jk", cplx(2, 3), cplx(2, 3)),
    ("abcd,aefd->bcef", Q, K), ("i,jk,k->ij", A[0], B, B[0]), ("ij,jk->ik", array(0, 3), B),
    ("ij,jk->ik", array(2, 0), array(0, 3)),
    ("a,b,c->", S[0], S[1], S[2]), ("a,ab,abc->abc", A[:, 0], A, T), ("ijij->ij", array(2, 3, 2, 3)),
    ("ijij->ji", array(2, 3, 2, 3)),
]  # fmt: skip


@pytest.mark.parametrize("case", EINSUMS, ids=[c[0] for c in EINSUMS])
def test_einsum(case):
    equation, *values = case
    close(tf.einsum(equation, *values), np.einsum(equation, *values), 1e-3)
    weights = array(*np.einsum(equation, *values).shape)
    found = gradients(lambda *v: tf.reduce_sum(tf.math.real(tf.einsum(equation, *v) * weights)), *values)
    for k, (g, v) in enumerate(zip(found, values, strict=True)):
        # einsum is linear in each operand, so a difference is its derivative up to rounding.
        wide = [np.asarray(w, complex) for w in values]
        direction = array(*v.shape)
        wide[k] = direction
        expected = np.sum(np.einsum(equation, *wide).real * weights)
        np.testing.assert_allclose(
            np.sum(np.conj(g.numpy()).real * direction), expected, rtol=1e-3, atol=1e-3
        )


@pytest.mark.parametrize(
    ("equation", "values", "error", "message"),
    [
        ("ij,jk->ik", [A], ValueError, "expecting 2"),
        ("ij,jk->iz", [A, B], ValueError, "label z"),
        ("ij,jk->ii", [A, B], ValueError, "more than once"),
        ("i1,jk->ik", [A, B], ValueError, "incorrect format"),
        ("ij,jk->ik->k", [A, B], ValueError, "incorrect format"),
        ("ij..,jk->ik", [A, B], ValueError, "incorrect format"),
        ("...i...,jk->ik", [A, B], ValueError, "more than one ellipsis"),
        ("ij,kj->ik", [A, B], tf.errors.InvalidArgumentError, "Expected dimension 3 at axis 1"),
        ("ijk,jk->ik", [A, B], tf.errors.InvalidArgumentError, "Expected input 0 to have rank 3 but got: 2"),
        ("ii", [A], tf.errors.InvalidArgumentError, "Expected dimension 2"),
        ("...ij,jk->ik", [T, S], tf.errors.InvalidArgumentError, "no ellipsis"),
    ],
)
def test_wrong_einsum(equation, values, error, message):
    with pytest.raises(error, match=message):
        tf.einsum(equation, *values)


def test_einsum_keywords():
    close(tf.einsum("ij,jk->ik", A, B, optimize="optimal", name="x"), A @ B)
    with pytest.raises(TypeError, match="foo"):
        tf.einsum("ij,jk->ik", A, B, foo=1)


# ---- others ----


def test_trace_and_cross():
    close(tf.linalg.trace(S), np.trace(S))
    close(gradients(tf.linalg.trace, S)[0], np.eye(4))
    close(tf.linalg.cross(A, A[:, ::-1].copy()), np.cross(A, A[:, ::-1]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="same shape"):
        tf.linalg.cross(A, S)
    with pytest.raises(tf.errors.FailedPreconditionError, match="3-element"):
        tf.linalg.cross(S, S)
