"""PNG files without Pillow: writing, and reading files whose bytes are pixels.

Pillow reads the rest: palettes, interlaced files, fewer than 8 bits. It reduces 16-bit colour images to 8 bits.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np

from gradtape import _core

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOUR_TYPE = {1: 0, 2: 4, 3: 2, 4: 6}  # by the number of channels
_CHANNELS = {v: k for k, v in _COLOUR_TYPE.items()}
_MOST_PACKED = 1032  # zlib's largest compression ratio


def encode(pixels: np.ndarray, compression: int = -1) -> bytes:
    """A PNG file of an image [height, width, channels] of uint8 or uint16."""
    height, width, channels = pixels.shape
    rows = (
        np.ascontiguousarray(pixels.astype(pixels.dtype.newbyteorder(">"))).view(np.uint8).reshape(height, -1)
    )
    # Each row is stored as the difference to the row above, which compresses better, and is fast.
    lines = np.empty((height, rows.shape[1] + 1), np.uint8)
    lines[:, 0] = 2
    lines[0, 1:] = rows[0]
    np.subtract(rows[1:], rows[:-1], out=lines[1:, 1:])
    head = struct.pack(">IIBBBBB", width, height, 8 * pixels.itemsize, _COLOUR_TYPE[channels], 0, 0, 0)
    packed = zlib.compress(lines.tobytes(), compression)
    return _SIGNATURE + _chunk(b"IHDR", head) + _chunk(b"IDAT", packed) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))


def is_png(data: bytes) -> bool:
    return data.startswith(_SIGNATURE)


def header(data: bytes) -> tuple[int, int, int, int, int]:
    """Width, height, bits per channel, colour type, and whether it is interlaced; zeros if the file is truncated."""
    whole = data[16:29].ljust(13, b"\0")
    width, height, bits, colour, _, _, interlaced = struct.unpack(">IIBBBBB", whole)
    return width, height, bits, colour, interlaced


def _chunks(data: bytes) -> Iterator[tuple[bytes, memoryview]]:
    at, view = len(_SIGNATURE), memoryview(data)
    while at + 12 <= len(data):
        size = int.from_bytes(view[at : at + 4], "big")
        end = at + 8 + size
        crc = int.from_bytes(view[end : end + 4], "big")
        if end + 4 > len(data) or zlib.crc32(view[at + 4 : end]) != crc:
            raise ValueError(f"the chunk {data[at + 4 : at + 8]!r} is cut off, or its checksum does not fit")
        yield data[at + 4 : at + 8], view[at + 8 : end]
        at = end + 4


def plain_channels(data: bytes) -> int:
    """The number of channels of a file whose bytes are pixels: 8 bits, no palette, no transparency, not interlaced.
    0 for other files."""
    _, _, bits, colour, interlaced = header(data)
    if bits != 8 or interlaced or data.find(b"tRNS", 0, data.find(b"IDAT")) >= 0:
        return 0
    return _CHANNELS.get(colour, 0)


def decode(data: bytes) -> _core.Tensor:
    """The bytes of the pixels, uint8 `[height, width, bytes per pixel]`, of a file without a palette that is not
    interlaced.

    Raises:
      ValueError: if the file is of another kind, or truncated.
    """
    width, height, bits, colour, interlaced = header(data)
    if bits not in (8, 16) or interlaced or colour not in _CHANNELS:
        raise ValueError("not a plain PNG file of 8 or 16 bits")
    step = bits // 8 * _CHANNELS[colour]
    packed = b"".join(part for kind, part in _chunks(data) if kind == b"IDAT")
    size = height * (1 + width * step)
    if not 0 < size <= _MOST_PACKED * len(packed):
        raise ValueError(f"{len(packed)} bytes for {width} x {height} pixels")
    unpack = zlib.decompressobj()
    lines = unpack.decompress(packed, size)
    if not unpack.eof and (unpack.decompress(unpack.unconsumed_tail, 1) or not unpack.eof):
        raise ValueError("its pixels are cut off, or more than its header says")
    return _core.unfiltered(lines, height, width, step)


def decode_16(data: bytes) -> np.ndarray:
    """The pixels of a file with 16 bits per channel, as uint16; otherwise like `decode`."""
    return decode(data).numpy().view(">u2").astype(np.uint16)
