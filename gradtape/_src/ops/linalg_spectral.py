"""Singular values and eigenvalues, and the functions that use them.

The gradients of vectors have poles where values coincide; as in TensorFlow, such pairs of vectors
contribute nothing. Vectors of complex matrices are determined only up to a phase, and the rules are right for
functions that do not depend on it. So real and complex matrices have rows of their own: only the derivatives
for real ones can be checked by finite differences.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops.arithmetic import abs_, conjugate, divide_no_nan, imag, real
from gradtape._src.ops.casting import cast
from gradtape._src.ops.diagonals import matrix_diag, matrix_diag_part
from gradtape._src.ops.indexed import take_along
from gradtape._src.ops.linalg_factor import lower_half
from gradtape._src.ops.linalg_solve import LINEAR, product, solve
from gradtape._src.ops.movement import adjoint, expand_dims, padded, stop_gradient
from gradtape._src.ops.reduction import argmin, reduce_max, reduce_sum
from gradtape._src.ops.samples import at, call, definite, inside, regular
from gradtape._src.ops.selection import boolean_mask
from gradtape._src.ops.static import ints_of
from gradtape._src.ops.table import COMPLEX, WIDE, composite, opaque
from gradtape._src.tensors.conversion import as_tensor

__all__ = [
    "eig", "eigh", "eigh_tridiagonal", "eigvals", "eigvalsh", "matrix_rank", "svd",
]  # fmt: skip


def _gaps(values):
    """1 / (v_j - v_i), and 0 on the diagonal and for values that coincide."""
    return divide_no_nan(
        np.ones((), values.dtype.as_numpy_dtype), expand_dims(values, -2) - expand_dims(values, -1)
    )


def _like(x, other):
    return cast(x, other.dtype) if other.dtype.is_complex else x


def _columns(x, factors):
    """x diag(factors), where factors may be real and x complex."""
    return x * expand_dims(_like(factors, x), -2)


def _plus(x, y):
    return y if x is None else x if y is None else x + y


# ---- singular values ----


def _turned(vectors, *partners):
    """Makes the largest component of each column positive; the columns of `partners` are multiplied by the same factors."""
    size = np.abs(vectors)
    first = np.argmax(size >= 0.99 * size.max(-2, keepdims=True, initial=0), -2) if vectors.shape[-2] else 0
    best = np.take_along_axis(vectors, np.expand_dims(first, -2), -2) if vectors.size else vectors[..., :1, :]
    turn = np.conj(best) / np.abs(best)
    return [x * turn[..., : x.shape[-1]] for x in (vectors, *partners)]


def _numpy_svd(x, full_matrices=False):
    u, s, vh = np.linalg.svd(x, full_matrices)
    v = np.conj(np.swapaxes(vh, -1, -2))
    if not x.size:
        return s, u, v
    k = s.shape[-1]
    left, right = _turned(u[..., :k], v[..., :k])
    more = [_turned(y[..., k:])[0] if y.shape[-1] > k else y[..., k:] for y in (u, v)]
    return s, np.concatenate([left, more[0]], -1), np.concatenate([right, more[1]], -1)


def _svd_rule(g, x, out, full_matrices):
    (gs, gu, gv), (s, u, v) = g, out
    rows, columns = x.shape[-2:]
    k = s.shape[-1]
    if full_matrices and abs(rows - columns) > 1:
        raise NotImplementedError(
            "svd: svd gradient is not implemented for abs(m - n) > 1 when full_matrices is True. Received: "
            f"m={rows} and n={columns}."
        )
    u1, v1 = (u[..., :k], v[..., :k]) if full_matrices else (u, v)
    if gu is None and gv is None:
        return product(_columns(u1, gs), v1, adjoint_b=True)
    inverse = divide_no_nan(np.ones((), s.dtype.as_numpy_dtype), s)
    middle = None if gs is None else matrix_diag(_like(gs, u), 0)
    beside, poles = None, _like(_gaps(s * s), u)
    if gu is not None:
        inner = product(u1, gu[..., :k] if full_matrices else gu, adjoint_a=True)
        middle = _plus(middle, _columns(poles * (inner - adjoint(inner)), s))
        if rows > k:
            part = gu[..., :k] if full_matrices else gu
            beside = product(_columns(part - product(u1, inner), inverse), v1, adjoint_b=True)
            if full_matrices:  # the last column is determined by the others
                turned = product(gu[..., k:], u1, adjoint_a=True)
                beside = beside - product(u[..., k:], product(_columns(turned, inverse), v1, adjoint_b=True))
    if gv is not None:
        inner = product(v1, gv[..., :k] if full_matrices else gv, adjoint_a=True)
        skew = poles * (inner - adjoint(inner))
        middle = _plus(middle, expand_dims(_like(s, u), -1) * skew)
        if u.dtype.is_complex:  # Wan and Zhang (2019): u and v share their phases
            middle = middle - matrix_diag(_like(imag(matrix_diag_part(inner, 0)) * inverse, u) * 1j, 0)
        if columns > k:
            part = gv[..., :k] if full_matrices else gv
            rest = product(u1, _columns(part - product(v1, inner), inverse), adjoint_b=True)
            if full_matrices:
                turned = product(gv[..., k:], v1, adjoint_a=True)
                rest = rest - product(
                    product(u1, _columns(turned, inverse), adjoint_b=True), v[..., k:], adjoint_b=True
                )
            beside = _plus(beside, rest)
    return _plus(product(product(u1, middle), v1, adjoint_b=True), beside)


_RANK = (call((3,)), "InvalidArgumentError", "must have rank >= 2, got 1")
_SVDS = [
    call(regular(3, 3)), call(regular(4, 2)), call(regular(2, 4)), call(regular(2, 3, 2)), call((1, 1)),
    call(regular(3, 3), full_matrices=True), call(regular(3, 2), full_matrices=True),
    call(regular(2, 3), full_matrices=True),
]  # fmt: skip
_MORE_SVDS = [
    call(regular(4, 2), full_matrices=True), call((0, 3)), call((3, 0)), call((0, 3, 2)),
    call((3, 0), full_matrices=True),
]  # fmt: skip
_SVD: dict[str, Any] = {
    "args": "tensor full_matrices:Bool=False", "many": True, "gaps": True, "rule": _svd_rule,
    "numpy": _numpy_svd, "batch": "leading", "native": "svd", "bad": [_RANK],
}  # fmt: skip

svd_real = opaque(
    "svd", WIDE, samples=[*_SVDS, *_MORE_SVDS], gradient_samples=_SVDS, xla="linalg_spectral.svd",
    doc="Singular values, left and right singular vectors of real matrices.", **_SVD,
)  # fmt: skip
svd_complex = opaque(
    "svd_complex", COMPLEX, samples=[call(inside(1, 2, 1, 1)), *_SVDS, *_MORE_SVDS],
    xla="linalg_spectral.svd",
    gradient_samples=[call(at([[2.0]]))],
    doc="Singular values, left and right singular vectors of complex matrices.", **_SVD,
)  # fmt: skip


def _svd_of(x):
    return (svd_complex if x.dtype.is_complex else svd_real)(x, False)


def _values_rule(g, x, out):
    _, u, v = _svd_of(x)
    return product(_columns(u, g), v, adjoint_b=True)


svd_values = opaque(
    "svdvals", LINEAR, "tensor", rule=_values_rule, batch="leading", xla="linalg_spectral.svdvals",
    numpy=lambda x: np.linalg.svd(x, compute_uv=False),
    samples=[call(regular(3, 3)), call(regular(4, 2)), call(regular(2, 2, 4)), call((0, 3)), call((0, 3, 2))],
    bad=[_RANK], doc="Singular values, the largest first.",
)  # fmt: skip


@composite("linalg.svd")
def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """The singular value decomposition `tensor = u @ diag(s) @ adjoint(v)`.

    The signs of the vectors make the largest component of each column of `u` positive.

    Args:
      full_matrices: make `u` and `v` square.
      compute_uv: False for the singular values alone.

    Returns:
      `s`, the largest first; `u`; and `v` (its columns, not their adjoint as in NumPy).
    """
    x = as_tensor(tensor)
    if not compute_uv:
        # The gradient needs the vectors, so both are computed together where a tape may ask for one.
        return _svd_of(x)[0] if _core.is_tracked(x) else svd_values(x)
    return (svd_complex if x.dtype.is_complex else svd_real)(x, full_matrices)


@composite("linalg.matrix_rank")
def matrix_rank(a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None) -> Any:
    """The number of singular values larger than `tol`, by default `s_max * max(rows, columns) * eps`."""
    x = as_tensor(a)
    if len(x.shape) < 2:
        raise ValueError(f"matrix_rank: Input `a` must have at least 2 dimensions (saw: {len(x.shape)}).")
    s = svd_values(cast(x, dtypes.float64) if x.dtype.is_integer else x)
    if tol is None:
        eps = float(np.finfo(s.dtype.as_numpy_dtype).eps)
        tol = eps * max(x.shape[-2:]) * reduce_max(s, -1, True)
    else:
        tol = as_tensor(tol, s)
    return reduce_sum(cast(s > tol, dtypes.int32), -1)


# ---- self-adjoint matrices ----


def _lower(x):
    """The gradient with respect to the lower triangle, the part of a self-adjoint matrix that is read."""
    return lower_half(x + adjoint(x))


def _eigh_rule(g, x, out):
    (gw, gv), (w, v) = g, out
    if gv is None:
        return _lower(product(_columns(v, gw), v, adjoint_b=True))
    inner = _like(_gaps(w), v) * product(v, gv, adjoint_a=True)
    if gw is not None:
        inner = inner + matrix_diag(_like(gw, v), 0)
    return _lower(product(product(v, inner), v, adjoint_b=True))


def _numpy_eigh(x):
    w, v = np.linalg.eigh(x)
    return w, _turned(v)[0] if x.size else v


_SQUARE = (call((2, 3)), "InvalidArgumentError", "Input matrix must be square.")
_EIGHS = [call(regular(3, 3)), call(regular(2, 2, 2)), call((1, 1)), call(definite(3, 3))]
_EIGH: dict[str, Any] = {
    "args": "tensor", "many": True, "gaps": True, "rule": _eigh_rule, "numpy": _numpy_eigh,
    "batch": "leading", "native": "eigh",
}  # fmt: skip
_FAILED = "Self-adjoint eigen decomposition was not successful. The input might not be valid."

eigh_real = opaque(
    "eigh", WIDE, samples=[*_EIGHS, call((0, 0)), call((0, 2, 2))], gradient_samples=_EIGHS[:3],
    xla="linalg_spectral.eigh",
    edges=[((at([[1.0, 0.0], [0.0, 1.0]]),), ([[1.0, 0.0], [0.0, 1.0]],))],
    bad=[_SQUARE, _RANK, (call(at([[np.nan, 1.0], [1.0, 1.0]])), "InvalidArgumentError", _FAILED)],
    doc="Eigenvalues and eigenvectors of real symmetric matrices.", **_EIGH,
)  # fmt: skip
eigh_complex = opaque(
    "eigh_complex", COMPLEX, samples=[*_EIGHS, call((0, 0)), call((0, 2, 2))], gradient_samples=[call((1, 1))],
    xla="linalg_spectral.eigh",
    bad=[_SQUARE], doc="Eigenvalues and eigenvectors of complex self-adjoint matrices.", **_EIGH,
)  # fmt: skip


def _eigh_of(x):
    return (eigh_complex if x.dtype.is_complex else eigh_real)(x)


def _eigvalsh_rule(g, x, out):
    _, v = _eigh_of(x)
    return _lower(product(_columns(v, g), v, adjoint_b=True))


eigh_values = opaque(
    "eigvalsh", LINEAR, "tensor", rule=_eigvalsh_rule, numpy=np.linalg.eigvalsh, batch="leading",
    xla="linalg_spectral.eigvalsh",
    samples=[*_EIGHS, call((0, 0)), call((0, 2, 2))], gradient_samples=_EIGHS[:3], bad=[_SQUARE, _RANK],
    doc="Eigenvalues of self-adjoint matrices, the smallest first.",
)  # fmt: skip


@composite("linalg.eigh")
def eigh(tensor: Any, name: str | None = None) -> tuple:
    """Eigenvalues, the smallest first, and eigenvectors (columns) of self-adjoint matrices.

    Only the lower triangle is read, so gradients are zero above the diagonal. The largest component of
    each vector is positive. As in TensorFlow the eigenvalues of a complex matrix are complex numbers.
    """
    x = as_tensor(tensor)
    if x.dtype.is_complex:
        values, vectors = eigh_complex(x)
        return cast(values, x.dtype), vectors
    return eigh_real(x)


@composite("linalg.eigvalsh")
def eigvalsh(tensor: Any, name: str | None = None) -> Any:
    """Eigenvalues of self-adjoint matrices, the smallest first; only the lower triangle is read."""
    x = as_tensor(tensor)
    return _like(_eigh_of(x)[0] if _core.is_tracked(x) else eigh_values(x), x)  # as in `svd`


def _rounding_of_eigenvalues(alpha, beta):
    """A bound of the rounding error of eigenvalues of a tridiagonal matrix: 2.1 n eps |T|, |T| by Gershgorin's bound."""
    sides = abs_(beta)
    width = [0, 0] * (len(sides.shape) - 1)
    rows = padded(sides, 0, [*width, 0, 1]) + padded(sides, 0, [*width, 1, 0])
    norm = reduce_max(abs_(real(alpha) if alpha.dtype.is_complex else alpha) + rows)
    return 2.1 * alpha.shape[-1] * float(np.finfo(norm.dtype.as_numpy_dtype).eps) * norm


