"""Branches and loops as ops of a graph, and their derivatives.

`Branches` runs one of several graphs, `Loop` runs a graph repeatedly. Both are callbacks of a program, and
both can be recorded on a tape: the derivative of branches is branches over the derivatives; the derivative of
a loop walks over the residuals of its iterations, last to first. A loop's second derivative is computed by
`Eager`, which runs tapes inside the program, on the random numbers that the loop drew: they are residuals.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base.contexts import aside
from gradtape._src.base.dtypes import BY_CODE, DIFFERENTIABLE, int64
from gradtape._src.base.errors import Untraceable
from gradtape._src.engines import NATIVE
from gradtape._src.graph.callable import Derivative, GraphFunction, extract, replay, unpack
from gradtape._src.graph.ir import Callback, Graph, symbolic, written_to
from gradtape._src.tensors.conversion import densify
from gradtape._src.tensors.indexed_slices import IndexedSlices

Spec = tuple[tuple[int, ...], int]  # shape, number of the type

_EVERYTHING = (1 << 64) - 1


def build(specs: Sequence[Spec], f: Callable[[list], Sequence], name: str) -> GraphFunction:
    """The graph of `f`, traced for tensors of these kinds."""
    graph = Graph()
    xs = [symbolic(graph.input(*spec)) for spec in specs]
    with aside(graph):
        graph.outputs = [graph.value_of(y) for y in f(xs)]
    return GraphFunction(graph, name)


def repeated(function: GraphFunction, first: int, n: int) -> Any:
    """The program of an iteration: its first `n` results are new values of `n` inputs from `first` on."""
    count = len(function.graph.outputs)
    return NATIVE.program(function.graph, [*range(first, first + n), *([-1] * (count - n))], local=True)


def spec_of(x: Any) -> Spec:
    return tuple(x.shape), x.dtype._code


def specs_of(values: Sequence[Any]) -> list[Spec]:
    return [(v.shape, v.dtype) for v in values]


def has_effect(graph: Graph) -> bool:
    """Whether the graph does something besides computing its results."""
    return any(isinstance(n.op, Callback) and n.op.effect for n in graph.nodes)


def has_exchange(graph: Graph) -> bool:
    """Whether other replicas take part when the graph runs."""
    return any(isinstance(n.op, Callback) and n.op.exchanges for n in graph.nodes)


def _is_effect(node: Any) -> bool:
    return isinstance(node.op, Callback) and node.op.effect


def _results_of_effects(graph: Graph) -> list | None:
    """The results of the effectful ops in a graph, such as random numbers; None if one of them may have a derivative."""
    effects = [node for node in graph.nodes if _is_effect(node)]
    if any(isinstance(node.op, Control) for node in effects):
        return None
    return [v for node in effects for v in node.results]


def _with_outputs(graph: Graph, more: Sequence[Any]) -> Graph:
    """The graph with additional outputs."""
    return extract(graph.nodes, graph.inputs, [*graph.outputs, *more])


def zeros(spec: Spec) -> Any:
    return ops.zeros(spec[0], BY_CODE[spec[1]])


def _dense(g: Any) -> Any:
    return densify(g)


def _given(gs: Sequence[Any], outs: Sequence[Any], which: Sequence[int]) -> list:
    """Cotangents of some results, with zeros where there is none."""
    return [gs[k] if gs[k] is not None else zeros(spec_of(outs[k])) for k in which]


class Control(Callback):
    """An op with a graph inside. Calling it adds it to the trace of its operands; if they have values, it
    runs, and tapes record it."""

    def __init__(self, name: str, specs: Sequence[Spec], effect: bool = False) -> None:
        super().__init__(name, self._execute, effect)
        self.specs = list(specs)

    def _execute(self, *inputs: Any) -> Sequence[Any]:
        raise NotImplementedError

    def _recorded(self, operands: list, tracked: tuple[bool, ...]) -> list:
        raise NotImplementedError

    def __call__(self, operands: Sequence[Any], specs: Sequence[tuple] = ()) -> list:
        if _core.is_recording():
            tracked = tuple(_core.is_tracked(x) for x in operands)
            if any(tracked):
                return self._recorded(list(operands), tracked)
        return self.apply(operands)

    def apply(self, operands: Sequence[Any]) -> list:
        """The results, not recorded by tapes."""
        graph = written_to(operands) or (_core.current_trace() if self.effect else None)
        if graph is None:
            with aside():
                return list(self.run(*operands))
        return [symbolic(v) for v in graph.add(self, [graph.value_of(x) for x in operands], (), self.specs)]


# ---- branches -----------------------------------------------------------------------------------


class Branches(Control):
    """Runs the graph that the first operand numbers on the other operands; the last graph for any other number."""

    xla = "control.branches"

    def __init__(self, functions: Sequence[GraphFunction], name: str = "cond") -> None:
        super().__init__(
            name, specs_of(functions[0].graph.outputs), any(has_effect(f.graph) for f in functions)
        )
        self.functions = list(functions)
        self.exchanges = any(has_exchange(f.graph) for f in functions)
        self._derivatives: dict[tuple[tuple[bool, ...], bool], _BranchesDerivative] = {}

    def graphs(self) -> Sequence[Graph]:
        return [f.graph for f in self.functions]

    def _execute(self, which: Any, *inputs: Any) -> Sequence[Any]:
        k = int(which)
        return self.functions[k if 0 <= k < len(self.functions) else -1].program.run(inputs)

    def _derivative(self, tracked: tuple[bool, ...]) -> _BranchesDerivative:
        key = tracked, _core.assign_tracker() is not None
        cached = self._derivatives.get(key)
        if cached is None:
            cached = self._derivatives[key] = _BranchesDerivative(self, tracked)
        return cached

    def _recorded(self, operands: list, tracked: tuple[bool, ...]) -> list:
        d = self._derivative(tracked[1:])
        outputs = d.forward.apply(operands)
        n = len(self.specs)

        def gradients(gs: tuple, ins: tuple, outs: tuple) -> list:
            if any(g is not None for g in gs[n:]):
                # The backward pass was differentiated, so its residuals have cotangents too.
                return d.forward.gradients(tracked, gs, ins, outs)
            return d.gradients(gs, ins, outs)

        _core.record(tuple(outputs), tuple(operands), gradients, _EVERYTHING)
        return outputs[:n]

    def gradients(self, tracked: tuple[bool, ...], gs: tuple, ins: tuple, outs: tuple) -> list:
        """Gradients of the operands from operands and results only: runs the forward pass again."""
        d = self._derivative(tracked[1:])
        again = d.forward(ins) if len(d.forward.specs) > len(outs) else outs
        return d.gradients(gs, ins, again)


class _BranchesDerivative:
    """The branches with their residuals as further results, and the backward passes."""

    def __init__(self, op: Branches, tracked: tuple[bool, ...]) -> None:
        with aside():
            ds = [f.derivative(tracked) for f in op.functions]
        inputs = specs_of(op.functions[0].graph.inputs)
        n = len(op.specs)
        # Branches share the slots of their residuals: only one of them runs.
        slots: list[Spec] = []
        slots_of = [_take_slots(slots, specs_of(d.forward.graph.outputs[n:])) for d in ds]

        def forward_of(d: Derivative, at: list[int]) -> GraphFunction:
            def run(xs: list) -> list:
                ys = replay(d.forward.graph, xs)
                residuals: list = [None] * len(slots)
                for place, y in zip(at, ys[n:], strict=True):
                    residuals[place] = y
                return [
                    *ys[:n],
                    *(zeros(s) if k is None else k for k, s in zip(residuals, slots, strict=True)),
                ]

            return build(inputs, run, op.op_name)

        self.forward = Branches([forward_of(d, at) for d, at in zip(ds, slots_of, strict=True)], op.op_name)
        reads = [
            [(where, i if where == "in" or i < n else n + at[i - n]) for where, i in d.reads]
            for d, at in zip(ds, slots_of, strict=True)
        ]
        self.reads = sorted({r for of in reads for r in of})
        self.cotangents = sorted({k for d in ds for k in d.cotangents})
        self.targets = [i for i in range(len(inputs)) if any(d.places[i] is not None for d in ds)]
        self.count = len(inputs)
        kinds = [inputs[i] if where == "in" else self.forward.specs[i] for where, i in self.reads]
        kinds += [op.specs[k] for k in self.cotangents]

        def backward_of(d: Derivative, mine: list) -> GraphFunction:
            def run(xs: list) -> list:
                residuals = dict(zip(self.reads, xs, strict=False))
                gs = dict(zip(self.cotangents, xs[len(self.reads) :], strict=True))
                flat = replay(
                    d.backward.graph, [*(residuals[r] for r in mine), *(gs[k] for k in d.cotangents)]
                )
                grads = unpack(d.places, flat)
                return [zeros(inputs[i]) if grads[i] is None else _dense(grads[i]) for i in self.targets]

            return build(kinds, run, f"gradient of {op.op_name}")

        self.backward = None
        if self.targets:
            functions = [backward_of(d, mine) for d, mine in zip(ds, reads, strict=True)]
            self.backward = Branches(functions, f"gradient of {op.op_name}")

    def gradients(self, gs: Sequence[Any], ins: Sequence[Any], outs: Sequence[Any]) -> list:
        grads: list = [None] * (1 + self.count)
        if self.backward is not None:
            given = [ins[1 + i] if where == "in" else outs[i] for where, i in self.reads]
            target_grads = self.backward([ins[0], *given, *_given(gs, outs, self.cotangents)])
            for i, g in zip(self.targets, target_grads, strict=True):
                grads[1 + i] = g
        return grads


def _take_slots(slots: list[Spec], specs: list[Spec]) -> list[int]:
    """Slots for values of these kinds; adds slots where none of a kind is left."""
    taken: list[int] = []
    for spec in specs:
        place = next((k for k, s in enumerate(slots) if s == spec and k not in taken), len(slots))
        if place == len(slots):
            slots.append(spec)
        taken.append(place)
    return taken


# ---- loops --------------------------------------------------------------------------------------


class Loop(Control):
    """Runs `body` as long as `cond` returns true. Both take the loop's variables and then its constants."""

    xla = "control.loop"

    def __init__(self, cond: GraphFunction, body: GraphFunction, n: int, name: str = "while") -> None:
        super().__init__(
            name, specs_of(body.graph.inputs[:n]), has_effect(body.graph) or has_effect(cond.graph)
        )
        self.cond, self.body, self.n = cond, body, n
        self.exchanges = has_exchange(body.graph) or has_exchange(cond.graph)
        self.inputs = specs_of(body.graph.inputs)
        self._step: Any = None
        self._derivatives: dict[tuple[tuple[bool, ...], bool], LoopGradient] = {}

    @functools.cached_property
    def iteration(self) -> GraphFunction:
        """One iteration, and whether another one follows."""
        return build(self.inputs, self._iterate, self.op_name)

    def graphs(self) -> Sequence[Graph]:
        return [self.cond.graph, self.iteration.graph]

    @property
    def step(self) -> Any:
        """The program of one iteration."""
        if self._step is None:
            self._step = repeated(self.iteration, 0, self.n)
        return self._step

    def _iterate(self, xs: list) -> list:
        return self._next(xs, replay(self.body.graph, xs))

    def _next(self, xs: list, ys: list) -> list:
        return [*ys[: self.n], replay(self.cond.graph, [*ys[: self.n], *xs[self.n :]])[0]]

    def _execute(self, *inputs: Any) -> Sequence[Any]:
        return _core.loop(self.cond.program, self.step, inputs, self.n, False)

    def eagerly(self, xs: list) -> list:
        """The loop in Python, for tapes that differentiate more than once."""
        carry, constants = list(xs[: self.n]), list(xs[self.n :])
        while bool(self.cond.program.run([*carry, *constants])[0]):
            carry = self.body([*carry, *constants])
        return carry

    def active(self, tracked: Sequence[bool]) -> tuple[bool, ...]:
        """Which inputs of the body depend on the tracked ones, in any iteration."""
        marks = [t and spec[1] in DIFFERENTIABLE for t, spec in zip(tracked, self.inputs, strict=True)]
        while True:
            reached = {v for v, m in zip(self.body.graph.inputs, marks, strict=True) if m}
            for node in self.body.graph.nodes:
                if any(v in reached for v in node.operands):
                    reached.update(v for v in node.results if v.dtype in DIFFERENTIABLE)
            more = [m or y in reached for m, y in zip(marks, self.body.graph.outputs, strict=False)]
            if more == marks[: self.n]:
                return tuple(marks)
            marks[: self.n] = more

    def derivative(self, active: tuple[bool, ...]) -> LoopGradient:
        key = active, _core.assign_tracker() is not None
        cached = self._derivatives.get(key)
        if cached is None:
            with aside():
                cached = self._derivatives[key] = LoopGradient(self, active)
        return cached

    def _recorded(self, operands: list, tracked: tuple[bool, ...]) -> list:
        d = self.derivative(self.active(tracked))
        outputs = d.forward.apply(operands)
        _core.record(tuple(outputs), tuple(operands), d.gradients, _EVERYTHING)
        return outputs[: self.n]


