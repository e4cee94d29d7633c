"""Reads checkpoints that TensorFlow wrote: `ckpt-1.index` and `ckpt-1.data-00000-of-00001`.

The index is a sorted table of names (LevelDB's format); an entry has the type, shape, position and checksum of a
tensor in the data. Variables keep the paths that TensorFlow gave them, so that a `tf.Module` trained there is
restored here; the state of Keras optimizers has other names and stays unused.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.errors import UnimplementedError
from gradtape._src.base.reading import reading, take_all
from gradtape._src.tensors import raw
from gradtape.io import wire
from gradtape.io.framing import masked
from gradtape.train.trackable import join, short_name, within_depth

_MAGIC = 0xDB4775248B80FB57
_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


class _Entry(NamedTuple):
    """The index entry of a tensor; `dtype` is None for types that tensors here cannot have."""

    dtype: Any
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    crc: int


class Archive:
    """The tensors of a TensorFlow checkpoint, by path; with the interface of `safetensors.Archive`.

    Raises:
      DataLossError: if a file is damaged. The index is checked when the checkpoint is opened, the values when they
      are read.
    """

    def __init__(self, prefix: str) -> None:
        self.path = prefix
        self._shards: dict[int, np.ndarray] = {}
        self._entries: dict[str, _Entry] = {}
        self._count = 1
        self.names: dict[str, str] = {}  # by path: TensorFlow's name
        self.aliases: dict[str, str] = {}
        with self._reading():
            for name, value in _table(take_all(prefix + ".index")):
                if not name:
                    self._count = wire.integer(value, 1, 1)
                    if wire.integer(value, 2):
                        raise UnimplementedError("checkpoint: one of a big-endian machine cannot be read.")
                    continue
                entry = _entry(value)
                if name == _GRAPH:
                    self.aliases = _aliases(self._text(entry))
                elif entry.dtype is not None:
                    self.names[short_name(name)] = name
                    self._entries[within_depth(short_name(name))] = entry

    def _reading(self) -> Any:
        return reading(f"checkpoint: {self.path} is damaged: ")

    def _bytes(self, entry: _Entry) -> np.ndarray:
        shard = entry.shard
        if shard not in self._shards:
            name = f"{self.path}.data-{shard:05d}-of-{self._count:05d}"
            empty = os.path.getsize(name) == 0
            self._shards[shard] = np.zeros(0, np.uint8) if empty else np.memmap(name, np.uint8, "r")
        data = self._shards[shard][entry.offset : entry.offset + entry.size]
        if len(data) != entry.size:
            raise ValueError(
                f"its data ends at {len(self._shards[shard])}, a tensor needs {entry.offset + entry.size} bytes"
            )
        return data

    def _text(self, entry: _Entry) -> bytes:
        """The only string of a string tensor: its length, a checksum of that, its bytes."""
        data = self._bytes(entry).tobytes()
        length, at = wire.number_at(data, 0)
        # The checksum covers the length as four bytes, the checksum of the length, and the bytes.
        counted = length.to_bytes(4, "little")
        if masked(counted) != data[at : at + 4] or len(data) != at + 4 + length:
            raise ValueError("the length of its object graph does not fit")
        _compare(counted + data[at:], entry.crc, "its object graph")
        return data[at + 4 :]

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def dtype(self, key: str) -> dtypes.DType:
        """The element type of a tensor."""
        return self._entries[key].dtype

    def shape(self, key: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        return self._entries[key].shape

    def tensor(self, key: str) -> _core.Tensor:
        """A tensor with the stored value."""
        entry = self._entries[key]
        with self._reading():
            data = np.array(self._bytes(entry))
            _compare(data, entry.crc, key)
            return raw.tensor_of(data.view(raw.numpy_type(entry.dtype)).reshape(entry.shape), entry.dtype)


def _compare(data: Any, crc: int, what: str) -> None:
    if int.from_bytes(masked(data), "little") != crc:
        raise ValueError(f"Checksum does not match: stored {crc:08x} for {what}")


# ---- the table ------------------------------------------------------------------------------------


def _table(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The entries of a sorted table: its footer points to the index block, which points to the others."""
    if len(data) < 48 or int.from_bytes(data[-8:], "little") != _MAGIC:
        raise ValueError("its index is not a table in TensorFlow's format")
    about, at = _handle(data, len(data) - 48)
    index, _ = _handle(data, at)
    for _ in _block(data, *about):  # not needed, but its checksum is verified
        pass
    for _, value in _block(data, *index):
        block, _ = _handle(value, 0)
        for key, entry in _block(data, *block):
            yield key.decode(), entry


def _handle(data: bytes, at: int) -> tuple[tuple[int, int], int]:
    offset, at = wire.number_at(data, at)
    size, at = wire.number_at(data, at)
    return (offset, size), at


def _block(data: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """The entries of a block: each key repeats the beginning of the previous one."""
    block = data[offset : offset + size]
    kind, crc = data[offset + size : offset + size + 1], data[offset + size + 1 : offset + size + 5]
    if len(block) != size or len(crc) != 4 or size < 4:
        raise ValueError("its index is cut off")
    if masked(block + kind) != crc:
        raise ValueError("block checksum mismatch in its index")
    if kind != b"\0":
        raise UnimplementedError("checkpoint: an index that is compressed cannot be read.")
    end = size - 4 - 4 * int.from_bytes(block[-4:], "little")
    at, key = 0, b""
    while at < end:
        shared, at = wire.number_at(block, at)
        more, at = wire.number_at(block, at)
        length, at = wire.number_at(block, at)
        if shared > len(key) or at + more + length > end:
            raise ValueError("an entry of its index is longer than its block")
        key = key[:shared] + block[at : at + more]
        at += more
        yield key, block[at : at + length]
        at += length


def _entry(value: bytes) -> _Entry:
    if any(True for _ in wire.messages(value, 7)):
        raise UnimplementedError("checkpoint: partitioned variables cannot be read.")
    shape = tuple(size for m in wire.messages(value, 2) for size in wire.shape(m))
    enum = wire.integer(value, 1)
    dtype = dtypes.as_dtype(enum) if enum in dtypes._BY_ENUM else None
    crc = [v for field, kind, v in wire.fields(value) if field == 6 and kind == 5] or [bytes(4)]
    shard, offset, size = (wire.integer(value, field) for field in (3, 4, 5))
    if dtype is None or dtype.size == 0:
        dtype = None
    elif size != math.prod(shape) * dtype.size:
        raise ValueError(f"{size} bytes for {dtype.name}{list(shape)}")
    return _Entry(dtype, shape, shard, offset, size, int.from_bytes(crc[-1], "little"))


# ---- the objects ----------------------------------------------------------------------------------


def _aliases(graph: bytes) -> dict[str, str]:
    """Further edges to objects that already have a path, as in `trackable.ObjectGraph`."""
    nodes = [list(wire.messages(node, 1)) for node in wire.messages(graph, 1)]
    paths, aliases, queue = {0: ""}, {}, deque([0] if nodes else [])
    while queue:
        current = queue.popleft()
        for child in nodes[current]:
            target = wire.integer(child, 1)
            edge = within_depth(join(paths[current], b"".join(list(wire.messages(child, 2))[-1:]).decode()))
            if target in paths:
                aliases[edge] = paths[target]
            else:
                paths[target] = edge
                queue.append(target)
    return aliases
