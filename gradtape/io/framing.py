"""TensorFlow's record files (TFRecord): a length, bytes, and checksums (CRC-32C) of both.

TensorBoard's event files use this format, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradtape import _core
from gradtape._src.base.errors import DataLossError
from gradtape._src.base.reading import reading, take

_CHUNK = 1 << 18  # bytes that are read at a time


def crc32c(data: Any) -> int:
    """The CRC-32C (Castagnoli) of bytes.

    >>> from gradtape.io.framing import crc32c
    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    return _core.crc32c(data)


def masked(data: Any) -> bytes:
    """The checksum of bytes in the form used in record files."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF).to_bytes(4, "little")


framed = _core.framed  # one record


def read(file: Any, name: str) -> Iterator[bytes]:
    """The records of an open file, one after the other.

    Raises:
      DataLossError: if a record is cut off, or its checksum is wrong.
    """
    at = need = 0  # the position in the file; the size of the next record
    left = b""  # bytes read beyond the record
    while True:
        with reading(f"corrupted record at {at}; in {name}: "):
            more = take(file, max(_CHUNK, need - len(left)))
            data = left + more if left else more
            records, used, then = _core.unframed(data)
        yield from records
        at += used
        if then == "length":
            raise DataLossError(f"corrupted record at {at}; in {name}. Hint: is this a TFRecord file?")
        if then == "data":
            raise DataLossError(f"corrupted record at {at}; in {name}")
        left = data[used:]
        if not more:
            if left:
                raise DataLossError(f"truncated record at {at}; in {name}")
            return
        need = int(then)
