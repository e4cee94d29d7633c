"""Pooling on XLA.

On a CPU XLA's own transpose of a maximum (select and scatter) takes 28 ms, the ones below 0.8 ms. Windows that do
not overlap become an axis of their own, along which the largest element is found. For others, it is found axis by
axis, and its cotangent is added back for one position in the window after the other.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from gradtape._src.engines.xla.ops.windows import Axis, Ints, axes_of, pairs, spread

_HALVES = (jnp.float16, jnp.bfloat16)
_WRITTEN_OUT = 25  # positions in a window; larger windows would make long programs


def max_pool(x: Array, sizes: Ints, strides: Ints, dilations: Ints, paddings: Ints) -> Array:
    """The largest element of each window; NaN is larger than any number."""
    return _reduced(x, _lowest(x), lax.max, sizes, strides, dilations, paddings)


def max_pool_argmax(
    x: Array, sizes: Ints, strides: Ints, dilations: Ints, paddings: Ints, batch: bool
) -> Array:
    """The index of the largest element of each window, in its image or among all."""
    shape = x.shape if batch else (1, *x.shape[1:])
    numbers = jnp.arange(math.prod(shape), dtype=jnp.int64).reshape(shape)
    return _chosen(
        x, jnp.broadcast_to(numbers, x.shape), axes_of(x.shape, sizes, strides, dilations, paddings)
    )


def max_pool_pick(x: Array, t: Array, sizes: Ints, strides: Ints, dilations: Ints, paddings: Ints) -> Array:
    """The elements of `t` where the largest elements of the windows of `x` are."""
    return _chosen(x, t, axes_of(x.shape, sizes, strides, dilations, paddings))


def max_unpool(x: Array, g: Array, sizes: Ints, strides: Ints, dilations: Ints, paddings: Ints) -> Array:
    """`g` added where the largest elements of the windows of `x` are."""
    axes = axes_of(x.shape, sizes, strides, dilations, paddings)
    if not g.size:
        return jnp.zeros(x.shape, g.dtype)
    if all(axis.apart and axis.low == 0 for axis in axes):
        return _unpool_apart(x, g, axes)
    if math.prod(sizes) <= _WRITTEN_OUT:
        return _unpool_taps(x, g, axes)
    at = max_pool_argmax(x, sizes, strides, dilations, paddings, True)
    return jnp.zeros(x.size, g.dtype).at[at.reshape(-1)].add(g.reshape(-1)).reshape(x.shape)


def avg_pool(x: Array, sizes: Ints, strides: Ints, dilations: Ints, paddings: Ints) -> Array:
    """The mean of the elements of each window that are inside."""
    counts = _counts(axes_of(x.shape, sizes, strides, dilations, paddings))
    wide = x.astype(jnp.float32) if x.dtype in _HALVES else x
    total = _reduced(wide, 0, lax.add, sizes, strides, dilations, paddings)
    return total / counts.astype(total.dtype)


def avg_unpool(g: Array, shape: Ints, sizes: Ints, strides: Ints, dilations: Ints, paddings: Ints) -> Array:
    """Distributes each element of `g` equally over the elements of its window."""
    axes = axes_of(shape, sizes, strides, dilations, paddings)
    if not g.size:
        return jnp.zeros(shape, g.dtype)
    wide = g.astype(jnp.float32) if g.dtype in _HALVES else g
    parts = wide / _counts(axes).astype(wide.dtype)
    if all(axis.apart and axis.low == 0 for axis in axes):
        return _together(jnp.broadcast_to(_with_taps(parts), _tapped(parts, axes)), axes)
    # Each element gets a share from every window that it is in: a sum over windows of the dilated shares.
    widths = [(0, 0, 0)]
    for axis in axes:
        before = (axis.size - 1) * axis.dilation - axis.low
        reach = axis.length + (axis.size - 1) * axis.dilation
        widths.append((before, reach - before - spread(axis.count, axis.stride), axis.stride - 1))
    out = lax.pad(parts, jnp.zeros((), parts.dtype), [*widths, (0, 0, 0)])
    return _reduced(out, 0, lax.add, sizes, [1] * len(sizes), dilations, [])


def _reduced(
    x: Array, start: Any, combine: Any, sizes: Ints, strides: Ints, dilations: Ints, paddings: Ints
) -> Array:
    pads = pairs(paddings, x.shape[1:-1], sizes, strides, dilations)
    return lax.reduce_window(
        x, np.asarray(start, x.dtype), combine, (1, *sizes, 1), (1, *strides, 1), [(0, 0), *pads, (0, 0)],
        window_dilation=(1, *dilations, 1),
    )  # fmt: skip


def _lowest(x: Array) -> Any:
    return -jnp.inf if jnp.issubdtype(x.dtype, jnp.floating) else jnp.iinfo(x.dtype).min


def _counts(axes: list[Axis]) -> np.ndarray:
    """How many elements of each window are inside."""
    counts = np.ones(())
    for axis in axes:
        counts = np.multiply.outer(counts, np.sum([axis.inside(t) for t in range(axis.size)], 0))
    return counts[..., None]


# ---- the largest element --------------------------------------------------------------------------


def _chosen(x: Array, t: Array, axes: list[Axis]) -> Array:
    """The elements of `t` at the first of the largest elements of the windows of `x`, found axis by axis.

    The first of equal elements in row-major order is also the first in its row, so the last axis comes first.
    """
    for at, axis in reversed(list(enumerate(axes, 1))):
        x, t = _chosen_along(x, t, at, axis)
    return t


def _chosen_tap(x: Array, axes: list[Axis]) -> Array:
    """The position in its window of the first of the largest elements."""
    places, factor = jnp.zeros(x.shape, jnp.int32), 1
    for at, axis in reversed(list(enumerate(axes, 1))):
        x, places = _chosen_along(x, places, at, axis, factor)
        factor *= axis.size
    return places


def _chosen_along(x: Array, t: Array, at: int, axis: Axis, factor: int = 0) -> tuple[Array, Array]:
    """The largest elements along one axis, and `t` there, plus `factor` times the position in the window."""
    shape = [1] * x.ndim
    shape[at] = axis.count
    best = chosen = None
    begun = np.zeros(axis.count, bool)
    for k in range(axis.size):
        element = axis.tap(x, at, k, jnp.asarray(_lowest(x), x.dtype))
        other = axis.tap(t, at, k, jnp.zeros((), t.dtype)) + jnp.asarray(k * factor, t.dtype)
        if best is None or chosen is None:
            best, chosen, begun = element, other, np.array(axis.inside(k))
            continue
        larger = (element > best) | ((element != element) & (best == best))
        inside = np.array(axis.inside(k))
        if not (begun.all() and inside.all()):
            larger = (larger & inside.reshape(shape)) | (inside & ~begun).reshape(shape)
            begun |= inside
        best, chosen = jnp.where(larger, element, best), jnp.where(larger, other, chosen)
    assert best is not None and chosen is not None
    return best, chosen


# ---- windows without overlap ----------------------------------------------------------------------
# Images are [n, count, size, ..., channels], and smaller ones, with one number per window, are [n, count, 1, ...,
# channels].


def _unpool_apart(x: Array, g: Array, axes: list[Axis]) -> Array:
    windows = _apart(x, axes)
    taps = list(range(2, windows.ndim - 1, 2))
    sizes = [windows.shape[a] for a in taps]
    first = jnp.argmax(jnp.moveaxis(windows, taps, range(len(taps))).reshape(-1, *g.shape), 0)
    own = jnp.arange(math.prod(sizes)).reshape([n for size in sizes for n in (1, size)] + [1])
    return _together(jnp.where(_with_taps(first) == own, _with_taps(g), jnp.zeros((), g.dtype)), axes)


def _apart(x: Array, axes: list[Axis]) -> Array:
    """Images as windows. Elements outside of windows are cut off; missing ones are the lowest number."""
    widths = [(0, axis.count * axis.stride - axis.length, 0) for axis in axes]
    if any(after for _, after, _ in widths):
        x = lax.pad(x, jnp.asarray(_lowest(x), x.dtype), [(0, 0, 0), *widths, (0, 0, 0)])
    x = x.reshape(x.shape[0], *(n for axis in axes for n in (axis.count, axis.stride)), x.shape[-1])
    for at, axis in enumerate(axes):
        x = lax.slice_in_dim(x, 0, axis.size, axis=2 * at + 2)
    return x


def _together(x: Array, axes: list[Axis]) -> Array:
    """Windows as images, with zeros outside of the windows."""
    zero = jnp.zeros((), x.dtype)
    beside = [(0, axis.stride - axis.size, 0) for axis in axes]
    if any(after for _, after, _ in beside):
        x = lax.pad(x, zero, [(0, 0, 0), *(w for one in beside for w in ((0, 0, 0), one)), (0, 0, 0)])
    x = x.reshape(x.shape[0], *(axis.count * axis.stride for axis in axes), x.shape[-1])
    widths = [(0, axis.length - axis.count * axis.stride, 0) for axis in axes]
    return lax.pad(x, zero, [(0, 0, 0), *widths, (0, 0, 0)]) if any(after for _, after, _ in widths) else x


def _with_taps(x: Array) -> Array:
    return jnp.expand_dims(x, range(2, 2 * x.ndim - 3, 2))


def _tapped(x: Array, axes: list[Axis]) -> tuple[int, ...]:
    return (x.shape[0], *(n for axis in axes for n in (axis.count, axis.size)), x.shape[-1])


# ---- windows that overlap -------------------------------------------------------------------------


def _unpool_taps(x: Array, g: Array, axes: list[Axis]) -> Array:
    """`g` added at the largest element of each window, for one position in the windows after the other."""
    chosen = _chosen_tap(x, axes)
    parts = []
    for k, tap in enumerate(np.ndindex(*(axis.size for axis in axes))):
        part = jnp.where(chosen == k, g, jnp.zeros((), g.dtype))
        for at, (t, axis) in enumerate(zip(tap, axes, strict=True), 1):
            part = axis.untap(part, at, t)
        parts.append(part)
    return reduce(jnp.add, parts)
