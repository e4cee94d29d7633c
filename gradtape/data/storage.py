"""Datasets in files: `save`, `load`, and the files of `cache`.

A file of elements is a file of records, each with a checksum (`gradtape/io/framing.py`). The first is JSON and
describes the structure of an element; then follows a record for each element: for each part its sizes, then its
bytes; the last is JSON and has the number of elements. The file gets its name when it is complete.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradtape._src.base import dtypes, errors, nest
from gradtape._src.base.contexts import aside
from gradtape._src.base.reading import expect, json_of, open_file, reading
from gradtape._src.base.shape import TensorSpec
from gradtape._src.tensors import raw, text
from gradtape.data import kinds
from gradtape.data.base import UNKNOWN, DatasetBase, Run, invalid
from gradtape.data.dataset import Dataset
from gradtape.data.functions import DataFunction, arguments
from gradtape.data.grouping import ListDataset
from gradtape.data.paths import strings
from gradtape.data.structure import DatasetSpec, is_tensor, normalise, packer, spec_of
from gradtape.io import framing

_MAGIC = "gradtape elements 2"
_SAVED, _CONTENTS = "elements", "dataset.json"


# ---- the structure of elements ------------------------------------------------------------------


def _describe(structure: Any) -> Any:
    """A structure of tuples and dicts of specs as JSON."""
    if isinstance(structure, dict):
        return {"dict": [[key, _describe(structure[key])] for key in structure]}
    if isinstance(structure, tuple):
        return {"tuple": [_describe(child) for child in structure]}
    kind = type(structure).__name__
    if isinstance(structure, TensorSpec) or kind in ("RaggedTensorSpec", "SparseTensorSpec"):
        sizes = None if structure.shape.rank is None else list(structure.shape)
        description = {"dtype": structure.dtype.name, "shape": sizes}
        if kind == "RaggedTensorSpec":
            description |= {"ragged_rank": structure.ragged_rank, "splits": structure.row_splits_dtype.name}
        return description if isinstance(structure, TensorSpec) else description | {"kind": kind}
    raise NotImplementedError(f"save: elements with parts like {structure!r} cannot be written.")


def _structure(description: Any) -> Any:
    if "dict" in expect(description, dict):
        return {key: _structure(value) for key, value in description["dict"]}
    if "tuple" in description:
        return tuple(_structure(child) for child in description["tuple"])
    shape, dtype = description["shape"], dtypes.as_dtype(expect(description["dtype"], str))
    kind = description.get("kind")
    if kind is None:
        return TensorSpec(shape, dtype)
    if kind == "SparseTensorSpec":
        return kinds.sparse_spec(shape, dtype)
    if kind != "RaggedTensorSpec":
        raise ValueError(f"values of {kind!r}")
    splits = dtypes.as_dtype(expect(description["splits"], str))
    return kinds.ragged_spec(shape, dtype, expect(description["ragged_rank"], int), splits)


# ---- parts --------------------------------------------------------------------------------------


def _element(element: Any, specs: list) -> bytes:
    """An element as a record."""
    tensors: list = []
    for part, spec in zip(nest.flatten(element), specs, strict=True):
        tensors += [part] if isinstance(spec, TensorSpec) else nest.flatten(spec._to_components(part))
    return b"".join(map(_encoded, tensors))


def _parts(record: bytes, specs: list) -> list:
    """The parts of an element."""
    inside = [[s] if isinstance(s, TensorSpec) else nest.flatten(s._component_specs) for s in specs]
    tensors = list(_tensors(record, [t for some in inside for t in some]))
    parts = []
    for spec, some in zip(specs, inside, strict=True):
        own, tensors = tensors[: len(some)], tensors[len(some) :]
        parts.append(
            own[0]
            if isinstance(spec, TensorSpec)
            else spec._from_components(nest.pack_sequence_as(spec._component_specs, own))
        )
    return parts


def _encoded(part: Any) -> bytes:
    if text.is_text(part):
        data = b"".join(struct.pack("<q", len(s)) + s for s in text.array_of(part).reshape(-1).tolist())
    else:
        data = raw.array_of(part).tobytes()
    sizes = list(part.shape)
    return struct.pack(f"<B{len(sizes)}qq", len(sizes), *sizes, len(data)) + data


def _tensors(record: bytes, specs: list[TensorSpec]) -> Iterator[Any]:
    """The tensors of an element."""
    file = io.BytesIO(record)
    for spec in specs:
        (rank,) = file.read(1)
        *sizes, length = struct.unpack(f"<{rank + 1}q", file.read(8 * (rank + 1)))
        data = file.read(max(length, 0))
        if len(data) != length or min(sizes, default=0) < 0:
            raise ValueError(f"{len(data)} bytes for a part of {sizes}")
        if spec.dtype is dtypes.string:
            yield text.make(text.array(_strings(data), sizes))
        else:
            yield raw.tensor_of(np.frombuffer(data, raw.numpy_type(spec.dtype)).reshape(sizes), spec.dtype)
    if file.read(1):
        raise ValueError("more parts than its header says")


def _strings(raw: bytes) -> list[bytes]:
    out, at = [], 0
    while at < len(raw):
        (n,) = struct.unpack_from("<q", raw, at)
        if not 0 <= n <= len(raw) - at - 8:
            raise ValueError(f"a string of {n} bytes")
        out.append(raw[at + 8 : at + 8 + n])
        at += 8 + n
    return out


# ---- files --------------------------------------------------------------------------------------


def write_through(
    source: Iterator[Any], path: str, spec: Any = None, compressed: bool = False
) -> Iterator[Any]:
    """The same elements, written to a file along the way. If not all are taken, no file is made."""
    temporary = f"{path}.{os.getpid()}.incomplete"
    file: Any = None
    count = 0
    try:
        for element in source:
            count += 1
            if file is None:
                spec = spec_of(element) if spec is None else spec
                file = _begin(temporary, spec, compressed)
            file.write(framing.framed(_element(element, nest.flatten(spec))))
            yield element
        if file is None:
            file = _begin(temporary, () if spec is None else spec, compressed)
        file.write(framing.framed(json.dumps({"elements": count}).encode()))
        file.close()
        os.replace(temporary, path)
    except BaseException:
        if file is not None:
            file.close()
            os.unlink(temporary)
        raise


def _begin(path: str, spec: Any, compressed: bool) -> Any:
    try:
        file: Any = gzip.open(path, "xb") if compressed else open(path, "xb")  # noqa: SIM115
    except FileExistsError:
        raise errors.AlreadyExistsError(
            None,
            None,
            f"There appears to be a concurrent caching iterator running - cache lockfile already exists ('{path}'). If you "
            "are sure that none is, delete the file.",
        ) from None
    header = json.dumps({"format": _MAGIC, "element": _describe(spec)})
    file.write(framing.framed(header.encode()))
    return file


def _open(path: str) -> Any:
    with open_file(path) as file:
        compressed = file.read(2) == b"\x1f\x8b"
    return open_file(path, "GZIP" if compressed else None)


def read_spec(path: str) -> Any:
    """The spec of the elements of a file."""
    with _open(path) as file:
        return _header(framing.read(file, path), path)


def _header(records: Iterator[bytes], path: str) -> Any:
    with reading(f"{path}: this is not a file of elements written by gradtape: "):
        header = json_of(next(records, b""))
        if header["format"] != _MAGIC:
            raise ValueError(f"its format is {header['format']!r}")
        return _structure(header["element"])


def read_elements(path: str) -> Iterator[Any]:
    """The elements of a file."""
    with _open(path) as file:
        records = framing.read(file, path)
        spec = _header(records, path)
        flat, pack = nest.flatten(spec), packer(spec)
        last = next(records, b"")
        count = 0
        for record in records:
            count += 1
            with reading(f"{path}: an element is damaged: "):
                element = pack(_parts(last, flat))
            yield element
            last = record
        with reading(f"{path}: the file ends before its last element: "):
            if json_of(last) != {"elements": count}:
                raise ValueError(f"there are {count}")


# ---- Dataset.save and load ----------------------------------------------------------------------


def save(dataset: Any, path: Any, compression: Any = None, shard_func: Any = None) -> None:
    """`Dataset.save`: a file per shard, and an index of the files with their numbers of elements."""
    folder = strings(path)[0]
    os.makedirs(folder, exist_ok=True)
    compressed = compression == "GZIP"
    with aside():
        spec = dataset.element_spec
        if shard_func is None:
            shards: dict[str, Any] = {_SAVED: dataset._begin_pass()}
        else:
            shards = _sharded(dataset, DataFunction(shard_func, "save", _as_shard))
        files = {}
        for name, elements in shards.items():
            written = write_through(iter(elements), os.path.join(folder, name), spec, compressed)
            files[name] = sum(1 for _ in written)
    described = {"format": _MAGIC, "element": _describe(spec), "files": files}
    with open(os.path.join(folder, _CONTENTS), "w") as file:
        json.dump(described, file)


def _as_shard(result: Any) -> Any:
    shard = normalise(result)
    if not (is_tensor(shard) and shard.dtype is dtypes.int64 and shard.ndim == 0):
        raise invalid(f"`shard_func` must return a scalar int64; got {shard!r}.")
    return shard


def _sharded(dataset: Any, shard_of: Any) -> dict:
    """The elements of each shard, by the name of its file."""
    shards: dict[int, list] = {}
    for element in dataset._begin_pass():
        shards.setdefault(int(shard_of(*arguments(element))), []).append(element)
    return {f"{_SAVED}-{shard}": shards[shard] for shard in sorted(shards)}


class _LoadDataset(Dataset):
    """The elements of a file."""

    def __init__(self, path: str, spec: Any, count: int) -> None:
        super().__init__()
        self._path, self._element, self._count = path, spec, count

    def _spec(self, look: bool = False) -> Any:
        return self._element

    def _size(self) -> int:
        return self._count

    def _elements(self, run: Run) -> Iterator[Any]:
        return read_elements(self._path)


def load(path: Any, element_spec: Any = None, compression: Any = None, reader_func: Any = None) -> Any:
    """`Dataset.load`."""
    folder = strings(path)[0]
    spec, counts = _contents(folder)
    spec = spec if element_spec is None else element_spec
    files = [_LoadDataset(os.path.join(folder, name), spec, n) for name, n in counts.items()]
    if reader_func is None and len(files) == 1:
        return files[0]
    shards = ListDataset(files, DatasetSpec(spec))
    read = reader_func or (lambda datasets: datasets.interleave(lambda d: d, cycle_length=max(1, len(files))))
    result = read(shards)
    if not isinstance(result, DatasetBase):
        raise TypeError(f"load: `reader_func` must return a `Dataset` object. Got {type(result)}.")
    return result


def _contents(folder: str) -> tuple[Any, dict[str, int]]:
    """The spec of a saved dataset, and the number of elements of each of its files."""
    path = os.path.join(folder, _CONTENTS)
    if not os.path.exists(path):  # written before there were shards
        return read_spec(os.path.join(folder, _SAVED)), {_SAVED: UNKNOWN}
    with open_file(path) as file, reading(f"{path}: this is not a dataset saved by gradtape: "):
        content = json_of(file.read())
        if content["format"] != _MAGIC:
            raise ValueError(f"its format is {content['format']!r}")
        files = {expect(name, str): expect(n, int) for name, n in expect(content["files"], dict).items()}
        if any(os.path.basename(name) != name for name in files):
            raise ValueError("it names files of other folders")
        return _structure(content["element"]), files
