"""TensorFlow's record files (TFRecord): a length, bytes, and checksums (CRC-32C) of both.

Event files of TensorBoard are written in this form, too.
"""

from __future__ import annotations

from typing import Any

from gradtape import _core


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
