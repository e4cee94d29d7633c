"""Random boxes for cropping: sample_distorted_bounding_box, with the same numbers as TensorFlow for a seed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops.random import stateless_state
from gradtape._src.ops.static import array_of, ints_of
from gradtape._src.tensors import random as _state
from gradtape.image.arguments import as_tensor

F = np.float32


class _Bits:
    """Random numbers made from 32 random bits at a time."""

    def __init__(self, state: Any, count: int) -> None:
        self._bits: Iterator[int] = iter(array_of(ops.random_bits(state, [count], dtypes.uint32)).tolist())

    def unit(self) -> Any:
        """A number in [0, 1)."""
        return np.array(next(self._bits) & 0x7FFFFF | 0x3F800000, np.uint32).view(F) - F(1)

    def below(self, n: int) -> int:
        """One of the numbers 0 to n - 1, with equal probability."""
        if n & n - 1 == 0:
            return next(self._bits) & max(n - 1, 0)
        rest = 0xFFFFFFFF % n + 1
        bits = next(self._bits)
        while bits < rest:
            bits = next(self._bits)
        return bits % n


class _Box(NamedTuple):
    """A box in pixels; y2 and x2 are exclusive."""

    y1: int
    x1: int
    y2: int
    x2: int

    def common(self, other: _Box) -> int:
        height = min(self.y2, other.y2) - max(self.y1, other.y1)
        width = min(self.x2, other.x2) - max(self.x1, other.x1)
        return max(height, 0) * max(width, 0)


def _random_box(
    bits: _Bits, height: int, width: int, areas: tuple[float, float], aspect: np.float32
) -> _Box | None:
    """A box of given proportions, with an area (fraction of the image) in given bounds, at a random position."""
    least, most = (F(a) * F(width) * F(height) for a in areas)

    def round_(x: Any) -> int:
        return int(np.rint(x))

    low, high = round_(np.sqrt(least / aspect)), round_(np.sqrt(most / aspect))
    if round_(F(high) * aspect) > width:
        high = int((width + 0.5 - 1e-7) / float(aspect))
        if round_(F(high) * aspect) > width:
            high -= 1
    high = min(high, height)
    rows = min(low, high)
    if rows < high:
        rows += bits.below(high - rows + 1)
    columns = round_(F(rows) * aspect)
    # A rounding error may be corrected by one row more, or less.
    for step, wrong in ((1, rows * columns < least), (-1, rows * columns > most)):
        if wrong:
            rows += step
            columns = round_(F(rows) * aspect)
    if not (least <= rows * columns <= most and 0 < columns <= width and 0 < rows <= height):
        return None
    y = bits.below(height - rows) if rows < height else 0
    x = bits.below(width - columns) if columns < width else 0
    return _Box(y, x, y + rows, x + columns)


class _Sample(NamedTuple):
    """The crop, for `tf.slice` and for `tf.image.draw_bounding_boxes`."""

    begin: Any
    size: Any
    bboxes: Any


def _sample(
    op: str,
    image_size: Any,
    boxes: Any,
    state: Any,
    covered: Any,
    aspects: Any,
    areas: Any,
    attempts: Any,
    whole: Any,
) -> _Sample:
    size = ints_of(image_size)
    if len(size) != 3 or min(size) <= 0:
        raise InvalidArgumentError(f"{op}: image_size must be [height, width, channels]; got {size}.")
    height, width, _ = size
    corners = np.asarray(array_of(as_tensor(boxes)), F).reshape(-1, 4)
    if not len(corners) and not whole:
        raise InvalidArgumentError(
            f"{op}: No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if you wish "
            "to not provide any bounding boxes."
        )
    if len(corners) and (corners.min() < 0 or corners.max() > 1):
        raise InvalidArgumentError(f"{op}: All bounding box coordinates must be in [0.0, 1.0].")
    image = _Box(0, 0, height, width)
    scale = np.array([height, width, height, width], F)
    objects = [_Box(*map(int, row * scale)) for row in corners] or [image]
    low, high = map(F, aspects or (0.75, 1.33))
    attempts = 100 if attempts is None else int(attempts)
    bits = _Bits(state, 32 * attempts)
    box = image
    for _ in range(attempts):
        aspect = bits.unit() * (high - low) + low
        candidate = _random_box(bits, height, width, tuple(areas or (0.05, 1.0)), aspect)
        if candidate is not None and any(
            candidate.common(o) >= F(covered) * F(o.common(o)) for o in objects if o.common(o) >= 1
        ):
            box = candidate
            break
    return _Sample(
        ops.convert_to_tensor(np.array([box.y1, box.x1, 0], np.int32)),
        ops.convert_to_tensor(np.array([box.y2 - box.y1, box.x2 - box.x1, -1], np.int32)),
        ops.convert_to_tensor((np.array(box, F) / scale).reshape(1, 1, 4)),
    )


def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: int = 0,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> tuple[Any, Any, Any]:
    """A random box that contains enough of some object: a crop of an image for training.

    Args:
      image_size: `[height, width, channels]`.
      bounding_boxes: the objects, `[..., 4]` with `[y1, x1, y2, x2]` from 0 to 1.
      seed: the op seed, see `tf.random.set_seed`; 0 for none.
      min_object_covered: the fraction of an object that must be inside.
      aspect_ratio_range: width divided by height, (0.75, 1.33) by default.
      area_range: fraction of the image, (0.05, 1) by default.
      max_attempts: after this many (100) attempts the result is the whole image.
      use_image_if_no_bounding_boxes: without objects, use the whole image as the object.

    Returns:
      begin, size: for `tf.slice(image, begin, size)`.
      bboxes: the box, `[1, 1, 4]`.
    """
    state = _state.op_stream(
        "sample_distorted_bounding_box", dtypes.float32, seed or None, max_attempts or 100
    )
    return _sample(
        "sample_distorted_bounding_box", image_size, bounding_boxes, state, min_object_covered, aspect_ratio_range,
        area_range, max_attempts, use_image_if_no_bounding_boxes,
    )  # fmt: skip


def stateless_sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: Any,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> tuple[Any, Any, Any]:
    """The same as `sample_distorted_bounding_box`, but the box depends only on the two seeds."""
    return _sample(
        "stateless_sample_distorted_bounding_box", image_size, bounding_boxes, stateless_state(seed),
        min_object_covered, aspect_ratio_range, area_range, max_attempts, use_image_if_no_bounding_boxes,
    )  # fmt: skip
