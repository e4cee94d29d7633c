"""Datasets read from files: lines of text, TFRecords, records of a fixed length, lists of files."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from gradtape._src.base import dtypes
from gradtape._src.base.reading import open_file, reading
from gradtape._src.base.shape import TensorSpec
from gradtape._src.tensors import text
from gradtape.data.base import AUTOTUNE, DatasetBase, Run, invalid, number
from gradtape.data.dataset import Dataset
from gradtape.data.paths import strings
from gradtape.io import framing


class FileDataset(Dataset):
    """Records of files, one file after the other, or several in turns.

    Args:
      filenames: a name, a list of names, or a dataset of names.
      read: a function that yields the records of a file.
      num_parallel_reads: the number of files read at a time, AUTOTUNE, or None for one.

    Raises:
      TypeError: if the names are not strings.
    """

    def __init__(
        self, filenames: Any, read: Callable[[str], Iterator[Any]], num_parallel_reads: Any = None
    ) -> None:
        self._names = filenames if isinstance(filenames, DatasetBase) else None
        if self._names is not None:
            spec = self._names._spec()
            if spec is not None and getattr(spec, "dtype", None) is not dtypes.string:
                raise TypeError(
                    "The `filenames` argument must contain `tf.string` elements. Got a dataset of "
                    f"`{getattr(spec, 'dtype', spec)!r}` elements."
                )
        self._given = None if self._names is not None else strings(filenames)
        super().__init__(*([self._names] if self._names is not None else []))
        self._read = read
        self._parallel = num_parallel_reads

    def _spec(self, look: bool = False) -> Any:
        return TensorSpec((), dtypes.string)

    def _files(self, run: Run) -> Iterator[str]:
        if self._given is not None:
            return iter(self._given)
        assert self._names is not None
        return chain.from_iterable(strings(name) for name in self._names._iterate(run))

    def _elements(self, run: Run) -> Iterator[Any]:
        texts = self._texts(run)
        if texts is not None:
            return map(_one, texts)
        names: Any = Dataset.from_tensor_slices(self._given) if self._names is None else self._names
        count = number(self._parallel, type(self).__name__, "num_parallel_reads")
        cycle = None if count == AUTOTUNE else count
        turns = names.interleave(lambda name: FileDataset(name, self._read), cycle, 1, AUTOTUNE)
        return turns._iterate(run)

    def _texts(self, run: Run) -> Iterator[bytes] | None:
        return None if self._parallel is not None else chain.from_iterable(map(self._read, self._files(run)))


def _one(value: bytes) -> Any:
    out = np.empty((), object)
    out[()] = value
    return text.make(out)


class TextLineDataset(FileDataset):
    """The lines of text files, without their ends, as bytes."""

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        def lines(path: str) -> Iterator[bytes]:
            with reading(f"{path} is damaged: "), open_file(path, compression_type) as file:
                for line in file:
                    yield line.rstrip(b"\n").rstrip(b"\r") if line.endswith(b"\n") else line

        super().__init__(filenames, lines, num_parallel_reads)


class TFRecordDataset(FileDataset):
    """The records of TFRecord files, as bytes."""

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        def records(path: str) -> Iterator[bytes]:
            with open_file(path, compression_type) as file:
                yield from framing.read(file, path)

        super().__init__(filenames, records, num_parallel_reads)


class FixedLengthRecordDataset(FileDataset):
    """Records of `record_bytes` bytes of files, after a header and before a footer."""

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: Any = None,
        compression_type: Any = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        op = "FixedLengthRecordDataset"
        length = number(record_bytes, op, "record_bytes")
        header = 0 if header_bytes is None else number(header_bytes, op, "header_bytes")
        footer = 0 if footer_bytes is None else number(footer_bytes, op, "footer_bytes")
        if length < 1:
            raise invalid(f"{op}: `record_bytes` must be > 0; got {length}.")

        def records(path: str) -> Iterator[bytes]:
            with reading(f"{path} is damaged: "), open_file(path, compression_type) as file:
                data = file.read()
            body = len(data) - header - footer
            if body % length:
                raise invalid(
                    f'Excluding the header ({header} bytes) and footer ({footer} bytes), input file "{path}" has body '
                    f"length {body} bytes, which is not an exact multiple of the record length ({length} bytes)."
                )
            return (data[at : at + length] for at in range(header, header + body, length))

        super().__init__(filenames, records, num_parallel_reads)


def list_files(file_pattern: Any, shuffle: bool | None, seed: Any) -> Any:
    """`Dataset.list_files`."""
    patterns = strings(file_pattern)
    names = sorted({f for p in patterns for f in glob.glob(os.path.expanduser(p))})
    if not names:
        raise invalid(f"No files matched pattern: {', '.join(patterns)}")
    files: Any = Dataset.from_tensor_slices(names)
    if shuffle or shuffle is None:
        files = files.shuffle(len(names), seed)
    return files
