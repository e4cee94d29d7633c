"""Banded matrices: tridiagonal systems and products, banded triangular systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops.arithmetic import conjugate
from gradtape._src.ops.diagonals import matrix_diag_part
from gradtape._src.ops.join import stack
from gradtape._src.ops.linalg_solve import LINEAR, batch_of_solve
from gradtape._src.ops.movement import broadcast_to, expand_dims, padded, squeeze, transpose
from gradtape._src.ops.reduction import reduce_sum
from gradtape._src.ops.samples import call, inside
from gradtape._src.ops.table import composite, opaque
from gradtape._src.tensors.conversion import as_tensor, as_tensors

__all__ = ["banded_triangular_solve", "tridiagonal_matmul", "tridiagonal_solve"]


def _moved(x, by, axis):
    """Shifts `x` along `axis`, a negative number: element i is x[i + by], and 0 beyond the ends."""
    n = x.shape[axis]
    if by == 0:
        return x
    by = max(min(by, n), -n)
    part = [slice(None)] * len(x.shape)
    part[axis] = slice(by, None) if by > 0 else slice(None, n + by)
    widths = [0, 0] * len(x.shape)
    at = 2 * (len(x.shape) + axis)
    widths[at : at + 2] = [0, by] if by > 0 else [-by, 0]
    return padded(x[tuple(part)], 0, widths)


# ---- tridiagonal ----


def _adjoint_of(diagonals):
    """The diagonals of the adjoint: those above and below exchanged, and shifted by one."""
    above, main, below = (conjugate(diagonals[..., i, :]) for i in range(3))
    return stack([_moved(below, 1, -1), main, _moved(above, -1, -1)], -2)


def _tridiagonal_rule(g, diagonals, rhs, out, partial_pivoting, perturb_singular):
    gb = tridiagonal_of(_adjoint_of(diagonals), g, partial_pivoting, perturb_singular)
    x = conjugate(out)
    return -stack([reduce_sum(gb * _moved(x, by, -2), -1) for by in (1, 0, -1)], -2), gb


def _dense(diagonals):
    n = diagonals.shape[-1]
    out = np.zeros((*diagonals.shape[:-2], n, n), diagonals.dtype)
    i = np.arange(n)
    out[..., i[:-1], i[1:]] = diagonals[..., 0, :-1]
    out[..., i, i] = diagonals[..., 1, :]
    out[..., i[1:], i[:-1]] = diagonals[..., 2, 1:]
    return out


_DIAGONALS = inside(0.5, 4, 3, 4)

tridiagonal_of = opaque(
    "tridiagonal_solve", LINEAR, "diagonals rhs partial_pivoting:Bool=True perturb_singular:Bool=False",
    xla="linalg_banded.tridiagonal_solve",
    linear="rhs",
    rule=_tridiagonal_rule, joint=True, batch=batch_of_solve("tridiagonal_solve"),
    numpy=lambda d, b, partial_pivoting=True, perturb_singular=False: np.linalg.solve(_dense(d), b),
    samples=[
        call(_DIAGONALS, (4, 2)), call(_DIAGONALS, (4, 1), partial_pivoting=False), call((3, 1), (1, 2)),
        call(inside(1, 3, 2, 3, 3), (2, 3, 2)), call((3, 0), (0, 2)), call((0, 3, 2), (0, 2, 1)), call((3, 2), (2, 0)),
    ],
    bad=[
        (call((2, 3), (3, 1)), "InvalidArgumentError", "Expected 3 diagonals got 2"),
        (call((3, 3), (4, 1)), "InvalidArgumentError", "to be equal, got 3 and 4"),
    ],
    doc="Solves tridiagonal systems; the rows of `diagonals` are the superdiagonal, the main diagonal and the subdiagonal.",
)  # fmt: skip


def _compact(op: str, diagonals: Any, form: str, rhs: Any) -> Any:
    """Converts the diagonals, in any `diagonals_format`, to three rows of one matrix."""
    if form == "compact":
        diagonals = as_tensor(diagonals, rhs)
        if len(diagonals.shape) < 2:
            raise ValueError(f"{op}: Expected diagonals to have rank at least 2, got {len(diagonals.shape)}")
        if diagonals.shape[-2] != 3:
            raise ValueError(f"{op}: Expected 3 diagonals got {diagonals.shape[-2]}")
        return diagonals
    if form == "sequence":
        if not isinstance(diagonals, (list, tuple)) or len(diagonals) != 3:
            raise ValueError(f"{op}: Expected diagonals to be a sequence of length 3.")
        above, main, below = (as_tensor(d, rhs) for d in diagonals)
        n = main.shape[-1]
        ends = [0, 0] * (len(main.shape) - 1)
        if above.shape[-1] == n - 1:
            above = padded(above, 0, [*ends, 0, 1])
        if below.shape[-1] == n - 1:
            below = padded(below, 0, [*ends, 1, 0])
        for d in (above, below):
            if d.shape[-1] != n:
                raise ValueError(
                    f"{op}: Expected the side diagonals to have {n} or {n - 1} places, got {d.shape}"
                )
        return stack([above, main, below], -2)
    if form == "matrix":
        matrix = as_tensor(diagonals, rhs)
        if len(matrix.shape) < 2 or matrix.shape[-1] != matrix.shape[-2]:
            raise ValueError(
                f"{op}: Expected last two dimensions of diagonals to be equal, got {matrix.shape}"
            )
        ends = [0, 0] * (len(matrix.shape) - 2)
        if matrix.shape[-1] == 1:
            main = matrix_diag_part(matrix, 0)
            return stack([0 * main, main, 0 * main], -2)
        return stack(
            [
                padded(matrix_diag_part(matrix, 1), 0, [*ends, 0, 1]),
                matrix_diag_part(matrix, 0),
                padded(matrix_diag_part(matrix, -1), 0, [*ends, 1, 0]),
            ],
            -2,
        )
    raise ValueError(f"{op}: Unrecognized diagonals_format: {form}")


@composite("linalg.tridiagonal_solve")
def tridiagonal_solve(
    diagonals: Any,
    rhs: Any,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
    perturb_singular: bool = False,
) -> Any:
    """Solves tridiagonal systems in linear time.

    Args:
      diagonals: "compact": rows `[..., 3, n]` with the superdiagonal (its last element is not used), the main
        diagonal, and the subdiagonal (its first element is not used). "sequence": these three in a list,
        super- and subdiagonal with n or n - 1 elements. "matrix": the matrices themselves.
      rhs: one right-hand side, or a matrix with one per column.
      transpose_rhs, conjugate_rhs: right-hand sides are rows; take their conjugates.
      partial_pivoting: swap rows where that is more accurate.
      perturb_singular: replace a pivot that is 0 with a very small number.
    """
    if perturb_singular and not partial_pivoting:
        raise ValueError("tridiagonal_solve: partial_pivoting must be True if perturb_singular is.")
    first = (
        diagonals[1] if isinstance(diagonals, (list, tuple)) and diagonals_format == "sequence" else diagonals
    )
    rhs = as_tensor(rhs, first)
    rows = _compact("tridiagonal_solve", diagonals, diagonals_format, rhs)
    rank = len(rows.shape)
    if len(rhs.shape) not in (rank - 1, rank):
        raise ValueError(
            f"tridiagonal_solve: Expected the rank of rhs to be {rank - 1} or {rank}, got {len(rhs.shape)}"
        )
    if conjugate_rhs:
        rhs = conjugate(rhs)
    vector = len(rhs.shape) == rank - 1
    if vector:
        rhs = expand_dims(rhs, -1)
    elif transpose_rhs:
        rhs = transpose(rhs, [*range(rank - 2), rank - 1, rank - 2])
    if rhs.shape[-2] != rows.shape[-1]:
        raise ValueError(
            "tridiagonal_solve: Expected number of left-hand sided and right-hand sides to be equal, got "
            f"{rows.shape[-1]} and {rhs.shape[-2]}"
        )
    out = tridiagonal_of(rows, rhs, partial_pivoting, perturb_singular)
    return squeeze(out, [-1]) if vector else out


@composite("linalg.tridiagonal_matmul")
def tridiagonal_matmul(
    diagonals: Any, rhs: Any, diagonals_format: str = "compact", name: str | None = None
) -> Any:
    """The product of tridiagonal matrices, given as in `tridiagonal_solve`, and matrices."""
    first = (
        diagonals[1] if isinstance(diagonals, (list, tuple)) and diagonals_format == "sequence" else diagonals
    )
    rhs = as_tensor(rhs, first)
    rows = _compact("tridiagonal_matmul", diagonals, diagonals_format, rhs)
    if len(rhs.shape) != len(rows.shape):
        raise InvalidArgumentError(
            f"tridiagonal_matmul: All input tensors must have the same rank; got {rows.shape} and {rhs.shape}."
        )
    if rhs.shape[-2] != rows.shape[-1]:
        raise InvalidArgumentError(
            f"tridiagonal_matmul: rhs needs {rows.shape[-1]} rows; got shape {rhs.shape}."
        )
    above, main, below = (expand_dims(rows[..., i, :], -1) for i in range(3))
    return main * rhs + above * _moved(rhs, 1, -2) + below * _moved(rhs, -1, -2)


# ---- banded triangular systems ----


def _banded_rule(g, bands, rhs, out, lower, adj):
    gb = banded_of(bands, g, lower, not adj)
    # The gradient of element (r, c) is -gb[r] * conj(x[c]), or with `adjoint` -x[r] * conj(gb[c]).
    left, right = (out, conjugate(gb)) if adj else (gb, conjugate(out))
    count = bands.shape[-2]
    places = [-d for d in range(count)] if lower else [count - 1 - d for d in range(count)]
    return -stack([reduce_sum(left * _moved(right, by, -2), -1) for by in places], -2), gb


def _numpy_banded(bands, rhs, lower=True, adjoint=False):
    count, n = bands.shape[-2:]
    dense = np.zeros((*bands.shape[:-2], n, n), bands.dtype)
    for d in range(count):
        r = np.arange(d, n) if lower else np.arange(n - d)
        dense[..., r, r - d if lower else r + d] = bands[..., d if lower else count - 1 - d, r]
    return np.linalg.solve(np.conj(np.swapaxes(dense, -1, -2)) if adjoint else dense, rhs)


_BANDS = inside(0.5, 2, 2, 4)

banded_of = opaque(
    "banded_triangular_solve", LINEAR, "bands rhs lower:Bool=True adjoint:Bool=False", rule=_banded_rule,
    xla="linalg_banded.banded_triangular_solve",
    linear="rhs",
    joint=True, numpy=_numpy_banded, batch=batch_of_solve("banded_triangular_solve"),
    samples=[
        call(_BANDS, (4, 2)), call(_BANDS, (4, 1), lower=False), call(inside(0.5, 2, 3, 3), (3, 2), adjoint=True),
        call(_BANDS, (4, 2), lower=False, adjoint=True), call(inside(1, 2, 2, 1, 3), (2, 3, 2)),
        call(inside(1, 2, 0, 1, 3), (0, 3, 2)),
    ],
    bad=[
        (call((2, 3), (3,)), "InvalidArgumentError", "In[1] ndims must be >= 2: 1"),
        (call(inside(0, 0, 2, 3), (3, 1)), "InvalidArgumentError", "Input matrix is not invertible."),
        (call((2, 3), (4, 1)), "InvalidArgumentError", "In[0] mismatch In[1] shape"),
    ],
    doc="Solves banded triangular systems; `bands` has the diagonals as rows.",
)  # fmt: skip


@composite("linalg.banded_triangular_solve")
def banded_triangular_solve(
    bands: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Any:
    """Solves banded triangular systems.

    Args:
      bands: the diagonals as rows `[..., count, n]`. For a lower triangle, the main diagonal first, and those
        below it right-aligned; for an upper triangle the main diagonal last, and those above it left-aligned.
      rhs: matrices with one right-hand side per column. Batch dimensions broadcast.
      lower: whether the matrix is lower triangular.
      adjoint: solve with the conjugate transpose.
    """
    bands, rhs = as_tensors(bands, rhs)
    if bands.ndim > 1 and bands.shape[-2] > bands.shape[-1] > 0:  # diagonals outside of the matrix
        n = bands.shape[-1]
        bands = bands[..., :n, :] if lower else bands[..., -n:, :]
    if bands.ndim > 1 and rhs.ndim > 1 and bands.shape[:-2] != rhs.shape[:-2]:
        bands, rhs = _same_batch(bands, rhs)
    return banded_of(bands, rhs, lower, adjoint)


def _same_batch(bands, rhs):
    shapes = [x.shape.as_list() for x in (bands, rhs)]
    try:
        batch = np.broadcast_shapes(*(s[:-2] for s in shapes))
    except ValueError:
        raise InvalidArgumentError(
            "banded_triangular_solve: In[0] and In[1] must have compatible batch dimensions: "
            f"{shapes[0]} vs. {shapes[1]}"
        ) from None
    return tuple(broadcast_to(x, [*batch, *s[-2:]]) for x, s in zip((bands, rhs), shapes, strict=True))