@composite("linalg.eigh_tridiagonal")
def eigh_tridiagonal(
    alpha: Any,
    beta: Any,
    eigvals_only: bool = True,
    select: str = "a",
    select_range: Any = None,
    tol: Any = None,
    name: str | None = None,
) -> Any:
    """Eigenvalues (and vectors) of self-adjoint tridiagonal matrices.

    Args:
      alpha: the main diagonal; only the real part is used.
      beta: the superdiagonal; the subdiagonal is its conjugate.
      eigvals_only: False to return the eigenvectors, too.
      select: "a" for all eigenvalues; "i" for those with an index in `select_range`, both ends included; "v"
        for those with a value in it. As in TensorFlow, that interval is widened by a bound of the rounding
        error.
    """
    alpha, beta = as_tensor(alpha), as_tensor(beta)
    if alpha.dtype is not beta.dtype:
        raise ValueError("eigh_tridiagonal: 'alpha' and 'beta' must have the same type.")
    if select not in ("a", "i", "v"):
        raise ValueError("eigh_tridiagonal: 'select must have a value in {'a', 'i', 'v'}.")
    if select != "a" and (select_range is None or len(select_range) != 2):
        raise ValueError(
            f"eigh_tridiagonal: select={select!r} needs a select_range of two; got {select_range!r}."
        )
    matrix = matrix_diag(alpha, 0) + matrix_diag(conjugate(beta), -1)
    if eigvals_only:
        values, vectors = eigh_values(matrix), None
    else:
        values, vectors = _eigh_of(matrix)
    if select == "i":
        first, last = ints_of(select_range)
        if first > last:
            raise InvalidArgumentError(
                f"eigh_tridiagonal: Got empty index range in select_range. {first} > {last}"
            )
        if not 0 <= first <= last < alpha.shape[-1]:
            raise ValueError(
                f"eigh_tridiagonal: select_range {select_range!r} is not inside [0, {alpha.shape[-1]})."
            )
        values = values[..., first : last + 1]
        vectors = vectors if vectors is None else vectors[..., first : last + 1]
    elif select == "v":
        low, high = (as_tensor(v, values) for v in select_range)
        if not low < high:
            raise InvalidArgumentError(
                f"eigh_tridiagonal: Got empty interval in select_range. {float(low)} >= {float(high)}"
            )
        slack = _rounding_of_eigenvalues(stop_gradient(alpha), stop_gradient(beta))
        chosen = (values >= low - slack) & (values <= high + slack)
        values = boolean_mask(values, chosen)
        vectors = vectors if vectors is None else boolean_mask(vectors, chosen, axis=1)
    return values if vectors is None else (values, vectors)


