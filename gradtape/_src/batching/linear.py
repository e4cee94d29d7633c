"""Whether a backward pass is linear in its cotangent: only then is its transpose the forward pass.

The rules of the table are linear. A gradient of the user's own need not be: it may clip what it
passes on, add noise, or decide by its size. Then a Jacobian is what gradients make of it, row by
row of unit cotangents, and nothing but reverse mode gives that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradtape._src.base.dtypes import BY_CODE
from gradtape._src.control.control_ops import Branches, Eager, KeepingLoop, Loop, LoopGradient
from gradtape._src.graph.callable import GraphFunction
from gradtape._src.graph.ir import Callback, Graph, Node, Value
from gradtape._src.tensors import hooks

_FIRST_FLOAT = 9  # numbers of types from here on have a derivative

# Element-wise ops and reductions that are linear in the named operands, one at a time or together.
_TOGETHER = {"add", "sub", "complex"}
_ONE_OF = {
    "neg": (0,), "conj": (0,), "real": (0,), "imag": (0,), "zero": (0,), "zeros_like": (0,),
    "mul": (0, 1), "mul_no_nan": (0, 1), "div": (0,), "div_no_nan": (0,),
    "relu_grad": (1,), "sigmoid_grad": (1,), "tanh_grad": (1,), "leaky_relu_grad": (1, 2),
    "sum": (0,), "mean": (0,), "sum_to": (0,),
}  # fmt: skip
# Functions of a matrix, applied to a block matrix: its corner is their derivative, linear in that block.
_OF_BLOCKS = {"expm", "logm", "sqrtm"}


def is_linear(function: GraphFunction) -> bool:
    """Whether the outputs are linear in the last input, as far as the ops say; remembered."""
    if function.linear is None:
        graph = function.graph
        function.linear = _linear(graph, [v is graph.inputs[-1] for v in graph.inputs])
    return function.linear


def _linear(graph: Graph, marks: Sequence[bool]) -> bool:
    reached = {v for v, m in zip(graph.inputs, marks, strict=True) if m}
    nothing: set[Value] = set()  # values that are zero: cotangents of results that nobody reads
    for node in graph.nodes:
        on = [v in reached for v in node.operands]
        none = [_is_zero(v) or v in nothing for v in node.operands]
        if not any(on):
            if _gives_zero(node, none):
                nothing.update(node.results)
            continue
        if not _node_is_linear(node, on, none):
            return False
        reached.update(node.results)
    return True


def _gives_zero(node: Node, none: list[bool]) -> bool:
    if isinstance(node.op, Callback):
        return False
    if node.name in ("mul", "matmul"):
        return any(none)
    linear = node.op.row.kind == "movement" or node.name in _ONE_OF or node.name in _TOGETHER
    return bool(none) and all(none) and linear and node.name not in ("div", "mul_no_nan", "div_no_nan")


def _node_is_linear(node: Node, on: list[bool], none: list[bool]) -> bool:
    op = node.op
    if isinstance(op, Callback):
        return _callback_is_linear(op, on)
    if any(v.dtype < _FIRST_FLOAT for v in node.results):
        return False  # a comparison, an index, a rounded number
    kind = op.row.kind
    if kind == "movement":
        return True
    if kind not in ("elementwise", "reduction"):
        return _rule_is_linear(node, on)
    if node.name in _TOGETHER:
        return all(m or z for m, z in zip(on, none, strict=True))
    if node.name == "select":
        return not on[0] and all(m or z for m, z in zip(on[1:], none[1:], strict=True))
    places = _ONE_OF.get(node.name, ())
    return sum(on) == 1 and on.index(True) in places


def _rule_is_linear(node: Node, on: list[bool]) -> bool:
    """An op is linear in an operand if the rule of that operand reads neither it nor a result."""
    row = node.op.row
    if row.joint or node.name in _OF_BLOCKS:
        return True  # one rule for all operands says nothing about each
    key = (node.op, tuple(on))
    if key not in _known:
        kinds = [_Kind(v) for v in (*node.operands, *node.results)]
        n = len(on)
        masks = hooks.reads(node.op, tuple(kinds[:n]), tuple(kinds[n:]), node.attrs)
        moving = sum(1 << i for i, m in enumerate(on) if m) | ((1 << 64) - (1 << n))
        _known[key] = len(masks) == n and not any(
            m and mask & moving for m, mask in zip(on, masks, strict=True)
        )
    return _known[key]


class _Kind:
    """The shape and type of a value, as a tensor would say them."""

    def __init__(self, v: Value) -> None:
        self.shape, self.dtype = v.shape, BY_CODE[v.dtype]


_known: dict[tuple, bool] = {}


def _is_zero(v: Value) -> bool:
    if v.constant is not None:
        return v.constant._symbol is None and not np.any(np.asarray(v.constant))
    return v.node is not None and v.node.name in ("zero", "zeros_like")


def _callback_is_linear(op: Callback, on: list[bool]) -> bool:
    from gradtape._src.batching.batch import Rows

    if op.passes_on or op.is_barrier:
        return True
    if isinstance(op, Branches):
        return not on[0] and all(_linear(f.graph, on[1:]) for f in op.functions)
    if isinstance(op, LoopGradient):
        count = len(op.marks)
        if any(on[: 1 + count]):
            return False
        marks = [False] * len(op.kept) + [True] * len(op.state) + [False] * len(op.constants)
        return _linear(op.back.graph, marks)
    if isinstance(op, Loop) and not isinstance(op, KeepingLoop):
        floats = [i < op.n and dtype >= _FIRST_FLOAT for i, (_, dtype) in enumerate(op.inputs)]
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
