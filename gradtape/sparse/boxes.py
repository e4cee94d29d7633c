"""Sparse tensors encoded as strings, so that they can be stacked and sliced: `tf.map_fn` and datasets store batches
this way.

A box is three strings: the bytes of the indices, of the values and of the shape. TensorFlow uses variants for this.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops.casting import bitcast
from gradtape._src.ops.creation import convert_to_tensor
from gradtape._src.ops.static import array_of
from gradtape._src.tensors import text


def boxed(places: np.ndarray, values: Any, sizes: Any) -> list[bytes]:
    """The three strings of a sparse tensor."""
    return [np.asarray(places, np.int64).tobytes(), _bytes_of(values), np.asarray(sizes, np.int64).tobytes()]


def stacked(boxes: list[list[bytes]], shape: list[int]) -> _core.Tensor:
    """Boxes as a tensor of strings `[*shape, 3]`."""
    return text.make(text.array([s for box in boxes for s in box], [*shape, 3]))


def opened(strings: Any, dtype: Any) -> tuple[np.ndarray, Any, list[int]]:
    """One sparse tensor from a tensor of boxes, each placed at its own position: positions, values and sizes.

    Its sizes are the largest of those of the parts.
    """
    boxes = text.array_of(strings)
    lead = boxes.shape[:-1]
    places: list[np.ndarray] = []
    parts: list[np.ndarray] = []
    shapes: list[np.ndarray] = []
    for place in np.ndindex(*lead):
        indices, values, shape = boxes[place]
        sizes = np.frombuffer(shape, np.int64)
        if shapes and len(sizes) != len(shapes[0]):
            raise InvalidArgumentError(
                f"Inconsistent rank across SparseTensors: rank is {len(shapes[0])}, and at {list(place)} {len(sizes)}."
            )
        at = np.frombuffer(indices, np.int64).reshape(-1, len(sizes))
        places.append(np.concatenate([np.tile(np.array(place, np.int64), (len(at), 1)), at], axis=1))
        parts.append(_array_of(values, dtype))
        shapes.append(sizes)
    if not shapes:
        raise InvalidArgumentError("No sparse tensors to put together: their rank is not known.")
    largest = [*lead, *np.max(shapes, axis=0).tolist()]
    return np.concatenate(places), _tensor_of(np.concatenate(parts), dtype), largest


def _bytes_of(values: Any) -> bytes:
    if values.dtype is dtypes.string:
        strings = text.array_of(values).tolist()
        lengths = np.array([len(strings), *map(len, strings)], np.int64)
        return lengths.tobytes() + b"".join(strings)
    return np.ascontiguousarray(array_of(_plain(values))).tobytes()


def _plain(values: Any) -> Any:
    # NumPy has no bfloat16.
    return bitcast(values, dtypes.uint16) if values.dtype is dtypes.bfloat16 else values


def _array_of(data: bytes, dtype: Any) -> np.ndarray:
    if dtype is dtypes.string:
        count = int(np.frombuffer(data, np.int64, 1)[0])
        ends = 8 * (count + 1) + np.cumsum([0, *np.frombuffer(data, np.int64, count, 8)])
        strings = [data[a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)]
        return text.array(strings, [count])
    return np.frombuffer(data, np.uint16 if dtype is dtypes.bfloat16 else dtype.as_numpy_dtype)


def _tensor_of(array: np.ndarray, dtype: Any) -> Any:
    if dtype is dtypes.string:
        return text.make(array)
    return bitcast(convert_to_tensor(array), dtype) if dtype is dtypes.bfloat16 else convert_to_tensor(array)
