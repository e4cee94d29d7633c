"""Datasets inside traced functions: `for` over one, `next` of an iterator, `reduce`.

The loop becomes a loop of the graph, whose steps request the next element from a *feed*. A graph has one shape per
value, so it contains the body once per kind of element: once for full batches, once for the last one. In a
recording (`graph/recording.py`) it appears once, for elements whose spec is known.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.autograph.conversion import conv
from gradtape._src.autograph.operators import if_stmt
from gradtape._src.autograph.options import LoopOptions
from gradtape._src.base import dtypes, errors, nest
from gradtape._src.base.errors import Untraceable
from gradtape._src.base.locks import Numbers
from gradtape._src.base.shape import TensorSpec
from gradtape._src.control import control
from gradtape._src.control.values import ShapeVaries
from gradtape._src.graph.calls import Call, Static, join_shapes
from gradtape._src.graph.ir import Callback
from gradtape._src.graph.trace import current_recording
from gradtape._src.graph.worlds import IN_WORLDS, World
from gradtape.data.base import Run
from gradtape.data.dataset import Dataset
from gradtape.data.iterator import Optional, OwnedIterator
from gradtape.data.structure import is_plain, packer

_INT32, _INT64 = dtypes.int32._code, dtypes.int64._code
_MOST_OPEN = 64  # limit on open iterations, since errors may leave some behind
_END = -1
_numbers = Numbers()


def static_of(spec: TensorSpec) -> Static:
    """The shape of a spec, with unknown sizes."""
    return None if spec.shape.rank is None else tuple(spec.shape.as_list())


class Feed:
    """Passes the elements of a dataset to a graph: opened when a loop starts, read until it ends."""

    def __init__(self, source: Any) -> None:
        dataset = getattr(source, "_dataset", source)
        kinds = dataset._kinds()
        self._source = source
        self._is_dataset = dataset is source
        self.known = kinds is not None and all(map(is_plain, kinds))
        if not self.known and current_recording() is None:
            raise Untraceable("the shapes of the elements of a dataset are only known when it runs")
        self.structures = kinds if self.known else [dataset.element_spec]
        if not all(isinstance(s, TensorSpec) for k in self.structures for s in nest.flatten(k)):
            raise Untraceable("the elements of a dataset are not tensors")
        self._specs = [[(static_of(s), s.dtype._code) for s in nest.flatten(k)] for k in self.structures]
        self._packs = [packer(k) for k in self.structures]
        self._open: OrderedDict[int, list] = OrderedDict()  # by number: the iterator, and the current element

    # ---- in a trace ---------------------------------------------------------------------------------

    def start(self) -> tuple[Any, Any]:
        """The number of a new iteration, and the kind of its first element."""
        number, kind = Callback("dataset", self._start, effect=True)([], [((), _INT64), ((), _INT32)])
        return number, kind

    def element(self, number: Any, kind: int) -> Any:
        """The current element, which is of a known kind."""
        flat = Callback("element", self._take, effect=True)([number], self._specs[kind])
        return self._packs[kind](flat)

    def advance(self, number: Any) -> Any:
        """The kind of the next element."""
        return Callback("next element", self._advance, effect=True)([number], [((), _INT32)])[0]

    def any_element(self, number: Any) -> Any:
        """The current element, as a recorded call."""
        if _core.current_trace() is None:
            return self._packs[0](self._take(number))
        if not self.known or len(self.structures) > 1:
            raise Untraceable("for: the elements of a dataset have different shapes")
        return self.element(number, 0)

    def next(self) -> Any:
        """The next element of an iterator, as a recorded call."""
        if _core.current_trace() is not None:
            return next_element(self._source)
        for element in self._source:
            return element
        raise errors.OutOfRangeError(None, None, "End of sequence")

    def sketch(self, world: World) -> Any:
        """An element in a world, with the sizes that all kinds of elements share."""
        columns = zip(*self._specs, strict=True)
        joined = [(join_shapes([static for static, _ in of]), of[0][1]) for of in columns]
        return self._packs[0]([world.fresh(world.shape_of(static), dtype) for static, dtype in joined])

    # ---- when the graph runs ------------------------------------------------------------------------

    def _start(self) -> list:
        number = next(_numbers)
        elements = self._source._begin_pass() if self._is_dataset else self._source
        self._open[number] = [elements, None]
        while len(self._open) > _MOST_OPEN:
            self._open.popitem(last=False)
        return [_int(number, _INT64), _int(self._fetch(number), _INT32)]

    def _advance(self, number: Any) -> list:
        return [_int(self._fetch(int(number)), _INT32)]

    def _take(self, number: Any) -> list:
        return self._open[int(number)][1]

    def _fetch(self, number: int) -> int:
        run = self._open[number]
        run[1] = None
        for element in run[0]:
            run[1] = nest.flatten(element)
            if not self.known:
                return 0
            specs = [(t._dims, t.dtype._code) for t in run[1]]
            for kind, expected in enumerate(self._specs):
                if specs == expected:
                    return kind
            raise errors.InvalidArgumentError(
                None, None, f"for: an element of a dataset is {specs}; expected one of {self._specs}."
            )
        del self._open[number]
        return _END


# ---- arguments ----------------------------------------------------------------------------------


class DatasetArgument(Dataset):
    """The placeholder of a dataset argument in a trace; each call binds its own dataset."""

    def __init__(self, first: Any) -> None:
        super().__init__()
        self._now = threading.local()
        self._known = (first._spec(), first._likely(), first._kinds(), first._size())
        self.bind(first)

    def bind(self, dataset: Any) -> None:
        """Binds the dataset of this thread's call; the caller keeps it alive."""
        self._now.dataset = weakref.ref(dataset)

    def _bound(self) -> Any:
        return self._now.dataset()

    def _spec(self, look: bool = False) -> Any:
        return self._bound()._spec(True) if look and self._known[0] is None else self._known[0]

    def _likely(self) -> Any:
        return self._known[1]

    def _kinds(self) -> list | None:
        return self._known[2]

    def _size(self) -> int:
        return self._known[3]

    def _table(self) -> Any:
        return self._bound()._table()

    def _chunks(self, run: Run) -> Iterator[Any]:
        return self._bound()._chunks(run)

    def _elements(self, run: Run) -> Iterator[Any]:
        return self._bound()._elements(run)


