"""Means and variances on XLA."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp


def moments(x: Any, axes: list[int] | None, keepdims: bool) -> tuple[Any, Any]:
    """The mean and the variance."""
    axis = None if axes is None else tuple(axes)
    mean = jnp.mean(x, axis, keepdims=True)
    variance = jnp.mean(jnp.square(x - mean), axis, keepdims=keepdims)
    return mean.reshape(variance.shape), variance
