"""Splitting tensors, and sums of several tensors, on XLA."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import jax.numpy as jnp
from jax import Array, lax


def split(x: Array, axis: int, sizes: Sequence[int]) -> Sequence[Array]:
    """Chunks of the given sizes along an axis."""
    return lax.split(x, sizes, axis)


def unstack(x: Array, axis: int) -> Sequence[Array]:
    """The slices along an axis, without it."""
    return jnp.unstack(x, axis=axis)


def add_n(xs: Sequence[Array]) -> Array:
    """The sum of tensors of one shape."""
    return reduce(jnp.add, xs)
