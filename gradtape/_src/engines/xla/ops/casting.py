"""Element types on XLA, and shapes as tensors."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax


def cast(x: Any, dtype: Any, *, results: list[Any]) -> Any:
    """`x` in another element type; numbers that do not fit into an integer become the nearest that does, NaN 0."""
    to = results[0].dtype
    if to == jnp.bool_:
        return x != 0
    if jnp.iscomplexobj(x) and not jnp.issubdtype(to, jnp.complexfloating):
        x = jnp.real(x)
    return x.astype(to)


def bitcast(x: Any, dtype: Any, *, results: list[Any]) -> Any:
    """The same bits in another type. XLA does not support complex numbers, so they are cast as two parts."""
    to = results[0].dtype
    if jnp.iscomplexobj(x):
        parts = jnp.stack([jnp.real(x), jnp.imag(x)], -1)
        return x if x.dtype == to else bitcast(parts, dtype, results=results)
    if jnp.issubdtype(to, jnp.complexfloating):
        part = jnp.zeros((), to).real.dtype
        parts = lax.bitcast_convert_type(x, part).reshape(*results[0].shape, 2)
        return lax.complex(parts[..., 0], parts[..., 1])
    for _ in range(x.ndim - len(results[0].shape) - 1):  # complex numbers as smaller ones
        x = x.reshape(*x.shape[:-2], -1)
    return lax.bitcast_convert_type(x, to).reshape(results[0].shape)


def shape(x: Any, *out_type: Any, results: list[Any]) -> Any:
    """The sizes of the axes."""
    return jnp.asarray(x.shape, results[0].dtype)


def size(x: Any, *out_type: Any, results: list[Any]) -> Any:
    """The number of elements."""
    return jnp.asarray(x.size, results[0].dtype)
