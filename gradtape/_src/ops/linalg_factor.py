"""Factorisations: Cholesky, LU and QR, and the functions that use them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops.arithmetic import real
from gradtape._src.ops.casting import cast
from gradtape._src.ops.creation import eye
from gradtape._src.ops.diagonals import band_part, matrix_diag_part
from gradtape._src.ops.exponential import log
from gradtape._src.ops.indexed import gather
from gradtape._src.ops.join import concat
from gradtape._src.ops.linalg_solve import LINEAR, product, triangular_solve
from gradtape._src.ops.movement import adjoint, broadcast_to
from gradtape._src.ops.reduction import reduce_sum
from gradtape._src.ops.samples import at, call, definite, regular
from gradtape._src.ops.sort import order_of
from gradtape._src.ops.table import composite, opaque
from gradtape._src.tensors.conversion import as_tensor, as_tensors

__all__ = [
    "cholesky", "cholesky_solve", "logdet", "lu", "lu_matrix_inverse", "lu_reconstruct", "lu_solve", "qr",
]  # fmt: skip


def lower_half(x):
    """The lower triangle, with half the diagonal."""
    return band_part(x, -1, 0) - 0.5 * band_part(x, 0, 0)


# ---- Cholesky ----


def _cholesky_rule(g, x, out):
    """Murray (2016), symmetrised: the gradient is a self-adjoint matrix, as in TensorFlow."""
    y = triangular_solve(out, lower_half(product(out, g, adjoint_a=True)), True, True)
    z = triangular_solve(out, adjoint(y), True, True)
    return 0.5 * (z + adjoint(z))


_SQUARE = (call((2, 3)), "InvalidArgumentError", "Input matrix must be square.")
_RANK = (call((3,)), "InvalidArgumentError", "must have rank >= 2, got 1")

cholesky = opaque(
    "cholesky", LINEAR, "input", rule=_cholesky_rule, numpy=np.linalg.cholesky, batch="leading",
    xla="linalg_factor.cholesky",
    samples=[
        call(definite(3, 3)), call(definite(2, 2, 2)), call(definite(1, 1)), call((0, 0)), call((0, 2, 2)),
        call(definite(13, 13)),
    ],
    gradient_samples=[call(definite(3, 3)), call(definite(2, 2, 2)), call(definite(1, 1))],
    bad=[
        (call(at([[1.0, 2.0], [2.0, 1.0]])), "InvalidArgumentError",
         "Cholesky decomposition was not successful. The input might not be valid."),
        _SQUARE, _RANK,
    ],
    names="linalg.cholesky",
    doc="""The lower triangular `l` with `l @ adjoint(l) = input`, for self-adjoint positive definite matrices.

