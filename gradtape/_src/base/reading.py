"""How files are read: nothing in a file is trusted before it is checked.

`reading` wraps every parser: whatever it raises becomes one of TensorFlow's errors, which names the file. `take`
allocates no more memory than the file has bytes, `json_of` returns no value of an unexpected type. No reader of
gradtape imports, unpickles or evaluates anything that a file names.
"""

from __future__ import annotations

import io
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from gradtape._src.base.errors import (
    AlreadyExistsError,
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnknownError,
)

_CHUNK, _BUFFER = 1 << 24, 1 << 20
COMPRESSIONS = ("", "GZIP", "ZLIB")
# The longest path in a checkpoint that is followed; no program makes a longer one.
DEEPEST = 1000


@contextmanager
def system_errors(path: str) -> Iterator[None]:
    """Converts errors of the operating system to TensorFlow's."""
    try:
        yield
    except FileNotFoundError:
        raise NotFoundError(f"{path}; No such file or directory") from None
    except IsADirectoryError:
        raise FailedPreconditionError(f"{path}; Is a directory") from None
    except NotADirectoryError:
        raise FailedPreconditionError(f"{path}; Not a directory") from None
    except FileExistsError:
        raise AlreadyExistsError(f"{path}; file already exists") from None
    except PermissionError:
        raise PermissionDeniedError(f"{path}; Permission denied") from None
    except OSError as e:
        raise UnknownError(f"{path}; {e.strerror}") from e


@contextmanager
def reading(what: str, error: Callable[[str], Exception] = DataLossError) -> Iterator[None]:
    """Wraps a parser: bytes that it cannot parse raise `error`, with `what` in front.

    TensorFlow's own errors, and errors about something missing (a file, a package, a feature), pass unchanged.

    >>> import gradtape as tf
    >>> with reading("some.file is damaged: "):
    ...     {}["shape"]
    Traceback (most recent call last):
    gradtape.errors.DataLossError: some.file is damaged: KeyError: 'shape'
    """
    try:
        yield
    except (OpError, ImportError, NotImplementedError):
        raise
    except MemoryError as e:
        raise ResourceExhaustedError(f"{what}{_said(e)}") from e
    except OSError as e:
        if e.errno is None:  # from a library, such as gzip.BadGzipFile
            raise error(f"{what}{_said(e)}") from e
        with system_errors(os.fspath(e.filename or what)):
            raise
    except Exception as e:
        raise error(f"{what}{_said(e)}") from e


def _said(e: Exception) -> str:
    return str(e) if type(e) is ValueError else f"{type(e).__name__}: {e}"


# ---- bytes ----------------------------------------------------------------------------------------


class _Unpacked(io.RawIOBase):
    """The contents of a compressed file, decompressed as they are read.

    Raises:
      DataLossError: on reading, if the file is damaged.
    """

    def __init__(self, file: BinaryIO, is_gzip: bool, path: str) -> None:
        self._file, self._bits, self._path = file, 31 if is_gzip else 15, path
        self._unpack: Any = None
        self._packed = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with reading(f"{self._path} is damaged: "):
            part = b""
            while not part:
                self._packed = self._packed or self._file.read(_BUFFER)
                if self._unpack is None:  # at the beginning, or after a separately compressed part
                    if not self._packed:
                        return 0
                    self._unpack = zlib.decompressobj(self._bits)
                if not self._packed:
                    raise EOFError("the file ends before its end is marked")
                part = self._unpack.decompress(self._packed, len(buffer))
                self._packed = self._unpack.unconsumed_tail
                if self._unpack.eof:
                    self._packed, self._unpack = self._unpack.unused_data, None
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self._file.close()
        super().close()


def open_file(path: str, compression_type: Any = None) -> Any:
    """Opens a file for reading bytes, decompressed if necessary.

    Raises:
      NotFoundError: if there is no such file.
      InvalidArgumentError: if `compression_type` is neither "", "GZIP" nor "ZLIB".
    """
    name = getattr(compression_type, "numpy", lambda: compression_type or "")()
    compression = name.decode() if isinstance(name, bytes) else str(name)
    if compression not in COMPRESSIONS:
        raise InvalidArgumentError(
            f"Unsupported compression_type: {compression!r}. Hint: '', 'GZIP' or 'ZLIB'."
        )
    with system_errors(path):
        if os.path.isdir(path):
            raise FailedPreconditionError(f"{path}; Is a directory")
        file: Any = open(path, "rb", buffering=_BUFFER)  # noqa: SIM115 (closed by the reader)
    if not compression:
        return file
    return io.BufferedReader(_Unpacked(file, compression == "GZIP", path), _BUFFER)


def take(file: Any, count: int) -> bytes:
    """The next bytes of a file, fewer at its end. Memory is allocated as bytes are read, not for `count` of them."""
    if count <= _CHUNK:
        return file.read(count)
    parts = []
    while count > 0 and (part := file.read(min(count, _CHUNK))):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def take_all(path: str) -> bytes:
    """The contents of a file."""
    with open(path, "rb") as file:
        return file.read()


def json_of(data: bytes | str, kind: type = dict) -> Any:
    """The value of a JSON text, which must be of type `kind`.

    Raises:
      ValueError: if it is not JSON, or of another type.
    """
    try:
        value = json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return expect(value, kind)


def expect(value: Any, kind: type) -> Any:
    """`value`, which must have exactly this type."""
    if type(value) is not kind:
        raise ValueError(f"expected {kind.__name__}, got {type(value).__name__}: {str(value)[:40]!r}")
    return value


_SPACE = b" \t\n\v\f\r"
_INTEGER = re.compile(rb"[+-]?[0-9]+\Z")
_FRACTION = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?\Z", re.IGNORECASE)
_NAMED = re.compile(rb"[+-]?(inf|infinity|nan)\Z", re.IGNORECASE)
_HEXADECIMAL = re.compile(rb"[+-]?0x[0-9a-f]+(\.[0-9a-f]*)?(p[+-]?[0-9]+)?\Z", re.IGNORECASE)


def number_in(field: bytes | str, dtype: Any) -> Any:
    """The number in a text field; None if it is not a number of this type."""
    word = (field.encode(errors="surrogateescape") if isinstance(field, str) else field).strip(_SPACE)
    if dtype.is_integer:
        if not _INTEGER.match(word) or (word[:1] == b"-" and dtype.min == 0):
            return None
        value = int(word)
        return value if dtype.min <= value <= dtype.max else None
    if _FRACTION.match(word) or _NAMED.match(word):
        return float(word)
    return float.fromhex(word.decode()) if _HEXADECIMAL.match(word) else None
