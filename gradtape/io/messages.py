"""What records hold: the features of `tf.train.Example` and `tf.train.SequenceExample`, found in their bytes.

No `tf.train.Example` is made; numbers are taken over by NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.reading import reading
from gradtape.io import wire

_NAMES = {1: "string", 2: "float32", 3: "int64"}  # the kinds of lists, by their field


def _varints(data: bytes) -> np.ndarray:
    """Packed int64 numbers: seven bits a byte, the lowest first, until a byte below 128."""
    raw = np.frombuffer(data, np.uint8)
    last = np.flatnonzero(raw < 128)
    if len(last) == len(raw):
        return raw.astype(np.int64)
    first = np.append(0, last[:-1] + 1)
    lengths = last - first[: len(last)] + 1
    if lengths.sum() < len(raw) or lengths.max() > 10:
        raise ValueError("an integer is cut off, or has more than 64 bits")
    place = np.arange(len(raw)) - np.repeat(first, lengths)
    parts = (raw & 127).astype(np.uint64) << (7 * place).astype(np.uint64)
    return np.add.reduceat(parts, first).view(np.int64)


def _list(kind: int, data: bytes) -> Any:
    """The values of a BytesList (1), FloatList (2) or Int64List (3)."""
    if kind == 1:
        return list(wire.messages(data, 1))
    values = [(kind_on_wire, v) for field, kind_on_wire, v in wire.fields(data) if field == 1]
    if kind == 2:
        return np.frombuffer(b"".join(v for kind_on_wire, v in values if kind_on_wire in (2, 5)), "<f4")
    packed = [
        _varints(v) if kind_on_wire == 2 else np.array([wire.signed(v)])
        for kind_on_wire, v in values
        if kind_on_wire in (0, 2)
    ]
    return packed[0] if len(packed) == 1 else np.concatenate([np.empty(0, np.int64), *packed])


def _feature(data: bytes) -> tuple[int, Any]:
    """The kind of a Feature (0 if it has none) and its values."""
    found: tuple[int, Any] = (0, ())
    for field, kind_on_wire, v in wire.fields(data):
        if field in _NAMES and kind_on_wire == 2:
            found = field, _list(field, v)
    return found


def _entries(data: bytes) -> dict[str, bytes]:
    """A map of names to messages: Features, FeatureLists."""
    out = {}
    for entry in wire.messages(data, 1):
        parts = {f: v for f, kind_on_wire, v in wire.fields(entry) if kind_on_wire == 2}
        out[parts.get(1, b"").decode()] = parts.get(2, b"")
    return out


def parts(data: bytes, count: int) -> list[dict[str, bytes]]:
    """The maps in the first fields of a message."""
    maps: list[dict[str, bytes]] = [{} for _ in range(count)]
    with reading(f"Could not parse example input, value: {data[:40]!r}: ", InvalidArgumentError):
        for field, kind_on_wire, v in wire.fields(data):
            if 1 <= field <= count and kind_on_wire == 2:
                maps[field - 1].update(_entries(v))
    return maps


def values(key: str, data: bytes | None, dtype: Any) -> Any:
    """The values of a feature; None if there are none."""
    with reading(f"Key: {key}.  Can't parse serialized Example: ", InvalidArgumentError):
        kind, found = _feature(data) if data is not None else (0, ())
    if kind == 0:
        return None
    if _NAMES[kind] != dtype.name:
        raise InvalidArgumentError(
            f"Key: {key}.  Data types don't match. Data type: {_NAMES[kind]} but expected type: {dtype.name}."
        )
    return found