class LoopWithResiduals(Loop):
    """A loop that keeps the residuals of its iterations; its last result is the token that identifies them."""

    xla = "control.loop_with_residuals"

    def __init__(self, plain: Loop, d: Derivative, gradient: LoopGradient) -> None:
        super().__init__(plain.cond, plain.body, plain.n, plain.op_name)
        self.specs = [*plain.specs, ((), int64._code)]
        self.plain, self.gradient, self._derivative = plain, gradient, d

    def _iterate(self, xs: list) -> list:
        ys = replay(self._derivative.forward.graph, xs)
        residuals = self.gradient.residuals
        return [*self._next(xs, ys), *(xs[i] if where == "in" else ys[i] for where, i in residuals)]

    def _execute(self, *inputs: Any) -> Sequence[Any]:
        return _core.loop(self.cond.program, self.step, inputs, self.n, True)

    def _recorded(self, operands: list, tracked: tuple[bool, ...]) -> list:
        active = self.active(tracked)
        if all(have or not want for have, want in zip(self.gradient.marks, active, strict=True)):
            outputs = self.apply(operands)
            _core.record(tuple(outputs), tuple(operands), self.gradient.gradients, _EVERYTHING)
            return outputs
        # More gradients are needed than when the loop was traced, so another loop keeps residuals for them.
        return [*self.plain._recorded(operands, tracked), self.apply(operands)[-1]]


