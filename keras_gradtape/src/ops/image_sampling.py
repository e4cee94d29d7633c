"""Images read between their pixels: `map_coordinates`, and the transforms of planes.

The interpolation is in `gradtape/image/projection.py`.
"""

from __future__ import annotations

from typing import Any

from keras.src.random.seed_generator import draw_seed

import gradtape as tf
from gradtape.backend import pixel_grid, projected, read_between, read_planes
from keras_gradtape.src.ops.core import convert_to_tensor
from keras_gradtape.src.ops.image_layout import Layout, converted, exact, want_one_of, wide

AFFINE_TRANSFORM_INTERPOLATIONS = {"nearest": 0, "bilinear": 1}
FILL_MODES = ("constant", "nearest", "wrap", "mirror", "reflect")


def _as_before(y: Any, dtype: Any) -> Any:
    """A result in the type of the images; to integers it is rounded, halves away from zero."""
    if dtype.is_integer:
        y = tf.sign(y) * tf.floor(tf.abs(y) + 0.5)
    return tf.cast(y, dtype)


def map_coordinates(
    inputs: Any, coordinates: Any, order: int, fill_mode: str = "constant", fill_value: Any = 0.0
) -> Any:
    """Differentiable with respect to `inputs` and, with order 1, to `coordinates`."""
    x, at = convert_to_tensor(inputs), convert_to_tensor(coordinates)
    if at.ndim < 2:
        raise ValueError(
            f"Invalid coordinates rank: expected at least rank 2. Received input with shape: {tuple(at.shape)}"
        )
    if at.shape[0] != x.ndim:
        raise ValueError(
            "First dim of `coordinates` must be the same as the rank of `inputs`. Received inputs with shape: "
            f"{tuple(x.shape)} and coordinate leading dim of {at.shape[0]}"
        )
    want_one_of("fill_mode", fill_mode, FILL_MODES)
    if order not in (0, 1):
        raise ValueError(
            f"Invalid value for argument `order`. Expected one of [0, 1]. Received: order={order}"
        )
    y = exact(x)
    places = tf.unstack(tf.cast(at, y.dtype))
    fill = convert_to_tensor(fill_value, y.dtype.name)
    return _as_before(read_between(tf.reshape(y, [-1]), x.shape, places, order, fill_mode, fill), x.dtype)


def _planes(images: Any, ys: Any, xs: Any, interpolation: str, mode: str, fill_value: Any) -> Any:
    """Images `[channels, batch, height, width]` read at places `[batch, ...]`."""
    x = exact(images)
    fill = convert_to_tensor(fill_value, x.dtype.name)
    order = AFFINE_TRANSFORM_INTERPOLATIONS[interpolation]
    y = read_planes(x, tf.cast(ys, x.dtype), tf.cast(xs, x.dtype), order, mode, fill)
    return _as_before(y, images.dtype)


# ---- transforms of planes -----------------------------------------------------------------------


def affine_transform(
    images: Any,
    transform: Any,
    interpolation: str = "bilinear",
    fill_mode: str = "constant",
    fill_value: Any = 0,
    data_format: str | None = None,
) -> Any:
    """A pixel (x, y) comes from `((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k)`, `k = c0 x + c1 y + 1`."""
    want_one_of("interpolation", interpolation, AFFINE_TRANSFORM_INTERPOLATIONS)
    want_one_of("fill_mode", fill_mode, FILL_MODES)
    images, transform = converted(images), convert_to_tensor(transform)
    if transform.ndim not in (1, 2):
        raise ValueError(
            "Invalid transform rank: expected rank 1 (single transform) or rank 2 (batch of transforms). "
            f"Received input with shape: transform.shape={tuple(transform.shape)}"
        )
    layout = Layout(images, data_format)
    x = layout.planes(images)
    transform = wide(tf.reshape(transform, [-1, transform.shape[-1]]))
    rows, columns = projected(transform, *x.shape[1:])
    return layout.from_planes(_planes(x, rows, columns, interpolation, fill_mode, fill_value))


