"""Examples out of records: parse_single_example, parse_example and their sequence forms.

A feature is found in the bytes of a record, without making a `tf.train.Example` of it, and its numbers
are taken over by NumPy.
"""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.reading import expect, json_of, reading
from gradtape._src.ops.static import array_of
from gradtape._src.tensors.conversion import as_tensor
from gradtape.data.text import Text, looks_like_text
from gradtape.io import wire
from gradtape.io.contents import as_text, bytes_of, each, not_in_trace
from gradtape.io.features import FixedLenFeature, FixedLenSequenceFeature, VarLenFeature

# ---- values in a record -------------------------------------------------------------------------

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


def _parts(data: bytes, count: int) -> list[dict[str, bytes]]:
    """The maps in the first fields of a message."""
    maps: list[dict[str, bytes]] = [{} for _ in range(count)]
    with reading(f"Could not parse example input, value: {data[:40]!r}: ", InvalidArgumentError):
        for field, kind_on_wire, v in wire.fields(data):
            if 1 <= field <= count and kind_on_wire == 2:
                maps[field - 1].update(_entries(v))
    return maps


def _values(key: str, data: bytes | None, dtype: Any) -> Any:
    """The values of a feature; None if there are none."""
    with reading(f"Key: {key}.  Can't parse serialized Example: ", InvalidArgumentError):
        kind, values = _feature(data) if data is not None else (0, ())
    if kind == 0:
        return None
    if _NAMES[kind] != dtype.name:
        raise InvalidArgumentError(
            f"Key: {key}.  Data types don't match. Data type: {_NAMES[kind]} but expected type: {dtype.name}."
        )
    return values


def _dtype_of(key: str, spec: Any) -> Any:
    dtype = dtypes.as_dtype(spec.dtype)
    if dtype not in (dtypes.int64, dtypes.float32, dtypes.string):
        raise InvalidArgumentError(
            f"Key: {key}.  Examples hold float32, int64 and string; got {dtype.name}. Hint: tf.cast after parsing."
        )
    return dtype


def _shape_of(key: str, spec: Any) -> tuple[int, ...]:
    shape = spec.shape
    shape = tuple(
        shape.as_list() if hasattr(shape, "as_list") else shape if hasattr(shape, "__iter__") else [shape]
    )
    if None in shape:
        raise ValueError(
            f"First dimension of shape for feature {key} unknown. Consider using FixedLenSequenceFeature. Received "
            f"feature={spec}."
        )
    return tuple(int(d) for d in shape)


# ---- columns ------------------------------------------------------------------------------------


