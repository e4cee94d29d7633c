"""TFRecord files: `read_records`, `TFRecordWriter`, `TFRecordOptions`.

A record is its length, bytes, and a checksum of both; see `gradtape/io/framing.py`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

from gradtape._src.base.errors import FailedPreconditionError
from gradtape._src.base.reading import COMPRESSIONS, open_file, system_errors
from gradtape.io import framing
from gradtape.io.contents import bytes_of, path_of

_BUFFER = 1 << 18  # bytes per write


class TFRecordOptions:
    """Options for writing records; only `compression_type` ("", "GZIP", "ZLIB") and `compression_level` have an
    effect."""

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
        """The compression given by options, a name, or None."""
        return options.compression_type if isinstance(options, TFRecordOptions) else compression_of(options)


def compression_of(value: Any) -> str:
    """The name of a compression."""
    name = "" if value is None else str(value)
    if name not in COMPRESSIONS:
        raise ValueError(f"Not a valid compression_type: {name!r}. Hint: '', 'GZIP' or 'ZLIB'.")
    return name


def read_records(path: Any, compression_type: Any = None) -> Iterator[bytes]:
    """The records of a file, one after the other.

    Raises:
      NotFoundError: if there is no such file.
      DataLossError: if a record is cut off, or its checksum is wrong.
    """
    where = path_of(path)
    with open_file(where, compression_of(compression_type)) as file:
        yield from framing.read(file, where)


def tf_record_iterator(path: Any, options: Any = None) -> Iterator[bytes]:
    """The records of a file; TensorFlow 1's name for `read_records`."""
    return read_records(path, TFRecordOptions.get_compression_type_string(options))


class TFRecordWriter:
    """Writes records to a file.

    Args:
      path: the file, which is overwritten.
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
        with system_errors(where):
            self._file: Any = open(where, "wb", buffering=_BUFFER)  # noqa: SIM115 (closed by `close`)
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
        """Flushes written records to the operating system."""
        if self._file is None:
            raise FailedPreconditionError("TFRecordWriter: Writer is closed.")
        if self._pack is not None:
            self._file.write(self._pack.flush(zlib.Z_SYNC_FLUSH))
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
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
