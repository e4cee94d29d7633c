"""Boxes on images: non-maximum suppression in all its forms, and drawing.

The results depend on values and have no gradient, so they are computed in NumPy, and boxes are compared in
`core/py/boxes.cpp`; a traced function that calls one of these runs eagerly.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError, UnimplementedError
from gradtape._src.ops.static import array_of, ints_of
from gradtape.image.arguments import as_tensor

Similarity = Callable[[int, np.ndarray], np.ndarray]  # the similarity of one candidate to others

# ---- suppression --------------------------------------------------------------------------------


def _iou(boxes: np.ndarray) -> Similarity:
    """Intersection over union; boxes are given by any two opposite corners."""
    low = np.minimum(boxes[:, :2], boxes[:, 2:])
    high = np.maximum(boxes[:, :2], boxes[:, 2:])
    area = (high - low).prod(1)

    def iou(i: int, others: np.ndarray) -> np.ndarray:
        side = np.minimum(high[i], high[others]) - np.maximum(low[i], low[others])
        common = np.maximum(side, 0).prod(1)
        union = area[i] + area[others] - common
        some = (area[i] > 0) & (area[others] > 0)
        return np.where(some, common / np.where(some, union, 1), 0)

    return iou


def _best(boxes: np.ndarray, scores: np.ndarray, most: int, threshold: float, least: float) -> np.ndarray:
    """The same as `_hard`, with the overlap of boxes as similarity. In float32, as in TensorFlow."""
    b, s = (np.ascontiguousarray(x, np.float32) for x in (boxes, scores))
    return _core.best_boxes(b, s, most, threshold, least).numpy()


def _hard(similar: Similarity, scores: np.ndarray, most: int, threshold: float, least: float) -> np.ndarray:
    """The best candidates, each no more similar than `threshold` to a better one."""
    left = np.argsort(-scores, kind="stable")
    left = left[scores[left] > least]
    chosen: list[int] = []
    while left.size and len(chosen) < most:
        best, left = int(left[0]), left[1:]
        chosen.append(best)
        left = left[~(similar(best, left) > threshold)]
    return np.array(chosen, np.int32)


def _soft(similar: Similarity, scores: np.ndarray, most: int, sigma: float, least: float) -> tuple:
    """The best candidates, where similarity to better ones lowers the score."""
    # An entry: score, candidate, and how many of the chosen ones have already lowered the score.
    queue = [(-float(s), i, 0) for i, s in enumerate(scores) if s > least]
    heapq.heapify(queue)
    chosen: list[int] = []
    new: list[float] = []
    while queue and len(chosen) < most:
        score, i, seen = heapq.heappop(queue)
        lowered = -score
        for s in similar(i, np.array(chosen[seen:][::-1], np.int64)) if len(chosen) > seen else ():
            lowered = float(np.float32(lowered) * np.exp(np.float32(-0.5 / sigma) * s * s))
            if lowered <= least:
                break
        if lowered == -score:
            chosen.append(i)
            new.append(lowered)
        elif lowered > least:
            heapq.heappush(queue, (-lowered, i, len(chosen)))
    return np.array(chosen, np.int32), np.array(new, np.float32)


def _arguments(op: str, boxes: Any, scores: Any, most: Any, threshold: Any) -> tuple:
    b, s = np.asarray(array_of(as_tensor(boxes))), np.asarray(array_of(as_tensor(scores)))
    (most,), threshold = ints_of(most), float(threshold)
    if most < 0:
        raise InvalidArgumentError(f"{op}: output size must be non-negative; got {most}.")
    if not 0 <= threshold <= 1:
        raise InvalidArgumentError(f"{op}: iou_threshold must be in [0, 1]; got {threshold}.")
    return b, s, most, threshold


def _want_boxes(op: str, b: np.ndarray, s: np.ndarray) -> None:
    if b.ndim != 2 or b.shape[1] != 4 or s.shape != b.shape[:1]:
        raise InvalidArgumentError(
            f"{op}: wrong shapes; expected boxes: [n, 4], scores: [n]; got boxes: {list(b.shape)}, "
            f"scores: {list(s.shape)}."
        )


def _int32(values: Any) -> _core.Tensor:
    return ops.convert_to_tensor(np.asarray(values, np.int32))


def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = -math.inf,
    name: str | None = None,
) -> Any:
    """The indices of the best boxes, without boxes that overlap a better one.

    Args:
      boxes: `[n, 4]` with `[y1, x1, y2, x2]`.
      scores: `[n]`.
      max_output_size: the largest number of boxes.
      iou_threshold: boxes overlap if their intersection over union is above this.
      score_threshold: only boxes with a higher score count.

    Returns:
      int32 indices, from the highest score to the lowest.
    """
    b, s, most, threshold = _arguments("non_max_suppression", boxes, scores, max_output_size, iou_threshold)
    _want_boxes("non_max_suppression", b, s)
    return _int32(_best(b, s, most, threshold, float(score_threshold)))


def non_max_suppression_with_scores(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = -math.inf,
    soft_nms_sigma: Any = 0.0,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Like `non_max_suppression`, with the scores of the boxes.

    Args:
      soft_nms_sigma: if positive, a box that overlaps better ones gets a lower score instead of being left out
        (https://arxiv.org/abs/1704.04503), and `iou_threshold` is ignored.
    """
    op = "non_max_suppression_with_scores"
    b, s, most, threshold = _arguments(op, boxes, scores, max_output_size, iou_threshold)
    _want_boxes(op, b, s)
    sigma, least = float(soft_nms_sigma), float(score_threshold)
    if sigma < 0:
        raise InvalidArgumentError(f"{op}: soft_nms_sigma must be non-negative; got {sigma}.")
    if sigma:
        chosen, new = _soft(_iou(b), s, most, sigma, least)
    else:
        chosen = _best(b, s, most, threshold, least)
        new = s[chosen]
    return _int32(chosen), ops.convert_to_tensor(new.astype(s.dtype))