class LoopGradient(Control):
    """The backward pass of a loop: takes the token, the loop's operands, and the cotangents."""

    xla = "control.loop_gradient"

    def __init__(self, loop: Loop, marks: tuple[bool, ...]) -> None:
        n = loop.n
        self.drawn = _results_of_effects(loop.body.graph) if loop.effect else []
        body = (
            loop.body
            if not self.drawn
            else GraphFunction(_with_outputs(loop.body.graph, self.drawn), loop.body.name)
        )
        d = body.derivative(marks)
        self.loop, self.marks, self._derivative = loop, marks, d
        self.residuals = [r for r in d.reads if r[0] == "out" or r[1] < n]
        drawn = [("out", n + k) for k in range(len(self.drawn or ()))]
        self.residuals += [r for r in drawn if r not in self.residuals]
        self.constants = [i for where, i in d.reads if where == "in" and i >= n]
        self.variables = [i for i in range(n) if marks[i]]
        # Gradients of constants are sums over the iterations; sparse ones are concatenated at the end.
        connected = [i for i in range(n, len(marks)) if d.places[i] is not None]
        self.sparse = [i for i in connected if isinstance(d.places[i], tuple)]
        self.state = self.variables + [i for i in connected if i not in self.sparse]
        self.targets = self.state + self.sparse
        super().__init__(f"gradient of {loop.op_name}", [loop.inputs[i] for i in self.targets])
        self.forward = LoopWithResiduals(loop, d, self)
        self.exchanges = loop.exchanges
        self._step: Any = None
        self.start = [zeros(loop.inputs[i]) for i in self.state[len(self.variables) :]]

    @functools.cached_property
    def back(self) -> GraphFunction:
        """One iteration backwards, as a function of the residuals, the state, and the constants."""
        results = specs_of(self._derivative.forward.graph.outputs)
        kinds = [self.loop.inputs[i] if where == "in" else results[i] for where, i in self.residuals]
        kinds += [self.loop.inputs[i] for i in (*self.state, *self.constants)]
        return build(kinds, self._iterate, self.op_name)

    def graphs(self) -> Sequence[Graph]:
        return [self.back.graph]

    @property
    def step(self) -> Any:
        """The program of one iteration backwards."""
        if self._step is None:
            self._step = repeated(self.back, len(self.residuals), len(self.state))
        return self._step

    def _iterate(self, xs: list) -> list:
        """New cotangents of the variables, sums of those of the constants, and the parts of sparse ones."""
        d = self._derivative
        residuals = dict(zip(self.residuals, xs, strict=False))
        state = dict(zip(self.state, xs[len(self.residuals) :], strict=False))
        fixed = dict(zip(self.constants, xs[len(self.residuals) + len(self.state) :], strict=True))
        read = [residuals[r] if r in residuals else fixed[r[1]] for r in d.reads]
        grads = unpack(d.places, replay(d.backward.graph, [*read, *(state[k] for k in d.cotangents)]))
        out = []
        for i in self.state:
            g = None if grads[i] is None else _dense(grads[i])
            if i >= self.loop.n:
                out.append(state[i] if g is None else state[i] + g)
            else:
                out.append(zeros(self.loop.inputs[i]) if g is None else g)
        for i in self.sparse:
            out += [grads[i].values, grads[i].indices]
        return out

    def _execute(self, token: Any, *rest: Any) -> Sequence[Any]:
        ins, gs = rest[: len(self.marks)], rest[len(self.marks) :]
        constants = [ins[i] for i in self.constants]
        out = _core.loop_back(self.step, token, [*gs, *self.start], constants)
        n = len(self.state)
        parts = zip(out[n::2], out[n + 1 :: 2], self.sparse, strict=True)
        return [*out[:n], *(IndexedSlices(v, at, self.loop.inputs[i][0])._dense() for v, at, i in parts)]

    def gradients(self, gs: Sequence[Any], ins: Sequence[Any], outs: Sequence[Any]) -> list:
        """The gradients of the loop's operands, for a tape."""
        grads: list = [None] * len(self.marks)
        target_grads = self([outs[-1], *ins, *_given(gs, outs, self.variables)])
        for i, g in zip(self.targets, target_grads, strict=True):
            grads[i] = g
        return grads

    def _recorded(self, operands: list, tracked: tuple[bool, ...]) -> list:
        if self.drawn is None:
            raise Untraceable(
                "while: a second derivative through a loop with random numbers, prints or checks in a branch or a function "
                "needs its values"
            )
        outputs = self.apply(operands)
        kinds = [((), int64._code), *self.loop.inputs, *(self.loop.inputs[i] for i in self.variables)]
        again = Eager(
            self.op_name,
            differentiate(self._eagerly, tracked),
            [s for s, m in zip(kinds, tracked, strict=True) if m],
        )

        def gradients(gs: tuple, ins: tuple, outs: tuple) -> list:
            grads = iter(again([*ins, *_given(gs, outs, range(len(outs)))]))
            return [next(grads) if m else None for m in tracked]

        _core.record(tuple(outputs), tuple(operands), gradients, _EVERYTHING)
        return outputs

    def _eagerly(self, xs: list) -> list:
        token, *xs = xs
        count = len(self.marks)
        marks = tuple(i in self.targets for i in range(count))
        every = dict(zip(self.variables, xs[count:], strict=True))
        gs = [every.get(k) if k in every else zeros(self.loop.inputs[k]) for k in range(self.loop.n)]
        loop = functools.partial(self._again, token) if self.loop.effect else self.loop.eagerly
        grads = dict(zip(sorted(self.targets), differentiate(loop, marks)([*xs[:count], *gs]), strict=True))
        return [grads[i] for i in self.targets]

    def _again(self, token: Any, xs: list) -> list:
        """The loop in Python, with the values it drew when it ran, so that it draws, prints and checks only once."""
        n = self.loop.n
        carry, constants = list(xs[:n]), list(xs[n:])
        count, *drawn = self._drawn_by(token)
        for k in range(count.shape[0] - 1, -1, -1):  # stored last to first
            carry = self._quiet([*carry, *constants, *(t[k] for t in drawn)])
        return carry

    @functools.cached_property
    def _quiet(self) -> GraphFunction:
        """An iteration that takes the results of its effectful ops as inputs."""
        graph = self.loop.body.graph
        nodes = [node for node in graph.nodes if not _is_effect(node)]
        return GraphFunction(
            extract(nodes, [*graph.inputs, *(self.drawn or ())], graph.outputs), self.op_name
        )

    def _drawn_by(self, token: Any) -> list:
        """A tensor with a row for each iteration, and the results of each effectful op in all iterations,
        last to first."""
        n = self.loop.n
        results = specs_of(self._derivative.forward.graph.outputs)
        kinds = [self.loop.inputs[i] if where == "in" else results[i] for where, i in self.residuals]
        places = [self.residuals.index(("out", n + k)) for k in range(len(self.drawn or ()))]
        step = build(kinds, lambda xs: [ops.zeros([1]), *(xs[p][None] for p in places)], "drawn")
        return _core.loop_back(repeated(step, len(kinds), 0), token, [], [])


