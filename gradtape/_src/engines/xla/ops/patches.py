"""Patches of images on XLA: windows along one axis after the other."""

from __future__ import annotations

from functools import reduce

import jax.numpy as jnp
from jax import Array

from gradtape._src.engines.xla.ops.windows import Ints, axes_of


def patches(x: Array, sizes: Ints, strides: Ints, rates: Ints, paddings: Ints) -> Array:
    """The windows of images, each flattened along the last axis."""
    axes = axes_of(x.shape, sizes, strides, rates, paddings)
    zero, channels = jnp.zeros((), x.dtype), x.shape[-1]
    for at, axis in enumerate(axes, 1):  # positions in a window come before channels, the first axis first
        x = jnp.stack([axis.tap(x, at, t, zero) for t in range(axis.size)], -2)
    spatial = [axis.count for axis in axes]
    return x.reshape(x.shape[0], *spatial, -1 if x.size else _last(sizes, channels))


def unpatches(g: Array, shape: Ints, sizes: Ints, strides: Ints, rates: Ints, paddings: Ints) -> Array:
    """Images of `shape` with each pixel the sum of its copies."""
    axes = axes_of(shape, sizes, strides, rates, paddings)
    g = g.reshape(*g.shape[:-1], *sizes, shape[-1])
    for at, axis in reversed(list(enumerate(axes, 1))):
        g = reduce(jnp.add, [axis.untap(g[..., t, :], at, t) for t in range(axis.size)])
    return g


def _last(sizes: Ints, channels: int) -> int:
    return reduce(lambda n, size: n * size, sizes, channels)
