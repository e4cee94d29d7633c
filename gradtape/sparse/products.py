"""Products of sparse and dense matrices."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops.arithmetic import conjugate
from gradtape._src.ops.casting import cast
from gradtape._src.ops.creation import convert_to_tensor
from gradtape._src.ops.movement import adjoint, matrix_transpose, reshape
from gradtape._src.ops.sparse_products import sparse_dots, sparse_matmul, sparse_matmul_rows
from gradtape._src.tensors.conversion import as_tensor
from gradtape.sparse.tensor import SparseTensor, SparseTensorValue, as_sparse, rows_of, sizes_of


def sparse_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: Any = False, adjoint_b: Any = False, name: str | None = None
) -> Any:
    """The dense product of a sparse and a dense matrix, in either order.

    Elements may come in any order, and elements at the same position are summed; row-major order is fastest. There
    are gradients with respect to the values and the dense matrix.

    Args:
      adjoint_a, adjoint_b: take the conjugate transpose of a matrix first.
    """
    if isinstance(b, (SparseTensor, SparseTensorValue)) and not isinstance(
        sp_a, (SparseTensor, SparseTensorValue)
    ):
        # Swaps the order of the product by taking adjoints.
        return adjoint(sparse_dense_matmul(b, sp_a, not adjoint_b, not adjoint_a))
    a = as_sparse(sp_a)
    b = as_tensor(b, a.values)
    if b.dtype != a.dtype:
        raise InvalidArgumentError(
            f"cannot compute SparseTensorDenseMatMul as input #3(zero-based) was expected to be a {a.dtype.name} tensor "
            f"but is a {b.dtype.name} tensor"
        )
    if adjoint_b and b.ndim == 2:
        b = adjoint(b)
    if adjoint_a:
        return sparse_matmul(a.indices, conjugate(a.values), b, sizes_of(a), True)
    rows = rows_of(a)
    if rows is None:
        return sparse_matmul(a.indices, a.values, b, sizes_of(a))
    return sparse_matmul_rows(a.indices, *rows, a.values, b, sizes_of(a))


def sampled_addmm(
    indices: Any,
    values: Any,
    dense_shape: Any,
    mat1: Any,
    mat2: Any,
    beta: Any = 1.0,
    alpha: Any = 1.0,
    output_type: Any = dtypes.float32,
) -> Any:
    """`alpha (mat1 @ mat2) + beta values` at the positions `indices` of a matrix, or of each of a batch of them.

    Returns:
      The positions, the new values, and the shape.
    """
    shape = convert_to_tensor(dense_shape, dtypes.int32)
    places = convert_to_tensor(indices)
    x, y, values = (cast(v, output_type) for v in (mat1, matrix_transpose(mat2), values))
    pairs = places
    if x.ndim > 2:  # a batch is one matrix with more rows
        count = prod(x.shape[:-2])
        steps = np.arange(count).reshape(*x.shape[:-2], 1, 1) * np.array([x.shape[-2], y.shape[-2]])
        pairs = reshape(places + as_tensor(steps, places), [-1, 2])
        x, y = reshape(x, [-1, x.shape[-1]]), reshape(y, [-1, y.shape[-1]])
    dots = reshape(sparse_dots(pairs, x, y), values.shape)
    return places, alpha * dots + beta * values, shape
