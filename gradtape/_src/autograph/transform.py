"""Rewrites the source of a function so that its statements can be traced.

`if c: y = a` becomes a call of `ag__.if_stmt` with functions for the branches, and functions that get and set
the variables that the branches change. `while`, `for`, `and`, `or`, `not`, conditional expressions and
chained comparisons become calls too, and a call `f(x)` becomes `ag__.conv(f)(x)`. `ag__` is `operators.py`:
when the code runs, it decides whether to do what Python does or to trace. Line numbers remain those of the user's file.
"""

from __future__ import annotations

import ast
import collections
import contextlib
import copy
import inspect
import linecache
import types
from collections.abc import Mapping, Sequence
from typing import Any

from gradtape._src.autograph import jumps, variables
from gradtape._src.autograph.options import set_loop_options
from gradtape._src.base.locks import Lock

OPERATORS = "ag__"


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(_load(OPERATORS), name, ast.Load()), list(args), [])


def _arguments(*names: str) -> ast.arguments:
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


def _lambda(body: ast.expr, *names: str) -> ast.Lambda:
    return ast.Lambda(_arguments(*names), body)


def _is_generator(function: ast.AST) -> bool:
    return any(
        isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await)) for n in variables.walk_scope(function.body)
    )


def _holds(node: ast.AST, *kinds: type) -> bool:
    return any(isinstance(n, kinds) for n in ast.walk(node))


