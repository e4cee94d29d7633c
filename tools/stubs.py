"""Writes the stubs of the public names: gradtape/__init__.pyi, math.pyi, nn.pyi, ... and gradtape/_typing/.

Most names of `tf` are added from the op table when gradtape is imported, so type checkers do not see them. `make
stubs` runs this; tests/test_types.py says when it must be run again. Functions with annotations are imported by the
stub; ops, and functions without annotations, are written out with their parameters.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import gradtape
from gradtape import _core
from gradtape._src.ops import PUBLIC
from gradtape._src.public import absent

HOME = Path(gradtape.__file__).parent
HEAD = "# Written by tools/stubs.py from the op table: `make stubs`.\n"

# Namespaces that are modules: their files import the names of the table for type checkers.
_MODULES = ("random", "debugging", "dtypes")
_KINDS = {
    "Operand": "TensorLike", "Index": "TensorLike", "Condition": "TensorLike", "Free": "TensorLike",
    "Operands": "TensorLikes", "Axes": "Axes", "Axis": "Int", "NewAxis": "Int", "Perm": "Axes", "Shape": "Shape",
    "Reshape": "Shape", "Int": "Int", "Ints": "Ints", "Float": "Float", "Bool": "Bool", "Dtype": "DTypeLike",
}  # fmt: skip

# Decorators whose types are written by hand: gradtape/_typing/functions.pyi.
_KEEPS_TYPES = ("function", "custom_gradient", "recompute_grad", "grad_pass_through")

# Functions that return one tensor, which `_gives_tensor` cannot recognise.
_ONE_TENSOR = frozenset(
    """accumulate_n atrous_conv2d atrous_conv2d_transpose avg_pool avg_pool1d avg_pool2d avg_pool3d batch_to_space beta
    bias_add bincount clip_by_norm constant conv1d conv1d_transpose conv2d conv2d_transpose conv3d conv3d_transpose
    conv_transpose convert_to_tensor convolution count_nonzero cross ctc_loss depthwise_conv2d
    depthwise_conv2d_backprop_input dilation2d dropout edit_distance einsum embedding_lookup_sparse erosion2d eye gamma
    global_norm guarantee_const histogram_fixed_width histogram_fixed_width_bins l2_loss l2_normalize linspace
    log_poisson_loss log_sigmoid max_pool max_pool1d max_pool2d max_pool3d norm normal polyval pool
    quantize_and_dequantize random_index_shuffle range reduce_euclidean_norm reduce_variance reverse_sequence
    sampled_softmax_loss scalar_mul scale_regularization_loss searchsorted separable_conv2d shuffle
    sigmoid_cross_entropy_with_logits size sobol_sample softmax_cross_entropy_with_logits
    sparse_softmax_cross_entropy_with_logits stateless_gamma stateless_normal stateless_parameterized_truncated_normal
    stateless_truncated_normal stateless_uniform truncated_normal uniform with_space_to_batch""".split()
)


def files() -> dict[Path, str]:
    """Every stub file and its text."""
    spaces: dict[str, dict[str, Any]] = {}
    for name, value in sorted(PUBLIC.items()):
        space, _, last = name.rpartition(".")
        if space.partition(".")[0] not in absent.LAZY.difference(_MODULES):
            spaces.setdefault(space, {})[last] = value
    for name in ("math", "nn", "experimental"):
        spaces.setdefault(name, {})
    out = {HOME / "__init__.pyi": _root(spaces)}
    for space in spaces:
        if not space or "." in space:
            continue
        lines = _names(spaces[space])
        for inner in spaces:
            if inner.startswith(f"{space}."):
                lines += ["", f"class {inner.partition('.')[2]}:", *_methods(spaces[inner])]
        lines += _elsewhere(space)
        if space in _MODULES:
            out[HOME / "_typing" / f"{space}.pyi"] = _file(lines)
        else:
            out[HOME / f"{space}.pyi"] = _file(lines)
    return out


def _file(lines: list[str]) -> str:
    imports = sorted({line for line in lines if line.startswith(("from ", "import "))})
    rest = [line for line in lines if not line.startswith(("from ", "import "))]
    text = "\n".join(rest)
    used = sorted(set(re.findall(r"\b_([A-Z]\w+)\b", text)))
    imports += [f"from gradtape._typing import {name} as _{name}" for name in used]
    return f"{HEAD}{chr(10).join(sorted(imports))}\n\n{text.strip()}\n"


def _root(spaces: dict[str, dict[str, Any]]) -> str:
    """The imports of __init__.py, the namespaces, and the ops without one."""
    lines = []
    for node in ast.parse((HOME / "__init__.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            for a in node.names:
                name = a.asname or a.name
                if not name.startswith("_"):
                    lines += _import(node.module or "", a.name, name)
    for name in (n for n in spaces if n and "." not in n):
        lines.append(f"from gradtape import {name} as {name}")
    lines += [f"from gradtape import {name} as {name}" for name in sorted(absent.LAZY)]
    lines += ["", "__version__: str", "newaxis: None", *_elsewhere("")]
    return _file(lines + _names(spaces[""]))


def _elsewhere(space: str) -> list[str]:
    """Names that are imported from another module when they are first used."""
    lines = []
    for name, place in absent._ELSEWHERE.items():
        where, _, last = name.rpartition(".")
        module, _, attribute = place.partition(":")
        if where != space:
            continue
        if last in _KEEPS_TYPES and not where:
            lines += _import("gradtape._typing.functions", last, last)
        elif attribute:
            lines += _import(module, attribute, last)
        else:
            parent, _, module = module.rpartition(".")
            lines += _import(parent, module, last)
    return lines


def _import(module: str, name: str, public: str) -> list[str]:
    """A name of another module as a public one. A stub passes on only what it imports under the same name."""
    if name == public:
        return [f"from {module} import {name} as {name}"]
    return [f"from {module} import {name} as _{name.lstrip('_')}", f"{public} = _{name.lstrip('_')}"]


def _names(values: dict[str, Any]) -> list[str]:
    return [line for name, value in values.items() for line in _name(name, value)]


def _methods(values: dict[str, Any]) -> list[str]:
    """A nested namespace, which is not a module to a type checker: a class with static methods."""
    lines = []
    for name, value in values.items():
        if isinstance(value, type):
            lines.append(f"    from {value.__module__} import {value.__name__} as {name}")
        else:
            lines += ["    @staticmethod", f"    {_definition(name, value)}"]
    return lines


def _name(name: str, value: Any) -> list[str]:
    is_named = isinstance(value, type) or (
        isinstance(_python(value), types.FunctionType) and value.__annotations__
    )
    if is_named:
        members = vars(sys.modules[value.__module__])
        # A function may have another name in its file: `range_`.
        at = [
            k
            for k in (value.__name__, *(k for k, v in members.items() if v is value))
            if members.get(k) is value
        ]
        if at:
            return _import(value.__module__, at[0], name)
    return [_definition(name, value)]


def _python(value: Any) -> Any:
    """The Python function inside a `Composite`."""
    return value.__wrapped__ if isinstance(value, _core.Composite) else value


def _definition(name: str, value: Any) -> str:
    if isinstance(value, _core.Op):
        row = value.row
        kinds = ["Name" if p.name == "name" else _KINDS.get(p.kind, "Any") for p in row.params]
        given = [_parameter(p.name, k, p.default is not ...) for p, k in zip(row.params, kinds, strict=True)]
        return f"def {name}({', '.join(given)}) -> _{'Tensors' if row.many else 'Tensor'}: ..."
    parts = []
    signature = inspect.signature(value)
    for p in signature.parameters.values():
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        if p.kind is p.KEYWORD_ONLY and not any(x.startswith("*") for x in parts):
            parts.append("*")
        kind = "Name" if p.name == "name" else "Bool" if isinstance(p.default, bool) else "Any"
        parts.append(star + _parameter(p.name, kind, p.default is not p.empty))
    result = "Tensor" if name in _ONE_TENSOR or _gives_tensor(value) else "Any"
    return f"def {name}({', '.join(parts)}) -> _{result}: ..."


def _parameter(name: str, kind: str, has_default: bool) -> str:
    return f"{name}: _{kind}" + (" = ..." if has_default else "")


# ---- what a function returns ------------------------------------------------------------------------


def _gives_tensor(function: Any, above: frozenset = frozenset()) -> bool:
    """Whether every `return` of a function is plainly a tensor: an op, arithmetic, another such function."""
    if isinstance(function, _core.Op):
        return not function.row.many
    function = _python(function)
    if not isinstance(function, types.FunctionType) or function in above:
        return False
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    if not isinstance(tree, ast.FunctionDef):
        return False
    reader = _Returns(function, above | {function})
    returns = [n for n in _own(tree) if isinstance(n, ast.Return)]
    return bool(returns) and all(reader.is_tensor(n.value) for n in returns)


def _own(tree: ast.AST) -> list[ast.AST]:
    """The nodes of a function without those of functions inside it."""
    out: list[ast.AST] = []
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, (ast.FunctionDef, ast.Lambda)):
            out += [child, *_own(child)]
    return out


class _Returns:
    """Expressions of one function."""

    def __init__(self, function: types.FunctionType, above: frozenset) -> None:
        self._function, self._above = function, above

    def is_tensor(self, node: ast.expr | None) -> bool:
        if isinstance(node, ast.IfExp):
            return self.is_tensor(node.body) and self.is_tensor(node.orelse)
        if isinstance(node, ast.BinOp):
            return self.is_tensor(node.left) or self.is_tensor(node.right)
        return isinstance(node, ast.Call) and _gives_tensor(self._resolved(node.func), self._above)

    def _resolved(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            return self._function.__globals__.get(node.id)
        if isinstance(node, ast.Attribute):
            return getattr(self._resolved(node.value), node.attr, None)
        return None


def main() -> None:
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
