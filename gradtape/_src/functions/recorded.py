"""Functions of unknown sizes: one recording for all sizes, or, where recording fails, one trace for each size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import composites, nest
from gradtape._src.base.shape import TensorShape
from gradtape._src.control import recorded as _control  # noqa: F401  registers itself for arrays
from gradtape._src.functions.concrete import ConcreteFunction, TracedFunction, without_value
from gradtape._src.functions.control_flow import output_spec, run_numpy, run_python
from gradtape._src.graph.calls import Call, Frame, Place, has_gaps, in_frame, map_leaves
from gradtape._src.graph.operations import FuncGraph
from gradtape._src.graph.recording import RUN_PYTHON, Recording
from gradtape._src.graph.segments import Segment
from gradtape._src.graph.worlds import IN_WORLDS, World
from gradtape._src.tapes import recorded as _tapes  # noqa: F401  registers itself for tapes
from gradtape._src.tensors import conversion

if TYPE_CHECKING:
    from gradtape._src.functions.arguments import FunctionType
    from gradtape._src.functions.function import Function


_MOST_SIZES = 256  # the least recently used one is dropped


def _python_in(world: World, call: Call) -> Any:
    """The results of a user's Python function in a world, where it is not called: tensors of known type."""

    def results(func: Any = None, inp: Any = None, Tout: Any = None, *_: Any, **__: Any) -> Any:  # noqa: N803
        specs = [output_spec(s) for s in nest.flatten(Tout)]
        shapes = [TensorShape(None if shape is None else shape) for _, shape in specs]
        statics = [None if s.rank is None else tuple(s.as_list()) for s in shapes]
        followed = call.function is run_python  # by tapes
        inputs = [conversion.as_tensor(x) for x in inp or ()] if followed else []
        flat = [
            world.fresh(world.shape_of(s), kind._code, inputs)
            for (kind, _), s in zip(specs, statics, strict=True)
        ]
        single = not isinstance(Tout, (list, tuple)) or (call.function is run_numpy and len(flat) == 1)
        return flat[0] if single else flat

    with world.scope():
        return Call(results, call.args, call.kwargs).make(world.frame)


IN_WORLDS.update({run_python: _python_in, run_numpy: _python_in})
RUN_PYTHON.update((run_python, run_numpy))


class RecordedFunction(ConcreteFunction):
    """A trace with unknown sizes."""

    def __init__(
        self,
        owner: Function,
        function_type: FunctionType,
        recording: Recording,
        result: Any,
        flat: list,
        proxies: Sequence[Any] = (),
    ) -> None:
        super().__init__(owner, function_type)
        self.proxies = proxies
        self.recording = recording
        self._single = not nest.is_nested(result)
        self._structure = result
        self._has_parts = composites.has_parts(result)
        # What the trial captured from outside is captured by the recording; what the trial made up is newer.
        returned = [x for x in flat if isinstance(x, _core.Tensor) and x._symbol is None]
        self._captured = [
            e
            for e in (*recording.worlds[0].trace.externals, *returned)
            if not any(e is s for s in proxies) and getattr(e, "_born", 0) <= recording.start
        ]
        recording.result = flat
        recording.close()
        self._whole = self._as_segment() if recording.nodes else None

    @property
    def graph(self) -> Any:
        """What was traced, as operations: the calls of the function, in their order."""
        return FuncGraph(self.recording, self)

    @property
    def captured_inputs(self) -> list:
        """Tensors and variables that the function captures."""
        return list(self._captured)

    def _arguments(self) -> list:
        values: Any = self.recording.inputs
        return [self.recording.handle(v) for v in values if v.dtype >= 0]

    def _results(self) -> tuple[Any, list]:
        def leaf(x: Any) -> Any:
            if type(x) is Place:
                return self.recording.handle(x.value)
            return without_value(x) if isinstance(x, _core.Tensor) else x

        return self._structure, [map_leaves(leaf, x) for x in self.recording.result]

    def call(self, tensors: Sequence[Any], variables: Sequence[Any] = ()) -> Any:
        """Runs the recording on the tensors and variables among its arguments."""
        flat = self._results_of_program(tensors)
        if flat is None:
            frame = self.recording.replay([*tensors, *variables])
            flat = [map_leaves(lambda leaf: in_frame(leaf, frame), x) for x in self.recording.result]
        if _core.is_recording():
            # To a tape around it, a function is one op: its results do not depend on one another.
            flat = [map_leaves(_passed_on, x) for x in flat]
        if self._single:
            return flat[0]
        packed = nest.pack_sequence_as(self._structure, flat)
        return composites.together(packed) if self._has_parts else packed

    def _results_of_program(self, tensors: Sequence[Any]) -> list | None:
        """The results, if the whole function is one segment with a program for these sizes."""
        if self._whole is None or _core.current_trace() is not None:
            return None
        segment, places = self._whole
        outs = segment.outputs_of_program(tensors)
        return None if outs is None else [outs[k] for k in places]

    def _as_segment(self) -> tuple[Segment, list[int]] | None:
        """The only segment, if the function has just one, and the positions of the results among its outputs."""
        recording, steps = self.recording, self.recording.steps
        places = [x.value for x in recording.result if type(x) is Place]
        if len(steps) > 1 or not isinstance(steps[0], Segment) or len(places) < len(recording.result):
            return None
        at = {v: k for k, v in enumerate(steps[0].outputs)}
        if steps[0].inputs != recording.inputs or any(v not in at for v in places):
            return None
        return steps[0], [at[v] for v in places]

    @property
    def programs(self) -> list:
        """The programs that were made so far."""
        return [p for step in self.recording.steps if isinstance(step, Segment) for p in step.programs]

    def program_for(self, tensors: Sequence[Any], variables: Sequence[Any] = ()) -> tuple[Any, list]:
        """The program for tensors of these sizes, and what it is given.

        Raises:
          ValueError: if there are several because sizes depend on values.
        """
        frame = Frame()
        frame.update(zip(self.recording.inputs, [*tensors, *variables], strict=True))
        steps = self.recording.steps
        segment = steps[0] if len(steps) == 1 and isinstance(steps[0], Segment) else None
        program = None if segment is None else segment.program_for(frame)
        if segment is None or program is None:
            raise ValueError(
                "sizes in this function depend on values, so it runs as several programs. Hint: call it, and then "
                "`pretty()` without arguments shows those that were made."
            )
        return program, program.operands([frame[v] for v in program.inputs], program.variables_in(frame))


