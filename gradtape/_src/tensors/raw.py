"""The bytes of a tensor's elements, as in files: types that NumPy lacks are read and written as integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.dtypes import DType
from gradtape._src.tensors import above, stored


def numpy_type(dtype: DType) -> Any:
    """The NumPy type with the bytes of a type: uint16 for bfloat16, uint8 for types that are only stored."""
    if isinstance(dtype._numpy, str):
        return np.dtype(np.uint16 if dtype is dtypes.bfloat16 else np.uint8)
    return np.dtype(dtype.as_numpy_dtype)


def array_of(tensor: _core.Tensor) -> np.ndarray:
    """The elements of a tensor as a read-only array of that type."""
    if tensor.dtype._kind == "s":
        return stored.bits_of(tensor)
    if tensor.dtype is dtypes.bfloat16:
        tensor = above.ops.bitcast(tensor, dtypes.uint16)
    return np.asarray(memoryview(tensor))


def tensor_of(array: np.ndarray, dtype: DType) -> _core.Tensor:
    """A tensor of a type, with a copy of an array of the corresponding NumPy type."""
    if dtype._kind == "s":
        return stored.of_bits(array, dtype)
    return _core.from_buffer(np.ascontiguousarray(array).reshape(array.shape), dtype._code)
