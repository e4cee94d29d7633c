"""Fourier transforms on XLA, without the division in NumPy's inverse, and overlapping frames."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np


def fft(x: Any, axes: list[int], inverse: bool, scale: float) -> Any:
    """The transform over some axes, times `scale`."""
    if x.size == 0:
        return x
    if inverse:
        return jnp.fft.ifftn(x, axes=axes, norm="forward") * scale
    return jnp.fft.fftn(x, axes=axes) * scale


def rfft(x: Any, scale: float, *, results: list[Any]) -> Any:
    """The first half of the transform of real numbers, times `scale`."""
    if x.size == 0:
        return jnp.zeros(results[0].shape, results[0].dtype)
    return jnp.fft.rfft(x) * scale


def irfft(x: Any, length: int, scale: float, *, results: list[Any]) -> Any:
    """The real numbers whose transform begins with `x`, times `length * scale`."""
    if math.prod(results[0].shape) == 0:
        return jnp.zeros(results[0].shape, results[0].dtype)
    return jnp.fft.irfft(x, length, norm="forward") * scale


def _places(count: int, length: int, step: int) -> Any:
    """The position of each element of each frame."""
    return np.arange(count)[:, None] * step + np.arange(length)


def frames(x: Any, length: int, step: int, count: int) -> Any:
    """Frames of the last axis, `step` elements apart."""
    return x[..., _places(count, length, step)]


def overlap_add(x: Any, step: int, size: int) -> Any:
    """The sum of frames that are `step` elements apart."""
    count, length = x.shape[-2:]
    return jnp.zeros((*x.shape[:-2], size), x.dtype).at[..., _places(count, length, step)].add(x)
