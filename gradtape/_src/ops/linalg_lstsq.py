"""Least squares, and the pseudo-inverse."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape._src.base import dtypes
from gradtape._src.ops.casting import cast
from gradtape._src.ops.contraction import matmul
from gradtape._src.ops.creation import eye
from gradtape._src.ops.linalg_factor import cholesky, cholesky_solve
from gradtape._src.ops.linalg_solve import LINEAR, product
from gradtape._src.ops.movement import adjoint, broadcast_to
from gradtape._src.ops.samples import at, call, regular
from gradtape._src.ops.table import composite, opaque
from gradtape._src.tensors.conversion import as_tensor, as_tensors

__all__ = ["lstsq", "pinv"]


def _pinv_rule(g, a, rcond, out):
    """Golub and Pereyra (1973); the rank is assumed to be locally constant."""
    gh = adjoint(g)
    first = product(product(out, g, adjoint_a=True), out, adjoint_b=True)
    left = product(gh - product(a, product(out, gh)), product(out, out, adjoint_b=True))
    right = product(product(out, out, adjoint_a=True), gh - product(product(gh, out), a))
    return left + right - first


_SMALL = at(1e-6, "float64")

pinv_of = opaque(
    "pinv", LINEAR, "a rcond:Free", rule=(_pinv_rule, None), batch="leading", xla="linalg_lstsq.pinv",
    numpy=lambda a, rcond: np.linalg.pinv(a, rcond=rcond) if a.size else np.swapaxes(a, -1, -2),
    samples=[
        call(regular(3, 3), _SMALL), call(regular(4, 2), _SMALL), call((0, 3), _SMALL),
        call(regular(2, 2, 4), at([1e-6, 1e-6], "float64")),
    ],
    bad=[(call((3, 2), at([1.0], "float64")), "InvalidArgumentError", "rcond must be")],
    doc="The pseudo-inverses of matrices; singular values below `rcond` times the largest count as 0.",
)  # fmt: skip


@composite("linalg.pinv")
def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Any:
    """The Moore-Penrose pseudo-inverse.

    Args:
      rcond: singular values up to `rcond` times the largest count as 0: a number, or one for each matrix.
        By default `10 * max(rows, columns) * eps`.
    """
    x = as_tensor(a)
    if not (x.dtype.is_floating or x.dtype.is_complex):
        raise TypeError(f"pinv: Input `a` must have `float`-like `dtype` (saw {x.dtype.name}).")
    if len(x.shape) < 2:
        raise ValueError(f"pinv: Input `a` must have at least 2 dimensions (saw: {len(x.shape)}).")
    kind = x.dtype.real_dtype
    if rcond is None:
        rcond = 10.0 * max(x.shape[-2:]) * float(np.finfo(kind.as_numpy_dtype).eps)
    return pinv_of(x, broadcast_to(cast(as_tensor(rcond), dtypes.float64), x.shape[:-2]))


@composite("linalg.lstsq")
def lstsq(
    matrix: Any, rhs: Any, l2_regularizer: Any = 0.0, fast: bool = True, name: str | None = None
) -> Any:
    """The `x` that minimises `norm(matrix @ x - rhs)`; if there are many, the one of least norm.

    Args:
      l2_regularizer: add this times the squared norm of `x` to the squared residual.
      fast: use Cholesky factors of the normal equations, for well-conditioned matrices of full rank;
        otherwise singular values, without `l2_regularizer`.
    """
    a, b = as_tensors(matrix, rhs)
    if not fast:
        eps = float(np.finfo(a.dtype.real_dtype.as_numpy_dtype).eps)
        return matmul(pinv(a, rcond=max(a.shape[-2:]) * eps), b)
    rows, columns = a.shape[-2:]
    over = rows >= columns
    gram = product(a, a, adjoint_a=True) if over else product(a, a, adjoint_b=True)
    number = isinstance(l2_regularizer, (int, float))
    if not number or l2_regularizer:
        shift = l2_regularizer if number else cast(as_tensor(l2_regularizer), a.dtype)
        gram = gram + shift * eye(gram.shape[-1], dtype=a.dtype)
    if over:
        return cholesky_solve(cholesky(gram), product(a, b, adjoint_a=True))
    return product(a, cholesky_solve(cholesky(gram), b), adjoint_a=True)
