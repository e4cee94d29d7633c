"""The file format of checkpoints: safetensors, which other libraries can read as well.

Eight bytes give the length of a header in JSON; it has each tensor's type, shape and position in the bytes that
follow. `__metadata__` holds a checksum of header and data, and whatever the format cannot express: complex numbers
are stored as pairs, and listed under "complex"; strings as bytes (the length of each, then all of them), with their
shapes under "strings"; types of fewer than 8 bits, and two of the floats, as one byte per element, with their names
under "stored".
"""

from __future__ import annotations

import itertools
import json
import math
import mmap
import os
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.errors import DataLossError
from gradtape._src.base.progress import Progress
from gradtape._src.base.reading import expect, json_of, reading, system_errors
from gradtape._src.tensors import conversion, raw, text
from gradtape.train import files
from gradtape.train.trackable import within_depth

_NAMES = {
    dtypes.bool: "BOOL", dtypes.int8: "I8", dtypes.int16: "I16", dtypes.int32: "I32", dtypes.int64: "I64",
    dtypes.uint8: "U8", dtypes.uint16: "U16", dtypes.uint32: "U32", dtypes.uint64: "U64",
    dtypes.float16: "F16", dtypes.bfloat16: "BF16", dtypes.float32: "F32", dtypes.float64: "F64",
    dtypes.complex64: "F32", dtypes.complex128: "F64",
    dtypes.as_dtype("float8_e5m2"): "F8_E5M2", dtypes.as_dtype("float8_e4m3fn"): "F8_E4M3",
}  # fmt: skip
_TYPES = {name: dtype for dtype, name in _NAMES.items() if not dtype.is_complex}
_PAIRS = {"F32": dtypes.complex64, "F64": dtypes.complex128}
_MOST_HEADER = 100_000_000
_NO_SUM = "00000000"
_PART = 1 << 24  # bytes per write


# ---- writing --------------------------------------------------------------------------------------