def non_max_suppression_padded(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = -math.inf,
    pad_to_max_output_size: bool = False,
    name: str | None = None,
    sorted_input: bool = False,
    canonicalized_coordinates: bool = False,
    tile_size: int = 512,
) -> tuple[Any, Any]:
    """Like `non_max_suppression`, also for batches, and returns the number of boxes.

    Args:
      boxes, scores: `[..., n, 4]` and `[..., n]`.
      pad_to_max_output_size: pad with zeros, so that the shape is known beforehand; required for batches.
      sorted_input, canonicalized_coordinates, tile_size: hints that are not needed here.

    Returns:
      The indices of the boxes, and how many of these are valid.
    """
    op = "non_max_suppression_padded"
    b, s, most, threshold = _arguments(op, boxes, scores, max_output_size, iou_threshold)
    if b.ndim > 2 and not pad_to_max_output_size:
        raise ValueError(
            "'pad_to_max_output_size' (value False) must be True for batched input. Hint: the number of boxes "
            "differs from image to image."
        )
    rows, lines = b.reshape(-1, *b.shape[-2:]), s.reshape(-1, s.shape[-1])
    chosen = []
    for box, score in zip(rows, lines, strict=True):
        _want_boxes(op, box, score)
        chosen.append(_best(box, score, most, threshold, float(score_threshold)))
    counts = np.array([len(f) for f in chosen])
    if not pad_to_max_output_size:
        return _int32(chosen[0]), _int32(counts[0])
    padded = np.zeros((len(chosen), most), np.int32)
    for line, some in zip(padded, chosen, strict=True):
        line[: len(some)] = some
    return _int32(padded.reshape(*b.shape[:-2], most)), _int32(counts.reshape(b.shape[:-2]))


def non_max_suppression_overlaps(
    overlaps: Any,
    scores: Any,
    max_output_size: Any,
    overlap_threshold: Any = 0.5,
    score_threshold: Any = -math.inf,
    name: str | None = None,
) -> Any:
    """Like `non_max_suppression`, with given overlaps `[n, n]`."""
    o, s, most, _ = _arguments("non_max_suppression_overlaps", overlaps, scores, max_output_size, 0)
    if o.shape != (len(s), len(s)):
        raise InvalidArgumentError(
            f"non_max_suppression_overlaps: overlaps must be [n, n] for n scores; got overlaps: {list(o.shape)}, "
            f"scores: {list(s.shape)}."
        )
    return _int32(
        _hard(lambda i, others: o[others, i], s, most, float(overlap_threshold), float(score_threshold))
    )


class CombinedNonMaxSuppression(NamedTuple):
    """The boxes of each image of a batch, padded with zeros."""

    nmsed_boxes: Any
    nmsed_scores: Any
    nmsed_classes: Any
    valid_detections: Any


