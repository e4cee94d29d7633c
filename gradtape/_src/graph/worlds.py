"""Worlds: the calls of a recording at one choice of its unknown sizes, to infer the shapes of their results.

A world is an ordinary trace. A call that cannot be traced because a size depends on values is made on made-up
values instead. A call that fails because a size does not fit is tried with other sizes, see `graph/sizes.py`.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import composites
from gradtape._src.base.composites import Parts, map_parts
from gradtape._src.base.dtypes import BY_CODE, DIFFERENTIABLE
from gradtape._src.base.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
    Untraceable,
)
from gradtape._src.base.shape import TensorShape
from gradtape._src.graph import made_up
from gradtape._src.graph.calls import (
    Bindable,
    Call,
    Frame,
    Place,
    Recorded,
    Static,
    in_frame,
    leaves_of,
    map_leaves,
    values_in,
)
from gradtape._src.graph.ir import Callback, symbolic
from gradtape._src.graph.sizes import Wanted
from gradtape._src.graph.sketch import sketch
from gradtape._src.graph.trace import NeverRun, Trace
from gradtape._src.tensors import conversion, random

# The sizes of the two worlds: they have many divisors and rarely occur in programs. Constants have as many
# elements as in a program, so sizes are small if a shape has many gaps: (most gaps, sizes).
_SAMPLES = (3, (60, 84)), (4, (12, 24)), (5, (6, 12)), (12, (2, 3))
_FEWER = (
    (6, 7, 8),
    (9, 10, 11),
)  # instead of these, on made-up values: the first that does not occur in the call
_SAMPLE_RANKS = (1, 3)
_SAMPLE_RANKS_OF_INTEGERS = (2, 1)  # indices differ in rank from what they index
_SMALL = (7, 5, 3, 1, 1)  # sizes of the last axes of small operands, see `World.doubted`
_ONE = (1,)
_NOTHING = (0,)
_MOST_ELEMENTS = 5_000_000  # of results on made-up values
_OTHER_SIZES: tuple[tuple[int, ...], ...] = ((), (3, 2, 1))  # for sizes that are not determined
_MOST_TRIALS = 1000  # of one call
_TRIALS_WITH_VALUES = 4  # a trial with made-up values counts as so many
# What a call raises if it does not fit the sizes of a world.
MISFITS = (InvalidArgumentError, FailedPreconditionError, ValueError)
# What a call raises if sizes or values do not fit. Anything else is a mistake, or out of memory, and ends the trials.
_DOES_NOT_FIT = (
    *MISFITS,
    OutOfRangeError,
    UnimplementedError,
    Untraceable,
    TypeError,
    LookupError,
    ArithmeticError,
)


class World:
    """The function at one choice of its unknown sizes: a trace in which every call is tried."""

    def __init__(self, which: int, outer: World | None = None, gaps: int = 0) -> None:
        self.which = which
        self.outer = outer
        self.sample: int = (
            next(sizes for most, sizes in _SAMPLES if gaps <= most)[which] if outer is None else outer.sample
        )
        self.trace: Trace = NeverRun(self.sample, _SAMPLE_RANKS[which]) if outer is None else outer.trace
        self.own_trace: Trace = self.trace if outer is None else outer.own_trace
        self.frame: Frame = Frame(None if outer is None else outer.frame)
        self.frame.world = self
        self.fewer = min(_FEWER[which][0], self.sample)
        self.trials = 0  # of calls that did not fit, so far
        self._numbers = 0  # how many random ops precede the call that is being tried
        self.tapes: list[Any] = [] if outer is None else list(outer.tapes)

    def inside(self, frame: Frame, trace: Trace) -> World:
        """This world while the library calls a user function, which may have its own trace and tapes."""
        inner = World(self.which, self)
        inner.frame.outer, inner.trace, inner.tapes = frame, trace, list(_core.recording_tapes())
        return inner

    def shape_of(self, static: Static) -> tuple[int, ...]:
        """A shape with the trial sizes of this world in place of unknown ones."""
        if static is None:
            static = (None,) * _SAMPLE_RANKS[self.which]
        return tuple(self.sample if d is None else d for d in static)

    def admit(self, value: Recorded) -> None:
        """Adds an argument to this world."""
        source = None if value.source is None else self.frame[value.source]
        if value.variable is not None:
            self.frame[value] = value.variable
        elif value.dtype < 0:
            assert source is not None
            self.frame[value] = source.in_any_iteration()
        else:
            static = value.static
            if static is None and BY_CODE[value.dtype].is_integer:
                static = (None,) * _SAMPLE_RANKS_OF_INTEGERS[self.which]
            self.frame[value] = self.fresh(self.shape_of(static), value.dtype, [source])

    def fresh(
        self, dims: tuple[int, ...], dtype: int, inputs: Sequence[Any] = (), linear: bool = False
    ) -> Any:
        """A tensor of this world that depends on `inputs` in an unspecified way.

        Its gradients are such tensors too; if the dependency is `linear`, they depend on the cotangent only.
        """
        with self.scope():
            if self.trace is self.own_trace:
                return self._fresh(dims, dtype, inputs, linear)
            return sketch(dims, dtype, inputs, linear)

    def _fresh(self, dims: tuple[int, ...], dtype: int, inputs: Sequence[Any], linear: bool) -> Any:
        inputs = [x for x in inputs if isinstance(x, _core.Tensor) and x.dtype._code in DIFFERENTIABLE]
        if not (inputs and dtype in DIFFERENTIABLE):
            return symbolic(self.trace.input(dims, dtype))
        values = [self.trace.value_of(x) for x in inputs]
        tensor = symbolic(self.trace.add(_NotFollowed(self, linear), values, (), [(dims, dtype)])[0])
        if not _core.recording_tapes():
            return tensor

        def rule(g: Any) -> list:
            after = [g] if linear else [g, *inputs]
            return [self._fresh(x._dims, x.dtype._code, after, linear) for x in inputs]

        _core.record((tensor,), tuple(inputs), rule)
        return tensor

    def of_declared_shape(self, x: Any, declared: TensorShape) -> Any:
        """A tensor with this world's sample size wherever a declared shape leaves a size open."""
        dims = self.shape_of(None if declared.rank is None else tuple(declared.as_list()))
        return x if x._dims == dims else self.fresh(dims, x.dtype._code, [x], linear=True)

    def scope(self) -> Any:
        self.tapes = [t for t in self.tapes if t._stage != "used"]
        return _core.Scope(recording=False, trace=self.trace, tapes=tuple(self.tapes))

    def outcome(self, call: Call) -> tuple[Any, bool]:
        """The results of a call, with other sizes if those of this world do not fit; whether sizes depend on values."""
        self._numbers = self.own_trace.random_ops
        if call.refitted:
            with contextlib.suppress(LookupError):
                return self.with_other_sizes(call)
        try:
            return self.run(call)
        except MISFITS as error:
            try:
                outcome = self.with_other_sizes(call)
            except LookupError:
                raise error from None
        call.refitted = any(v.static is None for v in values_in((call.args, call.kwargs)))
        return outcome

    def run(self, call: Call) -> tuple[Any, bool]:
        """The results of a call, and whether their sizes depend on values."""
        own = IN_WORLDS.get(call.function)
        if own is not None:
            return own(self, call), False
        if getattr(call.function, "runs_later", False) and values_in((call.args, call.kwargs)):
            return None, False  # an assertion about values that this world does not have
        if hasattr(call, "in_world"):
            return call.in_world(self), False
        try:
            with self.scope():
                results = call.make(self.frame)
            return results, False
        except Untraceable as e:
            try:
                return self._sampled(call, self.frame), True
            except LookupError:
                pass
            try:
                return self.with_other_sizes(call)
            except LookupError:
                raise e from None

    def doubted(self, call: Call, before: Any, results: Any) -> Any:
        """The results of a call in this world, with other sizes where they equal those of the first world by chance.

        `x[:2]` has two rows, one, or none; `squeeze(x)` has another rank where a size is 1; an image of unknown sizes that
        is resized with its aspect ratio preserved need not be square. So the call is made once more, on small operands.
        """
        values = dict.fromkeys(values_in((call.args, call.kwargs)))
        if not any(None in (v.static or ()) for v in values) or not self._may_be_repeated(call):
            return results
        sizes = _NOTHING if call.function is operator.getitem else _SMALL
        frame = Frame(self.frame)
        for v in values:
            static = v.static
            if static is not None:
                given = _ONE if static.count(None) == 1 and sizes is _SMALL else sizes
                from_end = [max(k - len(static), -len(given)) for k in range(len(static))]
                dims = (given[k] if d is None else d for k, d in zip(from_end, static, strict=True))
                frame[v] = self._resized(v, tuple(dims))
        try:
            with self.scope():
                small = leaves_of(call.make(frame))
        except _DOES_NOT_FIT:
            return results  # the call fails on small operands
        firsts = leaves_of(before)
        if len(small) != len(firsts):
            return results
        others = zip(firsts, small, strict=True)

        def doubt(x: Any) -> Any:
            first, other = next(others)
            tensors = isinstance(x, _core.Tensor) and isinstance(other, _core.Tensor)
            if not tensors or len(first._dims) != len(x._dims):
                return x
            if len(x._dims) != len(other._dims):
                return self.fresh(other._dims, x.dtype._code, [x], linear=True)
            axes = zip(x._dims, first._dims, other._dims, strict=True)
            dims = tuple(self.sample if d == e != o else d for d, e, o in axes)
            return x if dims == x._dims else self.fresh(dims, x.dtype._code, [x], linear=True)

        return map_leaves(doubt, results)

    def _may_be_repeated(self, call: Call) -> bool:
        """Whether a call has no effect but its results, whose shape need not be that of an operand."""
        row = getattr(call.function, "row", None)
        if type(call) is not Call or call.dynamic or (row is not None and row.kind == "elementwise"):
            return False
        leaves = leaves_of((call.args, call.kwargs))
        variables = any(isinstance(conversion.leaf_of(x), _core.Variable) for x in leaves)
        objects = any(
            type(x) is Place and (x.value.dtype < 0 or x.value.variable is not None) for x in leaves
        )
        functions = any(callable(x) or isinstance(x, Bindable) for x in leaves)
        return not (variables or objects or functions) and call.function not in IN_WORLDS

    def _sampled(self, call: Call, frame: Frame) -> Any:
        """The results of a call on made-up values with the shapes in a frame, but fewer elements.

        Raises:
          LookupError: if none fit.
        """
        if any(callable(leaf) or isinstance(leaf, Bindable) for leaf in leaves_of((call.args, call.kwargs))):
            raise LookupError(
                "user functions must not see made-up values: they may assign, print, draw random numbers"
            )
        values = dict.fromkeys(values_in((call.args, call.kwargs)))
        given = [frame[v] for v in values] + leaves_of((call.args, call.kwargs))
        shapes = [x._dims for x in given if isinstance(x, _core.Tensor)]
        numbers = {d for dims in shapes for d in dims} | {x for x in given if type(x) is int}
        self.fewer = min(next((n for n in _FEWER[self.which] if n not in numbers), self.fewer), self.sample)
        counts = [math.prod(self._fewer_dims(dims)) for dims in shapes]
        candidates = [n for n in (*counts, *numbers) if 0 < n * max(counts, default=1) <= _MOST_ELEMENTS]
        self.trials += _TRIALS_WITH_VALUES
        results = []
        numbered = random.Numbered(self._numbers)  # nothing is drawn from the program's own streams
        for n in dict.fromkeys((self.fewer, *candidates)):
            for style in range(made_up.STYLES):
                examples = Frame()
                examples.update((v, self._example(frame[v], style, k, n)) for k, v in enumerate(values))
                _make_fit(call, examples, style)
                try:
                    with _core.Scope(recording=False, trace=None), numbered.scope():
                        results.append(call.make(examples))
                except Untraceable:
                    raise
                except (*_DOES_NOT_FIT, ResourceExhaustedError):  # made-up values may be sizes
                    continue
        if not results:
            raise LookupError("no made-up values fit the call")
        call.draws = bool(numbered.ops)
        self.own_trace.random_ops = numbered.next_number
        return self._in_common(results, self._inputs(call))

    def _in_common(self, results: list, inputs: list) -> Any:
        """Tensors of this world with the properties that all results on made-up values share."""
        if composites.has_composites(results[0]):
            apart = composites.unified([composites.apart(f) for f in results])
            return composites.together(self._in_common(apart, inputs))
        flat = list(map(leaves_of, results))
        columns = iter(zip(*[f for f in flat if len(f) == len(flat[0])], strict=True))

        def fresh(leaf: Any) -> Any:
            column = next(columns)
            if not isinstance(leaf, _core.Tensor):
                return leaf
            shapes = [t._dims for t in column]
            rank = (min, max)[self.which](map(len, shapes))
            axes = zip(*[s for s in shapes if len(s) == rank], strict=True)
            dims = (d[0] if len(set(d)) == 1 and d[0] != self.fewer else self.sample for d in axes)
            return self.fresh(tuple(dims), leaf.dtype._code, inputs, linear=True)

        return map_leaves(fresh, results[0])

    def _inputs(self, call: Call) -> list:
        """All values that the results of a call may depend on."""
        with self.scope():
            given = [in_frame(leaf, self.frame) for leaf in leaves_of((call.args, call.kwargs))]
            return [
                conversion.read(x if conversion.leaf_of(x) is None else conversion.leaf_of(x)) for x in given
            ]

    def with_other_sizes(self, call: Call) -> tuple[Any, bool]:
        """The results of a call that does not fit the sizes of this world, on operands that it fits.

        As in TensorFlow, this does not constrain the operands themselves: their static sizes stay unknown.

        Returns:
          The results, and whether their sizes depend on values.

        Raises:
          LookupError: if no sizes fit.
        """
        if type(call) is not Call or any(v.dtype < 0 for v in _tensors_in(call)):
            raise LookupError("a tape knows its own tensors only")
        sizes = Wanted(call, self.frame, self.sample, downwards=self.which == 1)
        most = self.trials + _MOST_TRIALS
        for shapes in itertools.takewhile(lambda _: self.trials < most, sizes.choices()):
            outcome = self._with_shapes(call, sizes.values, shapes)
            if outcome is not None:
                return self._least_changed(call, sizes.values, shapes, outcome)
        return self._with_other_values(call), True

    def _with_other_values(self, call: Call) -> Any:
        """The results of a call that rejects the values of operands in this world, such as those of `tf.shape(x)`."""
        frame = Frame(self.frame)
        for v in _tensors_in(call):
            x = self.frame[v]
            if x._symbol is None:
                frame[v] = self.fresh(x._dims, v.dtype)
        if not frame:
            raise LookupError("no sizes fit the call")
        return self._sampled(call, frame)

    def _with_shapes(self, call: Call, values: list[Recorded], shapes: list) -> tuple[Any, bool] | None:
        """The results of a call on operands of these shapes, and whether their sizes depend on values; None
        if they
        do not fit."""
        frame = Frame(self.frame)
        frame.update((v, self._resized(v, s)) for v, s in zip(values, shapes, strict=True))
        self.trials += 1
        self.own_trace.random_ops = self._numbers
        try:
            try:
                with self.scope():
                    return call.make(frame), False
            except Untraceable:
                return self._sampled(call, frame), True
        except _DOES_NOT_FIT:
            return None

    def _resized(self, value: Recorded, dims: tuple[int, ...]) -> Any:
        """A value of this world in another shape. Derivatives pass through, so dependencies are found as before."""
        x = self.frame[value]
        return x if x._dims == dims else self.fresh(dims, value.dtype, [x], linear=True)

    def _least_changed(
        self, call: Call, values: list[Recorded], shapes: list, outcome: Any
    ) -> tuple[Any, bool]:
        """The outcome after every size that can be reset to this world's sample is reset: those that remain are known.

        A size that cannot be reset, but may have several values, gets a different one in the other world.
        """
        for i, value in enumerate(values):
            for k, d in enumerate(value.static or ()):
                if d is not None or shapes[i][k] == self.sample:
                    continue
                for size in (self.sample, *_OTHER_SIZES[self.which]):
                    less = [(*s[:k], size, *s[k + 1 :]) if i == j else s for j, s in enumerate(shapes)]
                    better = self._with_shapes(call, values, less)
                    if better is not None:
                        shapes, outcome = less, better
                        break
        return outcome

    def _example(self, x: Any, style: int, place: int, count: int) -> Any:
        """Made-up values for a tensor of this world."""
        if isinstance(x, _core.Variable):
            with self.scope():
                x = x._read()
        if not isinstance(x, _core.Tensor):
            return x
        if x._symbol is None:
            return self._with_fewer(x)
        return made_up.values(self._fewer_dims(x._dims), x.dtype, style, place, count)

    def _fewer_dims(self, dims: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(d // self.sample * self.fewer if d % self.sample == 0 else d for d in dims)

    def _with_fewer(self, x: Any) -> Any:
        """Integers that may be sizes of this world, changed to match operands with fewer elements."""
        if not x.dtype.is_integer:
            return x
        data = x.numpy()
        multiple = data % self.sample == 0
        return conversion.convert(
            np.where(multiple, data // self.sample * self.fewer, data).astype(data.dtype)
        )


def _make_fit(call: Call, examples: Frame, style: int) -> None:
    """Changes made-up tensors that are components of one value so that they fit together, if the spec knows how."""

    def fit(value: Parts) -> Parts:
        made_up_parts = getattr(value.spec, "_made_up", None)
        if made_up_parts is not None:
            places = [p.value if type(p) is Place else None for p in value.parts]
            given = [p if v is None else examples[v] for p, v in zip(value.parts, places, strict=True)]
            parts = made_up_parts(given, [v is None for v in places], style)
            examples.update((v, x) for v, x in zip(places, parts, strict=True) if v is not None)
        return value

    map_parts(fit, (call.args, call.kwargs))


def _tensors_in(call: Call) -> list[Recorded]:
    return [v for v in values_in((call.args, call.kwargs)) if v.variable is None]


class _NotFollowed(Callback):
    """The dependencies of a tensor of a world, for `tf.gradients`, which reads the graph. It never runs."""

    def __init__(self, world: World, linear: bool) -> None:
        super().__init__("any", None)
        self._world, self._linear = world, linear

    def __call__(self, operands: Sequence[Any], specs: Sequence[tuple]) -> list:
        return [self._world._fresh(dims, dtype, operands, self._linear) for dims, dtype in specs]


# Calls that worlds make in their own way.
IN_WORLDS: dict[Any, Callable[[World, Call], Any]] = {}
