"""What a recording consists of: calls of library functions, and the values that they take and return.

A call is stored as it was made: the function, and its arguments with a `Place` for each value among them. Arguments and
results are nests: lists, tuples, dicts, slices, and composite tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape import _core
from gradtape._src.base import composites, nest
from gradtape._src.base.composites import Parts
from gradtape._src.base.errors import InaccessibleTensorError
from gradtape._src.graph.ir import Graph, Node, Value

Static = tuple[int | None, ...] | None  # a shape with None for unknown sizes; None if the rank is unknown


class Place:
    """The placeholder of a value in the arguments of a call."""

    __slots__ = ("value",)

    def __init__(self, value: Recorded) -> None:
        self.value = value


class Recorded(Value):
    """A value of a recording. Its shape may be partly unknown; it may also be a tape or a TensorArray."""

    __slots__ = ("static", "unknown_rank", "source", "variable")

    def __init__(
        self,
        graph: Graph,
        static: Static,
        dtype: int,
        node: Node | None = None,
        source: Recorded | None = None,
    ) -> None:
        super().__init__(graph, static or (), dtype, node)  # type: ignore[arg-type]
        self.source = source  # of a loop variable: its value before the loop
        self.variable: Any = None  # of an argument that is a variable: its proxy in worlds
        self.static = static
        self.unknown_rank = static is None

    def trace(self, op: Any, operands: tuple, results: tuple, attrs: tuple) -> None:
        raise InaccessibleTensorError()


class Bindable:
    """An argument that is bound anew in each frame: a function that reads values of the enclosing recording."""

    function: Callable

    def within(self, frame: Frame) -> Any:
        raise NotImplementedError

    def parts(self) -> list:
        """The recordings that it contains."""
        return []


# Functions that open a tape; the end of the recording closes it if it is still open.
OPENERS: set[Any] = set()

# Arguments that are leaves, not nests.
_PLAIN = frozenset((_core.Tensor, _core.Variable, int, float, bool, str, type(None)))


class Call:
    """The op of a node: a function of the library and its arguments, with a `Place` for each value."""

    row = None
    effect = True

    def __init__(self, function: Callable, args: tuple, kwargs: dict) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.flat = not kwargs and all(type(a) is Place or type(a) in _PLAIN for a in args)
        self._has_parts = not self.flat and composites.has_parts([*args, *kwargs.values()])
        self.opens = function in OPENERS
        self.dynamic = False  # sizes of the results depend on values
        self.draws = False  # random numbers
        self.numbered: Any = None  # its random ops, as the graph numbers them: `random.Numbered`
        self.refitted = False  # retried: an operand of unknown rank has another rank than in the first world
        self.places: list[int] = []  # of the values among the leaves of the result

    @property
    def op_name(self) -> str:
        return str(getattr(self.function, "op_name", None) or getattr(self.function, "__name__", "call"))

    def inner(self) -> list:
        """The recordings inside: branches, loop bodies, user functions."""
        leaves = leaves_of((self.args, self.kwargs))
        return [part for leaf in leaves if isinstance(leaf, Bindable) for part in leaf.parts()]

    def make(self, frame: Frame) -> Any:
        """Makes the call with the values of a frame."""
        if self.flat:
            return self.function(*[frame[a.value] if type(a) is Place else a for a in self.args])
        args, kwargs = self.given(frame)
        return self.function(*args, **kwargs)

    def given(self, frame: Frame) -> tuple[tuple, dict]:
        """The arguments with the values of a frame."""
        given = map_leaves(lambda leaf: in_frame(leaf, frame), (self.args, self.kwargs))
        return composites.together(given) if self._has_parts else given


class Frame(dict):
    """The values of a recording while it is replayed, with a link to the frame of the enclosing recording."""

    def __init__(self, outer: Frame | None = None) -> None:
        super().__init__()
        self.outer = outer
        # See `worlds.World`; None while the recording runs on real values.
        self.world: Any = None if outer is None else outer.world
        self.opened: list[Any] = []  # tapes, some of which may be closed again

    def __missing__(self, value: Recorded) -> Any:
        if self.outer is None:
            raise InaccessibleTensorError()
        return self.outer[value]


def in_frame(leaf: Any, frame: Frame) -> Any:
    """What a leaf of arguments or results is in a frame."""
    if type(leaf) is Place:
        return frame[leaf.value]
    if isinstance(leaf, Bindable):
        return leaf.within(frame)
    value = recorded_value(leaf)
    return leaf if value is None else frame[value]


# ---- nests ----------------------------------------------------------------------------------------


def map_leaves(f: Callable[[Any], Any], value: Any) -> Any:
    """`value` with `f(leaf)` for each leaf, in lists, tuples, dicts, slices, and composite tensors.

    Composite tensors stay in parts: a composite tensor cannot be built from places.
    """
    kind = type(value)
    if kind is tuple:
        return tuple([map_leaves(f, v) for v in value])
    if kind is list:
        return [map_leaves(f, v) for v in value]
    if kind is dict:
        return {k: map_leaves(f, v) for k, v in value.items()}
    if kind is slice:
        return slice(f(value.start), f(value.stop), f(value.step))
    if isinstance(value, (_core.Tensor, _core.Variable)) or kind is Place:
        return f(value)
    if composites.is_value(value):
        value = Parts.of(value)
    if isinstance(value, Parts):
        return Parts(value.spec, [map_leaves(f, v) for v in value.parts])
    if nest.is_nested(value):
        flat = [map_leaves(f, v) for v in nest.flatten(value)]
        return nest.pack_sequence_as(value, flat)
    return f(value)


def first_of(results: Sequence[Any]) -> Any:
    """The first of several nests of one structure; specs of composite tensors are generalised to cover all of them."""
    if not composites.has_composites(results[0]):
        return results[0]
    return composites.unified([composites.apart(r) for r in results])[0]


def leaves_of(value: Any) -> list:
    """The leaves of a nest."""
    out: list = []

    def note(leaf: Any) -> Any:
        out.append(leaf)
        return leaf

    map_leaves(note, value)
    return out


def values_in(value: Any) -> list[Recorded]:
    """The values whose places are in a nest."""
    return [leaf.value for leaf in leaves_of(value) if type(leaf) is Place]


def recorded_value(leaf: Any) -> Recorded | None:
    """The value that a leaf stands for in a recording."""
    value = leaf._symbol if isinstance(leaf, _core.Tensor) else getattr(leaf, "_recorded", None)
    return value if isinstance(value, Recorded) else None


def is_symbolic(leaf: Any) -> bool:
    """Whether a leaf of arguments or results has no value yet."""
    if type(leaf) is Place:
        return True
    return (isinstance(leaf, _core.Tensor) and leaf._symbol is not None) or hasattr(
        type(leaf), "_as_recorded"
    )


def has_gaps(leaf: Any) -> bool:
    """Whether a leaf of arguments is a variable whose shape may differ in the next run."""
    return isinstance(leaf, _core.Variable) and not leaf.shape.is_fully_defined()


def is_value(leaf: Any) -> bool:
    """Whether a leaf of results becomes a value of the recording."""
    return isinstance(leaf, _core.Tensor) or hasattr(type(leaf), "_as_recorded")


def join_shapes(shapes: Sequence[Static]) -> Static:
    """The most specific shape that covers all of these."""
    if None in shapes or len({len(s) for s in shapes if s is not None}) > 1:
        return None
    known = [s for s in shapes if s is not None]
    return tuple(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*known, strict=True))
