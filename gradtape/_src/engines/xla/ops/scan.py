"""Running sums, products and log-sum-exps on XLA. As natively, half floats are accumulated in float32."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax


def cumsum(x: Array, axis: int, exclusive: bool, reverse: bool) -> Array:
    """The running sum."""
    return _scanned(lax.cumsum, 0, x, axis, exclusive, reverse)


def cumprod(x: Array, axis: int, exclusive: bool, reverse: bool) -> Array:
    """The running product."""
    return _scanned(lax.cumprod, 1, x, axis, exclusive, reverse)


def cumlogsumexp(x: Array, axis: int, exclusive: bool, reverse: bool) -> Array:
    """The running logarithm of the sum of exponentials."""
    return _scanned(lax.cumlogsumexp, -jnp.inf, x, axis, exclusive, reverse)


def linear_recurrence(a: Array, b: Array, axis: int, reverse: bool) -> Array:
    """`out[i] = a[i] * out[i - 1] + b[i]`: steps are combined in pairs, because each is linear."""
    if not b.size:
        return b

    def after(first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
        return second[0] * first[0], second[0] * first[1] + second[1]

    return lax.associative_scan(after, (_wide(a), _wide(b)), reverse=reverse, axis=axis)[1]


def _scanned(
    scan: Callable[..., Array], neutral: float, x: Array, axis: int, exclusive: bool, reverse: bool
) -> Array:
    out = scan(_wide(x), axis=axis, reverse=reverse)
    if not exclusive or not x.size:
        return out
    # Exclusive: each element gets the result of its neighbour; the first one gets that of no elements.
    widths = [(0, 0, 0)] * x.ndim
    widths[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return lax.pad(out, jnp.asarray(neutral, out.dtype), widths)


def _wide(x: Array) -> Array:
    return x.astype(jnp.float32) if x.dtype in (jnp.float16, jnp.bfloat16) else x
