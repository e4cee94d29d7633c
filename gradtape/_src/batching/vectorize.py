"""A Python function over all rows of its arguments at once: `vectorized_map` and per-example
gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import nest
from gradtape._src.base.contexts import aside
from gradtape._src.base.errors import Untraceable
from gradtape._src.batching.batch import broadcast_rows, replay_batched
from gradtape._src.graph.callable import extract
from gradtape._src.graph.ir import symbolic
from gradtape._src.graph.trace import Trace
from gradtape._src.tensors import conversion
from gradtape._src.tensors.conversion import read


def vectorized(fn: Callable[[list], Any], tensors: Sequence[Any], size: int) -> Any:
    """`fn` on lists of rows, one per tensor; a tensor with one row is broadcast against the others.

    Raises:
      Untraceable: when `fn` looks at values.
    """
    outer = _core.current_trace()
    trace = Trace(outer if isinstance(outer, Trace) else None)
    rows = [symbolic(trace.input(tuple(t.shape)[1:], t.dtype._code)) for t in tensors]
    with aside(trace):
        result = fn(rows)
        leaves = [conversion.densify(read(x)) for x in nest.flatten(result)]
        trace.outputs = [trace.value_of(x) for x in leaves]
    if trace.assigned:
        raise Untraceable("vectorized_map: the function assigns variables")
    one = [t.shape[0] == 1 != size for t in tensors]
    given = [_first(t) if o else t for t, o in zip(tensors, one, strict=True)]
    externals = [read(e) for e in trace.externals]
    marks = [*(not o for o in one), *(False for _ in externals)]
    trace.externals.clear()  # the trace lives until the next garbage collection; its tensors need not
    graph = extract(trace.nodes, trace.inputs, trace.outputs)
    outs, has = replay_batched(graph, [*given, *externals], marks, size)
    return nest.pack_sequence_as(
        result, [o if h else broadcast_rows(o, size) for o, h in zip(outs, has, strict=True)]
    )


def _first(t: Any) -> Any:
    return ops.reshape(t, tuple(t.shape)[1:])