Only the lower triangle is read. Gradients are self-adjoint.
""",
)  # fmt: skip


@composite("linalg.cholesky_solve")
def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Any:
    """Solves `a @ x = rhs`, given `chol = cholesky(a)`.

    >>> import gradtape as tf
    >>> a = tf.constant([[4.0, 2.0], [2.0, 5.0]])
    >>> tf.linalg.cholesky_solve(tf.linalg.cholesky(a), [[8.0], [12.0]]).numpy().round(3).tolist()
    [[1.0], [2.0]]
    """
    chol, rhs = as_tensors(chol, rhs)
    return triangular_solve(chol, triangular_solve(chol, rhs, True, False), True, True)


@composite("linalg.logdet")
def logdet(matrix: Any, name: str | None = None) -> Any:
    """The logarithm of the determinant of self-adjoint positive definite matrices."""
    diagonal = matrix_diag_part(cholesky(matrix), 0)
    return 2.0 * reduce_sum(log(real(diagonal) if diagonal.dtype.is_complex else diagonal), -1)


# ---- LU ----


def _unit_lower(lu):
    low = band_part(lu, -1, 0)
    return low - band_part(lu, 0, 0) + eye(lu.shape[-1], dtype=lu.dtype)


def _rows(x, places):
    """The rows of each matrix at the indices `places`."""
    return gather(x, places, axis=len(x.shape) - 2, batch_dims=len(x.shape) - 2)


def _lu_rule(g, x, out, output_idx_type):
    lu, places = out
    low, up = _unit_lower(lu), band_part(lu, 0, -1)
    g_low = product(low, band_part(g[0], -1, 0) - band_part(g[0], 0, 0), adjoint_a=True)
    g_up = product(band_part(g[0], 0, -1), up, adjoint_b=True)
    both = band_part(g_low, -1, 0) - band_part(g_low, 0, 0) + band_part(g_up, 0, -1)
    left = triangular_solve(low, both, True, True)
    gx = adjoint(triangular_solve(up, adjoint(left), False, False))
    return _rows(gx, order_of(places))


def _numpy_lu(x, output_idx_type=np.int32):
    n = x.shape[-1]
    lu, places = np.array(x), np.broadcast_to(np.arange(n), x.shape[:-1]).astype(np.int32)
    for m, p in zip(lu.reshape(-1, n, n), places.reshape(-1, n), strict=True) if x.size else ():
        for k in range(n):
            best = k + np.argmax(np.abs(m[k:, k]))
            m[[k, best]], p[[k, best]] = m[[best, k]], p[[best, k]]
            m[k + 1 :, k] /= m[k, k]
            m[k + 1 :, k + 1 :] -= np.outer(m[k + 1 :, k], m[k, k + 1 :])
    return lu, places


lu_of = opaque(
    "lu", LINEAR, "input output_idx_type:Dtype=int32", many=True, rule=_lu_rule, numpy=_numpy_lu,
    xla="linalg_factor.lu",
    batch="leading",
    samples=[
        call(regular(3, 3)), call(regular(2, 2, 2), output_idx_type=dtypes.int64), call((0, 0)),
        call((0, 2, 2)), call(at([[0.0, 2.0, 1.0], [3.0, 0.5, 1.0], [1.0, 1.0, 2.0]])),
    ],
    bad=[
        (call(at([[1.0, 2.0], [2.0, 4.0]])), "InvalidArgumentError", "Input is not invertible."), _SQUARE, _RANK,
        (call(regular(2, 2), output_idx_type=dtypes.float32), "InvalidArgumentError", "int32 or int64"),
    ],
    doc="The LU factors of `input` with its rows permuted, both in one matrix, and the permutation.",
)  # fmt: skip


class Lu(NamedTuple):
    """What `lu` returns."""

    lu: _core.Tensor
    p: _core.Tensor


@composite("linalg.lu")
def lu(input: Any, output_idx_type: Any = dtypes.int32, name: str | None = None) -> Lu:
    """The LU factors of square matrices, with partial pivoting.

    Returns:
      `lu`: the upper triangular factor and, below the diagonal, the lower one, whose diagonal is 1;
      and `p`, the permutation of the rows: `gather(input, p)` is the product of the factors.
    """
    return Lu(*lu_of(input, output_idx_type))


def _check_lu(op: str, factors: Any, perm: Any, rhs: Any = None) -> None:
    if len(factors.shape) < 2 or factors.shape[-1] != factors.shape[-2]:
        raise ValueError(f"{op}: `lower_upper` must be square; got shape {factors.shape}.")
    if tuple(perm.shape) != tuple(factors.shape[:-1]):
        raise ValueError(
            f"{op}: `perm` must be one permutation for each matrix; expected shape {factors.shape[:-1]}; got "
            f"{perm.shape}."
        )
    if rhs is not None and len(rhs.shape) < 2:
        raise ValueError(f"{op}: Input `rhs` must have at least 2 dimensions; got shape {rhs.shape}.")
    if rhs is not None and rhs.shape[-2] != factors.shape[-1]:
        raise InvalidArgumentError(
            f"{op}: `rhs` needs as many rows as the factors; expected {factors.shape[-1]}; got {rhs.shape}."
        )


@composite("linalg.lu_reconstruct")
def lu_reconstruct(lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None) -> Any:
    """The matrix of which `lower_upper, perm = lu(matrix)` are the factors."""
    factors, perm = as_tensor(lower_upper), as_tensor(perm)
    _check_lu("lu_reconstruct", factors, perm)
    return _rows(product(_unit_lower(factors), band_part(factors, 0, -1)), order_of(perm))


@composite("linalg.lu_solve")
def lu_solve(
    lower_upper: Any, perm: Any, rhs: Any, validate_args: bool = False, name: str | None = None
) -> Any:
    """Solves `matrix @ x = rhs`, given `lower_upper, perm = lu(matrix)`."""
    factors, rhs = as_tensors(lower_upper, rhs)
    perm = as_tensor(perm)
    _check_lu("lu_solve", factors, perm, rhs)
    batch = np.broadcast_shapes(tuple(factors.shape[:-2]), tuple(rhs.shape[:-2]))
    rhs = broadcast_to(rhs, [*batch, *rhs.shape[-2:]])
    permuted = _rows(rhs, broadcast_to(perm, [*batch, perm.shape[-1]]))
    return triangular_solve(
        factors, triangular_solve(_unit_lower(factors), permuted, True, False), False, False
    )


@composite("linalg.lu_matrix_inverse")
def lu_matrix_inverse(
    lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None
) -> Any:
    """The inverse of the matrix of which `lower_upper, perm = lu(matrix)` are the factors."""
    factors = as_tensor(lower_upper)
    _check_lu("lu_matrix_inverse", factors, as_tensor(perm))
    return lu_solve(
        factors, perm, eye(factors.shape[-1], batch_shape=factors.shape[:-2], dtype=factors.dtype)
    )


# ---- QR ----


def _thin_rule(gq, gr, q, r):
    """The gradient for at least as many rows as columns (Walter and Lehmann 2018); the diagonal of r is real."""
    low = band_part(product(r, gr, adjoint_b=True) - product(gq, q, adjoint_a=True), -1, 0)
    middle = low + adjoint(low)
    total = gq + product(q, middle - 0.5 * band_part(middle, 0, 0))
    return adjoint(triangular_solve(r, adjoint(total), False, False))


def _qr_rule(g, x, out, full_matrices):
    (gq, gr), (q, r) = g, out
    rows, columns = x.shape[-2:]
    if full_matrices and rows > columns:
        raise NotImplementedError(
            "qr: QrGrad not implemented when nrows > ncols and full_matrices is true. Received r.shape="
            f"{r.shape} with nrows={rows} and ncols={columns}."
        )
    if rows >= columns:
        return _thin_rule(gq, gr, q, r)
    # q depends on the left part of x only; the right part of x is q times that of r.
    g_right = gr[..., rows:]
    gq = gq + product(product(q, r[..., rows:]), g_right, adjoint_b=True)
    return concat([_thin_rule(gq, gr[..., :rows], q, r[..., :rows]), product(q, g_right)], -1)


def _numpy_qr(x, full_matrices=False):
    return np.linalg.qr(x, "complete" if full_matrices else "reduced")


_QRS = [
    call(regular(3, 3)), call(regular(4, 2)), call(regular(2, 4)), call(regular(2, 3, 2)), call((1, 1)),
    call(regular(3, 3), full_matrices=True), call(regular(2, 3), full_matrices=True),
]  # fmt: skip

qr_of = opaque(
    "qr", LINEAR, "input full_matrices:Bool=False", many=True, rule=_qr_rule, numpy=_numpy_qr, batch="leading",
    xla="linalg_factor.qr",
    samples=[
        *_QRS, call(regular(4, 2), full_matrices=True), call((0, 3)), call((3, 0)), call((0, 3, 2)),
        call((3, 0), full_matrices=True),
    ],
    gradient_samples=_QRS, bad=[_RANK],
    doc="The factors `q`, with orthonormal columns, and `r`, upper triangular, of matrices.",
)  # fmt: skip


class Qr(NamedTuple):
    """What `qr` returns."""

    q: _core.Tensor
    r: _core.Tensor


@composite("linalg.qr")
def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> Qr:
    """The factorisation `input = q @ r`, where `q` has orthonormal columns and `r` is upper triangular.

    Args:
      full_matrices: make `q` square; the rows of `r` for the added columns are zero.
    """
    x = as_tensor(input)
    if x.dtype is dtypes.float16:
        return Qr(*(cast(f, x.dtype) for f in qr_of(cast(x, dtypes.float32), full_matrices)))
    return Qr(*qr_of(x, full_matrices))