def perspective_transform(
    images: Any,
    start_points: Any,
    end_points: Any,
    interpolation: str = "bilinear",
    fill_value: Any = 0,
    data_format: str | None = None,
) -> Any:
    """Differentiable with respect to the images and both sets of points."""
    want_one_of("interpolation", interpolation, AFFINE_TRANSFORM_INTERPOLATIONS)
    images = converted(images)
    start, end = wide(convert_to_tensor(start_points)), wide(convert_to_tensor(end_points))
    for name, points in (("start_points", start), ("end_points", end)):
        if points.ndim not in (2, 3) or tuple(points.shape[-2:]) != (4, 2):
            raise ValueError(
                f"Invalid {name} shape: expected (4,2) for a single image or (N,4,2) for a batch. "
                f"Received shape: {tuple(points.shape)}"
            )
    if tuple(start.shape) != tuple(end.shape):
        raise ValueError(
            "start_points and end_points must have the same shape. Received "
            f"start_points.shape={tuple(start.shape)}, end_points.shape={tuple(end.shape)}"
        )
    layout = Layout(images, data_format)
    x = layout.planes(images)
    points = [tf.reshape(p, [-1, 4, 2]) for p in (start, end)]
    rows, columns = projected(compute_homography_matrix(*points), *x.shape[1:])
    return layout.from_planes(_planes(x, rows, columns, interpolation, "constant", fill_value))


def compute_homography_matrix(start_points: Any, end_points: Any) -> Any:
    """The eight numbers of the projections, `[batch, 8]`, that take four end points to four start points."""
    start, end = wide(convert_to_tensor(start_points)), wide(convert_to_tensor(end_points))
    (x0, y0), (x1, y1) = tf.unstack(start, axis=-1), tf.unstack(end, axis=-1)
    one, none = tf.ones_like(x1), tf.zeros_like(x1)
    # x0 (c0 x1 + c1 y1 + 1) = a0 x1 + a1 y1 + a2, and the same for y0.
    by_x = tf.stack([x1, y1, one, none, none, none, -x0 * x1, -x0 * y1], -1)
    by_y = tf.stack([none, none, none, x1, y1, one, -y0 * x1, -y0 * y1], -1)
    right = tf.concat([x0, y0], -1)
    return tf.linalg.solve(tf.concat([by_x, by_y], -2), right[..., None])[..., 0]


# ---- elastic transforms -------------------------------------------------------------------------


def elastic_transform(
    images: Any,
    alpha: Any = 20.0,
    sigma: Any = 5.0,
    interpolation: str = "bilinear",
    fill_mode: str = "reflect",
    fill_value: Any = 0.0,
    seed: Any = None,
    data_format: str | None = None,
) -> Any:
    """Every pixel moved by `alpha` times a smooth random field."""
    want_one_of("interpolation", interpolation, AFFINE_TRANSFORM_INTERPOLATIONS)
    want_one_of("fill_mode", fill_mode, FILL_MODES)
    images = converted(images)
    layout = Layout(images, data_format)
    x = layout.planes(images)
    _, batch, height, width = x.shape
    dtype = tf.float64 if x.dtype is tf.float64 else tf.float32
    alpha, sigma = (tf.cast(convert_to_tensor(v), dtype) for v in (alpha, sigma))
    numbers = tf.bitcast(convert_to_tensor(draw_seed(seed), "uint32"), tf.int32)
    noise = tf.cast(tf.random.stateless_normal([2, batch, height, width], numbers), dtype) * sigma
    moved = alpha * tf.matmul(tf.matmul(_smoothing(height, sigma), noise), _smoothing(width, sigma))
    rows, columns = pixel_grid(height, width, dtype)
    return layout.from_planes(
        _planes(x, rows + moved[1], columns + moved[0], interpolation, fill_mode, fill_value)
    )


def _smoothing(size: int, sigma: Any) -> Any:
    """The matrix that blurs an axis with a Gaussian that is cut at three sigma, with zeros around.

    As a matrix, because `sigma`, and with it the width of the kernel, may be known only when it runs.
    """
    radius = tf.floor(tf.floor(6 * sigma) / 2)
    reach = 3 * size
    offsets = tf.abs(tf.range(-reach, reach + 1, dtype=sigma.dtype))
    weights = tf.where(offsets <= radius, tf.exp(-0.5 * (offsets / sigma) ** 2), tf.zeros_like(offsets))
    weights = weights / tf.reduce_sum(weights)
    at = tf.range(size)
    return tf.gather(weights, at[:, None] - at[None] + reach)
