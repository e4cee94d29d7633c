"""Bytes as numbers and back: decode_raw, base64, compression, serialised tensors."""

from __future__ import annotations

import base64
import gzip
import math
import zlib
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.reading import reading
from gradtape._src.base.room import want_room
from gradtape._src.control.text_ops import each, elements, run
from gradtape._src.control.text_ops import tensor as text_tensor
from gradtape._src.tensors import raw
from gradtape._src.tensors.conversion import as_tensor
from gradtape.io import wire
from gradtape.io.contents import of_bytes, texts_of

# ---- raw numbers --------------------------------------------------------------------------------


@one_call
def decode_raw(
    input_bytes: Any,
    out_type: Any,
    little_endian: bool = True,
    fixed_length: Any = None,
    name: str | None = None,
) -> Any:
    """Bytes as numbers: a new last axis has the numbers of each string.

    Args:
      fixed_length: cut strings to this many bytes, or pad them with zeros.
    """
    x, dtype = texts_of(input_bytes, "decode_raw"), dtypes.as_dtype(out_type)
    size, length = dtype.size, None if fixed_length is None else int(fixed_length)
    if dtype._code in dtypes.HELD:
        raise InvalidArgumentError(
            f"decode_raw: Value for attr 'out_type' of {dtype.name} is not in the list of allowed values: numbers."
        )
    if length is not None and (length <= 0 or length % size):
        raise InvalidArgumentError(
            f"decode_raw: fixed_length ({length}) must be greater than zero and a multiple of the size of out_type "
            f"({size})."
        )

    def decode(x: Any) -> list:
        data = _numbers(elements(x), dtype, little_endian, length)
        return [_core.from_buffer(data.reshape(*x._dims, -1 if data.size else 0), dtype._code)]

    count = None if length is None else length // size
    return run("decode_raw", decode, [x], [((*x._dims, count), dtype)])[0]


def _numbers(strings: list[bytes], dtype: Any, little_endian: bool, fixed: int | None) -> np.ndarray:
    if fixed is not None:
        want_room(len(strings), fixed, item=1)
        strings = [s[:fixed].ljust(fixed, b"\0") for s in strings]
    length = len(strings[0]) if strings else 0
    for k, s in enumerate(strings):
        if len(s) != length:
            raise InvalidArgumentError(
                f"DecodeRaw requires input strings to all be the same size, but element {k} has size {length} != {len(s)}. "
                "Hint: fixed_length=."
            )
    if length % dtype.size:
        raise InvalidArgumentError(
            f"decode_raw: Input to DecodeRaw has length {length} that is not a multiple of {dtype.size}, the size of "
            f"{dtype.name}"
        )
    kind = raw.numpy_type(dtype)
    data = np.frombuffer(b"".join(strings), kind.newbyteorder("<" if little_endian else ">"))
    return np.array(data.astype(kind), order="C")


@one_call
def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Any:
    """Decompressed bytes; `compression_type` is "", "GZIP" or "ZLIB"."""
    unpack = {"": lambda b: b, "GZIP": gzip.decompress, "ZLIB": zlib.decompress}.get(compression_type)
    if unpack is None:
        raise InvalidArgumentError(
            f"decode_compressed: Only ZLIB, GZIP or NONE are supported compressions; got {compression_type!r}."
        )

    def unpacked(b: Any) -> Any:
        with reading("decode_compressed: "):
            return unpack(b)

    return each("decode_compressed", unpacked, texts_of(bytes, "decode_compressed"))


@one_call
def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Any:
    """Bytes in web-safe base64."""

    def encode(b: bytes) -> bytes:
        return base64.urlsafe_b64encode(b) if pad else base64.urlsafe_b64encode(b).rstrip(b"=")

    return each("encode_base64", encode, texts_of(input, "encode_base64"))


@one_call
def decode_base64(input: Any, name: str | None = None) -> Any:
    """The bytes that web-safe base64 encodes."""

    def decode(b: bytes) -> bytes:
        with reading("decode_base64: Invalid character found in base64: ", InvalidArgumentError):
            return base64.b64decode(b.rstrip(b"=") + b"=" * (-len(b.rstrip(b"=")) % 4), b"-_", validate=True)

    return each("decode_base64", decode, texts_of(input, "decode_base64"))


# ---- tensors ------------------------------------------------------------------------------------

