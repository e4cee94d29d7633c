"""Systems of linear equations: solve and its triangular form, inverses, determinants.

Rules handle batches, and use differentiable ops. Banded systems are in `linalg_banded`, factorisations in
`linalg_factor` and `linalg_spectral`, least squares in `linalg_lstsq`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.ops.arithmetic import conjugate, imag, real
from gradtape._src.ops.casting import cast
from gradtape._src.ops.contraction import matmul
from gradtape._src.ops.diagonals import band_part
from gradtape._src.ops.movement import broadcast_to, expand_dims, reshape, transpose
from gradtape._src.ops.samples import at, call, regular
from gradtape._src.ops.table import COMPLEX, TABLE, WIDE, composite, opaque
from gradtape._src.tensors.conversion import as_tensor

__all__ = ["det", "inv", "slogdet", "solve", "triangular_solve"]

"""float32 and float64."""
LINEAR = WIDE | COMPLEX
"""The types that LAPACK supports."""


def product(a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False) -> Any:
    """`matmul`, always as the native op."""
    return matmul(conjugate(a) if adjoint_a else a, conjugate(b) if adjoint_b else b, adjoint_a, adjoint_b)


def _apply(name: str, operands: list, attrs: tuple) -> Any:
    return _core.apply(TABLE[name].op, operands, attrs)[0]


def batch_of_solve(name: str) -> Any:
    """The batching rule of an op `(matrix, rhs)`: right-hand sides of one matrix become more columns."""

    def rule(size, batched, operands, attrs):
        a, b = operands
        if not batched[0]:
            last = b.ndim - 1
            wide = transpose(b, [*range(1, last), 0, last])
            wide = reshape(wide, [*wide.shape[:-2], size * b.shape[-1]])
            x = _apply(name, [a, wide], attrs)
            x = reshape(x, [*x.shape[:-1], size, b.shape[-1]])
            last = x.ndim - 1
            return transpose(x, [last - 1, *range(last - 1), last])
        if not batched[1]:
            b = broadcast_to(b, [size, *b.shape])
        rank = max(a.ndim, b.ndim)
        a, b = (reshape(x, [size, *[1] * (rank - x.ndim), *x.shape[1:]]) for x in (a, b))
        return _apply(name, [a, b], attrs)

    return rule


# ---- triangular systems ----


def _triangular_rule(g, a, b, out, lower, adj):
    gb = triangular_solve(a, g, lower, not adj)
    ga = product(out, gb, adjoint_b=True) if adj else product(gb, out, adjoint_b=True)
    return -(band_part(ga, -1, 0) if lower else band_part(ga, 0, -1)), gb


def _numpy_triangular(a, b, lower=True, adjoint=False):
    a = np.tril(a) if lower else np.triu(a)
    a = np.conj(np.swapaxes(a, -1, -2)) if adjoint else a
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return np.linalg.solve(np.broadcast_to(a, batch + a.shape[-2:]), np.broadcast_to(b, batch + b.shape[-2:]))


triangular_solve = opaque(
    "triangular_solve", LINEAR, "matrix rhs lower:Bool=True adjoint:Bool=False", rule=_triangular_rule,
    xla="linalg_solve.triangular_solve",
    linear="rhs",
    joint=True, numpy=_numpy_triangular, batch=batch_of_solve("triangular_solve"),
    samples=[
        call(regular(3, 3), (3, 2)), call(regular(3, 3), (3, 2), lower=False),
        call(regular(3, 3), (3, 1), adjoint=True), call(regular(2, 2), (2, 2), lower=False, adjoint=True),
        call(regular(4, 2, 2), (4, 2, 3)), call(regular(2, 2), (3, 2, 1)),
        call(regular(2, 1, 2, 2), (3, 2, 1), adjoint=True),
        call((0, 0), (0, 2)), call((2, 2), (2, 0)), call((0, 2, 2), (0, 2, 1)),
    ],
    bad=[
        (call((2, 3), (2, 1)), "InvalidArgumentError", "must be square"),
        (call((2, 2), (3, 1)), "InvalidArgumentError", "In[0] mismatch In[1] shape: 2 vs. 3"),
        (call((2, 2), (2,)), "InvalidArgumentError", "In[1] ndims must be >= 2: 1"),
        (call((2, 2, 2), (3, 2, 1)), "InvalidArgumentError", "compatible batch dimensions"),
    ],
    names="linalg.triangular_solve",
    doc="""Solves `matrix @ x = rhs` where `matrix` is triangular.

Args:
  matrix: square matrices; the other triangle is not read. Batch dimensions broadcast.
  rhs: matrices with one right-hand side per column.
  lower: whether the lower triangle is read.
  adjoint: solve with the conjugate transpose.
""",
)  # fmt: skip


# ---- general systems ----


def _solve_rule(g, a, b, out, adj):
    gb = solve(a, g, not adj)
    ga = product(out, gb, adjoint_b=True) if adj else product(gb, out, adjoint_b=True)
    return -ga, gb


solve = opaque(
    "solve", LINEAR, "matrix rhs adjoint:Bool=False", rule=_solve_rule, joint=True, linear="rhs",
    xla="linalg_solve.solve",
    numpy=lambda a, b, adjoint=False: np.linalg.solve(
        np.conj(np.swapaxes(a, -1, -2)) if adjoint else a, b
    ),
    batch=batch_of_solve("solve"),
    samples=[
        call(regular(3, 3), (3, 2)), call(regular(3, 3), (3, 1), adjoint=True),
        call(regular(4, 2, 2), (4, 2, 3)), call(regular(1, 1), (1, 1)), call((0, 0), (0, 2)),
        call((2, 2), (2, 0)), call((0, 2, 2), (0, 2, 1)), call(at([[0.0, 2.0], [3.0, 0.5]]), (2, 2)),
    ],
    bad=[
        (call(at([[1.0, 2.0], [2.0, 4.0]]), (2, 1)), "InvalidArgumentError", "Input matrix is not invertible."),
        (call((2, 3), (2, 1)), "InvalidArgumentError", "First input (lhs) must be a square matrix."),
        (call((2, 2), (3, 1)), "InvalidArgumentError", "Input matrix and rhs are incompatible."),
        (call((2, 2), (2,)), "InvalidArgumentError", "All input tensors must have the same rank."),
        (call((2, 2, 2), (3, 2, 1)), "InvalidArgumentError", "must have the same outer dimensions"),
    ],
    names="linalg.solve",
    doc="""Solves `matrix @ x = rhs`, by LU factors with partial pivoting.

