"""Matrix products and ops built on them: matvec, tensordot, cross products, traces.

`einsum` has a file of its own.
"""

from __future__ import annotations

from math import prod as _prod

import numpy as np

from gradtape import _core
from gradtape._src.base.dtypes import as_dtype, int8, int32
from gradtape._src.base.errors import FailedPreconditionError, InvalidArgumentError
from gradtape._src.ops import batching, casting, diagonals, movement, rewriting
from gradtape._src.ops.arithmetic import conjugate
from gradtape._src.ops.reduction import reduce_sum
from gradtape._src.ops.samples import call
from gradtape._src.ops.table import NUMBER, composite, contraction, opaque
from gradtape._src.tensors.conversion import as_tensor, as_tensors

__all__ = ["cross", "matmul", "matvec", "tensordot", "trace"]


# ---- matmul ----


def _rows(x):
    """A batch of matrices as one matrix with more rows."""
    *batch, n, k = x.shape
    return movement.reshape(x, [_prod(batch) * n, k]) if batch else x


def _matmul_wrt_a(g, a, b, out, transpose_a, transpose_b):
    b = conjugate(b)
    return matmul(b, g, transpose_b, True) if transpose_a else matmul(g, b, False, not transpose_b)


def _matmul_wrt_b(g, a, b, out, transpose_a, transpose_b):
    a = conjugate(a)
    if len(b.shape) == 2 and not transpose_a:
        # One matrix for the whole batch (a dense layer): a single product, which needs no sum over the batch.
        a, g = _rows(a), _rows(g)
    return matmul(g, a, True, transpose_a) if transpose_b else matmul(a, g, not transpose_a, False)


def _numpy_matmul(a, b, transpose_a=False, transpose_b=False):
    return np.matmul(
        np.swapaxes(a, -1, -2) if transpose_a else a, np.swapaxes(b, -1, -2) if transpose_b else b
    )


def _matmul_with_extras(
    a, b, transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False, a_is_sparse=False,
    b_is_sparse=False, output_type=None, grad_a=False, grad_b=False, name=None,
):  # fmt: skip
    """`matmul` with adjoints, or with a result of another type."""
    for flag, adjoint, operand in ((transpose_a, adjoint_a, "a"), (transpose_b, adjoint_b, "b")):
        if flag and adjoint:
            raise ValueError(
                f"matmul: Only one of `transpose_{operand}` and `adjoint_{operand}` can be True."
            )
    if output_type is not None:
        a, b = as_tensors(a, b)
        if a.dtype is b.dtype is int8 and as_dtype(output_type) is int32:
            return products_of_bytes(a, b, transpose_a or adjoint_a, transpose_b or adjoint_b)
        a, b = casting.cast(a, output_type), casting.cast(b, output_type)
    if adjoint_a:
        a, transpose_a = conjugate(as_tensor(a, b)), True
    if adjoint_b:
        b, transpose_b = conjugate(as_tensor(b, a)), True
    return matmul(a, b, transpose_a, transpose_b)


def _matmul_rows(shapes: list[tuple[int, ...]], attrs: tuple) -> tuple[bool, bool] | None:
    a, b = shapes
    if len(a) == len(b) > 2 and a[0] == b[0]:
        return True, True
    return (True, False) if len(b) == 2 and (len(a) > 2 or not attrs[0]) else None


_SIZES = ("InvalidArgumentError", "Matrix size-incompatible")

matmul = contraction(
    "matmul", NUMBER,
    "a b transpose_a:Bool=False transpose_b:Bool=False adjoint_a:Extra=False adjoint_b:Extra=False "
    "a_is_sparse:Ignored=False b_is_sparse:Ignored=False output_type:Extra=None grad_a:Ignored=False "
    "grad_b:Ignored=False",
    pattern="product", simplify=rewriting.matmul, batch=batching.matmul, xla="contraction.matmul", by_rows=_matmul_rows,
    transposes=(_matmul_wrt_a, _matmul_wrt_b), fallback=_matmul_with_extras, numpy=_numpy_matmul,
    samples=[
        call((2, 3), (3, 4)), call((3, 2), (3, 4), transpose_a=True), call((2, 3), (4, 3), transpose_b=True),
        call((3, 2), (4, 3), transpose_a=True, transpose_b=True), call((1, 1), (1, 1)), call((1, 3), (3, 1)),
        call((5, 2, 3), (5, 3, 4)), call((5, 2, 3), (3, 4)), call((2, 2, 2, 3), (4, 3), transpose_b=True),
        call((5, 3, 2), (3, 4), transpose_a=True),
        call((5, 3, 2), (4, 3), transpose_a=True, transpose_b=True),
        call((2, 3), (5, 3, 4)), call((3, 2), (5, 4, 3), transpose_a=True, transpose_b=True),
        call((2, 1, 2, 3), (5, 3, 4)), call((1, 2, 3), (5, 3, 2)), call((0, 3), (3, 4)), call((2, 0), (0, 4)),
        call((2, 3), (3, 0)), call((0, 2, 3), (3, 4)), call((0, 2, 3), (0, 3, 4)),
    ],
    bad=[
        (call((2, 3), (2, 3)), *_SIZES), (call((2, 3), (3, 4), transpose_a=True), *_SIZES),
        (call((3,), (3, 4)), "InvalidArgumentError", "In[0] ndims must be >= 2"),
        (call((2, 3), (3,)), "InvalidArgumentError", "In[1] ndims must be >= 2"),
        (call((2, 2, 3), (3, 3, 4)), "InvalidArgumentError", "compatible batch dimensions"),
    ],
    names="matmul linalg.matmul",
    doc="""The product of matrices, or of batches of them, `a @ b`.

Batch dimensions broadcast. Transposed operands are not copied.

Args:
  a, b: tensors of rank 2 or more, of the same type.
  transpose_a, transpose_b: take the transpose of each matrix first.
  adjoint_a, adjoint_b: take the conjugate transpose of each matrix first.
  output_type: the element type of the result; by default that of the operands.
""",
)  # fmt: skip


