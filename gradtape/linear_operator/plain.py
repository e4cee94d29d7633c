"""Operators given by one matrix or number: full, diagonal, triangular, multiples of the identity, zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.control import assertions as debugging
from gradtape._src.ops.static import ints_of
from gradtape.linear_operator.base import LinearOperator, check_type, reference


def _columns(x: Any) -> Any:
    return ops.expand_dims(x, -1)


def _size_of(name: str, value: Any) -> int:
    """A number of rows or columns."""
    if np.ndim(value):
        raise ValueError(f"Argument {name} must be a 0-D Tensor. Found: {value}")
    (size,) = ints_of(value)
    if size < 0:
        raise ValueError(f"Argument {name} must be non-negative. Found: {value}")
    return size


def _batch_of(batch_shape: Any) -> list[int]:
    if batch_shape is None:
        return []
    if np.ndim(batch_shape) > 1:
        raise ValueError(f"Argument batch_shape must be a 1-D Tensor. Found: {batch_shape}")
    sizes = ints_of(batch_shape)
    if min(sizes, default=0) < 0:
        raise ValueError(f"Argument batch_shape must be non-negative. Found: {batch_shape}")
    return sizes


class LinearOperatorFullMatrix(LinearOperator):
    """A dense matrix."""

    def __init__(
        self, matrix: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str = "LinearOperatorFullMatrix",
    ) -> None:  # fmt: skip
        self._matrix = reference(matrix)
        check_type("matrix", self._matrix, 2)
        super().__init__(
            self._matrix.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name,
            {"matrix": matrix},
        )  # fmt: skip

    @property
    def matrix(self) -> Any:
        """The matrix."""
        return self._matrix

    def _shape(self) -> list[int]:
        return list(self._matrix.shape)

    def _to_dense(self) -> Any:
        return ops.convert_to_tensor(self._matrix)


class LinearOperatorLowerTriangular(LinearOperator):
    """The lower triangle of a matrix; elements above the diagonal are not read."""

    def __init__(
        self, tril: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str = "LinearOperatorLowerTriangular",
    ) -> None:  # fmt: skip
        if is_square is False:
            raise ValueError("Only square lower triangular operators supported at this time.")
        self._tril = reference(tril)
        check_type("tril", self._tril, 2)
        super().__init__(
            self._tril.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name,
            {"tril": tril},
        )  # fmt: skip

    @property
    def tril(self) -> Any:
        """The given matrix."""
        return self._tril

    def _shape(self) -> list[int]:
        return list(self._tril.shape)

    def _to_dense(self) -> Any:
        return ops.band_part(self._tril, -1, 0)

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return ops.triangular_solve(self._tril, rhs, True, adjoint)

    def diag_part(self, name: str = "diag_part") -> Any:
        return ops.matrix_diag_part(self._tril, 0)

    def _determinant(self) -> Any:
        return ops.reduce_prod(self.diag_part(), -1)

    def _log_abs_determinant(self) -> Any:
        return _log_abs(self.diag_part())

    def _eigvals(self) -> Any:
        return self.diag_part()


def _log_abs(values: Any) -> Any:
    return ops.reduce_sum(ops.log(ops.abs_(values)), -1)


class LinearOperatorDiag(LinearOperator):
    """A diagonal matrix."""

    def __init__(
        self, diag: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str = "LinearOperatorDiag",
    ) -> None:  # fmt: skip
        self._diag = reference(diag)
        check_type("diag", self._diag, 1)
        if self._diag.dtype.is_floating:
            if is_self_adjoint is False:
                raise ValueError("A real diagonal operator is always self adjoint.")
            is_self_adjoint = True
        if is_square is False:
            raise ValueError("Only square diagonal operators supported at this time.")
        super().__init__(
            self._diag.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name,
            {"diag": diag},
        )  # fmt: skip

    @property
    def diag(self) -> Any:
        """The diagonal."""
        return self._diag

    def _shape(self) -> list[int]:
        return [*self._diag.shape, self._diag.shape[-1]]

    def _values(self, adjoint: bool = False) -> Any:
        diag = ops.convert_to_tensor(self._diag)
        return ops.conj(diag) if adjoint and self._dtype.is_complex else diag

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        return _columns(self._values(adjoint)) * x

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return rhs / _columns(self._values(adjoint))

    def _to_dense(self) -> Any:
        return ops.matrix_diag(self._diag, 0)

    def diag_part(self, name: str = "diag_part") -> Any:
        return self._values()

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Any:
        x = ops.convert_to_tensor(x, dtype_hint=self._dtype)
        diagonal = ops.matrix_diag_part(x, 0) + self._values()
        batch = list(diagonal.shape)[:-1]
        return ops.set_diag(ops.broadcast_to(x, [*batch, *x.shape[-2:]]), diagonal)

    def _determinant(self) -> Any:
        return ops.reduce_prod(self._values(), -1)

    def _log_abs_determinant(self) -> Any:
        out = _log_abs(self._values())
        return ops.cast(out, self._dtype) if self._dtype.is_complex else out

    def _eigvals(self) -> Any:
        return self._values()

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorDiag(self._values(True), **self._hints())

    def _inverse(self) -> LinearOperator:
        return LinearOperatorDiag(1 / self._values(), **self._hints())

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorDiag(
            ops.sqrt(self._values()), is_non_singular=True, is_self_adjoint=True, is_positive_definite=True
        )


class _Multiple(LinearOperator):
    """A number, or a batch of numbers, times the identity."""

    _num_rows: int

    def _factor(self, adjoint: bool = False) -> Any:
        raise NotImplementedError

    def _batch(self) -> list[int]:
        raise NotImplementedError

    def _shape(self) -> list[int]:
        return [*self._batch(), self._num_rows, self._num_rows]

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        return _columns(_columns(self._factor(adjoint))) * x

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return rhs / _columns(_columns(self._factor(adjoint)))

    def diag_part(self, name: str = "diag_part") -> Any:
        return ops.broadcast_to(_columns(self._factor()), self._shape()[:-1])

    def trace(self, name: str = "trace") -> Any:
        return ops.broadcast_to(self._factor() * self._num_rows, self._batch())

    def _to_dense(self) -> Any:
        return ops.matrix_diag(self.diag_part(), 0)

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Any:
        return LinearOperatorDiag(self.diag_part()).add_to_tensor(x)

    def _determinant(self) -> Any:
        return ops.broadcast_to(self._factor() ** self._num_rows, self._batch())

    def _log_abs_determinant(self) -> Any:
        return _log_abs(self.diag_part())

    def _eigvals(self) -> Any:
        return self.diag_part()

    def cond(self, name: str = "cond") -> Any:
        return ops.ones(self._batch(), self._dtype.real_dtype)


class LinearOperatorIdentity(_Multiple):
    """The identity, of a given size and optional batch shape."""

    def __init__(
        self, num_rows: Any, batch_shape: Any = None, dtype: Any = None, is_non_singular: bool = True,
        is_self_adjoint: bool = True, is_positive_definite: bool = True, is_square: bool = True,
        assert_proper_shapes: bool = False, name: str = "LinearOperatorIdentity",
    ) -> None:  # fmt: skip
        for hint, value in (
            ("self adjoint", is_self_adjoint), ("square", is_square), ("non-singular", is_non_singular),
            ("positive-definite", is_positive_definite),
        ):  # fmt: skip
            if not value:
                raise ValueError(f"An identity operator is always {hint}.")
        self._num_rows, self._sizes = _size_of("num_rows", num_rows), _batch_of(batch_shape)
        kind = dtypes.float32 if dtype is None else dtypes.as_dtype(dtype)
        super().__init__(
            kind, None, True, True, True, True, name, {"num_rows": num_rows, "batch_shape": batch_shape}
        )

    def _batch(self) -> list[int]:
        return self._sizes

    def _factor(self, adjoint: bool = False) -> Any:
        return ops.ones(self._sizes, self._dtype)

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        batch = np.broadcast_shapes(tuple(self._sizes), tuple(x.shape[:-2]))
        return ops.broadcast_to(x, [*batch, *x.shape[-2:]]) if list(x.shape[:-2]) != list(batch) else x

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return self._matmul(rhs, adjoint)

    def _log_abs_determinant(self) -> Any:
        return ops.zeros(self._sizes, self._dtype)

    def _inverse(self) -> LinearOperator:
        return self

    def _cholesky(self) -> LinearOperator:
        return self


class LinearOperatorScaledIdentity(_Multiple):
    """A number, or a batch of numbers, times the identity."""

    def __init__(
        self, num_rows: Any, multiplier: Any, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None, is_square: bool = True,
        assert_proper_shapes: bool = False, name: str = "LinearOperatorScaledIdentity",
    ) -> None:  # fmt: skip
        if not is_square:
            raise ValueError("A ScaledIdentity operator is always square.")
        self._num_rows = _size_of("num_rows", num_rows)
        self._multiplier = reference(multiplier)
        check_type("multiplier", self._multiplier, 0)
        if self._multiplier.dtype.is_floating:
            if is_self_adjoint is False:
                raise ValueError("A real diagonal operator is always self adjoint.")
            is_self_adjoint = True
        super().__init__(
            self._multiplier.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name,
            {"num_rows": num_rows, "multiplier": multiplier},
        )  # fmt: skip

    @property
    def multiplier(self) -> Any:
        """The number."""
        return self._multiplier

    def _batch(self) -> list[int]:
        return list(self._multiplier.shape)

    def _factor(self, adjoint: bool = False) -> Any:
        value = ops.convert_to_tensor(self._multiplier)
        return ops.conj(value) if adjoint and self._dtype.is_complex else value

    def assert_non_singular(self, name: str = "assert_non_singular") -> Any:
        return debugging.assert_positive(
            ops.abs_(ops.convert_to_tensor(self._multiplier)), message="LinearOperator was singular"
        )

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(self._num_rows, self._factor(True), **self._hints())

    def _inverse(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(self._num_rows, 1 / self._factor(), **self._hints())

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(self._num_rows, ops.sqrt(self._factor()), **self._hints())


class LinearOperatorZeros(LinearOperator):
    """The zero matrix."""

    def __init__(
        self, num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = None,
        is_non_singular: bool = False, is_self_adjoint: bool = True, is_positive_definite: bool = False,
        is_square: bool = True, assert_proper_shapes: bool = False, name: str = "LinearOperatorZeros",
    ) -> None:  # fmt: skip
        if is_non_singular or is_positive_definite:
            raise ValueError("A zeros operator is always singular and not positive definite.")
        if not is_self_adjoint and is_square:
            raise ValueError("A zero operator is always self adjoint.")
        rows = _size_of("num_rows", num_rows)
        columns = rows if num_columns is None else _size_of("num_columns", num_columns)
        if rows != columns and is_square:
            raise ValueError(
                f"LinearOperatorZeros initialized as is_square=True, but got num_rows({rows}) != num_columns({columns})"
            )
        self._sizes = [*_batch_of(batch_shape), rows, columns]
        kind = dtypes.float32 if dtype is None else dtypes.as_dtype(dtype)
        super().__init__(kind, None, False, is_self_adjoint, False, is_square, name, {"num_rows": num_rows})

    def _shape(self) -> list[int]:
        return self._sizes

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        *mine, rows, columns = self._sizes
        batch = np.broadcast_shapes(tuple(mine), tuple(x.shape[:-2]))
        return ops.zeros([*batch, columns if adjoint else rows, x.shape[-1]], self._dtype)

    def _to_dense(self) -> Any:
        return ops.zeros(self._sizes, self._dtype)

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Any:
        return ops.convert_to_tensor(x, dtype_hint=self._dtype) + self._to_dense()

    def _determinant(self) -> Any:
        return ops.zeros(self._sizes[:-2], self._dtype)

    def _log_abs_determinant(self) -> Any:
        return ops.log(ops.zeros(self._sizes[:-2], self._dtype))

    def _eigvals(self) -> Any:
        return ops.zeros(self._sizes[:-1], self._dtype)

    def _adjoint(self) -> LinearOperator:
        *batch, rows, columns = self._sizes
        square = rows == columns
        return LinearOperatorZeros(
            columns, rows, batch, self._dtype, is_self_adjoint=square, is_square=square
        )