# The size limit of TensorFlow's messages.
_MOST_BYTES = 1 << 31
# Fields of TensorFlow's message TensorProto.
_DTYPE, _SHAPE, _STRINGS = 1, 2, 8
_CONTENT = (4, 18)  # bytes; those of 8-bit floats may have a field of their own
# Lists of numbers, one field for some types: float_val, double_val, int_val, int64_val, bool_val, ...
_FLOATS = {5: "<f4", 6: "<f8", 9: "<c8", 12: "<c16"}
_INTEGERS = (7, 10, 11, 13, 16, 17)


@one_call
def serialize_tensor(tensor: Any, name: str | None = None) -> Any:
    """A tensor as bytes that `parse_tensor`, also TensorFlow's, can read."""
    x = as_tensor(tensor)
    return run("serialize_tensor", lambda x: [text_tensor([serialized(x)], ())], [x], [((), dtypes.string)])[
        0
    ]


def serialized(x: Any) -> bytes:
    """A tensor with a value as bytes."""
    if x.dtype is dtypes.string:
        content = b"".join(wire.message(_STRINGS, s) for s in elements(x))
        return _header(x.dtype, x._dims) + content
    content = raw.array_of(x).tobytes()
    return _header(x.dtype, x._dims) + (wire.message(_CONTENT[0], content) if content else b"")


def _header(dtype: Any, shape: tuple) -> bytes:
    dims = b"".join(wire.message(2, wire.varint(1, d) if d else b"") for d in shape)
    return wire.varint(_DTYPE, dtype.as_datatype_enum) + wire.message(_SHAPE, dims)


@one_call
def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Any:
    """The tensor written by `serialize_tensor`, also by TensorFlow's.

    Raises:
      InvalidArgumentError: if the bytes are not a tensor, or of another type.
    """
    dtype = dtypes.as_dtype(out_type)
    return of_bytes("parse_tensor", lambda data: parsed(data, dtype), serialized, None, dtype)


def parsed(data: bytes, dtype: Any) -> Any:
    """The tensor of this type encoded in bytes."""
    with reading("parse_tensor: Cannot parse tensor from proto: ", InvalidArgumentError):
        return _parsed(list(wire.fields(data)), dtype)


def _parsed(fields: list, expected: Any) -> Any:
    dtype = next((v for f, kind_on_wire, v in fields if f == _DTYPE and kind_on_wire == 0), 0)
    if dtype != expected.as_datatype_enum:
        name = next((d.name for d in dtypes.BY_CODE if d.as_datatype_enum == dtype), dtype)
        raise InvalidArgumentError(
            f"parse_tensor: Type mismatch between parsed tensor ({name}) and dtype ({expected.name})"
        )
    shape = tuple(
        d for f, kind_on_wire, v in fields if f == _SHAPE and kind_on_wire == 2 for d in wire.shape(v)
    )
    if expected is dtypes.string:
        strings = [v for f, kind_on_wire, v in fields if f == _STRINGS and kind_on_wire == 2]
        if len(strings) != math.prod(shape):
            raise ValueError(f"{len(strings)} strings do not make a tensor of shape {shape}")
        return text_tensor(strings, shape)
    kind = raw.numpy_type(expected)
    content = next((v for f, kind_on_wire, v in fields if f in _CONTENT and kind_on_wire == 2), None)
    numbers = np.frombuffer(content, kind) if content is not None else _listed(fields, kind)
    count = math.prod(shape)
    # The last number is repeated, up to the size limit of TensorFlow's messages.
    if 0 < len(numbers) < count <= _MOST_BYTES // kind.itemsize:
        numbers = np.append(numbers, np.repeat(numbers[-1:], count - len(numbers)))
    if len(numbers) != count:
        raise InvalidArgumentError(
            f"parse_tensor: {len(numbers)} numbers do not make a tensor of shape {shape}."
        )
    return raw.tensor_of(numbers.reshape(shape), expected)


def _listed(fields: list, kind: np.dtype) -> np.ndarray:
    """The numbers of a tensor listed in a field for their type."""
    out: list[np.ndarray] = [np.empty(0, kind)]
    for field, kind_on_wire, value in fields:
        if field in _FLOATS and kind_on_wire in (1, 2, 5):
            out.append(np.frombuffer(value, _FLOATS[field]).astype(kind))
        elif field in _INTEGERS and kind_on_wire in (0, 2):
            some = np.array(list(wire.numbers(value)) if kind_on_wire == 2 else [value], np.uint64)
            # Half floats are listed as their bits.
            out.append(some.astype(np.uint16).view(kind) if kind == np.float16 else some.astype(kind))
    return np.concatenate(out)
