"""Resizing: tf.image.resize, resize_with_pad, and their methods."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError, Untraceable
from gradtape._src.ops.static import array_of
from gradtape.image.arguments import as_tensor, batch_of, float_of, integer, three_or_four
from gradtape.image.filters import METHODS, F, taps_of
from gradtape.image.geometry import pad_to_bounding_box
from gradtape.image.resampling import resized


class ResizeMethod:
    """The names of the resizing methods."""

    AREA = "area"
    BICUBIC = "bicubic"
    BILINEAR = "bilinear"
    GAUSSIAN = "gaussian"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    MITCHELLCUBIC = "mitchellcubic"
    NEAREST_NEIGHBOR = "nearest"


def resize(
    images: Any,
    size: Any,
    method: str = ResizeMethod.BILINEAR,
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Any:
    """Resizes images, to float32; with method "nearest" to images of the same type.

    Differentiable with respect to the images, with every method.

    Args:
      images: `[batch, height, width, channels]`, or one image without the batch.
      size: the new `[height, width]`.
      method: one of the names of `ResizeMethod`.
      preserve_aspect_ratio: use the largest size within `size` that keeps the proportions.
      antialias: average over more pixels when an image becomes smaller; "nearest" and "area" ignore it, and do
        not need it.

    >>> import gradtape as tf
    >>> x = tf.reshape(tf.range(4.0), [2, 2, 1])
    >>> tf.image.resize(x, [2, 4])[..., 0].numpy()
    array([[0.  , 0.25, 0.75, 1.  ],
           [2.  , 2.25, 2.75, 3.  ]], dtype=float32)
    """
    x = as_tensor(images)
    if x.ndim not in (3, 4):
        raise ValueError("'images' must have either 3 or 4 dimensions.")
    height, width = _size_of(size)
    if method not in METHODS:
        raise ValueError(f"Resize method is not implemented: {method}. Hint: one of {sorted(METHODS)}.")
    if x.dtype.is_bool or x.dtype.is_complex:
        raise InvalidArgumentError(
            f"resize: images must be numbers; got images: {x.dtype.name}{list(x.shape)}."
        )
    batch = batch_of(x)
    if preserve_aspect_ratio:
        height, width = _within(batch.shape[1], batch.shape[2], height, width)
    if min(height, width) < -1:
        raise ValueError(f"Dimension {min(height, width)} must be >= 0")
    if height <= 0 or width <= 0:
        raise InvalidArgumentError(f"resize: output dimensions must be positive; got {height} x {width}.")
    if 0 in tuple(batch.shape)[1:3]:
        raise InvalidArgumentError(
            f"resize: input image must be of non-zero size; got images: {x.dtype.name}{list(x.shape)}."
        )
    if method == ResizeMethod.NEAREST_NEIGHBOR:
        out = nearest(batch, height, width)
    else:
        out = resized(ops.cast(batch, dtypes.float32), height, width, method, bool(antialias))
    return out if x.ndim == 4 else ops.squeeze(out, [0])


def _size_words(size: Any) -> str:
    return f", as in tf.image.resize(images, [height, width]). Received: size={size!r}."


def _size_of(size: Any) -> tuple[int, int]:
    try:
        values = np.asarray(
            array_of(size) if isinstance(size, (_core.Tensor, _core.Variable)) else _plain(size)
        )
    except Untraceable:
        raise
    except (TypeError, ValueError):
        raise ValueError(f"'size' must be a 1-D int32 Tensor{_size_words(size)}") from None
    if values.dtype.kind not in "iu":
        raise ValueError(
            f"'size' must be a 1-D int32 Tensor{_size_words(size)} Whole numbers: int(n), or n // 2 for n / 2."
        )
    if values.shape != (2,):
        raise ValueError(
            f"'size' must be a 1-D Tensor of 2 elements: new_height, new_width{_size_words(size)}"
        )
    return int(values[0]), int(values[1])


def _plain(size: Any) -> Any:
    return (
        [integer(s) if isinstance(s, _core.Tensor) else s for s in size]
        if isinstance(size, (list, tuple))
        else size
    )


def _within(height: int, width: int, most_height: int, most_width: int) -> tuple[int, int]:
    """The largest size in given bounds with the proportions of an image."""
    scale = min(F(most_height) / F(height), F(most_width) / F(width))
    return int(np.rint(scale * F(height))), int(np.rint(scale * F(width)))


def nearest(x: _core.Tensor, height: int, width: int) -> _core.Tensor:
    if x.dtype in (dtypes.float32, dtypes.float64):
        return resized(x, height, width, "nearest", False)
    if x.dtype.is_floating:
        return ops.cast(resized(float_of(x), height, width, "nearest", False), x.dtype)
    for axis, size in ((1, height), (2, width)):
        places, _ = taps_of("nearest", False, x.shape[axis], size)
        x = ops.gather(x, np.minimum(places[:, 0], x.shape[axis] - 1), axis=axis)
    return x


def resize_with_pad(
    image: Any,
    target_height: Any,
    target_width: Any,
    method: str = ResizeMethod.BILINEAR,
    antialias: bool = False,
) -> Any:
    """Images resized to the target size, with their proportions preserved by a border of zeros."""
    x = three_or_four(image)
    height, width = integer(target_height), integer(target_width)
    if width <= 0:
        raise ValueError("target_width must be > 0.")
    if height <= 0:
        raise ValueError("target_height must be > 0.")
    old_height, old_width = tuple(x.shape)[-3:-1]
    shrink = max(F(old_width) / F(width), F(old_height) / F(height))
    new_height, new_width = F(old_height) / shrink, F(old_width) / shrink
    x = resize(x, [int(new_height), int(new_width)], method, antialias=antialias)
    top, left = max(int((height - new_height) / 2), 0), max(int((width - new_width) / 2), 0)
    return pad_to_bounding_box(x, top, left, height, width)
