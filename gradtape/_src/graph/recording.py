"""A recording: the library calls of a function that is traced with unknown sizes, replayed later for any sizes.

The Python function runs once, on tensors with partly unknown shapes (`None`, as in TensorFlow). Each library call that
it makes is a node: the function, its arguments, and the values among them. Calls are not expanded to ops before the
sizes are known. `Recording.replay` makes the calls again, in order: on symbolic tensors of an ordinary trace; or on
concrete tensors, where sizes that recur run as programs (`segments.py`).

Shapes of results are inferred by trial: every call is also made in two *worlds*, ordinary traces in which the unknown
sizes are numbers. A size that is the same in both is known; one that differs is None. So ops, composites and gradient
rules need no separate shape inference for unknown sizes.
"""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import composites, dtypes
from gradtape._src.base.contexts import aside
from gradtape._src.base.errors import UnimplementedError, Untraceable, set_message
from gradtape._src.base.source import user_line
from gradtape._src.engines import NATIVE, Engine
from gradtape._src.graph.calls import (
    OPENERS,
    Bindable,
    Call,
    Frame,
    Place,
    Recorded,
    Static,
    first_of,
    has_gaps,
    in_frame,
    is_symbolic,
    is_value,
    join_shapes,
    leaves_of,
    map_leaves,
    recorded_value,
    values_in,
)
from gradtape._src.graph.effects import Draw
from gradtape._src.graph.ir import Node
from gradtape._src.graph.segments import Segment, make_calls, split
from gradtape._src.graph.trace import Trace
from gradtape._src.graph.worlds import IN_WORLDS, MISFITS, World
from gradtape._src.state.variable import variable_proxy
from gradtape._src.tensors import above, conversion, random
from gradtape._src.tensors.composite import CompositeTensor
from gradtape._src.tensors.indexed_slices import IndexedSlices

_NUMBER = re.compile(r"\d+")


