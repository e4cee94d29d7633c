"""`rgb_to_grayscale`, `rgb_to_hsv` and `hsv_to_rgb`: images in other colours."""

from __future__ import annotations

from typing import Any

import gradtape as tf
from gradtape.backend import coloured_with, hue_and_range, saturation_of
from keras_gradtape.src.ops.image_layout import channels_axis, converted, wide

_BRIGHTNESS = (0.2989, 0.5870, 0.1140)  # of red, green and blue


def rgb_to_grayscale(images: Any, data_format: str | None = None) -> Any:
    x, axis = converted(images), channels_axis(data_format)
    if x.shape[axis] not in (1, 3):
        raise ValueError(
            "Invalid channel size: expected 3 (RGB) or 1 (Grayscale). "
            f"Received input with shape: images.shape={tuple(x.shape)}"
        )
    if x.shape[axis] == 1:
        return x
    shape = [1] * x.ndim
    shape[axis] = 3
    y = wide(x)
    weights = tf.constant(_BRIGHTNESS, y.dtype, shape)
    return tf.cast(tf.reduce_sum(y * weights, axis, keepdims=True), x.dtype)


def _want_colour(x: Any, axis: int) -> None:
    if not x.dtype.is_floating:
        raise ValueError(f"Invalid images dtype: expected float dtype. Received: images.dtype={x.dtype.name}")
    if x.shape[axis] != 3:
        raise ValueError(
            f"Input images must have 3 channels, but received images with {x.shape[axis]} channels. "
            f"Received: images.shape={tuple(x.shape)}"
        )


def _pixels_last(x: Any, axis: int) -> Any:
    return x if axis == -1 else tf.transpose(x, [*range(x.ndim - 3), x.ndim - 2, x.ndim - 1, x.ndim - 3])


def _pixels_back(x: Any, axis: int) -> Any:
    return x if axis == -1 else tf.transpose(x, [*range(x.ndim - 3), x.ndim - 1, x.ndim - 3, x.ndim - 2])


def rgb_to_hsv(images: Any, data_format: str | None = None) -> Any:
    x, axis = converted(images), channels_axis(data_format)
    _want_colour(x, axis)
    y = _pixels_last(wide(x), axis)
    hue, least, most = hue_and_range(y)
    y = tf.stack([hue, saturation_of(least, most), most], -1)
    return tf.cast(_pixels_back(y, axis), x.dtype)


def hsv_to_rgb(images: Any, data_format: str | None = None) -> Any:
    x, axis = converted(images), channels_axis(data_format)
    _want_colour(x, axis)
    hue, saturation, value = tf.unstack(_pixels_last(wide(x), axis), axis=-1)
    hue = hue - tf.floor(hue)  # hues are angles, modulo full turns
    y = coloured_with(hue, (1 - saturation) * value, saturation * value)
    return tf.cast(_pixels_back(y, axis), x.dtype)
