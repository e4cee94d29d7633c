"""`tf.compat.v1.strings`: functions of strings with the parameters of version 1. The others are those of `tf.strings`."""

from __future__ import annotations

from typing import Any

from gradtape import strings as _strings
from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.base.calls import one_call
from gradtape._src.control.text_ops import is_ragged, strings_of
from gradtape._src.public import absent as _absent
from gradtape.strings.splitting import pieces


def __getattr__(name: str) -> Any:
    return getattr(_strings, name)


def __dir__() -> list[str]:
    return _absent.names_beside(globals(), "strings")


def _one(first: Any, second: Any, names: str) -> Any:
    """The value of an argument that has two names."""
    if (first is None) == (second is None):
        raise ValueError(f"Exactly one of {names} must be specified.")
    return second if first is None else first


def length(input: Any, name: str | None = None, unit: str = "BYTE") -> Any:
    """The same as `tf.strings.length`."""
    return _strings.length(input, unit)


def substr(input: Any, pos: Any, len: Any, name: str | None = None, unit: str = "BYTE") -> Any:
    """The same as `tf.strings.substr`."""
    return _strings.substr(input, pos, len, unit)


def reduce_join(
    inputs: Any,
    axis: Any = None,
    keep_dims: Any = None,
    separator: Any = "",
    name: str | None = None,
    reduction_indices: Any = None,
    keepdims: Any = None,
) -> Any:
    """The same as `tf.strings.reduce_join`."""
    axis = reduction_indices if axis is None else axis
    return _strings.reduce_join(inputs, axis, bool(keepdims or keep_dims), separator)


def to_number(
    string_tensor: Any = None, out_type: Any = dtypes.float32, name: str | None = None, input: Any = None
) -> Any:
    """The same as `tf.strings.to_number`."""
    return _strings.to_number(_one(string_tensor, input, "string_tensor and input"), out_type)


def to_hash_bucket(
    string_tensor: Any = None, num_buckets: Any = None, name: str | None = None, input: Any = None
) -> Any:
    """The same as `tf.strings.to_hash_bucket`."""
    return _strings.to_hash_bucket(_one(string_tensor, input, "string_tensor and input"), num_buckets)


def split(
    input: Any = None,
    sep: Any = None,
    maxsplit: int = -1,
    result_type: str = "SparseTensor",
    source: Any = None,
    name: str | None = None,
) -> Any:
    """Like `tf.strings.split`; the result is a `tf.SparseTensor`, or a `tf.RaggedTensor` if `result_type` says so."""
    if result_type not in ("SparseTensor", "RaggedTensor"):
        raise ValueError("result_type must be 'RaggedTensor' or 'SparseTensor'.")
    x = _one(input, source, "input and source")
    if not is_ragged(x):
        x = strings_of(x, "StringSplitV2")
        x = x if x._dims else ops.expand_dims(x, 0)
    rows = _strings.split(x, sep, maxsplit)
    return rows.to_sparse() if result_type == "SparseTensor" else rows


@one_call
def string_split(
    source: Any,
    sep: Any = None,
    skip_empty: bool = True,
    delimiter: Any = None,
    result_type: str = "SparseTensor",
    name: str | None = None,
) -> Any:
    """The parts of strings between single characters, each byte of `sep` being one; all bytes if it is empty."""
    separator = delimiter if sep is None else sep
    marks = (
        (separator if isinstance(separator, bytes) else separator.encode()) if separator is not None else b" "
    )

    def cut(s: bytes) -> list[list[bytes]]:
        if not marks:
            return [[s[i : i + 1] for i in range(len(s))]]
        for mark in marks[1:]:
            s = s.replace(bytes([mark]), marks[:1])
        parts = s.split(marks[:1])
        return [[p for p in parts if p] if skip_empty else parts]

    (rows,) = pieces("string_split", cut, source, (dtypes.string,), "StringSplit")
    return rows.to_sparse() if result_type == "SparseTensor" else rows