class Recording(Trace):
    """A graph of calls that a running function writes."""

    __slots__ = (
        "worlds",
        "dynamic",
        "draws",
        "needs_trace",
        "refused",
        "is_stored",
        "varies",
        "_gaps",
        "_result",
        "_steps",
    )

    def __init__(
        self, outer: Recording | None = None, gaps: int = 0, engine: Engine = NATIVE, is_stored: bool = False
    ) -> None:
        super().__init__(outer, engine=engine)
        self.is_stored: bool = is_stored if outer is None else outer.is_stored  # see `train/stored_calls.py`
        self.varies = False  # reads a variable whose shape may change between runs
        self._gaps = gaps  # the largest number of unknown sizes in one argument
        self.records = True
        self.needs_trace = False  # a call reads the graph that it is part of
        self.dynamic = False  # a size depends on values, so the recording is not one program
        self.draws = False  # random numbers
        self.refused: Exception | None = None  # raised by a call for which no trial sizes work
        self._result: Any = None
        self._steps: tuple[int, list[Segment | Node]] = -1, []  # for how many nodes, and how they run
        self.worlds = [World(k, None if outer is None else outer.open()[k], gaps) for k in range(2)]

    def open(self) -> list[World]:
        """The worlds, rebuilt if the recording is closed: custom gradients may be traced later."""
        if not self.worlds:
            self.worlds = [World(k, None, self._gaps) for k in range(2)]
            for world in self.worlds:
                self.fill(world)
        return self.worlds

    def close(self) -> None:
        """Frees the worlds, which are not needed once the shapes are known."""
        self.worlds = []

    # ---- values -------------------------------------------------------------------------------

    def argument(self, static: Static, dtype: int, source: Recorded | None = None) -> Any:
        """A tensor, or with type -1 an object, that is given whenever the recording is replayed."""
        value = Recorded(self, static, dtype, source=source)
        self.inputs.append(value)
        for world in self.worlds:
            world.admit(value)
        return self.handle(value) if dtype >= 0 else self.worlds[0].frame[value]._as_recorded(value)

    def variable(self, proxy: Any) -> Any:
        """A variable that is given whenever the recording is replayed; worlds see `proxy`."""
        value = Recorded(self, (), -1)
        value.variable = proxy
        self.inputs.append(value)
        for world in self.worlds:
            world.admit(value)
        handle: Any = variable_proxy(proxy)
        handle._recorded = value
        return handle

    @staticmethod
    def handle(value: Recorded) -> Any:
        return _core.symbolic(value.static or (), value.dtype, value)

    def place_of(self, leaf: Any) -> Any:
        """A `Place` for a tensor or object of this recording, a `Routine` for a function; anything else as it is."""
        return Routine(self, leaf) if is_routine(leaf) else self._place_of_value(leaf)

    def _place_of_value(self, leaf: Any) -> Any:
        value = recorded_value(leaf)
        if value is None and hasattr(type(leaf), "__tf_tensor__"):
            value = self._converted(leaf)
        if value is None:
            return leaf
        graph: Any = self
        while graph is not None and graph is not value.graph:
            graph = graph.outer
        if graph is None:
            value.trace(None, (), (), ())
        return Place(value)

    def _converted(self, leaf: Any) -> Recorded | None:
        """Converts an object to a tensor of this recording, if possible; worlds cannot do it."""
        if isinstance(leaf, CompositeTensor) or conversion.leaf_of(leaf) is not None:
            return None  # variables, Keras' too: the call may change them
        try:
            return recorded_value(leaf.__tf_tensor__(None))
        except TypeError:  # not convertible, or of another type: left to the call
            return None

    # ---- calls --------------------------------------------------------------------------------

    def call(self, function: Any, args: tuple, kwargs: dict) -> Any:
        """Records a call; its results are tensors of the recording. Called by the core."""
        args = tuple(
            list(a) if isinstance(a, Iterator) else a for a in args
        )  # a list, because each world iterates over it
        if isinstance(function, _core.Op):
            args = tuple(self.read(a) if has_gaps(a) else a for a in args)
        if self.is_stored:
            args, kwargs = tuple(map(_as_tensors, args)), {k: _as_tensors(a) for k, a in kwargs.items()}
        place = self._place_of_value if function in RUN_PYTHON else self.place_of
        return self.note(Call(function, *map_leaves(place, (args, kwargs))))

    def note(self, call: Call) -> Any:
        """Makes a call in the worlds, and adds its node."""
        trace = self.worlds[0].trace
        before, numbers = len(trace.nodes), trace.random_ops
        try:
            outcomes = [world.outcome(call) for world in self.worlds]
        except (*MISFITS, TypeError) as e:
            self._of_any_size(e, call)
            self._note_refused(e)
            raise
        inner = call.inner()
        call.dynamic = any(dynamic for _, dynamic in outcomes) or any(p.dynamic for p in inner)
        call.draws |= any(isinstance(n.op, Draw) for n in trace.nodes[before:]) or any(p.draws for p in inner)
        if call.draws and not inner:
            call.numbered = random.Numbered(self.random_ops)
            self.random_ops += trace.random_ops - numbers
        first, second = (r for r, _ in outcomes)
        results = [first, self.worlds[1].doubted(call, first, second)]
        constant = type(call) is Call and call.function is not _assign and len(trace.nodes) == before
        if constant and not any(map(self._may_change, leaves_of((call.args, call.kwargs, results)))):
            # Computed from constants alone, without another effect: the same whenever the call is made.
            return composites.together(results[0])
        return self._noted(call, results)

    def _may_change(self, leaf: Any) -> bool:
        """Whether a leaf may have another value when the function runs.

        A variable that was assigned a size holds a number in each world, which is not the number that it holds in a run.
        """
        if not isinstance(leaf, _core.Variable):
            return is_symbolic(leaf)
        trace: Any = self.worlds[0].trace
        while trace is not None and id(leaf) not in trace.assigned:
            trace = trace.outer
        return trace is not None

    def _note_refused(self, error: Exception) -> None:
        recording: Any = self
        while recording is not None:
            recording.refused = error
            recording = recording.outer

    def _noted(self, call: Call, results: list) -> Any:
        node = Node(call, tuple(values_in((call.args, call.kwargs))), ())
        node.line = user_line()
        values: list[Recorded] = []

        def value_of(*leaves: Any) -> Any:
            first = leaves[0]
            if isinstance(first, _core.Tensor):
                value = Recorded(self, join_shapes([t._dims for t in leaves]), first.dtype._code, node)
                handle: Any = self.handle(value)
            elif hasattr(type(first), "_as_recorded"):
                value = Recorded(self, (), -1, node)
                handle = first._as_recorded(value)
            else:
                return first
            for world, leaf in zip(self.worlds, leaves, strict=True):
                world.frame[value] = leaf
            values.append(value)
            return handle

        flat = [leaves_of(r) for r in results]
        if len({len(f) for f in flat}) > 1:
            kind = Untraceable if call.dynamic else ValueError
            raise kind(
                f"{call.op_name}: the number of its results depends on a size that is not known while the function is "
                "traced. Hint: give the number, or the size in the signature."
            )
        handles = [value_of(*leaves) for leaves in zip(*flat, strict=True)]
        call.places = [k for k, leaf in enumerate(flat[0]) if is_value(leaf)]
        given = iter(handles)
        out = map_leaves(lambda _: next(given), first_of(results))
        node.results = tuple(values)
        self.nodes.append(node)
        recording: Any = self
        while recording is not None:
            recording.dynamic = recording.dynamic or call.dynamic
            recording.draws = recording.draws or call.draws
            recording.needs_trace = recording.needs_trace or call.function in NEED_TRACE
            recording = recording.outer
        return composites.together(out)

    def _of_any_size(self, error: Exception, call: Call) -> None:
        """Removes the trial sizes from the text of an error: numbers that differ between worlds become None."""
        texts = [str(error)]
        for world in self.worlds:
            try:
                world.run(call)
            except Exception as e:
                texts.append(str(e))
        numbers = [_NUMBER.findall(t) for t in texts]
        if len({len(n) for n in numbers}) > 1:  # the call cannot be repeated, as on a used-up tape
            made_up = {str(world.sample) for world in self.worlds}
            shown = iter(["None" if n in made_up else n for n in numbers[0]])
        else:
            shown = iter([n[0] if len(set(n)) == 1 else "None" for n in zip(*numbers, strict=True)])
        set_message(error, _NUMBER.sub(lambda _: next(shown), texts[0]))

    def fill(self, world: World) -> None:
        """Replays all calls so far in a new world."""
        for value in self.inputs:
            if value not in world.frame:
                world.admit(value)  # type: ignore[arg-type]
        for node in self.nodes:
            results, _ = world.outcome(node.op)
            leaves = leaves_of(results)
            world.frame.update((v, leaves[k]) for v, k in zip(node.results, node.op.places, strict=True))

    def take_over(self, created: Any, args: tuple, kwargs: dict) -> None:
        """Makes a tape or TensorArray that is being created part of this recording; see `TAKEN_OVER`."""
        TAKEN_OVER[type(created)](created, args, kwargs)

    # ---- variables ----------------------------------------------------------------------------

    def read(self, variable: Any) -> Any:
        recording: Any = self
        while recording is not None and has_gaps(variable):
            recording.varies = True
            recording = recording.outer
        return self.call(_read, (variable,), {})

    def assign(self, variable: Any, tensor: Any) -> None:
        self.call(_assign, (variable, tensor), {})
        self.assigned[id(variable)] = variable

    def symbol_for(self, tensor: Any) -> Any:
        return tensor

    def _known_now(self, tensor: Any) -> Any:
        needed = {tensor._symbol}
        chosen: list[Node] = []
        alike: list[Recorded] = []  # operands whose shape is enough, as for tf.zeros_like
        for node in reversed(self.nodes):
            if not needed.isdisjoint(node.results):
                chosen.append(node)
                function = node.op.function
                by_shape = isinstance(function, _core.Op) and function.row.pattern == "nothing"
                for v in cast(tuple[Recorded, ...], node.operands):
                    if by_shape and v.static is not None and None not in v.static:
                        alike.append(v)
                    else:
                        needed.add(v)
        if not needed <= {v for node in chosen for v in node.results}:
            raise KeyError(tensor)
        with aside():
            frame = Frame()
            frame.update((v, ops.zeros(v.static, dtypes.BY_CODE[v.dtype])) for v in alike)
            make_calls(chosen[::-1], frame)
            return frame[tensor._symbol]

    # ---- replaying ----------------------------------------------------------------------------

    @property
    def result(self) -> Any:
        """What the function returned, with a `Place` for each value of this recording."""
        return self._result

    @result.setter
    def result(self, nest: Any) -> None:
        self._result = map_leaves(self.place_of, nest)

    def replay(self, arguments: Sequence[Any], outer: Frame | None = None) -> Frame:
        """Makes the calls again for other arguments: symbolic tensors, or concrete ones, with programs where possible."""
        frame = Frame(outer)
        frame.update(zip(self.inputs, arguments, strict=True))
        try:
            if _core.current_trace() is not None:
                make_calls(self.nodes, frame)
            else:
                for step in self.steps:
                    if isinstance(step, Segment):
                        step.run(frame)
                    else:
                        make_calls((step,), frame)
        finally:
            for tape in reversed(frame.opened):
                tape.__exit__(None, None, None)
        return frame

    @property
    def steps(self) -> list[Segment | Node]:
        """How the recording runs on tensors."""
        count, steps = self._steps
        if count != len(self.nodes) or any(type(s) is Segment and s.misfit for s in steps):
            steps = split(self.nodes, self.result, self.draws or self.needs_trace, self.engine)
            if self.needs_trace and len(steps) > 1:
                raise UnimplementedError(
                    None,
                    None,
                    "tf.gradients: in this function sizes depend on values, so it is not one graph. Hint: tf.GradientTape.",
                )
            self._steps = len(self.nodes), steps
        return steps


