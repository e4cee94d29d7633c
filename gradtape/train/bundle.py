"""Reads checkpoints that TensorFlow wrote: `ckpt-1.index` and `ckpt-1.data-00000-of-00001`.

The index is a sorted table of names (LevelDB's format); an entry says type, shape and place of a
tensor in the data. Variables keep the paths TensorFlow gave them, so that a `tf.Module` trained
there is restored here; the state of Keras optimizers has other names and stays unused.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.base.errors import DataLossError, UnimplementedError
from gradtape._src.tensors import hooks
from gradtape.io import wire
from gradtape.train.trackable import join, short_name

_MAGIC = 0xDB4775248B80FB57
_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


class Archive:
    """The tensors of a checkpoint of TensorFlow's, by path; as `safetensors.Archive`.

    Raises:
      DataLossError: if a file is damaged.
    """

    def __init__(self, prefix: str) -> None:
        self.path = prefix
        self._shards: dict[int, np.ndarray] = {}
        self._entries: dict[str, tuple[Any, tuple[int, ...], int, int, int]] = {}
        self._count = 1
        self.names: dict[str, str] = {}  # by path: TensorFlow's name
        graph = b""
        try:
            for name, value in _table(_read(prefix + ".index")):
                if not name:
                    self._count = next((v for f, _, v in wire.fields(value) if f == 1), 1)
                    continue
                dtype, entry = _entry(value)
                if name == _GRAPH:
                    graph = self._text(*entry[1:])
                elif dtype is not None:
                    self.names[short_name(name)] = name
                    self._entries[short_name(name)] = (dtype, *entry)
            self.metadata = {"aliases": json.dumps(_aliases(graph))}
        except (ValueError, IndexError, OSError) as e:
            raise self._damaged(str(e)) from e

    def _damaged(self, what: str) -> DataLossError:
        return DataLossError(None, None, f"checkpoint: {self.path} is damaged: {what}.")

    def _piece(self, shard: int, offset: int, size: int) -> np.ndarray:
        if shard not in self._shards:
            name = f"{self.path}.data-{shard:05d}-of-{self._count:05d}"
            empty = os.path.getsize(name) == 0
            self._shards[shard] = np.zeros(0, np.uint8) if empty else np.memmap(name, np.uint8, "r")
        piece = self._shards[shard][offset : offset + size]
        if len(piece) != size:
            raise ValueError(
                f"its data ends at {len(self._shards[shard])}, a tensor needs {offset + size} bytes"
            )
        return piece

    def _text(self, shard: int, offset: int, size: int) -> bytes:
        """The one string of a string tensor: its length, a checksum, its bytes."""
        data = self._piece(shard, offset, size).tobytes()
        length, at = wire.number_at(data, 0)
        return data[at + 4 : at + 4 + length]

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def dtype(self, key: str) -> dtypes.DType:
        """The element type of a tensor."""
        return self._entries[key][0]

    def shape(self, key: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        return self._entries[key][1]

    def tensor(self, key: str) -> _core.Tensor:
        """A tensor with the stored value."""
        dtype, shape, *place = self._entries[key]
        raw = dtypes.uint16 if dtype is dtypes.bfloat16 else dtype
        try:
            array = np.array(self._piece(*place)).view(raw.as_numpy_dtype).reshape(shape)
        except (ValueError, OSError) as e:
            raise self._damaged(str(e)) from e
        value = hooks.convert(array, raw._code)
        return ops.bitcast(value, dtype) if raw is not dtype else value


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


# ---- the table ------------------------------------------------------------------------------------


def _table(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The entries of a sorted table: its footer names the index block, that the others."""
    if len(data) < 48 or int.from_bytes(data[-8:], "little") != _MAGIC:
        raise ValueError("its index is no table of TensorFlow's")
    _, at = _handle(data, len(data) - 48)
    index, _ = _handle(data, at)
    for _, value in _block(data, *index):
        block, _ = _handle(value, 0)
        for key, entry in _block(data, *block):
            yield key.decode(), entry


def _handle(data: bytes, at: int) -> tuple[tuple[int, int], int]:
    offset, at = wire.number_at(data, at)
    size, at = wire.number_at(data, at)
    return (offset, size), at


def _block(data: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """The entries of a block: each key repeats the beginning of the one before."""
    block = data[offset : offset + size]
    if len(block) != size or size < 4:
        raise ValueError("its index is cut off")
    if data[offset + size] != 0:
        raise UnimplementedError(None, None, "checkpoint: an index that is compressed cannot be read.")
    end = size - 4 - 4 * int.from_bytes(block[-4:], "little")
    at, key = 0, b""
    while at < end:
        shared, at = wire.number_at(block, at)
        more, at = wire.number_at(block, at)
        length, at = wire.number_at(block, at)
        key = key[:shared] + block[at : at + more]
        at += more
        yield key, block[at : at + length]
        at += length


def _entry(value: bytes) -> tuple[Any, tuple[tuple[int, ...], int, int, int]]:
    """A tensor's type (None for one that tensors here cannot have), shape, shard and place."""
    found: dict[int, Any] = {f: v for f, _, v in wire.fields(value)}
    if 7 in found:
        raise UnimplementedError(None, None, "checkpoint: partitioned variables cannot be read.")
    sizes = []
    for field, _, dim in wire.fields(found.get(2, b"")):
        if field == 2:
            sizes.append(next((v for f, _, v in wire.fields(dim) if f == 1), 0))
    enum = found.get(1, 0)
    dtype = dtypes.as_dtype(enum) if enum in dtypes._BY_ENUM else None
    known = dtype is not None and dtype.size > 0
    return dtype if known else None, (tuple(sizes), found.get(3, 0), found.get(4, 0), found.get(5, 0))


# ---- the objects ----------------------------------------------------------------------------------


def _aliases(graph: bytes) -> dict[str, str]:
    """Further edges to objects that have a path already, as in `trackable.ObjectGraph`."""
    nodes = [
        [{f: v for f, _, v in wire.fields(child)} for f, _, child in wire.fields(node) if f == 1]
        for f, _, node in wire.fields(graph)
        if f == 1
    ]
    paths, aliases, queue = {0: ""}, {}, deque([0] if nodes else [])
    while queue:
        now = queue.popleft()
        for child in nodes[now]:
            target, edge = child.get(1, 0), join(paths[now], child.get(2, b"").decode())
            if target in paths:
                aliases[edge] = paths[target]
            else:
                paths[target] = edge
                queue.append(target)
    return aliases
