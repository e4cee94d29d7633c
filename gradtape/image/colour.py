"""Colour spaces and element types of images: rgb, hsv, yiq, yuv, grayscale, convert_image_dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.base.errors import FailedPreconditionError, InvalidArgumentError
from gradtape.image.arguments import as_tensor

# ---- element types ------------------------------------------------------------------------------


def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False, name: str | None = None) -> Any:
    """An image in another element type, scaled: floats in [0, 1], integers from 0 to their largest number.

    Args:
      saturate: clip numbers that do not fit.

    Raises:
      AttributeError: if one of the types is neither a float nor an integer.
    """
    x, to = as_tensor(image), dtypes.as_dtype(dtype)
    if not (to.is_floating or to.is_integer):
        raise AttributeError("dtype must be either floating point or integer")
    if not (x.dtype.is_floating or x.dtype.is_integer):
        raise AttributeError("image dtype must be either floating point or integer")
    if x.dtype is to:
        return ops.identity(x)
    cast = ops.saturate_cast if saturate else ops.cast
    if x.dtype.is_integer and to.is_integer:
        most, most_out = int(x.dtype.max), int(to.max)
        if most > most_out:
            return cast(ops.floordiv(x, (most + 1) // (most_out + 1)), to)
        return cast(x, to) * ((most_out + 1) // (most + 1))
    if x.dtype.is_floating and to.is_floating:
        return ops.cast(x, to)
    if x.dtype.is_integer:
        return ops.cast(x, to) * (1.0 / int(x.dtype.max))
    return cast(x * (int(to.max) + 0.5), to)


def in_float(image: Any) -> tuple[_core.Tensor, Any]:
    """An image as floats for computing, and the type to convert back to."""
    x = as_tensor(image)
    if x.dtype in (dtypes.float16, dtypes.float32, dtypes.float64):
        return x, x.dtype
    return convert_image_dtype(x, dtypes.float32), x.dtype


# ---- linear changes of colour -------------------------------------------------------------------

_GRAY = np.array([[0.2989], [0.5870], [0.1140]])
_YIQ = np.array(
    [[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]]
)
_FROM_YIQ = np.array(
    [[1, 1, 1], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]]
)
_YUV = np.array(
    [[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512], [0.114, 0.43601035, -0.10001026]]
)
_FROM_YUV = np.array([[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]])


def _times(image: Any, matrix: np.ndarray, what: str) -> Any:
    """Every pixel times a matrix."""
    x = as_tensor(image)
    if not x.dtype.is_floating:
        raise TypeError(f"{what}: images must be floats; got images: {x.dtype.name}{list(x.shape)}.")
    if x.ndim == 0 or x.shape[-1] != len(matrix):
        raise InvalidArgumentError(
            f"{what}: images must have {len(matrix)} channels; got images: {x.dtype.name}{list(x.shape)}."
        )
    shape = list(x.shape)
    matrix = matrix if x.dtype is not dtypes.bfloat16 else matrix.astype(np.float32)
    out = ops.matmul(ops.reshape(x, [x._numel // 3, 3]), ops.convert_to_tensor(matrix, x.dtype))
    return ops.reshape(out, [*shape[:-1], matrix.shape[1]])


def rgb_to_yiq(images: Any) -> Any:
    """Brightness and two colour differences, of pixels with values in [0, 1]."""
    return _times(images, _YIQ, "rgb_to_yiq")


def yiq_to_rgb(images: Any) -> Any:
    """The inverse of `rgb_to_yiq`."""
    return _times(images, _FROM_YIQ, "yiq_to_rgb")


def rgb_to_yuv(images: Any) -> Any:
    """Brightness and two colour differences, of pixels with values in [0, 1]."""
    return _times(images, _YUV, "rgb_to_yuv")


def yuv_to_rgb(images: Any) -> Any:
    """The inverse of `rgb_to_yuv`."""
    return _times(images, _FROM_YUV, "yuv_to_rgb")


def rgb_to_grayscale(images: Any, name: str | None = None) -> Any:
    """The brightness of each pixel, as a single channel of the same type."""
    x, dtype = in_float(images)
    return convert_image_dtype(_times(x, _GRAY, "rgb_to_grayscale"), dtype)


def grayscale_to_rgb(images: Any, name: str | None = None) -> Any:
    """Three equal channels from one.

    Raises:
      ValueError: if the last dimension is not 1.
    """
    x = as_tensor(images)
    if x.ndim < 2:
        raise ValueError(f"A grayscale image (shape {x.shape}) must be at least two-dimensional.")
    if x.shape[-1] != 1:
        raise ValueError(f"Last dimension of a grayscale image should be size 1. Received shape {x.shape}.")
    return ops.tile(x, [1] * (x.ndim - 1) + [3])


# ---- hue, saturation, value ---------------------------------------------------------------------


def _want_colour(x: _core.Tensor, what: str) -> None:
    if not x.dtype.is_floating:
        raise InvalidArgumentError(
            f"{what}: images must be floats; got images: {x.dtype.name}{list(x.shape)}."
        )
    if x.ndim == 0 or x.shape[-1] != 3:
        raise FailedPreconditionError(
            f"{what}: images must have 3 channels; got images: {x.dtype.name}{list(x.shape)}."
        )


def hue_and_range(x: _core.Tensor) -> tuple[Any, Any, Any]:
    """For each pixel the hue (0 to 1; 0 for gray), and the smallest and largest of its three values."""
    r, g, b = ops.unstack(x, axis=-1)
    most = ops.maximum(ops.maximum(r, g), b)
    least = ops.minimum(ops.minimum(r, g), b)
    chroma = most - least
    coloured = chroma > 0
    # Divides by 1 where there is no colour, so that no infinity reaches the gradient.
    sixth = 1 / (6 * ops.select(coloured, chroma, ops.ones_like(chroma)))
    hue = ops.select(
        ops.equal(r, most),
        sixth * (g - b),
        ops.select(ops.equal(g, most), sixth * (b - r) + 2 / 6, sixth * (r - g) + 4 / 6),
    )
    hue = ops.select(coloured, hue, ops.zeros_like(hue))
    return ops.select(hue < 0, hue + 1, hue), least, most


def coloured_with(hue: Any, least: Any, chroma: Any) -> Any:
    """The pixels of a hue whose three values range from `least` to `least + chroma`."""
    h = hue * 6
    shares = (abs(h - 3) - 1, 2 - abs(h - 2), 2 - abs(h - 4))  # of red, green and blue
    return ops.stack([least + chroma * ops.clip(share, 0, 1) for share in shares], axis=-1)


def saturation_of(least: Any, most: Any) -> Any:
    """The range of a pixel's three values, divided by the largest; 0 for black."""
    lit = most > 0
    return ops.select(lit, (most - least) / ops.select(lit, most, ops.ones_like(most)), ops.zeros_like(most))


def rgb_to_hsv(images: Any, name: str | None = None) -> Any:
    """Hue, saturation and value of pixels with values in [0, 1]; all three are in [0, 1]."""
    x = as_tensor(images)
    _want_colour(x, "rgb_to_hsv")
    hue, least, most = hue_and_range(x)
    saturation = saturation_of(least, most)
    return ops.stack([hue, saturation, most], axis=-1)


def hsv_to_rgb(images: Any, name: str | None = None) -> Any:
    """The inverse of `rgb_to_hsv`."""
    x = as_tensor(images)
    _want_colour(x, "hsv_to_rgb")
    hue, saturation, value = ops.unstack(x, axis=-1)
    return coloured_with(hue, (1 - saturation) * value, saturation * value)
