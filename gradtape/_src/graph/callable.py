"""A graph that can be called: on values it runs a program, in a trace it is inlined, and on
a tape it is one record whose derivative is again such a graph. So derivatives of every order compile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes, log, settings
from gradtape._src.base.contexts import aside
from gradtape._src.base.errors import Untraceable
from gradtape._src.engines import NATIVE, Engine
from gradtape._src.graph.ir import Callback, Graph, Node, Value, symbolic, written_to
from gradtape._src.graph.simplify import live, simplify
from gradtape._src.graph.trace import made_again
from gradtape._src.tensors.indexed_slices import IndexedSlices

_EVERYTHING = (1 << 64) - 1
_MOST_SEEDS = 1024  # limit on the cotangents that are tracked separately
_ZERO = -2  # in `places`: a gradient that is structurally zero


class Derivative(NamedTuple):
    """How a graph is run so that it can be differentiated, and its derivative."""

    forward: GraphFunction  # the results, then the residuals that are not among its inputs
    backward: GraphFunction
    reads: list[
        tuple[str, int]
    ]  # the residuals, which `backward` takes before the cotangents: ("in" | "out", index)
    cotangents: list[int]  # the results whose cotangents it takes
    places: (
        list  # where the gradient of each input is: None, an index, _ZERO, or (values, indices, dense shape)
    )
    reached_by: list[int]  # for each input: the cotangents that its gradient depends on, as a bit mask


class GraphFunction:
    """A function of tensors, given by a graph."""

    def __init__(
        self, graph: Graph, name: str = "graph", updates: list[int] | None = None, engine: Engine = NATIVE
    ) -> None:
        self.graph = graph
        self.engine = engine  # compiles its programs, and those of its derivatives
        self.updates = updates  # for each output, the input that it updates, or -1
        self.name = name
        self.places: list = []  # of a backward pass: where among the outputs the gradient of each source is
        self.seen = 0  # how often a Jacobian asked for it
        self.row_bytes = -1  # what one row of a Jacobian needs, once known
        self.jacobians: dict[tuple, Any] = {}  # by the rows that seed it: see jacobian.py
        self.tangents: dict[int, GraphFunction] = {}  # by output: the transposed pass, see jacobian.py
        self.linear: bool | None = None  # in its last input, once asked for: linear.py
        self.sparsity: Any = None  # which derivatives it can give, once asked for: autodiff/sparse.py
        self._program: Any = None
        self._batched: dict[tuple, tuple[GraphFunction, list[bool]]] = {}
        self._derivatives: dict[tuple, Derivative] = {}
        self._rules: dict[tuple[tuple[bool, ...], bool], Any] = {}  # gradient rules: see `_recorded`

    @property
    def program(self) -> Any:
        if self._program is None:
            self._program = self.engine.program(self.graph, self.updates)
            if settings.log_device_placement:
                log.warning("%s runs on %s", self.name, self.engine.device)
        return self._program

    def __call__(self, tensors: Sequence[Any]) -> list:
        """The outputs of the graph for these inputs."""
        graph = written_to(tensors)
        if graph is not None:
            if graph.is_pass and self.engine is not NATIVE:
                raise Untraceable(f"{self.name} runs on {self.engine.device}")
            return replay(self.graph, tensors)
        if _core.is_recording():
            tracked = tuple(_core.is_tracked(t) for t in tensors)
            if any(tracked):
                return self._recorded(tensors, tracked)
        return self.program.run(tensors)

    def _recorded(self, tensors: Sequence[Any], tracked: tuple[bool, ...]) -> list:
        d = self.derivative(tracked)
        outputs = d.forward.program.run(tensors)
        key = tracked, _core.assign_tracker() is not None
        rule = self._rules.get(key)
        if rule is None:
            # One object for all calls: it is part of the key by which tapes find compiled passes.
            rule = self._rules[key] = self._rule(d, tracked)
        # A second derivative may need to run forward again, from the inputs, or read all the results.
        keep = _EVERYTHING if _core.may_differentiate_again() else 0
        for where, i in d.reads:
            keep |= 1 << (min(i, 62) if where == "in" else min(len(tensors) + i, 63))

        _core.record(tuple(outputs), tuple(tensors), rule, keep)
        return outputs[: len(self.graph.outputs)]

    def _rule(self, d: Derivative, tracked: tuple[bool, ...]) -> Any:
        connected = tuple(p is not None for p in d.places)

        def gradients(gs: tuple, ins: tuple, outs: tuple) -> list:
            if any(g is not None for g in gs[len(self.graph.outputs) :]):
                # The backward pass was differentiated: its residuals have cotangents too.
                return d.forward.gradients(tracked, gs, ins, outs)
            return self._backward(d, tracked, gs, ins, outs)

        gradients.connected = connected  # type: ignore[attr-defined]
        return gradients

    def _backward(self, d: Derivative, tracked: tuple[bool, ...], gs: tuple, ins: tuple, outs: tuple) -> list:
        present = tuple(k for k in d.cotangents if _is_tensor(gs[k]))
        if len(present) < len(d.cotangents):
            return self._partly_backward(d, tracked, present, gs, ins, outs)
        given = [ins[i] if where == "in" else outs[i] for where, i in d.reads]
        return unpack(d.places, d.backward([*given, *(gs[k] for k in present)]), zero=0)

    def _partly_backward(
        self,
        d: Derivative,
        tracked: tuple[bool, ...],
        present: tuple[int, ...],
        gs: tuple,
        ins: tuple,
        outs: tuple,
    ) -> list:
        """Gradients where some cotangents are None or zero: the same as if the ops had been recorded one by one."""
        zeros = sum(1 << i for i, k in enumerate(d.cotangents) if gs[k] is not None and k not in present)
        rest = [
            0 if p is not None and r & zeros else None for p, r in zip(d.places, d.reached_by, strict=True)
        ]
        if not present:
            return rest
        given = [ins[i] if where == "in" else outs[i] for where, i in d.reads]
        if _core.is_recording() or written_to(given):
            # If this pass is differentiated again, it must not contain terms of the missing cotangents.
            less = d.forward.derivative(tracked, present)
            if set(less.reads) <= set(d.reads):
                grads = d.forward._backward(less, tracked, gs, ins, outs)
                return [z if g is None else g for g, z in zip(grads, rest, strict=True)]
        given += [gs[k] if k in present else ops.zeros(outs[k].shape, outs[k].dtype) for k in d.cotangents]
        grads = unpack(d.places, d.backward(given), zero=0)
        bits = sum(1 << i for i, k in enumerate(d.cotangents) if k in present)
        return [g if r & bits else z for g, z, r in zip(grads, rest, d.reached_by, strict=True)]

    def gradients(self, tracked: tuple[bool, ...], gs: tuple, ins: tuple, outs: tuple) -> list:
        """Gradients of the inputs from inputs and results alone; runs the forward pass again."""
        d = self.derivative(tracked)
        if len(d.forward.graph.outputs) > len(outs) and any(map(_is_tensor, gs)):
            outs = tuple(d.forward(list(ins)))
        return self._backward(d, tracked, gs, ins, outs)

    def batched(self, batched: tuple[bool, ...], size: int) -> tuple[GraphFunction, list[bool]]:
        """The same function over a new leading axis of the marked inputs, and which outputs have it."""
        cached = self._batched.get((batched, size))
        if cached is None:
            from gradtape._src.batching.batch import batched_graph

            graph, marks = batched_graph(self.graph, batched, size)
            cached = self._batched[batched, size] = (
                GraphFunction(simplify(graph), self.name, engine=self.engine),
                marks,
            )
        return cached

    # ---- derivatives ------------------------------------------------------------------------

    def derivative(self, tracked: tuple[bool, ...], only: tuple[int, ...] | None = None) -> Derivative:
        """The derivative of all results, or of some, with respect to the inputs marked in `tracked`."""
        # A tape with track_assign=True needs a different derivative.
        key = tracked, _core.assign_tracker() is not None, only
        cached = self._derivatives.get(key)
        if cached is None:
            joint = Graph()
            with aside(joint):
                cached = self._derivatives[key] = self._differentiate(tracked, joint, only)
        return cached

    def _differentiate(
        self, tracked: tuple[bool, ...], joint: Graph, only: tuple[int, ...] | None
    ) -> Derivative:
        xs = [symbolic(joint.input(v.shape, v.dtype)) for v in self.graph.inputs]
        tape = _core.Tape()
        tape._configure(True, False)
        sources = [x for x, t in zip(xs, tracked, strict=True) if t]
        with tape:
            for x in sources:
                tape._watch(x)
            ys = replay(self.graph, xs)
        targets = [k for k, y in enumerate(ys) if tape._tracks(y) and (only is None or k in only)]
        seeds = [symbolic(joint.input(tuple(ys[k].shape), ys[k].dtype._code)) for k in targets]
        grads = iter(tape._backward([ys[k] for k in targets], seeds, sources, True))
        places, flat = pack([next(grads) if t else None for t in tracked])
        n_y = len(ys)
        joint.outputs = [joint.value_of(t) for t in (*ys, *flat)]
        reached = iter(self._reached_by(tape, [ys[k] for k in targets], sources))
        reached_by = [next(reached) if t else 0 for t in tracked]
        return self._split(simplify(joint), len(xs), n_y, targets, places, reached_by)

    @staticmethod
    def _reached_by(tape: Any, targets: list, sources: list) -> list[int]:
        """The cotangents that each gradient depends on, as bit masks; all of them above the limit `_MOST_SEEDS`."""
        if not 1 < len(targets) <= _MOST_SEEDS:
            return [(1 << len(targets)) - 1] * len(sources)
        return tape._reached_by(targets, sources)

    def _split(
        self, joint: Graph, n_x: int, n_y: int, targets: list[int], places: list, reached_by: list[int]
    ) -> Derivative:
        """Cuts the joint graph into the part before and the part after the cotangents."""
        xs, seeds = joint.inputs[:n_x], joint.inputs[n_x:]
        behind = set(seeds)
        backward: list[Node] = []
        late = _late(joint, joint.outputs[:n_y])
        for node in joint.nodes:
            if node in late or any(v in behind for v in node.operands):
                behind.update(node.results)
                backward.append(node)
        ys, grads = joint.outputs[:n_y], joint.outputs[n_y:]
        read = dict.fromkeys(
            v for node in backward for v in node.operands if v not in behind and v.constant is None
        )
        read.update(dict.fromkeys(v for v in grads if v not in behind and v.constant is None))
        later = set(backward)
        forward_nodes = [n for n in joint.nodes if n not in later]
        source = {v: ("in", i) for i, v in enumerate(xs)}
        outputs = list(ys)
        for k, v in enumerate(ys):
            source.setdefault(v, ("out", k))
        for v in read:
            if v not in source:
                source[v] = ("out", len(outputs))
                outputs.append(v)
        parts = extract(forward_nodes, xs, outputs), extract(backward, [*read, *seeds], grads)
        for part in parts:
            part.simplified = joint.simplified
        return Derivative(
            GraphFunction(parts[0], self.name, engine=self.engine),
            GraphFunction(parts[1], f"gradient of {self.name}", engine=self.engine),
            [source[v] for v in read],
            targets,
            places,
            reached_by,
        )


def _is_tensor(g: Any) -> bool:
    """Whether a cotangent has values: None is no cotangent, the number 0 a structural zero."""
    return g is not None and not isinstance(g, int)


def _late(joint: Graph, ys: list[Value]) -> set[Node]:
    """The nodes that wait for the backward pass although they need no cotangent, except those that `ys` depend on."""
    late = {n for n in joint.nodes if isinstance(n.op, Callback) and n.op.runs_late}
    needed = set(ys)
    for node in reversed(joint.nodes) if late else ():
        if any(v in needed for v in node.results):
            needed.update(node.operands)
            late.discard(node)
    return late


def pack(results: list) -> tuple[list, list]:
    """Gradients as a flat list of tensors, and where each of them is in it.

    The number 0 is a gradient too: a structural zero."""
    places: list = []
    flat: list = []
    for g in results:
        if g is None:
            places.append(None)
        elif isinstance(g, int):
            places.append(_ZERO)
        elif isinstance(g, IndexedSlices):
            places.append((len(flat), len(flat) + 1, g._dense_shape))
            flat += [g.values, g.indices]
        else:
            places.append(len(flat))
            flat.append(g)
    return places, flat


def unpack(places: list, flat: list, zero: Any = None) -> list:
    """The inverse of `pack`; structural zeros become `zero`."""
    return [
        None
        if p is None
        else zero
        if p == _ZERO
        else IndexedSlices(flat[p[0]], flat[p[1]], p[2])
        if isinstance(p, tuple)
        else flat[p]
        for p in places
    ]


def replay(graph: Graph, tensors: Sequence[Any]) -> list:
    """Applies the ops of a graph, one after the other, to other tensors: concrete or symbolic ones."""
    env: dict[Value, Any] = dict(zip(graph.inputs, tensors, strict=True))

    def tensor(v: Value) -> Any:
        return env[v] if v.constant is None else v.constant

    for node in graph.nodes:
        operands = [tensor(v) for v in node.operands]
        with made_again(node):
            if isinstance(node.op, _core.Op):
                results = _core.apply(node.op, operands, node.attrs)
            else:
                results = node.op(operands, [(v.shape, v.dtype) for v in node.results])
        env.update(zip(node.results, results, strict=True))
    return [tensor(v) for v in graph.outputs]


def extract(nodes: Sequence[Node], inputs: Sequence[Value], outputs: Sequence[Value]) -> Graph:
    """A new graph of some nodes of another one."""
    graph = Graph()
    new: dict[Value, Value] = {}
    for v in inputs:
        new[v] = graph.input(v.shape, v.dtype)

    def renew(v: Value) -> Value:
        return new[v] if v.constant is None else graph.constant(v.constant)

    for node in nodes:
        missing = [v for v in node.operands if v not in new and v.constant is None]
        if missing:
            if isinstance(node.op, Callback) or node.op.row.pattern != "nothing":
                continue  # not reachable from these inputs: then no output needs it either
            # Ops that depend only on the shape of an operand, such as tf.zeros_like, do not need its value.
            with aside():
                new.update((v, graph.constant(ops.zeros(v.shape, dtypes.BY_CODE[v.dtype]))) for v in missing)
        results = graph.add(
            node.op, [renew(v) for v in node.operands], node.attrs, [(r.shape, r.dtype) for r in node.results]
        )
        graph.nodes[-1].line = node.line
        new.update(zip(node.results, results, strict=True))
    graph.outputs = [renew(v) for v in outputs]
    graph.nodes = live(graph)
    return graph
