"""Files of a project as syntax trees: Python files, and notebooks with their cells in sequence."""

from __future__ import annotations

import ast
import json
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

_SKIPPED = frozenset(("node_modules", "site-packages", "build", "dist", "__pycache__", "venv"))
_ALLOWED = re.compile(r"#\s*gradtape:\s*ok\b")


class Finding(NamedTuple):
    """A finding: `code` is missing, none, nan, unread or note; `place` a file and a line."""

    place: str
    line: int
    code: str
    text: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.code}: {self.text}"


class Source:
    """A file: its tree, and the places of its lines."""

    def __init__(self, path: Path, text: str, cells: list[tuple[int, int]] | None = None) -> None:
        self.path = path
        self.lines = text.splitlines()
        self._cells = cells  # of a notebook: for each line, the number of its cell and the first line of that
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about "\d" in strings and the like, which does not matter here
            self.tree = ast.parse(text)

    def place(self, line: int) -> str:
        """A line of the file, as `program.py:3` or `notebook.ipynb:cell 2:3`."""
        name = os.path.relpath(self.path)
        name = str(self.path) if name.startswith(os.pardir) else name
        if self._cells is None:
            return f"{name}:{line}"
        cell, first = self._cells[min(line, len(self._cells)) - 1]
        return f"{name}:cell {cell}:{line - first + 1}"

    def allows(self, line: int) -> bool:
        """Whether the line says `# gradtape: ok`."""
        return 0 < line <= len(self.lines) and _ALLOWED.search(self.lines[line - 1]) is not None

    def found(self, node: Any, code: str, text: str, name: str = "") -> Finding:
        """A finding at a node of the tree."""
        return Finding(self.place(node.lineno), node.lineno, code, text, name)


def sources(path: Path) -> Iterator[Source | Finding]:
    """The files at a path, in order; a Finding for a file that is not Python."""
    if not path.exists():
        raise FileNotFoundError(f"doctor: there is no {str(path)!r}.")
    for file in _files(path):
        try:
            yield _notebook(file) if file.suffix == ".ipynb" else Source(file, _text(file))
        except (SyntaxError, ValueError, KeyError, TypeError, RecursionError) as e:
            line = getattr(e, "lineno", None) or 1
            why = getattr(e, "msg", None) or str(e)
            yield Finding(f"{file}:{line}", line, "unread", f"not Python 3, or damaged: {why}.")


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(d for d in folders if d not in _SKIPPED and not d.startswith("."))
        for name in sorted(names):
            if name.endswith((".py", ".ipynb")):
                yield Path(folder, name)


def _text(file: Path) -> str:
    return file.read_bytes().decode("utf-8-sig", errors="replace")


def _notebook(file: Path) -> Source:
    data = json.loads(_text(file))
    text: list[str] = []
    cells: list[tuple[int, int]] = []
    for number, cell in enumerate(data["cells"], 1):
        if cell.get("cell_type") != "code":
            continue
        lines = "".join(cell["source"]).splitlines()
        if lines and lines[0].startswith("%%") and not lines[0].startswith(("%%time", "%%capture")):
            continue  # another language
        first = len(text) + 1
        text += map(_plain, lines)
        cells += [(number, first)] * len(lines)
    return Source(file, "\n".join(text) + "\n", cells or [(1, 1)])


def _plain(line: str) -> str:
    """A line of a notebook as Python: commands to the shell and to IPython become no-ops."""
    start = line.lstrip()
    if start.startswith(("!", "%")) or start.endswith("?"):
        return line[: len(line) - len(start)] + "pass"
    return line
