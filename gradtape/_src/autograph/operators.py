"""What converted code calls (as `ag__`) in place of Python's statements and operators.

Each looks at the value that decides, such as the condition of an `if`. Python values, and tensors that have a
value, do what Python would do; a symbolic value makes the statement part of the graph
(`gradtape._src.control.control`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.autograph.conversion import conv, done
from gradtape._src.autograph.options import LoopOptions
from gradtape._src.base import dtypes
from gradtape._src.control import control
from gradtape._src.control.counters import counting
from gradtape._src.control.values import RETURNED, UNDEFINED, choose, filled
from gradtape._src.graph.ir import is_symbolic
from gradtape._src.tensors.conversion import read

__all__ = [
    "MISSING", "UNDEFINED", "LoopOptions", "and_", "chain", "conv", "conv_range", "done", "for_stmt", "if_exp", "if_stmt",
    "not_", "or_", "result", "state", "while_stmt",
]  # fmt: skip

_BRANCHES = ("else branch", "main branch")
# What is raised when a variable that does not exist is read or deleted.
MISSING = (NameError, AttributeError, KeyError, IndexError)


# ---- variables ----------------------------------------------------------------------------------


def state(*readers: Callable[[], Any]) -> list:
    """The values of variables, UNDEFINED for those that are not set."""
    values = []
    for reader in readers:
        try:
            values.append(reader())
        except MISSING:
            values.append(UNDEFINED)
    return values


def result(value: Any, returned: Any) -> Any:
    """The result of a function with several returns."""
    if is_symbolic(returned):
        raise ValueError("the else branch must also have a return statement.")
    return None if value is UNDEFINED else value


# ---- statements ---------------------------------------------------------------------------------


def if_stmt(
    test: Any,
    body: Callable,
    orelse: Callable,
    get: Callable,
    put: Callable,
    names: Sequence[str],
    count: int,
) -> None:
    """`if test: body() else: orelse()`; the first `count` of the variables are needed afterwards."""
    if not is_symbolic(test):
        (body if test else orelse)()
        return
    pred = control.predicate(test, "if statement")
    before = get()

    def way(run: Callable) -> Callable:
        def branch() -> list:
            put(before)
            run()
            return get()[:count]

        return branch

    def join(results: list) -> list:
        columns = list(zip(*results, strict=True))
        returned = columns[names.index(RETURNED)] if RETURNED in names[:count] else [False, False]
        if sum(r is True for r in returned) == 1:
            # A branch that returns leaves variables undefined that nobody reads any more.
            k = 0 if returned[0] is True else 1
            columns = [filled(c) if c[k] is UNDEFINED else c for c in columns]
        return [choose(name, values, _BRANCHES) for name, values in zip(names, columns, strict=False)]

    after = control.branch(pred, [way(orelse), way(body)], join, "if")
    put([*after, *before[count:]])


def while_stmt(
    test: Callable,
    body: Callable,
    get: Callable,
    put: Callable,
    names: Sequence[str],
    options: Callable[[], LoopOptions],
) -> None:
    """`while test(): body()`."""
    while True:
        go = test()
        if _core.current_trace() is not None and isinstance(go, (_core.Tensor, _core.Variable)):
            control.predicate(go, "while loop")
            init, told = get(), options()
            step = _step(get, put, body)
            put(control.loop(init, names, _with(put, test), step, False, told.invariants(init), told.most))
            return
        if not go:
            return
        body()


def _with(put: Callable, f: Callable) -> Callable:
    def call(values: list) -> Any:
        put(values)
        return f()

    return call


def _step(get: Callable, put: Callable, body: Callable) -> Callable:
    def step(values: list) -> list:
        put(values)
        body()
        return get()

    return step


def for_stmt(
    items: Any,
    go_on: Callable | None,
    body: Callable,
    get: Callable,
    put: Callable,
    names: Sequence[str],
    options: Callable[[], LoopOptions],
    target: str | None,
) -> None:
    """`for item in items: body(item)`, as long as `go_on()` is true; `target` is the name of the loop variable."""
    if _core.current_trace() is not None:
        if isinstance(items, _core.Variable):
            items = items._read()
        if isinstance(items, _core.Tensor):
            if items.shape.rank == 0:
                raise ValueError(
                    "for: len requires a non-scalar tensor: expected one of at least one dimension to iterate over; got "
                    f"{items}."
                )
            _for_rows(items, go_on, body, get, put, names, options())
            return
        if isinstance(items, Range):
            _set_first(target, items.start, get, put, names)
            _for_range(items, go_on, body, get, put, names, options())
            return
        if hasattr(items, "_for_in_graph"):  # datasets and their iterators
            items._for_in_graph(go_on, body, get, put, names, options())
            return
    for item in items:
        body(item)
        if go_on is None:
            continue
        go = go_on()
        if not is_symbolic(go):
            if not go:
                break
            continue
        # Whether the loop goes on is not known until it runs, so each further item tests it.
        body = _guarded(go_on, body, get, put, names)
        go_on = None


def _guarded(go_on: Callable, body: Callable, get: Callable, put: Callable, names: Sequence[str]) -> Callable:
    def step(item: Any) -> None:
        if_stmt(go_on(), lambda: body(item), lambda: None, get, put, names, len(names))

    return step


def _for_rows(
    items: Any,
    go_on: Any,
    body: Callable,
    get: Callable,
    put: Callable,
    names: Sequence[str],
    options: LoopOptions,
) -> None:
    count = items.shape[0]
    if count is None:
        count = ops.shape(items)[0]
    _count_up(count, lambda i: items[i], go_on, body, get, put, names, options)


def _set_first(target: str | None, value: Any, get: Callable, put: Callable, names: Sequence[str]) -> None:
    """Gives an undefined loop variable its initial value, which it keeps if the loop does not iterate."""
    if target in names:
        values = get()
        at = names.index(target)
        if values[at] is UNDEFINED:
            put([*values[:at], value, *values[at + 1 :]])


def _for_range(
    items: Range,
    go_on: Any,
    body: Callable,
    get: Callable,
    put: Callable,
    names: Sequence[str],
    options: LoopOptions,
) -> None:
    _count_up(items.count(), items.number, go_on, body, get, put, names, options)


def _count_up(
    count: Any,
    item: Callable,
    go_on: Any,
    body: Callable,
    get: Callable,
    put: Callable,
    names: Sequence[str],
    options: LoopOptions,
) -> None:
    """A loop that runs `body(item(i))` for i from 0 to count."""
    if options.most is not None:
        both = isinstance(count, int) and isinstance(options.most, int)
        count = min(count, options.most) if both else ops.minimum(count, options.most)
    iterations = count if isinstance(count, int) else None

    def test(values: list) -> Any:
        put(values[1:])
        inside = values[0] < count
        return inside if go_on is None else ops.logical_and(inside, control.predicate(go_on(), "for loop"))

    def step(values: list) -> list:
        put(values[1:])
        with counting(values[0], iterations if go_on is None else None):
            body(item(values[0]))
        return [values[0] + 1, *get()]

    start = ops.constant(0, dtypes.int32)
    init = [start, *get()]
    after = control.loop(init, ["ag__i", *names], test, step, bool(iterations), options.invariants(init))
    put(after[1:])


class Range:
    """The numbers of `tf.range`, for loops that count without making a tensor."""

    def __init__(
        self,
        *args: Any,
        dtype: Any = None,
        delta: Any = 1,
        limit: Any = None,
        start: Any = None,
        name: Any = None,
    ):
        if start is not None:
            args = (start, *args)
        if limit is not None:
            args = (*args, limit)
        first, last, step = (
            (0, args[0], delta) if len(args) == 1 else (args[0], args[1], args[2] if len(args) > 2 else delta)
        )
        values = [read(x) for x in (first, last, step)]
        kinds = [x.dtype for x in values if hasattr(x, "dtype")]
        if dtype is None:
            dtype = kinds[0] if kinds else ops.convert_to_tensor(sum(values)).dtype
        self.dtype = dtypes.as_dtype(dtype)
        self.start, self.limit, self.delta = (
            x if isinstance(x, _core.Tensor) else ops.constant(x, self.dtype) for x in values
        )

    def count(self) -> Any:
        """How many numbers there are: an int if known, otherwise a tensor."""
        span, step = self.limit - self.start, self.delta
        n = ops.ceil(span / step) if self.dtype.is_floating else -((-span) // step)
        n = ops.maximum(ops.cast(n, dtypes.int32), 0)
        return n if is_symbolic(n) else int(n)

    def number(self, i: Any) -> Any:
        """The number at index `i`."""
        plain = not is_symbolic(self.start) and not is_symbolic(self.delta)
        if plain and self.dtype is dtypes.int32 and int(self.start) == 0 and int(self.delta) == 1:
            return i
        return self.start + ops.cast(i, self.dtype) * self.delta

    def __iter__(self) -> Any:
        return iter(ops.range_(self.start, self.limit, self.delta))


def conv_range(f: Callable) -> Callable:
    """`conv(f)` for the iterable of a loop: while a function is traced, ranges stay ranges."""
    if f is ops.range_:
        return Range if _core.current_trace() is not None else f
    return conv(f)


# ---- expressions --------------------------------------------------------------------------------


def if_exp(test: Any, yes: Callable, no: Callable) -> Any:
    """`yes() if test else no()`."""
    if not is_symbolic(test):
        return yes() if test else no()
    pred = control.predicate(test, "if expression")

    def join(results: list) -> list:
        return [choose("the conditional expression", [r[0] for r in results], _BRANCHES)]

    return control.branch(pred, [lambda: [no()], lambda: [yes()]], join, "if")[0]


def and_(*parts: Callable) -> Any:
    """`parts[0]() and parts[1]() and ...`"""
    value = parts[0]()
    for k, part in enumerate(parts[1:], 1):
        if is_symbolic(value):
            rest = parts[k] if k == len(parts) - 1 else lambda k=k: and_(*parts[k:])
            return _short(value, rest, False)
        if not value:
            return value
        value = part()
    return value


def or_(*parts: Callable) -> Any:
    """`parts[0]() or parts[1]() or ...`"""
    value = parts[0]()
    for k, part in enumerate(parts[1:], 1):
        if is_symbolic(value):
            rest = parts[k] if k == len(parts) - 1 else lambda k=k: or_(*parts[k:])
            return _short(value, rest, True)
        if value:
            return value
        value = part()
    return value


def _short(value: Any, rest: Callable, decides: bool) -> Any:
    """Computes the rest of a condition only if its beginning does not decide."""
    value = read(value)
    # The operands become the two branches of a condition, so they must have one type, which must be bool.
    result = control.cond(
        ops.cast(value, dtypes.bool), *((lambda: value, rest) if decides else (rest, lambda: value))
    )
    control.predicate(value, "logical expression")
    return result


def not_(value: Any) -> Any:
    """`not value`."""
    if not is_symbolic(value):
        return not value
    return ops.logical_not(control.predicate(value, "not"))


def chain(left: Any, *links: tuple[Callable, Callable]) -> Any:
    """`left < b < c`: each value is computed at most once, and only if it is needed."""
    compare, value = links[0]
    right = value()
    first = compare(left, right)
    if len(links) == 1:
        return first
    return and_(lambda: first, lambda: chain(right, *links[1:]))