# ---- general matrices ----


def _eig_rule(g, x, out):
    """The gradient for vectors of length 1: the component along the vector is removed."""
    (gw, gv), (w, v) = g, out
    inner = None if gw is None else matrix_diag(gw, 0)
    if gv is not None:
        part = product(v, gv, adjoint_a=True)
        length = cast(real(matrix_diag_part(part, 0)), w.dtype)
        part = part - _columns(product(v, v, adjoint_a=True), length)
        inner = _plus(inner, conjugate(_gaps(w)) * part)
    return solve(v, product(inner, v, adjoint_b=True), True)


def _numpy_eig(x):
    w, v = np.linalg.eig(x)
    kind = np.result_type(x.dtype, np.complex64)
    order = np.lexsort((-w.imag, w.real), axis=-1)
    w, v = np.take_along_axis(w, order, -1), np.take_along_axis(v, order[..., None, :], -1)
    return w.astype(kind), (_turned(v)[0] if x.size else v).astype(kind)


# With real eigenvalues: derivatives of complex vectors, which have a phase, cannot be checked by differences.
_EIGS = [call(regular(3, 3)), call(at([[[1.0, 2.0], [0.5, 3.0]], [[2.0, -1.0], [1.0, 5.0]]])), call((1, 1))]
_EIG: dict[str, Any] = {
    "args": "tensor", "many": True, "gaps": True, "rule": _eig_rule, "numpy": _numpy_eig,
    "batch": "leading", "native": "eig",
}  # fmt: skip

