"""Interpolation between the pixels of images, and projections of planes that use it.

`read_between` is used by `tf.raw_ops.ImageProjectiveTransformV3` here, and by `map_coordinates` and the affine,
perspective and elastic transforms of the Keras backend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops.static import ints_of
from gradtape._src.tapes.custom_gradient import custom_gradient
from gradtape._src.tensors.conversion import as_tensor

_TYPES = ("uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64")
_INTERPOLATIONS = {"NEAREST": 0, "BILINEAR": 1}
_FILL_MODES = ("REFLECT", "WRAP", "CONSTANT", "NEAREST")

# ---- values between pixels ----------------------------------------------------------------------


def _index(place: Any, size: int, mode: str) -> tuple[Any, Any]:
    """The pixel for an integer position, and whether it exists (None if it always does)."""
    if mode == "constant":
        inside = ops.logical_and(place >= 0, place <= size - 1)
        return ops.cast(ops.where(inside, place, ops.zeros_like(place)), dtypes.int32), inside
    if mode == "nearest":
        place = ops.clip_by_value(place, 0, size - 1)
    elif mode == "wrap":
        place = ops.floormod(place, size)
    elif mode == "reflect":  # d c b a | a b c d | d c b a
        place = ops.floormod(place, 2 * size)
        place = ops.minimum(place, 2 * size - 1 - place)
    else:  # mirror: d c b | a b c d | c b a
        turn = max(2 * (size - 1), 1)
        place = ops.floormod(place, turn)
        place = ops.minimum(place, turn - place) if size > 1 else ops.zeros_like(place)
    return ops.cast(place, dtypes.int32), None


def _neighbours(place: Any, size: int, order: int, mode: str) -> list[tuple]:
    """The pixels along an axis that contribute to a value: index, whether the pixel exists, weight."""
    if order == 0:
        return [(*_index(ops.floor(place + 0.5), size, mode), None)]
    low = ops.floor(place)
    part = place - low
    return [(*_index(low, size, mode), 1 - part), (*_index(low + 1, size, mode), part)]


def read_between(
    pixels: Any, sizes: Sequence[int], places: list, order: int, mode: str, fill: Any, start: Any = None
) -> Any:
    """Values of `pixels` at `places`.

    Args:
      pixels: `[..., number of pixels]`: the pixels of arrays of the shape `sizes`, one array after the other.
        Floats if `order` is 1.
      places: for each axis, the positions in pixels; all of one shape, which the result has after `...`.
      order: 0 for the nearest pixel, 1 for linear interpolation.
      mode: the values outside: "constant" (which is `fill`), "nearest", "wrap", "reflect" or "mirror".
      start: for each position, the index of the first pixel of the array to read.
    """
    # NaN counts as outside.
    places = [ops.where(ops.is_finite(p), p, ops.convert_to_tensor(-2, p.dtype)) for p in places]
    axes = [_neighbours(p, n, order, mode) for p, n in zip(places, sizes, strict=True)]

    def along(axis: int, index: Any, exists: Any) -> Any:
        """The values of the pixels `index`, which is known up to `axis`; the last axis is summed first."""
        if axis == len(axes):
            value = ops.gather(pixels, index if start is None else index + start, axis=pixels.ndim - 1)
            return value if exists is None else ops.where(exists, value, fill)
        total = None
        for at, inside, weight in axes[axis]:
            both = inside if exists is None or inside is None else ops.logical_and(exists, inside)
            value = along(
                axis + 1, at if axis == 0 else index * sizes[axis] + at, exists if both is None else both
            )
            value = value if weight is None else value * weight
            total = value if total is None else total + value
        return total

    return along(0, None, None)


def read_planes(x: Any, rows: Any, columns: Any, order: int, mode: str, fill: Any) -> Any:
    """Images `[channels, batch, height, width]` read at positions `[batch, ...]`."""
    channels, batch, height, width = x.shape
    start = ops.reshape(ops.range_(batch) * (height * width), [batch, *[1] * (rows.ndim - 1)])
    pixels = ops.reshape(x, [channels, batch * height * width])
    return read_between(pixels, (height, width), [rows, columns], order, mode, fill, start)


def pixel_grid(height: int, width: int, dtype: Any) -> tuple[Any, Any]:
    """The rows `[height, 1]` and columns `[1, width]` of pixels."""
    return ops.range_(height, dtype=dtype)[:, None], ops.range_(width, dtype=dtype)[None]


# ---- projections --------------------------------------------------------------------------------


def projected(transform: Any, batch: int, height: int, width: int) -> tuple[Any, Any]:
    """The source positions of pixels under transforms `[batch or 1, 8]`, as rows and columns.

    A pixel (x, y) comes from `((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k)`, `k = c0 x + c1 y + 1`.
    """
    y, x = pixel_grid(height, width, transform.dtype)
    a0, a1, a2, b0, b1, b2, c0, c1 = (v[:, None, None] for v in ops.unstack(transform, num=8, axis=1))
    scale = c0 * x + c1 * y + 1
    shape = [batch, height, width]
    rows = (b0 * x + b1 * y + b2) / scale
    columns = (a0 * x + a1 * y + a2) / scale
    return ops.broadcast_to(rows, shape), ops.broadcast_to(columns, shape)


def _mapped(place: Any, size: int, mode: str) -> Any:
    """Maps positions along an axis into the image; there is nothing between the last pixel and the first one."""
    if mode == "CONSTANT":
        return place
    far = abs(place)
    inside = ops.logical_and(place >= 0, place <= size - 1)
    if mode == "REFLECT" and size > 1:
        turn = 2 * size
        far = ops.floormod(far, turn)
        above = ops.where(far >= size, turn - 1 - far, far)
        below = ops.where(far > size, turn - far, far - 1)
        place = ops.where(place < 0, below, above)
    elif mode == "WRAP" and size > 1:
        turns = ops.floor(far / (size - 1))
        outside = ops.where(place < 0, place + size * (turns + 1), place - size * turns)
        place = ops.where(inside, place, outside)
    return ops.clip_by_value(place, 0, size - 1)


def _rounded(place: Any) -> Any:
    """The nearest integer, ties away from zero."""
    low = ops.floor(place)
    part = place - low
    up = ops.where(place < 0, part > 0.5, part >= 0.5)
    return ops.where(up, low + 1, low)


def _inverted(transforms: Any) -> Any:
    """The inverse projections."""
    full = ops.concat([transforms, ops.ones([transforms.shape[0], 1], transforms.dtype)], 1)
    flat = ops.reshape(ops.inv(ops.reshape(full, [-1, 3, 3])), [-1, 9])
    return (flat / flat[:, 8:])[:, :8]


def _transformed(x: Any, transforms: Any, height: int, width: int, method: str, mode: str, fill: Any) -> Any:
    places = list(projected(transforms, x.shape[0], height, width))
    finite = [ops.is_finite(p) for p in places]
    places = [_mapped(p, n, mode) for p, n in zip(places, x.shape[1:3], strict=True)]
    # -2 is outside, together with the neighbouring pixels.
    places = [
        ops.where(there, p, ops.convert_to_tensor(-2, p.dtype))
        for there, p in zip(finite, places, strict=True)
    ]
    if method == "NEAREST":
        places = [_rounded(p) for p in places]
    else:  # TensorFlow computes in float32 for all images
        x, fill = ops.cast(x, dtypes.float32), ops.cast(fill, dtypes.float32)
    planes = ops.transpose(x, [3, 0, 1, 2])
    out = read_planes(planes, places[0], places[1], _INTERPOLATIONS[method], "constant", fill)
    return ops.transpose(out, [1, 2, 3, 0])


@one_call
def projective_transform(
    images: Any,
    transforms: Any,
    output_shape: Any,
    interpolation: str,
    fill_mode: str = "CONSTANT",
    fill_value: Any = 0.0,
) -> Any:
    """Images `[batch, height, width, channels]` under projections of their planes, `[batch or 1, 8]`.

    The gradient with respect to the images is TensorFlow's: the upstream gradient under the inverse projections,
    which is the transpose only for rotations and shifts. There is no gradient with respect to other arguments.

    >>> import gradtape as tf
    >>> from gradtape.image.projection import projective_transform
    >>> row = tf.reshape([1.0, 2.0, 4.0], [1, 1, 3, 1])
    >>> projective_transform(row, [[1.0, 0, 0.5, 0, 1, 0, 0, 0]], [1, 3], "BILINEAR")[0, 0, :, 0].numpy()
    array([1.5, 3. , 2. ], dtype=float32)
    """
    x, transforms = as_tensor(images), ops.convert_to_tensor(transforms, dtypes.float32)
    fill = ops.convert_to_tensor(fill_value, dtypes.float32)
    size = ints_of(output_shape)
    wrong = (
        f"Value for attr 'dtype' of {x.dtype.name} is not in the list of allowed values: {', '.join(_TYPES)}"
        if x.dtype.name not in _TYPES
        else f"Input images must have rank 4; got the shape {x.shape}"
        if x.ndim != 4
        else f"Input transform should be num_images x 8 or 1 x 8; got the shape {transforms.shape}"
        if tuple(transforms.shape) not in ((1, 8), (x.shape[0], 8))
        else f"output shape must have two elements; got {size}"
        if len(size) != 2
        else f"output dimensions must be positive; got {size}"
        if min(size) <= 0
        else f"fill_value must be a scalar; got the shape {fill.shape}"
        if fill.ndim
        else f"Invalid interpolation {interpolation}. Supported types: {', '.join(_INTERPOLATIONS)}"
        if interpolation not in _INTERPOLATIONS
        else f"Invalid mode {fill_mode}. Supported types: {', '.join(_FILL_MODES)}"
        if fill_mode not in _FILL_MODES
        else None
    )
    if wrong:
        raise InvalidArgumentError(None, None, f"ImageProjectiveTransform: {wrong}.")
    height, width = size

    @custom_gradient
    def transform(x: Any) -> tuple[Any, Callable]:
        out = _transformed(x, transforms, height, width, interpolation, fill_mode, ops.cast(fill, x.dtype))

        def grad(upstream: Any) -> Any:
            back = _inverted(transforms)
            return projective_transform(upstream, back, x.shape[1:3], interpolation, fill_mode)

        return ops.cast(out, x.dtype), grad

    transforms, fill = ops.stop_gradient(transforms), ops.stop_gradient(fill)
    return transform(x)
