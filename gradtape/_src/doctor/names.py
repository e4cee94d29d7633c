"""TensorFlow names in a file: which there are, whether gradtape has them, and spellings of Keras 2."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
from collections.abc import Iterator
from typing import Any, NamedTuple

from gradtape._src.doctor.effects import REFUSALS, STUBS
from gradtape._src.doctor.packages import KNOWN
from gradtape._src.doctor.read import Finding, Source
from gradtape_imports import internals

_ROOTS = frozenset(("tensorflow", "gradtape"))
_INTERNAL = frozenset(("compiler", "core", "python"))
# Names of Keras 2 that gradtape supports, by prefix.
_KERAS_2 = {
    "tf.keras.optimizers.legacy": "optimizers of Keras 2",
    "tf.keras.optimizers.experimental": "optimizers of Keras 2",
    "tf.keras.layers.experimental": "layers of Keras 2",
    "tf.keras.layers.CuDNN": "layers of Keras 2",
    "tf.keras.experimental": "a module of Keras 2",
    "tf.keras.mixed_precision.experimental": "a module of Keras 2",
    "tf.keras.utils.np_utils": "a module of Keras 2",
    "tf.keras.utils.generic_utils": "a module of Keras 2",
    "tf.keras.backend": "the backend functions of Keras 2",
    "tf.keras.preprocessing": "a module of Keras 2",
}
_KERAS_2_METHODS = frozenset(
    ("fit_generator", "evaluate_generator", "predict_generator", "predict_classes", "add_metric", "get_scaled_loss",
     "get_unscaled_gradients")
)  # fmt: skip


class Aliases(NamedTuple):
    """What the names of a file refer to: `{"tf": "tf", "layers": "tf.keras.layers"}`."""

    by_name: dict[str, str]
    imported: list[tuple[str, ast.AST]]  # TensorFlow names in import statements
    packages: list[tuple[str, ast.AST]]  # packages that import TensorFlow themselves
    internal: list[tuple[str, ast.AST]]
    uses_tensorflow: bool
    uses_keras: bool

    def dotted(self, node: ast.AST, shadowed: frozenset[str] = frozenset()) -> str:
        """`tf.math.log` for an expression that is a TensorFlow name, else ""."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id in shadowed or node.id not in self.by_name:
            return ""
        return ".".join((self.by_name[node.id], *reversed(parts)))

    def called(self, node: ast.AST) -> str:
        """The TensorFlow name that an expression calls."""
        return self.dotted(node.func) if isinstance(node, ast.Call) else ""


def aliases(source: Source) -> Aliases:
    """The names that the imports of a file bind."""
    out = Aliases({}, [], [], [], False, False)
    seen = keras = False
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            for a in node.names:
                root, _, rest = a.name.partition(".")
                keras = keras or root == "keras"
                if root in KNOWN:
                    out.packages.append((root, node))
                elif root in _ROOTS:
                    seen = True
                    if rest.split(".")[0] in _INTERNAL:
                        out.internal.append((a.name, node))
                        continue
                    full = f"tf.{rest}" if rest else "tf"
                    out.by_name[a.asname or root] = full if a.asname else "tf"
                    if rest:
                        out.imported.append((full, node))
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            root, _, rest = node.module.partition(".")
            keras = keras or root == "keras"
            if root in KNOWN:
                out.packages.append((root, node))
            elif root in _ROOTS:
                seen = True
                if rest.split(".")[0] in _INTERNAL:
                    out.internal.extend((f"{node.module}.{a.name}", node) for a in node.names)
                    continue
                for a in node.names:
                    full = ".".join(filter(None, ("tf", rest, a.name)))
                    if a.name == "*":
                        continue
                    out.by_name[a.asname or a.name] = full
                    out.imported.append((full, node))
    return out._replace(uses_tensorflow=seen, uses_keras=keras)


def uses(source: Source, aliases: Aliases) -> list[tuple[str, ast.AST]]:
    """TensorFlow names and where they are used, as long as possible: `tf.keras.layers.Dense`, not its parts."""
    out = list(aliases.imported)
    _walk(source.tree, aliases, _stored(source.tree), out)
    return out


