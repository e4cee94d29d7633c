"""Ops written in Python, in graphs: how they run in a program, and their static shapes and types.

`lower` makes them steps that call Python, unless their forward is composed of ops: then `simplify` inlines
it. Their gradients belong to their rows (`gradtape/_src/tapes/primitive.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import errors
from gradtape._src.base.contexts import aside
from gradtape._src.base.dtypes import BY_CODE, as_dtype, float32
from gradtape._src.base.shape import TensorSpec
from gradtape._src.graph.ir import Graph, Node, symbolic
from gradtape._src.tensors import conversion

Spec = tuple[int, tuple[int, ...]]  # number of the type, shape

_ops: list[Any] = []  # records do not own ops, so ops live as long as the process


class PythonOp:
    """The interface of an op written in Python for the core and the passes."""

    op: Any

    def __init__(self, forward: Callable, shape: Callable | None = None) -> None:
        self.forward, self.shape = forward, shape
        self._inferred: dict[tuple, list[tuple]] = {}
        self._graphs: dict[tuple, Graph | None] = {}

    def attach(self, op: Any) -> None:
        """Sets the attributes of the op that the core and the passes look for."""
        self.op, self.row, self.name = op, op.row, op.op_name
        op.infer, op.expand, op.step = self.infer, self.expand, self.step
        _ops.append(op)

    def call(self, operands: Sequence[Any], attrs: Sequence[Any]) -> Any:
        """The forward."""
        return self.forward(*operands, *attrs)

    def step(self, node: Node) -> Callable:
        """The function that a program runs for a node."""
        expected = [(r.shape, r.dtype) for r in node.results]

        def run(*operands: Any) -> list:
            with aside():
                results = list(_core.apply(self.op, list(operands), node.attrs))
            if [(tuple(r.shape), r.dtype._code) for r in results] != expected:
                specs = ", ".join(f"{BY_CODE[d].name}{list(s)}" for s, d in expected)
                got = ", ".join(f"{r.dtype.name}{list(r.shape)}" for r in results)
                raise errors.InvalidArgumentError(
                    None, None,
                    f"{self.name}: the result is not what was inferred when the function was traced; expected {specs}; got "
                    f"{got}. Hint: pass shape=, or shape_from_values=True if it depends on values.",
                )  # fmt: skip
            return results

        return run

    # ---- shapes -----------------------------------------------------------------------------

    def infer(self, specs: Sequence[Spec], attrs: tuple) -> list[tuple]:
        """Called by the core: (shape, number of the type) for each result."""
        key = (tuple(specs), attrs)
        try:
            cached = self._inferred.get(key)
        except TypeError:
            raise TypeError(
                f"{self.name}: attributes must be hashable where a function is traced; got {attrs}."
            ) from None
        if cached is None:
            cached = self._inferred[key] = self._infer(specs, attrs)
        return cached

    def _infer(self, specs: Sequence[Spec], attrs: tuple) -> list[tuple]:
        if self.shape is not None:
            given = self.shape(*(TensorSpec(shape, BY_CODE[dtype]) for dtype, shape in specs), *attrs)
            common = specs[0][0] if specs else float32._code
            return [_spec(s, common) for s in (given if self.row.many else [given])]
        graph = self.expand(specs, attrs)
        if graph is not None:
            return [(v.shape, v.dtype) for v in graph.outputs]
        rng = np.random.default_rng(0)
        examples = [_example(rng, BY_CODE[dtype], shape) for dtype, shape in specs]
        try:
            with aside():
                results = _core.apply(self.op, examples, attrs)
        except Exception as e:
            raise errors.Untraceable(
                f"{self.name}: the shape of its result is not known, and the forward cannot be run on example values ({e}). "
                "Hint: pass shape="
            ) from e
        return [(tuple(r.shape), r.dtype._code) for r in results]

    def expand(self, specs: Sequence[Spec], attrs: tuple) -> Graph | None:
        """The forward as a graph; None if it is not composed of ops."""
        key = (tuple(specs), attrs)
        if key not in self._graphs:
            self._graphs[key] = traced(lambda xs: self.call(xs, attrs), specs, self.row.many)
        return self._graphs[key]


def adopt(op: Any) -> None:
    """Makes an op of the table whose forward is in Python traceable; called by the core."""
    PythonOp(op._python).attach(op)


def traced(f: Callable[[list], Any], specs: Sequence[Spec], many: bool) -> Graph | None:
    """The graph of `f`, traced for tensors of these kinds; None if it reads values."""
    graph = Graph()
    xs = [symbolic(graph.input(shape, dtype)) for dtype, shape in specs]
    try:
        with aside(graph):
            result = f(xs)
            graph.outputs = [graph.value_of(conversion.densify(y)) for y in (result if many else [result])]
    except errors.OUT_OF_RESOURCES:
        raise
    except Exception:
        return None
    return graph


def _spec(given: Any, dtype: int) -> tuple:
    """A result as (shape, number of the type) from what a shape rule returned."""
    if hasattr(given, "shape") and hasattr(given, "dtype"):
        return tuple(int(d) for d in given.shape), as_dtype(given.dtype)._code
    if len(given) == 2 and not isinstance(given[1], (int, np.integer)) and given[1] is not None:
        return tuple(int(d) for d in given[0]), as_dtype(given[1])._code
    return tuple(int(d) for d in given), dtype


def _example(rng: Any, dtype: Any, shape: tuple[int, ...]) -> Any:
    """Example values to run a forward on: ordinary numbers, and indices that are in range wherever possible."""
    array = rng.uniform(0.5, 1.5, shape) if dtype.is_floating or dtype.is_complex else np.zeros(shape)
    return conversion.convert(array, dtype._code)
