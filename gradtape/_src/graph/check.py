"""`function(check=True)`: compares what a graph computes as a program with its ops run one by one.

The first call runs the graph twice, op by op as eager mode would, and as a program that returns the
result of every op, then does the same with its derivative. The error names the first op whose results differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes, errors
from gradtape._src.base.contexts import unrecorded
from gradtape._src.engines import Engine
from gradtape._src.graph.callable import GraphFunction, extract
from gradtape._src.graph.ir import Callback, Graph, Value
from gradtape._src.tensors.conversion import read

# Relative to the largest element of a result: a program may sum in another order.
_TOLERANCE = {9: 1e-2, 10: 5e-2, 11: 1e-4, 12: 1e-9, 13: 1e-4, 14: 1e-9}


def check(function: GraphFunction, tensors: Sequence[Any]) -> None:
    """Raises InternalError if the program of `function`, or of its gradient, differs from its ops.

    A graph that draws random numbers or has other side effects cannot run twice, so it is not checked.
    """
    if any(isinstance(node.op, Callback) and node.op.effect for node in function.graph.nodes):
        return
    with unrecorded():
        _compare(function.graph, tensors, f"{function.name}: ", function.engine)
        tracked = tuple(v.dtype >= dtypes.float16._code for v in function.graph.inputs)
        if not any(tracked):
            return
        d = function.derivative(tracked)
        outs = d.forward.program.run(list(tensors))
        given = [tensors[i] if where == "in" else outs[i] for where, i in d.reads]
        given = [read(g) for g in given]
        given += [_core.to_tensor(np.ones(outs[k]._dims, np.float32), -1) for k in d.cotangents]
        given = [_as(g, v) for g, v in zip(given, d.backward.graph.inputs, strict=True)]
        _compare(d.backward.graph, given, f"{function.name}, gradient: ", function.engine)


def _as(tensor: Any, value: Value) -> Any:
    return tensor if tensor.dtype._code == value.dtype else ops.cast(tensor, dtypes.BY_CODE[value.dtype])


def _compare(graph: Graph, tensors: Sequence[Any], where: str, engine: Engine) -> None:
    env: dict[Value, Any] = {}
    for v, t in zip(graph.inputs, tensors, strict=True):
        env[v] = read(t)
    computed: dict[Value, float] = {}  # tolerances, by the lowest precision among the ancestors
    for node in graph.nodes:
        operands = [env[v] if v.constant is None else v.constant for v in node.operands]
        if isinstance(node.op, Callback):
            results = node.op(operands, [(v.shape, v.dtype) for v in node.results])
        else:
            results = _core.apply(node.op, operands, node.attrs)
        env.update(zip(node.results, results, strict=True))
        before = max((computed.get(v, 0.0) for v in node.operands), default=0.0)
        computed.update((v, max(before, _TOLERANCE.get(v.dtype, 0.0))) for v in node.results)
    if not computed:
        return
    program = engine.program(extract(graph.nodes, graph.inputs, list(computed)))
    for value, got in zip(computed, program.run([env[v] for v in graph.inputs]), strict=True):
        _same(value, env[value], got, computed[value], where)


def _same(value: Value, expected: Any, got: Any, tolerance: float, where: str) -> None:
    a, b = np.asarray(expected), np.asarray(got)
    with np.errstate(all="ignore"):
        scale = np.max(np.abs(a[np.isfinite(a)]), initial=1.0) if a.dtype.kind in "fc" else 0.0
        wrong = ~((a == b) | (np.isnan(a) & np.isnan(b))) if a.dtype.kind in "fc" else a != b
        if a.dtype.kind in "fc":
            wrong &= ~(np.abs(a - b) <= tolerance * scale)
    if not np.any(wrong):
        return
    at = tuple(int(i) for i in np.argwhere(wrong)[0]) if a.ndim else ()
    assert value.node is not None
    raise errors.InternalError(
        None,
        None,
        f"{where}{value.node.name}: the program differs from eager mode; expected {a[at]!r}, got {b[at]!r} at "
        f"{list(at)} of {dtypes.BY_CODE[value.dtype].name}{list(value.shape)}. Hint: this is a bug of gradtape; "
        "tf.config.run_functions_eagerly(True) avoids it.",
    )
