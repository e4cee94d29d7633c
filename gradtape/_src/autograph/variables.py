"""Which variables a statement reads and writes, and which are needed where.

A variable is a local name, or a place such as `self.x`, `d["k"]` or `d[k]`, identified by its source text. Places
outlive the function, so they are always needed; for names, liveness is computed by a backward walk over the statements.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# What an index is made of that can be computed repeatedly.
_INDEX = (
    ast.Constant, ast.Name, ast.UnaryOp, ast.BinOp, ast.Tuple, ast.operator, ast.unaryop, ast.expr_context,
)  # fmt: skip
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def walk_scope(node: ast.AST | Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes below that run in the same scope, so not those inside functions and classes."""
    stack = list(node) if not isinstance(node, ast.AST) else [node]
    while stack:
        n = stack.pop()
        yield n
        if not isinstance(n, (*_FUNCTIONS, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(n))


def _comprehension_targets(nodes: Iterable[ast.AST]) -> set[ast.AST]:
    """Targets of comprehensions, which are scopes of their own."""
    return {
        name
        for n in nodes
        if isinstance(n, _COMPREHENSIONS)
        for generator in n.generators
        for name in ast.walk(generator.target)
    }


def reads(node: ast.AST | Iterable[ast.AST]) -> set[str]:
    """Names that may be read, including free variables of functions defined here."""
    names: set[str] = set()
    todo: list[tuple[ast.AST, frozenset[str]]] = [
        (n, frozenset()) for n in ([node] if isinstance(node, ast.AST) else node)
    ]
    while todo:
        n, own = todo.pop()
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id not in own:
            names.add(n.id)
        if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) and n.target.id not in own:
            names.add(n.target.id)
        inside = _inside(n)
        inner = own | _own_names(n) if inside else own
        todo += [(child, inner if child in inside else own) for child in ast.iter_child_nodes(n)]
    return names


def _inside(node: ast.AST) -> list[ast.AST]:
    """The nodes below that are in inner scopes."""
    if isinstance(node, ast.Lambda):
        return [node.body]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return list(node.body)
    return []


def _own_names(function: ast.AST) -> set[str]:
    """The names that are local to a function."""
    of = function.args
    arguments = [*of.posonlyargs, *of.args, *of.kwonlyargs, *(a for a in (of.vararg, of.kwarg) if a)]
    names = {a.arg for a in arguments}
    if isinstance(function, ast.Lambda):
        return names
    return (names | set(writes(function.body))) - declared(function, (ast.Global, ast.Nonlocal))


def writes(node: ast.AST | Iterable[ast.AST]) -> list[str]:
    """Names and places that may be written in this scope, in the order of their first write."""
    nodes = list(walk_scope(node))
    inner = _comprehension_targets(nodes)
    first: dict[str, tuple] = {}
    depends: dict[str, set[str]] = {}  # places that are others when one of these names changes

    def add(name: str, n: ast.AST) -> None:
        at = (getattr(n, "lineno", 0), getattr(n, "col_offset", 0))
        first[name] = min(first.get(name, at), at)

    for n in nodes:
        if n in inner:
            continue
        if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del)):
            add(n.id, n)
        elif isinstance(n, (ast.Attribute, ast.Subscript)) and isinstance(n.ctx, ast.Store) and _is_place(n):
            add(ast.unparse(n), n)
            depends[ast.unparse(n)] = _where(n)
        elif (
            isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            or isinstance(n, ast.ExceptHandler)
            and n.name
        ):
            add(n.name, n)
        elif isinstance(n, (ast.Import, ast.ImportFrom)):
            for alias in n.names:
                add((alias.asname or alias.name).split(".")[0], n)
        elif isinstance(n, (ast.MatchAs, ast.MatchStar)) and n.name:
            add(n.name, n)
        elif isinstance(n, ast.MatchMapping) and n.rest:
            add(n.rest, n)
    return [
        name for name in sorted(first, key=first.__getitem__) if depends.get(name, set()).isdisjoint(first)
    ]


def _is_place(node: ast.AST) -> bool:
    """Whether a node is like `a.b`, `a[0]` or `a[k + 1].b`: it can be read and written without side effects."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Subscript) and not all(isinstance(n, _INDEX) for n in ast.walk(node.slice)):
            return False
        node = node.value
    return isinstance(node, ast.Name)


def _where(place: ast.AST) -> set[str]:
    """The names that a place with names as indices is made of; none if its indices are constants."""
    indices = [n.slice for n in ast.walk(place) if isinstance(n, ast.Subscript)]
    return reads(place) | reads(indices) if reads(indices) else set()


def declared(function: ast.AST, kind: type | tuple[type, ...]) -> set[str]:
    """Names declared in `global` or `nonlocal` statements."""
    return {name for n in walk_scope(function.body) if isinstance(n, kind) for name in n.names}


def captured(function: ast.AST) -> set[str]:
    """Names read by nested functions, which may run at any time."""
    inner = [n for n in walk_scope(function.body) if isinstance(n, (*_FUNCTIONS, ast.ClassDef))]
    return reads(inner)


class Liveness:
    """For each `if`, `while` and `for`: the names needed when it begins and after it has ended."""

    def __init__(self, function: ast.AST) -> None:
        self.before: dict[ast.stmt, set[str]] = {}
        self.after: dict[ast.stmt, set[str]] = {}
        self._block(function.body, set())

    def _block(self, statements: list[ast.stmt], out: set[str]) -> set[str]:
        for s in reversed(statements):
            out = self._statement(s, out)
        return out

    def _statement(self, s: ast.stmt, out: set[str]) -> set[str]:
        if isinstance(s, (ast.Return, ast.Raise)):
            return reads(s)
        if isinstance(s, ast.If):
            needed = reads(s.test) | self._block(s.body, out) | self._block(s.orelse, out)
            self.before[s], self.after[s] = needed, set(out)
            return needed
        if isinstance(s, (ast.While, ast.For)):
            return self._loop(s, out)
        if isinstance(s, (ast.With, ast.AsyncWith)):
            return reads(s.items) | (self._block(s.body, out) - set(writes(s.items)))
        if isinstance(s, ast.Try):
            last = self._block(s.finalbody, out)
            handlers = set().union(
                *(reads([h.type] if h.type else []) | self._block(h.body, last) for h in s.handlers)
            )
            return self._block(s.body, self._block(s.orelse, last) | handlers) | handlers | last
        if isinstance(s, ast.Match):
            cases = [
                reads([c.pattern, *([c.guard] if c.guard else [])]) | self._block(c.body, out)
                for c in s.cases
            ]
            return reads(s.subject) | out | set().union(*cases)
        return (out - set(writes(s))) | reads(s)

    def _loop(self, s: ast.While | ast.For, out: set[str]) -> set[str]:
        header = set(out) | reads(s.test if isinstance(s, ast.While) else getattr(s, "go_on", None) or [])
        while True:
            needed = self._block(s.body, header)
            if isinstance(s, ast.For):
                needed = needed - set(writes(s.target))
            if needed <= header:
                break
            header |= needed
        self.before[s], self.after[s] = header, set(out)
        return header | reads(s.iter) if isinstance(s, ast.For) else header
