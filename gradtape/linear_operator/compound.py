"""Operators made of others: products, Kronecker products, adjoints, inverses, updates of low rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from gradtape._src import ops
from gradtape.linear_operator.base import LinearOperator, check_type, reference, solve_dense
from gradtape.linear_operator.plain import (
    LinearOperatorDiag,
    LinearOperatorIdentity,
    LinearOperatorLowerTriangular,
    LinearOperatorScaledIdentity,
    LinearOperatorZeros,
)


def check_operators(operators: Any) -> list[LinearOperator]:
    """A list of operators of one element type."""
    operators = list(operators)
    if not operators:
        raise ValueError(f"Expected a non-empty list of operators. Found: {operators}")
    if any(o.dtype is not operators[0].dtype for o in operators):
        types = ", ".join(f"{o.name}: {o.dtype.name}" for o in operators)
        raise TypeError(f"Expected all operators to have the same dtype.  Found {types}")
    return operators


def all_hint(operators: Sequence[LinearOperator], hint: str, given: bool | None) -> bool | None:
    """A hint that holds if it holds for all parts."""
    if given is not None:
        return given
    return True if all(getattr(o, hint) for o in operators) else None


def batch_of(operators: Sequence[LinearOperator]) -> list[int]:
    return list(np.broadcast_shapes(*(tuple(o._shape()[:-2]) for o in operators)))


def compose(left: LinearOperator, right: LinearOperator) -> LinearOperator:
    """The product of two operators, simplified where possible."""
    from gradtape.linear_operator.blocks import LinearOperatorBlockDiag

    if left._shape()[-1] != right._shape()[-2]:
        raise ValueError(
            f"Operators are incompatible. Expected `x` to have dimension {left._shape()[-1]} but got "
            f"{right._shape()[-2]}."
        )
    check_operators([left, right])
    if isinstance(left, LinearOperatorIdentity):
        return right
    if isinstance(right, LinearOperatorIdentity):
        return left
    if isinstance(left, LinearOperatorZeros) or isinstance(right, LinearOperatorZeros):
        rows, columns = left._shape()[-2], right._shape()[-1]
        return LinearOperatorZeros(
            rows,
            columns,
            batch_of([left, right]),
            left.dtype,
            is_self_adjoint=rows == columns,
            is_square=rows == columns,
        )
    if isinstance(left, LinearOperatorScaledIdentity) and isinstance(right, LinearOperatorScaledIdentity):
        return LinearOperatorScaledIdentity(left._num_rows, left._factor() * right._factor())
    diagonal = (LinearOperatorDiag, LinearOperatorScaledIdentity)
    if isinstance(left, diagonal) and isinstance(right, diagonal):
        return LinearOperatorDiag(left.diag_part() * right.diag_part())
    if isinstance(left, diagonal) and isinstance(right, LinearOperatorLowerTriangular):
        return LinearOperatorLowerTriangular(ops.expand_dims(left.diag_part(), -1) * right.to_dense())
    if isinstance(left, LinearOperatorLowerTriangular) and isinstance(right, diagonal):
        return LinearOperatorLowerTriangular(left.to_dense() * ops.expand_dims(right.diag_part(), -2))
    if isinstance(left, LinearOperatorBlockDiag) and isinstance(right, LinearOperatorBlockDiag):
        fits = [
            a._shape()[-1] == b._shape()[-2] for a, b in zip(left.operators, right.operators, strict=False)
        ]
        if len(left.operators) == len(right.operators) and all(fits):
            return LinearOperatorBlockDiag(
                [a @ b for a, b in zip(left.operators, right.operators, strict=True)]
            )
    return LinearOperatorComposition([left, right])


class LinearOperatorComposition(LinearOperator):
    """The product of operators, `operators[0] @ operators[1] @ ...`."""

    def __init__(
        self, operators: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        self._operators = check_operators(operators)
        super().__init__(
            self._operators[0].dtype, None, all_hint(self._operators, "is_non_singular", is_non_singular),
            is_self_adjoint, is_positive_definite, is_square,
            name or "_o_".join(o.name for o in self._operators), {"operators": self._operators},
        )  # fmt: skip

    @property
    def operators(self) -> list[LinearOperator]:
        """The factors."""
        return self._operators

    def _shape(self) -> list[int]:
        first, last = self._operators[0]._shape(), self._operators[-1]._shape()
        return [*batch_of(self._operators), first[-2], last[-1]]

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        for o in self._operators if adjoint else reversed(self._operators):
            x = o._matmul(x, adjoint)
        return x

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        for o in reversed(self._operators) if adjoint else self._operators:
            rhs = o.solve(rhs, adjoint=adjoint)
        return rhs

    def _of_all(self, function: Callable, combine: Callable, otherwise: Callable) -> Any:
        if all(o.is_square for o in self._operators):
            return reduce(combine, (function(o) for o in self._operators))
        return otherwise()

    def _determinant(self) -> Any:
        return self._of_all(lambda o: o.determinant(), lambda a, b: a * b, super()._determinant)

    def _log_abs_determinant(self) -> Any:
        return self._of_all(
            lambda o: o.log_abs_determinant(), lambda a, b: a + b, super()._log_abs_determinant
        )


class LinearOperatorKronecker(LinearOperator):
    """The Kronecker product of operators: blocks `a[i, j] * b`."""

    def __init__(
        self, operators: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        self._operators = check_operators(operators)
        super().__init__(
            self._operators[0].dtype, None, all_hint(self._operators, "is_non_singular", is_non_singular),
            all_hint(self._operators, "is_self_adjoint", is_self_adjoint),
            all_hint(self._operators, "is_positive_definite", is_positive_definite), is_square,
            name or "_x_".join(o.name for o in self._operators), {"operators": self._operators},
        )  # fmt: skip

    @property
    def operators(self) -> list[LinearOperator]:
        """The factors."""
        return self._operators

    def _shape(self) -> list[int]:
        rows, columns = (prod(o._shape()[k] for o in self._operators) for k in (-2, -1))
        return [*batch_of(self._operators), rows, columns]

    def _apply(self, x: Any, each: Callable, adjoint: bool) -> Any:
        """Applies each factor to its own part of the rows, the first part first; each part is then moved to the
        back, so that all end up in their original order."""
        k = x.shape[-1]
        for o in self._operators:
            n = o._shape()[-2 if adjoint else -1]
            rest = x.shape[-2] // n
            x = each(o, ops.reshape(x, [*x.shape[:-2], n, rest * k]))
            *batch, m, _ = x.shape
            r = len(batch)
            x = ops.transpose(ops.reshape(x, [*batch, m, rest, k]), [*range(r), r + 1, r, r + 2])
            x = ops.reshape(x, [*batch, rest * m, k])
        return x

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        return self._apply(x, lambda o, y: o._matmul(y, adjoint), adjoint)

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        if not all(o.is_square for o in self._operators):
            return solve_dense(self.to_dense(), rhs, adjoint)
        return self._apply(rhs, lambda o, y: o.solve(y, adjoint=adjoint), adjoint)

    def _outer(self, parts: list[Any]) -> Any:
        """The outer product of vectors, flattened in the order of the Kronecker product."""

        def join(a: Any, b: Any) -> Any:
            out = ops.expand_dims(a, -1) * ops.expand_dims(b, -2)
            return ops.reshape(out, [*out.shape[:-2], out.shape[-2] * out.shape[-1]])

        return reduce(join, parts)

    def _to_dense(self) -> Any:
        def join(a: Any, b: Any) -> Any:
            # a[..., i, :, j, :] * b[..., :, k, :, l]
            a = ops.expand_dims(ops.expand_dims(a, -1), -3)
            b = ops.expand_dims(ops.expand_dims(b, -2), -4)
            out = a * b
            *batch, p, q, r, s = out.shape
            return ops.reshape(out, [*batch, p * q, r * s])

        return reduce(join, (o.to_dense() for o in self._operators))

    def diag_part(self, name: str = "diag_part") -> Any:
        if all(o.is_square for o in self._operators):
            return self._outer([o.diag_part() for o in self._operators])
        return super().diag_part()

    def trace(self, name: str = "trace") -> Any:
        if all(o.is_square for o in self._operators):
            return reduce(lambda a, b: a * b, (o.trace() for o in self._operators))
        return super().trace()

    def _powers(self) -> list[int]:
        n = self._shape()[-1]
        return [n // o._shape()[-1] for o in self._operators]

    def _determinant(self) -> Any:
        if not all(o.is_square for o in self._operators):
            return super()._determinant()
        parts = (o.determinant() ** p for o, p in zip(self._operators, self._powers(), strict=True))
        return reduce(lambda a, b: a * b, parts)

    def _log_abs_determinant(self) -> Any:
        if not all(o.is_square for o in self._operators):
            return super()._log_abs_determinant()
        parts = (o.log_abs_determinant() * p for o, p in zip(self._operators, self._powers(), strict=True))
        return reduce(lambda a, b: a + b, parts)

    def _eigvals(self) -> Any:
        return self._outer([o.eigvals() for o in self._operators])

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorKronecker([o.adjoint() for o in self._operators], **self._hints())

    def _inverse(self) -> LinearOperator:
        return LinearOperatorKronecker([o.inverse() for o in self._operators], **self._hints())

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorKronecker([o.cholesky() for o in self._operators], is_non_singular=True)


class LinearOperatorAdjoint(LinearOperator):
    """The adjoint of an operator."""

    def __init__(
        self, operator: LinearOperator, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        self._operator = operator
        given = {"is_non_singular": is_non_singular, "is_self_adjoint": is_self_adjoint,
                 "is_positive_definite": is_positive_definite, "is_square": is_square}  # fmt: skip
        hints = {k: getattr(operator, k) if v is None else v for k, v in given.items()}
        super().__init__(
            operator.dtype,
            name=name or operator.name + "_adjoint",
            parameters={"operator": operator},
            **hints,
        )

    @property
    def operator(self) -> LinearOperator:
        """The operator whose adjoint this is."""
        return self._operator

    def _shape(self) -> list[int]:
        *batch, rows, columns = self._operator._shape()
        return [*batch, columns, rows]

    def _conj(self, x: Any) -> Any:
        return ops.conj(x) if self._dtype.is_complex else x

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        return self._operator._matmul(x, not adjoint)

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return self._operator.solve(rhs, adjoint=not adjoint)

    def _to_dense(self) -> Any:
        return ops.adjoint(self._operator.to_dense())

    def diag_part(self, name: str = "diag_part") -> Any:
        return self._conj(self._operator.diag_part())

    def trace(self, name: str = "trace") -> Any:
        return self._conj(self._operator.trace())

    def _determinant(self) -> Any:
        return self._conj(self._operator.determinant())

    def _log_abs_determinant(self) -> Any:
        return self._operator.log_abs_determinant()

    def _eigvals(self) -> Any:
        return self._conj(self._operator.eigvals())

    def _adjoint(self) -> LinearOperator:
        return self._operator


class LinearOperatorInversion(LinearOperator):
    """The inverse of an operator."""

    def __init__(
        self, operator: LinearOperator, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        if operator.is_non_singular is False or is_non_singular is False:
            raise ValueError("Operator must be non-singular: it has no inverse otherwise.")
        if operator.is_square is False or is_square is False:
            raise ValueError("Operator must be square: it has no inverse otherwise.")
        self._operator = operator
        given = {"is_self_adjoint": is_self_adjoint, "is_positive_definite": is_positive_definite}
        hints = {k: getattr(operator, k) if v is None else v for k, v in given.items()}
        non_singular = operator.is_non_singular if is_non_singular is None else is_non_singular
        super().__init__(
            operator.dtype, is_non_singular=non_singular, is_square=True, name=name or operator.name + "_inv",
            parameters={"operator": operator}, **hints,
        )  # fmt: skip

    @property
    def operator(self) -> LinearOperator:
        """The operator whose inverse this is."""
        return self._operator

    def _shape(self) -> list[int]:
        return self._operator._shape()

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        return self._operator._solve(x, adjoint)

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return self._operator._matmul(rhs, adjoint)

    def _determinant(self) -> Any:
        return 1 / self._operator.determinant()

    def _log_abs_determinant(self) -> Any:
        return -self._operator.log_abs_determinant()

    def _eigvals(self) -> Any:
        return 1 / self._operator.eigvals()

    def cond(self, name: str = "cond") -> Any:
        return self._operator.cond()

    def _inverse(self) -> LinearOperator:
        return self._operator


class LinearOperatorLowRankUpdate(LinearOperator):
    """`base_operator + u @ diag(diag_update) @ adjoint(v)`, with few columns in `u` and `v`."""

    def __init__(
        self, base_operator: LinearOperator, u: Any, diag_update: Any = None, v: Any = None,
        is_diag_update_positive: bool | None = None, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = None, name: str = "LinearOperatorLowRankUpdate",
    ) -> None:  # fmt: skip
        self._base, self._u = base_operator, reference(u)
        check_type("u", self._u, 2)
        self._v = None if v is None else reference(v)
        self._diag_update = None if diag_update is None else reference(diag_update)
        rows, columns = base_operator._shape()[-2:]
        pairs = [(rows, self._u.shape[-2])]
        if self._v is not None:
            pairs.append((columns, self._v.shape[-2]))
        if self._diag_update is not None:
            pairs.append((self._u.shape[-1], self._diag_update.shape[-1]))
        for a, b in pairs:
            if a != b:
                raise ValueError(f"Dimensions {a} and {b} are not compatible")
        if diag_update is None:
            is_diag_update_positive = True
        self._is_diag_update_positive = is_diag_update_positive
        if v is None and base_operator.is_self_adjoint and self._u.dtype.is_floating:
            is_self_adjoint = True
        if v is None and base_operator.is_positive_definite and is_diag_update_positive:
            is_positive_definite = True
        super().__init__(
            base_operator.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name,
            {"base_operator": base_operator, "u": u, "diag_update": diag_update, "v": v},
        )  # fmt: skip

    base_operator = property(lambda self: self._base, doc="The operator that is updated.")
    u = property(lambda self: self._u, doc="The left factor.")
    v = property(lambda self: self._u if self._v is None else self._v, doc="The right factor.")
    diag_update = property(lambda self: self._diag_update, doc="The diagonal between them, or None for ones.")
    is_diag_update_positive = property(lambda self: self._is_diag_update_positive, doc="A hint.")

    @property
    def diag_operator(self) -> LinearOperator:
        """The diagonal between the factors, as an operator."""
        if self._diag_update is None:
            return LinearOperatorIdentity(self._u.shape[-1], dtype=self._dtype)
        return LinearOperatorDiag(self._diag_update, is_positive_definite=self._is_diag_update_positive)

    def _factors(self, adjoint: bool = False) -> tuple[Any, Any]:
        u, v = ops.convert_to_tensor(self.u), ops.convert_to_tensor(self.v)
        return (v, u) if adjoint else (u, v)

    def _shape(self) -> list[int]:
        *batch, rows, columns = self._base._shape()
        return [*np.broadcast_shapes(tuple(batch), tuple(self._u.shape[:-2])), rows, columns]

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        u, v = self._factors(adjoint)
        inner = self.diag_operator._matmul(ops.matmul(v, x, adjoint_a=True), adjoint)
        return self._base._matmul(x, adjoint) + ops.matmul(u, inner)

    def _capacitance(self, adjoint: bool = False) -> Any:
        u, v = self._factors(adjoint)
        inner = ops.matmul(v, self._base.solve(u, adjoint=adjoint), adjoint_a=True)
        inverse = self.diag_operator.inverse()
        return (inverse.adjoint() if adjoint else inverse).add_to_tensor(inner)

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        """Woodbury's formula."""
        u, v = self._factors(adjoint)
        first = self._base.solve(rhs, adjoint=adjoint)
        inner = solve_dense(self._capacitance(adjoint), ops.matmul(v, first, adjoint_a=True), False)
        return first - self._base.solve(ops.matmul(u, inner), adjoint=adjoint)

    def _determinant(self) -> Any:
        return ops.det(self._capacitance()) * self._base.determinant() * self.diag_operator.determinant()

    def _log_abs_determinant(self) -> Any:
        log = ops.slogdet(self._capacitance()).log_abs_determinant
        return log + self._base.log_abs_determinant() + self.diag_operator.log_abs_determinant()

    def diag_part(self, name: str = "diag_part") -> Any:
        u, v = self._factors()
        v = ops.conj(v) if self._dtype.is_complex else v
        scaled = u if self._diag_update is None else u * ops.expand_dims(self._diag_update, -2)
        return self._base.diag_part() + ops.reduce_sum(scaled * v, -1)

    def _adjoint(self) -> LinearOperator:
        u, v = self._factors(True)
        update = self._diag_update
        if update is not None and self._dtype.is_complex:
            update = ops.conj(update)
        return LinearOperatorLowRankUpdate(
            self._base.adjoint(), u, update, None if self._v is None else v,
            is_diag_update_positive=self._is_diag_update_positive, **self._hints(),
        )  # fmt: skip