Args:
  matrix: square matrices `[..., n, n]`.
  rhs: right-hand sides `[..., n, k]`, one per column, with the same batch dimensions.
  adjoint: solve with the conjugate transpose.
""",
)  # fmt: skip


def _inv_rule(g, x, out, adj):
    if adj:
        return -product(product(out, g, adjoint_b=True), out)
    return -product(product(out, g, adjoint_a=True), out, adjoint_b=True)


inv = opaque(
    "inv", LINEAR, "input adjoint:Bool=False", rule=_inv_rule, batch="leading", xla="linalg_solve.inv",
    numpy=lambda x, adjoint=False: np.linalg.inv(np.conj(np.swapaxes(x, -1, -2)) if adjoint else x),
    samples=[
        call(regular(3, 3)), call(regular(2, 2), adjoint=True), call(regular(3, 2, 2)), call((0, 0)),
        call((0, 2, 2)), call(at([[0.0, 2.0], [3.0, 0.5]])),
    ],
    bad=[
        (call(at([[1.0, 2.0], [2.0, 4.0]])), "InvalidArgumentError", "Input is not invertible."),
        (call(at([[np.nan, 2.0], [2.0, 4.0]])), "InvalidArgumentError", "Input is not invertible."),
        (call((2, 3)), "InvalidArgumentError", "Input matrix must be square."),
        (call((3,)), "InvalidArgumentError", "must have rank >= 2, got 1"),
    ],
    doc="The inverses of square matrices; with `adjoint`, of their conjugate transposes.",
)  # fmt: skip


@composite("linalg.inv")
def inverse(input: Any, adjoint: bool = False, name: str | None = None) -> Any:
    """The inverses of square matrices; with `adjoint`, of their conjugate transposes. float16 is computed in float32."""
    x = as_tensor(input)
    if x.dtype is dtypes.float16:
        return cast(inv(cast(x, dtypes.float32), adjoint), dtypes.float16)
    return inv(x, adjoint)


# ---- determinants ----


def _as_matrix(x):
    return expand_dims(expand_dims(x, -1), -1)


det = opaque(
    "det", LINEAR, "input", batch="leading", xla="linalg_solve.det",
    rule=lambda g, x, out: _as_matrix(g * conjugate(out)) * inv(x, True),
    numpy=np.linalg.det,
    samples=[
        call(regular(3, 3)), call(regular(2, 2, 2)), call((0, 0)), call((0, 2, 2)), call(regular(1, 1)),
        call(at([[0.0, 2.0], [3.0, 0.5]])), call(at([[1.0, 2.0], [2.0, 4.0]])),
    ],
    gradient_samples=[
        call(regular(3, 3)), call(regular(2, 2, 2)), call(regular(1, 1)), call(at([[0.0, 2.0], [3.0, 0.5]])),
    ],
    bad=[(call((2, 3)), "InvalidArgumentError", "Input matrix must be square.")],
    names="linalg.det",
    doc="The determinants of square matrices. The gradient needs the inverse.",
)  # fmt: skip


def _slogdet_rule(g, x, out):
    """The derivative of log|det x| is the real part of tr(x^-1 dx); that of the phase of a complex determinant is
    the imaginary part."""
    g_sign, g_log = g
    if not x.dtype.is_complex:
        return _as_matrix(g_log) * inv(x, True)
    turn = imag(g_sign * conjugate(out[0]))
    return _as_matrix(cast(real(g_log), x.dtype) + cast(turn, x.dtype) * 1j) * inv(x, True)


def _numpy_slogdet(x):
    sign, log = np.linalg.slogdet(x)
    return sign, log.astype(x.dtype)


slogdet_of = opaque(
    "slogdet", LINEAR, "input", many=True, rule=_slogdet_rule, batch="leading", numpy=_numpy_slogdet,
    xla="linalg_solve.slogdet",
    samples=[
        call(regular(3, 3)), call(regular(2, 2, 2)), call((0, 0)), call((0, 2, 2)),
        call(at([[0.0, 2.0], [3.0, 0.5]])), call(at([[1.0, 2.0], [2.0, 4.0]])),
    ],
    gradient_samples=[call(regular(3, 3)), call(regular(2, 2, 2)), call(at([[0.0, 2.0], [3.0, 0.5]]))],
    bad=[(call((2, 3)), "InvalidArgumentError", "Input matrix must be square.")],
    doc="The sign of the determinant and the logarithm of its absolute value.",
)  # fmt: skip


class LogMatrixDeterminant(NamedTuple):
    """What `slogdet` returns."""

    sign: _core.Tensor
    log_abs_determinant: _core.Tensor


@composite("linalg.slogdet")
def slogdet(input: Any, name: str | None = None) -> LogMatrixDeterminant:
    """The sign, and the logarithm of the absolute value, of determinants. Large determinants do not overflow."""
    return LogMatrixDeterminant(*slogdet_of(input))
