"""Causes of gradients that are None, and of tapes that are used up, found in the code around a GradientTape."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from gradtape._src.doctor.flow import comes_back, read_again, stepwise
from gradtape._src.doctor.names import Aliases
from gradtape._src.doctor.read import Finding, Source

# Functions that create tensors that no tape tracks.
_MAKERS = frozenset(
    ("constant", "convert_to_tensor", "zeros", "ones", "fill", "eye", "linspace", "range", "normal", "uniform",
     "truncated_normal")
)  # fmt: skip
_ASSIGN = frozenset(("assign", "assign_add", "assign_sub"))
_DERIVATIVES = frozenset(("gradient", "jacobian", "batch_jacobian"))
_REFUSING = frozenset(("raises", "assertRaises", "assertRaisesRegex"))
# Calls that only read a value.
_LOOKING = frozenset(("print", "append", "write", "info", "debug", "warning", "format", "scalar", "set_description",
                      "set_postfix", "update", "update_state"))  # fmt: skip


class Tape(NamedTuple):
    """A `with tf.GradientTape(...) as name`."""

    name: str
    node: ast.With
    persistent: bool
    follows: bool  # assignments
    loops: tuple[int, ...]


class Event(NamedTuple):
    """An assignment or a call, in the order of the text."""

    kind: str  # "assign", "call" or "open"
    node: ast.AST
    name: str  # the name that is assigned
    value: ast.AST | None
    tapes: tuple[Tape, ...]  # open at this point
    branches: tuple[tuple[int, int, bool], ...]  # of each `if`: its number, the branch, whether that leaves
    loops: tuple[int, ...]
    looking: bool = False


def check(source: Source, aliases: Aliases) -> Iterator[Finding]:
    """Findings about tapes."""
    whole = _Reader(aliases).read(source.tree.body)
    outer = _assignments(whole)
    for scope in ast.walk(source.tree):
        if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
            events = _Reader(aliases).read(scope.body)
            own = {a.arg for a in ast.walk(scope.args) if isinstance(a, ast.arg)}
            yield from _check_scope(source, aliases, events, {k: v for k, v in outer.items() if k not in own})
    yield from _check_scope(source, aliases, whole, {})


class _Reader:
    """Turns the statements of one scope into events."""

    def __init__(self, aliases: Aliases) -> None:
        self._aliases = aliases
        self._events: list[Event] = []

    def read(self, body: list[ast.stmt]) -> list[Event]:
        """The events of a list of statements."""
        self._block(body, (), (), ())
        return self._events

    def _block(self, body: list[ast.stmt], tapes: tuple, branches: tuple, loops: tuple) -> None:
        for s in body:
            if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                continue
            if isinstance(s, ast.If):
                self._calls(s.test, tapes, branches, loops, looking=True)
                for i, branch in enumerate((s.body, s.orelse)):
                    leaves = bool(branch) and isinstance(
                        branch[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break)
                    )
                    self._block(branch, tapes, (*branches, (id(s), i, leaves)), loops)
            elif isinstance(s, (ast.For, ast.While, ast.AsyncFor)):
                self._calls(s.test if isinstance(s, ast.While) else s.iter, tapes, branches, loops)
                if not isinstance(s, ast.While):
                    for n in ast.walk(s.target):
                        if isinstance(n, ast.Name):
                            self._events.append(Event("assign", s, n.id, None, tapes, branches, loops))
                self._block(s.body, tapes, branches, (*loops, id(s)))
                self._block(s.orelse, tapes, branches, loops)
            elif isinstance(s, (ast.With, ast.AsyncWith)):
                if any(_called_node(item.context_expr) in _REFUSING for item in s.items):
                    continue  # a test that expects an error
                inside = tapes
                for item in s.items:
                    self._calls(item.context_expr, inside, branches, loops)
                    tape = self._tape(s, item, loops) if isinstance(s, ast.With) else None
                    if tape is not None:
                        inside = (*inside, tape)
                        self._events.append(Event("open", s, tape.name, None, inside, branches, loops))
                self._block(s.body, inside, branches, loops)
            elif isinstance(s, ast.Try):
                for part in (s.body, *(h.body for h in s.handlers), s.orelse, s.finalbody):
                    self._block(part, tapes, branches, loops)
            else:
                self._calls(s, tapes, branches, loops, looking=isinstance(s, ast.Assert))
                self._assigned(s, tapes, branches, loops)

    def _tape(self, s: ast.With, item: ast.withitem, loops: tuple) -> Tape | None:
        call, name = item.context_expr, item.optional_vars
        if self._aliases.called(call) != "tf.GradientTape" or not isinstance(name, ast.Name):
            return None
        assert isinstance(call, ast.Call)
        given = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "persistent")]
        # A flag that is not a literal may be True.
        persistent = any(not (isinstance(g, ast.Constant) and not g.value) for g in given)
        return Tape(name.id, s, persistent, any(k.arg == "track_assign" for k in call.keywords), loops)

    def _assigned(self, s: ast.stmt, tapes: tuple, branches: tuple, loops: tuple) -> None:
        targets = (
            s.targets
            if isinstance(s, ast.Assign)
            else [s.target]
            if isinstance(s, (ast.AugAssign, ast.AnnAssign))
            else []
        )
        for target in targets:
            plain = isinstance(target, ast.Name)
            value = (
                s.value
                if plain and isinstance(s, (ast.Assign, ast.AnnAssign))
                else s
                if isinstance(s, ast.AugAssign)
                else None
            )
            for n in ast.walk(target):
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                    self._events.append(Event("assign", s, n.id, value, tapes, branches, loops))

    def _calls(
        self, node: ast.AST, tapes: tuple, branches: tuple, loops: tuple, looking: bool = False
    ) -> None:
        if isinstance(node, (ast.Lambda, ast.FunctionDef)):
            return
        looks = looking or isinstance(node, (ast.JoinedStr, ast.Compare))
        if isinstance(node, ast.Call):
            looks = looks or _called(node) in _LOOKING
        for child in ast.iter_child_nodes(node):
            self._calls(child, tapes, branches, loops, looks)
        if isinstance(node, ast.Call):  # operands run first
            self._events.append(Event("call", node, "", None, tapes, branches, loops, looking))


def _called(call: ast.Call) -> str:
    f = call.func
    return f.attr if isinstance(f, ast.Attribute) else f.id if isinstance(f, ast.Name) else ""


def _on(call: ast.AST | None) -> str:
    """The name `x` of a call `x.method(...)`."""
    if (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
    ):
        return call.func.value.id
    return ""


def _assignments(events: list[Event]) -> dict[str, list[Event]]:
    out: dict[str, list[Event]] = {}
    for e in events:
        if e.kind == "assign":
            out.setdefault(e.name, []).append(e)
    return out


def _check_scope(source: Source, aliases: Aliases, events: list[Event], outer: dict) -> Iterator[Finding]:
    yield from _inside(source, aliases, events)
    assignments = outer | _assignments(events)
    looped = {e.name for e in events if e.kind == "assign" and isinstance(e.node, (ast.For, ast.AsyncFor))}
    for i, e in enumerate(events):
        if e.kind != "open":
            continue
        tape = e.tapes[-1]
        # The events of this tape: up to the next tape of the same name.
        until = next(
            (
                j
                for j in range(i + 1, len(events))
                if events[j].kind == "open" and events[j].name == tape.name
            ),
            len(events),
        )
        after = events[i:until]
        asked = [c for c in after if c.kind == "call" and _on(c.node) == tape.name and _derivative(c.node)]
        if not tape.persistent:
            yield from _used_up(source, tape, asked)
        watched = {
            n.id
            for c in after
            if c.kind == "call" and _on(c.node) == tape.name and _called_node(c.node) == "watch"
            for n in ast.walk(c.node)
            if isinstance(n, ast.Name)
        } - {tape.name}
        for c in asked:
            assert isinstance(c.node, ast.Call)
            yield from _sources(source, aliases, tape, c.node, assignments, watched, bool(watched & looped))
            yield from _target(source, aliases, tape, c, events)


def _called_node(node: ast.AST) -> str:
    return _called(node) if isinstance(node, ast.Call) else ""


def _derivative(node: ast.AST) -> bool:
    return _called_node(node) in _DERIVATIVES


def _inside(source: Source, aliases: Aliases, events: list[Event]) -> Iterator[Finding]:
    """Findings about calls inside a tape's context."""
    for e in events:
        if e.kind != "call" or not e.tapes or not isinstance(e.node, ast.Call):
            continue
        name = _called(e.node)
        method = isinstance(e.node.func, ast.Attribute) and not aliases.called(e.node)
        if name == "numpy" and method and not e.node.args and not e.looking:
            if not comes_back(aliases, e.node, events, _DERIVATIVES):
                continue
            yield source.found(
                e.node,
                "none",
                ".numpy() inside a tape's context: a value that comes back from NumPy has no gradient.",
            )
        elif name in _ASSIGN and method and not e.tapes[-1].follows and any(map(_computed, e.node.args)):
            if not read_again(e.node, events, e.tapes[-1]):
                continue
            yield source.found(
                e.node,
                "none",
                f"{name} inside a tape's context: what is assigned has no gradient; compute with the value itself, or use "
                "tf.GradientTape(track_assign=True).",
            )


