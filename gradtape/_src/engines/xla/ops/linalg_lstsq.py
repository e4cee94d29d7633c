"""The pseudo-inverse on XLA."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, ShapeDtypeStruct

from gradtape._src.engines.xla.ops.linalg_solve import adjoint_of, product


def pinv(x: Array, rcond: Array, *, results: list[ShapeDtypeStruct]) -> Array:
    """Computed from singular values; those up to `rcond` times the largest count as 0."""
    if not x.size:
        return jnp.zeros(results[0].shape, x.dtype)
    u, s, vh = jnp.linalg.svd(x, full_matrices=False)
    kept = s > rcond.astype(s.dtype)[..., None] * s[..., :1]
    factor = jnp.where(kept, 1 / jnp.where(kept, s, 1), 0)
    return product(adjoint_of(vh) * factor[..., None, :].astype(x.dtype), adjoint_of(u))
