"""Whether a backward pass is linear in its cotangent: only then is its transpose the forward pass.

The rules of the table are linear. A custom gradient need not be: it may clip its cotangent, add noise, or
depend on the cotangent's size. Then the Jacobian is defined by its gradients, one unit cotangent at a time,
which only reverse mode gives. The row of an op declares the operands it is linear in (`linear=`); an op
without this declaration counts as nonlinear, unless it is composed of ops that have it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradtape._src.base.dtypes import DIFFERENTIABLE
from gradtape._src.batching.batch import Rows
from gradtape._src.control.control_ops import Branches, Eager, Loop, LoopGradient, LoopWithResiduals
from gradtape._src.graph.callable import GraphFunction
from gradtape._src.graph.ir import Callback, Graph, Node, Value
from gradtape._src.ops.table import NO_RULE, Row


def is_linear(function: GraphFunction) -> bool:
    """Whether the outputs are linear in the last input, according to the rows of the ops; cached."""
    if function.linear is None:
        graph = function.graph
        function.linear = _linear(graph, [v is graph.inputs[-1] for v in graph.inputs])
    return function.linear


def _linear(graph: Graph, marks: Sequence[bool]) -> bool:
    reached = {v for v, m in zip(graph.inputs, marks, strict=True) if m}
    nothing: set[Value] = set()  # values that are zero: cotangents of unused results
    for node in graph.nodes:
        on = [v in reached for v in node.operands]
        none = [_is_zero(v) or v in nothing for v in node.operands]
        if not any(on):
            if any(all(none[k] for k in some) for some in linear_sets(node.op.row, len(none))):
                nothing.update(node.results)
            continue
        if not _node_is_linear(node, on, none):
            return False
        reached.update(node.results)
    # An output that does not depend on the marked inputs is part of a linear map only if it is zero.
    return all(
        v in reached or v in nothing or _is_zero(v) for v in graph.outputs if v.dtype in DIFFERENTIABLE
    )


def linear_sets(row: Row, count: int) -> list[list[int]]:
    """The sets of operands in which an op is linear, as indices into the `count` operands of a node."""
    if not row.linear:
        return []
    params = _params_of(row, count)
    return [[k for k, param in enumerate(params) if param in some] for some in row.linear]


def _params_of(row: Row, count: int) -> list[int]:
    """For each of `count` operands, the index of its parameter in the signature, where a list is one parameter."""
    kinds = [p.kind for p in row.operands]
    longer = count - len(kinds)
    return [k for k, kind in enumerate(kinds) for _ in range(1 + longer if kind == "Operands" else 1)]


def _has_transpose(row: Row, on: list[bool]) -> bool:
    """Whether gradients flow through the marked operands; for zeros they need not."""
    rules = [0 if row.joint else k for k, m in zip(_params_of(row, len(on)), on, strict=True) if m]
    return row.pattern == "nothing" or all(row.rules[k][0] != NO_RULE for k in rules)


def _node_is_linear(node: Node, on: list[bool], none: list[bool]) -> bool:
    op = node.op
    if isinstance(op, Callback):
        return _callback_is_linear(op, on)
    if any(v.dtype not in DIFFERENTIABLE for v in node.results):
        return False  # a comparison, an index, a rounded number
    for some in linear_sets(op.row, len(on)):
        if all(on[k] or none[k] for k in some) and sum(on) == sum(on[k] for k in some):
            return _has_transpose(op.row, on)
    # A user-defined op that is composed of ops.
    expand = None if op.row.native else getattr(op, "expand", None)
    inside = expand and expand([(v.dtype, v.shape) for v in node.operands], node.attrs)
    return inside is not None and _linear(inside, on)


def _is_zero(v: Value) -> bool:
    if v.constant is not None:
        return v.constant._symbol is None and not np.any(np.asarray(v.constant))
    return v.node is not None and v.node.op.row.pattern == "nothing"


def _callback_is_linear(op: Callback, on: list[bool]) -> bool:
    if op.passes_on or op.is_barrier:
        return True
    if isinstance(op, Branches):
        return not on[0] and all(_linear(f.graph, on[1:]) for f in op.functions)
    if isinstance(op, LoopGradient):
        count = len(op.marks)
        if any(on[: 1 + count]):
            return False
        marks = [False] * len(op.residuals) + [True] * len(op.state) + [False] * len(op.constants)
        return _linear(op.back.graph, marks)
    if isinstance(op, Loop) and not isinstance(op, LoopWithResiduals):
        floats = [i < op.n and dtype in DIFFERENTIABLE for i, (_, dtype) in enumerate(op.inputs)]
        marks = [m or f for m, f in zip(on, floats, strict=True)]
        return not _reaches(op.cond.graph, marks) and _linear(op.body.graph, marks)
    if isinstance(op, Rows):
        return _linear(op.function.graph, on)
    return isinstance(op, Eager) and not op.effect  # a derivative; with an effect it is the user's code


def _reaches(graph: Graph, marks: Sequence[bool]) -> bool:
    """Whether an output depends on a marked input."""
    reached = {v for v, m in zip(graph.inputs, marks, strict=True) if m}
    for node in graph.nodes:
        if any(v in reached for v in node.operands):
            reached.update(node.results)
    return any(v in reached for v in graph.outputs)
