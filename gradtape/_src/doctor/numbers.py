"""Causes of NaN gradients: unsafe branches of `tf.where`, logarithms of probabilities that round to zero."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradtape._src.doctor.names import Aliases
from gradtape._src.doctor.read import Finding, Source

# Functions with an infinite derivative somewhere: the last parts of their names.
_UNSAFE = frozenset(("log", "sqrt", "rsqrt", "acos", "asin", "acosh", "reciprocal", "divide", "truediv"))
# Functions whose results stay away from such points.
_GUARDS = frozenset(
    ("maximum", "clip_by_value", "where", "exp", "softplus", "cosh", "divide_no_nan", "ones_like")
)
_LOGS = {
    "softmax": "tf.nn.log_softmax(logits) is exact where the probability rounds to zero",
    "sigmoid": "tf.math.log_sigmoid(x) is exact where the probability rounds to zero",
}


def check(source: Source, aliases: Aliases) -> Iterator[Finding]:
    """Findings about NaNs."""
    for scope in ast.walk(source.tree):
        if isinstance(scope, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _check_scope(source, aliases, scope)


def of_scope(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope in the order of the text, without those of functions and classes inside it."""
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield from of_scope(node)


def _check_scope(source: Source, aliases: Aliases, scope: ast.AST) -> Iterator[Finding]:
    assigned: dict[str, ast.expr] = {}
    for node in of_scope(scope):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            assigned[node.targets[0].id] = node.value
        name = _last(aliases.called(node))
        if name == "where" and isinstance(node, ast.Call):
            yield from _where(source, aliases, node, assigned)
        elif name == "log" and isinstance(node, ast.Call) and node.args:
            inner = node.args[0]
            inner = assigned.get(inner.id, inner) if isinstance(inner, ast.Name) else inner
            of = _last(aliases.called(inner))
            if of in _LOGS:
                yield source.found(node, "nan", f"log({of}(...)) gives -inf, then NaN: {_LOGS[of]}.")


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _where(
    source: Source, aliases: Aliases, call: ast.Call, assigned: dict[str, ast.expr]
) -> Iterator[Finding]:
    branches = [*call.args[1:3], *(k.value for k in call.keywords if k.arg in ("x", "y"))]
    for branch in branches:
        value = assigned.get(branch.id, branch) if isinstance(branch, ast.Name) else branch
        what = _unsafe(aliases, value, assigned)
        if what:
            yield source.found(
                call,
                "nan",
                f"tf.where computes both branches, and where {what} is infinite the gradient is NaN even if the other "
                "branch is taken: make the operand safe first, safe = tf.where(ok, x, 1.0).",
            )


def _unsafe(aliases: Aliases, value: ast.expr, assigned: dict[str, ast.expr]) -> str:
    """A part of an expression that can be infinite, or have an infinite derivative."""
    for node in (value, *ast.walk(value)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            if not _guarded(aliases, node.right, assigned):
                return "the division"
        elif isinstance(node, ast.Call):
            name = _last(aliases.called(node))
            if name not in _UNSAFE or not node.args:
                continue
            operand = node.args[-1] if name in ("divide", "truediv") else node.args[0]
            if not _guarded(aliases, operand, assigned):
                return f"tf's {name}"
    return ""


def _guarded(aliases: Aliases, operand: ast.expr, assigned: dict[str, ast.expr], deep: bool = True) -> bool:
    """Whether an operand is a number, or kept away from zero: a sum with a number, a maximum, a `where` before."""
    if isinstance(operand, ast.Constant):
        return True
    if isinstance(operand, ast.UnaryOp):
        return _guarded(aliases, operand.operand, assigned, deep)
    if isinstance(operand, ast.BinOp):
        if isinstance(operand.op, ast.Add):
            return any(isinstance(x, ast.Constant) or _small(x) for x in (operand.left, operand.right))
        if isinstance(operand.op, (ast.Mult, ast.Div, ast.Pow)):
            return _guarded(aliases, operand.left, assigned, deep) and _guarded(
                aliases, operand.right, assigned, deep
            )
    if isinstance(operand, ast.Name):
        if _small(operand) or operand.id.lower().startswith("safe"):
            return True
        return deep and operand.id in assigned and _guarded(aliases, assigned[operand.id], assigned, False)
    if isinstance(operand, ast.Call):
        name = _last(aliases.called(operand))
        if name in ("cast", "sqrt", "square", "constant", "convert_to_tensor") and operand.args:
            return _guarded(aliases, operand.args[0], assigned, deep)
        # Calls outside of TensorFlow (len, float, math.sqrt) are assumed to return plain numbers.
        return not name or name in _GUARDS
    return isinstance(operand, ast.Attribute)  # a setting, such as self.scale


def _small(node: ast.expr) -> bool:
    """Whether a name says so: eps, epsilon, EPS, self.eps, delta, tiny."""
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return any(word in name.lower() for word in ("eps", "tiny", "delta", "small"))