def _array(values: Any, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    if dtype is dtypes.string:
        out = np.empty(len(values), object)
        out[:] = values
        return out.reshape(shape)
    return np.asarray(values, dtype.as_numpy_dtype).reshape(shape)


def _result(array: np.ndarray, dtype: Any) -> Any:
    return Text(array) if dtype is dtypes.string else ops.convert_to_tensor(np.asarray(array, order="C"))


def _plain(value: Any) -> list:
    """A default of the user's as a flat list."""
    array = as_text(value)._array if looks_like_text(value) else array_of(as_tensor(value))
    return array.reshape(-1).tolist()


def _fixed(key: str, spec: FixedLenFeature, found: list[bytes | None]) -> list[np.ndarray]:
    dtype, shape = _dtype_of(key, spec), _shape_of(key, spec)
    size = math.prod(shape)
    default = None if spec.default_value is None else _plain(spec.default_value)
    if default is not None and len(default) != size:
        raise InvalidArgumentError(
            f"Key: {key}.  Its default must have {size} values for the shape {list(shape)}; got {len(default)}."
        )
    rows = []
    for data in found:
        values = _values(key, data, dtype)
        if values is None:
            if default is None:
                raise InvalidArgumentError(
                    f"Feature: {key} (data type: {dtype.name}) is required but could not be found."
                )
            values = default
        elif len(values) != size:
            raise InvalidArgumentError(
                f"Key: {key}.  Can't parse serialized Example: the shape {list(shape)} has {size} values; got {len(values)}."
            )
        rows.append(_array(values, dtype, shape))
    return rows


def _blocks(
    key: str, spec: FixedLenSequenceFeature | VarLenFeature, found: list[bytes | None]
) -> list[np.ndarray]:
    dtype = _dtype_of(key, spec)
    shape = _shape_of(key, spec) if isinstance(spec, FixedLenSequenceFeature) else ()
    size = math.prod(shape)
    rows = []
    for data in found:
        values = _values(key, data, dtype)
        count = 0 if values is None else len(values)
        if size and count % size:
            raise InvalidArgumentError(
                f"Error while parsing feature with key {key}: number of elements should be divisible by {size}; got {count}."
            )
        rows.append(_array([] if values is None else values, dtype, (count // size if size else 0, *shape)))
    return rows


def _filled(rows: list[np.ndarray], dtype: Any, default: Any) -> np.ndarray:
    """Rows of different lengths as one array, filled up to the longest."""
    longest = max((len(r) for r in rows), default=0)
    fill = (b"" if dtype is dtypes.string else 0) if default is None else _plain(default)[0]
    tail = rows[0].shape[1:] if rows else ()
    out = np.full(
        (len(rows), longest, *tail), fill, object if dtype is dtypes.string else dtype.as_numpy_dtype
    )
    for line, row in zip(out, rows, strict=True):
        line[: len(row)] = row
    return out


def _columns(features: Any, examples: list[dict[str, bytes]], single: bool) -> dict[str, Any]:
    if features is None:
        raise ValueError("Invalid argument: features cannot be None.")
    if not features:
        raise ValueError("Invalid argument: features cannot be empty.")
    out = {}
    for key in sorted(features):
        spec = features[key]
        found = [example.get(key) for example in examples]
        if isinstance(spec, FixedLenFeature):
            rows = _fixed(key, spec, found)
            dtype = dtypes.as_dtype(spec.dtype)
            shape = (len(rows), *_shape_of(key, spec))
            out[key] = _result(
                rows[0] if single else np.stack(rows) if rows else _array([], dtype, shape), dtype
            )
        elif isinstance(spec, (VarLenFeature, FixedLenSequenceFeature)):
            if isinstance(spec, FixedLenSequenceFeature) and not spec.allow_missing:
                raise ValueError("Unsupported: FixedLenSequenceFeature requires allow_missing to be True.")
            rows = _blocks(key, spec, found)
            dtype = dtypes.as_dtype(spec.dtype)
            out[key] = _result(
                rows[0] if single else _filled(rows, dtype, getattr(spec, "default_value", None)), dtype
            )
        else:
            raise ValueError(f"Invalid feature {key}:{spec}.")
    return out


# ---- the functions ------------------------------------------------------------------------------


def parse_single_example(
    serialized: Any, features: Any, example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """The features of one `tf.train.Example`, by name.

    Args:
      serialized: the bytes of the example, as a TFRecord file has them.
      features: a dictionary of names to `FixedLenFeature`, `VarLenFeature` or `FixedLenSequenceFeature`.

    Raises:
      InvalidArgumentError: if a feature is missing, or has another type or number of values.

    >>> import gradtape as tf
    >>> feature = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0, 2.0]))
    >>> example = tf.train.Example(features=tf.train.Features(feature={"x": feature}))
    >>> features = {"x": tf.io.FixedLenFeature([2], tf.float32)}
    >>> tf.io.parse_single_example(example.SerializeToString(), features)["x"].numpy()
    array([1., 2.], dtype=float32)
    """
    not_in_trace("parse_single_example")
    if not isinstance(serialized, bytes) and as_text(serialized).ndim:
        raise ValueError("Input serialized must be a scalar")
    return _columns(features, _parts(bytes_of(serialized, "parse_single_example"), 1), True)


def parse_example(
    serialized: Any, features: Any, example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """As `parse_single_example`, for an array of examples: results have one more axis in front."""
    not_in_trace("parse_example")
    text = as_text(serialized)
    if text.ndim == 0:
        return parse_single_example(text, features)
    if text.ndim != 1:
        raise ValueError(f"Input serialized must be a scalar or a vector; got shape {text.shape}.")
    return _columns(features, [_parts(s, 1)[0] for s in text._array.tolist()], False)


def _steps(key: str, spec: Any, data: bytes | None) -> np.ndarray:
    """The values of a FeatureList: one row for each step."""
    if data is None:
        if isinstance(spec, FixedLenSequenceFeature) and not spec.allow_missing:
            raise InvalidArgumentError(
                f"Feature list '{key}' is required but could not be found. Did you mean to include it in "
                "feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?"
            )
        data = b""
    with reading(f"Feature list '{key}': Can't parse serialized Example: ", InvalidArgumentError):
        features: list[bytes | None] = list(wire.messages(data, 1))
    dtype = _dtype_of(key, spec)
    if isinstance(spec, VarLenFeature):
        return _filled(_blocks(key, spec, features), dtype, None)
    if not isinstance(spec, FixedLenSequenceFeature):
        raise ValueError(
            f"Unsupported feature {key}:{spec}: sequences take FixedLenSequenceFeature and VarLenFeature."
        )
    shape = _shape_of(key, spec)
    rows = _fixed(key, FixedLenFeature(shape, spec.dtype), features)
    return np.stack(rows) if rows else _array([], dtype, (0, *shape))


def parse_single_sequence_example(
    serialized: Any,
    context_features: Any = None,
    sequence_features: Any = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The features of a `tf.train.SequenceExample`: those of the whole, and those over its steps.

    Args:
      context_features: as `features` of `parse_single_example`.
      sequence_features: a dictionary of names to `FixedLenSequenceFeature` or `VarLenFeature`.
    """
    not_in_trace("parse_single_sequence_example")
    context, lists = _parts(bytes_of(serialized, "parse_single_sequence_example"), 2)
    outer = _columns(context_features, [context], True) if context_features else {}
    inner = {}
    for key in sorted(sequence_features or {}):
        spec = sequence_features[key]
        inner[key] = _result(_steps(key, spec, lists.get(key)), dtypes.as_dtype(spec.dtype))
    return outer, inner


def parse_sequence_example(
    serialized: Any,
    context_features: Any = None,
    sequence_features: Any = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """As `parse_single_sequence_example`, for an array of examples, and with the lengths of the sequences."""
    not_in_trace("parse_sequence_example")
    examples = [_parts(s, 2) for s in as_text(serialized)._array.reshape(-1).tolist()]
    outer = _columns(context_features, [e[0] for e in examples], False) if context_features else {}
    inner, lengths = {}, {}
    for key in sorted(sequence_features or {}):
        spec = sequence_features[key]
        rows = [_steps(key, spec, e[1].get(key)) for e in examples]
        dtype = dtypes.as_dtype(spec.dtype)
        if isinstance(spec, VarLenFeature):  # steps differ in width, too
            width = max((r.shape[1] for r in rows), default=0)
            fill = b"" if dtype is dtypes.string else 0
            rows = [np.pad(r, ((0, 0), (0, width - r.shape[1])), constant_values=fill) for r in rows]
        inner[key] = _result(_filled(rows, dtype, getattr(spec, "default_value", None)), dtype)
        lengths[key] = ops.convert_to_tensor(np.array([len(r) for r in rows], np.int64))
    return outer, inner, lengths


def decode_json_example(json_examples: Any, name: str | None = None) -> Text:
    """Examples in JSON as the bytes that `parse_example` takes."""
    not_in_trace("decode_json_example")
    return each(_from_json, json_examples)


def _from_json(data: bytes) -> bytes:
    with reading(f"decode_json_example: Error while parsing JSON: {data[:80]!r}: ", InvalidArgumentError):
        features = json_of(data)["features"]["feature"]
        entries = []
        for key, feature in expect(features, dict).items():
            ((kind, holder),) = feature.items()
            values = expect(expect(holder, dict).get("value", []), list)
            if kind in ("bytesList", "bytes_list"):
                some = b"".join(wire.message(1, base64.b64decode(v)) for v in values)
                packed = wire.message(1, some)
            elif kind in ("floatList", "float_list"):
                packed = wire.message(2, wire.message(1, np.array(values, "<f4").tobytes()))
            elif kind in ("int64List", "int64_list"):
                packed = wire.message(3, wire.packed(1, map(int, values)))
            else:
                raise ValueError(f"{kind!r} is no kind of feature")
            entries.append(wire.message(1, wire.text(1, key) + wire.message(2, packed)))
        return wire.message(1, b"".join(entries))
