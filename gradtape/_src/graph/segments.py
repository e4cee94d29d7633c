"""How a recording runs on tensors: as programs wherever sizes are known before the values are.

A call whose sizes depend on values (`tf.boolean_mask`) runs alone; the calls between two of them are a
*segment*. A segment is traced for the sizes that it meets, and runs as one program when they recur. A
recording in which no size depends on values is one segment, so the whole function is one program.

A tape that is open across the end of a segment records the segment as one call of its graph. A tape or
TensorArray that several segments use cannot be passed between programs, so calls of its methods run alone, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gradtape import _core
from gradtape._src.base.contexts import aside
from gradtape._src.base.errors import Untraceable
from gradtape._src.engines import NATIVE, Engine
from gradtape._src.graph.calls import Bindable, Frame, Place, Recorded, has_gaps, leaves_of, recorded_value
from gradtape._src.graph.ir import Node, symbolic
from gradtape._src.graph.trace import Trace, made_again
from gradtape._src.graph.traced import Traced

_MOST_PROGRAMS = 64  # of one segment; the least recently used one is dropped
_MOST_SIZES = 1024  # whose runs are counted, before they have a program
# Compiling a program pays off after some runs. Up to four programs may be waiting to pay off; beyond that, sizes must
# recur more often before they are compiled: twice as often for each program that has not paid off yet.
_RUNS_TO_PAY = 50
_MAY_WAIT = 4
_MOST_SIGHTINGS = 64


class Segment:
    """Calls of a recording, one after the other, that can be one program."""

    def __init__(
        self,
        nodes: list[Node],
        inputs: list[Recorded],
        outputs: list[Recorded],
        at_once: bool,
        engine: Engine = NATIVE,
    ) -> None:
        self.nodes = nodes
        self.engine = engine  # that runs its programs
        self.outputs = outputs
        self.misfit = False  # a call in it must run alone
        variables = [v for v in inputs if v.variable is not None]  # that are arguments of the function
        inputs = [v for v in inputs if v.variable is None]
        self._at_once = at_once or all(v.static is not None and None not in v.static for v in inputs)
        self._sightings = _core.Cache(_MOST_SIZES)
        # The inputs of the segment and its programs, which change together, because several threads may run it.
        self._known: tuple[list[Recorded], list[Recorded], _core.Cache]
        self._known = inputs, variables, _core.Cache(_MOST_PROGRAMS)

    @property
    def inputs(self) -> list[Recorded]:
        """The values that it reads, variables last."""
        tensors, variables, _ = self._known
        return [*tensors, *variables]

    @property
    def programs(self) -> list[Program]:
        """The programs that were made so far, each for tensors of one size."""
        return self._known[2].values()

    def run(self, frame: Frame) -> None:
        """Computes its outputs in a frame that has its inputs."""
        inputs, _, programs = self._known
        tensors = [frame[v] for v in inputs]
        program = programs.find(tensors)
        if program is None and self._pays(tensors):
            program = self.program_for(frame)
        if program is None:
            make_calls(self.nodes, frame)
            return
        program.runs += 1
        if len(program.inputs) > len(tensors):
            tensors = [frame[v] for v in program.inputs]
        frame.update(zip(self.outputs, program.run(tensors, program.variables_in(frame)), strict=False))

    def outputs_of_program(self, tensors: Sequence[Any]) -> list | None:
        """The fast path of `run`: its outputs, if all inputs are tensors and there is a program for their sizes."""
        tensors = list(tensors)
        program = self._known[2].find(tensors)
        if program is None or program.variables or len(program.inputs) > len(tensors):
            return None
        program.runs += 1
        return program.run(tensors)

    def _pays(self, tensors: list) -> bool:
        """Whether these sizes have recurred often enough to compile a program."""
        if self._at_once:
            return True
        sightings = (self._sightings.find(tensors) or 0) + 1
        self._sightings.add(tensors, sightings)
        waiting = sum(p.runs < _RUNS_TO_PAY for p in self.programs)
        return sightings >= min(2 << max(0, waiting + 1 - _MAY_WAIT), _MOST_SIGHTINGS)

    def program_for(self, frame: Frame) -> Program | None:
        """The program for the sizes of the tensors in a frame; None if a call needs values."""
        while not self.misfit:
            inputs, variables, programs = self._known
            tensors = [frame[v] for v in inputs]
            program = programs.find(tensors)
            if program is not None:
                return program
            try:
                program = self._traced(inputs, variables, tensors)
            except _Missing as e:
                # A function that was passed to the library has read this value for the first time.
                if e.value.variable is None:
                    inputs = [*inputs, e.value]
                else:
                    variables = [*variables, e.value]
                self._known = inputs, variables, _core.Cache(_MOST_PROGRAMS)
            except Untraceable:
                self.misfit = True
            else:
                programs.add(tensors, program)
                return program
        return None

    def _traced(self, inputs: list[Recorded], variables: list[Recorded], tensors: list) -> Program:
        trace = Trace(is_kept=True, engine=self.engine)
        frame = _Inside()
        frame.update(
            (v, symbolic(trace.input(t._dims, t.dtype._code))) for v, t in zip(inputs, tensors, strict=True)
        )
        frame.update((v, v.variable) for v in variables)
        with aside(trace):
            for node in self.nodes:
                try:
                    make_calls([node], frame)
                except Untraceable:
                    node.op.dynamic = True
                    raise
            return Program(inputs, variables, trace, [frame[v] for v in self.outputs])


class Program(Traced):
    """A segment for tensors of one size."""

    def __init__(
        self, inputs: list[Recorded], variables: list[Recorded], trace: Trace, outputs: list
    ) -> None:
        super().__init__(trace, outputs, len(inputs), "segment", [v.variable for v in variables])
        self.inputs, self.variables = inputs, variables
        self.runs = 0

    def variables_in(self, frame: Frame) -> list:
        """The variables among its inputs."""
        return [frame[v] for v in self.variables]


class _Missing(Exception):
    """A value from outside is not an input of the segment yet."""

    def __init__(self, value: Recorded) -> None:
        super().__init__("value of a recording")
        self.value = value


class _Inside(Frame):
    """The values of a segment while it is traced."""

    def __missing__(self, value: Recorded) -> Any:
        if value.dtype < 0 and value.variable is None:
            raise Untraceable("a tape or an array is used by a function that is passed to the library")
        raise _Missing(value)


def make_calls(nodes: Iterable[Node], frame: Frame) -> None:
    """Makes calls one after the other with the values of a frame."""
    for node in nodes:
        with made_again(node):
            if node.op.numbered is not None and _core.current_trace() is None:
                with node.op.numbered.scope():
                    results = node.op.make(frame)
            else:
                results = node.op.make(frame)
        if len(node.results) == 1 and type(results) is _core.Tensor:
            frame[node.results[0]] = results
        elif node.results:
            leaves = leaves_of(results)
            frame.update((v, leaves[k]) for v, k in zip(node.results, node.op.places, strict=True))
        if node.op.opens:
            frame.opened.append(frame[node.op.args[0].value])


# ---- where segments begin and end -----------------------------------------------------------------


def split(
    nodes: Sequence[Node], results: Any, at_once: bool, engine: Engine = NATIVE
) -> list[Segment | Node]:
    """The calls of a recording in order: segments, and calls that run alone.

    Args:
      results: what the recording returns.
      at_once: whether a segment that is the whole recording is compiled when it first runs.
      engine: the engine that runs their programs.
    """
    used = [values_used(node) for node in nodes]
    needed = {v for leaf in leaves_of(results) for v in _read_by(leaf)}
    alone, ends = _cuts(nodes, used, needed)
    last_use: dict[Any, int] = dict.fromkeys(needed, len(nodes))
    for k, values in enumerate(used):
        for v in values:
            last_use[v] = max(last_use.get(v, 0), k)
    steps: list[Segment | Node] = []
    start = 0
    for k in range(len(nodes) + 1):
        stops = k == len(nodes) or k in alone
        if start < k and (stops or nodes[k - 1] in ends):
            own = {v for node in nodes[start:k] for v in node.results}
            inputs = dict.fromkeys(v for values in used[start:k] for v in values if v not in own)
            outputs: list[Any] = [
                v for node in nodes[start:k] for v in node.results if last_use.get(v, -1) >= k
            ]
            steps.append(
                Segment(
                    list(nodes[start:k]), list(inputs), outputs, at_once and k - start == len(nodes), engine
                )
            )
            start = k
        if stops and k < len(nodes):
            steps.append(nodes[k])
            start = k + 1
    return steps


def _cuts(
    nodes: Sequence[Node], used: list[list[Recorded]], needed: set[Recorded]
) -> tuple[set[int], set[Node | None]]:
    """The indices of calls that cannot be part of a program, and the nodes that end a segment.

    To a tape, all results of a program depend on all of its inputs. So a value passed to a tape whose calls
    run alone, which may be a source, ends its segment.
    """
    alone = {k for k, node in enumerate(nodes) if node.op.dynamic or _reads_any_size(node.op)}
    groups = _groups(nodes, used)
    within = {v for node in nodes for v in node.results}
    for group in groups:
        if any(v in needed or v not in within for v in group.values):
            alone |= group.places
    while True:
        cut = [group.places <= alone for group in groups]
        given = [k for group, c in zip(groups, cut, strict=True) if c for k in group.places]
        ends = {v.node for k in given for v in used[k]}
        segment, segment_of = 0, []
        for k, node in enumerate(nodes):
            segment += k in alone
            segment_of.append(segment)
            segment += k in alone or node in ends
        before = len(alone)
        for group in groups:
            if len({segment_of[k] for k in group.places}) > 1:
                alone |= group.places
        if alone:
            # Random ops are numbered within a trace; in several traces they would draw the same numbers.
            alone.update(k for k, node in enumerate(nodes) if node.op.draws)
        if len(alone) == before:
            return alone, ends


def _reads_any_size(call: Any) -> bool:
    """Whether an argument is a variable whose size may change from run to run."""
    leaves = leaves_of((call.args, call.kwargs))
    given = [leaf.value.variable if type(leaf) is Place else leaf for leaf in leaves]
    return any(map(has_gaps, given))


class _Group:
    """Tapes or arrays that calls create from one another, and the indices of those calls."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.places: set[int] = set()


