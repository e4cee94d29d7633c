"""Images on XLA: the rows of `gradtape/image`, products with band matrices, and sampling between pixels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from gradtape._src.engines.xla.ops.indexed import inside

_Check = Callable[[Any], None]
_WRITTEN_OUT = 16  # elements in a row of a band matrix; longer rows would make long programs


def resample(x: Array, places: Array, rows: Array, columns: Array, *back: Array, check: _Check) -> Array:
    """Images times a band matrix along the height and one along the width, both given by their bands."""
    for axis, at, weights in ((1, places[: rows.shape[0]], rows), (2, places[rows.shape[0] :], columns)):
        check(inside(at, x.shape[axis] - weights.shape[1] + 1))
        check(at[1:] >= at[:-1])
        x = _banded(x, axis, at, weights)
    return x


def _banded(x: Array, axis: int, at: Array, weights: Array) -> Array:
    """The product of images and a matrix whose row i has `weights[i]` from column `at[i]` on, along an axis.

    A band of a few elements is a sum of pixels (5 ms, the product 130: eight images from 224 to 448 pixels).
    """
    taps = at[:, None] + jnp.arange(weights.shape[1], dtype=at.dtype)
    if weights.shape[1] <= _WRITTEN_OUT:
        parts = [
            jnp.expand_dims(weights[:, t], [k for k in range(4) if k != axis])
            * jnp.take(x, taps[:, t], axis, mode="clip")
            for t in range(weights.shape[1])
        ]
        return reduce(jnp.add, parts)
    hot = taps[..., None] == jnp.arange(x.shape[axis], dtype=at.dtype)
    matrix = jnp.sum(jnp.where(hot, weights[..., None], 0), 1)
    # In full precision: accelerators would round pixels to 10 bits of mantissa.
    form = "nhwc,oh->nowc" if axis == 1 else "nhwc,ow->nhoc"
    return jnp.einsum(form, x, matrix, precision=lax.Precision.HIGHEST)


# ---- points between pixels ------------------------------------------------------------------------
# A point has two neighbours along each axis: pairs of indices and weights, four of them together.


def sample_grid(x: Array, at: Array, ys: Array, xs: Array, dy: bool, dx: bool, *, check: _Check) -> Array:
    """The values, or slopes, of images at the points (ys, xs) of grids."""
    check(inside(at, x.shape[0]))
    out = jnp.zeros((*ys.shape, xs.shape[1], x.shape[3]), x.dtype)
    for places, weights in _corners(at, ys, xs, x.shape, dy, dx):
        out = out + weights * x.at[places].get(mode="clip")
    return out


def unsample_grid(
    g: Array, at: Array, ys: Array, xs: Array, shape: Sequence[int], dy: bool, dx: bool, *, check: _Check
) -> Array:
    """The transpose: images with `g` scattered to the pixels around its points."""
    check(inside(at, shape[0]))
    out = jnp.zeros(shape, g.dtype)
    for places, weights in _corners(at, ys, xs, shape, dy, dx):
        out = out.at[places].add(weights * g, mode="drop")
    return out


def _corners(
    at: Array, ys: Array, xs: Array, shape: Sequence[int], dy: bool, dx: bool
) -> list[tuple[tuple[Array, Array, Array], Array]]:
    return [
        ((at[:, None, None], y[:, :, None], x[:, None, :]), (a[:, :, None] * b[:, None, :])[..., None])
        for y, a in _neighbours(ys, shape[1], dy)
        for x, b in _neighbours(xs, shape[2], dx)
    ]


def _neighbours(points: Array, size: int, slope: bool) -> list[tuple[Array, Array]]:
    """The pixels below and above each point along an axis, and their weights, which are zero outside."""
    inside = (points >= 0) & (points <= size - 1)
    low, high = (jnp.where(inside, f(points), 0).astype(jnp.int32) for f in (jnp.floor, jnp.ceil))
    part = jnp.ones_like(points) if slope else points - low
    rest = -part if slope else 1 - part
    return [(low, jnp.where(inside, rest, 0)), (high, jnp.where(inside, part, 0))]
