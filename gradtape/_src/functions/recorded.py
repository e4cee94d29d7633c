"""One trace of a function for all sizes: a recording (`graph/recording.py`) and what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import nest
from gradtape._src.base.shape import TensorShape
from gradtape._src.control import recorded as _control  # noqa: F401  takes over arrays
from gradtape._src.functions.control_flow import numpy_function, output_spec, py_function
from gradtape._src.graph.calls import Call, Frame, in_frame, map_leaves
from gradtape._src.graph.recording import RUN_PYTHON, Recording
from gradtape._src.graph.segments import Segment
from gradtape._src.graph.worlds import IN_WORLDS, World
from gradtape._src.tapes import recorded as _tapes  # noqa: F401  takes over tapes
from gradtape._src.tensors import conversion


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
    """A trace whose sizes are not known."""

    placeholders: Sequence[Any] = ()

    def __init__(self, recording: Recording, result: Any, flat: list) -> None:
        self.recording = recording
        self._single = not nest.is_nested(result)
        self._structure = result
        recording.result = flat
        recording.close()

    def call(self, tensors: list) -> Any:
        """Runs the recording on the tensors among its arguments."""
        flat = self._results(self.recording.replay(tensors))
        if _core.is_recording():
            # To a tape around it, a function is one op: its results do not depend on one another.
            flat = [map_leaves(_passed_on, x) for x in flat]
        return flat[0] if self._single else nest.pack_sequence_as(self._structure, flat)

    @property
    def programs(self) -> list:
        """The programs that were made so far."""
        return [p for step in self.recording.steps if isinstance(step, Segment) for p in step.programs]

    def program_for(self, tensors: list) -> Any:
        """The program for tensors of these sizes.

        Raises:
          ValueError: if there are several because sizes depend on values.
        """
        frame = Frame()
        frame.update(zip(self.recording.inputs, tensors, strict=True))
        steps = self.recording.steps
        program = steps[0].program_for(frame) if len(steps) == 1 and isinstance(steps[0], Segment) else None
        if program is None:
            raise ValueError(
                "sizes in this function depend on values, so it runs as several programs. Hint: call it, and then "
                "`pretty()` without arguments shows those that were made."
            )
        return program

    def _results(self, frame: Frame) -> list:
        return [map_leaves(lambda leaf: in_frame(leaf, frame), x) for x in self.recording.result]


def _passed_on(leaf: Any) -> Any:
    return ops.identity(leaf) if isinstance(leaf, _core.Tensor) and _core.is_tracked(leaf) else leaf
