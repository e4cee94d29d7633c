"""Runs of rows that move together, on XLA: finds the run that each row is in, then gathers or scatters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array

_Check = Callable[[Any], None]


def take_runs(x: Array, starts: Array, lengths: Array, places: Array, size: int, *, check: _Check) -> Array:
    """Zeros of `size` rows with runs of `x` at places that do not overlap."""
    _check_runs(starts, lengths, x.shape[0], check)
    _check_runs(places, lengths, size, check)
    _check_apart(places, lengths, check)
    out = jnp.zeros((size, *x.shape[1:]), x.dtype)
    if not out.size or not x.size or not len(starts):
        return out
    inside, at = _moved(size, places, lengths, starts)
    rows = jnp.take(x, at, axis=0, mode="clip")
    return jnp.where(inside.reshape(-1, *[1] * (x.ndim - 1)), rows, out)


def add_runs(x: Array, starts: Array, lengths: Array, places: Array, size: int, *, check: _Check) -> Array:
    """Zeros of `size` rows to which non-overlapping runs of `x` are added at `places`."""
    _check_runs(starts, lengths, x.shape[0], check)
    _check_runs(places, lengths, size, check)
    _check_apart(starts, lengths, check)
    out = jnp.zeros((size, *x.shape[1:]), x.dtype)
    if not out.size or not x.size or not len(starts):
        return out
    inside, at = _moved(x.shape[0], starts, lengths, places)
    return out.at[jnp.where(inside, at, size)].add(x, mode="drop")


def _moved(count: int, first: Array, lengths: Array, other: Array) -> tuple[Array, Array]:
    """For each of `count` rows, whether it is in a run of the first side, and its position on the other side."""
    at = jnp.arange(count, dtype=first.dtype)
    run = jnp.maximum(jnp.searchsorted(first, at, side="right") - 1, 0)
    into = at - first[run]
    return (into >= 0) & (into < lengths[run].astype(into.dtype)), other[run].astype(into.dtype) + into


def _check_runs(at: Array, lengths: Array, limit: int, check: _Check) -> None:
    check((at >= 0) & (lengths >= 0) & (lengths <= limit) & (at <= limit - lengths))


def _check_apart(at: Array, lengths: Array, check: _Check) -> None:
    check(at[1:] >= at[:-1] + lengths[:-1])
