"""Text as a part of elements: file names, lines and records, which are bytes.

gradtape has no string tensors; `Text` is what a dataset gives in their place: an array of bytes with
a shape, which `.numpy()` gives out as TensorFlow does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gradtape._src.base import dtypes
from gradtape._src.base.shape import TensorShape
from gradtape._src.tensors import text as tensors_text


class Text:
    """Strings in the form of an array. Immutable.

    >>> from gradtape.data.text import make
    >>> make(["a", "b"])[0].numpy()
    b'a'
    """

    __slots__ = ("_array", "__weakref__")
    dtype = dtypes.string

    def __init__(self, array: np.ndarray) -> None:
        self._array = array  # of bytes objects

    @property
    def shape(self) -> TensorShape:
        """How many there are along each axis."""
        return TensorShape(self._array.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._array.ndim

    def numpy(self) -> Any:
        """The bytes, or an array of them."""
        return self._array[()] if self._array.ndim == 0 else self._array.copy()

    def get_shape(self) -> TensorShape:
        """As `shape`."""
        return self.shape

    def __getitem__(self, key: Any) -> Text:
        return Text(_as_array(self._array[key]))

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Text]:
        return (self[i] for i in range(len(self._array)))

    def __bytes__(self) -> bytes:
        return self._array.item()

    def __str__(self) -> str:
        return f"tf.Tensor({self.numpy()!r}, shape={self.shape}, dtype=string)"

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape={self.shape}, dtype=string, numpy={self.numpy()!r}>"

    def __tf_tensor__(self, dtype: Any = None) -> Any:
        return tensors_text.make(self._array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self._array.copy()

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, Text):
            if not looks_like_text(other):
                return NotImplemented
            other = make(other)
        same = self._array == other._array
        return same if isinstance(same, np.ndarray) else bool(same)

    def __hash__(self) -> int:
        if self._array.ndim:
            raise TypeError("Text of more than one string is not hashable")
        return hash(self._array.item())


def is_text(value: Any) -> bool:
    """Whether a part of an element is text."""
    return isinstance(value, Text)


def looks_like_text(value: Any) -> bool:
    """Whether a value of the user's is made of strings."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    if isinstance(value, (str, bytes, Text)):
        return True
    dtype = getattr(value, "dtype", None)
    if not isinstance(dtype, np.dtype) or dtype.kind not in "OUS":
        return dtype == "string" if dtype is not None and not isinstance(dtype, dtypes.DType) else False
    first = next(iter(np.asarray(value).flat), None)
    return isinstance(first, (str, bytes))


def make(value: Any) -> Text:
    """Strings, lists or arrays of them as text; str becomes UTF-8."""
    return Text(_as_array(_encoded(value)))


def _encoded(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    if isinstance(value, Text):
        return value._array
    if isinstance(value, (list, tuple)):
        rows = [_encoded(v) for v in value]
        return np.stack([_as_array(r) for r in rows]) if rows else np.empty([0], object)
    array = np.asarray(value, object)
    out = np.empty(array.shape, object)
    for i, v in enumerate(array.flat):
        if not isinstance(v, (str, bytes, np.bytes_)):
            raise TypeError(f"Expected strings; got {v!r} of type {type(v).__name__} among them.")
        out.flat[i] = v.encode() if isinstance(v, str) else bytes(v)
    return out


def _as_array(value: Any) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return value
    out = np.empty([], object)
    out[()] = value
    return out


def array_of(value: Any) -> np.ndarray:
    """The bytes of text as an array."""
    return value._array


def strings(value: Any) -> list[str]:
    """Text, or what the user gave for it, as a flat list of str: file names."""
    return [os.fsdecode(v) for v in make(value)._array.reshape(-1).tolist()]


def stack(parts: Sequence[Any]) -> Any:
    """Text of one shape, stacked along a new first axis."""
    return Text(np.stack([p._array for p in parts]))


def take(value: Any, at: np.ndarray) -> Any:
    """Rows of text."""
    return Text(value._array[at])


def concat(parts: Sequence[Any]) -> Any:
    """Text joined along the first axis."""
    return Text(np.concatenate([p._array for p in parts]))
