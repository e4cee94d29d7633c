"""Windows and their positions, common to convolutions, pooling and patches on XLA."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array, lax

from gradtape._src.ops.windows import resolved, results_of

Ints = Sequence[int]


def pairs(paddings: Ints, sizes: Ints, kernel: Ints, strides: Ints, dilations: Ints) -> list[tuple[int, int]]:
    """The paddings before and after each spatial axis."""
    pads = resolved(paddings, sizes, kernel, strides, dilations)
    return list(zip(pads[::2], pads[1::2], strict=True))


def spread(count: int, step: int) -> int:
    """The length of an axis with `step - 1` elements between those it has."""
    return (count - 1) * step + 1 if count else 0


class Axis:
    """The windows along one axis: window i has the elements `i * stride - low + t * dilation`, for t < `size`.

    Attributes:
      count: how many windows there are.
      apart: whether no element is in two windows.
    """

    def __init__(self, length: int, size: int, stride: int, dilation: int, low: int, count: int) -> None:
        self.length, self.size, self.stride, self.dilation = length, size, stride, dilation
        self.low, self.count = low, count
        self.apart = stride >= size and dilation == 1

    def tap(self, x: Array, axis: int, t: int, fill: Array) -> Array:
        """Element t of every window; `fill` where it is outside."""
        start = t * self.dilation - self.low
        stop = start + spread(self.count, self.stride)
        before, after = max(0, -start), max(0, stop - self.length)
        widths = [(0, 0, 0)] * x.ndim
        widths[axis] = (before, after, 0)
        x = lax.pad(x, fill, widths) if before or after else x
        return lax.slice_in_dim(x, start + before, stop + before, self.stride, axis)

    def untap(self, x: Array, axis: int, t: int) -> Array:
        """The transpose of `tap`: zeros with `x` at element t of every window."""
        start = t * self.dilation - self.low
        widths = [(0, 0, 0)] * x.ndim
        widths[axis] = (start, self.length - start - spread(self.count, self.stride), self.stride - 1)
        return lax.pad(x, jnp.zeros((), x.dtype), widths)

    def inside(self, t: int) -> list[bool]:
        """For which windows element t is inside."""
        start = t * self.dilation - self.low
        return [0 <= start + i * self.stride < self.length for i in range(self.count)]


def axes_of(shape: Ints, sizes: Ints, strides: Ints, dilations: Ints, paddings: Ints) -> list[Axis]:
    """The windows along each spatial axis of images `[n, spatial..., channels]`."""
    spatial = shape[1:-1]
    lows = resolved(paddings, spatial, sizes, strides, dilations)[::2]
    counts = [max(0, n) for n in results_of(spatial, sizes, strides, dilations, paddings)]
    return [Axis(*one) for one in zip(spatial, sizes, strides, dilations, lows, counts, strict=True)]
