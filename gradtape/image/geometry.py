"""Moves pixels: flips, rotations, crops, borders, patches. All of these are linear and preserve the type."""

from __future__ import annotations

from typing import Any

from gradtape._src import ops
from gradtape._src.base.errors import InvalidArgumentError, UnimplementedError
from gradtape._src.ops.static import ints_of
from gradtape.image.arguments import as_tensor, at_least_3d, integer, three_or_four

# ---- flips and rotations ------------------------------------------------------------------------


def flip_left_right(image: Any) -> Any:
    """An image or batch with its columns in the opposite order."""
    return ops.reverse(_flippable(image), [-2])


def flip_up_down(image: Any) -> Any:
    """An image or batch with its rows in the opposite order."""
    return ops.reverse(_flippable(image), [-3])


def _flippable(image: Any) -> Any:
    at_least_3d(image)
    return three_or_four(image)


def transpose(image: Any, name: str | None = None) -> Any:
    """An image or batch with rows and columns exchanged."""
    x = _flippable(image)
    return ops.transpose(x, [1, 0, 2] if x.ndim == 3 else [0, 2, 1, 3])


def rot90(image: Any, k: Any = 1, name: str | None = None) -> Any:
    """An image or batch rotated counter-clockwise by `k` times 90 degrees."""
    x = _flippable(image)
    turns = integer(k) % 4
    if turns == 0:
        return x
    if turns == 2:
        return ops.reverse(x, [-3, -2])
    return ops.reverse(transpose(x), [-3 if turns == 1 else -2])


# ---- crops and borders --------------------------------------------------------------------------


def _cropped(x: Any, top: int, left: int, height: int, width: int) -> Any:
    return x[..., top : top + height, left : left + width, :]


def central_crop(image: Any, central_fraction: Any) -> Any:
    """The middle of an image or batch, `central_fraction` of its height and of its width."""
    x = as_tensor(image)
    at_least_3d(x)
    if x.ndim > 4:
        raise ValueError(f"`image` should either be a Tensor with rank = 3 or rank = 4. Had rank = {x.ndim}.")
    fraction = float(central_fraction)
    if not 0.0 < fraction <= 1.0:
        raise ValueError(f"central_fraction must be within (0, 1]. Hint: got {fraction}.")
    if fraction == 1.0:
        return x
    height, width = tuple(x.shape)[-3:-1]
    top, left = int((height - height * fraction) / 2), int((width - width * fraction) / 2)
    return _cropped(x, top, left, height - 2 * top, width - 2 * left)


def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Any:
    """The part of an image or batch at the offsets, of the target size.

    Raises:
      ValueError: if the part is not inside the image.
    """
    x = three_or_four(image)
    top, left, height, width = map(integer, (offset_height, offset_width, target_height, target_width))
    _want(left >= 0, "offset_width must be >= 0.")
    _want(top >= 0, "offset_height must be >= 0.")
    _want(width > 0, "target_width must be > 0.")
    _want(height > 0, "target_height must be > 0.")
    _want(x.shape[-2] >= left + width, "width must be >= target + offset.")
    _want(x.shape[-3] >= top + height, "height must be >= target + offset.")
    return _cropped(x, top, left, height, width)


def pad_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Any:
    """An image or batch placed at the offsets in a frame of zeros of the target size.

    Raises:
      ValueError: if the image does not fit into the frame.
    """
    x = three_or_four(image)
    top, left, height, width = map(integer, (offset_height, offset_width, target_height, target_width))
    bottom, right = height - top - x.shape[-3], width - left - x.shape[-2]
    _want(top >= 0, "offset_height must be >= 0")
    _want(left >= 0, "offset_width must be >= 0")
    _want(right >= 0, "width must be <= target - offset")
    _want(bottom >= 0, "height must be <= target - offset")
    if not (top or left or bottom or right):
        return x
    return ops.pad(x, [[0, 0]] * (x.ndim - 3) + [[top, bottom], [left, right], [0, 0]])


def resize_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Any:
    """An image or batch cropped or padded with zeros, evenly on both sides, to the target size."""
    x = three_or_four(image)
    height, width = integer(target_height), integer(target_width)
    _want(width > 0, "target_width must be > 0.")
    _want(height > 0, "target_height must be > 0.")
    more_rows, more_columns = height - x.shape[-3], width - x.shape[-2]
    x = crop_to_bounding_box(
        x,
        max(-more_rows // 2, 0),
        max(-more_columns // 2, 0),
        min(height, x.shape[-3]),
        min(width, x.shape[-2]),
    )
    return pad_to_bounding_box(x, max(more_rows // 2, 0), max(more_columns // 2, 0), height, width)


def _want(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


# ---- patches ------------------------------------------------------------------------------------


def extract_patches(
    images: Any, sizes: Any, strides: Any, rates: Any, padding: str, name: str | None = None
) -> Any:
    """The patches of images, flattened along the last axis: `[batch, rows, columns, pixels * channels]`.

    Args:
      images: a tensor `[batch, height, width, channels]`.
      sizes: `[1, height, width, 1]` of a patch.
      strides: `[1, rows, columns, 1]` from one patch to the next.
      rates: `[1, rows, columns, 1]` from one pixel of a patch to the next.
      padding: "VALID": only patches inside the image; "SAME": the image is padded with zeros.
    """
    x = as_tensor(images)
    if x.ndim != 4:
        raise InvalidArgumentError(f"extract_patches: input must be 4-dimensional; got {list(x.shape)}.")
    windows = [_inner_two(v, what) for v, what in ((sizes, "ksizes"), (strides, "strides"), (rates, "rates"))]
    sides = []
    for size, k, step, rate in zip(tuple(x.shape)[1:3], *windows, strict=True):
        reach = (k - 1) * rate + 1
        if padding.upper() == "SAME":
            more = max((-(-size // step) - 1) * step + reach - size, 0)
            sides += [more // 2, more - more // 2]
        elif padding.upper() == "VALID":
            sides += [0, 0]
            if size - reach < -step:
                raise InvalidArgumentError(
                    f"extract_patches: patches of {reach} pixels do not fit; got images: {x.dtype.name}{list(x.shape)}."
                )
        else:
            raise InvalidArgumentError(
                f"extract_patches: padding must be 'VALID' or 'SAME'; got {padding!r}."
            )
    return ops.patches(x, *windows, sides)


def _inner_two(values: Any, what: str) -> list[int]:
    some = ints_of(values)
    if len(some) != 4:
        raise InvalidArgumentError(f"extract_patches: {what} must be [1, rows, columns, 1]; got {some}.")
    if some[0] != 1 or some[3] != 1:
        raise UnimplementedError(
            f"extract_patches: patches extend across space alone; expected {what} = [1, rows, columns, 1]; got {some}."
        )
    if min(some) < 1:
        raise InvalidArgumentError(f"extract_patches: {what} must be positive; got {some}.")
    return some[1:3]