def _as_tensors(argument: Any) -> Any:
    """Converts objects with `__tf_tensor__`, such as GPflow's parameters, by calls of their own, because
    classes are not stored."""
    if type(argument) in (list, tuple):
        return type(argument)(map(_as_tensors, argument))
    convert = getattr(type(argument), "__tf_tensor__", None)
    if convert is None or not composites.is_value(argument) or isinstance(argument, IndexedSlices):
        return argument  # stays sparse: only the call may know the number of rows
    return convert(argument)


class Part(Recording):
    """The recording of a branch, a loop body, or a function that is an argument."""

    __slots__ = ()

    def write(self, f: Callable[[], Any]) -> Any:
        """Runs a function and records its calls as part of this recording."""
        with aside(self):
            return f()

    def run(self, arguments: Sequence[Any], frame: Frame) -> Any:
        """The results for these arguments, within a frame of the enclosing recording."""
        trace = _core.current_trace()
        if frame.world is None or trace is None:
            inner = self.replay(arguments, frame)
        else:  # call by call, so that nothing but ops runs on made-up values
            world = frame.world.inside(frame, trace)
            inner = world.frame
            inner.update(zip(self.inputs, arguments, strict=True))
            self.fill(world)
        return composites.together(map_leaves(lambda leaf: in_frame(leaf, inner), self.result))

    def in_world(self, world: World) -> Any:
        """The results in a world of the enclosing recording."""
        inner = next((w for w in self.worlds if w.outer is world), None)
        if inner is None:
            inner = World(world.which, world)
            self.fill(inner)
        return map_leaves(lambda leaf: in_frame(leaf, inner.frame), self.result)


