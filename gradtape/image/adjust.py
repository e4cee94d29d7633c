"""Adjusting images: brightness, contrast, gamma, hue, saturation, standardisation.

Integer images are computed as floats in [0, 1], and converted back with values clipped to their type.
"""

from __future__ import annotations

import math
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape.image.arguments import as_tensor, at_least_3d
from gradtape.image.colour import coloured_with, convert_image_dtype, hue_and_range, in_float, saturation_of


def _scalar(value: Any, like: _core.Tensor) -> Any:
    """A parameter in the type of the image; Python numbers are not converted."""
    if isinstance(value, (int, float)):
        return value
    return ops.cast(as_tensor(value), like.dtype)


def _back(x: _core.Tensor, dtype: Any) -> _core.Tensor:
    return x if x.dtype is dtype else convert_image_dtype(x, dtype, saturate=True)


def _want_image(x: _core.Tensor, op: str) -> None:
    if x.ndim < 3:
        raise InvalidArgumentError(
            f"{op}: input must be at least 3-D; got images: {x.dtype.name}{list(x.shape)}."
        )


def adjust_brightness(image: Any, delta: Any) -> Any:
    """An image with `delta` added to every value; for integer types, 1 is their largest number."""
    x, dtype = in_float(image)
    return _back(x + _scalar(delta, x), dtype)


def adjust_contrast(images: Any, contrast_factor: Any) -> Any:
    """Scales the differences from the mean of each channel by `contrast_factor`."""
    x, dtype = in_float(images)
    _want_image(x, "adjust_contrast")
    mean = ops.reduce_mean(x, [-3, -2], True)
    return _back((x - mean) * _scalar(contrast_factor, x) + mean, dtype)


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Any:
    """`gain * image ** gamma`.

    Raises:
      ValueError: if `gamma` is negative.
    """
    x, dtype = in_float(image)
    power = gamma if isinstance(gamma, (int, float)) else as_tensor(gamma)
    has_value = not isinstance(power, _core.Tensor) or power._symbol is None
    if has_value and float(power) < 0:
        raise ValueError("Gamma should be a non-negative real number.")
    return _back(_scalar(gain, x) * x ** _scalar(power, x), dtype)


def _want_three(x: _core.Tensor, op: str) -> None:
    _want_image(x, op)
    if x.shape[-1] != 3:
        raise InvalidArgumentError(
            f"{op}: input must have 3 channels but instead has {x.shape[-1]} channels."
        )


def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Any:
    """Adds `delta` (-1 to 1, where 1 is a full turn) to the hue of every pixel of RGB images."""
    if isinstance(delta, (int, float)) and not -1 <= delta <= 1:
        raise ValueError(f"delta must be in the interval [-1, 1]; got {delta}.")
    x, dtype = in_float(image)
    _want_three(x, "adjust_hue")
    hue, least, most = hue_and_range(x)
    hue = hue + _scalar(delta, x)
    hue = hue - ops.floor(hue)
    return _back(coloured_with(hue, least, most - least), dtype)


def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Any:
    """Multiplies the saturation of RGB images by `saturation_factor`, clipped to [0, 1]."""
    x, dtype = in_float(image)
    _want_three(x, "adjust_saturation")
    hue, least, most = hue_and_range(x)
    saturation = saturation_of(least, most)
    saturation = ops.clip(saturation * _scalar(saturation_factor, x), 0, 1)
    return _back(coloured_with(hue, (1 - saturation) * most, saturation * most), dtype)


def per_image_standardization(image: Any) -> Any:
    """Each image scaled to mean 0 and variance 1, as float32; a uniform image becomes zeros."""
    x = ops.cast(at_least_3d(image), dtypes.float32)
    axes = [-3, -2, -1]
    # Avoids division by 0 for uniform images.
    least = 1 / math.sqrt(math.prod(tuple(x.shape)[-3:]))
    centred = x - ops.reduce_mean(x, axes, True)
    variance = ops.reduce_mean(ops.square(centred), axes, True)
    return centred / ops.sqrt(ops.maximum(variance, least * least))