def _computed(value: ast.expr) -> bool:
    """Whether a value is more than a literal number."""
    return any(isinstance(n, (ast.Name, ast.Call)) for n in ast.walk(value))


def _used_up(source: Source, tape: Tape, asked: list[Event]) -> Iterator[Finding]:
    said = "asked twice; it is used up by the first call: tf.GradientTape(persistent=True), or all sources in one call."
    for j, c in enumerate(asked):
        again = len(c.loops) > len(tape.loops) and c.loops[: len(tape.loops)] == tape.loops
        leaves = any(leaving for _, _, leaving in c.branches)
        if (again and not leaves) or any(not _exclusive(b, c) for b in asked[:j]):
            yield source.found(c.node, "none", f"the tape {tape.name!r} is {said}")


def _exclusive(before: Event, after: Event) -> bool:
    """Whether two events are in branches that exclude each other."""
    taken = {which: branch for which, branch, _ in after.branches}
    for which, branch, leaves in before.branches:
        if which in taken and taken[which] != branch:
            return True
        if leaves and which not in taken:
            return True
    return False


def _argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    if len(call.args) > position:
        return call.args[position]
    return next((k.value for k in call.keywords if k.arg == name), None)


def _sources(
    source: Source,
    aliases: Aliases,
    tape: Tape,
    call: ast.Call,
    assignments: dict,
    watched: set[str],
    unsure: bool,
) -> Iterator[Finding]:
    given = _argument(call, 1, "sources") or _argument(call, 1, "source")
    for s in given.elts if isinstance(given, (ast.List, ast.Tuple)) else [given]:
        own = assignments.get(s.id) if isinstance(s, ast.Name) else None
        if not own or not isinstance(s, ast.Name):
            continue
        values = [e.value for e in own]
        callees = [aliases.called(v) if v is not None else "" for v in values]
        if all(c == "tf.Variable" or c.rpartition(".")[2] in _MAKERS and c for c in callees):
            whole = next((v for v in values if v is not None and _integer(v)), None)
            if whole is not None:
                yield source.found(
                    whole,
                    "none",
                    f"{s.id} holds integers, which have no gradient: write them with a point, or give a dtype.",
                )
                continue
        # Inside the context a converted variable has a gradient; a new tensor has none.
        converted = any(
            e.tapes and c.endswith("convert_to_tensor") for e, c in zip(own, callees, strict=True)
        )
        if all(c and c.rpartition(".")[2] in _MAKERS for c in callees) and not (
            s.id in watched or unsure or converted
        ):
            yield source.found(
                call,
                "none",
                f"{s.id} is a tensor that {tape.name!r} never watched: {tape.name}.watch({s.id}) inside the context.",
            )
        if "tf.Variable" in callees:
            for e in own:
                if _of_itself(e) and not e.tapes:
                    yield source.found(
                        e.node,
                        "none",
                        f"{s.id} was a variable and is a tensor from here on: {s.id}.assign(...) keeps it one.",
                    )