# ---- Python inside a program --------------------------------------------------------------------


def differentiate(f: Callable[[list], list], marks: Sequence[bool]) -> Callable[[list], list]:
    """The gradient of `f` with respect to its marked arguments: a function of all arguments and the cotangents."""

    def gradient(given: list) -> list:
        from gradtape._src.tapes.tape import GradientTape

        # Separate tensors, so that a tensor passed twice has two gradients.
        xs = [ops.identity(x) if m else x for x, m in zip(given, marks, strict=False)]
        sources = [x for x, m in zip(xs, marks, strict=True) if m]
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            ys = f(xs)
        pairs = [
            (y, g) for y, g in zip(ys, given[len(marks) :], strict=True) if y.dtype._code in DIFFERENTIABLE
        ]
        targets, gs = [y for y, _ in pairs], [g for _, g in pairs]
        return [_dense(g) for g in tape.gradient(targets, sources, gs, unconnected_gradients="zero")]

    return gradient


class Eager(Control):
    """A function of tensors that runs as eager code inside a program; tapes inside it differentiate it."""

    def __init__(
        self, name: str, f: Callable[[list], list], specs: Sequence[Spec], effect: bool = False
    ) -> None:
        super().__init__(name, specs, effect)
        self.f = f

    def _execute(self, *inputs: Any) -> Sequence[Any]:
        with aside():
            return self.f(list(inputs))

    def _recorded(self, operands: list, tracked: tuple[bool, ...]) -> list:
        outputs = self.apply(operands)
        specs = [spec_of(x) for x, t in zip(operands, tracked, strict=True) if t]
        gradient = Eager(f"gradient of {self.op_name}", differentiate(self.f, tracked), specs)

        def gradients(gs: tuple, ins: tuple, outs: tuple) -> list:
            grads = iter(gradient([*ins, *_given(gs, outs, range(len(outs)))]))
            return [next(grads) if t else None for t in tracked]

        _core.record(tuple(outputs), tuple(operands), gradients, _EVERYTHING)
        return outputs
