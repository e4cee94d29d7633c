"""`tensorflow.python.ops.linalg.linear_operator_addition`: sums of operators."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import gradtape as tf

_DIAGONAL = (
    tf.linalg.LinearOperatorDiag, tf.linalg.LinearOperatorIdentity, tf.linalg.LinearOperatorScaledIdentity,
)  # fmt: skip


def add_operators(
    operators: Sequence[Any],
    operator_name: str | None = None,
    addition_tiers: Any = None,
    name: str | None = None,
) -> list[Any]:
    """The sum of operators, as a list of one: diagonal, lower triangular, or a matrix, whatever covers all of them."""
    if not operators:
        raise ValueError("Argument `operators` must contain at least one operator. Received: []")
    return [functools.reduce(_sum, operators)]


def _sum(a: Any, b: Any) -> Any:
    hints: dict[str, Any] = {
        hint: True if getattr(a, hint) and getattr(b, hint) else None
        for hint in ("is_self_adjoint", "is_positive_definite")
    }
    if hints["is_positive_definite"]:
        hints["is_non_singular"] = True
    if isinstance(a, _DIAGONAL) and isinstance(b, _DIAGONAL):
        return tf.linalg.LinearOperatorDiag(a.diag_part() + b.diag_part(), **hints)
    triangular = (*_DIAGONAL, tf.linalg.LinearOperatorLowerTriangular)
    if isinstance(a, triangular) and isinstance(b, triangular):
        return tf.linalg.LinearOperatorLowerTriangular(a.to_dense() + b.to_dense(), **hints)
    return tf.linalg.LinearOperatorFullMatrix(a.to_dense() + b.to_dense(), **hints)
