"""A function at given sizes: its graph, its captures, and the structure of its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gradtape import _core
from gradtape._src.base import errors
from gradtape._src.base.contexts import aside
from gradtape._src.base.source import user_line
from gradtape._src.engines import NATIVE
from gradtape._src.engines.xla.any_size import refused
from gradtape._src.graph.ir import Callback, Graph, symbolic
from gradtape._src.graph.simplify import simplify
from gradtape._src.graph.trace import Trace
from gradtape._src.graph.traced import Traced
from gradtape._src.tensors.conversion import read
from gradtape._src.tensors.indexed_slices import IndexedSlices


class At(NamedTuple):
    """A function at given sizes: its graph, with random streams as the last inputs."""

    graph: Graph
    inputs: list[Any]  # captured tensors and variables, which the graph takes after the arguments
    streams: int
    assigned: list[int]  # for each variable that is assigned, its index in `inputs`
    structure: Any  # of the results, as JSON


def at_sizes(concrete: Any, shapes: Sequence[tuple[int, ...]]) -> At:
    """The graph of a function for arguments of these shapes."""
    outputs: list[Any] = []
    if isinstance(concrete, Traced):
        untyped: Any = concrete
        traced, structure = untyped, _structure(untyped.structured_outputs, outputs)
    else:
        trace = Trace(is_kept=True, engine=NATIVE)
        codes = [x.dtype._code for x in concrete._arguments()]
        symbols = [symbolic(trace.input(s, d)) for s, d in zip(shapes, codes, strict=True)]
        with aside(trace):
            try:
                structure = _structure(concrete.call(symbols), outputs)
            except errors.Untraceable as e:
                raise refused(None, f"{concrete.name} cannot be one program: {e}") from e
            traced = Traced(trace, outputs, len(symbols), concrete.name)
    graph = simplify(traced.graph_function.graph, final=True)
    this_line = user_line()
    for node in graph.nodes:
        # The calls of a recording are made here, so this line is not the user's.
        node.line = None if node.line == this_line else node.line
    _refuse_host(graph)
    hoisted, streams = _without_draws(graph)
    places = {id(x): k for k, x in enumerate(traced.externals)}
    assigned = [places.get(id(v), -1) for v in traced._assigned]
    if -1 in assigned:
        raise refused(None, "a variable is assigned that the function does not read.")
    return At(hoisted, traced.externals, streams, assigned, structure)


def _structure(x: Any, outputs: list[Any]) -> Any:
    """The structure of results, as JSON; tensors are appended to `outputs`."""
    if isinstance(x, IndexedSlices):
        parts = {"values": x.values, "indices": x.indices}
        shape = x._dense_shape
        components = {k: _structure(v, outputs) for k, v in parts.items()}
        dense_shape = None if shape is None else {"value": [int(d) for d in shape]}
        return {"dict": components if dense_shape is None else components | {"dense_shape": dense_shape}}
    if isinstance(x, (_core.Tensor, _core.Variable)):
        outputs.append(read(x))
        return len(outputs) - 1
    if isinstance(x, dict):
        return {"dict": {str(k): _structure(x[k], outputs) for k in sorted(x)}}
    if isinstance(x, (list, tuple)):
        kind = "tuple" if isinstance(x, tuple) else "list"
        return {kind: [_structure(v, outputs) for v in x]}
    if x is None or isinstance(x, (bool, int, float, str)):
        return {"value": x}
    raise refused(None, f"a result is {x!r} of type {type(x).__name__}; expected tensors.")


def _without_draws(graph: Graph) -> tuple[Graph, int]:
    """The graph with its random streams as inputs after its own."""
    draws = [n for n in graph.nodes if isinstance(n.op, Callback) and n.op.draws]
    if any(n.results[0].shape != (3,) for n in draws):
        raise refused(draws[0], "draws several streams at once.")
    new = Graph()
    for node in draws:
        node.results[0].node = None  # the graph is not shared
    new.inputs = [*graph.inputs, *(n.results[0] for n in draws)]
    new.nodes = [n for n in graph.nodes if n not in draws]
    new.outputs = graph.outputs
    new.simplified = True
    return new, len(draws)


def _refuse_host(graph: Graph) -> None:
    """Raises if something would have to run in Python."""
    names = list(dict.fromkeys(_on_host(graph, True)))
    if names:
        raise errors.UnimplementedError(
            None, None,
            "export: the process that loads a function has no gradtape, and these run in Python: "
            f"{', '.join(names)}. Hint: leave them out of what is exported.",
        )  # fmt: skip


def _on_host(graph: Graph, top: bool = False) -> list[str]:
    names = []
    for node in graph.nodes:
        op = node.op
        if not isinstance(op, Callback):
            lowered = op.row.xla
        else:
            lowered = op.xla or (top and op.draws)
            for part in op.graphs() if op.xla else ():
                names += _on_host(simplify(part, final=True))
        if not lowered:
            names.append(node.name + ("" if node.line is None else f" ({node.line.shown})"))
    return names
