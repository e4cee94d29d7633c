"""Overlapping frames of signals, and signals from frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops import convert_to_tensor, frames_of, overlap_add, pad, transpose
from gradtape._src.ops.static import axis_of, ints_of


def whole(name: str, value: Any) -> int:
    """An integer argument."""
    dtype = getattr(value, "dtype", None)
    if isinstance(value, float) or (
        dtype is not None and not np.issubdtype(np.dtype(_numpy(dtype)), np.integer)
    ):
        raise ValueError(f"{name} must be an integer. Got {value!r}")
    if np.ndim(value) != 0:
        raise ValueError(f"{name}: the shape must have rank 0; got {value!r}")
    return ints_of(value)[0]


def _numpy(dtype: Any) -> Any:
    return getattr(dtype, "as_numpy_dtype", dtype)


def frame(
    signal: Any,
    frame_length: Any,
    frame_step: Any,
    pad_end: bool = False,
    pad_value: Any = 0,
    axis: Any = -1,
    name: str | None = None,
) -> Any:
    """Splits an axis into frames that may overlap: `axis` becomes two, `[..., frames, frame_length, ...]`.

    >>> import gradtape as tf
    >>> tf.signal.frame([0, 1, 2, 3, 4, 5, 6], 3, 2).numpy().tolist()
    [[0, 1, 2], [2, 3, 4], [4, 5, 6]]

    Args:
      frame_length, frame_step: the length of frames, and the distance between their starts.
      pad_end: pad incomplete frames at the end with `pad_value`, instead of dropping them.
    """
    x = convert_to_tensor(signal)
    rank = len(x.shape)
    if rank == 0:
        raise ValueError("frame: Shape () must have rank at least 1")
    at = axis_of("frame", ints_of(axis)[0], rank)
    length, step = whole("frame_length", frame_length), whole("frame_step", frame_step)
    if step < 1 or length < 0:
        raise InvalidArgumentError(
            f"frame: frame_step must be positive and frame_length not negative; got {step} and {length}."
        )
    if at != rank - 1:
        x = transpose(x, [*(a for a in range(rank) if a != at), at])
    n = x.shape[-1]
    if pad_end:
        count = -(-n // step)
        more = max(0, length + step * (count - 1) - n)
        if more:
            x = pad(x, [[0, 0]] * (rank - 1) + [[0, more]], constant_values=pad_value)
    else:
        count = max(0, 1 + (n - length) // step)
    out = frames_of(x, length, step, count)
    if at == rank - 1:
        return out
    return transpose(out, [*range(at), rank - 1, rank, *range(at, rank - 1)])


def overlap_and_add(signal: Any, frame_step: Any, name: str | None = None) -> Any:
    """Adds up overlapping frames `[..., frames, frame_length]` to a signal `[..., size]`.

    >>> import gradtape as tf
    >>> tf.signal.overlap_and_add([[1, 1, 1], [1, 1, 1]], 2).numpy().tolist()
    [1, 1, 2, 1, 1]
    """
    x = convert_to_tensor(signal)
    if len(x.shape) < 2:
        raise ValueError(f"overlap_and_add: Shape {x.shape} must have rank at least 2")
    step = whole("frame_step", frame_step)
    count, length = x.shape[-2:]
    return overlap_add(x, step, max(0, length + step * (count - 1)))


def crop_or_pad(x: _core.Tensor, size: int) -> Any:
    """The last axis truncated, or padded with zeros."""
    n = x.shape[-1]
    if n > size:
        return x[..., :size]
    return pad(x, [[0, 0]] * (len(x.shape) - 1) + [[0, size - n]]) if n < size else x
