"""Quality measures of images: psnr, ssim, total variation; and the edges and gradients of images."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops.static import ints_of
from gradtape.image.arguments import as_tensor, float_of
from gradtape.image.colour import convert_image_dtype
from gradtape.image.resampling import filtered

# ---- differences of neighbours ------------------------------------------------------------------


def total_variation(images: Any, name: str | None = None) -> Any:
    """The sum of the absolute differences of neighbouring pixels, one number per image."""
    x = as_tensor(images)
    if x.ndim not in (3, 4):
        raise ValueError("'images' must be either 3 or 4-dimensional.")
    if x.dtype.is_unsigned or x.dtype.is_bool:
        raise InvalidArgumentError(
            "total_variation: differences of images need a signed type; got images: "
            f"{x.dtype.name}{list(x.shape)}. Hint: tf.image.convert_image_dtype(images, tf.float32)."
        )
    axes = [-3, -2, -1]
    down = x[..., 1:, :, :] - x[..., :-1, :, :]
    right = x[..., :, 1:, :] - x[..., :, :-1, :]
    return ops.reduce_sum(abs(down), axes) + ops.reduce_sum(abs(right), axes)


def image_gradients(image: Any) -> tuple[Any, Any]:
    """The differences to the pixel below and to the right; 0 in the last row and column.

    Raises:
      ValueError: if `image` does not have the shape `[batch, height, width, channels]`.
    """
    x = as_tensor(image)
    if x.ndim != 4:
        raise ValueError(f"image_gradients expects a 4D tensor [batch_size, h, w, d], not {x.shape}.")
    dy = ops.pad(x[:, 1:] - x[:, :-1], [[0, 0], [0, 1], [0, 0], [0, 0]])
    dx = ops.pad(x[:, :, 1:] - x[:, :, :-1], [[0, 0], [0, 0], [0, 1], [0, 0]])
    return dy, dx


def sobel_edges(image: Any) -> Any:
    """Sobel's edge maps of images `[batch, height, width, channels]`: a new last axis holds [dy, dx]."""
    x = as_tensor(image)
    if x.ndim != 4:
        raise InvalidArgumentError(f"sobel_edges expects a 4D tensor [batch_size, h, w, d], not {x.shape}.")
    if not x.dtype.is_floating:
        raise InvalidArgumentError(
            f"sobel_edges: image must be floats; got image: {x.dtype.name}{list(x.shape)}."
        )
    padded = float_of(ops.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT"))
    slope, weight = (-1.0, 0.0, 1.0), (1.0, 2.0, 1.0)
    return ops.cast(
        ops.stack([filtered(padded, slope, weight), filtered(padded, weight, slope)], axis=-1), x.dtype
    )


# ---- distances of two images --------------------------------------------------------------------


def _pair(a: Any, b: Any, max_val: Any) -> tuple[_core.Tensor, _core.Tensor, Any]:
    """Two images and the largest value as float32, with integers scaled to [0, 1]."""
    x = as_tensor(a)
    y = ops.convert_to_tensor(b, x.dtype)
    most = max_val if isinstance(max_val, (_core.Tensor, _core.Variable)) else as_tensor(np.asarray(max_val))
    most = convert_image_dtype(ops.cast(most, x.dtype), dtypes.float32)
    return convert_image_dtype(x, dtypes.float32), convert_image_dtype(y, dtypes.float32), most


def _want_same(x: _core.Tensor, y: _core.Tensor) -> None:
    for z in (x, y):
        if z.ndim < 3:
            raise ValueError(f"Shape {z.shape} must have rank at least 3")
    if tuple(x.shape)[-3:] != tuple(y.shape)[-3:]:
        raise ValueError(f"Shapes {x.shape[-3:]} and {y.shape[-3:]} are incompatible")


def psnr(a: Any, b: Any, max_val: Any, name: str | None = None) -> Any:
    """The peak signal-to-noise ratio of images in decibels, one number per image.

    Args:
      max_val: the difference between the largest and the smallest possible value, 255 or 1.0.
    """
    x, y, most = _pair(a, b, max_val)
    mse = ops.reduce_mean(ops.squared_difference(x, y), [-3, -2, -1])
    out = ops.log(most) * (20 / math.log(10)) - ops.log(mse) * (10 / math.log(10))
    _want_same(x, y)
    return out


def _gauss(size: int, sigma: float) -> tuple[float, ...]:
    at = np.arange(size) - (size - 1) / 2
    weights = np.exp(-(at**2) / (2 * sigma**2))
    return tuple((weights / weights.sum()).tolist())


def _ssim_maps(x: Any, y: Any, most: Any, size: int, sigma: float, k1: float, k2: float) -> tuple[Any, Any]:
    """The local similarity of two images, and the part of it that ignores brightness."""
    small = [d for z in (x, y) for d in tuple(z.shape)[-3:-1] if d < size]
    if small:
        raise InvalidArgumentError(
            f"ssim: images must be at least as large as the filter; expected height and width >= {size}; got "
            f"img1: {x.dtype.name}{list(x.shape)}, img2: {y.dtype.name}{list(y.shape)}."
        )
    weights = _gauss(size, sigma)

    def local_mean(z: Any) -> Any:
        shape = list(z.shape)
        out = filtered(ops.reshape(z, [math.prod(shape[:-3]), *shape[-3:]]), weights, weights)
        return ops.reshape(out, [*shape[:-3], *out.shape[1:]])

    c1, c2 = ops.square(k1 * most), ops.square(k2 * most)
    mean_x, mean_y = local_mean(x), local_mean(y)
    product, squares = 2 * mean_x * mean_y, ops.square(mean_x) + ops.square(mean_y)
    luminance = (product + c1) / (squares + c1)
    structure = (2 * local_mean(x * y) - product + c2) / (
        local_mean(ops.square(x) + ops.square(y)) - squares + c2
    )
    return luminance * structure, structure


def ssim(
    img1: Any,
    img2: Any,
    max_val: Any,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    return_index_map: bool = False,
) -> Any:
    """The structural similarity of images, one number in (-1, 1] per image; 1 when they are equal.

    Args:
      max_val: the difference between the largest and the smallest possible value.
      filter_size, filter_sigma: the size and width of the Gaussian window.
      k1, k2: keep the denominators away from 0.
      return_index_map: return the map of local similarities instead of its mean.
    """
    _want_same(as_tensor(img1), as_tensor(img2))
    x, y, most = _pair(img1, img2, max_val)
    similarity, _ = _ssim_maps(x, y, most, int(filter_size), filter_sigma, k1, k2)
    similarity = ops.reduce_mean(similarity, [-1])
    return similarity if return_index_map else ops.reduce_mean(similarity, [-2, -1])


_POWERS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


def ssim_multiscale(
    img1: Any,
    img2: Any,
    max_val: Any,
    power_factors: Any = _POWERS,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Any:
    """The structural similarity over several scales, one number in [0, 1] per image.

    Args:
      power_factors: the weight of each scale; each scale halves the images.
    """
    _want_same(as_tensor(img1), as_tensor(img2))
    x, y, most = _pair(img1, img2, max_val)
    out: Any = None
    for scale, power in enumerate(power_factors):
        if scale:
            x, y = _halved(x), _halved(y)
        both, structure = _ssim_maps(x, y, most, int(filter_size), filter_sigma, k1, k2)
        # Brightness counts only at the last, coarsest scale.
        part = ops.reduce_mean(both if scale == len(power_factors) - 1 else structure, [-3, -2])
        part = ops.relu(part) ** power
        out = part if out is None else out * part
    return ops.reduce_mean(out, [-1])


def _halved(x: Any) -> Any:
    """Means over windows of 2 x 2 pixels; an odd last row or column is repeated."""
    shape = ints_of(list(x.shape))
    odd = [d % 2 for d in shape[-3:-1]]
    x = ops.reshape(x, [math.prod(shape[:-3]), *shape[-3:]])
    if any(odd):
        x = ops.pad(x, [[0, 0], [0, odd[0]], [0, odd[1]], [0, 0]], "SYMMETRIC")
    out = filtered(x, (0.5, 0.5), (0.5, 0.5), 2)
    return ops.reshape(out, [*shape[:-3], *out.shape[1:]])
