"""Operators given by a few numbers: reflections, permutations, tridiagonal, Toeplitz and circulant matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.ops.linalg_banded import _compact, tridiagonal_of
from gradtape.linear_operator.base import LinearOperator, check_type, reference


class LinearOperatorHouseholder(LinearOperator):
    """The reflection at the plane orthogonal to a vector, `1 - 2 v v^H / |v|^2`."""

    def __init__(
        self, reflection_axis: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str = "LinearOperatorHouseholder",
    ) -> None:  # fmt: skip
        self._axis = reference(reflection_axis)
        check_type("reflection_axis", self._axis, 1)
        if is_self_adjoint is False:
            raise ValueError("A Householder operator is always self adjoint.")
        if is_positive_definite:
            raise ValueError("A Householder operator is always non-positive definite.")
        if is_square is False:
            raise ValueError("A Householder operator is always square.")
        super().__init__(
            self._axis.dtype,
            None,
            is_non_singular,
            True,
            False,
            True,
            name,
            {"reflection_axis": reflection_axis},
        )

    @property
    def reflection_axis(self) -> Any:
        """The vector."""
        return self._axis

    def _shape(self) -> list[int]:
        return [*self._axis.shape, self._axis.shape[-1]]

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        v = ops.expand_dims(ops.l2_normalize(self._axis, axis=-1), -1)
        return x - 2 * ops.matmul(v, ops.matmul(v, x, adjoint_a=True))

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return self._matmul(rhs, adjoint)

    def trace(self, name: str = "trace") -> Any:
        return ops.fill(self._shape()[:-2], ops.constant(self._shape()[-1] - 2.0, self._dtype))

    def _determinant(self) -> Any:
        return -ops.ones(self._shape()[:-2], self._dtype)

    def _log_abs_determinant(self) -> Any:
        return ops.zeros(self._shape()[:-2], self._dtype)

    def _eigvals(self) -> Any:
        values = np.ones(self._shape()[:-1], self._dtype.as_numpy_dtype)
        values[..., 0] = -1
        return ops.convert_to_tensor(values)

    def cond(self, name: str = "cond") -> Any:
        return ops.ones(self._shape()[:-2], self._dtype.real_dtype)

    def _inverse(self) -> LinearOperator:
        return self


class LinearOperatorPermutation(LinearOperator):
    """A permutation matrix: row i of `self @ x` is row `perm[i]` of `x`."""

    def __init__(
        self, perm: Any, dtype: Any = dtypes.float32, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = None, name: str = "LinearOperatorPermutation",
    ) -> None:  # fmt: skip
        self._perm = ops.convert_to_tensor(perm)
        if not self._perm.dtype.is_integer:
            raise TypeError(f"Argument `perm` must be integer dtype. Received: {self._perm}.")
        if len(self._perm.shape) < 1:
            raise ValueError(f"Argument `perm` must have at least 1 dimension. Received: {self._perm}.")
        if self._perm._symbol is None:
            n = self._perm.shape[-1]
            if not np.array_equal(
                np.sort(self._perm.numpy(), -1), np.broadcast_to(np.arange(n), self._perm.shape)
            ):
                raise ValueError(f"Argument `perm` must be a vector of unique integers from 0 to {n - 1}.")
        if is_non_singular is False or is_square is False:
            raise ValueError("A Permutation operator is always non-singular and square.")
        super().__init__(
            dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name, {"perm": perm}
        )

    @property
    def perm(self) -> Any:
        """The permutation."""
        return self._perm

    def _shape(self) -> list[int]:
        return [*self._perm.shape, self._perm.shape[-1]]

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        perm = ops.argsort(self._perm) if adjoint else self._perm
        batch = np.broadcast_shapes(tuple(perm.shape[:-1]), tuple(x.shape[:-2]))
        x = ops.broadcast_to(x, [*batch, *x.shape[-2:]])
        perm = ops.broadcast_to(perm, [*batch, perm.shape[-1]])
        return ops.gather(x, perm, axis=len(batch), batch_dims=len(batch))

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return self._matmul(rhs, not adjoint)

    def _log_abs_determinant(self) -> Any:
        return ops.zeros(self._shape()[:-2], self._dtype)

    def cond(self, name: str = "cond") -> Any:
        return ops.ones(self._shape()[:-2], self._dtype.real_dtype)


class LinearOperatorTridiag(LinearOperator):
    """A tridiagonal matrix; the diagonals have the format of `tf.linalg.tridiagonal_solve`."""

    def __init__(
        self, diagonals: Any, diagonals_format: str = "compact", is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = None, name: str = "LinearOperatorTridiag",
    ) -> None:  # fmt: skip
        if diagonals_format == "sequence":
            self._diagonals: Any = [reference(d) for d in diagonals]
            dtype = self._diagonals[0].dtype
        else:
            self._diagonals = reference(diagonals)
            dtype = self._diagonals.dtype
        self._diagonals_format = diagonals_format
        if is_square is False:
            raise ValueError("A tridiagonal operator is always square.")
        super().__init__(
            dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name,
            {"diagonals": diagonals, "diagonals_format": diagonals_format},
        )  # fmt: skip
        self._rows()

    diagonals = property(lambda self: self._diagonals, doc="The diagonals, as given.")
    diagonals_format = property(lambda self: self._diagonals_format, doc="The format of `diagonals`.")

    def _rows(self) -> Any:
        first = self._diagonals[0] if isinstance(self._diagonals, list) else self._diagonals
        return _compact("LinearOperatorTridiag", self._diagonals, self._diagonals_format, first)

    def _shape(self) -> list[int]:
        *batch, _, n = self._rows().shape
        return [*batch, n, n]

    def _to_dense(self) -> Any:
        rows = self._rows()
        dense = ops.matrix_diag(rows[..., 1, :], 0)
        if rows.shape[-1] == 1:
            return dense
        return dense + ops.matrix_diag(rows[..., 0, :-1], 1) + ops.matrix_diag(rows[..., 2, 1:], -1)

    def diag_part(self, name: str = "diag_part") -> Any:
        return self._rows()[..., 1, :]

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        if adjoint:
            return super()._solve(rhs, adjoint)
        rows = self._rows()
        batch = np.broadcast_shapes(tuple(rows.shape[:-2]), tuple(rhs.shape[:-2]))
        rows = ops.broadcast_to(rows, [*batch, *rows.shape[-2:]])
        return tridiagonal_of(rows, ops.broadcast_to(rhs, [*batch, *rhs.shape[-2:]]))


class LinearOperatorToeplitz(LinearOperator):
    """A matrix with the same number along each diagonal, given by its first column and row."""

    def __init__(
        self, col: Any, row: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str = "LinearOperatorToeplitz",
    ) -> None:  # fmt: skip
        self._col, self._row = reference(col), reference(row)
        for what, value in (("col", self._col), ("row", self._row)):
            check_type(what, value, 1)
        if is_square is False:
            raise ValueError("A Toeplitz operator is always square at this time.")
        if self._col.shape[-1] != self._row.shape[-1]:
            raise ValueError(
                f"Expected square matrix, got row and col with mismatched dimensions: {self._row.shape}, {self._col.shape}."
            )
        super().__init__(
            self._row.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name,
            {"col": col, "row": row},
        )  # fmt: skip

    col = property(lambda self: self._col, doc="The first column.")
    row = property(lambda self: self._row, doc="The first row; its first element is not used.")

    def _shape(self) -> list[int]:
        n = self._col.shape[-1]
        return [*np.broadcast_shapes(tuple(self._col.shape[:-1]), tuple(self._row.shape[:-1])), n, n]

    def _to_dense(self) -> Any:
        *batch, n, _ = self._shape()
        col, row = (ops.broadcast_to(x, [*batch, n]) for x in (self._col, self._row))
        # The reversed row without its first element, then the column: element i - j + n - 1 is at (i, j).
        values = ops.concat([ops.reverse(row[..., 1:], [len(batch)]), col], -1)
        places = np.arange(n)[:, None] - np.arange(n) + n - 1
        return ops.gather(values, places.astype(np.int32), axis=-1)

    def diag_part(self, name: str = "diag_part") -> Any:
        return ops.broadcast_to(ops.convert_to_tensor(self._col)[..., :1], self._shape()[:-1])


class LinearOperatorCirculant(LinearOperator):
    """A matrix that the Fourier transform diagonalizes; `spectrum` is that diagonal."""

    _depth = 1

    def __init__(
        self, spectrum: Any, input_output_dtype: Any = dtypes.complex64, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None, is_square: bool = True,
        name: str | None = None,
    ) -> None:  # fmt: skip
        self._spectrum = reference(spectrum)
        check_type("spectrum", self._spectrum, self._depth)
        if not is_square:
            raise ValueError("A circulant operator is always square.")
        if self._spectrum.dtype.is_floating:
            if is_self_adjoint is False:
                raise ValueError("A real spectrum always corresponds to a self-adjoint operator.")
            is_self_adjoint = True
        super().__init__(
            input_output_dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True,
            name or type(self).__name__, {"spectrum": spectrum, "input_output_dtype": input_output_dtype},
        )  # fmt: skip

    spectrum = property(lambda self: self._spectrum, doc="The eigenvalues.")
    block_depth = property(lambda self: self._depth, doc="The number of axes of the transform.")
    block_shape = property(lambda self: self._spectrum.shape[-self._depth :], doc="The sizes of these axes.")

    def _values(self, adjoint: bool = False) -> Any:
        wide = self._dtype in (dtypes.float64, dtypes.complex128) or self._spectrum.dtype is dtypes.complex128
        values = ops.cast(self._spectrum, dtypes.complex128 if wide else dtypes.complex64)
        return ops.conj(values) if adjoint else values

    def _own(self, x: Any) -> Any:
        """A complex result in the type of the operator."""
        return ops.cast(x, self._dtype) if self._dtype.is_complex else ops.cast(ops.real(x), self._dtype)

    def _shape(self) -> list[int]:
        n = int(np.prod(self.block_shape))
        return [*self._spectrum.shape[: -self._depth], n, n]

    def _filtered(self, x: Any, factors: Any) -> Any:
        """The columns of `x`, transformed, multiplied with `factors`, and transformed back."""
        *batch, n, k = x.shape
        rank = len(batch)
        blocks = list(self.block_shape)
        rows = ops.cast(ops.transpose(x, [*range(rank), rank + 1, rank]), factors.dtype)
        rows = ops.reshape(rows, [*batch, k, *blocks])
        axes = list(range(-self._depth, 0))
        y = ops.fft_of(rows, axes) * ops.expand_dims(factors, -self._depth - 1)
        y = ops.fft_of(y, axes, True, 1.0 / n)
        y = ops.reshape(y, [*y.shape[: -self._depth], n])
        last = len(y.shape) - 1
        return self._own(ops.transpose(y, [*range(last - 1), last, last - 1]))

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        return self._filtered(x, self._values(adjoint))

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return self._filtered(rhs, 1 / self._values(adjoint))

    def _flat(self) -> Any:
        values = self._values()
        return ops.reshape(values, self._shape()[:-1])

    def convolution_kernel(self, name: str = "convolution_kernel") -> Any:
        """The convolution kernel, which is the first column."""
        n = self._shape()[-1]
        return self._own(ops.fft_of(self._values(), list(range(-self._depth, 0)), True, 1.0 / n))

    def diag_part(self, name: str = "diag_part") -> Any:
        return ops.broadcast_to(self._own(ops.reduce_mean(self._flat(), -1, True)), self._shape()[:-1])

    def trace(self, name: str = "trace") -> Any:
        return self._own(ops.reduce_sum(self._flat(), -1))

    def _determinant(self) -> Any:
        return self._own(ops.reduce_prod(self._flat(), -1))

    def _log_abs_determinant(self) -> Any:
        return ops.cast(ops.reduce_sum(ops.log(ops.abs_(self._flat())), -1), self._dtype)

    def _eigvals(self) -> Any:
        return ops.reshape(self._spectrum, self._shape()[:-1])

    def cond(self, name: str = "cond") -> Any:
        size = ops.abs_(self._flat())
        return ops.cast(ops.reduce_max(size, -1) / ops.reduce_min(size, -1), self._dtype.real_dtype)

    def _adjoint(self) -> LinearOperator:
        return type(self)(self._values(True), self._dtype, **self._hints())

    def _inverse(self) -> LinearOperator:
        return type(self)(1 / self._values(), self._dtype, **self._hints())


class LinearOperatorCirculant2D(LinearOperatorCirculant):
    """Like `LinearOperatorCirculant`, for the transform over two axes."""

    _depth = 2


class LinearOperatorCirculant3D(LinearOperatorCirculant):
    """Like `LinearOperatorCirculant`, for the transform over three axes."""

    _depth = 3