def combined_non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = -math.inf,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> CombinedNonMaxSuppression:
    """Suppression for each class of each image, then the best boxes of all classes.

    Args:
      boxes: `[batch, n, q, 4]`, where q is 1 or the number of classes.
      scores: `[batch, n, classes]`.
      max_output_size_per_class, max_total_size: the largest number of boxes, per class and in total.
      pad_per_class: pad results to `max_output_size_per_class * classes` boxes if that is less than
        `max_total_size`.
      clip_boxes: clip boxes to [0, 1].
    """
    op = "combined_non_max_suppression"
    b, s, most, threshold = _arguments(op, boxes, scores, max_output_size_per_class, iou_threshold)
    (total,) = ints_of(max_total_size)
    if (
        b.ndim != 4
        or s.ndim != 3
        or b.shape[:2] != s.shape[:2]
        or b.shape[3] != 4
        or b.shape[2] not in (1, s.shape[2])
    ):
        raise InvalidArgumentError(
            f"{op}: wrong shapes; expected boxes: [batch, n, 1 or classes, 4], scores: [batch, n, classes]; got "
            f"boxes: {list(b.shape)}, scores: {list(s.shape)}."
        )
    if total <= 0:
        raise InvalidArgumentError(f"{op}: max_total_size must be > 0; got {total}.")
    classes = s.shape[2]
    size = min(total, most * classes) if pad_per_class else total
    out_boxes = np.zeros((len(b), size, 4), np.float32)
    out_scores, out_classes = np.zeros((2, len(b), size), np.float32)
    counts = np.zeros(len(b), np.int32)
    for image, (box, score) in enumerate(zip(b, s, strict=True)):
        detections: list[tuple] = []
        for c in range(classes):
            own = box[:, min(c, box.shape[1] - 1)]
            chosen = _best(own, score[:, c], most, threshold, float(score_threshold))
            detections += [(score[i, c], c, own[i]) for i in chosen]
        detections.sort(key=lambda f: -f[0])
        counts[image] = len(detections[:size])
        for k, (value, c, corners) in enumerate(detections[:size]):
            out_scores[image, k], out_classes[image, k] = value, c
            out_boxes[image, k] = np.clip(corners, 0, 1) if clip_boxes else corners
    return CombinedNonMaxSuppression(
        *map(ops.convert_to_tensor, (out_boxes, out_scores, out_classes, counts))
    )


def generate_bounding_box_proposals(*args: Any, **kwargs: Any) -> Any:
    """Not available; TensorFlow only has it on devices other than the CPU."""
    raise UnimplementedError(
        "generate_bounding_box_proposals is not part of gradtape. Hint: decode the anchors with ops, then "
        "tf.image.non_max_suppression."
    )


# ---- drawing ------------------------------------------------------------------------------------

_COLOURS = np.array(
    [
        [1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0.5, 0, 0.5, 1], [0.5, 0.5, 0, 1],
        [0.5, 0, 0, 1], [0, 0, 0.5, 1], [0, 1, 1, 1], [1, 0, 1, 1],
    ]
)  # fmt: skip


def draw_bounding_boxes(images: Any, boxes: Any, colors: Any, name: str | None = None) -> Any:
    """Images with boxes drawn on them, one pixel wide.

    Args:
      images: floats `[batch, height, width, channels]` with 1, 3 or 4 channels.
      boxes: `[batch, n, 4]` with `[y1, x1, y2, x2]` from 0 to 1.
      colors: `[colours, channels]` to use in turn; None for ten default colours.
    """
    x = as_tensor(images)
    x = x if x.dtype.is_floating else ops.cast(x, dtypes.float32)
    b = np.asarray(array_of(as_tensor(boxes)), np.float32)
    if x.ndim != 4 or b.ndim != 3 or b.shape[2] != 4 or b.shape[0] != x.shape[0]:
        raise InvalidArgumentError(
            "draw_bounding_boxes: wrong shapes; expected images: [batch, height, width, channels], boxes: "
            f"[batch, n, 4]; got images: {list(x.shape)}, boxes: {list(b.shape)}."
        )
    _, height, width, channels = x.shape
    if channels not in (1, 3, 4):
        raise InvalidArgumentError(
            f"draw_bounding_boxes: Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA); got {channels}."
        )
    table = np.asarray(array_of(as_tensor(colors))) if colors is not None else np.zeros((0, channels))
    if not len(table):
        table = np.ones((1, 4)) if channels == 1 else _COLOURS
    if table.ndim != 2 or table.shape[1] < channels:
        raise InvalidArgumentError(
            "draw_bounding_boxes: colors must have equal or more channels than the image provided; got "
            f"{list(table.shape)} for {channels} channels."
        )
    paint = np.zeros((*b.shape[:1], height, width, channels))
    painted = np.zeros((*b.shape[:1], height, width, 1), bool)
    for image in range(len(b)):
        for k, (y1, x1, y2, x2) in enumerate(b[image]):
            rows, columns = (
                (int(y1 * (height - 1)), int(y2 * (height - 1))),
                (int(x1 * (width - 1)), int(x2 * (width - 1))),
            )
            for line in _lines(rows, columns, height, width):
                paint[image][line] = table[k % len(table), :channels]
                painted[image][line] = True
    return ops.select(painted, ops.cast(ops.convert_to_tensor(paint), x.dtype), x)


def _lines(rows: tuple[int, int], columns: tuple[int, int], height: int, width: int) -> list[tuple]:
    """The parts of an image that the four sides of a box cover; empty if the box is reversed or outside."""
    (top, bottom), (left, right) = rows, columns
    if top > bottom or left > right or top >= height or bottom < 0 or left >= width or right < 0:
        return []
    down = slice(max(top, 0), min(bottom, height - 1) + 1)
    across = slice(max(left, 0), min(right, width - 1) + 1)
    sides: list[tuple] = [(row, across) for row in (top, bottom) if 0 <= row < height]
    return sides + [(down, column) for column in (left, right) if 0 <= column < width]
