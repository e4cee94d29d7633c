"""Reductions on XLA where jax.numpy's differ from ours: means of integers, empty axes, sums down to a shape."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

_Axes = tuple[int, ...] | None


def _extremes(dtype: Any) -> tuple[Any, Any]:
    """The smallest and the largest number of a type: the start values of reductions."""
    if jnp.issubdtype(dtype, jnp.floating):
        return -jnp.inf, jnp.inf
    return jnp.asarray(jnp.iinfo(dtype).min, dtype), jnp.asarray(jnp.iinfo(dtype).max, dtype)


def mean(x: Any, axis: _Axes, keepdims: bool) -> Any:
    """The mean; for integers, truncated towards zero."""
    if not jnp.issubdtype(x.dtype, jnp.integer):
        return jnp.mean(x, axis, keepdims=keepdims)
    wide = jnp.uint64 if jnp.issubdtype(x.dtype, jnp.unsignedinteger) else jnp.int64
    total = jnp.sum(x, axis, dtype=wide, keepdims=keepdims)
    count = x.size // max(total.size, 1)
    return lax.div(total, jnp.full_like(total, max(count, 1)))


def sum_squares(x: Any, axis: _Axes, keepdims: bool) -> Any:
    """The sum of `x * x`."""
    return jnp.sum(x * x, axis, keepdims=keepdims)


def sum_to(x: Any, shape: list[int]) -> Any:
    """`x` summed down to a shape that broadcasts to its own."""
    lead = x.ndim - len(shape)
    wide = [lead + i for i, n in enumerate(shape) if n != x.shape[lead + i]]
    return jnp.sum(x, (*range(lead), *wide), keepdims=True).reshape(shape)


def largest(x: Any, axis: _Axes, keepdims: bool) -> Any:
    """The largest element."""
    return jnp.max(x, axis, keepdims=keepdims, initial=_extremes(x.dtype)[0])


def smallest(x: Any, axis: _Axes, keepdims: bool) -> Any:
    """The smallest element."""
    return jnp.min(x, axis, keepdims=keepdims, initial=_extremes(x.dtype)[1])


def argmax(x: Any, axis: int | None, output_type: Any) -> Any:
    """The index of the largest element along an axis."""
    return jnp.argmax(x, 0 if axis is None else axis)


def argmin(x: Any, axis: int | None, output_type: Any) -> Any:
    """The index of the smallest element along an axis."""
    return jnp.argmin(x, 0 if axis is None else axis)


def logsumexp(x: Any, axis: _Axes, keepdims: bool) -> Any:
    """`log(sum(exp(x)))`."""
    if math.prod(x.shape) == 0:  # of no elements, it is the logarithm of 0
        return jnp.log(jnp.sum(x, axis, keepdims=keepdims))
    return jax.nn.logsumexp(x, axis, keepdims=keepdims)
