"""`gaussian_blur` and `sobel_edges`: images convolved with small kernels."""

from __future__ import annotations

from typing import Any

import gradtape as tf
from keras_gradtape.src.ops.core import convert_to_tensor
from keras_gradtape.src.ops.image_layout import Layout, converted, wide


def gaussian_blur(
    images: Any, kernel_size: Any = (3, 3), sigma: Any = (1.0, 1.0), data_format: str | None = None
) -> Any:
    """Blurred along the width by the first of sizes and sigmas and along the height by the second.

    Differentiable with respect to the images and `sigma`. Images are padded with zeros.
    """
    x = converted(images)
    layout = Layout(x, data_format)
    y = layout.last(wide(x))
    wide_sigma, tall_sigma = tf.unstack(convert_to_tensor(sigma, y.dtype.name))
    broad, tall = (int(n) for n in kernel_size)
    y = _along(y, _gaussian(broad, wide_sigma), 2)
    y = _along(y, _gaussian(tall, tall_sigma), 1)
    y = layout.back(y)
    return tf.cast(tf.round(y), x.dtype) if x.dtype.is_integer else tf.cast(y, x.dtype)


def _gaussian(size: int, sigma: Any) -> Any:
    at = (tf.range(size, dtype=sigma.dtype) - (size - 1) / 2) / sigma
    weights = tf.exp(-0.5 * at * at)
    return weights / tf.reduce_sum(weights)


def _along(x: Any, weights: Any, axis: int) -> Any:
    """Every channel convolved with `weights` along the height (1) or the width (2).

    Along the height, the numbers of a row are treated as channels, so that they are computed together.
    """
    if axis == 2:
        turn = [0, 2, 1, 3]
        return tf.transpose(_along(tf.transpose(x, turn), weights, 1), turn)
    batch, height, width, channels = x.shape
    kernel = tf.tile(tf.reshape(weights, [-1, 1, 1, 1]), [1, 1, width * channels, 1])
    rows = tf.reshape(x, [batch, height, 1, width * channels])
    return tf.reshape(tf.nn.depthwise_conv2d(rows, kernel, [1, 1, 1, 1], "SAME"), x.shape)


_SLOPE = (-1.0, 0.0, 1.0)
_SMOOTH = (1.0, 2.0, 1.0)


def sobel_edges(images: Any, data_format: str | None = None) -> Any:
    """Slopes along the height and along the width, in a new last axis. There are zeros around the images."""
    x = converted(images)
    layout = Layout(x, data_format)
    y = layout.last(wide(x))
    slope, smooth = tf.constant(_SLOPE, y.dtype), tf.constant(_SMOOTH, y.dtype)
    down = _along(_along(y, slope, 1), smooth, 2)
    right = _along(_along(y, smooth, 1), slope, 2)
    return tf.cast(layout.back(tf.stack([down, right], -1)), x.dtype)
