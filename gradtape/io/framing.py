"""TensorFlow's record files (TFRecord): a length, bytes, and checksums (CRC-32C) of both.

Event files of TensorBoard are written in this form, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradtape import _core
from gradtape._src.base.errors import DataLossError
from gradtape._src.base.reading import reading, take

_HEAD, _FOOT = 12, 4  # length and its checksum; the checksum of the data


def crc32c(data: Any) -> int:
    """The CRC-32C (Castagnoli) of bytes.

    >>> from gradtape.io.framing import crc32c
    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    return _core.crc32c(data)


def masked(data: Any) -> bytes:
    """The checksum of bytes as record files have it."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF).to_bytes(4, "little")


def framed(data: bytes) -> bytes:
    """One record."""
    length = len(data).to_bytes(8, "little")
    return b"".join((length, masked(length), data, masked(data)))


def read(file: Any, name: str) -> Iterator[bytes]:
    """The records of an open file, one after the other.

    Raises:
      DataLossError: if a record is cut off, or its checksum is wrong.
    """
    at = 0
    while True:
        with reading(f"corrupted record at {at}; in {name}: "):
            head = take(file, _HEAD)
            if not head:
                return
            if len(head) < _HEAD:
                raise DataLossError(f"truncated record at {at}; in {name}")
            if head[8:] != masked(head[:8]):
                raise DataLossError(f"corrupted record at {at}; in {name}. Hint: is this a TFRecord file?")
            size = int.from_bytes(head[:8], "little")
            data, foot = take(file, size), take(file, _FOOT)
            if len(data) < size or len(foot) < _FOOT:
                raise DataLossError(f"truncated record at {at}; in {name}")
            if foot != masked(data):
                raise DataLossError(f"corrupted record at {at}; in {name}")
        at += _HEAD + size + _FOOT
        yield data
