"""What the user's source says about a missing gradient, if nothing was recorded: `explain` without `debug.lines()`.

An op without a gradient leaves nothing on a tape. So the program itself is read: the `with` block of the tape, in
the function that called `explain`, and the user functions called in it. Everything that can end the path of a
gradient is listed with its line: `stop_gradient`, a cast to integers, values for NumPy, `predict`, `argmax`; and
tensors used in the block that were made before it. Such a line does not prove that the path led through it, and the
text says so.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import textwrap
import types
from typing import Any, NamedTuple

from gradtape import _core
from gradtape._src.base.source import Line, is_library
from gradtape._src.debug.explanation import SWITCH, Explanation

_DEPTH = 3  # how deep calls of user functions are followed

# Calls that end the path, by the last part of the called name: cause, reason, remedy.
_CALLS = {
    "stop_gradient": ("stop_gradient", "tf.stop_gradient makes its result a constant",
                      "take it out, if the gradient is wanted"),
    "predict": ("predict", "predict gives NumPy arrays, which no tape follows", "call the model itself there: model(x)"),
    "predict_on_batch": ("predict", "predict_on_batch gives NumPy arrays", "call the model itself there: model(x)"),
    "numpy": ("left for NumPy", ".numpy() takes the value to NumPy, where no tape follows", "compute with tf.* ops instead"),
    "item": ("left for NumPy", ".item() makes a Python number of it", "compute with tf.* ops instead"),
    "tolist": ("left for NumPy", ".tolist() makes Python numbers of it", "compute with tf.* ops instead"),
    "argmax": ("no gradient", "tf.argmax gives positions, which are integers",
               "tf.reduce_max gives the largest value itself; tf.nn.softmax is a smooth argmax"),
    "argmin": ("no gradient", "tf.argmin gives positions, which are integers",
               "tf.reduce_min gives the smallest value itself"),
    "round": ("no gradient", "rounding has no gradient", "tf.grad_pass_through(tf.round)(x) passes it straight through"),
    "floor": ("no gradient", "floor has no gradient", "tf.grad_pass_through(tf.floor)(x) passes it straight through"),
    "ceil": ("no gradient", "ceil has no gradient", "tf.grad_pass_through(tf.math.ceil)(x) passes it straight through"),
    "sign": ("no gradient", "sign is constant nearly everywhere", "use a smooth function, as tf.tanh(k * x)"),
    "assign": ("assigned", "an assignment ends the history of a value",
               "compute with the value itself, or use tf.GradientTape(track_assign=True)"),
    "numpy_function": ("left for NumPy", "tf.numpy_function has no gradient", "tf.py_function has one"),
}  # fmt: skip
_NUMBERS = {"float": "float()", "int": "int()"}


class Found(NamedTuple):
    """Something in the source that ends the path of a gradient."""

    cause: str
    text: str
    fix: str
    line: Line


def explanation(tape: Any, before: Explanation, target: Any = None) -> Explanation:
    """`before`, what the tape knows, extended by what the source shows, if it can be read and shows something."""
    frame = _asking_frame()
    block = None if frame is None else _block(frame, tape)
    if frame is None or block is None:
        return before
    causes = _afterwards(frame, block, tape, target)
    causes += _outside(frame, block, tape) if before.cause == "never read" else []
    reader = _Reader()
    reader.read(block.body, frame.f_globals | frame.f_locals, frame.f_code.co_filename, 0, _DEPTH)
    causes += reader.found
    if not causes:
        return before
    first, *others = causes
    sure = "" if not others else " Also there: " + "; ".join(f"{f.text} ({f.line})" for f in others[:3]) + "."
    text = f"{before.text} By the source of its context: {first.text}.{sure}"
    return Explanation(first.cause, text, f"{first.fix}. If that is not it: {SWITCH}", first.line)


def _asking_frame() -> types.FrameType | None:
    frame: Any = sys._getframe(1)
    while frame is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _block(frame: types.FrameType, tape: Any) -> ast.With | None:
    """The `with` statement of the tape in the code of a frame: the last one that binds a variable holding the tape."""
    tree = _tree(frame.f_code.co_filename)
    names = {name for name, value in frame.f_locals.items() if value is tape}
    block = None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.With) and node.lineno <= frame.f_lineno:
            given = {i.optional_vars.id for i in node.items if isinstance(i.optional_vars, ast.Name)}
            if given & names and (block is None or node.lineno > block.lineno):
                block = node
    return block


def _tree(file: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return None


class _Reader:
    """Reads statements, and the functions that they call."""

    def __init__(self) -> None:
        self.found: list[Found] = []
        self._seen: set[Any] = set()

    def read(self, body: list[Any], names: dict[str, Any], file: str, above: int, depth: int) -> None:
        """Reads statements of a file; `above` is the number of lines before them there."""
        for statement in body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Call):
                    self._call(node, names, Line(file, node.lineno + above), depth)

    def _call(self, node: ast.Call, names: dict[str, Any], line: Line, depth: int) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        called = _value(node.func, names)
        if isinstance(node.func, ast.Name) and called is None and name in _NUMBERS:
            words = f"{_NUMBERS[name]} makes a Python number of a tensor"
            self.found.append(Found("left for NumPy", words, "compute with tf.* ops instead", line))
        elif _root(node.func, names) == "numpy":
            words = f"{ast.unparse(node.func)} is NumPy's, where no tape follows"
            self.found.append(Found("left for NumPy", words, "take the tf.* op of that name", line))
        elif name == "cast" and (to := _integer(node)):
            words = f"tf.cast to {to}: integers have no derivative"
            self.found.append(
                Found("no gradient", words, "cast to a floating type, or not before the loss", line)
            )
        elif name in _CALLS and isinstance(node.func, ast.Attribute):
            self.found.append(Found(*_CALLS[name], line))
        else:
            self._follow(called, depth)

    def _follow(self, called: Any, depth: int) -> None:
        """Reads a called user function, method, Keras layer with a user's `call`, or tf.function."""
        called = getattr(called, "python_function", called)
        if not isinstance(called, (types.FunctionType, types.MethodType)):
            called = getattr(called, "call", None)
        function: Any = inspect.unwrap(getattr(called, "__func__", called)) if called is not None else None
        code = getattr(function, "__code__", None)
        if code is None or not depth or code in self._seen or is_library(code.co_filename):
            return
        self._seen.add(code)
        try:
            lines, first = inspect.getsourcelines(code)
            tree = ast.parse(textwrap.dedent("".join(lines)))
        except (OSError, SyntaxError):
            return
        names = dict(function.__globals__)
        if isinstance(called, types.MethodType):
            names["self"] = called.__self__
        self.read(tree.body, names, code.co_filename, first - 1, depth - 1)


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    """The value of a name, or of attributes of a name; None if it is not known. No user code runs."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute) and (inner := _value(node.value, names)) is not None:
        value = inspect.getattr_static(inner, node.attr, None)
        function = getattr(value, "python_function", value)
        if isinstance(function, types.FunctionType) and not isinstance(inner, (types.ModuleType, type)):
            return types.MethodType(function, inner)
        return value
    return None


def _root(node: ast.expr, names: dict[str, Any]) -> str:
    """The package that a call goes to, if it calls a function of a module."""
    while isinstance(node, ast.Attribute):
        node = node.value
    value = _value(node, names)
    return value.__name__.partition(".")[0] if isinstance(value, types.ModuleType) else ""


def _integer(node: ast.Call) -> str:
    """The integer type, or bool, that `tf.cast` converts to."""
    for given in [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "dtype")]:
        name = given.attr if isinstance(given, ast.Attribute) else getattr(given, "value", "")
        if isinstance(name, str) and name.startswith(("int", "uint", "bool")):
            return name
    return ""


def _outside(frame: types.FrameType, block: ast.With, tape: Any) -> list[Found]:
    """Tensors that the block uses, but that were made before it: the tape treats them as constants."""
    local = {
        n.id for s in block.body for n in ast.walk(s) if isinstance(n, ast.Name) and type(n.ctx) is ast.Store
    }
    used = [n.id for s in block.body for n in ast.walk(s) if isinstance(n, ast.Name) and n.id not in local]
    tree, causes = _tree(frame.f_code.co_filename), []
    for name in dict.fromkeys(used):
        value = frame.f_locals.get(name)
        if not isinstance(value, _core.Tensor) or tape._tracks(value) or tree is None:
            continue
        places = [n for n in ast.walk(tree) if isinstance(n, ast.Assign) and n.lineno < block.lineno]
        places = [n for n in places if any(isinstance(t, ast.Name) and t.id == name for t in n.targets)]
        last = max(places, key=lambda n: n.lineno, default=None)
        if last is None or not isinstance(last.value, (ast.BinOp, ast.Call)) or _is_data(last.value):
            continue
        other = [
            w for w in ast.walk(tree)
            if isinstance(w, ast.With) and last in ast.walk(w) and "GradientTape" in ast.unparse(w.items[0].context_expr)
        ]  # fmt: skip
        where = "by another tape's context" if other else "before the context, and no tape saw it"
        cause = "another tape" if other else "outside the context"
        fix = "compute it inside `with tf.GradientTape() as tape:`, or take the gradient on the tape that saw it"
        causes.append(Found(cause, f"`{name}` was made {where}: to this tape it is a constant ({cause})", fix,
                           Line(frame.f_code.co_filename, last.lineno)))  # fmt: skip
    return causes


def _afterwards(frame: types.FrameType, block: ast.With, tape: Any, target: Any) -> list[Found]:
    """The target, if it was computed below the block and no tape recorded it."""
    if not isinstance(target, _core.Tensor) or _core.record_number(target) or tape._tracks(target):
        return []
    names = {name for name, value in frame.f_locals.items() if value is target}
    tree = _tree(frame.f_code.co_filename)
    places = [
        (n.lineno, t.id)
        for n in (ast.walk(tree) if tree is not None else ())
        if isinstance(n, ast.Assign) and (block.end_lineno or block.lineno) < n.lineno <= frame.f_lineno
        for t in n.targets
        if isinstance(t, ast.Name) and t.id in names
    ]
    if not places:
        return []
    line, name = max(places)
    text = f"`{name}` was computed after the context, where the tape no longer records"
    fix = "compute it inside `with tf.GradientTape() as tape:`"
    return [Found("outside the context", text, fix, Line(frame.f_code.co_filename, line))]


def _is_data(node: ast.expr) -> bool:
    """Whether a tensor is made from something other than tensors: data, which needs no gradient."""
    name = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
    return name in "cast constant convert_to_tensor normal one_hot ones range uniform zeros".split()
