"""TFRecord files: `read_records`, `TFRecordWriter`, `TFRecordOptions`.

A record is its length, bytes, and a checksum of both; see `gradtape/framing.py`.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from gradtape._src.base.errors import DataLossError, FailedPreconditionError
from gradtape.io import framing
from gradtape.io.contents import bytes_of, path_of, tensorflow_errors

_HEAD, _FOOT = 12, 4  # length and its checksum; the checksum of the data
_COMPRESSIONS = ("", "GZIP", "ZLIB")
_CHUNK = 1 << 20


class TFRecordOptions:
    """How to write records; only `compression_type` ("", "GZIP", "ZLIB") and `compression_level` count."""

    def __init__(
        self,
        compression_type: Any = None,
        flush_mode: Any = None,
        input_buffer_size: Any = None,
        output_buffer_size: Any = None,
        window_bits: Any = None,
        compression_level: int | None = None,
        compression_method: Any = None,
        mem_level: Any = None,
        compression_strategy: Any = None,
    ) -> None:
        self.compression_type = compression_of(compression_type)
        self.compression_level = compression_level

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """The compression of options, of a name, or of None."""
        return options.compression_type if isinstance(options, TFRecordOptions) else compression_of(options)


def compression_of(value: Any) -> str:
    """The name of a compression."""
    name = "" if value is None else str(value)
    if name not in _COMPRESSIONS:
        raise ValueError(f"Not a valid compression_type: {name!r}. Hint: '', 'GZIP' or 'ZLIB'.")
    return name


class _ZlibReader:
    """The contents of a file that zlib packed."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._unpack, self._left = file, zlib.decompressobj(), b""

    def read(self, n: int) -> bytes:
        parts, have = [self._left], len(self._left)
        while have < n and not self._unpack.eof:
            packed = self._file.read(_CHUNK)
            part = self._unpack.decompress(packed) if packed else self._unpack.flush()
            parts.append(part)
            have += len(part)
            if not packed:
                break
        data = b"".join(parts)
        self._left = data[n:]
        return data[:n]

    def close(self) -> None:
        self._file.close()


def _open(path: str, compression: str) -> Any:
    with tensorflow_errors(path):
        if os.path.isdir(path):
            raise FailedPreconditionError(f"{path}; Is a directory")
        if compression == "GZIP":
            return gzip.open(path, "rb")
        file = open(path, "rb", buffering=_CHUNK)  # noqa: SIM115 (closed by the reader)
        return _ZlibReader(file) if compression == "ZLIB" else file


def read_records(path: Any, compression_type: Any = None) -> Iterator[bytes]:
    """The records of a file, one after the other.

    Raises:
      NotFoundError: if there is no such file.
      DataLossError: if a record is cut off, or its checksum is wrong.
    """
    where = path_of(path)
    file = _open(where, compression_of(compression_type))
    at = 0
    try:
        while head := file.read(_HEAD):
            if len(head) < _HEAD:
                raise DataLossError(f"truncated record at {at}; in {where}")
            if head[8:] != framing.masked(head[:8]):
                raise DataLossError(f"corrupted record at {at}; in {where}. Hint: is this a TFRecord file?")
            size = int.from_bytes(head[:8], "little")
            data = file.read(size)
            foot = file.read(_FOOT)
            if len(data) < size or len(foot) < _FOOT:
                raise DataLossError(f"truncated record at {at}; in {where}")
            if foot != framing.masked(data):
                raise DataLossError(f"corrupted record at {at}; in {where}")
            at += _HEAD + size + _FOOT
            yield data
    except (zlib.error, EOFError, gzip.BadGzipFile) as e:
        raise DataLossError(f"corrupted record at {at}; in {where}: {e}") from e
    finally:
        file.close()


def tf_record_iterator(path: Any, options: Any = None) -> Iterator[bytes]:
    """The records of a file: TensorFlow 1's name of `read_records`."""
    return read_records(path, TFRecordOptions.get_compression_type_string(options))


class TFRecordWriter:
    """Writes records to a file.

    Args:
      path: the file; it is written anew.
      options: a compression ("GZIP", "ZLIB"), or `TFRecordOptions`.

    >>> import gradtape as tf, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "some.tfrecord")
    >>> with tf.io.TFRecordWriter(path) as writer:
    ...     writer.write(b"one")
    >>> from gradtape.io.records import read_records
    >>> list(read_records(path))
    [b'one']
    """

    def __init__(self, path: Any, options: Any = None) -> None:
        where = path_of(path)
        compression = TFRecordOptions.get_compression_type_string(options)
        level = getattr(options, "compression_level", None)
        level = -1 if level is None else level
        self._pack: Any = None
        with tensorflow_errors(where):
            self._file: Any = open(where, "wb")  # noqa: SIM115 (closed by `close`)
        if compression == "GZIP":
            self._pack = zlib.compressobj(level, zlib.DEFLATED, 31)
        elif compression == "ZLIB":
            self._pack = zlib.compressobj(level)

    def write(self, record: Any) -> None:
        """Adds a record: bytes."""
        if self._file is None:
            raise FailedPreconditionError("TFRecordWriter: Writer is closed.")
        data = framing.framed(bytes_of(record, "TFRecordWriter.write"))
        self._file.write(data if self._pack is None else self._pack.compress(data))

    def flush(self) -> None:
        """Hands what was written to the system."""
        if self._file is None:
            raise FailedPreconditionError("TFRecordWriter: Writer is closed.")
        if self._pack is not None:
            self._file.write(self._pack.flush(zlib.Z_SYNC_FLUSH))
        self._file.flush()

    def close(self) -> None:
        """Finishes the file."""
        if self._file is not None:
            if self._pack is not None:
                self._file.write(self._pack.flush())
            self._file.close()
            self._file = None

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.close()
