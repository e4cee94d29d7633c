"""Places in the user's program: the line that an op was called at."""

from __future__ import annotations

import os
import sys
from typing import Any, NamedTuple

_HOME = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_OURS = tuple(os.path.join(_HOME, name) + os.sep for name in ("gradtape", "keras_gradtape"))


class Line(NamedTuple):
    """A place in the user's program."""

    file: str
    number: int
    function: str

    @property
    def text(self) -> str:
        import linecache

        return linecache.getline(self.file, self.number).strip()

    def __str__(self) -> str:
        near = os.path.relpath(self.file) if os.path.isabs(self.file) else self.file
        return f"{self.file if near.startswith(os.pardir) else near}:{self.number}"


def user_line() -> Line:
    """The innermost line of the running program that is not gradtape's own."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    if frame is None:
        return Line("<unknown>", 0, "")
    return Line(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
