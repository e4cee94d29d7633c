"""`tf.io.gfile`: files and folders by TensorFlow's names, on the local file system."""

from __future__ import annotations

import builtins
import glob as _glob
import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gradtape._src.base.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
)
from gradtape._src.base.reading import system_errors
from gradtape._src.public import absent as _absent
from gradtape.io.contents import path_of

_MODES = ("r", "w", "a", "r+", "w+", "a+")


class GFile:
    """A file, opened when it is first used.

    Args:
      name: its path.
      mode: "r", "w" or "a", with "+" for both ways and "b" for bytes instead of text.

    >>> import gradtape as tf, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "numbers.txt")
    >>> with tf.io.gfile.GFile(path, "w") as f:
    ...     f.write("one\\ntwo\\n")
    >>> list(tf.io.gfile.GFile(path))
    ['one\\n', 'two\\n']
    """

    def __init__(self, name: Any, mode: str = "r") -> None:
        self._name = name
        self._path = path_of(name)
        self._mode = mode
        if mode.replace("b", "") not in _MODES:
            raise InvalidArgumentError("mode is not 'r' or 'w' or 'a' or 'r+' or 'w+' or 'a+'")
        self._file: Any = None

    @property
    def name(self) -> Any:
        """The path of the file."""
        return self._name

    @property
    def mode(self) -> str:
        """The mode in which it is opened."""
        return self._mode

    def _open(self) -> Any:
        if self._file is None:
            with system_errors(self._path):
                mode = self._mode.replace("b", "") + "b"
                self._file = builtins.open(self._path, mode)  # noqa: SIM115 (closed by `close`)
        return self._file

    def _reading(self) -> Any:
        if self._mode[0] != "r" and "+" not in self._mode:
            raise PermissionDeniedError("File isn't open for reading")
        return self._open()

    def _out(self, data: bytes) -> Any:
        return data if "b" in self._mode else data.decode()

    def read(self, n: int = -1) -> Any:
        """The next `n` bytes; the rest of the file by default."""
        return self._out(self._reading().read(n))

    def readline(self) -> Any:
        """The next line, with its end; empty at the end of the file."""
        return self._out(self._reading().readline())

    def readlines(self) -> list:
        """All remaining lines."""
        return [self._out(line) for line in self._reading().readlines()]

    def write(self, file_content: Any) -> None:
        """Adds text or bytes at the end."""
        if self._mode[0] == "r" and "+" not in self._mode:
            raise PermissionDeniedError("File isn't open for writing")
        data = file_content.encode() if isinstance(file_content, str) else bytes(file_content)
        self._open().write(data)

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Moves to a position: relative to the start (whence 0), the current position (1), or the end (2)."""
        place = position if offset is None else offset
        if place is None:
            raise TypeError("seek(): offset argument required")
        self._reading().seek(place, whence)

    def seekable(self) -> bool:
        """Whether `seek` works."""
        return True

    def tell(self) -> int:
        """The position of the next byte."""
        return self._open().tell()

    def size(self) -> int:
        """The length of the file."""
        return stat(self._path).length

    def flush(self) -> None:
        """Flushes written data to the operating system."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Closes the file; the next use opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None
        elif self._mode[0] == "w":  # creates the file even if nothing was written
            self._open().close()
            self._file = None

    def next(self) -> Any:
        """The next line."""
        return self.__next__()

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    def __iter__(self) -> GFile:
        return self

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self._file.close()


class FileStatistics(NamedTuple):
    """The result of `stat`."""

    length: int
    mtime_nsec: int
    is_directory: bool


def stat(path: Any) -> FileStatistics:
    """Length, time of the last change in nanoseconds, and whether it is a folder."""
    path = path_of(path)
    with system_errors(path):
        result = os.stat(path)
    return FileStatistics(result.st_size, result.st_mtime_ns, os.path.isdir(path))


def exists(path: Any) -> bool:
    """Whether a file or folder exists."""
    return os.path.exists(path_of(path))


def isdir(path: Any) -> bool:
    """Whether it is a folder."""
    return os.path.isdir(path_of(path))


def listdir(path: Any) -> list[str]:
    """The names in a folder, sorted.

    Raises:
      NotFoundError: if there is no such folder.
    """
    path = path_of(path)
    if not os.path.isdir(path):
        raise NotFoundError(f"Could not find directory {path}")
    return sorted(os.listdir(path))


def glob(pattern: Any) -> list[str]:
    """The files that match a pattern, or one of a list of patterns."""
    patterns = pattern if isinstance(pattern, (list, tuple)) else [pattern]
    return [path for p in patterns for path in sorted(_glob.glob(path_of(p)))]


def mkdir(path: Any) -> None:
    """Creates a folder in an existing one; does nothing if it exists."""
    path = path_of(path)
    if not os.path.isdir(path):
        with system_errors(path):
            os.mkdir(path)


def makedirs(path: Any) -> None:
    """Creates a folder and its parents; does nothing if it exists."""
    path = path_of(path)
    with system_errors(path):
        os.makedirs(path, exist_ok=True)


def remove(path: Any) -> None:
    """Deletes a file."""
    path = path_of(path)
    with system_errors(path):
        os.remove(path)


def rmtree(path: Any) -> None:
    """Deletes a folder and everything in it."""
    path = path_of(path)
    if not os.path.exists(path):
        raise NotFoundError(f"{path} not found")
    with system_errors(path):
        shutil.rmtree(path)


def _put(src: Any, dst: Any, overwrite: bool, how: Callable[[str, str], Any]) -> None:
    source, target = path_of(src), path_of(dst)
    if not overwrite and os.path.exists(target) and os.path.exists(source):
        raise AlreadyExistsError(f"file already exists: {target}. Hint: overwrite=True.")
    with system_errors(source):
        how(source, target)


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copies a file."""
    _put(src, dst, overwrite, shutil.copyfile)


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Renames or moves a file or folder."""
    _put(src, dst, overwrite, os.replace)


def walk(top: Any, topdown: bool = True, onerror: Any = None) -> Iterator[tuple[str, list[str], list[str]]]:
    """Every folder from `top` on, with its folders and files, sorted."""
    for folder, folders, files in os.walk(path_of(top), topdown, onerror):
        folders.sort()
        yield folder, list(folders), sorted(files)


def join(path: Any, *paths: Any) -> str:
    """Joins the parts of a path."""
    return os.path.join(path_of(path), *map(path_of, paths))


def get_registered_schemes() -> list[str]:
    """The supported file systems: only the local one."""
    return ["", "file"]


Open = GFile

__getattr__, __dir__ = _absent.of("io.gfile")
