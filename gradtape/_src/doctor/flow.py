"""Follows values: whether a value that left for NumPy, or went into a variable, is used in a computation again."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from gradtape._src.doctor.names import Aliases

_STEPS = frozenset(
    ("argmax", "argmin", "argsort", "equal", "not_equal", "greater", "greater_equal", "less", "less_equal", "round",
     "floor", "ceil", "one_hot", "in_top_k", "stop_gradient")
)  # fmt: skip
_WRAPS = frozenset(("reduce_mean", "reduce_sum", "cast", "square", "abs", "reshape", "squeeze", "identity"))


def operands(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of an expression that its value is computed from, without indices."""
    yield node
    parts = [node.value] if isinstance(node, ast.Subscript) else ast.iter_child_nodes(node)
    for child in parts:
        yield from operands(child)


def comes_back(aliases: Aliases, call: ast.Call, events: Sequence[Any], asks: frozenset[str]) -> bool:
    """Whether the result of `call` reaches a TensorFlow function, or a method call in `asks`.

    An action drawn from probabilities, or a number that is printed or stored, does not.
    """
    tainted: set[str] = set()
    for e in events[events.index(next(x for x in events if x.node is call)) :]:
        if e.kind == "call":
            by_name = isinstance(e.node.func, ast.Attribute) and e.node.func.attr in asks
            if not (by_name or aliases.called(e.node)):
                continue
            given = [*e.node.args, *(k.value for k in e.node.keywords)]
            if any(_holds(n, call, tainted) for a in given for n in operands(a)):
                return True
        elif e.kind == "assign" and e.value is not None and _passes(aliases, e.value, call, tainted):
            tainted.add(e.name)
    return False


def _holds(node: ast.AST, call: ast.Call, tainted: set[str]) -> bool:
    return node is call or (isinstance(node, ast.Name) and node.id in tainted)


def _passes(aliases: Aliases, value: ast.AST, call: ast.Call, tainted: set[str]) -> bool:
    """Whether an assigned value is computed from the tainted one, by arithmetic or by NumPy; `env.step(action)` is not."""
    if _holds(value, call, tainted):
        return True
    if isinstance(value, ast.Call):
        root: ast.AST = value.func
        while isinstance(root, ast.Attribute):
            root = root.value
        numpy = isinstance(root, ast.Name) and root.id in ("np", "numpy", "float", "abs", "sum", "min", "max")
        method = not isinstance(root, ast.Name)  # x.numpy().mean()
        if not (numpy or method) or "random" in ast.unparse(value.func):
            return False
    parts = [value.value] if isinstance(value, ast.Subscript) else ast.iter_child_nodes(value)
    return any(_passes(aliases, child, call, tainted) for child in parts)


def read_again(call: ast.Call, events: Sequence[Any], tape: Any) -> bool:
    """Whether the variable of `variable.assign(...)` is read afterwards while the tape is open."""
    assert isinstance(call.func, ast.Attribute)
    variable = ast.dump(call.func.value)
    for e in events[events.index(next(x for x in events if x.node is call)) + 1 :]:
        if tape not in e.tapes:
            continue
        if e.kind == "call":
            given = [*e.node.args, *(k.value for k in e.node.keywords)]
        else:
            given = [e.value] if e.kind == "assign" and e.value is not None else []
        if any(ast.dump(n) == variable for a in given for n in ast.walk(a)):
            return True
    return False


def stepwise(aliases: Aliases, value: ast.AST | None) -> str:
    """The function without a gradient through which all of a value goes, as in the mean of correct answers; else
    ""."""
    while value is not None:
        if isinstance(value, ast.Compare):
            return "a comparison"
        name = aliases.called(value).rpartition(".")[2]
        if name in _STEPS:
            return name
        given = value.args if isinstance(value, ast.Call) else []
        value = given[0] if name in _WRAPS and given else None
    return ""