class IteratorArgument(OwnedIterator):
    """The placeholder of an iterator argument in a trace."""

    def __init__(self, first: Any) -> None:
        self._now = threading.local()
        self._dataset = DatasetArgument(first._dataset)
        self.bind(first)

    def bind(self, iterator: Any) -> None:
        """Binds the iterator of this thread's call."""
        self._now.iterator = weakref.ref(iterator)
        self._dataset.bind(iterator._dataset)

    def __next__(self) -> Any:
        return next_element(self) if _core.current_trace() is not None else next(self._now.iterator())


# ---- loops --------------------------------------------------------------------------------------


def _int(value: int, code: int) -> Any:
    return ops.constant(value, dtypes.BY_CODE[code])


def for_elements(
    source: Any,
    go_on: Callable | None,
    body: Callable,
    get: Callable,
    put: Callable,
    names: Sequence[str],
    options: LoopOptions,
) -> None:
    """`for element in source: body(element)`, as long as `go_on()`, in a trace; see `autograph.operators`."""
    feed = Feed(source)
    number, kind = _noted(Feed.start, feed)

    def run_body(at: Any, first: int) -> None:
        """The body for the kind `at`, which is not one before `first`."""
        if current_recording() is not None:
            body(_noted(Feed.any_element, feed, number_now[0]))
            return
        if first == len(feed.structures) - 1:
            body(feed.element(number_now[0], first))
            return
        if_stmt(
            ops.equal(at, first),
            lambda: body(feed.element(number_now[0], first)),
            lambda: run_body(at, first + 1),
            get,
            put,
            names,
            len(names),
        )

    number_now = [number]

    def step(values: list) -> list:
        number_now[0] = values[0]
        put(values[2:])
        run_body(values[1], 0)
        if go_on is None:
            following = _noted(Feed.advance, feed, values[0])
        else:
            go = control.predicate(go_on(), "for loop")
            following = control.cond(
                go, lambda: _noted(Feed.advance, feed, values[0]), lambda: ops.constant(_END)
            )
        return [values[0], following, *get()]

    init = [number, kind, *get()]
    loop_names, invariants = ["ag__run", "ag__kind", *names], options.invariants(init)
    while True:
        try:
            state = control.loop(init, loop_names, lambda values: values[1] >= 0, step, invariants=invariants)
            break
        except ShapeVaries as e:
            # As in TensorFlow, loops over datasets find the sizes that vary by themselves.
            invariants = _relaxed(invariants or [None] * len(init), loop_names, init, e)
            put(init[2:])
    put(state[2:])


