"""`tf.make_tensor_proto` and `tf.make_ndarray`: arrays as TensorFlow's message TensorProto and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.reading import reading
from gradtape._src.base.shape import TensorShape
from gradtape.io import wire

# By type: the field of single values, and their NumPy type in it.
_VALUES = {
    "float32": 5, "float64": 6, "int32": 7, "int16": 7, "int8": 7, "uint8": 7, "uint16": 7, "int64": 10,
    "bool": 11, "uint32": 16, "uint64": 17,
}  # fmt: skip
# What a message can hold.
_MOST_BYTES = 1 << 31


class TensorProto:
    """A tensor as a message: `dtype` (TensorFlow's number), `tensor_shape`, and bytes or strings.

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
        self.tensor_shape = TensorShape(shape)
        self.tensor_content = content
        self.string_val = list(strings)
        self._values = values

    def SerializeToString(self) -> bytes:
        """The message as bytes."""
        shape = b"".join(wire.message(2, wire.varint(1, d or 0)) for d in self.tensor_shape.as_list())
        out = wire.varint(1, self.dtype) + wire.message(2, shape)
        if self.tensor_content:
            out += wire.message(4, self.tensor_content)
        return out + b"".join(wire.message(8, s) for s in self.string_val)

    @classmethod
    def FromString(cls, s: bytes) -> TensorProto:
        """A message from bytes.

        Raises:
          ValueError: if they are no such message.
        """
        data = bytes(s)
        with reading("Error parsing message: not a TensorProto: ", ValueError):
            enum = wire.integer(data, 1)
            sizes = tuple(size for m in wire.messages(data, 2) for size in wire.shape(m))
            content = b"".join(list(wire.messages(data, 4))[-1:])
            return cls(enum, sizes, content, wire.messages(data, 8), _single(enum, data))

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, TensorProto) and self.SerializeToString() == other.SerializeToString()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<TensorProto {dtypes.as_dtype(self.dtype).name}{self.tensor_shape.as_list()}>"


def _single(enum: int, data: bytes) -> list[Any]:
    """Values that are not in one piece of bytes."""
    dtype = dtypes.as_dtype(enum) if enum in dtypes._BY_ENUM else None
    field = None if dtype is None else _VALUES.get(dtype.name)
    out: list[Any] = []
    for number, kind, value in wire.fields(data):
        if number == field and field in (5, 6) and kind != 0:
            out += np.frombuffer(value, "<f4" if field == 5 else "<f8").tolist()
        elif number == field and field not in (5, 6) and kind in (0, 2):
            out += map(wire.signed, wire.numbers(value) if kind == 2 else [value])
    return out


def make_tensor_proto(
    values: Any, dtype: Any = None, shape: Any = None, verify_shape: bool = False
) -> TensorProto:
    """An array, tensor or list as a TensorProto.

    Raises:
      TypeError: if `verify_shape` and the shape is another one.
      ValueError: if the values do not fill the shape.
    """
    if isinstance(values, (_core.Tensor, _core.Variable)):
        values = values.numpy()
    array = np.asarray(values)
    if array.dtype.kind in "OSU":
        words = [w.encode() if isinstance(w, str) else bytes(w) for w in array.reshape(-1).tolist()]
        return TensorProto(
            dtypes.string.as_datatype_enum, array.shape if shape is None else tuple(shape), strings=words
        )
    if dtype is None and not isinstance(values, (np.ndarray, np.generic)):
        array = array.astype({"f": np.float32, "i": np.int32}.get(array.dtype.kind, array.dtype))
    wanted = dtypes.from_numpy(array.dtype) if dtype is None else dtypes.as_dtype(dtype)
    array = array.astype(wanted.as_numpy_dtype)
    if shape is not None:
        sizes = tuple(int(d) for d in shape)
        if verify_shape and array.shape != sizes:
            raise TypeError(f"Expected Tensor's shape: {sizes}, but got {array.shape}.")
        if array.size == 1:
            array = np.broadcast_to(array.reshape(()), sizes)
        elif array.size != int(np.prod(sizes, dtype=int)):
            raise ValueError(
                f"Too many elements provided. Takes at most {np.prod(sizes)}, but got {array.size}"
            )
        array = array.reshape(sizes)
    return TensorProto(wanted.as_datatype_enum, array.shape, np.ascontiguousarray(array).tobytes())


def make_ndarray(tensor: Any) -> np.ndarray:
    """The array that a TensorProto describes; also one of TensorFlow's own.

    Raises:
      ValueError: if its values do not fill its shape.
    """
    if not isinstance(tensor, TensorProto):
        tensor = TensorProto.FromString(tensor.SerializeToString())
    with reading("make_ndarray: ", ValueError):
        return _array(tensor)


def _array(tensor: TensorProto) -> np.ndarray:
    dtype, shape = dtypes.as_dtype(tensor.dtype), tuple(d or 0 for d in tensor.tensor_shape.as_list())
    if dtype is dtypes.string:
        words = tensor.string_val
        if len(words) not in (1, math.prod(shape)) or math.prod(shape) > _MOST_BYTES // 8:
            raise ValueError(f"{len(words)} strings for the shape {shape}")
        flat: Any = np.empty(math.prod(shape), object)
        flat[:] = words * len(flat) if len(words) == 1 else words
        return flat.reshape(shape)
    if tensor.tensor_content:
        return np.frombuffer(tensor.tensor_content, dtype.as_numpy_dtype).reshape(shape).copy()
    values = list(tensor._values) or [0]
    size = math.prod(shape)
    if size > _MOST_BYTES // dtype.size:
        raise ValueError(f"the shape {shape} is more than a message can have")
    # The last value stands for those that are left out.
    values += [values[-1]] * (size - len(values))
    return np.array(values[:size], dtype.as_numpy_dtype).reshape(shape)
