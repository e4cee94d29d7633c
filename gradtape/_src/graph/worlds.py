"""Worlds: the calls of a recording at one choice of its unknown sizes, which tells the shapes of their results.

A world is an ordinary trace. A call that cannot be made there because a size depends on values is made on made-up values
instead. A call that fails because a size does not fit is tried with other sizes, see `_choices`.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base.dtypes import DIFFERENTIABLE
from gradtape._src.base.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    UnimplementedError,
    Untraceable,
)
from gradtape._src.base.shape import TensorShape
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
from gradtape._src.graph.sketch import sketch
from gradtape._src.graph.trace import NeverRun, Trace
from gradtape._src.tensors import conversion

# The sizes of the two worlds: many divisors, and rarely those of a program. Constants have as many elements as they
# have in a program, so sizes are small where a shape has many gaps: (most gaps, sizes).
_SAMPLES = (3, (60, 84)), (4, (12, 24)), (5, (6, 12)), (12, (2, 3))
_MOST_ELEMENTS = 1 << 26  # of made-up values
_SAMPLE_RANKS = (1, 2)
_MOST_TRIALS = 1000  # choices of sizes that are tried for a call
# What a call raises whose sizes or values do not fit. Anything else is a mistake, or the end of memory: nobody tries on.
_DOES_NOT_FIT = (
    InvalidArgumentError,
    FailedPreconditionError,
    OutOfRangeError,
    UnimplementedError,
    Untraceable,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
)
_STYLES = 4  # kinds of made-up values, see `_example`


class World:
    """The function at one choice of its unknown sizes: a trace in which every call is tried."""

    def __init__(self, which: int, outer: World | None = None, gaps: int = 0) -> None:
        self.which = which
        self.outer = outer
        self.sample: int = (
            next(sizes for most, sizes in _SAMPLES if gaps <= most)[which] if outer is None else outer.sample
        )
        self.trace: Trace = NeverRun() if outer is None else outer.trace
        self.own_trace: Trace = self.trace if outer is None else outer.own_trace
        self.frame: Frame = Frame(None if outer is None else outer.frame)
        self.frame.world = self
        self.tapes: list[Any] = [] if outer is None else list(outer.tapes)

    def inside(self, frame: Frame, trace: Trace) -> World:
        """This world for a function that the library calls now: in a trace of its own perhaps, on tapes of its own."""
        inner = World(self.which, self)
        inner.frame.outer, inner.trace, inner.tapes = frame, trace, list(_core.recording_tapes())
        return inner

    def shape_of(self, static: Static) -> tuple[int, ...]:
        """A shape with the sample of this world in its gaps."""
        if static is None:
            static = (None,) * _SAMPLE_RANKS[self.which]
        return tuple(self.sample if d is None else d for d in static)

    def admit(self, value: Recorded) -> None:
        """Gives this world a value that is an argument."""
        source = None if value.source is None else self.frame[value.source]
        if value.variable is not None:
            self.frame[value] = value.variable
        elif value.dtype < 0:
            assert source is not None
            self.frame[value] = source.in_any_iteration()
        else:
            self.frame[value] = self.fresh(self.shape_of(value.static), value.dtype, [source])

    def fresh(
        self, dims: tuple[int, ...], dtype: int, inputs: Sequence[Any] = (), linear: bool = False
    ) -> Any:
        """A tensor of this world that comes from `inputs` in a way that is not followed.

        Its gradients are such tensors too: of the cotangent alone if the way is `linear`.
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
        """A tensor with the sample of this world wherever a declared shape leaves a size open."""
        dims = self.shape_of(None if declared.rank is None else tuple(declared.as_list()))
        return x if x._dims == dims else self.fresh(dims, x.dtype._code, [x], linear=True)

    def scope(self) -> Any:
        self.tapes = [t for t in self.tapes if t._stage != "used"]
        return _core.Scope(recording=False, trace=self.trace, tapes=tuple(self.tapes))

    def outcome(self, call: Call) -> tuple[Any, bool]:
        """The results of a call, with other sizes if those of this world do not fit; whether sizes depend on values."""
        if call.refitted:
            with contextlib.suppress(LookupError):
                return self.with_other_sizes(call)
        try:
            return self.run(call)
        except (InvalidArgumentError, ValueError) as error:
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
        if hasattr(call, "in_world"):
            return call.in_world(self), False
        try:
            with self.scope():
                results = call.make(self.frame)
            return (self._cut_short(call, results) if call.function is operator.getitem else results), False
        except Untraceable as e:
            try:
                return self._like(self._sampled(call, self.frame), self._inputs(call)), True
            except LookupError:
                pass
            try:
                return self.with_other_sizes(call)
            except LookupError:
                raise e from None

    def _cut_short(self, call: Call, part: Any) -> Any:
        """A slice of a tensor, which may be shorter where the tensor is: `x[:2]` has two rows, one, or none."""
        value = call.args[0].value if type(call.args[0]) is Place else None
        if value is None or None not in (value.static or ()):
            return part
        if self.which == 0:
            call.dims_before = part._dims
            return part
        frame = Frame(self.frame)
        frame[value] = self.fresh(tuple(d or 0 for d in value.static or ()), value.dtype)
        try:
            with self.scope():
                least = call.make(frame)._dims
        except _DOES_NOT_FIT:
            return part  # it has no place for that
        dims = tuple(
            self.sample if d == before != shortest else d
            for d, before, shortest in zip(part._dims, call.dims_before, least, strict=True)
        )
        return part if dims == part._dims else self.fresh(dims, value.dtype, [part], linear=True)

    def _sampled(self, call: Call, frame: Frame) -> Any:
        """The results of a call on made-up values of the shapes that are in a frame."""
        if any(callable(leaf) or isinstance(leaf, Bindable) for leaf in leaves_of((call.args, call.kwargs))):
            raise LookupError(
                "functions of the user's must not see made-up values: they may assign, print, draw"
            )
        if sum(frame[v]._numel for v in values_in((call.args, call.kwargs)) if v.dtype >= 0) > _MOST_ELEMENTS:
            raise LookupError("made-up values would take too much memory")
        for style in range(_STYLES):
            examples = Frame()
            for v in values_in((call.args, call.kwargs)):
                x = frame[v]
                if v.variable is not None:
                    with self.scope():
                        x = x._read()
                examples[v] = self._example(x, style) if isinstance(x, _core.Tensor) else x
            try:
                with _core.Scope(recording=False, trace=None):
                    return call.make(examples)
            except Untraceable:
                raise
            except _DOES_NOT_FIT:
                continue
        raise LookupError("no made-up values fit the call")

    def _inputs(self, call: Call) -> list:
        """Everything that the results of a call may depend on."""
        with self.scope():
            given = [in_frame(leaf, self.frame) for leaf in leaves_of((call.args, call.kwargs))]
            return [conversion.read(x) for x in given]

    def _like(self, results: Any, inputs: list, linear: bool = True) -> Any:
        """Tensors of this world with the shapes of results."""

        def fresh(t: Any) -> Any:
            if not isinstance(t, _core.Tensor):
                return t
            return self.fresh(t._dims, t.dtype._code, inputs, linear)

        return map_leaves(fresh, results)

    def with_other_sizes(self, call: Call) -> tuple[Any, bool]:
        """The results of a call that does not fit the sizes of this world, on operands that it does fit.

        As in TensorFlow that says nothing about the operands themselves: they keep the sizes that they have.

        Returns:
          The results, and whether their sizes depend on values.

        Raises:
          LookupError: if no sizes fit.
        """
        values = [v for v in values_in((call.args, call.kwargs)) if v.variable is None]
        if type(call) is not Call or any(v.dtype < 0 for v in values):
            raise LookupError("a tape knows its own tensors only")
        for shapes in itertools.islice(_choices(self, call, values), _MOST_TRIALS):
            outcome = self._with_shapes(call, values, shapes)
            if outcome is not None:
                results, dynamic = self._least_changed(call, values, shapes, outcome)
                return (self._like(results, self._inputs(call)) if dynamic else results), dynamic
        raise LookupError("no sizes fit the call")

    def _with_shapes(self, call: Call, values: list[Recorded], shapes: list) -> tuple[Any, bool] | None:
        """The results of a call on operands of these shapes, and whether their sizes depend on values; None if they
        do not fit."""
        frame = Frame(self.frame)
        frame.update((v, self._resized(v, s)) for v, s in zip(values, shapes, strict=True))
        try:
            try:
                with self.scope():
                    return call.make(frame), False
            except Untraceable:
                return self._sampled(call, frame), True
        except _DOES_NOT_FIT:
            return None

    def _resized(self, value: Recorded, dims: tuple[int, ...]) -> Any:
        """What a value is in this world, in another shape. Derivatives pass, so what depends on what is found as ever."""
        x = self.frame[value]
        return x if x._dims == dims else self.fresh(dims, value.dtype, [x], linear=True)

    def _least_changed(
        self, call: Call, values: list[Recorded], shapes: list, outcome: Any
    ) -> tuple[Any, bool]:
        """The outcome with every size put back that need not differ from those of this world: what is left is known."""
        for i, value in enumerate(values):
            for k, d in enumerate(value.static or ()):
                if d is None and shapes[i][k] != self.sample:
                    less = [(*s[:k], self.sample, *s[k + 1 :]) if i == j else s for j, s in enumerate(shapes)]
                    found = self._with_shapes(call, values, less)
                    if found is not None:
                        shapes, outcome = less, found
        return outcome

    def _example(self, x: Any, style: int) -> Any:
        if x._symbol is None:
            return x
        kind = x.dtype.as_numpy_dtype
        n = x._numel
        if x.dtype.name == "bool":
            data = np.ones(n, bool)
            data[:1] = self.which == 0
        elif x.dtype.is_integer:
            at = np.arange(n)
            if style == 1:
                data = np.full(n, 1 + self.which)
            elif style == 2:
                data = (at == n - 1) & (self.which == 1)
            elif not x._dims or style == 3:
                data = np.full(n, self.sample)
            else:
                data = at + 1 if self.which == 0 else (at + 1) // 2 + 2
        else:
            data = np.arange(1, n + 1) / n
        return conversion.convert(np.reshape(data, x._dims).astype(kind))