def _groups(nodes: Sequence[Node], used: list[list[Recorded]]) -> list[_Group]:
    group_of: dict[Any, _Group] = {}
    for k, node in enumerate(nodes):
        values: Any = *used[k], *node.results
        touched = [v for v in values if v.dtype < 0 and v.variable is None]
        if not touched:
            continue
        group = group_of.get(touched[0]) or _Group()
        for v in touched:
            other = group_of.get(v)
            if other is None:
                group.values.append(v)
                group_of[v] = group
            elif other is not group:
                group.values += other.values
                group.places |= other.places
                group_of.update(dict.fromkeys(other.values, group))
        group.places.add(k)
    return list({id(g): g for g in group_of.values()}.values())


def values_used(node: Node) -> list[Recorded]:
    """The values that a call reads, including those that its branches and functions read from outside."""
    leaves = leaves_of((node.op.args, node.op.kwargs))
    direct: list[Any] = [
        *node.operands,
        *(v for leaf in leaves if isinstance(leaf, Bindable) for v in _read_by(leaf)),
    ]
    return list(dict.fromkeys([*direct, *(v for part in node.op.inner() for v in read_from_outside(part))]))


def read_from_outside(part: Any) -> list[Recorded]:
    """The values that a branch, loop body or function reads from the enclosing recordings."""
    used = [v for node in part.nodes for v in values_used(node)]
    used += [v for leaf in leaves_of(part.result) for v in _read_by(leaf)]
    return [v for v in used if v.graph is not part]


def _read_by(leaf: Any) -> list[Recorded]:
    """The value that a leaf of the results is, or the values that a function reads."""
    if isinstance(leaf, Bindable):
        return [*_captured(leaf.function), *(v for part in leaf.parts() for v in read_from_outside(part))]
    value = leaf.value if type(leaf) is Place else recorded_value(leaf)
    return [] if value is None else [value]


def _captured(function: Any) -> list[Recorded]:
    """The values in the closure of a Python function."""
    cells = getattr(getattr(function, "__func__", function), "__closure__", None) or ()
    values = []
    for cell in cells:
        try:
            leaves = leaves_of(cell.cell_contents)
        except ValueError:
            continue  # not assigned yet
        values += [v for v in map(recorded_value, leaves) if v is not None]
    return values
