"""Replicas on several devices at once: one of them is traced, and runs on all devices.

If the engine of a function has a device for each replica (`Engine.over`), `Strategy.run` inside the function does
not trace every replica into one graph. It traces the first, as if this process had only that one and the others
were other processes: the group of processes is an `Axis`, whose exchanges are ops of the graph. The graph is one
node of the function (`control/replicated.py`). Whatever differs between replicas (its part of the data, its number,
random streams, variables synchronized on read) is an input with a row for each device; mirrored variables are on
all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradtape import _core
from gradtape._src.base import log, nest
from gradtape._src.base.contexts import aside
from gradtape._src.base.dtypes import int32
from gradtape._src.base.scopes import creators
from gradtape._src.control.replicated import Axis, Replicated, is_common, same
from gradtape._src.graph.callable import GraphFunction, extract
from gradtape._src.graph.effects import fresh
from gradtape._src.graph.ir import symbolic
from gradtape._src.graph.trace import Trace
from gradtape._src.tensors.conversion import as_tensor, convert, read
from gradtape._src.tensors.indexed_slices import IndexedSlices
from gradtape.distribute import values
from gradtape.distribute.contexts import ReplicaContext
from gradtape.distribute.values import DistributedValues

if TYPE_CHECKING:
    from gradtape.distribute.strategy import Strategy

axis = _core.Setting(None)  # (strategy, Axis) while the replica that represents all is traced


class Unfit(Exception):
    """The reason why replicas cannot be one graph."""


def engine_for(strategy: Strategy, args: Any) -> Any:
    """The engine that runs all replicas at once; None if there is none, or their parts are of different kinds."""
    trace = _core.current_trace()
    if not isinstance(trace, Trace) or trace.outer is not None or trace.records or _core.is_recording():
        return None
    for x in nest.flatten(args):
        if isinstance(x, DistributedValues):
            kinds = {
                (part._dims, part.dtype) if isinstance(part, _core.Tensor) else None for part in x.values
            }
            if len(kinds) > 1 or None in kinds:
                return None
    numbers = [int(name.rsplit(":", 1)[1]) for name in strategy._devices]
    return trace.engine.over(numbers)


def run(strategy: Strategy, fn: Callable, args: tuple, kwargs: dict, engine: Any) -> Any:
    """The results of `fn` in each replica.

    Raises:
      Unfit: if part of it can only run on the host, where replicas take turns.
    """
    outer: Any = _core.current_trace()
    n = strategy._local_replicas
    inner = Trace(outer)
    parts: list[list[Any]] = []  # the inputs with a row for each replica: the values of each replica

    def row_of(tensors: list[Any]) -> Any:
        parts.append(tensors)
        return symbolic(inner.input(tensors[0]._dims, tensors[0].dtype._code))

    def own(x: Any) -> Any:
        return row_of(list(x.values)) if isinstance(x, DistributedValues) else x

    number = row_of([convert(r, int32._code) for r in range(n)])
    own_args, own_kwargs = nest.map_structure(own, (args, kwargs))
    living = [v for _, v in strategy._living()]
    loaded = {id(v): row_of([c._read() for c in v._copies]) for v in living}
    for key, symbol in loaded.items():
        inner.state[key] = symbol
    with aside(inner), axis.to((strategy, Axis(n))):
        with strategy._entered(ReplicaContext(strategy, number)), creators.to(strategy._creator):
            result = fn(*own_args, **own_kwargs)
        flat = [_leaf(x) for x in nest.flatten(result)]
        tensors = [x for leaf in flat for x in _tensors(leaf)]
        assigned = list(inner.assigned.values())
        local = [v for v in assigned if id(v) in loaded]
        mirrored = [v for v in assigned if id(v) not in loaded]
        apart = [*tensors, *(inner.state[id(v)] for v in local)]
        inner.outputs = [inner.value_of(t) for t in (*apart, *(inner.state[id(v)] for v in mirrored))]
        _want_common(inner, len(parts), mirrored, len(apart))
    graph, draws = _with_streams(inner, len(parts))
    if not engine.runs(graph):
        raise Unfit(f"a part of {getattr(fn, '__name__', 'the function')} runs on the host")
    outer.run_on(engine)
    for node in draws:
        spec = node.results[0]
        parts.append([fresh(node.name, node.op.make, spec.shape, spec.dtype) for _ in range(n)])
    shared = [read(e) for e in inner.externals]
    inner.externals.clear()
    op = Replicated(GraphFunction(graph, "replica"), n, len(parts), len(apart), engine)
    results = op.apply([*(x for row in parts for x in row), *shared])
    rows = [results[k * n : (k + 1) * n] for k in range(len(apart))]
    for v, value in zip(mirrored, results[len(apart) * n :], strict=True):
        v._set(value)
    for v, row in zip(local, rows[len(tensors) :], strict=True):
        for copy, value in zip(v._copies, row, strict=True):
            copy._set(value)
    strategy._bring_together({id(v) for v in local})
    of_replicas = [nest.pack_sequence_as(result, _filled(flat, rows, r)) for r in range(n)]
    return values.together(of_replicas, "strategy.run")


def _leaf(x: Any) -> Any:
    return x if x is None or isinstance(x, IndexedSlices) else as_tensor(x)


def _tensors(leaf: Any) -> list:
    if isinstance(leaf, IndexedSlices):
        return [leaf.values, leaf.indices]
    return [] if leaf is None else [leaf]


def _filled(flat: list[Any], rows: list[list[Any]], r: int) -> list:
    left = iter(rows)
    return [
        None
        if leaf is None
        else IndexedSlices(next(left)[r], next(left)[r], leaf._dense_shape)
        if isinstance(leaf, IndexedSlices)
        else next(left)[r]
        for leaf in flat
    ]


def _want_common(inner: Trace, rows: int, mirrored: list[Any], first: int) -> None:
    """Makes the graph compare new values of mirrored variables that may differ between replicas."""
    common = is_common(inner, inner.inputs[:rows])
    _, group = axis.now()
    for k, v in enumerate(mirrored):
        value = inner.outputs[first + k]
        if value.constant is None and value not in common:
            what = f"assign: replicas give variable {v.name!r} different values"
            inner.outputs[first + k] = inner.value_of(same(group, symbolic(value), what))


def _with_streams(inner: Trace, rows: int) -> tuple[Any, list[Any]]:
    """The graph with the random streams that it draws as further inputs with rows, and the nodes that drew them."""
    draws = [node for node in inner.nodes if getattr(node.op, "draws", False)]
    streams = [v for node in draws for v in node.results]
    nodes = [node for node in inner.nodes if node not in draws]
    inputs = [*inner.inputs[:rows], *streams, *inner.inputs[rows:]]
    return extract(nodes, inputs, inner.outputs), draws


def told(strategy: Strategy, why: Exception) -> None:
    """Logs once that replicas share one device."""
    log.warning("%s: replicas share one device: %s.", type(strategy).__name__, why)
