"""The residuals of a loop on XLA: buffers with a row for each iteration, identified by a token.

In a graph, the residuals of a loop are one number, the token, which the loop returns and its gradient takes.
Natively it is the number of a list in the core. Here the token *is* the buffers: a `Token` inside a program, and a
`Residuals` between programs, in place of a tensor's array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base.contexts import aside
from gradtape._src.base.dtypes import int32
from gradtape._src.engines import NATIVE
from gradtape._src.graph.ir import Graph, symbolic

REFUSED, OVERFLOW = 1, 2
"""Bits of the status of a run: native code would raise; a loop had more iterations than room for residuals."""


class Token(NamedTuple):
    """The residuals of a loop that ran `count` times."""

    count: Any
    rows: tuple  # tensors with a row for each iteration that there is room for; also in tokens of inner loops


class OneOf(NamedTuple):
    """The values that branches of a program keep at one place: tokens of their own loops, or numbers. One of them ran."""

    parts: tuple  # for each branch, its values; zeros except for the branch that ran


TOKENS = Token, OneOf


class Residuals:
    """A token between two programs."""

    __slots__ = ("arrays", "structure", "specs")

    def __init__(self, arrays: Sequence[Any], structure: Any) -> None:
        self.arrays = tuple(arrays)
        self.structure = structure
        self.specs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in self.arrays]

    @staticmethod
    def take(arrays: Iterator[Any], structure: Any) -> Residuals:
        """Built from the next of the arrays, as many as it needs."""
        return Residuals([next(arrays) for _ in range(structure.num_leaves)], structure)

    @property
    def size(self) -> int:
        """The number of its arrays."""
        return len(self.arrays)

    @property
    def kind(self) -> tuple:
        """The key for programs that take it."""
        return self.structure, tuple((s.shape, s.dtype) for s in self.specs)

    def unflatten(self, arrays: Sequence[Any]) -> Token:
        """A token of the same structure with other arrays."""
        return jax.tree.unflatten(self.structure, arrays)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """As an array, a token is a number without meaning."""
        return np.zeros((), np.int64)


def native_token(count: Any, rows: Sequence[Any]) -> Any:
    """The native token for these residuals, given as tensors: that of a loop which returns them row by row."""
    kinds = [((), int32._code), ((), int32._code), *((tuple(r.shape), r.dtype._code) for r in rows)]

    def program(keeps: bool) -> Any:
        graph = Graph()
        with aside(graph):
            k, end, *given = [symbolic(graph.input(*kind)) for kind in kinds]
            results = [k + 1, k + 1 < end, *(ops.gather(r, k) for r in given)] if keeps else [k < end]
            graph.outputs = [graph.value_of(y) for y in results]
        return NATIVE.program(graph, [0, *[-1] * (len(results) - 1)] if keeps else None, local=keeps)

    start = ops.zeros((), int32)
    return _core.loop(program(False), program(True), [start, count, *rows], 1, True)[-1]
