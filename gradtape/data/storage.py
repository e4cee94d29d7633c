"""Datasets in files: `save`, `load`, and the files of `cache`.

A file of elements is a line of JSON, which says what an element is made of, and then the parts of one
element after the other: the sizes of a part, then its bytes. It appears under its name once it is complete.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradtape._src import ops
from gradtape._src.base import dtypes, errors, nest
from gradtape._src.base.shape import TensorSpec
from gradtape._src.graph.trace import lift
from gradtape.data import text
from gradtape.data.base import DatasetBase, Run
from gradtape.data.dataset import Dataset
from gradtape.data.structure import is_tensor, packer

_MAGIC = "gradtape elements 1"
_SAVED = "elements"


# ---- what an element is made of -----------------------------------------------------------------


def _describe(structure: Any) -> Any:
    """A structure of tuples and dicts of specs as JSON."""
    if isinstance(structure, dict):
        return {"dict": [[key, _describe(structure[key])] for key in structure]}
    if isinstance(structure, tuple):
        return {"tuple": [_describe(child) for child in structure]}
    if isinstance(structure, TensorSpec):
        sizes = None if structure.shape.rank is None else list(structure.shape)
        return {"dtype": structure.dtype.name, "shape": sizes}
    raise NotImplementedError(f"save: elements with parts like {structure!r} cannot be written.")


def _structure(description: dict) -> Any:
    if "dict" in description:
        return {key: _structure(value) for key, value in description["dict"]}
    if "tuple" in description:
        return tuple(_structure(child) for child in description["tuple"])
    return TensorSpec(description["shape"], description["dtype"])


# ---- parts --------------------------------------------------------------------------------------


def _write_part(file: Any, part: Any) -> None:
    if is_tensor(part):
        data = memoryview(part) if part.dtype is not dtypes.bfloat16 else part.numpy().astype(np.float32)
        raw = np.ascontiguousarray(data).tobytes()
    else:
        strings = text.array_of(part).reshape(-1).tolist()
        raw = b"".join(struct.pack("<q", len(s)) + s for s in strings)
    sizes = list(part.shape)
    file.write(struct.pack(f"<B{len(sizes)}qq", len(sizes), *sizes, len(raw)) + raw)


def _read(file: Any, count: int, name: str) -> bytes:
    data = file.read(count)
    if len(data) != count:
        raise errors.DataLossError(None, None, f"{name}: the file ends in the middle of an element.")
    return data


def _read_part(file: Any, rank: int, spec: TensorSpec, name: str) -> Any:
    *sizes, length = struct.unpack(f"<{rank + 1}q", _read(file, 8 * (rank + 1), name))
    raw = _read(file, length, name)
    if spec.dtype is dtypes.string:
        found, at = [], 0
        while at < length:
            (n,) = struct.unpack_from("<q", raw, at)
            found.append(raw[at + 8 : at + 8 + n])
            at += 8 + n
        array = np.empty(len(found), object)
        array[:] = found
        return text.make(array.reshape(sizes))
    kind = np.float32 if spec.dtype is dtypes.bfloat16 else spec.dtype.as_numpy_dtype
    return ops.convert_to_tensor(np.frombuffer(raw, kind).reshape(sizes), spec.dtype)


# ---- files --------------------------------------------------------------------------------------


def write_through(
    source: Iterator[Any], path: str, spec: Any = None, compressed: bool = False
) -> Iterator[Any]:
    """The same elements, written to a file on their way. Unless all were taken there is no file."""
    from gradtape.data.structure import spec_of

    temporary = f"{path}.{os.getpid()}.incomplete"
    file: Any = None
    try:
        for element in source:
            if file is None:
                file = _begin(temporary, spec_of(element) if spec is None else spec, compressed)
            for part in nest.flatten(element):
                _write_part(file, part)
            yield element
        if file is None:
            file = _begin(temporary, () if spec is None else spec, compressed)
        file.close()
        os.replace(temporary, path)
    except BaseException:
        if file is not None:
            file.close()
            os.unlink(temporary)
        raise


def _begin(path: str, spec: Any, compressed: bool) -> Any:
    file = _gzip(path, "wb") if compressed else open(path, "wb")  # noqa: SIM115
    file.write(json.dumps({"format": _MAGIC, "element": _describe(spec)}).encode() + b"\n")
    return file


def _open(path: str) -> Any:
    try:
        with open(path, "rb") as f:
            compressed = f.read(2) == b"\x1f\x8b"
    except FileNotFoundError:
        raise errors.NotFoundError(None, None, f"{path}; No such file or directory") from None
    return _gzip(path, "rb") if compressed else open(path, "rb")


def _gzip(path: str, mode: str) -> Any:
    import gzip

    return gzip.open(path, mode)


def read_spec(path: str) -> Any:
    """The spec of the elements of a file."""
    with _open(path) as file:
        return _header(file, path)


def _header(file: Any, path: str) -> Any:
    try:
        header = json.loads(file.readline())
        if header["format"] != _MAGIC:
            raise ValueError
    except (ValueError, KeyError, TypeError, UnicodeDecodeError):
        raise errors.DataLossError(
            None, None, f"{path}: this is no file of elements of gradtape's."
        ) from None
    return _structure(header["element"])


def read_elements(path: str) -> Iterator[Any]:
    """The elements of a file."""
    with _open(path) as file:
        spec = _header(file, path)
        flat, pack = nest.flatten(spec), packer(spec)
        while flat:
            parts = []
            for i, s in enumerate(flat):
                rank = file.read(1)
                if not rank:
                    if i:
                        raise errors.DataLossError(
                            None, None, f"{path}: the file ends in the middle of an element."
                        )
                    return
                parts.append(_read_part(file, rank[0], s, path))
            yield pack(parts)


# ---- Dataset.save and load ----------------------------------------------------------------------


def save(dataset: Any, path: Any, compression: Any = None) -> None:
    """`Dataset.save`."""
    folder = text.strings(path)[0]
    os.makedirs(folder, exist_ok=True)
    if compression not in (None, "NONE", "GZIP", "AUTO", "SNAPPY"):
        raise ValueError(f'save: Unsupported compression: expected None or "GZIP"; got {compression!r}.')
    compressed = compression == "GZIP"
    with lift():
        spec = dataset.element_spec
        for _ in write_through(dataset._begin_pass(), os.path.join(folder, _SAVED), spec, compressed):
            pass


class _LoadDataset(Dataset):
    """The elements of a file."""

    def __init__(self, path: str, spec: Any) -> None:
        super().__init__()
        self._path = path
        self._element = read_spec(path) if spec is None else spec

    def _spec(self, look: bool = False) -> Any:
        return self._element

    def _elements(self, run: Run) -> Iterator[Any]:
        return read_elements(self._path)


def load(path: Any, element_spec: Any = None, compression: Any = None, reader_func: Any = None) -> Any:
    """`Dataset.load`."""
    file = os.path.join(text.strings(path)[0], _SAVED)
    made: Any = _LoadDataset(file, element_spec)
    if reader_func is not None:
        made = reader_func(Dataset.from_tensors(0).map(lambda _: made))
        if not isinstance(made, DatasetBase):
            raise TypeError(f"load: `reader_func` must return a `Dataset` object. Got {type(made)}.")
    return made
