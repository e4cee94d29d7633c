"""Pooling by a ratio that need not be a whole number (`tf.nn.fractional_max_pool`), and user-defined
convolutions over dilated images (`tf.nn.with_space_to_batch`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base.errors import InvalidArgumentError, Untraceable
from gradtape._src.ops.creation import constant
from gradtape._src.ops.join import concat
from gradtape._src.ops.patches import batch_to_space, space_to_batch
from gradtape._src.ops.pooling import avg_pool, max_pool
from gradtape._src.ops.static import array_of, ints_of
from gradtape._src.ops.table import composite
from gradtape._src.tensors.conversion import as_tensor

__all__ = ["fractional_avg_pool", "fractional_max_pool", "with_space_to_batch"]


def _ratios(op, pooling_ratio):
    ratios = [float(v) for v in np.reshape(array_of(pooling_ratio), -1)]
    if len(ratios) == 4 and (ratios[0] != 1 or ratios[3] != 1):
        raise ValueError(
            f"{op}: pooling_ratio should have first and last elements with value 1.0. Received: {pooling_ratio}"
        )
    ratios = ratios * 2 if len(ratios) == 1 else ratios[1:3] if len(ratios) == 4 else ratios
    if len(ratios) != 2:
        raise ValueError(f"{op}: pooling_ratio should be of length 1, 2 or 4. Received: {pooling_ratio}")
    if any(r < 1 for r in ratios):
        raise ValueError(f"{op}: pooling_ratio must be at least 1. Received: {pooling_ratio}")
    return ratios


def _borders(size, cells, pseudo_random, rng):
    """The boundaries of the cells along an axis; cells differ in size by at most one.

    B. Graham, Fractional max-pooling, arXiv:1412.6071.
    """
    if pseudo_random:
        start = rng.uniform()
        ends = [math.ceil(size * (i + start) / cells) for i in range(cells + 1)]
        return [end - ends[0] for end in ends[:-1]] + [size]
    sizes = np.full(cells, size // cells)
    sizes[: size % cells] += 1
    rng.shuffle(sizes)
    return [0, *np.cumsum(sizes).tolist()]


def _along(x, axis, borders, overlapping, row):
    """The results of `row` for the cells along one axis."""
    parts = []
    for begin, end in zip(borders[:-1], borders[1:], strict=True):
        end = min(end + overlapping, borders[-1])
        window = [end - begin, 1] if axis == 1 else [1, end - begin]
        cell = x[:, begin:end] if axis == 1 else x[:, :, begin:end]
        parts.append(row(cell, window, [1, 1], [1, 1], []))
    return concat(parts, axis)


def _fractional(op, row, value, pooling_ratio, pseudo_random, overlapping, seed):
    x = as_tensor(value)
    if x._symbol is not None:
        raise Untraceable(f"{op} draws new cells for each call")
    if x.ndim != 4:
        raise InvalidArgumentError(f"{op}: value must be 4-dimensional; got {x.shape}.")
    rng = np.random.default_rng(seed or None)
    borders = []
    for size, ratio in zip(x.shape[1:3], _ratios(op, pooling_ratio), strict=True):
        cells = math.floor(size / ratio)
        if cells < 1:
            raise InvalidArgumentError(f"{op}: pooling_ratio {ratio} leaves nothing of a size of {size}.")
        borders.append(_borders(size, cells, pseudo_random, rng))
    for axis, b in enumerate(borders, 1):
        x = _along(x, axis, b, int(overlapping), row)
    return x, constant(borders[0], "int64"), constant(borders[1], "int64")


@composite("nn.fractional_max_pool")
def fractional_max_pool(
    value: Any, pooling_ratio: Any, pseudo_random: bool = False, overlapping: bool = False, seed: int = 0,
    name: str | None = None,
) -> tuple[_core.Tensor, _core.Tensor, _core.Tensor]:  # fmt: skip
    """Max pooling over cells of random sizes, so that an image can shrink by any ratio.

    Args:
      pooling_ratio: at least 1: one number, one each for height and width, or one for each axis.
      pseudo_random: derive all cells from one random number, instead of drawing each size.
      overlapping: cells include the first row and column of the next.
      seed: a nonzero seed gives the same cells in every call; 0 draws new ones.

    Returns:
      The result, and the boundaries of the cells along rows and columns.
    """
    op = "fractional_max_pool"
    return _fractional(op, max_pool, value, pooling_ratio, pseudo_random, overlapping, seed)


@composite("nn.fractional_avg_pool")
def fractional_avg_pool(
    value: Any, pooling_ratio: Any, pseudo_random: bool = False, overlapping: bool = False, seed: int = 0,
    name: str | None = None,
) -> tuple[_core.Tensor, _core.Tensor, _core.Tensor]:  # fmt: skip
    """Average pooling over cells of random sizes; see `fractional_max_pool`."""
    op = "fractional_avg_pool"
    return _fractional(op, avg_pool, value, pooling_ratio, pseudo_random, overlapping, seed)


@composite("nn.with_space_to_batch")
def with_space_to_batch(
    input, dilation_rate, padding, op, filter_shape=None, spatial_dims=None, data_format=None
):
    """Runs `op(x, num_spatial_dims, padding)` with dilation, on images made of every `dilation_rate`-th pixel.

    Args:
      padding: "VALID" or "SAME"; "SAME" needs `filter_shape`, which begins with the sizes of the window.
      spatial_dims: the axes of `input` that are dilated; by default those after the batch.
    """
    x = as_tensor(input)
    rates = ints_of(dilation_rate)
    dims = len(rates)
    if any(r < 1 for r in rates):
        raise ValueError(f"with_space_to_batch: all values of `dilation_rate` must be positive; got {rates}.")
    first = 2 if data_format is not None and str(data_format).startswith("NC") else 1
    axes = list(range(first, first + dims)) if spatial_dims is None else ints_of(spatial_dims)
    if all(r == 1 for r in rates):
        return op(x, dims, padding)
    pads = [[0, 0] for _ in rates]
    if padding == "SAME":
        if filter_shape is None:
            raise ValueError("with_space_to_batch: `filter_shape` must be given for `SAME` padding.")
        reach = [(k - 1) * r for k, r in zip(ints_of(filter_shape), rates, strict=False)]
        pads = [[n // 2, n - n // 2] for n in reach]
    elif padding != "VALID":
        raise ValueError(f"with_space_to_batch: `padding` must be 'SAME' or 'VALID'; got {padding!r}.")
    # Axes in between that are not dilated have blocks of 1.
    count = max(axes)
    blocks, edges, crops = [1] * count, [[0, 0] for _ in range(count)], [[0, 0] for _ in range(count)]
    for axis, rate, (low, high) in zip(axes, rates, pads, strict=True):
        more = -(x.shape[axis] + low + high) % rate
        blocks[axis - 1], edges[axis - 1], crops[axis - 1] = rate, [low, high + more], [0, more]
    return batch_to_space(op(space_to_batch(x, blocks, edges), dims, "VALID"), blocks, crops)