def _relaxed(invariants: list, names: Sequence[str], init: list, error: ShapeVaries) -> list:
    """Invariants that also allow the shapes in an error; raises the error if they already do."""
    at = names.index(error.name) if error.name in names else -1
    before, after = error.shapes
    shape = before.most_specific_compatible_shape(after)
    if at < 0 or invariants[at] == shape or not isinstance(init[at], _core.Tensor):
        raise error
    return [*invariants[:at], shape, *invariants[at + 1 :]]


def next_element(iterator: Any) -> Any:
    """`next(iterator)` in a trace: the next element each time the graph runs."""
    feed = Feed(iterator)
    if current_recording() is not None:
        return _noted(Feed.next, feed)
    if len(feed.structures) != 1 or not feed.known:
        raise Untraceable("next(iterator): the elements of the dataset have different shapes")

    def take() -> list:
        for element in iterator:
            return nest.flatten(element)
        raise errors.OutOfRangeError(None, None, "End of sequence")

    flat = Callback("next element", take, effect=True)([], feed._specs[0])
    return feed._packs[0](flat)


class TracedOptional(Optional):
    """An element that may be missing, which is known only when the graph runs; zeros replace a missing one."""

    def __init__(self, has_value: Any, value: Any) -> None:
        super().__init__(value)
        self._has_value = has_value

    def has_value(self, name: str | None = None) -> Any:
        return self._has_value

    def get_value(self, name: str | None = None) -> Any:
        def check(has_value: Any) -> list:
            if not has_value:
                raise errors.InvalidArgumentError(None, None, "The given optional does not have a value.")
            return []

        Callback("get value", check, effect=True)([self._has_value], [])
        return self._value


def next_optional(iterator: Any) -> Optional:
    """`iterator.get_next_as_optional()` in a trace."""
    feed = Feed(iterator)
    if current_recording() is not None or len(feed.structures) != 1 or not feed.known:
        raise Untraceable("get_next_as_optional: the elements of the dataset have different shapes")
    specs = feed._specs[0]

    def take() -> list:
        for element in iterator:
            return [ops.constant(True), *nest.flatten(element)]
        return [ops.constant(False), *(ops.zeros(static, dtypes.BY_CODE[dtype]) for static, dtype in specs)]

    has_value, *flat = Callback("next element", take, effect=True)([], [((), dtypes.bool._code), *specs])
    return TracedOptional(has_value, feed._packs[0](flat))


def _noted(function: Callable, *args: Any) -> Any:
    """Makes a call, or records it if a recording is being written."""
    recording = current_recording()
    return function(*args) if recording is None else recording.call(function, args, {})


def _sketched(world: World, call: Call) -> Any:
    return call.args[0].sketch(world)


IN_WORLDS.update({Feed.any_element: _sketched, Feed.next: _sketched})


def fold(dataset: Any, state: Any, reduce_func: Callable) -> Any:
    """`dataset.reduce(state, reduce_func)` in a trace."""
    current = [state]

    def body(element: Any) -> None:
        current[0] = conv(reduce_func)(current[0], element)

    def put(values: list) -> None:
        current[0] = values[0]

    for_elements(dataset, None, body, lambda: [current[0]], put, ["state"], LoopOptions())
    return current[0]
