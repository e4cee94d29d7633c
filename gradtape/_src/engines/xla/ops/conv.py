"""Convolutions on XLA: one XLA op, with axes, strides and paddings permuted for the two transposes.

Images are `[n, spatial..., channels]` and filters `[k..., channels of a group, results]`.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from gradtape._src.engines.xla.ops.windows import Ints, pairs, spread

_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def conv(x: Array, w: Array, strides: Ints, dilations: Ints, paddings: Ints) -> Array:
    """The convolution of images `x` with filters `w`."""
    s = _SPATIAL[len(strides)]
    return lax.conv_general_dilated(
        x, w, strides, pairs(paddings, x.shape[1:-1], w.shape[:-2], strides, dilations),
        rhs_dilation=dilations, dimension_numbers=(f"N{s}C", f"{s}IO", f"N{s}C"),
        feature_group_count=x.shape[-1] // w.shape[-2],
    )  # fmt: skip


def conv_input(g: Array, w: Array, sizes: Ints, strides: Ints, dilations: Ints, paddings: Ints) -> Array:
    """The gradient with respect to the images: `g` with zeros between its pixels, convolved with reversed filters."""
    *spatial, channels = sizes
    kernel, s = w.shape[:-2], _SPATIAL[len(strides)]
    groups = channels // w.shape[-2]
    pads = []
    for n, k, d, step, count, (low, _) in zip(
        spatial, kernel, dilations, strides, g.shape[1:-1],
        pairs(paddings, spatial, kernel, strides, dilations), strict=True,
    ):  # fmt: skip
        reach = (k - 1) * d
        before = reach - low
        pads.append((before, n + reach - spread(count, step) - before))
    w = lax.rev(w, range(len(kernel)))
    if groups > 1:  # [..., c, groups * o] is [..., groups * c, o] here
        w = jnp.reshape(w, (*kernel, w.shape[-2], groups, w.shape[-1] // groups))
        w = jnp.reshape(jnp.swapaxes(w, -3, -2), (*kernel, channels, -1))
    return lax.conv_general_dilated(
        g, w, [1] * len(strides), pads, lhs_dilation=strides, rhs_dilation=dilations,
        dimension_numbers=(f"N{s}C", f"{s}OI", f"N{s}C"),
        feature_group_count=groups,
    )  # fmt: skip


def conv_filter(x: Array, g: Array, sizes: Ints, strides: Ints, dilations: Ints, paddings: Ints) -> Array:
    """The gradient with respect to the filters: images convolved with `g`, with n and channels exchanged."""
    *kernel, channels = sizes
    if not g.size:
        return jnp.zeros((*sizes, g.shape[-1]), g.dtype)
    s = _SPATIAL[len(strides)]
    pads = []
    for n, k, d, step, count, (low, _) in zip(
        x.shape[1:-1], kernel, dilations, strides, g.shape[1:-1],
        pairs(paddings, x.shape[1:-1], kernel, strides, dilations), strict=True,
    ):  # fmt: skip
        pads.append((low, (k - 1) * d - low - n + spread(count, step)))
    return lax.conv_general_dilated(
        x, g, dilations, pads, rhs_dilation=strides,
        dimension_numbers=(f"C{s}N", f"I{s}O", f"{s}NC"),
        batch_group_count=x.shape[-1] // channels,
    )  # fmt: skip