def _walk(node: ast.AST, aliases: Aliases, shadowed: frozenset[str], out: list) -> None:
    if isinstance(node, ast.Try) and any(_catches_absence(h) for h in node.handlers):
        node = ast.Module([*node.orelse, *node.finalbody], [])  # the program handles the absence
    if isinstance(node, (ast.If, ast.IfExp)) and "hasattr" in {
        getattr(n, "id", "") for n in ast.walk(node.test)
    }:
        return
    if isinstance(node, (ast.Attribute, ast.Name)) and isinstance(node.ctx, ast.Load):
        name = aliases.dotted(node, shadowed)
        if name:
            if isinstance(node, ast.Attribute):
                out.append((name, node))
            return
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        shadowed = shadowed | _stored(node)
    for child in ast.iter_child_nodes(node):
        _walk(child, aliases, shadowed, out)


def _catches_absence(handler: ast.ExceptHandler) -> bool:
    names = (
        {n.id for n in ast.walk(handler.type) if isinstance(n, ast.Name)} if handler.type else {"Exception"}
    )
    return bool(names & {"AttributeError", "ImportError", "ModuleNotFoundError", "Exception"})


def _stored(scope: ast.AST) -> frozenset[str]:
    """Names that a module or function binds itself, other than by an import."""
    names: set[str] = set()
    if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        names |= {a.arg for a in ast.walk(scope.args) if isinstance(a, ast.arg)}
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        waiting += ast.iter_child_nodes(node)
    return frozenset(names)


# ---- findings ----------------------------------------------------------------------------------------


@functools.cache
def look(name: str) -> tuple[bool, str]:
    """Whether gradtape has a TensorFlow name, and if not, the error message."""
    import gradtape

    value: Any = gradtape
    for part in name.split(".")[1:]:
        try:
            value = getattr(value, part)
        except AttributeError as e:
            inner = f"{getattr(value, '__name__', '')}.{part}"
            package = "__path__" in getattr(value, "__dict__", ())
            if not package or importlib.util.find_spec(inner) is None:
                return False, str(e).partition(f"{part!r}: ")[2]
            value = importlib.import_module(inner)  # a module that is not imported yet
        except ImportError as e:
            return False, str(e)
        if not (isinstance(value, type) or type(value).__name__ in ("module", "SimpleNamespace")):
            break  # attributes of a value are not known
    return True, ""


def check(source: Source, aliases: Aliases, named: list[tuple[str, ast.AST]]) -> Iterator[Finding]:
    """Findings about names."""
    for package, node in aliases.packages:
        entry = KNOWN[package]
        yield source.found(node, "note" if entry.runs else "missing", entry.verdict, package)
    for name, node in aliases.internal:
        if internals.has(name.partition(".")[2]):
            yield source.found(
                node, "note", f"{name} is internal to TensorFlow; it works under the alias.", name
            )
        else:
            yield source.found(
                node, "missing", f"{name} is internal to TensorFlow, and gradtape has no such name.", name
            )
    for name, node in named:
        there, words = look(name)
        if not there:
            words = f"it {words}" if words.startswith("is ") else words
            yield source.found(
                node, "missing", f"gradtape has no {name}" + (f": {words}" if words else "."), name
            )
            continue
        if name in REFUSALS:
            if not _prepared(source.tree, node):
                yield source.found(node, "missing", f"gradtape refuses {name}: {REFUSALS[name]}.", name)
        elif name in STUBS:
            yield source.found(node, "note", f"{name} is accepted: {STUBS[name]}.", name)
        for start, what in _KERAS_2.items():
            if name.startswith(start):
                yield source.found(node, "note", f"{name}: {what}; it works.", name)
                break
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            yield from _keras_2_calls(source, aliases, node)


def _prepared(tree: ast.AST, node: Any) -> bool:
    """Whether a name is in a `try` that catches the error of a missing name."""
    for t in ast.walk(tree):
        if isinstance(t, ast.Try) and any(node is n for s in t.body for n in ast.walk(s)):
            caught = {
                getattr(n, "id", "") for h in t.handlers for n in ast.walk(h.type or ast.Name("Exception"))
            }
            if caught & {"ValueError", "RuntimeError", "Exception", "BaseException"}:
                return True
    return False


def _keras_2_calls(source: Source, aliases: Aliases, node: ast.Call) -> Iterator[Finding]:
    name = aliases.called(node)
    if name.startswith("tf.keras.optimizers."):
        for word in node.keywords:
            if word.arg in ("lr", "decay"):
                yield source.found(node, "note", f"{word.arg}= is Keras 2's spelling; it works.", name)
    if isinstance(node.func, ast.Attribute) and node.func.attr in _KERAS_2_METHODS:
        yield source.found(
            node, "note", f"{node.func.attr} is a method of Keras 2; it works.", node.func.attr
        )
