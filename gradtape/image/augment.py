"""Random changes of images: random_* with seeds as in `tf.random`, and stateless_random_*.

One or a few random numbers are drawn, the same as TensorFlow's for the same seed; then a function of `geometry` or
`adjust` is called. In a traced function every run draws new numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops.random import stateless_uniform, uniform
from gradtape._src.ops.static import ints_of
from gradtape.image.adjust import adjust_brightness, adjust_contrast, adjust_hue, adjust_saturation
from gradtape.image.arguments import as_tensor, at_least_3d, three_or_four
from gradtape.image.colour import convert_image_dtype

# draw(shape, low, high, dtype): uniform numbers for an op seed, or for the two seeds of a stateless op.
Draw = Callable[..., Any]


def _of_op(seed: int | None) -> Draw:
    return lambda shape, low, high, dtype=dtypes.float32: uniform(shape, low, high, dtype, seed)


def _of_seed(seed: Any) -> Draw:
    return lambda shape, low, high, dtype=dtypes.float32: stateless_uniform(shape, seed, low, high, dtype)


# ---- flips --------------------------------------------------------------------------------------


def _flip(image: Any, axis: int, draw: Draw) -> Any:
    at_least_3d(image)
    x = three_or_four(image)
    if x.ndim == 3:
        flips = draw([], 0, 1.0) < 0.5
    else:
        flips = ops.round_(draw([x.shape[0]], 0, 1.0))[:, None, None, None] > 0
    return ops.select(flips, ops.reverse(x, [axis]), x)


def random_flip_left_right(image: Any, seed: int | None = None) -> Any:
    """Flips every image left to right with probability 1/2."""
    return _flip(image, -2, _of_op(seed))


def random_flip_up_down(image: Any, seed: int | None = None) -> Any:
    """Flips every image upside down with probability 1/2."""
    return _flip(image, -3, _of_op(seed))


def stateless_random_flip_left_right(image: Any, seed: Any) -> Any:
    """The same as `random_flip_left_right`, but the result depends only on the two seeds."""
    return _flip(image, -2, _of_seed(seed))


def stateless_random_flip_up_down(image: Any, seed: Any) -> Any:
    """The same as `random_flip_up_down`, but the result depends only on the two seeds."""
    return _flip(image, -3, _of_seed(seed))


# ---- brightness, contrast, hue, saturation ------------------------------------------------------


def _want_delta(max_delta: float) -> None:
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")


def _want_bounds(lower: float, upper: float) -> None:
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    if lower < 0:
        raise ValueError("lower must be non-negative.")


def _brightness(image: Any, max_delta: float, draw: Draw) -> Any:
    _want_delta(max_delta)
    return adjust_brightness(image, draw([], -max_delta, max_delta))


def _contrast(image: Any, lower: float, upper: float, draw: Draw) -> Any:
    _want_bounds(lower, upper)
    return adjust_contrast(image, draw([], lower, upper))


def _hue(image: Any, max_delta: float, draw: Draw) -> Any:
    if max_delta > 0.5:
        raise ValueError("max_delta must be <= 0.5.")
    _want_delta(max_delta)
    return adjust_hue(image, draw([], -max_delta, max_delta))


def _saturation(image: Any, lower: float, upper: float, draw: Draw) -> Any:
    _want_bounds(lower, upper)
    return adjust_saturation(image, draw([], lower, upper))


def random_brightness(image: Any, max_delta: float, seed: int | None = None) -> Any:
    """`adjust_brightness` with a random number in [-max_delta, max_delta)."""
    return _brightness(image, max_delta, _of_op(seed))


def stateless_random_brightness(image: Any, max_delta: float, seed: Any) -> Any:
    """The same as `random_brightness`, but the result depends only on the two seeds."""
    return _brightness(image, max_delta, _of_seed(seed))


def random_contrast(image: Any, lower: float, upper: float, seed: int | None = None) -> Any:
    """`adjust_contrast` with a random factor in [lower, upper)."""
    return _contrast(image, lower, upper, _of_op(seed))


def stateless_random_contrast(image: Any, lower: float, upper: float, seed: Any) -> Any:
    """The same as `random_contrast`, but the result depends only on the two seeds."""
    return _contrast(image, lower, upper, _of_seed(seed))


def random_hue(image: Any, max_delta: float, seed: int | None = None) -> Any:
    """`adjust_hue` with a random number in [-max_delta, max_delta); `max_delta` is at most 0.5."""
    return _hue(image, max_delta, _of_op(seed))


def stateless_random_hue(image: Any, max_delta: float, seed: Any) -> Any:
    """The same as `random_hue`, but the result depends only on the two seeds."""
    return _hue(image, max_delta, _of_seed(seed))


def random_saturation(image: Any, lower: float, upper: float, seed: int | None = None) -> Any:
    """`adjust_saturation` with a random factor in [lower, upper)."""
    return _saturation(image, lower, upper, _of_op(seed))


def stateless_random_saturation(image: Any, lower: float, upper: float, seed: Any = None) -> Any:
    """The same as `random_saturation`, but the result depends only on the two seeds."""
    return _saturation(image, lower, upper, _of_seed(seed))


# ---- crops --------------------------------------------------------------------------------------


def _crop(value: Any, size: Any, draw: Draw) -> Any:
    x, sizes = as_tensor(value), ints_of(size)
    if len(sizes) != x.ndim or any(n > d for n, d in zip(sizes, x.shape, strict=True)):
        raise InvalidArgumentError(
            f"random_crop: Need value.shape >= size; got value: {x.dtype.name}{list(x.shape)}, size: {sizes}."
        )
    free = np.array([d - n + 1 for d, n in zip(x.shape, sizes, strict=True)], np.int32)
    at = draw([x.ndim], 0, dtypes.int32.max, dtypes.int32) % free
    if at._symbol is None:
        return ops.slice_(x, at, sizes)
    x = ops.identity(x)  # makes the gradient dense, unlike that of a gather
    for axis, (d, n) in enumerate(zip(x.shape, sizes, strict=True)):
        if n != d:
            x = ops.gather(x, at[axis] + np.arange(n, dtype=np.int32), axis=axis)
    return x


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Any:
    """Crops a tensor to the given size, at a random position.

    Raises:
      InvalidArgumentError: if `size` is larger than the tensor along some axis.
    """
    return _crop(value, size, _of_op(seed))


def stateless_random_crop(value: Any, size: Any, seed: Any, name: str | None = None) -> Any:
    """The same as `random_crop`, but the result depends only on the two seeds."""
    return _crop(value, size, _of_seed(seed))


# ---- jpeg noise ---------------------------------------------------------------------------------


def adjust_jpeg_quality(image: Any, jpeg_quality: Any, dct_method: str = "", name: str | None = None) -> Any:
    """An image after JPEG compression with a quality from 0 to 100. Has no gradient."""
    from gradtape.io.encoding import encode_jpeg
    from gradtape.io.images import decode_jpeg

    x = as_tensor(image)
    (quality,) = ints_of(jpeg_quality)
    pixels = convert_image_dtype(x, dtypes.uint8, saturate=True)
    pixels = decode_jpeg(encode_jpeg(pixels, quality=quality), channels=x.shape[-1])
    return convert_image_dtype(pixels, x.dtype, saturate=True)


def _jpeg_quality(image: Any, least: int, most: int, draw: Draw) -> Any:
    if least < 0 or most < 0 or least > 100 or most > 100:
        raise ValueError("jpeg encoding range must be between 0 and 100.")
    if least >= most:
        raise ValueError("`min_jpeg_quality` must be less than `max_jpeg_quality`.")
    return adjust_jpeg_quality(image, draw([], least, most, dtypes.int32))


def random_jpeg_quality(
    image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> Any:
    """`adjust_jpeg_quality` with a random quality in [min_jpeg_quality, max_jpeg_quality)."""
    return _jpeg_quality(image, min_jpeg_quality, max_jpeg_quality, _of_op(seed))


def stateless_random_jpeg_quality(image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: Any) -> Any:
    """The same as `random_jpeg_quality`, but the result depends only on the two seeds."""
    return _jpeg_quality(image, min_jpeg_quality, max_jpeg_quality, _of_seed(seed))
