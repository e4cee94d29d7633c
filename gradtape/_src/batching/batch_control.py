"""Branches, loops and custom gradients over one more leading axis.

A branch or loop whose condition is the same for all rows stays one branch or loop, over batched graphs. If
each row has a condition of its own, branches run row by row, and loops run until the last row is done, while
rows that are done keep their values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.batching.batch import Rows, broadcast_rows, replay_batched
from gradtape._src.control.control_ops import (
    Branches,
    Control,
    Loop,
    LoopGradient,
    LoopWithResiduals,
    Spec,
    build,
    repeated,
    specs_of,
    zeros,
)
from gradtape._src.graph.callable import GraphFunction, replay, unpack
from gradtape._src.graph.custom import CustomGradient
from gradtape._src.graph.ir import Node
from gradtape._src.tensors.conversion import densify


def _specs(function: GraphFunction, marks: Sequence[bool], size: int) -> list[Spec]:
    return [
        ((size, *shape), dtype) if m else (shape, dtype)
        for (shape, dtype), m in zip(specs_of(function.graph.inputs), marks, strict=True)
    ]


def _all_batched(function: GraphFunction, marks: Sequence[bool], size: int) -> GraphFunction:
    """A function over the new axis, all of whose results have it."""

    def run(xs: list) -> list:
        ys, has = replay_batched(function.graph, xs, marks, size)
        return [y if h else broadcast_rows(y, size) for y, h in zip(ys, has, strict=True)]

    return build(_specs(function, marks, size), run, function.name)


def _branches(node: Node, operands: list, marks: list[bool], size: int) -> Sequence[Any]:
    op: Branches = node.op
    if marks[0]:
        return Rows.of(node, marks, size)(operands)
    functions = [_all_batched(f, marks[1:], size) for f in op.functions]
    return Branches(functions, op.op_name)(operands)


# ---- loops --------------------------------------------------------------------------------------


class BatchedLoop:
    """A loop over the new axis of some of its inputs, and of every variable that depends on them."""

    def __init__(self, loop: Loop, marks: Sequence[bool], size: int) -> None:
        n = loop.n
        self.n, self.size = n, size
        self.marks = list(marks)
        while True:
            _, has = loop.body.batched(tuple(self.marks), size)
            _, (own,) = loop.cond.batched(tuple(self.marks), size)
            more = [m or h or own for m, h in zip(self.marks, has, strict=False)]
            if more == self.marks[:n]:
                break
            self.marks[:n] = more
        self.masked = own  # each row ends by its own condition
        self.cond, self.body = loop.cond.graph, loop.body.graph
        inputs = _specs(loop.body, self.marks, size)
        if own:
            inputs.insert(n, ((size,), 0))
        self.inputs = inputs
        self.loop = Loop(
            build(inputs, self._test, "while condition"),
            build(inputs, self._step, "while body"),
            n + own,
            loop.op_name,
        )

    def _rows(self, graph: Any, xs: list) -> list:
        ys, has = replay_batched(graph, xs, self.marks, self.size)
        return [y if h else broadcast_rows(y, self.size) for y, h in zip(ys, has, strict=True)]

    def _test(self, xs: list) -> list:
        if self.masked:
            return [ops.reduce_any(xs[self.n])]
        return replay_batched(self.cond, xs, self.marks, self.size)[0]

    def _step(self, xs: list) -> list:
        plain = [*xs[: self.n], *xs[self.n + self.masked :]]
        ys, has = replay_batched(self.body, plain, self.marks, self.size)
        new = [
            y if h or not m else broadcast_rows(y, self.size)
            for y, h, m in zip(ys, has, self.marks, strict=False)
        ]
        if not self.masked:
            return new
        running = xs[self.n]
        masked = [
            ops.where(ops.reshape(running, [self.size, *([1] * (y.ndim - 1))]), y, x)
            for x, y in zip(xs, new, strict=False)
        ]
        go = self._rows(self.cond, [*masked, *plain[self.n :]])[0]
        return [*masked, ops.logical_and(running, go)]

    def operands(self, operands: Sequence[Any], marks: Sequence[bool]) -> list:
        """The operands of the plain loop, converted to those of this one."""
        xs = [
            broadcast_rows(x, self.size) if want and not have else x
            for x, want, have in zip(operands, self.marks, marks, strict=True)
        ]
        if self.masked:
            xs.insert(self.n, self._rows(self.cond, xs)[0])
        return xs


def _batched_loop(loop: Loop, marks: Sequence[bool], size: int) -> BatchedLoop:
    cache: dict = loop.__dict__.setdefault("_batched", {})
    key = (tuple(marks), size)
    if key not in cache:
        cache[key] = BatchedLoop(loop, marks, size)
    return cache[key]


def _loop(node: Node, operands: list, marks: list[bool], size: int) -> Sequence[Any]:
    op: Loop = node.op
    batched = _batched_loop(op, marks, size)
    if op.effect and batched.masked:
        return Rows.of(node, marks, size)(operands)
    return batched.loop(batched.operands(operands, marks))[: op.n]


def _active(gradient: LoopGradient, marks: Sequence[bool]) -> list[bool]:
    """Inputs with a gradient need the new axis too, because each row has its own gradient."""
    return [m or a for m, a in zip(marks, gradient.marks, strict=True)]


def _gradient_of(
    gradient: LoopGradient, marks: Sequence[bool], size: int
) -> tuple[BatchedLoop, LoopGradient]:
    batched = _batched_loop(gradient.loop, _active(gradient, marks), size)
    tracked = list(gradient.marks)
    if batched.masked:
        tracked.insert(batched.n, False)
    return batched, batched.loop.derivative(batched.loop.active(tracked))


def _loop_with_residuals(node: Node, operands: list, marks: list[bool], size: int) -> Sequence[Any]:
    op: LoopWithResiduals = node.op
    batched, gradient = _gradient_of(op.gradient, marks, size)
    results = gradient.forward(batched.operands(operands, marks))
    return [*results[: op.n], results[-1]]


def _loop_gradient(node: Node, operands: list, marks: list[bool], size: int) -> Sequence[Any]:
    op: LoopGradient = node.op
    count = len(op.marks)
    token, ins, gs = operands[0], operands[1 : 1 + count], operands[1 + count :]
    g_marks = marks[1 + count :]
    if not marks[0]:
        if op.sparse or any(marks[1 : 1 + count]):
            return Rows.of(node, marks, size)(operands)
        return _ManyGradients(op, size)([token, *ins, *(_marked(gs, g_marks, size))])
    batched, gradient = _gradient_of(op, marks[1 : 1 + count], size)
    xs = batched.operands(ins, marks[1 : 1 + count])
    every = dict(zip(op.variables, _marked(gs, g_marks, size), strict=True))
    cotangents = [every[i] if i in every else zeros(batched.inputs[i]) for i in gradient.variables]
    grads = dict(zip(gradient.targets, gradient([token, *xs, *cotangents]), strict=True))
    # Constants come after the row of flags that a masked loop carries.
    place = {i: i + (batched.masked and i >= batched.n) for i in op.targets}
    return [grads[place[i]] if place[i] in grads else zeros(batched.inputs[place[i]]) for i in op.targets]


def _marked(xs: Sequence[Any], marks: Sequence[bool], size: int) -> list:
    return [x if m else broadcast_rows(x, size) for x, m in zip(xs, marks, strict=True)]


class _ManyGradients(Control):
    """Backward passes of one run of a loop, for many cotangents at once."""

    def __init__(self, one: LoopGradient, size: int) -> None:
        super().__init__(one.op_name, [((size, *shape), dtype) for shape, dtype in one.specs])
        self.one, self.size = one, size
        self._step: Any = None

    @property
    def step(self) -> Any:
        if self._step is None:
            one = self.one
            marks = [False] * len(one.residuals) + [True] * len(one.state) + [False] * len(one.constants)
            self._step = repeated(
                _all_batched(one.back, marks, self.size), len(one.residuals), len(one.state)
            )
        return self._step

    def _execute(self, token: Any, *rest: Any) -> Sequence[Any]:
        one = self.one
        ins, gs = rest[: len(one.marks)], rest[len(one.marks) :]
        start = [broadcast_rows(s, self.size) for s in one.start]
        return _core.loop_back(self.step, token, [*gs, *start], [ins[i] for i in one.constants])

    def _recorded(self, operands: list, tracked: tuple[bool, ...]) -> list:
        count = 1 + len(self.one.marks)
        marks = [False] * count + [True] * (len(operands) - count)
        inputs = [*([((), 4)]), *self.one.loop.inputs, *(self.one.loop.inputs[i] for i in self.one.variables)]
        function = build(inputs, lambda xs: self.one(xs), self.op_name)
        return Rows(function, marks, self.size)(operands)


def _custom_gradient(node: Node, operands: list, marks: list[bool], size: int) -> Sequence[Any]:
    op: CustomGradient = node.op
    places: list = []

    def dense(xs: list) -> list:
        flat: list = []
        for g in unpack(op.places, replay(op.backward.graph, xs)):
            places.append(None if g is None else len(flat))
            if g is not None:
                flat.append(densify(g))
        return flat

    one = build(specs_of(op.backward.graph.inputs), dense, op.op_name)
    many = _all_batched(one, [True] * len(one.graph.inputs), size)
    specs = [((size, *v.shape), v.dtype) for v in node.results]
    batched = CustomGradient(many, op.n_outputs, op.n_inputs, op.wanted, places, op.variables)
    batched.error = op.error
    return batched(_marked(operands, marks, size), specs)


RULES: dict[type, Callable[[Node, list, list[bool], int], Sequence[Any]]] = {
    Branches: _branches,
    Loop: _loop,
    LoopWithResiduals: _loop_with_residuals,
    LoopGradient: _loop_gradient,
    CustomGradient: _custom_gradient,
}
