"""`tf.GradientTape` in a recording (`graph/recording.py`): its methods are calls, made when the recording runs."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import nest
from gradtape._src.graph import recording
from gradtape._src.graph.calls import Call, Frame, Recorded, has_gaps, in_frame, map_leaves
from gradtape._src.graph.trace import current_recording
from gradtape._src.graph.worlds import World
from gradtape._src.tapes import symbolic
from gradtape._src.tapes.tape import GradientTape
from gradtape._src.tensors import conversion
from gradtape._src.tensors.indexed_slices import IndexedSlices

_OUTSIDE = "a tape was made while a function was traced, and is used outside of it."


class RecordedTape(GradientTape):
    """A tape that a recorded function opens: every world, and every run, opens its own."""

    _recorded: Recorded

    def __init__(self, value: Recorded) -> None:
        self._recorded = value

    def __enter__(self) -> RecordedTape:
        note_call(recording.enter_tape, self)
        return self

    def __exit__(self, *_: Any) -> None:
        note_call(recording.exit_tape, self)

    def gradient(self, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        return note_derivative(sources, GradientTape.gradient, self, target, sources, *args, **kwargs)

    def jacobian(self, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        return note_derivative(sources, GradientTape.jacobian, self, target, sources, *args, **kwargs)

    def reset(self) -> None:
        note_call(recording.reset_tape, self)

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        note_call(recording.suspend_tape, self)
        try:
            yield
        finally:
            note_call(recording.resume_tape, self)


class DerivativeCall(Call):
    """A call of `gradient` or `jvp`, whose results have the types that the recording expects.

    A derivative that exists on one path through the function is zero in a run that takes another path.
    """

    like: list = []  # what each derivative has the shape of
    kinds: list = []  # Tensor, IndexedSlices, or NoneType; empty while the call is recorded

    def make(self, frame: Frame) -> Any:
        results = super().make(frame) if frame.world is None else self._tried(frame)
        flat = nest.flatten(results)
        if frame.world is not None:
            flat = self._of_declared_shapes(flat, frame.world)
        elif [type(g) for g in flat] == self.kinds:
            return results
        if self.kinds:
            like = self._like_in(frame)
            flat = [_of_kind(*column) for column in zip(self.kinds, flat, like, strict=True)]
        return nest.pack_sequence_as(results, flat) if nest.is_nested(results) else flat[0]

    def _like_in(self, frame: Frame) -> list:
        return [in_frame(x, frame) for x in self.like]

    def _tried(self, frame: Frame) -> Any:
        """The call in a world, where cotangents of known size must match made-up sizes."""
        args, kwargs = self.given(frame)
        if self.function is GradientTape.gradient:
            kwargs = inspect.signature(GradientTape.gradient).bind(*args, **kwargs).arguments
            args = (kwargs.pop("self"),)
            if kwargs.get("output_gradients") is not None:
                kwargs["output_gradients"] = fitted(frame.world, kwargs["target"], kwargs["output_gradients"])
        return self.function(*args, **kwargs)

    def _of_declared_shapes(self, given: list, world: World) -> list:
        """Derivatives in a world, for variables whose shape has unknown sizes."""
        return [
            world.of_declared_shape(g, x.shape) if has_gaps(x) and type(g) is _core.Tensor else g
            for g, x in zip(given, [in_frame(x, world.frame) for x in self.like], strict=True)
        ]


class JacobianCall(DerivativeCall):
    """A call of `jacobian`: its results have the shapes of target and source together."""

    def _like_in(self, frame: Frame) -> list:
        target = in_frame(self.args[1], frame)
        return [ops.zeros([*target.shape, *x.shape], x.dtype) for x in super()._like_in(frame)]

    def _of_declared_shapes(self, given: list, world: World) -> list:
        return given


def fitted(world: World, like: Any, given: Any) -> Any:
    """Cotangents or tangents as a world has them: of the shapes of `like`, some of which are made up there."""

    def fit(x: Any, tensor: Any) -> Any:
        if tensor is None or isinstance(tensor, IndexedSlices):
            return tensor
        dims = tuple(x.shape)
        tensor = recording.as_operand(tensor, x.dtype)
        unlike = [
            d for d, n in zip(tensor._dims, dims, strict=False) if d != n and world.sample not in (d, n)
        ]
        if tensor._dims == dims or len(tensor._dims) != len(dims) or unlike:
            return tensor
        return world.fresh(dims, tensor.dtype._code, [tensor], linear=True)

    flat = [fit(x, t) for x, t in zip(nest.flatten(like), nest.flatten(given), strict=False)]
    return nest.pack_sequence_as(given, flat) if len(flat) == len(nest.flatten(given)) else given


def _of_kind(kind: type, g: Any, like: Any) -> Any:
    if type(g) is kind:
        return g
    if kind is type(None):
        _want_nothing(conversion.densify(g))
        return None
    dense = ops.zeros_like(like) if g is None else conversion.densify(g)
    if kind is _core.Tensor:
        return dense
    return IndexedSlices(dense, conversion.convert(np.arange(dense.shape[0])), ops.shape(dense))


def _want_nothing(g: Any) -> None:
    """Checks that a derivative which was None in the trace is zero now: a loop yields zeros for everything inside it.

    Only tensors with values are checked."""
    if g._symbol is None and g.numpy().any():
        raise RuntimeError(
            "a derivative exists in this run that the trace of the function did not know of; the code after it was traced "
            "with None in its place. This is a bug in gradtape: please report it. Hint: to go on, call "
            "tf.config.run_functions_eagerly(True)."
        )


def note_derivative(like: Any, function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Makes a method of a tape that gives a derivative for each leaf of `like` a call of the recording."""
    trace = current_recording()
    if trace is None:
        raise RuntimeError(_OUTSIDE)
    kind = JacobianCall if function is GradientTape.jacobian else DerivativeCall
    call = kind(function, *map_leaves(trace.place_of, (args, kwargs)))
    call.like = [trace.place_of(x) for x in nest.flatten(like)]
    results = trace.note(call)
    call.kinds = [type(g) for g in nest.flatten(results)]
    return results


def note_call(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Makes a method of a tape a call of the recording that is being written."""
    trace = current_recording()
    if trace is None:
        raise RuntimeError(_OUTSIDE)
    return trace.call(function, args, kwargs)


def _method(name: str) -> Callable:
    function = getattr(GradientTape, name)

    def method(self: RecordedTape, *args: Any, **kwargs: Any) -> Any:
        return note_call(function, self, *args, **kwargs)

    return method


for _name in ("watch", "watched_variables", "batch_jacobian"):
    setattr(RecordedTape, _name, _method(_name))


def _take_over(tape: GradientTape, args: tuple, kwargs: dict) -> None:
    tape.__class__ = RecordedTape
    tape._recorded = note_call(GradientTape, *args)._recorded  # type: ignore[attr-defined]


def _as_recorded(self: GradientTape, value: Recorded) -> RecordedTape:
    tape = RecordedTape.__new__(RecordedTape)
    tape._recorded = value
    return tape


GradientTape._as_recorded = _as_recorded  # type: ignore[attr-defined]
recording.TAKEN_OVER[GradientTape] = _take_over
recording.NEED_TRACE.update((symbolic.gradients, symbolic.hessians))
