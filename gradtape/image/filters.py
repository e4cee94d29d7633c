"""Resizing as band matrices: the pixels, and their weights, that contribute to a pixel of the result.

`bands(method, antialias, size_in, size_out)` returns the matrix for one axis and its transpose, for the op
`resample`. Positions and weights are computed in float32 and in TensorFlow's order of operations, because the last
bit decides about a position exactly between two pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

F = np.float32


def _lanczos(radius: float) -> Callable:
    def kernel(x: np.ndarray) -> np.ndarray:
        far = np.where(x <= 1e-3, F(1), x)  # the series of sin(x)/x starts with 1
        wave = (
            F(radius)
            * np.sin(F(np.pi) * far)
            * np.sin(F(np.pi) * far / F(radius))
            / (F(np.pi**2) * far * far)
        )
        return np.where(x > radius, F(0), np.where(x <= 1e-3, F(1), wave))

    return kernel


def _gaussian(x: np.ndarray) -> np.ndarray:
    return np.where(x >= 1.5, F(0), np.exp(-x * x / F(2 * 0.5**2)))


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.maximum(F(1) - x, F(0))


def _keys_cubic(x: np.ndarray) -> np.ndarray:
    near = ((F(1.5) * x - F(2.5)) * x) * x + F(1)
    far = ((F(-0.5) * x + F(2.5)) * x - F(4)) * x + F(2)
    return np.where(x >= 2, F(0), np.where(x >= 1, far, near))


def _mitchell_cubic(x: np.ndarray) -> np.ndarray:
    near = ((F(7 / 6) * x - F(2)) * x) * x + F(8 / 9)
    far = ((F(-7 / 18) * x + F(2)) * x - F(10 / 3)) * x + F(16 / 9)
    return np.where(x >= 2, F(0), np.where(x >= 1, far, near))


# For each kernel its radius, and its value at a distance >= 0.
_KERNELS: dict[str, tuple[float, Callable]] = {
    "bilinear": (1.0, _triangle),
    "bicubic": (2.0, _keys_cubic),
    "lanczos3": (3.0, _lanczos(3.0)),
    "lanczos5": (5.0, _lanczos(5.0)),
    "gaussian": (1.5, _gaussian),
    "mitchellcubic": (2.0, _mitchell_cubic),
}
METHODS = (*_KERNELS, "nearest", "area")

# Pixels (clipped to the image) and weights, [size_out, taps].
Taps = tuple[np.ndarray, np.ndarray]


def _nearest(size_in: int, size_out: int) -> Taps:
    scale = F(size_in) / F(size_out)
    at = np.floor((np.arange(size_out, dtype=F) + F(0.5)) * scale).astype(np.int64)
    return at[:, None], np.ones((size_out, 1), F)


def _places(size_in: int, size_out: int) -> tuple[np.ndarray, np.ndarray]:
    """The pixel left of the position of each pixel of the result, and the distance from it."""
    scale = F(size_in) / F(size_out)
    at = (np.arange(size_out, dtype=F) + F(0.5)) * scale - F(0.5)
    left = np.floor(at)
    return left.astype(np.int64), at - left


def _bilinear(size_in: int, size_out: int) -> Taps:
    left, distance = _places(size_in, size_out)
    return left[:, None] + np.arange(2), np.stack([F(1) - distance, distance], 1)


def _bicubic(size_in: int, size_out: int) -> Taps:
    left, distance = _places(size_in, size_out)
    distance = np.rint(distance * F(1024)) / F(1024)  # TensorFlow uses a table of the kernel
    at = left[:, None] + np.arange(-1, 3)
    weights = _keys_cubic(np.abs(np.arange(-1, 3, dtype=F) - distance[:, None]))
    weights = np.where((at >= 0) & (at < size_in), weights, F(0))
    return at, _normalised(weights)


def _area(size_in: int, size_out: int) -> Taps:
    scale = F(size_in) / F(size_out)
    begin = np.arange(size_out, dtype=F) * scale
    end = np.arange(1, size_out + 1, dtype=F) * scale
    first = np.floor(begin)
    at = first[:, None] + np.arange(int(np.max(np.ceil(end) - first)), dtype=F)
    part = np.minimum(at + 1, end[:, None]) - np.maximum(at, begin[:, None])
    return at.astype(np.int64), np.maximum(part, F(0)) / scale


def _kernel(method: str, antialias: bool, size_in: int, size_out: int) -> Taps:
    """A kernel around the position of each pixel, widened by the step between positions if `antialias`."""
    radius, kernel = _KERNELS[method]
    step = F(1) / (F(size_out) / F(size_in))
    stretch = np.maximum(step, F(1)) if antialias else F(1)
    place = (np.arange(size_out, dtype=F) + F(0.5)) * step
    reach = F(radius) * stretch
    first = np.clip(np.ceil(place - reach - F(0.5)), 0, size_in - 1)
    last = np.clip(np.floor(place + reach - F(0.5)), 0, size_in - 1)
    at = first[:, None] + np.arange(int(np.max(last - first)) + 1, dtype=F)
    weights = kernel(np.abs(at + F(0.5) - place[:, None]) * (F(1) / stretch)).astype(F)
    inside = (at <= last[:, None]) & (place <= size_in)[:, None]
    return at.astype(np.int64), _normalised(np.where(inside, weights, F(0)))


def _normalised(weights: np.ndarray) -> np.ndarray:
    total = weights.sum(1, keepdims=True, dtype=F)
    return weights / np.where(np.abs(total) < 1000 * np.finfo(F).tiny, F(1), total)


def taps_of(method: str, antialias: bool, size_in: int, size_out: int) -> Taps:
    """The pixels and weights of a method along one axis."""
    if method == "nearest":
        return _nearest(size_in, size_out)
    if method == "area":
        return _area(size_in, size_out)
    if method == "bilinear" and not antialias:
        return _bilinear(size_in, size_out)
    if method == "bicubic" and not antialias:
        return _bicubic(size_in, size_out)
    return _kernel(method, antialias, size_in, size_out)


class Band(NamedTuple):
    """A matrix whose row i has `weights[i]` from column `first[i]` on, and zeros elsewhere."""

    first: np.ndarray
    weights: np.ndarray


def _as_band(rows: np.ndarray, columns: np.ndarray, weights: np.ndarray, size: int, width: int) -> Band:
    """The matrix [size, width] with `weights` summed at (rows, columns)."""
    low, high = np.full(size, width), np.full(size, -1)
    np.minimum.at(low, rows, columns)
    np.maximum.at(high, rows, columns)
    # A row must not begin later than those after it, so rows with few weights begin earlier.
    low = np.minimum.accumulate(low[::-1])[::-1]
    taps = max(int(np.max(high - low)) + 1, 1) if size else 1
    first = np.minimum(low, width - taps)
    band = np.zeros((size, taps))
    np.add.at(band, (rows, columns - first[rows]), weights)
    return Band(first.astype(np.int32), band)


def both_bands(at: np.ndarray, weights: np.ndarray, size_in: int) -> tuple[Band, Band]:
    """The matrix [size_out, size_in] given by pixels and weights, and its transpose.

    A pixel outside the image is replaced by the nearest one inside.
    """
    at = np.clip(at, 0, size_in - 1)
    size_out = len(at)
    rows = np.broadcast_to(np.arange(size_out)[:, None], at.shape)
    used = weights != 0
    i, j, w = rows[used], at[used], weights[used]
    return _as_band(i, j, w, size_out, size_in), _as_band(j, i, w, size_in, size_out)


def bands(method: str, antialias: bool, size_in: int, size_out: int) -> tuple[Band, Band]:
    """The matrix that resizes an axis, and its transpose."""
    return both_bands(*taps_of(method, antialias, size_in, size_out), size_in)
