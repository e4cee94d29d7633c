"""Bytes as numbers and back: decode_raw, decode_csv, base64, compression, serialised tensors."""

from __future__ import annotations

import base64
import csv
import gzip
import math
import zlib
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.reading import number_in, reading
from gradtape._src.ops.static import array_of
from gradtape._src.tensors.conversion import as_tensor
from gradtape.data.text import Text, looks_like_text, make
from gradtape.io import wire
from gradtape.io.contents import as_text, bytes_of, each, not_in_trace

# ---- raw numbers --------------------------------------------------------------------------------


def decode_raw(
    input_bytes: Any,
    out_type: Any,
    little_endian: bool = True,
    fixed_length: int | None = None,
    name: str | None = None,
) -> Any:
    """Bytes as numbers: a new last axis holds those of each string.

    Args:
      fixed_length: cut strings to this many bytes, or pad them with zeros.
    """
    not_in_trace("decode_raw")
    text, dtype = as_text(input_bytes), dtypes.as_dtype(out_type)
    strings = text._array.reshape(-1).tolist()
    size = dtype.size
    if fixed_length is not None:
        if fixed_length % size:
            raise InvalidArgumentError(
                f"decode_raw: fixed_length ({fixed_length}) must be a multiple of the size of out_type ({size})."
            )
        strings = [s[:fixed_length].ljust(fixed_length, b"\0") for s in strings]
    lengths = {len(s) for s in strings}
    if len(lengths) > 1:
        raise InvalidArgumentError(
            f"decode_raw: input strings must all have the same size; got {sorted(lengths)} bytes. Hint: fixed_length=."
        )
    length = lengths.pop() if lengths else 0
    if length % size:
        raise InvalidArgumentError(
            f"decode_raw: Input has length {length} that is not a multiple of {size}, the size of {dtype.name}."
        )
    kind = np.dtype(np.uint16 if dtype is dtypes.bfloat16 else dtype.as_numpy_dtype)
    data = np.frombuffer(b"".join(strings), kind.newbyteorder("<" if little_endian else ">"))
    data = data.astype(kind).reshape(*text.shape, length // size)
    return _core.from_buffer(np.asarray(data, order="C"), dtype._code)


def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Text:
    """Unpacked bytes; `compression_type` is "", "GZIP" or "ZLIB"."""
    not_in_trace("decode_compressed")
    unpack = {"": lambda b: b, "GZIP": gzip.decompress, "ZLIB": zlib.decompress}.get(compression_type)
    if unpack is None:
        raise InvalidArgumentError(
            f"decode_compressed: Only ZLIB, GZIP or NONE are supported compressions; got {compression_type!r}."
        )
    with reading("decode_compressed: "):
        return each(unpack, bytes)


def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Text:
    """Bytes in web-safe base64."""
    not_in_trace("encode_base64")
    return each(
        lambda b: base64.urlsafe_b64encode(b) if pad else base64.urlsafe_b64encode(b).rstrip(b"="), input
    )


def decode_base64(input: Any, name: str | None = None) -> Text:
    """The bytes that web-safe base64 encodes."""
    not_in_trace("decode_base64")

    def decode(b: bytes) -> bytes:
        with reading("decode_base64: Invalid character found in base64: ", InvalidArgumentError):
            return base64.b64decode(b.rstrip(b"=") + b"=" * (-len(b.rstrip(b"=")) % 4), b"-_", validate=True)

    return each(decode, input)


# ---- comma-separated values ---------------------------------------------------------------------


def decode_csv(
    records: Any,
    record_defaults: Any,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Any = None,
    name: str | None = None,
) -> list:
    """Lines of comma-separated values as a list of columns, each of the shape of `records`.

    Args:
      records: one line, or an array of lines.
      record_defaults: for each column a number, string, or list of one, which gives its type and stands
        for missing values; an empty tensor says that values must be there.
      field_delim: between values.
      use_quote_delim: whether quotes hold a value together.
      na_value: also a missing value.
      select_cols: the numbers of the columns to take, in increasing order.
    """
    not_in_trace("decode_csv")
    text = as_text(records)
    defaults = [_default_of(d) for d in record_defaults]
    lines = [s.decode(errors="surrogateescape") for s in text._array.reshape(-1).tolist()]
    quoting: Any = csv.QUOTE_MINIMAL if use_quote_delim else csv.QUOTE_NONE
    with reading("decode_csv: ", InvalidArgumentError):
        rows = [
            next(csv.reader([line], delimiter=field_delim, quoting=quoting, strict=True), [])
            for line in lines
        ]
    places = range(len(defaults)) if select_cols is None else [int(c) for c in select_cols]
    if len(places) != len(defaults):
        raise ValueError(
            f"Length of select_cols and record_defaults do not match. select_cols: {list(places)}, record_defaults: "
            f"{record_defaults}."
        )
    for i, row in enumerate(rows):
        short = select_cols is None and len(row) != len(defaults)
        if short or max(places, default=-1) >= len(row):
            raise InvalidArgumentError(
                f"decode_csv: Expect {len(defaults)} fields but have {len(row)} in record {i}."
            )
    return [
        _column([row[place] for row in rows], k, *default, na_value, tuple(text.shape))
        for k, (place, default) in enumerate(zip(places, defaults, strict=True))
    ]


def _default_of(value: Any) -> tuple[Any, Any]:
    """The type of a column and its default, None if there is none."""
    if isinstance(value, (str, bytes)):
        return dtypes.string, value
    if isinstance(value, dtypes.DType):
        return value, None
    if isinstance(value, Text) or (
        isinstance(value, (list, tuple)) and value and isinstance(value[0], (str, bytes))
    ):
        strings = as_text(value)._array.reshape(-1)
        return dtypes.string, strings[0] if len(strings) else None
    tensor = as_tensor(value)
    numbers = array_of(tensor).reshape(-1)
    return tensor.dtype, numbers[0] if len(numbers) else None


def _column(fields: list[str], k: int, dtype: Any, default: Any, missing: str, shape: tuple) -> Any:
    values = []
    for i, field in enumerate(fields):
        if field == "" or field == missing:
            if default is None:
                raise InvalidArgumentError(f"decode_csv: Field {k} is required but missing in record {i}!")
            values.append(default)
        elif dtype is dtypes.string:
            values.append(field.encode(errors="surrogateescape"))
        else:
            values.append(number_in(field, dtype))
            if values[-1] is None:
                raise InvalidArgumentError(
                    f"decode_csv: Field {k} in record {i} is not a valid {dtype.name}: {field}"
                )
    if dtype is dtypes.string:
        return Text(make(values)._array.reshape(shape))
    return ops.convert_to_tensor(np.array(values, dtype.as_numpy_dtype).reshape(shape))


# ---- tensors ------------------------------------------------------------------------------------

# What a message of TensorFlow's can hold.
_MOST_BYTES = 1 << 31
# Fields of TensorFlow's message TensorProto.
_DTYPE, _SHAPE, _CONTENT, _STRINGS = 1, 2, 4, 8
# Lists of numbers, one field for some types: float_val, double_val, int_val, int64_val, bool_val, ...
_FLOATS = {5: "<f4", 6: "<f8", 9: "<c8", 12: "<c16"}
_INTEGERS = (7, 10, 11, 13, 16, 17)


def serialize_tensor(tensor: Any, name: str | None = None) -> Text:
    """A tensor as bytes that `parse_tensor`, also TensorFlow's, reads."""
    not_in_trace("serialize_tensor")
    if looks_like_text(tensor):
        text = as_text(tensor)
        content = b"".join(wire.text(_STRINGS, s) for s in text._array.reshape(-1).tolist())
        return make(_header(dtypes.string, tuple(text.shape)) + content)
    x = as_tensor(tensor)
    array = x.numpy() if x.dtype is not dtypes.bfloat16 else array_of(ops.bitcast(x, dtypes.uint16))
    content = np.ascontiguousarray(array).tobytes()
    return make(_header(x.dtype, tuple(x.shape)) + (wire.message(_CONTENT, content) if content else b""))


def _header(dtype: Any, shape: tuple) -> bytes:
    dims = b"".join(wire.message(2, wire.varint(1, d) if d else b"") for d in shape)
    return wire.varint(_DTYPE, dtype.as_datatype_enum) + wire.message(_SHAPE, dims)


def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Any:
    """The tensor that `serialize_tensor`, also TensorFlow's, wrote.

    Raises:
      InvalidArgumentError: if the bytes are no tensor, or one of another type.
    """
    not_in_trace("parse_tensor")
    data, wanted = bytes_of(serialized, "parse_tensor"), dtypes.as_dtype(out_type)
    with reading("parse_tensor: Cannot parse tensor from proto: ", InvalidArgumentError):
        return _parsed(list(wire.fields(data)), wanted)


def _parsed(fields: list, wanted: Any) -> Any:
    dtype = next((v for f, kind_on_wire, v in fields if f == _DTYPE and kind_on_wire == 0), 0)
    if dtype != wanted.as_datatype_enum:
        found = next((d.name for d in (*dtypes.BY_CODE, dtypes.string) if d.as_datatype_enum == dtype), dtype)
        raise InvalidArgumentError(
            f"parse_tensor: Type mismatch between parsed tensor ({found}) and dtype ({wanted.name})"
        )
    shape = tuple(
        d for f, kind_on_wire, v in fields if f == _SHAPE and kind_on_wire == 2 for d in wire.shape(v)
    )
    if wanted is dtypes.string:
        strings = make([v for f, kind_on_wire, v in fields if f == _STRINGS and kind_on_wire == 2])._array
        return Text(strings.reshape(shape))
    kind = np.dtype(np.uint16 if wanted is dtypes.bfloat16 else wanted.as_numpy_dtype)
    content = next((v for f, kind_on_wire, v in fields if f == _CONTENT and kind_on_wire == 2), None)
    numbers = np.frombuffer(content, kind) if content is not None else _listed(fields, kind)
    count = math.prod(shape)
    # The last number stands for all that follow, as far as a message of TensorFlow's can have them.
    if 0 < len(numbers) < count <= _MOST_BYTES // kind.itemsize:
        numbers = np.append(numbers, np.repeat(numbers[-1:], count - len(numbers)))
    if len(numbers) != count:
        raise InvalidArgumentError(
            f"parse_tensor: {len(numbers)} numbers do not make a tensor of shape {shape}."
        )
    return _core.from_buffer(np.array(numbers.reshape(shape)), wanted._code)


def _listed(fields: list, kind: np.dtype) -> np.ndarray:
    """The numbers of a tensor that are listed in a field of their type."""
    out: list[np.ndarray] = [np.empty(0, kind)]
    for field, kind_on_wire, value in fields:
        if field in _FLOATS and kind_on_wire in (1, 2, 5):
            out.append(np.frombuffer(value, _FLOATS[field]).astype(kind))
        elif field in _INTEGERS and kind_on_wire in (0, 2):
            some = np.array(list(wire.numbers(value)) if kind_on_wire == 2 else [value], np.uint64)
            # Half floats are listed as their bits.
            out.append(some.astype(np.uint16).view(kind) if kind == np.float16 else some.astype(kind))
    return np.concatenate(out)