class _NotFollowed(Callback):
    """What a tensor of a world comes from, for `tf.gradients`, which reads the graph. It never runs."""

    def __init__(self, world: World, linear: bool) -> None:
        super().__init__("any", None)
        self._world, self._linear = world, linear

    def __call__(self, operands: Sequence[Any], specs: Sequence[tuple]) -> list:
        return [self._world._fresh(dims, dtype, operands, self._linear) for dims, dtype in specs]


def _choices(world: World, call: Call, values: list[Recorded]) -> Iterator[list[tuple[int, ...]]]:
    """Shapes for operands with gaps, the likeliest first: one size is another one, all of an axis are, or two are."""
    shapes = [list(world.shape_of(v.static)) for v in values]
    gaps = [(i, k) for i, v in enumerate(values) for k, d in enumerate(v.static or ()) if d is None]
    likely, derived = _plausible_sizes(world, call)
    sizes = (*likely, *derived)
    columns: dict[int, list] = {}
    for i, k in gaps:
        columns.setdefault(k - len(shapes[i]), []).append((i, k))
    changes = itertools.chain(
        _of_size(values, gaps, call),
        _aligned(world, values, gaps, call),
        ({gap: n} for gap in gaps for n in sizes),
        (dict.fromkeys(of_axis, n) for of_axis in columns.values() for n in sizes),
        ({a: n, b: m} for j, a in enumerate(gaps) for b in gaps[:j] for n in likely for m in likely),
    )
    for change in changes:
        yield [tuple(change.get((i, k), d) for k, d in enumerate(s)) for i, s in enumerate(shapes)]
    unknown = [i for i, v in enumerate(values) if v.static is None]
    for like in _of_any_rank(world, call, likely) if unknown else ():
        yield [like if i in unknown else tuple(s) for i, s in enumerate(shapes)]


