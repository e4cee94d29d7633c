"""Singular values and self-adjoint eigenvalues on XLA; those of general matrices are computed on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array, ShapeDtypeStruct

from gradtape._src.engines.xla.ops.linalg_solve import adjoint_of, eyes

_Check = Callable[[Any], None]


def svd(x: Array, full_matrices: bool, *, results: list[ShapeDtypeStruct]) -> tuple[Array, ...]:
    """Singular values, left and right vectors, with the signs of native code."""
    if not x.size:
        return jnp.zeros(results[0].shape, results[0].dtype), eyes(results[1]), eyes(results[2])
    u, s, vh = jnp.linalg.svd(x, full_matrices=full_matrices)
    v, k = adjoint_of(vh), s.shape[-1]
    turn = _turn(u[..., :k])
    left, right = u[..., :k] * turn, v[..., :k] * turn
    if u.shape[-1] > k:  # vectors without a singular value
        left = jnp.concatenate([left, u[..., k:] * _turn(u[..., k:])], -1)
    if v.shape[-1] > k:
        right = jnp.concatenate([right, v[..., k:] * _turn(v[..., k:])], -1)
    return s, left, right


def svdvals(x: Array, *, results: list[ShapeDtypeStruct]) -> Array:
    """Singular values alone."""
    if not x.size:
        return jnp.zeros(results[0].shape, results[0].dtype)
    return jnp.linalg.svd(x, compute_uv=False)


def eigh(x: Array, *, results: list[ShapeDtypeStruct], check: _Check) -> tuple[Array, Array]:
    """Eigenvalues and vectors of self-adjoint matrices."""
    if not x.size:
        return jnp.zeros(results[0].shape, results[0].dtype), x
    check(jnp.isfinite(jnp.tril(x)))
    w, v = jnp.linalg.eigh(x, symmetrize_input=False)
    return w, v * _turn(v)


def eigvalsh(x: Array, *, results: list[ShapeDtypeStruct], check: _Check) -> Array:
    """Eigenvalues of self-adjoint matrices."""
    if not x.size:
        return jnp.zeros(results[0].shape, results[0].dtype)
    check(jnp.isfinite(jnp.tril(x)))
    return jnp.linalg.eigvalsh(x, symmetrize_input=False)


def _turn(vectors: Array) -> Array:
    """The factor that makes the largest component of each column positive; among equals, the first."""
    size = jnp.abs(vectors)
    most = jnp.max(size, -2, keepdims=True)
    first = jnp.argmax(size >= 0.99 * most, -2, keepdims=True)
    best = jnp.take_along_axis(vectors, first, -2, mode="clip")
    return jnp.where(most > 0, jnp.conj(best) / jnp.abs(best), 1)
