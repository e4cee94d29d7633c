"""Replaces `return`, `break` and `continue` in branches and loops by flags.

`break` sets a flag; the statements after it run only while the flag is not set, and the loop's condition
tests it. Afterwards every statement is left at its end only, so branches and loop bodies can become
functions. Programs on plain Python values keep their meaning.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gradtape._src.autograph.variables import walk_scope
from gradtape._src.control.values import RESULT, RETURNED

_BRANCHING = (ast.If, ast.For, ast.While, ast.Match)
_LOOPS = (ast.For, ast.While, ast.AsyncFor)


def lower(function: ast.FunctionDef) -> None:
    """Rewrites the body of a function in place."""
    jumping = _Jumps(function)
    function.body = _tidy(function.body)
    body = jumping.block(function.body, None)[0]
    if jumping.returns:
        at = function.body[0]
        # The result of a function that ends without a return is ag__.UNDEFINED.
        first = [_assign(RETURNED, ast.Constant(False), at), _assign(RESULT, _operator("UNDEFINED"), at)]
        last = ast.Return(_call("result", _load(RESULT), _load(RETURNED)))
        body = [*first, *body, ast.copy_location(last, function.body[-1])]
    function.body = body


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _operator(name: str) -> ast.Attribute:
    return ast.Attribute(_load("ag__"), name, ast.Load())


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(_operator(name), list(args), [])


def _assign(name: str, value: ast.expr, at: ast.AST) -> ast.stmt:
    return ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), at)


def _not_any(flags: Sequence[str], more: ast.expr | None = None) -> ast.expr:
    """`not a and not b and more`."""
    parts: list[ast.expr] = [ast.UnaryOp(ast.Not(), _load(f)) for f in flags]
    if more is not None:
        parts.append(more)
    return parts[0] if len(parts) == 1 else ast.BoolOp(ast.And(), parts)


def _jumps(block: list[ast.stmt]) -> bool:
    """Whether the end of a block is never reached."""
    last = block[-1] if block else None
    if isinstance(last, (ast.Return, ast.Break, ast.Continue)):
        return True
    if isinstance(last, ast.If):
        return _jumps(last.body) and _jumps(last.orelse)
    return isinstance(last, ast.With) and _jumps(last.body)


def _tidy(block: list[ast.stmt]) -> list[ast.stmt]:
    """Turns `if c: return a` followed by more into `if c: return a; else: more`."""
    for i, s in enumerate(block):
        for field in ("body", "orelse", "finalbody"):
            inside = getattr(s, field, None)
            if isinstance(inside, list) and not isinstance(
                s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
            ):
                setattr(s, field, _tidy(inside))
        for inside in (*getattr(s, "handlers", ()), *getattr(s, "cases", ())):
            inside.body = _tidy(inside.body)
        rest = block[i + 1 :]
        if isinstance(s, ast.If) and rest:
            if _jumps(s.body):
                s.orelse = s.orelse if _jumps(s.orelse) else _tidy([*s.orelse, *rest])
                return block[: i + 1]
            if s.orelse and _jumps(s.orelse):
                s.body = _tidy([*s.body, *rest])
                return block[: i + 1]
    return block


class _Jumps:
    """Lowers the blocks of one function."""

    def __init__(self, function: ast.FunctionDef) -> None:
        branching = [n for n in walk_scope(function.body) if isinstance(n, _BRANCHING)]
        self.returns = any(
            isinstance(n, ast.Return) for b in branching for n in walk_scope(ast.iter_child_nodes(b))
        )
        self.count = 0

    def block(
        self, statements: list[ast.stmt], loop: tuple[str, str] | None
    ) -> tuple[list[ast.stmt], set[str]]:
        """The statements without jumps, and the flags that they may set."""
        out: list[ast.stmt] = []
        flags: set[str] = set()
        for i, s in enumerate(statements):
            lowered, mine = self._statement(s, loop)
            out += lowered
            flags |= mine
            rest = statements[i + 1 :]
            if mine and rest:
                inside, more = self.block(rest, loop)
                set_flags = sorted(mine)
                # If the function has already returned, RETURNED is True either way: both branches agree on it.
                otherwise = (
                    [_assign(RETURNED, ast.Constant(True), rest[0])] if set_flags == [RETURNED] else []
                )
                out.append(ast.copy_location(ast.If(_not_any(set_flags), inside, otherwise), rest[0]))
                return out, flags | more
        return out, flags

    def _statement(self, s: ast.stmt, loop: tuple[str, str] | None) -> tuple[list[ast.stmt], set[str]]:
        if isinstance(s, ast.Return) and self.returns:
            value = s.value or ast.copy_location(ast.Constant(None), s)
            return [_assign(RESULT, value, s), _assign(RETURNED, ast.Constant(True), s)], {RETURNED}
        if isinstance(s, (ast.Break, ast.Continue)) and loop is not None:
            flag = loop[0] if isinstance(s, ast.Break) else loop[1]
            return [_assign(flag, ast.Constant(True), s)], {flag}
        if isinstance(s, (ast.For, ast.While)):
            return self._loop(s, loop)
        if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.AsyncFor)):
            return [s], set()
        flags: set[str] = set()
        for field in ("body", "orelse", "finalbody"):
            inside = getattr(s, field, None)
            if isinstance(inside, list):
                lowered, mine = self.block(inside, loop)
                setattr(s, field, lowered or ([ast.copy_location(ast.Pass(), s)] if inside else []))
                flags |= mine
        for part in (*getattr(s, "handlers", ()), *getattr(s, "cases", ())):
            part.body, mine = self.block(part.body, loop)
            flags |= mine
        return [s], flags

    def _loop(self, s: ast.For | ast.While, outer: tuple[str, str] | None) -> tuple[list[ast.stmt], set[str]]:
        self.count += 1
        ended, skipped = f"ag__break_{self.count}", f"ag__continue_{self.count}"
        s.body, flags = self.block(s.body, (ended, skipped))
        before: list[ast.stmt] = []
        after: list[ast.stmt] = []
        if skipped in flags:
            s.body.insert(0, _assign(skipped, ast.Constant(False), s))
        stops = sorted(flags - {skipped})
        if ended in flags:
            before.append(_assign(ended, ast.Constant(False), s))
        if stops and isinstance(s, ast.While):
            s.test = ast.copy_location(_not_any(stops, s.test), s.test)
        elif stops:
            s.go_on = ast.copy_location(_not_any(stops), s)  # asked before each next item
        if s.orelse:
            otherwise, more = self.block(s.orelse, outer)
            after = [ast.copy_location(ast.If(_not_any(stops), otherwise, []), s)] if stops else otherwise
            s.orelse = []
            flags |= more
        return [*before, s, *after], flags - {ended, skipped}
