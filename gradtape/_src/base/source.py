"""Places in the user's program: the line that an op was called at."""

from __future__ import annotations

import os
import sys
from typing import Any, NamedTuple

_HOME = os.path.realpath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
_OURS = tuple(os.path.join(_HOME, name) + os.sep for name in ("gradtape", "keras_gradtape"))
_STANDARD = os.path.dirname(os.path.realpath(os.__file__)) + os.sep
# Libraries that call ops, or values, on behalf of the user.
_BETWEEN = tuple(f"-packages{os.sep}{name}{os.sep}" for name in ("keras", "numpy"))


class Line(NamedTuple):
    """A place in the user's program."""

    file: str
    number: int

    @property
    def text(self) -> str:
        """What is written there; empty where Python does not know, as for code that was typed in."""
        import linecache

        return linecache.getline(self.file, self.number).strip()

    @property
    def shown(self) -> str:
        """The place, and what is written there."""
        return f"{self}: {self.text}" if self.text else str(self)

    def __str__(self) -> str:
        cell = _cell_of(self.file)
        if cell is not None:
            return f"cell [{cell}], line {self.number}"
        near = os.path.relpath(self.file) if os.path.isabs(self.file) else self.file
        return f"{self.file if near.startswith(os.pardir) else near}:{self.number}"


def _cell_of(file: str) -> int | None:
    """The number of the cell of a notebook that Python knows by this name, as of a file; None for other files."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(getattr(shell, "compile", None), "_filename_map", {}).get(file)


class _Files(dict[str, bool]):
    """Whether code of a file is not the user's, by its name."""

    def __missing__(self, file: str) -> bool:
        self[file] = known = _is_library(file)
        return known


_FILES = _Files()
# Whether code of a file is not the user's: that of gradtape, Keras, NumPy, Python.
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
    found, step = None, error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if not is_library(code.co_filename):
            found = Line(code.co_filename, step.tb_lineno)
        step = step.tb_next
    return found
