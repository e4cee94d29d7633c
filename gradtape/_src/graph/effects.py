"""Effectful ops of traced functions: printing, assertions, random streams.

Such a call becomes a node that runs Python each time the graph runs, in program order, even if
nothing reads its result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import nest
from gradtape._src.base.calls import one_call
from gradtape._src.base.composites import apart, together
from gradtape._src.base.dtypes import BY_CODE
from gradtape._src.graph.ir import Callback
from gradtape._src.tensors.conversion import read


def is_symbolic(structure: Any) -> bool:
    """Whether a nest holds a symbolic tensor, or a variable, whose read gives one."""
    return any(
        x._symbol is not None if isinstance(x, _core.Tensor) else isinstance(x, _core.Variable)
        for x in nest.flatten(apart(structure))
    )


def deferred(function: Callable, always: bool = False) -> Callable:
    """Makes a function without a result run when the graph runs: if it is given symbols, or always."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _core.current_trace() is None or not (always or is_symbolic((args, kwargs))):
            return function(*args, **kwargs)
        # Variables are read at this point of the program.
        given = apart((args, kwargs))
        leaves = [read(x) for x in nest.flatten(given)]
        places = [i for i, x in enumerate(leaves) if isinstance(x, _core.Tensor)]

        def run(*tensors: Any) -> list:
            filled = list(leaves)
            for i, t in zip(places, tensors, strict=True):
                filled[i] = t
            later_args, later_kwargs = together(nest.pack_sequence_as(given, filled))
            function(*later_args, **later_kwargs)
            return []

        Callback(function.__name__, run, effect=True)([leaves[i] for i in places], [])
        return None

    recorded = one_call(call)
    recorded.runs_later = True  # type: ignore[attr-defined]
    return recorded


def fresh(name: str, make: Callable[[], Any], shape: tuple[int, ...], dtype: int) -> Any:
    """The tensor that `make()` returns: called at once, or, in a trace, each time the graph runs."""
    if _core.current_trace() is None:
        return make()
    return Draw(name, make)([], [(shape, dtype)])[0]


class Draw(Callback):
    """A node whose result differs on every run; in a batch, every row draws its own."""

    draws = True

    def __init__(self, name: str, make: Callable[[], Any]) -> None:
        super().__init__(name, lambda: [make()], effect=True)
        self.make = make

    def batch(self, size: int, shape: tuple[int, ...], dtype: int) -> list:
        """The results for `size` rows."""

        def rows() -> Any:
            if not size:
                return ops.zeros((0, *shape), BY_CODE[dtype])
            return ops.stack([self.make() for _ in range(size)], 0)

        return Draw(self.op_name, rows)([], [((size, *shape), dtype)])
