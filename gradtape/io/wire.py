"""Protocol buffers, as far as TensorFlow's files need them: fields by number, without descriptors.

Written with `text`, `varint`, `message` and so on, joined as bytes; read with `fields`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any


def _number(n: int) -> bytes:
    n &= 0xFFFFFFFFFFFFFFFF  # negative numbers are written as 64 bits
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def varint(field: int, n: int) -> bytes:
    """An integer, bool or enum."""
    return _number(field << 3) + _number(int(n))


def double(field: int, x: float) -> bytes:
    """A double."""
    return _number(field << 3 | 1) + struct.pack("<d", x)


def float_(field: int, x: float) -> bytes:
    """A float."""
    return _number(field << 3 | 5) + struct.pack("<f", x)


def message(field: int, data: bytes) -> bytes:
    """Bytes, or a message inside the message."""
    return _number(field << 3 | 2) + _number(len(data)) + data


def text(field: int, value: str | bytes) -> bytes:
    """A string."""
    return message(field, value.encode() if isinstance(value, str) else value)


def packed(field: int, numbers: Iterable[int]) -> bytes:
    """A packed list of integers."""
    return message(field, b"".join(map(_number, numbers)))


def number_at(data: bytes, at: int) -> tuple[int, int]:
    """The integer at a position, and the position after it.

    Raises:
      ValueError: if it is truncated, or has more than 64 bits.
    """
    n = shift = 0
    try:
        while True:
            byte = data[at]
            at += 1
            n |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
            if shift > 63:
                raise ValueError("an integer of more than 64 bits")
    except IndexError:
        raise ValueError("cut off") from None
    return n & 0xFFFFFFFFFFFFFFFF, at


def numbers(data: bytes) -> Iterator[int]:
    """A packed list of integers."""
    at = 0
    while at < len(data):
        n, at = number_at(data, at)
        yield n


def signed(n: int) -> int:
    """An integer written as int64."""
    return n - (1 << 64) if n >> 63 else n


_SIZES = {1: 8, 5: 4}


def fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """The fields of a message: (number, wire type, integer or bytes).

    Raises:
      ValueError: if it is not a message, or cut off.
    """
    at = 0
    while at < len(data):
        tag, at = number_at(data, at)
        kind = tag & 7
        value: Any
        if kind == 0:
            value, at = number_at(data, at)
        else:
            size = _SIZES.get(kind)
            if size is None:
                if kind != 2:
                    raise ValueError(f"wire type {kind}")
                size, at = number_at(data, at)
            if at + size > len(data):
                raise ValueError("cut off")
            value, at = data[at : at + size], at + size
        if tag < 8:
            raise ValueError("a field without a number")
        yield tag >> 3, kind, value


def messages(data: bytes, field: int) -> Iterator[bytes]:
    """The bytes or messages of one field; as in protobuf, other wire types with its number are skipped."""
    return (value for number, kind, value in fields(data) if number == field and kind == 2)


def integer(data: bytes, field: int, default: int = 0) -> int:
    """The last integer of one field."""
    for number, kind, value in fields(data):
        if number == field and kind == 0:
            default = value
    return default


def shape(data: bytes) -> tuple[int, ...]:
    """The sizes in a TensorShapeProto.

    Raises:
      ValueError: if a size is unknown, or too large for a tensor.
    """
    sizes = tuple(signed(integer(dim, 1)) for dim in messages(data, 2))
    if any(size < 0 for size in sizes) or len(sizes) > 254:
        raise ValueError(f"the shape {list(sizes)[:8]}")
    return sizes
