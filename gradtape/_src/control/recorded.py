"""Branches and loops in a recording (`graph/recording.py`): each branch and loop body is a recording of its own.

When the recording runs on concrete tensors, Python takes the branch or repeats the loop; on symbolic ones `control.py`
traces them. In a world, where only shapes are inferred, all branches are tried, and a loop body once: a size that differs
between them is unknown.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import errors, nest
from gradtape._src.base.dtypes import DIFFERENTIABLE
from gradtape._src.base.shape import TensorShape
from gradtape._src.control import values
from gradtape._src.control.control_ops import spec_of, zeros
from gradtape._src.control.recorded_arrays import ArraySketch
from gradtape._src.control.tensor_array import TensorArray
from gradtape._src.graph.calls import (
    Bindable,
    Call,
    Frame,
    first_of,
    in_frame,
    leaves_of,
    map_leaves,
    recorded_value,
)
from gradtape._src.graph.ir import Callback, is_symbolic
from gradtape._src.graph.recording import Part, Recording
from gradtape._src.graph.segments import read_from_outside
from gradtape._src.graph.worlds import World
from gradtape._src.tensors.conversion import as_tensor, leaf_of

# ---- branches -----------------------------------------------------------------------------------


class BranchCall(Call):
    """A choice between parts."""

    def __init__(self, which: Any, parts: list[Part], name: str, traced: Callable) -> None:
        super().__init__(traced, (which,), {})
        self.parts = parts
        self.name = name
        self.reads: dict[int, tuple[list, list]] = {}  # by id of a part: see `_read_by`

    @property
    def op_name(self) -> str:
        return self.name

    def inner(self) -> list:
        return self.parts

    def make(self, frame: Frame) -> Any:
        which = in_frame(self.args[0], frame)
        functions = [functools.partial(p.run, (), frame) for p in self.parts]
        if not is_symbolic(which):
            at = int(which) if 0 <= int(which) < len(functions) else len(functions) - 1
            return _tied(functions[at](), self, [p for k, p in enumerate(self.parts) if k != at], frame)
        labels = [str(k) for k in range(len(functions))]

        def join(results: list) -> list:
            return [values.choose(None, column, labels) for column in zip(*results, strict=True)]

        return self.function(which, functions, join, self.name)

    def in_world(self, world: World) -> Any:
        results = [p.in_world(world) for p in self.parts]
        return _joined(world, results)


def branch(
    recording: Recording,
    which: Any,
    functions: Sequence[Callable[[], list]],
    join: Callable[[list], list],
    name: str,
    traced: Callable,
) -> list:
    """A choice in a recording; `traced` makes it in a trace."""
    parts = [Part(recording) for _ in functions]
    pairs = list(zip(parts, functions, strict=True))
    results = values.each_branch(which, lambda pair: list(pair[0].write(pair[1])), pairs)
    merged = join(values.alike(results, lambda k, f: parts[k].write(f)))
    for k, part in enumerate(parts):
        leaves = [x for m in merged if isinstance(m, values.Choice) for x in m.tensors[k]]
        part.result = part.write(functools.partial(_carried, leaves))
    given = iter(recording.note(BranchCall(recording.place_of(which), parts, name, traced)))
    return [
        m.rebuild([next(given) for _ in m.tensors[0]]) if isinstance(m, values.Choice) else m for m in merged
    ]


def _carried(leaves: list) -> list:
    return [x if isinstance(x, TensorArray) else as_tensor(x) for x in leaves]


# ---- loops --------------------------------------------------------------------------------------


class LoopCall(Call):
    """A loop: its variables before it, and the parts that test and step."""

    def __init__(
        self,
        init: list,
        names: Sequence[str] | None,
        test: Part,
        step: Part,
        iterates: bool,
        traced: Callable,
    ) -> None:
        super().__init__(traced, (init,), {})
        self.names, self.test, self.step, self.iterates = names, test, step, iterates
        self.reads: dict[int, tuple[list, list]] = {}  # by id of a part: see `_read_by`

    op_name = "while"

    def inner(self) -> list:
        return [self.test, self.step]

    def make(self, frame: Frame) -> Any:
        state = map_leaves(lambda leaf: in_frame(leaf, frame), self.args[0])

        def test(current: list) -> Any:
            return self.test.run(self._given(current), frame)[0]

        def step(current: list) -> list:
            return self.step.run(self._given(current), frame)

        if _core.current_trace() is not None:
            try:
                return self.function(state, self.names, test, step, self.iterates)
            except values.ShapeVaries as e:
                raise errors.Untraceable(f"while: {e}") from e
        if not bool(test(state)):
            self._check_defined(state)
            return _tied(state, self, [self.step], frame)
        while True:
            state = step(state)
            if not bool(test(state)):
                return state

    def _check_defined(self, state: list) -> None:
        """Raises if the loop did not iterate, but had to initialize variables."""
        first = [k for k, v in enumerate(state) if v is values.UNDEFINED and self.step.result[k] is not v]
        names = [self.names[k] for k in first if self.names and values.INTERNAL not in self.names[k]]
        if names:
            raise errors.InvalidArgumentError(None, None, values.not_iterated(names))

    def _given(self, state: list) -> list:
        """The values of the variables that were defined before the loop."""
        start = self.args[0]
        return [
            x
            for before, value in zip(start, state, strict=True)
            if before is not values.UNDEFINED and before is not None
            for x in _changing(value)
        ]

    def in_world(self, world: World) -> Any:
        start = map_leaves(lambda leaf: in_frame(leaf, world.frame), self.args[0])
        after = self.step.in_world(world)
        out = []
        for before, then in zip(start, after, strict=True):
            if before is values.UNDEFINED or before is None:
                out.append(_joined(world, [then, then]))
            else:
                out.append(_joined(world, [before, then]))
        return out


def loop(
    recording: Recording,
    init: Sequence[Any],
    names: Sequence[str] | None,
    test: Callable[[list], Any],
    body: Callable[[list], Sequence[Any]],
    iterates: bool,
    invariants: Sequence[Any] | None,
    predicate: Callable[[Any, str], Any],
    traced: Callable,
) -> list:
    """A loop in a recording; `traced` makes it in a trace.

    `invariants`: for each value None or a nest of shapes.
    """
    start = [_begun(v) for v in init]
    shapes = _shapes(start, invariants)
    step, tester = Part(recording), Part(recording)
    result = _write(recording, step, start, shapes, body)
    result = _checked(start, result, shapes, names, step)
    step.result = result
    tester.result = _write(
        recording, tester, start, shapes, lambda state: [predicate(test(state), "while loop")]
    )
    call = LoopCall(map_leaves(recording.place_of, start), names, tester, step, iterates, traced)
    return recording.note(call)


def _write(recording: Recording, part: Part, start: list, shapes: list, f: Callable[[list], Any]) -> Any:
    """Runs a step of the loop on variables of the given shapes."""
    at = iter(shapes)

    def variable(leaf: Any) -> Any:
        if isinstance(leaf, TensorArray):
            next(at)
            return part.argument((), -1, recorded_value(leaf))
        if isinstance(leaf, _core.Tensor):
            return part.argument(next(at), leaf.dtype._code, recorded_value(leaf))
        return leaf

    state = [map_leaves(variable, v) for v in start]
    return part.write(lambda: f(state))


def _begun(value: Any) -> Any:
    """A variable before the loop: its numbers as tensors."""
    if value is values.UNDEFINED or value is None:
        return value

    def leaf(x: Any) -> Any:
        kind = values.kind_of(x)
        return as_tensor(x) if kind == "tensor" or isinstance(x, _core.Variable) else x

    return nest.map_structure(leaf, value) if nest.is_nested(value) else leaf(value)


def _changing(value: Any) -> list:
    return [x for x in leaves_of(value) if isinstance(x, (_core.Tensor, TensorArray))]


def _shapes(start: list, invariants: Sequence[Any] | None) -> list:
    shapes: list = []
    for k, value in enumerate(start):
        if value is values.UNDEFINED or value is None:
            continue
        given = None if invariants is None else invariants[k]
        declared = [None] * len(_changing(value)) if given is None else nest.flatten(given)
        for leaf, shape in zip(_changing(value), declared, strict=True):
            shapes.append(_static(leaf) if shape is None else _as_static(shape, leaf))
    return shapes


def _as_static(shape: Any, leaf: Any) -> Any:
    shape = getattr(shape, "shape", shape)
    shape = shape if isinstance(shape, TensorShape) else TensorShape(shape)
    if isinstance(leaf, _core.Tensor) and not shape.is_compatible_with(leaf.shape):
        raise ValueError(
            f"The shape invariant specified for {leaf!r} is not compatible with the initial shape of the loop variable. "
            f"It enters the loop with shape {leaf.shape}, but the specified shape invariant is {shape}."
        )
    return None if shape.rank is None else tuple(shape.as_list())


def _static(leaf: Any) -> Any:
    if not isinstance(leaf, _core.Tensor):
        return None
    value = recorded_value(leaf)
    return leaf._dims if value is None else value.static


def _checked(
    start: list, result: Sequence[Any], shapes: list, names: Sequence[str] | None, step: Part
) -> list:
    """The result of an iteration; it must have the kinds and shapes that the loop began with."""
    at = iter(shapes)
    out = []
    for k, (before, after) in enumerate(zip(start, result, strict=True)):
        name = names[k] if names else None
        if before is values.UNDEFINED or before is None:
            out.append(step.write(functools.partial(_begun, after)))
            continue
        values.check_structure(before, after, name or f"loop_vars[{k}]", names is not None)
        flat = []
        for a, b in zip(nest.flatten(before), nest.flatten(after), strict=True):
            if not isinstance(a, (_core.Tensor, TensorArray)):
                values.check_same(a, b, name, k)
                flat.append(a)
                continue
            shape = next(at)
            if isinstance(a, TensorArray):
                flat.append(b)
                continue
            b = step.write(functools.partial(values.fitting_type, a, b, name))
            have = _static(b)
            if not _is_within(have, shape):
                values.refuse_shape(a, TensorShape(shape), TensorShape(have), name)
            flat.append(b)
        out.append(nest.pack_sequence_as(before, flat) if nest.is_nested(before) else flat[0])
    return out


def _is_within(have: Any, shape: Any) -> bool:
    if shape is None:
        return True
    return (
        have is not None
        and len(have) == len(shape)
        and all(s is None or h == s for h, s in zip(have, shape, strict=True))
    )


# ---- paths not taken ----------------------------------------------------------------------------


class _Tied(Callback):
    """A result, made dependent on the values that other paths read: in TensorFlow it depends on these, too,
    with gradients of zero."""

    passes_on = True

    def __init__(self) -> None:
        super().__init__("tied", lambda value, *others: [value._detach()])

    def __call__(self, operands: Sequence[Any], specs: Sequence[tuple]) -> list:
        results = super().__call__(operands, specs)
        kinds = [spec_of(x) for x in operands[1:]]
        _core.record(tuple(results), tuple(operands), lambda g: [g, *map(zeros, kinds)])
        return results


def _tied(results: Any, call: Any, others: Sequence[Part], frame: Frame) -> Any:
    """The results of a branch or a loop. For tapes around the recording they depend on what the other parts read.

    The recording's own tapes know the dependencies of any run (`tapes/recorded.py`).
    """
    own = _own_tapes(frame)
    recording = _core.recording_tapes()
    inner = tuple(t for t in recording if id(t) in own)
    around = tuple(t for t in recording if id(t) not in own)
    if not around and _core.current_trace() is None:
        return results
    for p in others:
        if id(p) not in call.reads:
            call.reads[id(p)] = _read_by(p)
    read_by = [call.reads[id(p)] for p in others]
    values_read = dict.fromkeys(v for found, _ in read_by for v in found)
    variables = {id(v): v for _, found in read_by for v in found}
    with _core.Scope(recording=False, tapes=around):
        read = [*(frame[v] for v in values_read), *(v._read() for v in variables.values())]

    def tie(leaf: Any) -> Any:
        if not isinstance(leaf, _core.Tensor) or leaf.dtype._code not in DIFFERENTIABLE:
            return leaf
        with _core.Scope(recording=False, tapes=around):
            (tied,) = _Tied()([leaf, *read], [spec_of(leaf)])
        if not inner:
            return tied
        with _core.Scope(recording=False, tapes=inner):
            untied = ops.identity(leaf)
        # A tensor has one record, so it gets both operands: each tape follows the one that it knows.
        with _core.Scope(recording=False):
            both = ops.identity(tied)
        _core.record((both,), (tied, untied), lambda g: [g, g])
        return both

    return map_leaves(tie, results) if read else results


def _read_by(part: Part) -> tuple[list, list]:
    """The values and the variables that a part reads and that can have a gradient."""
    read = [v for v in read_from_outside(part) if v.dtype in DIFFERENTIABLE]
    return read, [v for v in _variables_in(part) if v.dtype._code in DIFFERENTIABLE]


def _own_tapes(frame: Frame | None) -> set[int]:
    """The tapes of a recording that runs, by id."""
    ids: set[int] = set()
    while frame is not None:
        ids.update(id(t if isinstance(t, _core.Tape) else t._tape) for t in frame.opened)
        frame = frame.outer
    return ids


def _variables_in(part: Any) -> list:
    """The variables among the arguments of the calls of a part, at any depth."""
    variables: list = []
    for node in part.nodes:
        leaves = leaves_of((node.op.args, node.op.kwargs))
        variables += [v for v in map(leaf_of, leaves) if isinstance(v, _core.Variable)]
        routines = [leaf for leaf in leaves if isinstance(leaf, Bindable)]
        inner = [*node.op.inner(), *(p for routine in routines for p in routine.parts())]
        variables += [v for p in inner for v in _variables_in(p)]
    return variables


# ---- in worlds ----------------------------------------------------------------------------------


def _joined(world: World, results: list) -> Any:
    """The common result of several branches: a size that differs between them is unknown."""

    def join(*leaves: Any) -> Any:
        first = leaves[0]
        if isinstance(first, ArraySketch):
            return first.joined(leaves[1:])
        if not isinstance(first, _core.Tensor):
            return first
        ranks = {len(x._dims) for x in leaves}
        dims: tuple = (world.sample,)
        if len(ranks) == 1:
            dims = tuple(
                d[0] if len(set(d)) == 1 else world.sample
                for d in zip(*[x._dims for x in leaves], strict=True)
            )
        elif world.which:
            dims = (world.sample,) * 2
        return world.fresh(dims, first.dtype._code, leaves)

    flat = [leaves_of(r) for r in results]
    joined = iter([join(*leaves) for leaves in zip(*flat, strict=True)])
    return map_leaves(lambda _: next(joined), first_of(results))
