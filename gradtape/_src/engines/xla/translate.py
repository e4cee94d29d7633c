"""A graph as a function of JAX arrays.

Nodes of the op table go through `lowering.py`. A callback that XLA can express names its function by `xla=`, as
rows do (`engines/xla/ops/control.py`); random streams become inputs, drawn on the host before each run. Everything
else runs natively on the host, in the middle of the program, and the log names it once.

If anything can go wrong, there is a status beside the results: its bits say that native code would have refused
something (an index out of range), or that a loop had no room for its residuals. `program.py` acts on it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gradtape import _core
from gradtape._src.base import log
from gradtape._src.engines.xla.host import array_of, call
from gradtape._src.engines.xla.lowering import lower, named, spec_of
from gradtape._src.engines.xla.names import io_callback, pure_callback
from gradtape._src.engines.xla.residuals import REFUSED, TOKENS, OneOf, Token, native_token
from gradtape._src.graph.ir import Callback, Graph, Node, Value
from gradtape._src.graph.simplify import simplify

_told: set[tuple[str, Any]] = set()


class Translation:
    """The computation of a graph, as a function that JAX can trace.

    Attributes:
      draws: the nodes whose results are drawn on the host before a run; they are inputs after those of the graph.
      on_host: the names of nodes that run on the host in the middle of a run.
    """

    def __init__(self, graph: Graph, hoists: bool = True) -> None:
        self.graph = simplify(graph, final=True)
        self.draws = [n for n in self.graph.nodes if hoists and _is_drawn(n)]
        self.on_host: list[str] = []
        self._constants: dict[Value, np.ndarray] = {}

    def run(
        self, inputs: Sequence[Any], streams: Sequence[Any] = (), room: int = 64, number: Any = 0
    ) -> tuple[list[Any], Any]:
        """The outputs, and the status: None if nothing can go wrong.

        Args:
          streams: the streams drawn for this run.
          room: how many iterations of a loop there is room for.
          number: the number of the run, for calls on the host (host.py).
        """
        within = Run(self, room, number)
        values: dict[Value, Any] = dict(zip(self.graph.inputs, inputs, strict=True))
        drawn = dict(zip(self.draws, streams, strict=True))

        def value_of(v: Value) -> Any:
            return values[v] if v.constant is None else self._constant(v)

        for node in self.graph.nodes:
            operands = [value_of(v) for v in node.operands]
            results = [drawn[node]] if node in drawn else self._results(node, operands, within)
            values.update(zip(node.results, results, strict=True))
        outputs = [value_of(v) for v in self.graph.outputs]
        return [x if isinstance(x, TOKENS) else jnp.asarray(x) for x in outputs], within.status()

    def inside(self, graph: Graph) -> Translation:
        """The graph of a branch or loop body, as a part of this one."""
        return Inner(self, graph)

    def _constant(self, v: Value) -> Any:
        array = self._constants.get(v)
        if array is None:
            array = self._constants[v] = array_of(v.constant)
        return array

    def _results(self, node: Node, operands: list[Any], within: Run) -> Sequence[Any]:
        op = node.op
        if isinstance(op, Callback):
            if op.xla:
                return named(op.xla)(op, operands, within)
            return self.host(node, op.run, operands, within, op.effect)
        if op.row.xla:
            return lower(node, operands, within.check)
        if op.row.native:
            return self.host(node, lambda *xs: _core.apply(op, list(xs), node.attrs), operands, within)
        return self.host(node, op.step(node), operands, within)

    def host(
        self, node: Node, run: Callable[..., Sequence[Any]], operands: list[Any], within: Run, effect: bool = False
    ) -> list[Any]:  # fmt: skip
        """The results of native code in the middle of the program."""
        self.on_host.append(node.name)
        if any(isinstance(x, TOKENS) for x in operands):
            run, operands = _with_tokens(run, operands)
        if not effect:
            _tell(node)
        way = functools.partial(io_callback, ordered=True) if effect else pure_callback
        return call(way, run, operands, [spec_of(v) for v in node.results], within.number, effect)


class Inner(Translation):
    """The graph of a branch or loop body, as a part of the program around it."""

    def __init__(self, outer: Translation, graph: Graph) -> None:
        super().__init__(graph, hoists=False)
        self.on_host = outer.on_host


class Run:
    """One run of a translation, as lowerings of control flow see it."""

    def __init__(self, translation: Translation, room: int, number: Any = 0) -> None:
        self.room = room
        self.number = number
        self._translation = translation
        self._conditions: list[Any] = []  # conditions that native code relies on
        self._bits: list[Any] = []

    def check(self, condition: Any) -> None:
        """Notes that native code would raise where an element of `condition` is False."""
        self._conditions.append(jnp.all(condition))

    def note(self, status: Any) -> None:
        """Adds the status of a part; None means no status."""
        if status is not None:
            self._bits.append(status)

    def status(self) -> Any:
        """The combined status."""
        bits = list(self._bits)
        if self._conditions:
            fine = functools.reduce(jnp.logical_and, self._conditions)
            bits.append(jnp.where(fine, 0, REFUSED).astype(jnp.int32))
        return functools.reduce(jnp.bitwise_or, bits) if bits else None

    def inner(self, graph: Graph) -> Callable[[Sequence[Any]], tuple[list[Any], Any]]:
        """The graph of a branch or loop body, as a function that returns its outputs and its status."""
        inner = self._translation.inside(graph)
        return lambda xs: inner.run(list(xs), (), self.room, self.number)


def runs_on_host(graph: Graph) -> bool:
    """Whether a part of a graph, or of its inner graphs, has no lowering; random streams at the top do not count."""
    return any(not _is_drawn(node) and _needs_host(node) for node in graph.nodes)


def _needs_host(node: Node) -> bool:
    op = node.op
    if not isinstance(op, Callback):
        return not op.row.xla
    return not op.xla or any(
        _needs_host(n) for graph in op.graphs() for n in simplify(graph, final=True).nodes
    )


def _is_drawn(node: Node) -> bool:
    return isinstance(node.op, Callback) and node.op.draws


def _with_tokens(
    run: Callable[..., Sequence[Any]], operands: list[Any]
) -> tuple[Callable[..., Sequence[Any]], list[Any]]:
    """A function of the arrays of residuals in place of the tokens, and these arrays.

    Residuals of inner loops are not passed: code on the host needs none of them.
    """
    flat: list[Any] = []
    places: list[int | slice] = []

    def number(x: Any) -> Any:
        """A number in place of a token."""
        return jnp.zeros(jax.tree.leaves(x)[0].shape[:1], jnp.int64) if isinstance(x, TOKENS) else x

    for x in operands:
        start = len(flat)
        if isinstance(x, Token):
            flat += [x.count, *map(number, x.rows)]
            places.append(slice(start, len(flat)))
        else:
            flat.append(jnp.zeros((), jnp.int64) if isinstance(x, OneOf) else x)
            places.append(start)

    def run_with_tokens(*given: Any) -> Sequence[Any]:
        parts = [given[place] for place in places]
        return run(*(native_token(p[0], p[1:]) if type(p) is tuple else p for p in parts))

    return run_with_tokens, flat


def _tell(node: Node) -> None:
    if (node.name, node.line) not in _told:
        _told.add((node.name, node.line))
        where = "" if node.line is None else f" ({node.line.shown})"
        log.warning(
            "%s%s has no lowering to XLA: it runs on the host, in the middle of the program.",
            node.name,
            where,
        )