def save(path: str, tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Writes tensors by name, atomically."""
    texts = {key: [int(d) for d in t.shape] for key, t in tensors.items() if t.dtype is dtypes.string}
    tensors = {key: _packed(t) if key in texts else t for key, t in tensors.items()}
    # The widest elements first, so that every tensor starts at a multiple of its element size.
    order = sorted(tensors, key=lambda key: (-tensors[key].dtype.size, key))
    about: dict[str, str] = {"format": "gradtape", **(metadata or {}), "crc32": _NO_SUM}
    pairs = [key for key in order if tensors[key].dtype.is_complex]
    if pairs:
        about["complex"] = json.dumps(pairs)
    if texts:
        about["strings"] = json.dumps(texts)
    if unnamed := {key: t.dtype.name for key, t in tensors.items() if t.dtype not in _NAMES}:
        about["stored"] = json.dumps(unnamed)
    header: dict[str, Any] = {"__metadata__": about}
    end = 0
    for key in order:
        dtype, shape = tensors[key].dtype, [int(d) for d in tensors[key].shape]
        start, end = end, end + math.prod(shape) * dtype.size
        header[key] = {
            "dtype": _NAMES.get(dtype, "U8"),
            "shape": [*shape, 2] if dtype.is_complex else shape,
            "data_offsets": [start, end],
        }
    with Progress(f"writing {os.path.basename(path)}", 2 * end, "B") as progress:

        def data() -> Iterator[Any]:
            for key in order:
                whole = _bytes(tensors[key])
                for start in range(0, len(whole), _PART):
                    yield whole[start : start + _PART]
                    progress.step(min(_PART, len(whole) - start))

        check = zlib.crc32(_encoded(header))
        for part in data():
            check = zlib.crc32(part, check)
        about["crc32"] = f"{check:08x}"
        first = _encoded(header)
        files.write(path, itertools.chain((len(first).to_bytes(8, "little"), first), data()))


def _encoded(header: dict[str, Any]) -> bytes:
    encoded = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    return encoded + b" " * (-len(encoded) % 8)


def _bytes(tensor: Any) -> Any:
    """The elements of a tensor as bytes, without a copy."""
    return raw.array_of(conversion.read(tensor)).reshape(-1).view(np.uint8)


def _packed(tensor: Any) -> _core.Tensor:
    words = text.array_of(conversion.read(tensor)).reshape(-1).tolist()
    lengths = np.array([len(w) for w in words], "<i8").tobytes()
    return conversion.convert(np.frombuffer(lengths + b"".join(words), np.uint8))


def _unpacked(data: bytes, shape: tuple[int, ...]) -> _core.Tensor:
    """The strings written by `_packed`.

    Raises:
      ValueError: if the number of bytes is wrong.
    """
    count = math.prod(shape)
    lengths = np.frombuffer(data, "<i8", count)
    ends = 8 * count + np.cumsum(lengths)
    if (lengths < 0).any() or (int(ends[-1]) if count else 0) != len(data):
        raise ValueError(f"strings of shape {list(shape)} have {len(data)} bytes")
    return text.make(
        text.array((data[e - n : e] for e, n in zip(ends.tolist(), lengths.tolist(), strict=True)), shape)
    )


# ---- reading --------------------------------------------------------------------------------------


class Archive:
    """The tensors of a file, read on access.

    Raises:
      DataLossError: if the file is damaged: cut off, changed, or of another format.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with system_errors(path), open(path, "rb") as file:
            size = file.seek(0, 2)
            if size < 8:
                raise self._damaged(f"it has {size} bytes, a header alone has more")
            self._bytes: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        length = int.from_bytes(self._bytes[:8], "little")
        if length > min(_MOST_HEADER, size - 8):
            raise self._damaged(f"its header should have {length} bytes, the file has {size}")
        self._start = 8 + length
        head = self._bytes[8 : self._start]
        with self._reading("its header cannot be read: "):
            header = json_of(head)
            self.metadata: dict[str, str] = expect(header.pop("__metadata__", {}), dict)
            pairs = frozenset(json_of(self.metadata.get("complex", "[]"), list))
            stored = json_of(self.metadata.get("stored", "{}"), dict)
            self._places = {
                key: self._place(key, entry, key in pairs, stored.get(key)) for key, entry in header.items()
            }
            self._texts = {
                key: tuple(expect(d, int) for d in expect(shape, list))
                for key, shape in json_of(self.metadata.get("strings", "{}"), dict).items()
            }
            # Further edges to objects that already have a path.
            self.aliases: dict[str, str] = {
                within_depth(edge): expect(target, str)
                for edge, target in json_of(self.metadata.get("aliases", "{}")).items()
            }
        self._check_size(size)
        self._check_sum(head)

    def _reading(self, what: str = "") -> Any:
        return reading(what, self._damaged)

    def _place(
        self, key: str, entry: dict[str, Any], pair: bool, stored: str | None
    ) -> tuple[Any, tuple[int, ...], int, int]:
        shape = tuple(expect(d, int) for d in expect(entry["shape"], list))
        start, end = (expect(d, int) for d in entry["data_offsets"])
        within_depth(key)
        if pair:
            dtype, shape = _PAIRS[entry["dtype"]], shape[:-1]
        elif stored is not None:
            dtype = {d.name: d for d in dtypes.STORED}[stored]
        else:
            dtype = _TYPES[entry["dtype"]]
        if (
            end - start != math.prod(shape) * dtype.size
            or min((start, *shape)) < 0
            or max(shape, default=0) >> 62
        ):
            raise ValueError(f"{key} has {end - start} bytes for {dtype.name}{list(shape)}")
        return dtype, shape, start, end

    def _check_size(self, size: int) -> None:
        expected = self._start + max((end for *_, end in self._places.values()), default=0)
        if size != expected:
            raise self._damaged(f"it has {size} bytes, its header describes {expected}")

    def _check_sum(self, head: bytes) -> None:
        stored = self.metadata.get("crc32")
        if stored is None:
            if self.metadata.get("format") == "gradtape":
                raise self._damaged("it has no checksum")
            return  # written by another library
        check = zlib.crc32(head.replace(f'"crc32":"{stored}"'.encode(), f'"crc32":"{_NO_SUM}"'.encode(), 1))
        if f"{zlib.crc32(memoryview(self._bytes)[self._start :], check):08x}" != stored:
            raise self._damaged("its checksum does not fit: bytes were changed")

    def _damaged(self, what: str) -> DataLossError:
        return DataLossError(
            None,
            None,
            f"checkpoint: {self.path} is damaged, or not a safetensors file: {what}. Hint: restore an older "
            "checkpoint; tf.train.get_checkpoint_state(folder) lists them.",
        )

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def dtype(self, key: str) -> dtypes.DType:
        """The element type of a tensor."""
        return dtypes.string if key in self._texts else self._places[key][0]

    def shape(self, key: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        return self._texts[key] if key in self._texts else self._places[key][1]

    def tensor(self, key: str) -> _core.Tensor:
        """A tensor with the stored value, in its own memory."""
        dtype, shape, start, end = self._places[key]
        data = memoryview(self._bytes)[self._start + start : self._start + end]
        if key in self._texts:
            with self._reading():
                return _unpacked(bytes(data), self._texts[key])
        with self._reading():
            return raw.tensor_of(np.frombuffer(data, raw.numpy_type(dtype)).reshape(shape), dtype)
