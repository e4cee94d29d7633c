"""Places in the user's program: the line that called an op, and the call in it."""

from __future__ import annotations

import itertools
import os
import sys
from typing import Any, NamedTuple

_HOME = os.path.realpath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
_OURS = tuple(os.path.join(_HOME, name) + os.sep for name in ("gradtape", "keras_gradtape"))
_STANDARD = os.path.dirname(os.path.realpath(os.__file__)) + os.sep
# Libraries that call ops, or use values, on behalf of the user.
_BETWEEN = tuple(f"-packages{os.sep}{name}{os.sep}" for name in ("keras", "numpy"))


class Line(NamedTuple):
    """A place in the user's program."""

    file: str
    number: int

    @property
    def text(self) -> str:
        """The source of the line; empty if Python does not know it, as for code that was typed in."""
        import linecache

        return linecache.getline(self.file, self.number).strip()

    @property
    def shown(self) -> str:
        """The place and its source."""
        return f"{self}: {self.text}" if self.text else str(self)

    def __str__(self) -> str:
        cell = _cell_of(self.file)
        if cell is not None:
            return f"cell [{cell}], line {self.number}"
        near = os.path.relpath(self.file) if os.path.isabs(self.file) else self.file
        return f"{self.file if near.startswith(os.pardir) else near}:{self.number}"


def _cell_of(file: str) -> int | None:
    """The number of the notebook cell that Python knows under this file name; None for other files."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(getattr(shell, "compile", None), "_filename_map", {}).get(file)


class _Files(dict[str, bool]):
    """By the name of a file: whether its code is not the user's."""

    def __missing__(self, file: str) -> bool:
        self[file] = is_library = _is_library(file)
        return is_library


_FILES = _Files()
# Whether the code of a file is not the user's, but gradtape's, Keras', NumPy's or Python's.
is_library = _FILES.__getitem__


def _is_library(file: str) -> bool:
    if file.startswith(("<frozen ", "<__array_function__")):
        return True
    if file.startswith(_OURS) or any(name in file for name in _BETWEEN):
        return True
    return file.startswith(_STANDARD) and "-packages" + os.sep not in file


def user_line() -> Line:
    """The innermost line of the running program that is not a library's."""
    frame: Any = sys._getframe(1)
    files = _FILES  # every op of a trace comes here, under tens of frames of Keras
    while frame is not None and files[frame.f_code.co_filename]:
        frame = frame.f_back
    if frame is None:
        return Line("<unknown>", 0)
    return Line(frame.f_code.co_filename, frame.f_lineno)


def line_of(error: BaseException) -> Line | None:
    """The innermost line of the user's program that `error` passed through."""
    line, step = None, error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if not is_library(code.co_filename):
            line = Line(code.co_filename, step.tb_lineno)
        step = step.tb_next
    return line


# ---- for messages: the part of a line that was running ----------------------------------------------


def users_level() -> int:
    """The `stacklevel` with which the caller's warning points at the user's line."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and is_library(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    return level


def _columns(code: Any, instruction: int) -> tuple[int, str, int, int]:
    """The line number of an instruction, its source, and the columns of the instruction: none if they are not
    known, and up to the end of the line if it continues on the next one."""
    import linecache

    line, end, first, last = next(itertools.islice(code.co_positions(), max(instruction, 0) // 2, None))
    text = linecache.getline(code.co_filename, line).rstrip() if line else ""
    if first is None or last is None or not text:
        return line or 0, text, 0, 0
    coded = text.encode()  # columns are counted in bytes
    stop = len(coded) if end != line else last
    return line, text, len(coded[:first].decode()), len(coded[:stop].decode())


def called() -> str:
    """The source of the call that the user's program is making (`tf.math.reduce_sum`); empty if it is not known."""
    import ast
    import linecache

    frame: Any = sys._getframe(1)
    while frame is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or frame.f_lasti < 0:
        return ""
    line, end, first, last = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    if None in (line, end, first, last):
        return ""
    lines = [text.encode() for text in linecache.getlines(frame.f_code.co_filename)[line - 1 : end]]
    if not lines:
        return ""
    lines[-1] = lines[-1][:last]  # columns are counted in bytes
    lines[0] = lines[0][first:]
    try:
        expression = ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except SyntaxError:
        return ""
    return ast.unparse(expression.func) if isinstance(expression, ast.Call) else ""


def trail(error: BaseException, is_part: Any = None) -> list[str]:
    """The lines of the user's program that `error` passed through, with their source, and the call marked.

    `is_part` says whether a function is part of the one before it, such as the body of a loop made by AutoGraph.
    """
    steps: list[tuple[str, list[str]]] = []
    step = error.__traceback__
    while step is not None:
        code, step_now, step = step.tb_frame.f_code, step, step.tb_next
        if is_library(code.co_filename):
            continue
        name = code.co_name
        if is_part is not None and is_part(code) and steps:
            name = steps.pop()[0]
        line, text, first, last = _columns(code, step_now.tb_lasti)
        shown = [f'    File "{code.co_filename}", line {line or step_now.tb_lineno}, in {name}']
        if text:
            shown.append(f"        {text.strip()}")
            indent = len(text) - len(text.lstrip())
            if first < last and (first, last) != (indent, len(text)):
                shown.append(" " * (8 + first - indent) + "^" * (last - first))
        steps.append((name, shown))
    return [line for _, lines in steps for line in lines]
