"""Gather and scatter on XLA.

XLA moves an index that is out of range to the edge, or drops its update. Native code refuses it, so each op checks
its indices first, and may then declare them to be in range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, ShapeDtypeStruct

_Check = Callable[[Any], None]
_Specs = list[ShapeDtypeStruct]
_IN_RANGE: dict[str, Any] = {"mode": "promise_in_bounds", "wrap_negative_indices": False}


def inside(indices: Array, limit: Any) -> Array:
    """Which indices are in `[0, limit)`."""
    return (indices >= 0) & (indices < jnp.asarray(limit, indices.dtype))


# ---- along an axis ----


def gather(
    x: Array, indices: Array, axis: int, batch_dims: int = 0, *, results: _Specs, check: _Check
) -> Array:
    """The slices at `indices` along `axis`; the first `batch_dims` axes are batch axes."""
    batch_dims += indices.ndim if batch_dims < 0 else 0
    check(inside(indices, x.shape[axis]))
    if not x.size:  # there is nothing to read
        return jnp.zeros(results[0].shape, x.dtype)
    return _in_batches(batch_dims, partial(_taken, axis=axis - batch_dims))(x, indices)


def gather_grad(
    g: Array, indices: Array, axis: int, batch_dims: int, shape: Sequence[int], *, check: _Check
) -> Array:
    """Zeros of `shape` with the slices of `g` added at `indices` along `axis`."""
    batch_dims += indices.ndim if batch_dims < 0 else 0
    check(inside(indices, shape[axis]))
    add = partial(_added, axis=axis - batch_dims, shape=shape[batch_dims:])
    return _in_batches(batch_dims, add)(g, indices)


def scatter_rows_add(values: Array, indices: Array, shape: Sequence[int], *, check: _Check) -> Array:
    """Zeros of `shape` with each row of `values` added at its index."""
    check(inside(indices, shape[0]))
    return _added(values, indices, 0, shape)


def take_along(x: Array, indices: Array, axis: int, *, results: _Specs, check: _Check) -> Array:
    """The element of `x` at each position of `indices`, with the index along `axis` replaced by its value."""
    check(inside(indices, x.shape[axis]))
    if not x.size:
        return jnp.zeros(results[0].shape, x.dtype)
    return jnp.take_along_axis(x, indices, axis, mode="promise_in_bounds", wrap_negative_indices=False)


def put_along_add(g: Array, indices: Array, axis: int, shape: Sequence[int], *, check: _Check) -> Array:
    """The transpose of `take_along`."""
    check(inside(indices, shape[axis]))
    places: list[Any] = list(np.indices(indices.shape, sparse=True))
    places[axis] = indices
    return jnp.zeros(shape, g.dtype).at[tuple(places)].add(g, **_IN_RANGE)


def _taken(x: Array, indices: Array, axis: int) -> Array:
    return x.at[(*[slice(None)] * axis, indices)].get(**_IN_RANGE)


def _added(g: Array, indices: Array, axis: int, shape: Sequence[int]) -> Array:
    return jnp.zeros(shape, g.dtype).at[(*[slice(None)] * axis, indices)].add(g, **_IN_RANGE)


def _in_batches(dims: int, function: Callable[..., Array]) -> Callable[..., Array]:
    for _ in range(dims):
        function = jax.vmap(function)
    return function


# ---- by coordinates ----


def gather_nd(x: Array, indices: Array, batch_dims: int, *, results: _Specs, check: _Check) -> Array:
    """The elements or slices at the coordinates in the last axis of `indices`."""
    check(inside(indices, x.shape[batch_dims:][: indices.shape[-1]]))
    if not x.size or not indices.shape[-1]:
        lead = indices.shape[batch_dims:-1]
        whole = jnp.expand_dims(x, range(batch_dims, batch_dims + len(lead)))
        return jnp.broadcast_to(whole, results[0].shape) if x.size else jnp.zeros(results[0].shape, x.dtype)
    return _in_batches(batch_dims, lambda a, i: a.at[_coordinates(i)].get(**_IN_RANGE))(x, indices)


def scatter_nd(indices: Array, updates: Array, shape: Sequence[int], *, check: _Check) -> Array:
    """Zeros of `shape` with `updates` added at the coordinates; for booleans, combined by "or"."""
    zeros = jnp.zeros(shape, updates.dtype)
    if updates.dtype == bool:
        return _scattered("max", zeros, indices, updates, check)
    return _scattered("add", zeros, indices, updates, check)


def tensor_scatter_update(x: Array, indices: Array, updates: Array, *, check: _Check) -> Array:
    """`x` with `updates` at the coordinates."""
    return _scattered("set", x, indices, updates, check)


def tensor_scatter_add(x: Array, indices: Array, updates: Array, *, check: _Check) -> Array:
    """`x` with `updates` added at the coordinates."""
    return _scattered("add", x, indices, updates, check)


def tensor_scatter_sub(x: Array, indices: Array, updates: Array, *, check: _Check) -> Array:
    """`x` with `updates` subtracted at the coordinates."""
    return _scattered("subtract", x, indices, updates, check)


def tensor_scatter_max(x: Array, indices: Array, updates: Array, *, check: _Check) -> Array:
    """The larger of `x` and `updates` at the coordinates."""
    return _scattered("max", x, indices, updates, check)


def tensor_scatter_min(x: Array, indices: Array, updates: Array, *, check: _Check) -> Array:
    """The smaller of `x` and `updates` at the coordinates."""
    return _scattered("min", x, indices, updates, check)


def _scattered(how: str, x: Array, indices: Array, updates: Array, check: _Check) -> Array:
    check(inside(indices, x.shape[: indices.shape[-1]]))
    if not updates.size or not x.size:
        return x
    return getattr(x.at[_coordinates(indices)], how)(updates, **_IN_RANGE)


def _coordinates(indices: Array) -> tuple[Array, ...]:
    return tuple(jnp.moveaxis(indices, -1, 0))
