"""Whole files: read_file, write_file, matching_files."""

from __future__ import annotations

import glob
import os
from typing import Any

from gradtape._src.base.reading import system_errors
from gradtape.data.text import Text, make
from gradtape.io.contents import as_text, bytes_of, not_in_trace, path_of


def read_file(filename: Any, name: str | None = None) -> Text:
    """The contents of a file, as bytes for `decode_jpeg` and the like; `.numpy()` gives them to Python.

    Raises:
      NotFoundError: if there is no such file.
    """
    not_in_trace("read_file")
    path = path_of(filename)
    with system_errors(path), open(path, "rb") as file:
        return make(file.read())


def write_file(filename: Any, contents: Any, name: str | None = None) -> None:
    """Writes bytes to a file; folders on the way to it are made."""
    not_in_trace("write_file")
    path, data = path_of(filename), bytes_of(contents, "write_file")
    with system_errors(path):
        folder = os.path.dirname(path)
        if folder:
            os.makedirs(folder, exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)


def matching_files(pattern: Any, name: str | None = None) -> Text:
    """The files that match a pattern (or one of several) such as `"photos/*.jpg"`, in order."""
    not_in_trace("matching_files")
    patterns = as_text(pattern)._array.reshape(-1)
    found = {path for p in patterns for path in glob.glob(os.fsdecode(p))}
    return make(sorted(found))


def match_filenames_once(pattern: Any, name: str | None = None) -> Text:
    """As `matching_files`."""
    return matching_files(pattern)