def _passed_on(leaf: Any) -> Any:
    return ops.identity(leaf) if isinstance(leaf, _core.Tensor) and _core.is_tracked(leaf) else leaf


class SizedFunction(ConcreteFunction):
    """One trace per size, though the signature leaves sizes unknown.

    A recording infers result shapes by tracing with trial sizes. Where no trial sizes work (because sizes depend on one
    another in an unforeseen way), a correct program must not be rejected: it is traced for the sizes it is called with.
    """

    def __init__(
        self,
        owner: Function,
        function_type: FunctionType,
        first: TracedFunction,
        trace: Callable[[Sequence[Any]], TracedFunction],
    ) -> None:
        super().__init__(owner, function_type)
        self.placeholders, self.proxies = first.placeholders, first.proxies
        self._first = first
        self._trace = trace
        self._varying: list[Any] = []  # variables whose shape may change, too
        self._traces = _core.Cache(_MOST_SIZES)

    def call(self, tensors: Sequence[Any], variables: Sequence[Any] = ()) -> Any:
        """Runs the trace for tensors of these sizes."""
        return self.trace_for(tensors).call(tensors, variables)

    def trace_for(self, tensors: Sequence[Any]) -> TracedFunction:
        """The trace for tensors of these sizes."""
        trace = self._traces.find(self._sizes(tensors))
        if trace is None:
            trace = self._trace(tensors)
            self.add(tensors, trace)
        return trace

    def add(self, tensors: Sequence[Any], trace: TracedFunction) -> None:
        """Keeps a trace for tensors of these sizes."""
        new = [e for e in trace.externals if has_gaps(e) and not any(e is v for v in self._varying)]
        if new:
            self._varying += new
            self._traces.clear()
        self._traces.add(self._sizes(tensors), trace)

    def _sizes(self, tensors: Sequence[Any]) -> list:
        return [*tensors, *(v._peek() for v in self._varying)]

    def program_for(self, tensors: Sequence[Any], variables: Sequence[Any] = ()) -> tuple[Any, list]:
        """The program for tensors of these sizes, and what it is given."""
        trace = self.trace_for(tensors)
        return trace, trace.operands(tensors, variables)

    @property
    def programs(self) -> list:
        """The programs that were made so far."""
        return self._traces.values()

    @property
    def graph(self) -> Any:
        """What was traced for the first sizes."""
        return self._first.graph

    @property
    def captured_inputs(self) -> list:
        """Tensors and variables that the function captures."""
        return self._first.captured_inputs

    def _arguments(self) -> list:
        return self._first._arguments()

    def _results(self) -> tuple[Any, list]:
        return self._first._results()