eig_real = opaque(
    "eig", WIDE, samples=[*_EIGS, call((0, 0)), call(at([[0.0, 1.0], [-1.0, 0.5]]))],
    gradient_samples=_EIGS, bad=[_SQUARE, _RANK], doc="Eigenvalues and eigenvectors of real matrices.", **_EIG,
)  # fmt: skip
eig_complex = opaque(
    "eig_complex", COMPLEX, samples=[*_EIGS, call((0, 0)), call((0, 2, 2))], gradient_samples=[call((1, 1))],
    bad=[_SQUARE], doc="Eigenvalues and eigenvectors of complex matrices.", **_EIG,
)  # fmt: skip


def _eigvals_rule(g, x, out):
    """The rule computes values and vectors together: where real parts tie, the order of `out` may be another."""
    w, v = (eig_complex if x.dtype.is_complex else eig_real)(x)
    same = argmin(abs_(expand_dims(out, -2) - expand_dims(w, -1)), -1)
    g = take_along(g, same, len(g.shape) - 1)
    return solve(v, product(matrix_diag(g, 0), v, adjoint_b=True), True)


eig_values = opaque(
    "eigvals", LINEAR, "tensor", rule=_eigvals_rule, batch="leading", numpy=lambda x: _numpy_eig(x)[0],
    samples=[*_EIGS, call((0, 0)), call(at([[0.0, 1.0], [-1.0, 0.5]]))], gradient_samples=_EIGS,
    bad=[_SQUARE, _RANK], doc="Eigenvalues of general matrices, as complex numbers.",
)  # fmt: skip


@composite("linalg.eig eig")
def eig(tensor: Any, name: str | None = None) -> tuple:
    """Eigenvalues and eigenvectors (columns, of length 1) of general matrices, always complex.

    Eigenvalues are sorted by their real parts.
    """
    x = as_tensor(tensor)
    return (eig_complex if x.dtype.is_complex else eig_real)(x)


@composite("linalg.eigvals eigvals")
def eigvals(tensor: Any, name: str | None = None) -> Any:
    """Eigenvalues of general matrices, always complex."""
    return eig_values(tensor)
