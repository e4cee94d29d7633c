"""Arguments of image functions: images as tensors of rank 4, sizes as Python integers."""

from __future__ import annotations

from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.ops.static import ints_of
from gradtape._src.tensors.conversion import as_tensor

__all__ = ["as_tensor", "at_least_3d", "batch_of", "float_of", "integer", "three_or_four"]


def at_least_3d(image: Any) -> _core.Tensor:
    """An image or images of rank 3 or more, with at least one pixel."""
    x = as_tensor(image)
    if x.ndim < 3:
        raise ValueError(f"'image' (shape {x.shape}) must be at least three-dimensional.")
    _want_pixels(x)
    return x


def three_or_four(image: Any) -> _core.Tensor:
    """An image or a batch of images, with at least one pixel."""
    x = as_tensor(image)
    if x.ndim not in (3, 4):
        raise ValueError(f"'image' (shape {x.shape}) must have either 3 or 4 dimensions.")
    _want_pixels(x)
    return x


def _want_pixels(x: _core.Tensor) -> None:
    if 0 in tuple(x.shape)[-3:]:
        raise ValueError(f"inner 3 dims of 'image.shape' must be > 0: {x.shape}")


def batch_of(x: _core.Tensor) -> _core.Tensor:
    """An image as a batch of one; a batch unchanged."""
    return ops.expand_dims(x, 0) if x.ndim == 3 else x


def integer(value: Any) -> int:
    """A size or offset: a number, or a tensor that has a value."""
    (number,) = ints_of(value)
    return number


def float_of(x: _core.Tensor) -> _core.Tensor:
    """`x` as float32; float64 is unchanged."""
    return x if x.dtype in (dtypes.float32, dtypes.float64) else ops.cast(x, dtypes.float32)
