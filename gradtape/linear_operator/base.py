"""`LinearOperator`: the methods of all operators, computed with a dense matrix unless a subclass overrides them.

A subclass defines its shape and either how it multiplies (`_matmul`) or its dense matrix (`_to_dense`), and
overrides whatever it can compute faster than with a dense matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.base.shape import TensorShape
from gradtape._src.control import assertions as debugging
from gradtape._src.ops.linalg_spectral import svd_values
from gradtape._src.state.module import Module
from gradtape._src.tensors.composite import CompositeTensor
from gradtape.linear_operator.spec import spec_of


def reference(value: Any, dtype: Any = None) -> Any:
    """A variable unchanged, so that it is read on use; anything else as a tensor."""
    return value if isinstance(value, _core.Variable) else ops.convert_to_tensor(value, dtype=dtype)


def check_type(name: str, value: Any, rank: int) -> None:
    """Raises unless the value is a matrix of floating or complex numbers."""
    if not (value.dtype.is_floating or value.dtype.is_complex):
        allowed = "tf.float16, tf.float32, tf.float64, tf.complex64, tf.complex128"
        raise TypeError(f"Argument `{name}` must have dtype in [{allowed}]. Received: {value.dtype!r}.")
    if len(value.shape) < rank:
        raise ValueError(f"Argument `{name}` must have at least {rank} dimensions. Received: {value}.")


def solve_dense(matrix: Any, rhs: Any, adjoint: bool) -> Any:
    """`linalg.solve` with batch dimensions that broadcast."""
    batch = np.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(rhs.shape[:-2]))
    matrix = ops.broadcast_to(matrix, [*batch, *matrix.shape[-2:]])
    return ops.solve(matrix, ops.broadcast_to(rhs, [*batch, *rhs.shape[-2:]]), adjoint)


class LinearOperator(Module, CompositeTensor):
    """A matrix, or a batch of matrices, that need not exist element by element.

    Hints (`is_...`) are promises of the caller: True, False, or None for unknown. They choose better
    algorithms and are not checked.

    >>> import gradtape as tf
    >>> operator = tf.linalg.LinearOperatorDiag([1.0, 2.0])
    >>> operator.matvec([3.0, 4.0]).numpy().tolist(), operator.determinant().numpy().tolist()
    ([3.0, 8.0], 2.0)
    """

    _TF_MODULE_IGNORED_PROPERTIES = frozenset(("_parameters",))

    def __init__(
        self,
        dtype: Any,
        graph_parents: Any = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
        parameters: dict | None = None,
    ) -> None:
        super().__init__(name=name or type(self).__name__)
        if is_positive_definite:
            if is_non_singular is False:
                raise ValueError("A positive definite matrix is always non-singular.")
            is_non_singular = True
        if is_non_singular and is_square is False:
            raise ValueError("A non-singular matrix is always square.")
        if is_self_adjoint and is_square is False:
            raise ValueError("A self-adjoint matrix is always square.")
        self._dtype = dtypes.as_dtype(dtype)
        self._is_non_singular = is_non_singular
        self._is_self_adjoint = is_self_adjoint
        self._is_positive_definite = is_positive_definite
        self._is_square = is_square
        self._parameters = parameters or {}

    # ---- properties --------------------------------------------------------------------------

    @property
    def _type_spec(self) -> Any:
        return spec_of(self)

    def _shape(self) -> list[int]:
        raise NotImplementedError(f"{type(self).__name__}: _shape is not implemented.")

    dtype = property(lambda self: self._dtype, doc="The element type.")
    parameters = property(lambda self: dict(self._parameters), doc="The constructor's arguments.")
    graph_parents = property(lambda self: [], doc="Empty: there are no explicit graphs.")
    is_non_singular = property(lambda self: self._is_non_singular, doc="Whether it has an inverse.")
    is_self_adjoint = property(lambda self: self._is_self_adjoint, doc="Whether it is its own adjoint.")
    is_positive_definite = property(
        lambda self: self._is_positive_definite, doc="Whether x^H A x has a positive real part for every x."
    )
    shape = property(lambda self: TensorShape(self._shape()), doc="`batch_shape` and the two dimensions.")
    batch_shape = property(lambda self: TensorShape(self._shape()[:-2]), doc="The batch dimensions.")
    tensor_rank = property(lambda self: len(self._shape()), doc="The rank of a dense version.")
    domain_dimension = property(lambda self: self._shape()[-1], doc="The number of columns.")
    range_dimension = property(lambda self: self._shape()[-2], doc="The number of rows.")
    H = property(lambda self: self.adjoint(), doc="The adjoint.")

    @property
    def is_square(self) -> bool | None:
        """Whether it has as many rows as columns."""
        rows, columns = self._shape()[-2:]
        return rows == columns

    def shape_tensor(self, name: str = "shape_tensor") -> Any:
        """The shape as an integer tensor."""
        sizes = self._shape()
        # Sizes are unknown only while a function is recorded; its program needs only the sizes of the dense version.
        return ops.shape(self.to_dense()) if None in sizes else ops.constant(sizes, dtypes.int32)

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Any:
        """The batch dimensions as an integer tensor."""
        return self.shape_tensor()[:-2]

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Any:
        """The rank as an integer tensor."""
        return ops.constant(len(self._shape()), dtypes.int32)

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Any:
        """The number of columns as an integer tensor."""
        return self.shape_tensor()[-1]

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Any:
        """The number of rows as an integer tensor."""
        return self.shape_tensor()[-2]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}: {self._dtype.name}{self._shape()}>"

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any:
        dense = self.to_dense()
        return dense if dtype is None or dense.dtype is dtypes.as_dtype(dtype) else ops.cast(dense, dtype)

    # ---- products and solutions --------------------------------------------------------------

    def _argument(self, value: Any, expected: int, axis: int) -> Any:
        x = (
            value
            if isinstance(value, (_core.Tensor, _core.Variable))
            else ops.convert_to_tensor(value, dtype=self._dtype)
        )
        if x.dtype is not self._dtype:
            raise TypeError(
                f"Expected argument to have dtype {self._dtype!r}.  Found: {x.dtype!r} in tensor {x}"
            )
        if x.shape[axis] != expected:
            raise ValueError(f"Dimensions {expected} and {x.shape[axis]} are not compatible")
        return ops.convert_to_tensor(x)

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        return ops.matmul(self.to_dense(), x, adjoint_a=adjoint)

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """The product with a matrix, or with another operator.

        Args:
          adjoint: multiply with the adjoint of this operator.
          adjoint_arg: multiply the adjoint of `x`.
        """
        if isinstance(x, LinearOperator):
            from gradtape.linear_operator.compound import compose

            return compose(self.adjoint() if adjoint else self, x.adjoint() if adjoint_arg else x)
        rows, columns = self._shape()[-2:]
        x = self._argument(x, rows if adjoint else columns, -1 if adjoint_arg else -2)
        return self._matmul(ops.adjoint(x) if adjoint_arg else x, adjoint)

    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    def __rmatmul__(self, other: Any) -> Any:
        return ops.adjoint(self.matmul(other, adjoint=True, adjoint_arg=True))

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Any:
        """The product with a vector, or a batch of vectors."""
        rows, columns = self._shape()[-2:]
        x = self._argument(x, rows if adjoint else columns, -1)
        return ops.squeeze(self._matmul(ops.expand_dims(x, -1), adjoint), [-1])

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        if self.is_self_adjoint and self.is_positive_definite:
            return ops.cholesky_solve(ops.cholesky(self.to_dense()), rhs)
        return solve_dense(self.to_dense(), rhs, adjoint)

    def _check_solvable(self) -> None:
        if self.is_non_singular is False:
            raise NotImplementedError(
                "Exact solve not implemented for an operator that is expected to be singular."
            )
        if self.is_square is False:
            raise NotImplementedError(
                "Exact solve not implemented for an operator that is expected to not be square."
            )

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        """The `x` with `self @ x = rhs`; with the adjoint of this operator, or of `rhs`."""
        self._check_solvable()
        if isinstance(rhs, LinearOperator):
            return self.inverse().matmul(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)
        rhs = self._argument(rhs, self._shape()[-1], -1 if adjoint_arg else -2)
        return self._solve(ops.adjoint(rhs) if adjoint_arg else rhs, adjoint)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Any:
        """`solve` for a vector, or a batch of vectors."""
        self._check_solvable()
        rhs = self._argument(rhs, self._shape()[-1], -1)
        return ops.squeeze(self._solve(ops.expand_dims(rhs, -1), adjoint), [-1])

    # ---- other operators ---------------------------------------------------------------------

    def _hints(self) -> dict[str, Any]:
        """The hints that also hold for its adjoint and its inverse."""
        return {
            "is_non_singular": self.is_non_singular,
            "is_self_adjoint": self.is_self_adjoint,
            "is_positive_definite": self.is_positive_definite,
            "is_square": self.is_square,
        }

    def _adjoint(self) -> LinearOperator:
        from gradtape.linear_operator.compound import LinearOperatorAdjoint

        return LinearOperatorAdjoint(self)

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        """The conjugate transpose, as an operator."""
        return self if self.is_self_adjoint else self._adjoint()

    def _inverse(self) -> LinearOperator:
        from gradtape.linear_operator.compound import LinearOperatorInversion

        return LinearOperatorInversion(self)

    def inverse(self, name: str = "inverse") -> LinearOperator:
        """The inverse, as an operator."""
        if self.is_square is False:
            raise ValueError("Cannot take the Inverse: This operator represents a non square matrix.")
        if self.is_non_singular is False:
            raise ValueError("Cannot take the Inverse: This operator represents a singular matrix.")
        return self._inverse()

    def _cholesky(self) -> LinearOperator:
        from gradtape.linear_operator.plain import LinearOperatorLowerTriangular

        return LinearOperatorLowerTriangular(ops.cholesky(self.to_dense()), is_non_singular=True)

    def cholesky(self, name: str = "cholesky") -> LinearOperator:
        """The Cholesky factor, as an operator; for operators with hints that they are self-adjoint and positive definite."""
        if not (self.is_self_adjoint and self.is_positive_definite):
            raise ValueError(
                "Cannot take the Cholesky decomposition: Not a positive definite self adjoint matrix."
            )
        return self._cholesky()

    # ---- numbers -----------------------------------------------------------------------------

    def _identity(self, batch: bool = True) -> Any:
        shape = self._shape()
        return ops.eye(shape[-1], batch_shape=shape[:-2] if batch else None, dtype=self._dtype)

    def _to_dense(self) -> Any:
        return self._matmul(self._identity(), False)

    def to_dense(self, name: str = "to_dense") -> Any:
        """The matrix itself."""
        return self._to_dense()

    def diag_part(self, name: str = "diag_part") -> Any:
        """The main diagonal."""
        return ops.matrix_diag_part(self.to_dense(), 0)

    def trace(self, name: str = "trace") -> Any:
        """The sum of the main diagonal."""
        return ops.reduce_sum(self.diag_part(), -1)

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Any:
        """The sum of this matrix and `x`."""
        return self.to_dense() + ops.convert_to_tensor(x, dtype_hint=self._dtype)

    def _determinant(self) -> Any:
        if self.is_self_adjoint and self.is_positive_definite:
            return ops.exp(self._log_abs_determinant())
        return ops.det(self.to_dense())

    def _log_abs_determinant(self) -> Any:
        if self.is_self_adjoint and self.is_positive_definite:
            log = ops.logdet(self.to_dense())
            return ops.cast(log, self._dtype) if self._dtype.is_complex else log
        return ops.slogdet(self.to_dense()).log_abs_determinant

    def _check_square(self) -> None:
        if self.is_square is False:
            raise NotImplementedError(
                "Determinant not implemented for an operator that is expected to not be square."
            )

    def determinant(self, name: str = "det") -> Any:
        """The determinant."""
        self._check_square()
        return self._determinant()

    def log_abs_determinant(self, name: str = "log_abs_det") -> Any:
        """The logarithm of the absolute value of the determinant."""
        self._check_square()
        return self._log_abs_determinant()

    def _eigvals(self) -> Any:
        return ops.eigvalsh(self.to_dense())

    def eigvals(self, name: str = "eigvals") -> Any:
        """The eigenvalues, for operators with the hint that they are self-adjoint."""
        if not self.is_self_adjoint:
            raise NotImplementedError("Only self-adjoint matrices are supported.")
        return self._eigvals()

    def cond(self, name: str = "cond") -> Any:
        """The condition number, the largest singular value divided by the smallest."""
        if self.is_self_adjoint:
            values = ops.abs_(self.eigvals())
        else:
            values = svd_values(self.to_dense())
        return ops.reduce_max(values, -1) / ops.reduce_min(values, -1)

    # ---- checks ------------------------------------------------------------------------------

    def assert_non_singular(self, name: str = "assert_non_singular") -> Any:
        """Raises InvalidArgumentError if the condition number is too large for any correct digit of a solution."""
        least = 1 / np.finfo(self._dtype.real_dtype.as_numpy_dtype).eps
        return debugging.assert_less(
            ops.cast(self.cond(), dtypes.float64), ops.constant(least, dtypes.float64),
            message="Singular matrix up to precision epsilon.",
        )  # fmt: skip

    def assert_self_adjoint(self, name: str = "assert_self_adjoint") -> Any:
        """Raises InvalidArgumentError if the matrix is not its own adjoint."""
        dense = self.to_dense()
        return debugging.assert_equal(
            dense, ops.adjoint(dense), message="Matrix was not equal to its adjoint."
        )

    def assert_positive_definite(self, name: str = "assert_positive_definite") -> Any:
        """Raises InvalidArgumentError if the matrix has no Cholesky factor."""
        if self.is_self_adjoint:
            return ops.cholesky(self.to_dense())
        raise NotImplementedError("assert_positive_definite is not implemented.")
