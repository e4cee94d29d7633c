"""One graph for several replicas: each runs it on its own part of the data, and they exchange values on the way.

An engine that has a device for each replica runs the graph on all of them at once (`Engine.over`);
collectives then become `psum` and the like in XLA. The native engine runs the replicas side by side, node by node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.control.collective import (
    AllGather,
    AllReduce,
    Broadcast,
    Collective,
    ReduceScatter,
    ReduceTo,
    of,
)
from gradtape._src.control.control_ops import Control, specs_of
from gradtape._src.graph.callable import GraphFunction
from gradtape._src.graph.effects import deferred
from gradtape._src.graph.ir import Graph, Value


class Axis:
    """The replicas of one graph, as a group (see `collective.py`): their collectives are part of the graph."""

    is_axis = True
    rank = 0  # of the replica that represents all

    def __init__(self, size: int) -> None:
        self.size = size

    # Outside of the graph, all replicas have the same values.

    def all_reduce(self, tensors: list) -> list:
        """The sums over all replicas."""
        return [ops.add_n([x] * self.size) for x in tensors]

    def all_gather(self, tensors: list) -> list:
        """For each tensor, the tensors of all replicas."""
        return [[x] * self.size for x in tensors]

    def broadcast(self, tensors: list, root: int = 0) -> list:
        """The tensors of replica `root`."""
        return tensors


class Same(Collective):
    """Values that must be equal on all replicas."""

    lowering = "collective.same"

    def __init__(self, group: Any, what: str) -> None:
        super().__init__("same", group)
        self.what = what  # the error message if they differ

    def transpose(self, operands: Sequence[Any]) -> Collective:
        return self


def same(axis: Axis, value: Any, what: str) -> Any:
    """The value; the graph checks when it runs that all replicas have the same one."""
    return of(axis, Same, what)([value])[0]


class Replicated(Control):
    """The node. Operands: `rows` values of each replica, replica after replica, then the values that all share.

    Results: the first `results` of the graph for each replica, replica after replica, then those that are common to all.
    """

    xla = "collective.replicated"
    is_replicated = True

    def __init__(self, function: GraphFunction, count: int, rows: int, results: int, engine: Any) -> None:
        specs = specs_of(function.graph.outputs)
        apart = [spec for spec in specs[:results] for _ in range(count)]
        super().__init__("replicated", [*apart, *specs[results:]], effect=True)
        self.function, self.count, self.rows, self.results, self.engine = (
            function,
            count,
            rows,
            results,
            engine,
        )

    def graphs(self) -> Sequence[Graph]:
        return [self.function.graph]

    def _recorded(self, operands: list, tracked: tuple[bool, ...]) -> list:
        # Tapes record the ops of all replicas.
        return list(self._execute(*operands))

    def _execute(self, *operands: Any) -> Sequence[Any]:
        n, graph = self.count, self.function.graph
        shared = operands[self.rows * n :]
        values: list[dict[Value, Any]] = [
            dict(zip(graph.inputs, [*operands[r : self.rows * n : n], *shared], strict=True))
            for r in range(n)
        ]

        def tensor(r: int, v: Value) -> Any:
            return values[r][v] if v.constant is None else v.constant

        for node in graph.nodes:
            given = [[tensor(r, v) for v in node.operands] for r in range(n)]
            if isinstance(node.op, Collective):
                done = together(node.op, given)
            elif isinstance(node.op, _core.Op):
                done = [_core.apply(node.op, xs, node.attrs) for xs in given]
            else:
                done = [node.op(xs, specs_of(node.results)) for xs in given]
            for r, results in enumerate(done):
                values[r].update(zip(node.results, results, strict=True))
        outputs = [[tensor(r, v) for v in graph.outputs] for r in range(n)]
        apart = [outputs[r][k] for k in range(self.results) for r in range(n)]
        return [*apart, *outputs[0][self.results :]]


def together(op: Collective, given: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
    """The results of a collective on each replica, from the operands of all of them."""
    columns = list(zip(*given, strict=True))
    if isinstance(op, Same):
        for column in columns:
            for r, x in enumerate(column[1:], 1):
                _want_same(column[0], x, r, op.what)
        return list(given)
    if isinstance(op, AllGather):
        return [[ops.concat(list(column), op.axis) for column in columns]] * len(given)
    if isinstance(op, Broadcast):
        return [given[op.root]] * len(given)
    sums = [ops.add_n(list(column)) for column in columns]
    if isinstance(op, AllReduce):
        return [sums] * len(given)
    if isinstance(op, ReduceTo):
        return [sums if r == op.root else [ops.zeros_like(x) for x in sums] for r in range(len(given))]
    assert isinstance(op, ReduceScatter)
    parts = [ops.split(x, len(given), axis=op.axis) for x in sums]
    return [[part[r] for part in parts] for r in range(len(given))]


@deferred
def _want_same(first: Any, other: Any, replica: int, what: str) -> None:
    a, b = first.numpy(), other.numpy()
    if not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"):
        raise ValueError(f"{what}; got {a.tolist()} in replica 0 and {b.tolist()} in replica {replica}.")


def is_common(graph: Graph, apart: Sequence[Value]) -> set[Value]:
    """The outputs of a graph that are equal on all replicas, because nothing that differs leads to them."""
    differs = set(apart)
    for node in graph.nodes:
        if isinstance(node.op, Collective) and isinstance(node.op, (AllReduce, AllGather, Broadcast, Same)):
            continue
        drawn = getattr(node.op, "draws", False)
        if (
            drawn
            or isinstance(node.op, (ReduceScatter, ReduceTo))
            or any(v in differs for v in node.operands)
        ):
            differs.update(node.results)
    return {v for v in graph.outputs if v not in differs}
