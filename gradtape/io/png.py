"""PNG files without Pillow: writing them, and reading those with 16 bits a channel.

Pillow reads the rest (and faster); it reduces colour images of 16 bits to 8.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOUR_TYPE = {1: 0, 2: 4, 3: 2, 4: 6}  # by the number of channels
_CHANNELS = {v: k for k, v in _COLOUR_TYPE.items()}
_MOST_PACKED = 1032  # bytes that zlib can pack into one


def encode(pixels: np.ndarray, compression: int = -1) -> bytes:
    """A PNG file of an image [height, width, channels] of uint8 or uint16."""
    height, width, channels = pixels.shape
    rows = (
        np.ascontiguousarray(pixels.astype(pixels.dtype.newbyteorder(">"))).view(np.uint8).reshape(height, -1)
    )
    # Each row as the difference to the one above it: that packs better, and is quick.
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
    """Width, height, bits a channel, colour type, and whether it is interlaced; zeros if it is cut off."""
    whole = data[16:29].ljust(13, b"\0")
    width, height, bits, colour, _, _, interlaced = struct.unpack(">IIBBBBB", whole)
    return width, height, bits, colour, interlaced


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at + 12 <= len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        chunk = data[at : at + 12 + size]
        if _chunk(chunk[4:8], chunk[8:-4]) != chunk:
            raise ValueError(f"the chunk {chunk[4:8]!r} is cut off, or its checksum does not fit")
        yield chunk[4:8], chunk[8:-4]
        at += 12 + size


def decode_16(data: bytes) -> np.ndarray:
    """The pixels of a file with 16 bits a channel that is not interlaced, as uint16.

    Raises:
      ValueError: if the file is not whole.
    """
    width, height, bits, colour, interlaced = header(data)
    if bits != 16 or interlaced or colour not in _CHANNELS:
        raise ValueError("not a plain PNG file of 16 bits")
    step = 2 * _CHANNELS[colour]  # bytes of a pixel
    packed = b"".join(part for kind, part in _chunks(data) if kind == b"IDAT")
    size = height * (1 + width * step)
    if not 0 < size <= _MOST_PACKED * len(packed):
        raise ValueError(f"{len(packed)} bytes for {width} x {height} pixels")
    unpack = zlib.decompressobj()
    lines = np.frombuffer(unpack.decompress(packed, size), np.uint8).reshape(height, 1 + width * step)
    if not unpack.eof and (unpack.decompress(unpack.unconsumed_tail, 1) or not unpack.eof):
        raise ValueError("its pixels are cut off, or more than its header says")
    out = np.zeros((height + 1, width + 1, step), np.uint8)  # a row above and a pixel to the left, of zeros
    for y, line in enumerate(lines, 1):
        _unfilter(int(line[0]), line[1:].reshape(width, step), out[y], out[y - 1])
    return np.ascontiguousarray(out[1:, 1:]).view(">u2").astype(np.uint16)


def _unfilter(kind: int, line: np.ndarray, row: np.ndarray, above: np.ndarray) -> None:
    """Writes a row from its differences to the pixels on the left (1), above (2), or both (3, 4)."""
    if kind == 0:
        row[1:] = line
    elif kind == 1:
        np.cumsum(line, 0, np.uint8, out=row[1:])
    elif kind == 2:
        np.add(line, above[1:], out=row[1:])
    elif kind in (3, 4):
        guess = _average if kind == 3 else _paeth
        for x in range(len(line)):
            row[x + 1] = line[x] + guess(
                row[x].astype(int), above[x + 1].astype(int), above[x].astype(int)
            ).astype(np.uint8)
    else:
        raise ValueError(f"PNG file is damaged: filter {kind}")


def _average(left: np.ndarray, up: np.ndarray, corner: np.ndarray) -> np.ndarray:
    return (left + up) // 2


def _paeth(left: np.ndarray, up: np.ndarray, corner: np.ndarray) -> np.ndarray:
    """Which of the three is nearest to left + up - corner; the first of those that are equally near."""
    to_left, to_up, to_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
    first = (to_left <= to_up) & (to_left <= to_corner)
    return np.where(first, left, np.where(to_up <= to_corner, up, corner))
