"""Runs a graph over one more leading axis: the basis of Jacobians, per-example gradients and
`vectorized_map`.

Some inputs of the graph get a new leading axis, the others do not. `replay_batched` walks over the nodes: a node
without the new axis runs as it is, any other by the batching rule of its row:

  "aligned"   element-wise: the rows are lined up, broadcasting does the rest
  "leading"   the op treats leading axes as a batch; attributes that name axes are shifted by one
  a function  `rule(size, batched, operands, attrs)`, in the row
  None        a loop over the new axis inside the program, `Rows`: correct for every op

Rules are written with ops, so they work on concrete and symbolic tensors, and tapes can record them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base.contexts import aside
from gradtape._src.base.dtypes import BY_CODE
from gradtape._src.batching import units
from gradtape._src.control.control_ops import (
    Branches,
    Control,
    Loop,
    build,
    has_effect,
    specs_of,
    zeros,
)
from gradtape._src.graph.callable import GraphFunction
from gradtape._src.graph.effects import Draw
from gradtape._src.graph.ir import Callback, Graph, Node, Value, symbolic
from gradtape._src.tensors.conversion import densify

_EVERYTHING = (1 << 64) - 1


def replay_batched(
    graph: Graph, tensors: Sequence[Any], batched: Sequence[bool], size: int
) -> tuple[list, list[bool]]:
    """The outputs of a graph when the marked inputs have a new leading axis, and which of them have it.

    An input may also be `Units`: rows of the identity, if the graph is linear in it.
    """
    env: dict[Value, Any] = dict(zip(graph.inputs, tensors, strict=True))
    marked = {v for v, b in zip(graph.inputs, batched, strict=True) if b}

    def tensor(v: Value) -> Any:
        return env[v] if v.constant is None else v.constant

    for node in graph.nodes:
        operands = [tensor(v) for v in node.operands]
        marks = [v in marked for v in node.operands]
        if any(marks) or (isinstance(node.op, Callback) and _draws(node.op)):
            results: Any = units.through(node, operands, marks) if any(marks) else None
            if results is None:
                operands = [x.dense() if isinstance(x, units.Units) else x for x in operands]
                results = batch_node(node, operands, marks, size)
            passed = isinstance(node.op, Callback) and node.op.is_barrier
            marked.update(r for i, r in enumerate(node.results) if not passed or marks[i])
        elif isinstance(node.op, Callback):
            results = node.op(operands, [(v.shape, v.dtype) for v in node.results])
        else:
            results = _core.apply(node.op, operands, node.attrs)
        env.update(zip(node.results, results, strict=True))
    outs = [tensor(v) for v in graph.outputs]
    return [y.dense() if isinstance(y, units.Units) else y for y in outs], [
        v in marked for v in graph.outputs
    ]


def batched_graph(graph: Graph, batched: Sequence[bool], size: int) -> tuple[Graph, list[bool]]:
    """`replay_batched` as a new graph, and which outputs have the new axis."""
    out = Graph()
    xs = [
        symbolic(out.input((size, *v.shape) if b else v.shape, v.dtype))
        for v, b in zip(graph.inputs, batched, strict=True)
    ]
    with aside(out):
        ys, marks = replay_batched(graph, xs, batched, size)
        out.outputs = [out.value_of(y) for y in ys]
    return out, marks


def batch_node(node: Node, operands: list, marks: list[bool], size: int) -> Sequence[Any]:
    """The results of a node, all with the new axis; a barrier passes its operands on."""
    op = node.op
    if isinstance(op, Callback):
        if op.is_barrier:
            return op(operands, [(tuple(x.shape), x.dtype._code) for x in operands])
        if isinstance(op, Control) and hasattr(op, "batch"):
            return op.batch(operands, marks, size)
        if isinstance(op, Draw):
            return op.batch(size, node.results[0].shape, node.results[0].dtype)
        from gradtape._src.batching.batch_control import RULES

        rule = RULES.get(type(op))
        return rule(node, operands, marks, size) if rule else Rows.of(node, marks, size)(operands)
    rule = op.row.batch
    if rule == "aligned":
        return _core.apply(op, aligned(operands, marks), node.attrs)
    if rule == "leading":
        xs = [x if b else broadcast_rows(x, size) for x, b in zip(operands, marks, strict=True)]
        return _core.apply(op, xs, shifted(op.row, node.attrs, size))
    if rule is not None and size:  # rules need not handle an empty batch
        results = rule(size, marks, operands, node.attrs)
        if results is not None:
            return list(results) if op.row.many else [results]
    return Rows.of(node, marks, size)(operands)


def _draws(op: Callback) -> bool:
    """Whether the op, or one inside it, draws random numbers: each row draws its own."""
    if isinstance(op, Draw) or not op.effect:
        return op.effect
    if isinstance(op, Branches):
        inside = [f.graph for f in op.functions]
    elif isinstance(op, Loop):
        inside = [op.cond.graph, op.body.graph]
    else:
        inside = [op.function.graph] if isinstance(op, Rows) else []
    return any(isinstance(n.op, Callback) and _draws(n.op) for graph in inside for n in graph.nodes)


def aligned(operands: Sequence[Any], marks: Sequence[bool]) -> list:
    """Operands of an element-wise op, reshaped so that their rows broadcast against each other."""
    rank = max(x.ndim - b for x, b in zip(operands, marks, strict=True))
    return [
        ops.reshape(x, [x.shape[0], *([1] * (rank + 1 - x.ndim)), *x.shape[1:]])
        if b and x.ndim <= rank
        else x
        for x, b in zip(operands, marks, strict=True)
    ]


def broadcast_rows(x: Any, size: int) -> Any:
    """A tensor broadcast over a new leading axis."""
    return ops.broadcast_to(x, [size, *x.shape])


def shifted(row: Any, attrs: tuple, size: int) -> tuple:
    """The attributes of an op for operands with one more leading axis."""
    return tuple(
        _SHIFTS[p.kind](a, size) if p.kind in _SHIFTS else a
        for p, a in zip(row.attributes, attrs, strict=True)
    )


_SHIFTS = {
    "Axes": lambda axes, size: tuple(a + 1 for a in axes),
    "Axis": lambda axis, size: axis + 1,
    "NewAxis": lambda axis, size: axis + 1,
    "Perm": lambda perm, size: (0, *(p + 1 for p in perm)),
    "Shape": lambda shape, size: (size, *shape),
    "Reshape": lambda shape, size: (size, *shape),
}


class Rows(Control):
    """Runs a graph once for each row of the marked operands and stacks the results."""

    xla = "control.rows"

    def graphs(self) -> Sequence[Graph]:
        return [self.function.graph]

    def __init__(self, function: GraphFunction, marks: Sequence[bool], size: int) -> None:
        outputs = specs_of(function.graph.outputs)
        specs = [((size, *shape), dtype) for shape, dtype in outputs]
        super().__init__(f"rows of {function.name}", specs, has_effect(function.graph))
        self.function, self.marks, self.size = function, tuple(marks), size

    @staticmethod
    def of(node: Node, marks: Sequence[bool], size: int) -> Rows:
        graph = Graph()
        values = [graph.input(v.shape, v.dtype) for v in node.operands]
        graph.outputs = list(graph.add(node.op, values, node.attrs, specs_of(node.results)))
        return Rows(GraphFunction(graph, node.name), marks, size)

    def _execute(self, *inputs: Any) -> Sequence[Any]:
        if self.size == 0:
            return [ops.zeros(shape, BY_CODE[dtype]) for shape, dtype in self.specs]
        rows = [ops.unstack(x, axis=0) if m else None for x, m in zip(inputs, self.marks, strict=True)]
        program = self.function.program
        done = [
            program.run([x if r is None else r[i] for x, r in zip(inputs, rows, strict=True)])
            for i in range(self.size)
        ]
        return [ops.stack(column, 0) for column in zip(*done, strict=True)]

    def batch(self, operands: list, marks: list[bool], size: int) -> Sequence[Any]:
        """Rows of rows: runs over the new axis and the old one as one axis."""
        folded = []
        for x, new, old in zip(operands, marks, self.marks, strict=True):
            if new and not old:
                x = ops.repeat(x, self.size, axis=0)
            elif old:
                x = x if new else broadcast_rows(x, size)
                x = ops.reshape(x, [size * self.size, *x.shape[2:]])
            folded.append(x)
        both = [new or old for new, old in zip(marks, self.marks, strict=True)]
        results = Rows(self.function, both, size * self.size)(folded)
        return [ops.reshape(r, [size, self.size, *r.shape[1:]]) for r in results]

    def _recorded(self, operands: list, tracked: tuple[bool, ...]) -> list:
        outputs = self.apply(operands)

        def gradients(gs: tuple, ins: tuple, outs: tuple) -> list:
            present = [k for k, g in enumerate(gs) if g is not None]
            backward, places = self._backward(tracked, present)
            marks = [*self.marks, *(True for _ in present)]
            grads = Rows(backward, marks, self.size)([*ins, *(gs[k] for k in present)])
            return [
                None if p is None else grads[p] if m else ops.reduce_sum(grads[p], 0)
                for p, m in zip(places, self.marks, strict=True)
            ]

        _core.record(tuple(outputs), tuple(operands), gradients, _EVERYTHING)
        return outputs

    def _backward(self, tracked: tuple[bool, ...], present: list[int]) -> tuple[GraphFunction, list]:
        """The gradients of one row from its operands and cotangents, and their places among the results."""
        graph = self.function.graph
        n = len(graph.inputs)
        places: list = []

        def run(xs: list) -> list:
            gs: list = [None] * len(graph.outputs)
            for k, g in zip(present, xs[n:], strict=True):
                gs[k] = g
            grads = self.function.gradients(tracked, tuple(gs), tuple(xs[:n]), ())
            grads = [zeros(specs[i]) if isinstance(g, int) else g for i, g in enumerate(grads)]
            flat: list = []
            for g in grads:
                places.append(None if g is None else len(flat))
                if g is not None:
                    flat.append(densify(g))
            return flat

        specs = [*specs_of(graph.inputs), *specs_of([graph.outputs[k] for k in present])]
        return build(specs, run, f"gradient of {self.function.name}"), places