class _Expressions(ast.NodeTransformer):
    """Rewrites calls, logic and conditional expressions, also in nested functions."""

    def __init__(self, owner: str | None, this: str | None, outside: Mapping[str, Any]) -> None:
        self.owner = owner  # the class whose method this is, for private names
        self.this = this  # the first argument, for `super()`
        self.outside = outside  # the values of names that are not local

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and self.this:
            return ast.copy_location(ast.Call(node.func, [_load("__class__"), _load(self.this)], []), node)
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", None) == OPERATORS:
            return node
        node.func = ast.copy_location(_call("conv", node.func), node.func)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if _holds(node, ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await):
            return node
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return ast.copy_location(_call(name, *(_lambda(v) for v in node.values)), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(_call("not_", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if _holds(node, ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await):
            return node
        return ast.copy_location(_call("if_exp", node.test, _lambda(node.body), _lambda(node.orelse)), node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1 or _holds(node, ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await):
            return node
        links = [
            ast.Tuple(
                [_lambda(ast.Compare(_load("x"), [op], [_load("y")]), "x", "y"), _lambda(value)], ast.Load()
            )
            for op, value in zip(node.ops, node.comparators, strict=True)
        ]
        return ast.copy_location(_call("chain", node.left, *links), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if self.owner and node.attr.startswith("__") and not node.attr.endswith("__"):
            node.attr = f"_{self.owner.lstrip('_')}{node.attr}"
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.generic_visit(node)
        return (
            node if _holds(node, ast.Yield, ast.YieldFrom) else ast.copy_location(_call("done", node), node)
        )

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if not _is_generator(node):
            _Statements(node, self.owner, self.this, self.outside).rewrite()
            node.decorator_list.append(
                ast.copy_location(ast.Attribute(_load(OPERATORS), "done", ast.Load()), node)
            )
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node


def _parsed(source: str) -> list[Any]:
    """The statements of a source that is not the user's, without lines: `_place` gives them those of the user's."""
    module = ast.parse(source)
    for n in ast.walk(module):
        for attribute in n._attributes:
            n.__dict__.pop(attribute, None)
    return module.body


class _Statements(_Expressions):
    """Rewrites the statements of one function."""

    def __init__(
        self, function: ast.FunctionDef, owner: str | None, this: str | None, outside: Mapping[str, Any]
    ) -> None:
        super().__init__(owner, this, outside)
        self.function = function
        self.count = 0

    def rewrite(self) -> None:
        function = self.function
        jumps.lower(function)
        self.globals = variables.declared(function, ast.Global)
        self.nonlocals = variables.declared(function, ast.Nonlocal)
        self.captured = variables.captured(function) | self.globals | self.nonlocals
        self.live = variables.Liveness(function)
        self.moved: dict[str, None] = {}
        body = [statement for s in function.body for statement in self._many(self.visit(s))]
        docstring = body[:1] if ast.get_docstring(function, clean=False) is not None else []
        declarations = [s for s in body if isinstance(s, (ast.Global, ast.Nonlocal))]
        rest = [s for s in body[len(docstring) :] if s not in declarations]
        arguments = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
        local = [n for n in self.moved if n not in self.globals | self.nonlocals | arguments]
        if local:
            # Never runs: it makes these names local variables of this function.
            bind = ast.Assign([ast.Name(n, ast.Store()) for n in local], ast.Constant(None))
            declarations.append(ast.If(ast.Constant(False), [bind], []))
        function.body = [*docstring, *declarations, *rest]

    @staticmethod
    def _many(rewritten: Any) -> list[ast.stmt]:
        return rewritten if isinstance(rewritten, list) else [rewritten]

    # ---- parts ------------------------------------------------------------------------------

    def _function(
        self, name: str, args: Sequence[str], names: Sequence[str], body: list[ast.stmt]
    ) -> ast.FunctionDef:
        """A nested function that shares the variables of this one."""
        simple = [n for n in names if n.isidentifier()]
        for n in simple:
            self.moved.setdefault(n)
        head: list[ast.stmt] = []
        for kind, chosen in (
            (ast.Global, [n for n in simple if n in self.globals]),
            (ast.Nonlocal, [n for n in simple if n not in self.globals]),
        ):
            if chosen:
                head.append(kind(chosen))
        return ast.FunctionDef(name, _arguments(*args), [*head, *body] or [ast.Pass()], [])

    def _state(self, names: Sequence[str]) -> tuple[list[ast.stmt], list[ast.expr]]:
        """Functions that get and set variables, and the arguments that pass them on."""
        get, put = f"ag__get_{self.count}", f"ag__set_{self.count}"
        current = _call("state", *(_lambda(_parsed(n)[0].value) for n in names))
        body: list[ast.stmt] = []
        for i, name in enumerate(names):
            given = ast.Subscript(_load("ag__v"), ast.Constant(i), ast.Load())
            test = ast.Compare(given, [ast.Is()], [ast.Attribute(_load(OPERATORS), "UNDEFINED", ast.Load())])
            assign = _parsed(f"{name} = ag__v[{i}]")
            # A place that exists only after one branch must be absent again when the other one runs.
            source = f"{name} = None\ndel {name}"
            if not name.isidentifier():
                source = f"try:\n    del {name}\nexcept {OPERATORS}.MISSING:\n    pass"
            remove = _parsed(source)
            body.append(ast.If(test, remove, assign))
        functions = [
            ast.FunctionDef(get, _arguments(), [ast.Return(current)], []),
            self._function(put, ["ag__v"], names, body),
        ]
        return functions, [_load(get), _load(put), ast.Tuple([ast.Constant(n) for n in names], ast.Load())]

    def _visit_block(self, block: list[ast.stmt]) -> list[ast.stmt]:
        return [statement for s in block for statement in self._many(self.visit(s))]

    def _place(self, statements: list[ast.stmt], at: ast.stmt) -> list[ast.stmt]:
        for s in statements:
            for n in ast.walk(s):
                if "lineno" in n._attributes and not hasattr(n, "lineno"):
                    ast.copy_location(n, at)
                    n.end_lineno, n.end_col_offset = n.lineno, n.col_offset
        return statements

    def _needed(self, name: str, live: set[str]) -> bool:
        return name in live or name in self.captured or not name.isidentifier()

    def _options(self, body: list[ast.stmt]) -> ast.expr:
        """A function that returns the options set in a loop's body; see `options.py`."""
        for s in body:
            call = s.value if isinstance(s, ast.Expr) else None
            if isinstance(call, ast.Call) and self._meaning(call.func) is set_loop_options:
                call = copy.deepcopy(call)
                self.generic_visit(call)
                call.func = ast.Attribute(_load(OPERATORS), "LoopOptions", ast.Load())
                return _lambda(call)
        return ast.Attribute(_load(OPERATORS), "LoopOptions", ast.Load())

    def _meaning(self, node: ast.expr) -> Any:
        """The value, outside of the function, of a name or of a name in a module; None for anything else."""
        if isinstance(node, ast.Name):
            return self.outside.get(node.id)
        if not isinstance(node, ast.Attribute):
            return None
        owner = self._meaning(node.value)
        return getattr(owner, node.attr, None) if isinstance(owner, types.ModuleType) else None

    # ---- statements -------------------------------------------------------------------------

    def visit_If(self, node: ast.If) -> Any:
        changed = variables.writes([*node.body, *node.orelse])
        results = [n for n in changed if self._needed(n, self.live.after[node])]
        read = [n for n in changed if n not in results and n in self.live.before[node]]
        test = self.visit(node.test)
        body, orelse = self._visit_block(node.body), self._visit_block(node.orelse)
        self.count += 1
        yes, no = f"ag__if_{self.count}", f"ag__else_{self.count}"
        state, arguments = self._state([*results, *read])
        names = [n for n in changed if n.isidentifier()]
        call = _call("if_stmt", test, _load(yes), _load(no), *arguments, ast.Constant(len(results)))
        statements = [
            *state,
            self._function(yes, [], names, body),
            self._function(no, [], names, orelse),
            ast.Expr(call),
        ]
        return self._place(statements, node)

    def visit_While(self, node: ast.While) -> Any:
        changed = variables.writes(node.body)
        carried = [n for n in changed if self._needed(n, self.live.before[node] | self.live.after[node])]
        options = self._options(node.body)
        test, body = self.visit(node.test), self._visit_block(node.body)
        self.count += 1
        ask, step = f"ag__test_{self.count}", f"ag__body_{self.count}"
        state, arguments = self._state(carried)
        names = [n for n in changed if n.isidentifier()]
        asked = ast.FunctionDef(ask, _arguments(), [ast.Return(test)], [])
        call = _call("while_stmt", _load(ask), _load(step), *arguments, options)
        return self._place([*state, asked, self._function(step, [], names, body), ast.Expr(call)], node)

    def visit_For(self, node: ast.For) -> Any:
        changed = variables.writes([node.target, *node.body])
        carried = [n for n in changed if self._needed(n, self.live.before[node] | self.live.after[node])]
        go_on = getattr(node, "go_on", None)
        test = ast.Constant(None) if go_on is None else _lambda(self.visit(go_on))
        over = self.visit(node.iter)
        if isinstance(over, ast.Call) and getattr(over.func, "func", None) is not None:
            over.func.func.attr = "conv_range"  # for i in range(...): counts without a tensor
        options = self._options(node.body)
        body = self._visit_block(node.body)
        self.count += 1
        step = f"ag__body_{self.count}"
        state, arguments = self._state(carried)
        names = [n for n in changed if n.isidentifier()]
        take = ast.copy_location(ast.Assign([node.target], _load("ag__item")), node)
        target = ast.Constant(node.target.id if isinstance(node.target, ast.Name) else None)
        call = _call("for_stmt", over, test, _load(step), *arguments, options, target)
        return self._place(
            [*state, self._function(step, ["ag__item"], names, [take, *body]), ast.Expr(call)], node
        )

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)


# ---- functions ----------------------------------------------------------------------------------


def rewritten(function: types.FunctionType) -> ast.FunctionDef:
    """The syntax tree of a function after rewriting its source.

    Raises:
      OSError: if there is no source.
      SyntaxError, ValueError: if it is unclear which part of the source belongs to the function.
    """
    code = function.__code__
    node = _find(code, function.__globals__)
    this = code.co_varnames[0] if code.co_argcount else None
    owner = function.__qualname__.split(".")[-2] if "." in function.__qualname__ else None
    owner = None if owner == "<locals>" else owner
    if isinstance(node, ast.Lambda):
        body = ast.copy_location(ast.Return(node.body), node.body)
        node = ast.copy_location(ast.FunctionDef("ag__function", node.args, [body], []), node)
    # Its own name would shadow what the name refers to inside it: a global, or a variable of an outer function.
    node.name = "ag__function"
    node.decorator_list, node.returns = [], None
    for a in ast.walk(node.args):
        if isinstance(a, ast.arg):
            a.annotation = None
    # The new function gets the defaults of the existing one.
    node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    node.args.kw_defaults = [d and ast.Constant(None) for d in node.args.kw_defaults]
    _Statements(node, owner, this, _outside(function)).rewrite()
    return node


def _outside(function: types.FunctionType) -> Mapping[str, Any]:
    """The values of the names that a function uses and does not define."""
    captured: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # an empty cell
            captured[name] = cell.cell_contents
    return collections.ChainMap(captured, function.__globals__)


# Python 3.11 has one counter for the depth of trees being converted in all threads, and fails if two threads convert.
_ONE_AT_A_TIME = Lock()


def transform(function: types.FunctionType) -> types.CodeType:
    """The code of a function after rewriting its source. Raises what `rewritten` raises."""
    code = function.__code__
    with _ONE_AT_A_TIME:
        node = rewritten(function)
        outer = ast.FunctionDef("ag__outer", _arguments(OPERATORS, *code.co_freevars), [node], [])
        module = ast.fix_missing_locations(ast.Module([outer], []))
        compiled = compile(
            module, code.co_filename, "exec", dont_inherit=True, flags=code.co_flags & _FUTURES
        )
    inner = _code_in(_code_in(compiled, "ag__outer"), node.name)
    return inner.replace(co_name=code.co_name, co_qualname=code.co_qualname)


_FUTURES = 0x1000000  # from __future__ import annotations


def _code_in(code: types.CodeType, name: str) -> types.CodeType:
    return next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name)


def _find(code: types.CodeType, space: dict[str, Any]) -> Any:
    """The node of the source that a code object was compiled from."""
    if code.co_name == "<lambda>":
        return _find_lambda(code, space)
    source = "".join(inspect.getblock(_lines(code, space)[code.co_firstlineno - 1 :]))
    # Indented source is parsed inside a block, so that its columns stay the same.
    tree = ast.parse("if 1:\n" + source if source[:1].isspace() else source)
    ast.increment_lineno(tree, code.co_firstlineno - (2 if source[:1].isspace() else 1))
    node = tree.body[0].body[0] if source[:1].isspace() else tree.body[0]
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
        raise ValueError("the source is not that of the function")
    return node


def _lines(code: types.CodeType, space: dict[str, Any]) -> list[str]:
    """The lines of the file that a function with these globals is in.

    `inspect.getsource` would look through all imported modules for the one that the file belongs to.
    """
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, space)
    if code.co_firstlineno > len(lines):
        raise OSError("could not get source code")
    return lines


def _find_lambda(code: types.CodeType, space: dict[str, Any]) -> ast.Lambda:
    tree = ast.parse("".join(_lines(code, space)))
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    lambdas = [
        n
        for n in ast.walk(tree)
        if isinstance(n, ast.Lambda)
        and n.lineno == code.co_firstlineno
        and tuple(a.arg for a in (*n.args.posonlyargs, *n.args.args, *n.args.kwonlyargs)) == names
    ]
    if len(lambdas) > 1:
        at = {p for p in code.co_positions() if p[0] is not None}
        begins = min((p[0], p[2]) for p in at if p[2] is not None and p[1] is not None and (p[2] or p[3]))
        lambdas = [
            n
            for n in lambdas
            if (n.body.lineno, n.body.col_offset) <= begins <= (n.body.end_lineno, n.body.end_col_offset)
        ]
    if len(lambdas) != 1:
        raise ValueError("there are several functions on the same line of source")
    return lambdas[0]