def _of_any_rank(world: World, call: Call, likely: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Shapes of operands of unknown rank: any sizes, with those of another shape in front or behind."""
    ends = [(), *((n,) for n in likely), *_shapes_among(world, call), *_shapes_of(world, call)]
    # Each world begins at another end: a rank that both of them find is the only one.
    for rank in range(4, -1, -1) if world.which else range(5):
        for end in dict.fromkeys(ends):
            if len(end) <= rank:
                more = (world.sample,) * (rank - len(end))
                yield from dict.fromkeys(((*more, *end), (*end, *more)))


def _aligned(world: World, values: list[Recorded], gaps: list[tuple[int, int]], call: Call) -> Iterator[dict]:
    """Sizes with which all operands have the shape of one of them, as element-wise ops want it."""
    for shape in _shapes_of(world, call):
        if world.sample not in shape:
            yield {
                (i, k): shape[k - len(values[i].static or ())]
                for i, k in gaps
                if len(values[i].static or ()) - k <= len(shape)
            }


def _of_size(values: list[Recorded], gaps: list[tuple[int, int]], call: Call) -> Iterator[dict]:
    """Sizes with which an operand has as many elements as a shape among the arguments: `reshape(x, [2, 3])`."""
    for shape in (*call.args, *call.kwargs.values()):
        if isinstance(shape, (list, tuple)) and shape and all(type(d) is int for d in shape):
            count = math.prod(shape)
            for i, v in enumerate(values):
                mine = [gap for gap in gaps if gap[0] == i]
                known = math.prod(d for d in v.static or () if d is not None)
                if mine and known and count > 0 and count % known == 0:
                    yield {**dict.fromkeys(mine, 1), mine[0]: count // known}


def _shapes_among(world: World, call: Call) -> list[tuple[int, ...]]:
    """The arguments that are shapes: `ensure_shape(x, [None, 3])`."""
    given = [
        s.as_list() if isinstance(s, TensorShape) and s.rank is not None else s
        for s in (*call.args, *call.kwargs.values())
    ]
    lists = [s for s in given if isinstance(s, (list, tuple)) and all(type(d) is int or d is None for d in s)]
    return [tuple(world.sample if d in (None, -1) else d for d in s) for s in lists]


def _shapes_of(world: World, call: Call) -> list[tuple[int, ...]]:
    """The shapes of everything that a call is given."""
    given = leaves_of((call.args, call.kwargs))
    shapes = [world.frame[v]._dims for v in values_in((call.args, call.kwargs)) if v.dtype >= 0]
    shapes += [x._dims for x in given if isinstance(x, _core.Tensor)]
    within = [world.frame[x.value] if type(x) is Place else x for x in given]
    variables = [conversion.leaf_of(x) for x in within]  # Keras has variables of its own
    shapes += [tuple(v._value_shape) for v in variables if isinstance(v, _core.Variable)]
    return shapes + [x.shape for x in given if isinstance(x, np.ndarray)]


def _plausible_sizes(world: World, call: Call) -> tuple[list[int], list[int]]:
    """What an unknown size may have to be for a call to fit: as large as another one; or such that it becomes so."""
    given = leaves_of((call.args, call.kwargs))
    shapes = _shapes_of(world, call)
    lengths = [len(x) for x in (*call.args, *call.kwargs.values()) if isinstance(x, (list, tuple))]
    dims = list(dict.fromkeys(d for shape in shapes for d in shape))
    wanted = [d for d in dims if d != world.sample]
    wanted += [1, *lengths, *(x for x in given if type(x) is int and 0 < x < world.sample)]
    wanted = list(dict.fromkeys(n for n in wanted if n > 0))
    sizes: dict[int, None] = {}
    for d in dims:
        for n in wanted:
            if d and n * world.sample % d == 0:
                sizes.setdefault(n * world.sample // d)
            sizes.setdefault(n + world.sample - d)
    sizes.update(dict.fromkeys(n * world.sample for n in wanted))
    return wanted, [n for n in sizes if n > 0 and n not in wanted]


# Calls that worlds make in a way of their own.
IN_WORLDS: dict[Any, Callable[[World, Call], Any]] = {}