class Routine(Bindable):
    """A user function passed to a library function; it is recorded when it is first called."""

    def __init__(self, recording: Recording, function: Callable) -> None:
        self._recording = recording
        self.function = function
        self._parts: dict[Any, tuple[Part, Any]] = {}  # by the structure of the arguments and their types

    def within(self, frame: Frame) -> BoundRoutine:
        """The function, while the enclosing recording is replayed."""
        return BoundRoutine(self, frame)

    def parts(self) -> list:
        return [part for part, _ in self._parts.values()]

    def part_for(self, args: tuple, kwargs: dict) -> Part:
        """Its recording for arguments of this kind."""
        given = leaves_of((args, kwargs))
        key = tuple((x.dtype._code, len(x._dims)) if isinstance(x, _core.Tensor) else id(x) for x in given)
        entry = self._parts.get(key)
        if entry is None:
            entry = self._parts[key] = (self._recorded(args, kwargs), given)
        return entry[0]

    def _recorded(self, args: tuple, kwargs: dict) -> Part:
        part = Part(self._recording)
        samples = {w.sample for w in part.worlds}

        def argument(leaf: Any) -> Any:
            if not isinstance(leaf, _core.Tensor):
                return leaf
            return part.argument(tuple(None if d in samples else d for d in leaf._dims), leaf.dtype._code)

        arguments = map_leaves(argument, (args, kwargs))

        def call() -> Any:
            given, named = composites.together(arguments)
            return above.autograph.conv(self.function)(*given, **named)

        with random.fresh_streams():
            result = part.write(call)
        part.result = result
        return part


