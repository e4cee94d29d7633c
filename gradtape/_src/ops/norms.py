"""Norms of vectors and matrices, and tensors divided by their norm.

The gradient of a norm at 0 is 0, not NaN as in TensorFlow: a regulariser or a distance must not
destroy a training run because two points coincide.
"""

from __future__ import annotations

from math import inf as _inf

import numpy as np

from gradtape._src.ops import casting, movement
from gradtape._src.ops.arithmetic import abs_, conj, conjugate, divide_no_nan, pow_
from gradtape._src.ops.comparison import select
from gradtape._src.ops.linalg_spectral import svd_values
from gradtape._src.ops.reduction import reduce_max, reduce_sum, sum_squares
from gradtape._src.ops.samples import at, floats
from gradtape._src.ops.table import COMPLEX, FLOAT, composite, elementwise
from gradtape._src.tensors.conversion import as_tensor

__all__ = ["norm", "normalize", "reduce_euclidean_norm"]

root = elementwise(
    "root", FLOAT | COMPLEX, xla="jnp.sqrt",
    native="sqrt", vjp=lambda g, x, out: divide_no_nan(0.5 * g, conjugate(out)),
    numpy=np.sqrt, samples=floats(0.2, 3), edges=[((at(0.0),), (0.0,))],
    doc="The square root, with a derivative of 0 at 0; used by norms.",
)  # fmt: skip


def _euclidean(x, axis, keepdims):
    return root(
        reduce_sum(x * conj(x), axis, keepdims) if x.dtype.is_complex else sum_squares(x, axis, keepdims)
    )


@composite("math.reduce_euclidean_norm")
def reduce_euclidean_norm(input_tensor, axis=None, keepdims=False, name=None):
    """The square root of the sum of squares over `axis`. Its gradient at 0 is 0."""
    x = as_tensor(input_tensor)
    if x.dtype.is_integer:  # as in TensorFlow, the result is an integer too
        return casting.cast(_euclidean(casting.cast(x, "float64"), axis, keepdims), x.dtype)
    return _euclidean(x, axis, keepdims)


def _matrix_axes(axis):
    """Whether `axis` is the two axes of a matrix; an invalid `axis` is an error."""
    if not isinstance(axis, (tuple, list)):
        return False
    if (
        any(isinstance(a, bool) or not isinstance(a, (int, np.integer)) for a in axis)
        or len(axis) != 2
        or axis[0] == axis[1]
    ):
        raise ValueError(
            f"norm: 'axis' must be None, an integer, or a tuple of 2 unique integers, got {axis}"
        )
    return True


@composite("norm linalg.norm")
def norm(tensor, ord="euclidean", axis=None, keepdims=None, name=None):
    """The norm of vectors or matrices.

    Args:
      ord: "euclidean", "fro" (Frobenius, the same for a matrix), 1, 2, `np.inf`, or for
        vectors any positive number.
      axis: None for the norm of all elements as one vector, an axis for vectors, two axes for matrices.
      keepdims: keep the axes as axes of size 1.
    """
    matrix = _matrix_axes(axis)
    if isinstance(axis, float):
        raise ValueError(
            f"norm: 'axis' must be None, an integer, or a tuple of 2 unique integers, got {axis}"
        )
    if matrix and ord not in ("euclidean", "fro", 1, 2, _inf):
        raise ValueError(
            f"norm: 'ord' must be a supported matrix norm in ['euclidean', 'fro', 1, 2, inf], got {ord}"
        )
    if not matrix and ord != "euclidean" and (isinstance(ord, str) or ord <= 0):
        raise ValueError(f"norm: 'ord' must be a supported vector norm, got {ord}")
    x = as_tensor(tensor)
    keepdims = bool(keepdims)
    if ord in ("euclidean", "fro") or (ord == 2 and not matrix):
        return _euclidean(x, axis, keepdims)
    if ord == 2:
        return _spectral(x, axis, keepdims)
    size = abs_(x)
    if matrix:
        rank = len(x.shape)
        first, second = (a % rank for a in axis) if ord == 1 else (a % rank for a in reversed(axis))
        out = reduce_max(reduce_sum(size, first, True), second, True)
    elif ord == 1:
        out = reduce_sum(size, axis, True)
    elif ord == _inf:
        out = reduce_max(size, axis, True)
    else:
        total = reduce_sum(pow_(size, ord), axis, True)
        # The root of nonzero numbers only: its derivative at 0 is infinite.
        some = total > 0
        out = select(some, pow_(select(some, total, 1), 1 / ord), 0)
    if keepdims:
        return out
    return movement.squeeze(out, list(range(len(x.shape))) if axis is None else axis)


def _spectral(x, axis, keepdims):
    """The spectral norm: the largest singular value."""
    rank = len(x.shape)
    rows, columns = (a % rank for a in axis)
    others = [a for a in range(rank) if a not in (rows, columns)]
    out = reduce_max(svd_values(movement.transpose(x, [*others, rows, columns])), -1)
    return (
        movement.reshape(out, [1 if a in (rows, columns) else n for a, n in enumerate(x.shape)])
        if keepdims
        else out
    )


@composite("linalg.normalize")
def normalize(tensor, ord="euclidean", axis=None, name=None):
    """`tensor` divided by its norm along `axis`, and that norm, with `axis` kept as size 1."""
    x = as_tensor(tensor)
    size = norm(x, ord, axis, True)
    if size.dtype is not x.dtype:
        size = casting.cast(size, x.dtype)
    return x / size, size
