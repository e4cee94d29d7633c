"""Whole files: read_file, write_file, matching_files."""

from __future__ import annotations

import glob
import os
from typing import Any

from gradtape._src.base import dtypes
from gradtape._src.base.calls import one_call
from gradtape._src.base.reading import system_errors, take_all
from gradtape._src.control.text_ops import elements, run, scalar, tensor
from gradtape.io.contents import text_of, texts_of


@one_call
def read_file(filename: Any, name: str | None = None) -> Any:
    """The contents of a file, as one string.

    Raises:
      NotFoundError: if there is no such file.
    """

    def read(filename: Any) -> list:
        path = os.fsdecode(scalar(filename))
        with system_errors(path):
            return [tensor([take_all(path)], ())]

    return run("read_file", read, [text_of(filename, "read_file")], [((), dtypes.string)])[0]


@one_call
def write_file(filename: Any, contents: Any, name: str | None = None) -> None:
    """Writes bytes to a file; missing folders are created."""

    def write(filename: Any, contents: Any) -> list:
        path = os.fsdecode(scalar(filename))
        with system_errors(path):
            folder = os.path.dirname(path)
            if folder:
                os.makedirs(folder, exist_ok=True)
            with open(path, "wb") as file:
                file.write(scalar(contents))
        return []

    operands = [text_of(filename, "write_file"), text_of(contents, "write_file", 1)]
    run("write_file", write, operands, [], effect=True)


@one_call
def matching_files(pattern: Any, name: str | None = None) -> Any:
    """The files that match a pattern (or one of several) such as `"photos/*.jpg"`, sorted."""

    def match(patterns: Any) -> list:
        paths = {path for p in elements(patterns) for path in glob.glob(os.fsdecode(p))}
        return [tensor(sorted(map(os.fsencode, paths)), [len(paths)])]

    return run("matching_files", match, [texts_of(pattern, "matching_files")], [((None,), dtypes.string)])[0]


@one_call
def match_filenames_once(pattern: Any, name: str | None = None) -> Any:
    """The same as `matching_files`."""
    return matching_files(pattern)
