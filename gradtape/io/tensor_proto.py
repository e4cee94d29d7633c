"""`tf.make_tensor_proto` and `tf.make_ndarray`: convert arrays to TensorFlow's message TensorProto and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.reading import reading
from gradtape._src.base.shape import TensorShape
from gradtape._src.tensors import stored
from gradtape.io import wire

# By type: the field of single values, its number, and the encoding of its numbers.
_FLOATS, _DOUBLES, _NUMBERS = "<f4", "<f8", ""
_FIELDS: dict[str, tuple[str, int, str]] = {
    "float32": ("float_val", 5, _FLOATS), "float64": ("double_val", 6, _DOUBLES), "int32": ("int_val", 7, _NUMBERS),
    "int16": ("int_val", 7, _NUMBERS), "int8": ("int_val", 7, _NUMBERS), "uint8": ("int_val", 7, _NUMBERS),
    "uint16": ("int_val", 7, _NUMBERS), "complex64": ("scomplex_val", 9, _FLOATS), "int64": ("int64_val", 10, _NUMBERS),
    "bool": ("bool_val", 11, _NUMBERS), "complex128": ("dcomplex_val", 12, _DOUBLES), "float16": ("half_val", 13, _NUMBERS),
    "bfloat16": ("half_val", 13, _NUMBERS), "int4": ("int_val", 7, _NUMBERS), "uint4": ("int_val", 7, _NUMBERS),
    "int2": ("int_val", 7, _NUMBERS), "uint2": ("int_val", 7, _NUMBERS), "uint32": ("uint32_val", 16, _NUMBERS),
    "uint64": ("uint64_val", 17, _NUMBERS),
}  # fmt: skip
_ENUM_NAMES = {"float32": "DT_FLOAT", "float64": "DT_DOUBLE", "float16": "DT_HALF"}
_FLOAT8 = 18  # the field of single values of 8-bit floats: bytes
# The size limit of a message.
_MOST_BYTES = 1 << 31


class TensorProto:
    """A tensor as a message: `dtype` (TensorFlow's number), `tensor_shape`, and bytes, strings or single values
    (`float_val`, `int_val`, ...; the last one is repeated).

    >>> import gradtape as tf
    >>> proto = tf.make_tensor_proto([[1, 2]])
    >>> tf.make_ndarray(proto)
    array([[1, 2]], dtype=int32)
    """

    def __init__(
        self,
        dtype: int = 0,
        shape: tuple[int, ...] = (),
        content: bytes = b"",
        strings: Any = (),
        values: Any = (),
    ) -> None:
        self.dtype = dtype
        self.tensor_shape = TensorShape(shape).as_proto()
        self.tensor_content = content
        self.string_val = list(strings)
        self._values = list(values)

    def __getattr__(self, name: str) -> Any:
        if not name.endswith("_val"):
            raise AttributeError(f"'TensorProto' object has no attribute {name!r}")
        return self._values if name == self._field()[0] else []

    def _field(self) -> tuple[str, int, str]:
        dtype = dtypes._BY_ENUM.get(self.dtype)
        return _FIELDS.get("" if dtype is None else dtype.name, ("", 0, ""))

    def SerializeToString(self) -> bytes:
        """The message as bytes."""
        shape = b"".join(wire.message(2, wire.varint(1, d.size)) for d in self.tensor_shape.dim)
        out = wire.varint(1, self.dtype) + wire.message(2, shape)
        if self.tensor_content:
            out += wire.message(4, self.tensor_content)
        if self._values:
            _, number, kind = self._field()
            packed = np.array(self._values, kind).tobytes() if kind else None
            out += (
                wire.packed(number, map(int, self._values))
                if packed is None
                else wire.message(number, packed)
            )
        return out + b"".join(wire.message(8, s) for s in self.string_val)

    @classmethod
    def FromString(cls, s: bytes) -> TensorProto:
        """A message from bytes.

        Raises:
          ValueError: if they are not such a message.
        """
        data = bytes(s)
        with reading("Error parsing message: not a TensorProto: ", ValueError):
            enum = wire.integer(data, 1)
            sizes = tuple(size for m in wire.messages(data, 2) for size in wire.shape(m))
            content = b"".join(list(wire.messages(data, 4))[-1:] or wire.messages(data, _FLOAT8))
            return cls(enum, sizes, content, wire.messages(data, 8), _single(enum, data))

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, TensorProto) and self.SerializeToString() == other.SerializeToString()

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        name = dtypes.as_dtype(self.dtype).name
        lines = "".join(f"  {line}\n" for line in str(self.tensor_shape).splitlines())
        out = f"dtype: {_ENUM_NAMES.get(name, 'DT_' + name.upper())}\ntensor_shape {{\n{lines}}}\n"
        if self.tensor_content:
            out += f"tensor_content: {_quoted(self.tensor_content)}\n"
        out += "".join(f"{self._field()[0]}: {_number_text(v)}\n" for v in self._values)
        return out + "".join(f"string_val: {_quoted(s)}\n" for s in self.string_val)

    __repr__ = __str__


def _quoted(data: bytes) -> str:
    special = {ord('"'): '\\"', ord("'"): "\\'", ord("\\"): "\\\\", 9: "\\t", 10: "\\n", 13: "\\r"}
    return '"' + "".join(special.get(c) or (chr(c) if 32 <= c < 127 else f"\\{c:03o}") for c in data) + '"'


def _number_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).removesuffix(".0")


def _single(enum: int, data: bytes) -> list[Any]:
    """Values that are not stored as one block of bytes."""
    dtype = dtypes.as_dtype(enum) if enum in dtypes._BY_ENUM else None
    _, field, floats = _FIELDS.get("" if dtype is None else dtype.name, ("", 0, ""))
    out: list[Any] = []
    for number, kind, value in wire.fields(data):
        if number != field:
            continue
        if floats and kind != 0:
            out += np.frombuffer(value, floats).tolist()
        elif not floats and kind in (0, 2):
            out += map(wire.signed, wire.numbers(value) if kind == 2 else [value])
    return list(map(bool, out)) if dtype is dtypes.bool else out


def _values_of(array: np.ndarray) -> list[Any]:
    """The elements in the form of a message."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.itemsize == 2 and flat.dtype.kind in "fV":
        return flat.view(np.uint16).tolist()
    if flat.dtype.kind == "c":
        flat = flat.view(flat.real.dtype)
    if flat.dtype == np.float32:
        return [float(str(x)) for x in flat]  # the shortest text of the same number
    return flat.tolist()


def make_tensor_proto(
    values: Any, dtype: Any = None, shape: Any = None, verify_shape: bool = False
) -> TensorProto:
    """An array, tensor or list as a TensorProto: a single value as a value, several as bytes.

    Raises:
      TypeError: if the values do not fit `dtype`, or `verify_shape` and the shape is another one.
      ValueError: if there are more values than the shape has, or none at all.
    """
    if isinstance(values, TensorProto):
        return values
    if values is None:
        raise ValueError("None values not supported.")
    if isinstance(values, (_core.Tensor, _core.Variable)):
        values = values.numpy()
    array, is_array = np.asarray(values), isinstance(values, (np.ndarray, np.generic))
    requested = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
    if array.dtype.kind in "OSU":
        if requested not in (None, dtypes.string):
            raise TypeError(
                f"Expected {requested.name}, but got {values!r} of type {type(values).__name__!r}."
            )  # type: ignore[union-attr]
        array = np.array(array, object)
        requested = dtypes.string
    elif requested is dtypes.string:
        raise TypeError(f"Expected string, but got {values!r} of type {type(values).__name__!r}.")
    elif requested is None:
        kind = array.dtype.kind
        if not is_array:
            fits = kind == "i" and array.size and np.abs(array.astype(float)).max() >= 2**31
            array = array.astype(
                {"f": np.float32, "i": np.int64 if fits else np.int32}.get(kind, array.dtype)
            )
        requested = dtypes.from_numpy(array.dtype)
    elif not is_array and array.size and not _fits(array.dtype.kind, requested):
        raise TypeError(f"Expected {requested.name}, but got {values!r} of type {type(values).__name__!r}.")
    if requested is not dtypes.string:
        array = array.astype(requested.as_numpy_dtype)
    sizes = (
        array.shape if shape is None else tuple(int(d) for d in TensorShape(shape).as_list() if d is not None)
    )
    if shape is not None:
        if verify_shape and array.shape != sizes:
            raise TypeError(f"Expected Tensor's shape: {sizes}, but got {array.shape}.")
        if array.size > math.prod(sizes):
            raise ValueError(
                f"Too many elements provided. Takes at most {math.prod(sizes)}, but got {array.size}"
            )
    number = requested.as_datatype_enum
    if requested is dtypes.string:
        words = [w.encode() if isinstance(w, str) else bytes(w) for w in array.reshape(-1).tolist()]
        return TensorProto(number, sizes, strings=words)
    if requested._kind == "s":
        x = stored.convert(array, requested)
        if requested.is_integer:
            return TensorProto(number, sizes, values=stored.values_of(x).reshape(-1).tolist())
        return TensorProto(number, sizes, stored.bits_of(x).tobytes())
    in_one_piece = not requested.is_bool and not requested.is_complex  # TensorFlow's list these
    if in_one_piece and array.size > 1 and array.size == math.prod(sizes):
        return TensorProto(number, sizes, np.ascontiguousarray(array).tobytes())
    return TensorProto(number, sizes, values=_values_of(array))


def _fits(kind: str, dtype: dtypes.DType) -> bool:
    """Whether Python numbers of a kind can be of a type without a loss."""
    if kind == "b" or dtype.is_bool:
        return kind == "b" and dtype.is_bool
    return kind in "iu" or dtype.is_complex or (kind == "f" and dtype.is_floating)


def make_ndarray(tensor: Any) -> np.ndarray:
    """The array in a TensorProto, also in one of TensorFlow's.

    Raises:
      ValueError: if the number of values does not match the shape.
    """
    if not isinstance(tensor, TensorProto):
        tensor = TensorProto.FromString(tensor.SerializeToString())
    with reading("make_ndarray: ", ValueError):
        return _array(tensor)


def _array(tensor: TensorProto) -> np.ndarray:
    dtype = dtypes.as_dtype(tensor.dtype)
    shape = tuple(max(d.size, 0) for d in tensor.tensor_shape.dim)
    size = math.prod(shape)
    if dtype is dtypes.string:
        words = tensor.string_val
        if not words or len(words) > max(size, 1) or size > _MOST_BYTES // 8:
            raise ValueError(f"{len(words)} strings for the shape {shape}")
        flat: Any = np.empty(size, object)
        flat[:] = (words + words[-1:] * (size - len(words)))[:size]
        return flat.reshape(shape)
    if tensor.tensor_content and dtype._kind == "s":
        bits = np.frombuffer(tensor.tensor_content, np.uint8).reshape(shape)
        return np.asarray(stored.of_bits(bits, dtype))
    if tensor.tensor_content:
        return np.frombuffer(tensor.tensor_content, dtype.as_numpy_dtype).reshape(shape).copy()
    if size > _MOST_BYTES // dtype.size:
        raise ValueError(f"the shape {shape} is more than a message can have")
    values = list(tensor._values) or [0]
    if dtype.is_complex:
        values = [complex(*pair) for pair in zip(values[::2], values[1::2], strict=True)] or [0]
    # The last value is repeated.
    values = (values + [values[-1]] * (size - len(values)))[:size]
    if dtype in (dtypes.float16, dtypes.bfloat16):
        return np.array(values, np.uint16).view(dtype.as_numpy_dtype).reshape(shape)
    return np.array(values, dtype.as_numpy_dtype).reshape(shape)
