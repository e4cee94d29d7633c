"""One trace of a function for all sizes: a recording, and programs for the sizes that come back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape import _core
from gradtape._src.base import nest
from gradtape._src.base.contexts import aside
from gradtape._src.base.errors import Untraceable
from gradtape._src.base.shape import TensorShape
from gradtape._src.control import recorded as _control  # noqa: F401  takes over arrays
from gradtape._src.functions.control_flow import numpy_function, output_spec, py_function
from gradtape._src.graph.calls import Call, Frame, in_frame, map_leaves
from gradtape._src.graph.effects import Draw
from gradtape._src.graph.ir import symbolic
from gradtape._src.graph.recording import RUN_PYTHON, Recording
from gradtape._src.graph.trace import Trace
from gradtape._src.graph.worlds import IN_WORLDS, World
from gradtape._src.tapes import recorded as _tapes  # noqa: F401  takes over tapes
from gradtape._src.tensors import conversion

# Programs of one recording; the one used longest ago is let go of.
_MOST_PROGRAMS = 64
# Sizes that were seen once. They are run without a program: to make one takes longer than many runs.
_MOST_SEEN = 1024
_SEEN: Any = object()


def _python_in(world: World, call: Call) -> Any:
    """What a function of the user's gives in a world, where it is not called: tensors of which the type is known."""

    def results(func: Any = None, inp: Any = None, Tout: Any = None, *_: Any, **__: Any) -> Any:  # noqa: N803
        specs = [output_spec(s) for s in nest.flatten(Tout)]
        shapes = [TensorShape(None if shape is None else shape) for _, shape in specs]
        statics = [None if s.rank is None else tuple(s.as_list()) for s in shapes]
        inputs = [conversion.as_tensor(x) for x in inp or ()]
        flat = [
            world.fresh(world.shape_of(s), kind._code, inputs)
            for (kind, _), s in zip(specs, statics, strict=True)
        ]
        single = not isinstance(Tout, (list, tuple)) or (call.function is numpy_function and len(flat) == 1)
        return flat[0] if single else flat

    with world.scope():
        return Call(results, call.args, call.kwargs).make(world.frame)


IN_WORLDS.update({py_function: _python_in, numpy_function: _python_in})
RUN_PYTHON.update((py_function, numpy_function))


class RecordedFunction:
    """A trace whose sizes are not known.

    Sizes that are new run call by call; when they come back, the calls are traced for them, and a program runs. Sizes
    that depend on values are never known beforehand: then the calls run one by one.
    """

    placeholders: Sequence[Any] = ()

    def __init__(
        self, recording: Recording, result: Any, flat: list, compiled: Callable[[Trace, Any, list, list], Any]
    ) -> None:
        self.recording = recording
        self._single = not nest.is_nested(result)
        self._structure = result
        self._flat = flat
        self._compiled = compiled
        self._programs = _core.Cache(_MOST_PROGRAMS)
        self._seen = _core.Cache(_MOST_SEEN)
        # Random ops of a graph are numbered, which only a trace can do.
        draws = any(isinstance(n.op, Draw) for n in recording.worlds[0].trace.nodes)
        self.compiles_at_once = draws or recording.needs_trace
        recording.close()

    def call(self, tensors: list) -> Any:
        """Runs the recording on the tensors among its arguments."""
        program = self._programs.find(tensors)
        if (
            program is None
            and not self.recording.dynamic
            and (self.compiles_at_once or self._seen.find(tensors))
        ):
            program = self._specialised(tensors)
        if program is not None:
            return program.call(tensors)
        self._seen.add(tensors, True)
        return self._packed(self.recording.replay(tensors))

    @property
    def programs(self) -> list:
        """The programs that were made so far, each for tensors of one size."""
        return self._programs.values()

    def program_for(self, tensors: list) -> Any:
        """The program for tensors of these sizes.

        Raises:
          ValueError: if there is none because sizes depend on values.
        """
        program = self._programs.find(tensors)
        if program is None and not self.recording.dynamic:
            program = self._specialised(tensors)
        if program is None:
            raise ValueError(
                "sizes in this function depend on values, so its calls run one by one: there is no program to look at."
            )
        return program

    def _specialised(self, tensors: list) -> Any:
        """The program for tensors of these sizes; None if there is none."""
        trace = Trace()
        symbols = [symbolic(trace.input(t._dims, t.dtype._code)) for t in tensors]
        try:
            with aside(trace):
                flat = self._results(self.recording.replay(symbols))
                program = self._compiled(trace, None if self._single else self._structure, flat, symbols)
        except Untraceable:
            self.recording.dynamic = True
            return None
        self._programs.add(tensors, program)
        return program

    def _results(self, frame: Frame) -> list:
        return [map_leaves(lambda leaf: in_frame(leaf, frame), x) for x in self._flat]

    def _packed(self, frame: Frame) -> Any:
        flat = self._results(frame)
        return flat[0] if self._single else nest.pack_sequence_as(self._structure, flat)
