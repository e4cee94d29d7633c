"""Writes gradtape/_src/ops/late_names.py: the names of each family of ops that is imported lazily.

`make stubs` runs it; tests/test_package.py says when it must be run again (`--check`). A family's names are those
that appear in the tables while it is imported, after its dependencies.
"""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path
from types import ModuleType

from gradtape import _core
from gradtape._src import ops

HOME = Path(ops.__file__).parent
PATH = HOME / "late_names.py"
HEAD = '''"""Names of the families of ops that `late.py` imports. Written by tools/late_ops.py: `make stubs`."""

# For each family: names in `ops`, of rows, in public.
FAMILIES: dict[str, dict[str, str]] = {
'''
NOT_OPS = frozenset(("__init__", "quadrature"))  # the latter: tables for references


def needs(family: str) -> list[str]:
    """The families that a file imports at its top."""
    names = []
    for node in ast.parse((HOME / f"{family}.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module == "gradtape._src.ops":
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gradtape._src.ops."):
            names.append((node.module or "").rpartition(".")[2])
    return names


def families() -> dict[str, dict[str, list[str]]]:
    """The late families, each with its names."""
    files = sorted(p.stem for p in HOME.glob("*.py"))
    waiting = [f for f in files if f"gradtape._src.ops.{f}" not in sys.modules and f not in NOT_OPS]
    out: dict[str, dict[str, list[str]]] = {}

    def load(family: str) -> None:
        if family not in waiting or family in out:
            return
        out[family] = {}
        for other in needs(family):
            load(other)
        before = [dict(dict.items(table)) for table in (ops.TABLE, ops.PUBLIC)]
        module = importlib.import_module(f"gradtape._src.ops.{family}")
        rows, public = (
            {name for name, value in dict.items(table) if earlier.get(name) is not value}
            for table, earlier in zip((ops.TABLE, ops.PUBLIC), before, strict=True)
        )
        if twice := rows & set(before[0]) or public & set(before[1]):
            sys.exit(f"{family}: there is another row or function of the name {min(twice)}")
        out[family] = {"ops": own(module, rows), "rows": sorted(rows), "public": sorted(public)}

    for family in waiting:
        load(family)
    return dict(sorted(out.items()))


def own(module: ModuleType, rows: set[str]) -> list[str]:
    """The names a family adds to `ops`: its `__all__`, or the ops and functions defined in it."""

    def made_here(value: object) -> bool:
        if isinstance(value, _core.Op):
            return value.row.name in rows
        return callable(value) and getattr(value, "__module__", None) == module.__name__

    names = [name for name, value in vars(module).items() if name[0] != "_" and made_here(value)]
    return sorted(getattr(module, "__all__", names))


def text() -> str:
    lines = [HEAD]
    for family, names in families().items():
        lines.append(f'    "{family}": {{\n')
        for what, words in names.items():
            lines.append(f'        "{what}": "{" ".join(words)}",\n')
        lines.append("    },\n")
    return "".join(lines) + "}\n"


if __name__ == "__main__":
    written = text()
    if "--check" not in sys.argv:
        PATH.write_text(written, encoding="utf-8")
    elif written != PATH.read_text(encoding="utf-8"):
        sys.exit("gradtape/_src/ops/late_names.py is not up to date: make stubs")
