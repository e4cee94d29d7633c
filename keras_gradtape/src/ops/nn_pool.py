"""Pooling of `keras.ops.nn`, over 1, 2 or 3 spatial axes, with channels first or last."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from keras.src.backend import config

import gradtape as tf
from gradtape.backend import op, to_first, to_last
from keras_gradtape.src.ops.core import convert_to_tensor
from keras_gradtape.src.ops.types import Tensor, floating

_avg = op("avg_pool")
_max = op("max_pool")

__all__ = ["adaptive_average_pool", "adaptive_max_pool", "average_pool", "max_pool"]

# Paddings in the form that the rows of pooling and convolution take.
PADDINGS: dict[str, list[int]] = {"valid": [], "same": [-1], "VALID": [], "SAME": [-1]}


def channels_are_first(data_format: str | None) -> bool:
    if data_format == "channels_last":
        return False
    return config.standardize_data_format(data_format) == "channels_first"


def per_axis(value: Any, dims: int) -> list[int]:
    """One number for each spatial axis."""
    if type(value) is int:
        return [value] * dims
    numbers = [int(v) for v in value] if isinstance(value, (list, tuple)) else [int(value)]
    return numbers * dims if len(numbers) == 1 else numbers


def paddings_of(padding: str) -> list[int]:
    paddings = PADDINGS.get(padding)
    if paddings is None:
        raise ValueError(f"`padding` must be 'valid' or 'same'. Received: padding={padding}")
    return paddings


def _images(x: Any, what: str) -> int:
    """The number of spatial axes."""
    if not 3 <= x.ndim <= 5:
        raise ValueError(
            f"{what} needs inputs of rank 3, 4 or 5, for 1, 2 or 3 spatial axes. Received: "
            f"inputs.shape={tuple(x.shape)}"
        )
    return x.ndim - 2


def _pooled(op: Callable, x: Any, pool_size: Any, strides: Any, padding: str, data_format: str | None) -> Any:
    dims = _images(x, "Pooling")
    sizes = per_axis(pool_size, dims)
    steps = sizes if strides is None else per_axis(strides, dims)
    window = (sizes, steps, [1] * dims, paddings_of(padding))
    if channels_are_first(data_format):
        return to_first(op(to_last(x), *window))
    return op(x, *window)


def max_pool(
    inputs: Any, pool_size: Any, strides: Any = None, padding: str = "valid", data_format: str | None = None
) -> Any:
    x = inputs if type(inputs) is Tensor else convert_to_tensor(inputs)
    return _pooled(_max, x, pool_size, strides, padding, data_format)


def average_pool(
    inputs: Any, pool_size: Any, strides: Any = None, padding: str = "valid", data_format: str | None = None
) -> Any:
    x = inputs if type(inputs) is Tensor and inputs.dtype.is_floating else floating(inputs)
    return _pooled(_avg, x, pool_size, strides, padding, data_format)


# ---- to a given size ------------------------------------------------------------------------------
# Window i of n goes from floor(i * size / n) to ceil((i + 1) * size / n). Along an axis windows have at most two
# lengths: all positions are pooled with both, and the right ones are selected.


@functools.lru_cache(maxsize=256)
def _windows(size: int, count: int) -> tuple[list[int], list[int]]:
    """The lengths of windows, and the index of each window in the concatenated results for all lengths."""
    numbers = np.arange(count)
    starts = numbers * size // count
    lengths = -(-(numbers + 1) * size // count) - starts
    kinds = sorted(set(lengths.tolist()))
    offsets = dict(zip(kinds, np.cumsum([0, *(size - k + 1 for k in kinds)]).tolist(), strict=False))
    return kinds, [s + offsets[k] for s, k in zip(starts.tolist(), lengths.tolist(), strict=True)]


def _adapted(op: Callable, x: Any, output_size: Any, data_format: str | None, what: str) -> Any:
    dims = _images(x, what)
    counts = per_axis(output_size, dims)
    first = channels_are_first(data_format)
    if first:
        x = to_last(x)
    for axis, count in enumerate(counts):
        if x.shape[axis + 1] != count:
            x = _adapted_axis(op, x, axis, count)
    return to_first(x) if first else x


def _adapted_axis(op: Callable, x: Any, axis: int, count: int) -> Any:
    dims = x.ndim - 2
    size = x.shape[axis + 1]

    def pooled(length: int, step: int = 1) -> Any:
        return op(x, _ones(dims, axis, length), _ones(dims, axis, step), [1] * dims, [])

    if size % count == 0:
        return pooled(size // count, size // count)
    lengths, places = _windows(size, count)
    parts = [pooled(length) for length in lengths]
    return tf.gather(parts[0] if len(parts) == 1 else tf.concat(parts, axis + 1), places, axis=axis + 1)


def _ones(dims: int, axis: int, value: int) -> Sequence[int]:
    return [value if i == axis else 1 for i in range(dims)]


def adaptive_average_pool(inputs: Any, output_size: Any, data_format: str | None = None) -> Any:
    return _adapted(_avg, floating(inputs), output_size, data_format, "adaptive_average_pool")


def adaptive_max_pool(inputs: Any, output_size: Any, data_format: str | None = None) -> Any:
    return _adapted(_max, convert_to_tensor(inputs), output_size, data_format, "adaptive_max_pool")
