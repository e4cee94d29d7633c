"""Control flow over symbolic tensors: `cond`, `switch_case` and `while_loop` inside a traced function.

Each branch and loop body is traced into its own graph. Its captures become operands; a variable that
it assigns becomes a result, and is assigned in the outer trace. The values that branches return and
loops carry may be nests of tensors, numbers and TensorArrays; `values.py` flattens those to tensors.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import composites, errors, replicas
from gradtape._src.base.contexts import aside
from gradtape._src.base.dtypes import DIFFERENTIABLE, int32
from gradtape._src.base.dtypes import bool as bool_
from gradtape._src.control import recorded
from gradtape._src.control.control_ops import Branches, Loop, spec_of
from gradtape._src.control.values import (
    Choice,
    Layout,
    alike,
    apart_with_shapes,
    choose,
    each_branch,
    not_iterated,
    tensor_of,
)
from gradtape._src.graph.callable import GraphFunction
from gradtape._src.graph.ir import Callback, Value, is_symbolic, symbolic
from gradtape._src.graph.trace import REREAD, Trace, current_recording
from gradtape._src.tensors import conversion
from gradtape._src.tensors.conversion import read

_MOST_ATTEMPTS = 4


def _trace() -> Trace:
    trace = _core.current_trace()
    if not isinstance(trace, Trace):
        raise errors.InaccessibleTensorError()
    return trace


def _traced(f: Callable, specs: Sequence[tuple] = ()) -> tuple[Trace, Any]:
    """Runs `f` on new symbols in a trace of its own."""
    inner = Trace(_trace())
    with aside(inner):
        return inner, f(*[symbolic(inner.input(*spec)) for spec in specs])


def _within(trace: Trace, f: Callable) -> Any:
    """Runs `f` as a continuation of a trace."""
    with aside(trace):
        return f()


def _align(traces: Sequence[Trace], n: int, first: Sequence[Any] = ()) -> list:
    """Gives traces the same inputs: `n` arguments, then everything they read from outside, which is returned;
    the values in `first` come first."""
    externals = {id(e): e for e in first}
    for trace in traces:
        externals.update((id(e), e) for e in trace.externals)
    for trace in traces:
        mine = dict(zip(map(id, trace.externals), trace.inputs[n:], strict=True))
        trace.inputs[n:] = [
            mine[key] if key in mine else Value(trace, *_external_spec(e)) for key, e in externals.items()
        ]
        trace.externals.clear()  # they would keep the outer trace alive: a cycle that Python's collector cannot see
    return list(externals.values())


def _external_spec(e: Any) -> tuple:
    return (tuple(e._value_shape), e.dtype._code) if isinstance(e, _core.Variable) else spec_of(e)


def predicate(pred: Any, what: str) -> Any:
    """A condition as a tensor; it must be one boolean."""
    if isinstance(pred, _core.Variable):
        pred = pred._read()
    elif not isinstance(pred, _core.Tensor):
        return conversion.convert(bool(pred))
    shape = pred.shape
    if pred.dtype is not bool_ or (
        shape.rank and math.prod(d for d in shape.as_list() if d is not None) != 1
    ):
        cast = "" if pred.dtype is bool_ else "to use as boolean Tensor, use `tf.cast`; "
        raise errors.InvalidArgumentError(
            f"condition of {what} expected to be `tf.bool` scalar, got {pred}; {cast}to check for None, use `is not "
            "None`"
        )
    return pred if shape.rank == 0 else ops.reshape(pred, [])


def _apart(f: Callable[[], Sequence[Any]]) -> list:
    return [composites.apart(v) for v in f()]


# ---- branches -----------------------------------------------------------------------------------


def branch(
    which: Any, functions: Sequence[Callable[[], list]], join: Callable[[list], list], name: str
) -> list:
    """The values of one of the functions, chosen when the graph runs.

    `join(results)` gets a list of values per function and returns, for each value, either an object that is
    the same in all of them, or a `Choice`.
    """
    functions = [functools.partial(_apart, f) for f in functions]
    recording = current_recording()
    if recording is not None:
        results = recorded.branch(recording, which, functions, join, name, branch)
        return [composites.together(v) for v in results]
    try:
        done = each_branch(which, _traced, functions)
    except replicas.NeedsOthers:
        replica = replicas.current()
        if replica is None or not replica.may_branch:
            raise
        return replica.branch(branch, which, functions, join, name)
    traces = [t for t, _ in done]
    merged = join(alike([r for _, r in done], lambda k, f: _within(traces[k], f)))
    for trace in traces[1:]:
        traces[0].assigned.update(trace.assigned)
    assigned = traces[0].assigned
    for k, trace in enumerate(traces):
        leaves = [x for m in merged if isinstance(m, Choice) for x in m.tensors[k]]
        tensors = _within(trace, lambda leaves=leaves: [tensor_of(x) for x in (*leaves, *assigned.values())])
        trace.outputs = [trace.value_of(x) for x in tensors]
    operands = [read(e) for e in _align(traces, 0)]
    op = Branches([GraphFunction(t, name) for t in traces], name)
    given = iter(op([which, *operands]))
    out = [m.rebuild([next(given) for _ in m.tensors[0]]) if isinstance(m, Choice) else m for m in merged]
    for variable in assigned.values():
        variable._set(next(given))
    return [composites.together(v) for v in out]


def cond(pred: Any, true_fn: Callable, false_fn: Callable) -> Any:
    """`tf.cond` on a symbol."""
    chosen = predicate(pred, "cond")

    def join(results: list) -> list:
        return [choose(None, [r[0] for r in results], ("false_fn", "true_fn"))]

    return branch(chosen, [lambda: [false_fn()], lambda: [true_fn()]], join, "cond")[0]


def switch_case(branch_index: Any, branches: dict[int, Callable], default: Callable) -> Any:
    """`tf.switch_case` on a symbol."""
    numbers = sorted(branches)
    functions = [branches[n] for n in numbers] + [default]
    index = read(branch_index)
    if numbers != list(range(len(numbers))):
        index = ops.cast(index, int32)
        places = sum(
            (ops.cast(ops.equal(index, n), int32) * (k + 1) for k, n in enumerate(numbers)),
            ops.zeros([], int32),
        )
        index = places - 1
    names = [f"branches[{n}]" for n in numbers] + ["default"]

    def join(results: list) -> list:
        return [choose(None, [r[0] for r in results], names)]

    return branch(index, [_listed(f) for f in functions], join, "switch_case")[0]


def _listed(function: Callable) -> Callable:
    return lambda: [function()]


# ---- loops --------------------------------------------------------------------------------------


def loop(
    init: Sequence[Any],
    names: Sequence[str] | None,
    test: Callable[[list], Any],
    body: Callable[[list], Sequence[Any]],
    iterates: bool = False,
    invariants: Sequence[Any] | None = None,
    most: Any = None,
) -> list:
    """The values after `values = body(values)`, beginning with `init`, while `test(values)`, at most `most` times.

    Values that are None or undefined before the loop get the shape that one iteration gives them;
    `iterates` says that there is at least one. `invariants` gives shapes that values have in every iteration.
    """
    if most is not None:
        return _loop_at_most(most, init, names, test, body, invariants)
    start, shapes = apart_with_shapes(init, invariants)

    def step(values: list) -> list:
        after = zip(start, _apart(lambda: body(composites.together(values))), strict=True)
        return [alike([[before], [v]], lambda _, f: f())[1][0] for before, v in after]

    def go_on(values: list) -> Any:
        return test(composites.together(values))

    return composites.together(_loop(start, names, go_on, step, iterates, shapes))


def _loop(
    init: Sequence[Any],
    names: Sequence[str] | None,
    test: Callable[[list], Any],
    body: Callable[[list], Sequence[Any]],
    iterates: bool,
    invariants: Sequence[Any] | None,
) -> list:
    """A loop whose values are nests of tensors."""
    recording = current_recording()
    if recording is not None:
        return recorded.loop(recording, init, names, test, body, iterates, invariants, predicate, loop)
    if invariants is not None:
        raise errors.Untraceable("while_loop: the shapes of its variables vary")
    start = list(init)
    initialized: list[str] = []
    for _ in range(_MOST_ATTEMPTS):
        layout = Layout(start)
        inner, result = _traced(lambda *xs, layout=layout: body(layout.rebuild(xs)), layout.specs)
        again = layout.revise(result, names, initialized)
        if again is None:
            break
        start = again
    else:
        raise ValueError("while_loop: the kinds of the loop variables change with every iteration.")
    n = len(layout.specs)
    tensors = _within(inner, lambda: layout.tensors_like(result, names))
    inner.outputs = [inner.value_of(x) for x in tensors]
    tester, go = _traced(lambda *xs: predicate(test(layout.rebuild(xs)), "while loop"), layout.specs)
    if tester.assigned:
        raise NotImplementedError("while_loop: the condition of a loop must not assign variables.")
    tester.outputs = [tester.value_of(go)]
    assigned = list(inner.assigned.values())
    inner.outputs += [inner.value_of(inner.state[id(v)]) for v in assigned]
    externals = _align([tester, inner], n, assigned)
    anchors = _reread_in_body(tester, inner, n, assigned)
    op = Loop(GraphFunction(tester, "while condition"), GraphFunction(inner, "while body"), n + len(assigned))
    results = op([*layout.tensors, *map(read, (*externals, *anchors))])
    for variable, value in zip(assigned, results[n:], strict=True):
        variable._set(value)
    if initialized and not iterates:
        _check_iterated(layout, test, start, initialized)
    return layout.rebuild(results[:n])


def _loop_at_most(
    most: Any,
    init: Sequence[Any],
    names: Sequence[str] | None,
    test: Callable[[list], Any],
    body: Callable[[list], Sequence[Any]],
    invariants: Sequence[Any] | None,
) -> list:
    """A loop that counts its iterations."""

    def counted_test(values: list) -> Any:
        return ops.logical_and(values[0] < most, predicate(test(values[1:]), "while loop"))

    return loop(
        [conversion.convert(0), *init],
        None if names is None else ["ag__count", *names],
        counted_test,
        lambda values: [values[0] + 1, *body(values[1:])],
        invariants=None if invariants is None else [None, *invariants],
    )[1:]


def _reread_in_body(tester: Trace, body: Trace, n: int, assigned: Sequence[Any]) -> list:
    """Gradients do not flow back through assignments: to a tape, the value that one iteration assigned is, in
    the next iteration, the variable itself. Returns the variables that become further inputs of both graphs."""
    anchors = []
    for k, variable in enumerate(assigned):
        carried = body.inputs[n + k]
        if carried.dtype not in DIFFERENTIABLE:
            continue
        anchors.append(variable)
        before = body.input(carried.shape, carried.dtype)
        tester.input(carried.shape, carried.dtype)
        (read,) = body.add(REREAD, [carried, before], (), [(carried.shape, carried.dtype)])
        first = body.nodes.pop()
        for node in body.nodes:
            node.operands = tuple(read if v is carried else v for v in node.operands)
        body.outputs = [read if v is carried else v for v in body.outputs]
        body.nodes.insert(0, first)
    return anchors


def _check_iterated(layout: Layout, test: Callable, start: list, initialized: list[str]) -> None:
    """Raises, when the graph runs, if a loop that must initialize values does not iterate."""
    first = predicate(test(layout.rebuild(layout.tensors)), "while loop")

    def check(ran: Any) -> list:
        if not bool(ran):
            raise errors.InvalidArgumentError(None, None, not_iterated(initialized))
        return []

    if is_symbolic(first):
        Callback("assert", check, effect=True)([first], ())
    else:
        check(first)


def while_loop(
    cond: Callable,
    body: Callable,
    loop_vars: Sequence[Any],
    maximum_iterations: Any = None,
    shape_invariants: Any = None,
) -> Any:
    """`tf.while_loop` in a trace."""
    kind: Any = type(loop_vars)
    n = len(loop_vars)
    values = loop(
        list(loop_vars),
        None,
        lambda values: cond(*values),
        lambda values: _as_loop_vars(body(*values), n),
        invariants=None if shape_invariants is None else list(shape_invariants),
        most=maximum_iterations,
    )
    return kind(*values) if hasattr(loop_vars, "_fields") else kind(values)


def _as_loop_vars(result: Any, n: int) -> list:
    if n == 1 and not isinstance(result, (list, tuple)):
        return [result]
    if not isinstance(result, (list, tuple)) or len(result) != n:
        raise ValueError(
            "while_loop: The two structures don't have the same nested structure: `body` must return as many values as "
            f"there are `loop_vars`; expected {n}; got {result!r}."
        )
    return list(result)