def _integer(call: ast.AST) -> bool:
    """Whether `tf.constant(3)` or `tf.Variable([1, 2])` holds integers, judging by its literals."""
    if (
        not isinstance(call, ast.Call)
        or not call.args
        or _called(call) not in ("constant", "Variable", "convert_to_tensor")
    ):
        return False
    dtype = next((k.value for k in call.keywords if k.arg == "dtype"), None)
    if dtype is not None:
        return isinstance(dtype, ast.Attribute) and dtype.attr.startswith(("int", "uint"))
    if len(call.args) > 1:
        return False
    numbers = [
        n
        for n in ast.walk(call.args[0])
        if not isinstance(n, (ast.List, ast.Tuple, ast.Load, ast.UnaryOp, ast.USub))
    ]
    return bool(numbers) and all(isinstance(n, ast.Constant) and type(n.value) is int for n in numbers)


def _of_itself(e: Event) -> bool:
    """`x = x - 0.1 * g` or `x -= 0.1 * g`."""
    if isinstance(e.node, ast.AugAssign):
        return True
    return isinstance(e.value, ast.BinOp) and any(
        isinstance(n, ast.Name) and n.id == e.name for n in ast.walk(e.value)
    )


def _target(
    source: Source, aliases: Aliases, tape: Tape, asked: Event, events: list[Event]
) -> Iterator[Finding]:
    """Finds targets that were computed after the context, or through a function without a gradient."""
    assert isinstance(asked.node, ast.Call)
    target = _argument(asked.node, 0, "target")
    if not isinstance(target, ast.Name):
        return
    before = events[: events.index(asked)]
    last = next((e for e in reversed(before) if e.kind == "assign" and e.name == target.id), None)
    step = stepwise(aliases, last.value) if last is not None else ""
    if step and last is not None:
        yield source.found(
            last.node, "none", f"{target.id} is computed through {step}, which has no gradient."
        )
        return
    if tape in asked.tapes:
        return
    if last is None or last.value is None or tape in last.tapes or last.node.lineno < tape.node.lineno:  # type: ignore[attr-defined]
        return
    if last.branches != asked.branches[: len(last.branches)]:
        return
    computes = any(aliases.called(n) for n in ast.walk(last.value)) or _derivative(last.value)
    if computes or isinstance(last.value, (ast.BinOp, ast.AugAssign)):
        yield source.found(
            last.node,
            "none",
            f"{target.id} is computed after the context of {tape.name!r} was left: move it inside.",
        )
