"""`resize` and `scale_and_translate`: images in another size."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gradtape as tf
from gradtape.backend import nearest, resized
from keras_gradtape.src.ops.core import convert_to_tensor
from keras_gradtape.src.ops.image_layout import Layout, converted, want_one_of, wide

RESIZE_INTERPOLATIONS = ("bilinear", "nearest", "lanczos3", "lanczos5", "bicubic")

# ---- resize -------------------------------------------------------------------------------------


def resize(
    images: Any,
    size: Any,
    interpolation: str = "bilinear",
    antialias: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    fill_mode: str = "constant",
    fill_value: float = 0.0,
    data_format: str | None = None,
) -> Any:
    """Integer images become floats, which `keras.ops.image.resize` rounds; "nearest" stays exact."""
    want_one_of("interpolation", interpolation, RESIZE_INTERPOLATIONS)
    if fill_mode != "constant":
        raise ValueError(
            "Invalid value for argument `fill_mode`. Only `'constant'` is supported. "
            f"Received: fill_mode={fill_mode}"
        )
    if pad_to_aspect_ratio and crop_to_aspect_ratio:
        raise ValueError("Only one of `pad_to_aspect_ratio` & `crop_to_aspect_ratio` can be `True`.")
    if len(size) != 2:
        raise ValueError(
            f"Argument `size` must be a tuple of two elements (height, width). Received: size={size}"
        )
    height, width = (int(n) for n in size)
    x = converted(images)
    layout = Layout(x, data_format)
    y = layout.last(x)
    y = y if interpolation == "nearest" else wide(y)
    if crop_to_aspect_ratio:
        y = _cropped(y, height, width)
    elif pad_to_aspect_ratio:
        y = _padded(y, height, width, fill_value)
    if interpolation == "nearest":
        y = nearest(y, height, width)
    else:
        y = resized(y, height, width, interpolation, bool(antialias))
    y = layout.back(y)
    return tf.cast(y, x.dtype) if x.dtype.is_floating else y


def _in_proportion(x: Any, height: int, width: int) -> tuple[int, int]:
    """The height that would go with the width of the images, and the width that would go with their height."""
    return int(x.shape[2] * height / width), int(x.shape[1] * width / height)


def _cropped(x: Any, height: int, width: int) -> Any:
    """The middle of the images, as large as it can be with the proportions of the new size."""
    rows, columns = x.shape[1:3]
    tall, broad = _in_proportion(x, height, width)
    tall, broad = max(min(rows, tall), 1), max(min(columns, broad), 1)
    return tf.slice(x, [0, (rows - tall) // 2, (columns - broad) // 2, 0], [-1, tall, broad, -1])


def _padded(x: Any, height: int, width: int, value: float) -> Any:
    """The images with equal borders on two sides, so that they have the proportions of the new size."""
    tall, broad = _in_proportion(x, height, width)
    above, left = max(tall - x.shape[1], 0) // 2, max(broad - x.shape[2], 0) // 2
    if not above and not left:
        return x
    fill = tf.cast(convert_to_tensor(value), x.dtype)
    return tf.pad(x, [[0, 0], [above, above], [left, left], [0, 0]], constant_values=fill)


# ---- scale_and_translate ------------------------------------------------------------------------


def _triangle(x: Any) -> Any:
    return tf.maximum(1 - x, 0)


def _cubic(x: Any) -> Any:
    """The kernel of Keys (1981), with a = -1/2."""
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return tf.where(x >= 2, tf.zeros_like(x), tf.where(x >= 1, far, near))


def _lanczos(radius: float) -> Callable:
    def kernel(x: Any) -> Any:
        at_zero = x <= 1e-3
        far = math.pi * tf.where(at_zero, tf.ones_like(x), x)
        wave = radius * tf.sin(far) * tf.sin(far / radius) / (far * far)
        return tf.where(x > radius, tf.zeros_like(x), tf.where(at_zero, tf.ones_like(x), wave))

    return kernel


_KERNELS: dict[str, Callable] = {
    **dict.fromkeys(("linear", "bilinear", "trilinear"), _triangle),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), _cubic),
    "lanczos3": _lanczos(3.0),
    "lanczos5": _lanczos(5.0),
}


def scale_and_translate(
    images: Any,
    output_shape: Any,
    scale: Any,
    translation: Any,
    spatial_dims: Any,
    method: str,
    antialias: bool = True,
) -> Any:
    """Differentiable by the images, `scale` and `translation`."""
    want_one_of("method", method, _KERNELS)
    x = convert_to_tensor(images)
    y = wide(x)
    factors = tf.unstack(convert_to_tensor(scale, y.dtype.name))
    shifts = tf.unstack(convert_to_tensor(translation, y.dtype.name))
    for axis, factor, shift in zip(spatial_dims, factors, shifts, strict=True):
        axis = int(axis) % y.ndim
        size, new = y.shape[axis], int(output_shape[axis])
        before, behind = tuple(y.shape[:axis]), tuple(y.shape[axis + 1 :])
        matrix = _weights(size, new, factor, shift, _KERNELS[method], antialias)
        y = tf.matmul(matrix, tf.reshape(y, [math.prod(before), size, math.prod(behind)]))
        y = tf.reshape(y, [*before, new, *behind])
    return tf.cast(y, x.dtype)


def _weights(size: int, new: int, scale: Any, shift: Any, kernel: Callable, antialias: bool) -> Any:
    """How much of each of `size` pixels the `new` ones get, `[new, size]`."""
    step = 1 / scale
    stretch = tf.maximum(step, 1) if antialias else 1
    place = ((tf.range(new, dtype=scale.dtype) + 0.5 - shift) * step - 0.5)[:, None]
    weights = kernel(tf.abs(place - tf.range(size, dtype=scale.dtype)) / stretch)
    total = tf.reduce_sum(weights, 1, keepdims=True)
    enough = tf.abs(total) > 1000 * 1.1920929e-07
    weights = tf.where(enough, weights / tf.where(enough, total, tf.ones_like(total)), tf.zeros_like(weights))
    inside = tf.logical_and(place >= -0.5, place <= size - 0.5)
    return tf.where(inside, weights, tf.zeros_like(weights))