products_of_bytes = opaque(
    "matmul_int8", 1 << int8._code, "a b transpose_a:Bool=False transpose_b:Bool=False", rule=None,
    xla="contraction.matmul_int8",
    numpy=lambda a, b, **attrs: _numpy_matmul(a.astype(np.int32), b.astype(np.int32), **attrs),
    samples=[
        call((2, 3), (3, 4)), call((70, 33), (33, 65)), call((3, 2), (4, 3), transpose_a=True, transpose_b=True),
        call((5, 2, 3), (5, 3, 4)), call((5, 2, 3), (3, 4)), call((0, 3), (3, 4)), call((2, 0), (0, 4)),
    ],
    bad=[(call((2, 3), (2, 3)), *_SIZES)],
    doc="`matmul(a, b, output_type=tf.int32)` of int8: products of int8 do not fit into int8.",
)  # fmt: skip


@composite("linalg.matvec")
def matvec(a, b, transpose_a=False, adjoint_a=False, a_is_sparse=False, b_is_sparse=False, name=None):
    """The product of a matrix (or a batch of them) and a vector (or a batch of them)."""
    a, b = as_tensors(a, b)
    column = movement.expand_dims(b, -1)
    return movement.squeeze(matmul(a, column, transpose_a=transpose_a, adjoint_a=adjoint_a), [-1])


# ---- tensordot ----


def _axes_of(axes, a_rank, b_rank):
    """The contracted axes of each operand, for any form that `axes` may have."""
    if isinstance(axes, (_core.Tensor, np.ndarray)):
        axes = np.asarray(axes).tolist()
    if isinstance(axes, int):
        if axes < 0:
            raise ValueError(f"tensordot: `axes` must be at least 0; got {axes}.")
        if axes > min(a_rank, b_rank):
            raise ValueError(
                f"tensordot: `axes` must not be larger than the rank of either operand; got axes={axes} for "
                f"ranks {a_rank} and {b_rank}."
            )
        return list(range(a_rank - axes, a_rank)), list(range(axes))
    if not isinstance(axes, (list, tuple)) or len(axes) != 2:
        raise ValueError(f"tensordot: `axes` must be an integer or have length 2; got {axes!r}.")
    pair = []
    for operand_axes, rank in zip(axes, (a_rank, b_rank), strict=True):
        contracted = np.asarray(operand_axes).tolist()
        contracted = contracted if isinstance(contracted, list) else [contracted]
        for axis in contracted:
            if not -rank <= axis < rank:
                raise ValueError(f"tensordot: axis {axis} is out of range for an operand of rank {rank}.")
        pair.append([axis % rank for axis in contracted])
    if len(pair[0]) != len(pair[1]):
        raise ValueError(
            f"tensordot: Different number of contraction axes `a` and `b`, {len(pair[0])} != {len(pair[1])}. Hint: "
            f"tensordot sums over pairs of axes."
        )
    return pair


def _folded(x, inner, last):
    """`x` as a matrix with the axes `inner` as columns (if `last`; else as rows), whether that matrix
    is transposed, and the sizes of the other axes."""
    shape, rank = list(x.shape), len(x.shape)
    outer = [i for i in range(rank) if i not in inner]
    sizes = [shape[i] for i in outer]
    m, k = _prod(sizes), _prod(shape[i] for i in inner)
    if inner == list(range(rank - len(inner), rank)):  # `inner` is last already
        return movement.reshape(x, [m, k]), not last, sizes
    if inner == list(range(len(inner))):
        return movement.reshape(x, [k, m]), last, sizes
    perm = [*outer, *inner] if last else [*inner, *outer]
    return movement.reshape(movement.transpose(x, perm), [m, k] if last else [k, m]), False, sizes


@composite("tensordot linalg.tensordot")
def tensordot(a, b, axes, name=None):
    """The sum of products of `a` and `b` over pairs of axes.

    Args:
      axes: a number n, to contract the last n axes of `a` with the first n of `b` (0: the outer product); or
        a pair of axes, or of lists of axes, of `a` and `b`.
    """
    a, b = as_tensors(a, b)
    a_axes, b_axes = _axes_of(axes, len(a.shape), len(b.shape))
    left, transpose_a, a_sizes = _folded(a, a_axes, last=True)
    right, transpose_b, b_sizes = _folded(b, b_axes, last=False)
    return movement.reshape(matmul(left, right, transpose_a, transpose_b), [*a_sizes, *b_sizes])


# ---- others ----


@composite("linalg.trace")
def trace(x, name=None):
    """The sum of the main diagonal of each matrix."""
    return reduce_sum(diagonals.matrix_diag_part(x, 0), -1)


@composite("linalg.cross")
def cross(a, b, name=None):
    """The cross product of vectors of three elements, along the last axis."""
    a, b = as_tensors(a, b)
    if a.shape != b.shape:
        raise InvalidArgumentError(f"cross: Both inputs must be of same shape: {a.shape} vs. {b.shape}.")
    if len(a.shape) == 0 or a.shape[-1] != 3:
        raise FailedPreconditionError(
            f"cross: Cross-products are only defined for 3-element vectors; got {a.shape}."
        )

    def turned(x, by):
        return movement.roll(x, by, -1)

    return turned(a, -1) * turned(b, -2) - turned(a, -2) * turned(b, -1)