class BoundRoutine:
    """A routine and the frame that it is called in."""

    def __init__(self, routine: Routine, frame: Frame) -> None:
        self.routine, self.frame = routine, frame
        functools.update_wrapper(self, routine.function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tensors = [x for x in leaves_of((args, kwargs)) if isinstance(x, _core.Tensor)]
        return self.routine.part_for(args, kwargs).run(tensors, self.frame)

    def result_shapes(self, *args: Any) -> list[Static]:
        """The static shapes of the tensors that it returns."""
        return [v.static for v in values_in(self.routine.part_for(args, {}).result)]


def is_routine(leaf: Any) -> bool:
    """Whether an argument of a call is a user function, which calls the library itself."""
    if isinstance(leaf, (types.FunctionType, types.MethodType, functools.partial)):
        return True
    return isinstance(leaf, BoundRoutine)


# Functions that call a user function unrecorded, each time the recording runs: `tf.py_function`.
RUN_PYTHON: set[Any] = set()

# Functions that read the graph that they are part of: `tf.gradients`.
NEED_TRACE: set[Any] = set()

# By class: how a new tape or TensorArray becomes an object of the recording.
TAKEN_OVER: dict[type, Callable[[Any, tuple, dict], None]] = {}


# ---- calls that recordings add------------------------------------------------------------------------


def _read(variable: Any) -> Any:
    return variable._read()


def _assign(variable: Any, tensor: Any) -> None:
    variable._set(tensor)


def enter_tape(tape: Any) -> None:
    """The beginning of a tape's context, as a recorded call."""
    tape.__enter__()


OPENERS.add(enter_tape)


def exit_tape(tape: Any) -> None:
    """The end of a tape's context, as a recorded call."""
    tape.__exit__(None, None, None)


def suspend_tape(tape: Any) -> None:
    """The beginning of `tape.stop_recording()`, as a recorded call."""
    tape._stop()


def resume_tape(tape: Any) -> None:
    """The end of `tape.stop_recording()`, as a recorded call."""
    tape._start()


def reset_tape(tape: Any) -> None:
    """`tape.reset()`, as a recorded call."""
    tape.reset()


def _tape_in(world: World, call: Call) -> tuple[Any, Any]:
    """The tape or accumulator that a call refers to, and the tape that records for it."""
    opened = world.frame[call.args[0].value]
    return opened, opened if isinstance(opened, _core.Tape) else opened._tape


def _enter_in(world: World, call: Call) -> None:
    # The tape records only while a call is made in its world.
    opened, tape = _tape_in(world, call)
    if call.function is enter_tape:
        with world.scope():
            opened.__enter__()
            tape._stop()
    world.tapes.append(tape)


def _exit_in(world: World, call: Call) -> None:
    _, tape = _tape_in(world, call)
    world.tapes = [t for t in world.tapes if t is not tape]


def _reset_in(world: World, call: Call) -> None:
    _, tape = _tape_in(world, call)
    if not any(t is tape for t in world.tapes):
        raise ValueError("Tape is not recording.")
    tape._forget()


def _read_in(world: World, call: Call) -> Any:
    variable = in_frame(call.args[0], world.frame)
    with world.scope():
        value = variable._read()
    return world.of_declared_shape(value, variable.shape) if has_gaps(variable) else value


def _assign_in(world: World, call: Call) -> None:
    variable = in_frame(call.args[0], world.frame)
    tensor = in_frame(call.args[1], world.frame)
    shape = tuple(variable._value_shape)
    if isinstance(tensor, _core.Tensor) and tensor._dims != shape and variable.shape.is_fully_defined():
        tensor = world.fresh(shape, tensor.dtype._code, [tensor])  # it will fit when the function runs
    with world.scope():
        variable._set(tensor)


IN_WORLDS.update({_read: _read_in, _assign: _assign_in})
IN_WORLDS.update(
    {
        enter_tape: _enter_in,
        resume_tape: _enter_in,
        exit_tape: _exit_in,
        suspend_tape: _exit_in,
        reset_tape: _reset_in,
    }
)


def as_operand(value: Any, dtype: Any) -> Any:
    """A value as a tensor, of this type if it is a number."""
    if isinstance(value, _core.Variable):
        return value._read()
    return value if isinstance(value, _core.Tensor) else conversion.convert(value, dtype._code)
