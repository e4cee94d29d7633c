"""Operators made of blocks: block diagonal and block lower triangular."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape.linear_operator.base import LinearOperator
from gradtape.linear_operator.compound import all_hint, batch_of, check_operators


def _is_blocks(x: Any, count: int) -> bool:
    """Whether an argument is one tensor for each block, not one for all."""
    tensors = (_core.Tensor, _core.Variable, np.ndarray)
    return isinstance(x, (list, tuple)) and len(x) == count and all(isinstance(b, tensors) for b in x)


def _split(x: Any, sizes: list[int], axis: int) -> list[Any]:
    parts, at = [], 0
    index: list[Any] = [slice(None)] * len(x.shape)
    for n in sizes:
        index[axis] = slice(at, at + n)
        parts.append(x[tuple(index)])
        at += n
    return parts


def _join(parts: list[Any], axis: int) -> Any:
    batch = np.broadcast_shapes(*(tuple(p.shape[:-2]) for p in parts))
    return ops.concat([ops.broadcast_to(p, [*batch, *p.shape[-2:]]) for p in parts], axis)


class _Blocks(LinearOperator):
    """The base of both: an argument is one matrix for all blocks, or a list with one per block."""

    def _rows(self) -> list[int]:
        raise NotImplementedError

    def _columns(self) -> list[int]:
        raise NotImplementedError

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        columns, rows = (self._rows(), self._columns()) if adjoint else (self._columns(), self._rows())
        if not _is_blocks(x, len(columns)):
            return super().matmul(x, adjoint, adjoint_arg)
        out = super().matmul(_join(list(x), -1 if adjoint_arg else -2), adjoint, adjoint_arg)
        return _split(out, rows, -2)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Any:
        columns, rows = (self._rows(), self._columns()) if adjoint else (self._columns(), self._rows())
        if not _is_blocks(x, len(columns)):
            return super().matvec(x, adjoint)
        return _split(super().matvec(ops.concat(list(x), -1), adjoint), rows, -1)

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        if not _is_blocks(rhs, len(self._rows())):
            return super().solve(rhs, adjoint, adjoint_arg)
        out = super().solve(_join(list(rhs), -1 if adjoint_arg else -2), adjoint, adjoint_arg)
        return _split(out, self._columns(), -2)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Any:
        if not _is_blocks(rhs, len(self._rows())):
            return super().solvevec(rhs, adjoint)
        return _split(super().solvevec(ops.concat(list(rhs), -1), adjoint), self._columns(), -1)


class LinearOperatorBlockDiag(_Blocks):
    """A block diagonal matrix of operators."""

    def __init__(
        self, operators: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = True, name: str | None = None,
    ) -> None:  # fmt: skip
        self._operators = check_operators(operators)
        super().__init__(
            self._operators[0].dtype, None, all_hint(self._operators, "is_non_singular", is_non_singular),
            all_hint(self._operators, "is_self_adjoint", is_self_adjoint),
            all_hint(self._operators, "is_positive_definite", is_positive_definite), is_square,
            name or "_ds_".join(o.name for o in self._operators), {"operators": self._operators},
        )  # fmt: skip

    @property
    def operators(self) -> list[LinearOperator]:
        """The blocks."""
        return self._operators

    def _rows(self) -> list[int]:
        return [o._shape()[-2] for o in self._operators]

    def _columns(self) -> list[int]:
        return [o._shape()[-1] for o in self._operators]

    def _shape(self) -> list[int]:
        return [*batch_of(self._operators), sum(self._rows()), sum(self._columns())]

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        parts = _split(x, self._rows() if adjoint else self._columns(), -2)
        return _join([o._matmul(p, adjoint) for o, p in zip(self._operators, parts, strict=True)], -2)

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        parts = _split(rhs, self._columns() if adjoint else self._rows(), -2)
        return _join([o.solve(p, adjoint=adjoint) for o, p in zip(self._operators, parts, strict=True)], -2)

    def diag_part(self, name: str = "diag_part") -> Any:
        if not all(o.is_square for o in self._operators):
            return super().diag_part()
        batch = batch_of(self._operators)
        parts = [o.diag_part() for o in self._operators]
        return ops.concat([ops.broadcast_to(p, [*batch, p.shape[-1]]) for p in parts], -1)

    def trace(self, name: str = "trace") -> Any:
        if not all(o.is_square for o in self._operators):
            return super().trace()
        return sum((o.trace() for o in self._operators[1:]), self._operators[0].trace())

    def _determinant(self) -> Any:
        out = self._operators[0].determinant()
        for o in self._operators[1:]:
            out = out * o.determinant()
        return out

    def _log_abs_determinant(self) -> Any:
        out = self._operators[0].log_abs_determinant()
        for o in self._operators[1:]:
            out = out + o.log_abs_determinant()
        return out

    def _eigvals(self) -> Any:
        batch = batch_of(self._operators)
        parts = [o.eigvals() for o in self._operators]
        return ops.concat([ops.broadcast_to(p, [*batch, p.shape[-1]]) for p in parts], -1)

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorBlockDiag([o.adjoint() for o in self._operators], **self._hints())

    def _inverse(self) -> LinearOperator:
        return LinearOperatorBlockDiag([o.inverse() for o in self._operators], **self._hints())

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorBlockDiag([o.cholesky() for o in self._operators], is_non_singular=True)


class LinearOperatorBlockLowerTriangular(_Blocks):
    """A block lower triangular matrix: row `i` is a list of `i + 1` operators, the last of which is on the diagonal."""

    def __init__(
        self, operators: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str = "LinearOperatorBlockLowerTriangular",
    ) -> None:  # fmt: skip
        self._operators = [list(row) for row in operators]
        for i, row in enumerate(self._operators):
            if len(row) != i + 1:
                raise ValueError(
                    f"The argument `operators` must be a list of rows of length 1, 2, ...; row {i} has {len(row)}."
                )
        flat = check_operators([o for row in self._operators for o in row])
        diagonal = self._diagonal()
        if not all(o.is_square for o in diagonal):
            raise ValueError("Diagonal blocks must be square.")
        super().__init__(
            flat[0].dtype, None, all_hint(diagonal, "is_non_singular", is_non_singular), is_self_adjoint,
            is_positive_definite, True, name, {"operators": self._operators},
        )  # fmt: skip

    @property
    def operators(self) -> list[list[LinearOperator]]:
        """The rows of blocks."""
        return self._operators

    def _diagonal(self) -> list[LinearOperator]:
        return [row[-1] for row in self._operators]

    def _rows(self) -> list[int]:
        return [o._shape()[-2] for o in self._diagonal()]

    _columns = _rows

    def _shape(self) -> list[int]:
        n = sum(self._rows())
        return [*batch_of([o for row in self._operators for o in row]), n, n]

    def _column(self, j: int, adjoint: bool) -> list[tuple[int, LinearOperator]]:
        """The blocks that are multiplied with part j of an argument, with the indices of their parts of the result."""
        if adjoint:
            return list(enumerate(self._operators[j]))
        return [(i, row[j]) for i, row in enumerate(self._operators) if j < len(row)]

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        sums: list[Any] = [None] * len(self._operators)
        for j, part in enumerate(_split(x, self._rows(), -2)):
            for i, o in self._column(j, adjoint):
                y = o._matmul(part, adjoint)
                sums[i] = y if sums[i] is None else sums[i] + y
        return _join(sums, -2)

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        """Block by block: known parts of the solution go to the right side."""
        parts = _split(rhs, self._rows(), -2)
        order = range(len(parts))
        for j in reversed(order) if adjoint else order:
            parts[j] = self._operators[j][-1].solve(parts[j], adjoint=adjoint)
            for i, o in self._column(j, adjoint):
                if i != j:
                    parts[i] = parts[i] - o._matmul(parts[j], adjoint)
        return _join(parts, -2)

    def diag_part(self, name: str = "diag_part") -> Any:
        return LinearOperatorBlockDiag(self._diagonal()).diag_part()

    def trace(self, name: str = "trace") -> Any:
        return LinearOperatorBlockDiag(self._diagonal()).trace()

    def _determinant(self) -> Any:
        return LinearOperatorBlockDiag(self._diagonal()).determinant()

    def _log_abs_determinant(self) -> Any:
        return LinearOperatorBlockDiag(self._diagonal()).log_abs_determinant()
