"""The matrix exponential on XLA. Square roots and logarithms need a Schur form, which only hosts have."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from gradtape._src.engines.xla.ops.linalg_solve import product, solve


def expm(x: Array) -> Array:
    """A Padé approximant (Higham 2005) of the matrix, halved until it is small, then squared repeatedly."""
    if not x.size:
        return x
    wide = x.dtype in (jnp.float64, jnp.complex128)
    degree, limit = (13, 5.371920351148152) if wide else (7, 3.925724783138660)
    norm = jnp.max(jnp.sum(jnp.abs(x), -1), -1)[..., None, None]
    finite = jnp.isfinite(norm)
    halvings = jnp.where(finite & (norm > limit), jnp.ceil(jnp.log2(norm / limit)), 0)
    small = jnp.where(finite, x, 0) * (2.0**-halvings).astype(x.dtype)
    even, odd = _parts(small, degree)
    odd = product(small, odd)
    out = solve(even - odd, even + odd, False, check=lambda regular: None)

    def squared(state: tuple[Array, Array]) -> tuple[Array, Array]:
        k, y = state
        return k + 1, jnp.where(k < halvings, product(y, y), y)

    most = jnp.max(halvings)
    _, out = lax.while_loop(lambda state: state[0] < most, squared, (jnp.zeros((), most.dtype), out))
    return jnp.where(finite, out, jnp.nan)


def _parts(x: Array, degree: int) -> tuple[Array, Array]:
    """Sums of even powers of `x`: exp(x) is about (even + x odd) / (even - x odd)."""
    b = [1.0]
    for k in range(degree, 0, -1):
        b.insert(0, b[0] * k * (2 * degree - k + 1) / (degree - k + 1))
    eye, square = jnp.eye(x.shape[-1], dtype=x.dtype), product(x, x)
    pairs = jnp.asarray(b, x.dtype).reshape(-1, 2, *[1] * x.ndim)[::-1]

    def next_power(out: Array, pair: Array) -> tuple[Array, None]:
        return product(out, square) + pair * eye, None

    # Horner's rule in x², for both sums at once; a loop, because short programs compile faster.
    both, _ = lax.scan(next_power, jnp.broadcast_to(pairs[0] * eye, (2, *x.shape)), pairs[1:])
    return both[0], both[1]
