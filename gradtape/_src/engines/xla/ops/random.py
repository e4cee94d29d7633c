"""Random numbers on XLA, those of native code for the same stream; `sampling.py` has those drawn by rejection."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gradtape._src.engines.xla.ops import philox

_SCRAMBLED = 0x02461E293EC8F720  # the key with which TensorFlow scrambles the seeds of stateless ops


def random_uniform(state: Any, shape: Any, dtype: Any, *, results: list[Any]) -> Any:
    """Uniform numbers in [0, 1)."""
    return philox.uniform(state, results[0].shape, results[0].dtype)


def random_normal(state: Any, shape: Any, dtype: Any, *, results: list[Any]) -> Any:
    """Standard normal numbers."""
    return philox.normal(state, results[0].shape, results[0].dtype)


def random_bits(state: Any, shape: Any, dtype: Any, *, results: list[Any]) -> Any:
    """Integers of the full range."""
    return lax.bitcast_convert_type(_unsigned(state, results[0]), results[0].dtype)


def _unsigned(state: Any, result: Any) -> Any:
    """Random bits as unsigned numbers of the result's width."""
    if result.dtype.itemsize == 4:
        return philox.bits32(state, result.shape)
    low, high = (x.astype(jnp.uint64) for x in philox.bits64(state, result.shape))
    return low | high << 32


def random_uniform_int(
    minval: Any, maxval: Any, state: Any, shape: Any, dtype: Any, *, results: list[Any], check: Callable
) -> Any:
    """Integers in [minval, maxval)."""
    if math.prod(results[0].shape) == 0:
        return jnp.zeros(results[0].shape, results[0].dtype)
    check(minval < maxval)
    bits = _unsigned(state, results[0])
    low = minval.astype(bits.dtype)
    return lax.bitcast_convert_type(low + bits % (maxval.astype(bits.dtype) - low), results[0].dtype)


def random_shuffle_perm(state: Any, n: int) -> Any:
    """The numbers 0 to n - 1, each swapped with one of those after it."""
    if n < 2:
        return jnp.arange(n)
    left = jnp.arange(n, 1, -1)
    partners = jnp.arange(n - 1) + (philox.bits32(state, (n - 1,)) % left.astype(jnp.uint32)).astype(
        left.dtype
    )

    def swap(i: Any, p: Any) -> Any:
        two = jnp.stack([i, partners[i]])
        return p.at[two].set(p[two][::-1])  # one scatter, which is in place

    return lax.fori_loop(0, n - 1, swap, jnp.arange(n))


def categorical(logits: Any, state: Any, num_samples: int, dtype: Any) -> Any:
    """Class indices drawn with probabilities softmax(logits); infinite logits and NaN have probability zero."""
    rows, classes = logits.shape
    if rows * num_samples == 0:
        return jnp.zeros((rows, num_samples), jnp.int64)
    x = logits.astype(jnp.float64)
    finite = jnp.isfinite(x)
    most = jnp.max(jnp.where(finite, x, jnp.finfo(jnp.float64).min), -1, keepdims=True)
    sums = jnp.cumsum(jnp.where(finite, jnp.exp(x - most), 0), -1)
    u = philox.uniform(state, (rows, num_samples), jnp.float64) * sums[:, -1:]
    places = jax.vmap(lambda s, v: jnp.searchsorted(s, v, side="right"))(sums, u)
    return jnp.minimum(places, classes - 1)


def stateless_state(seed: Any) -> Any:
    """The stream of a stateless op."""
    a, b = seed.reshape(2).astype(jnp.int64).astype(jnp.uint64)
    words = [x.astype(jnp.uint64) for x in philox.Stream(jnp.uint64(_SCRAMBLED), b, a).group()]
    stream = jnp.stack([words[0] | words[1] << 32, words[2] | words[3] << 32, jnp.uint64(0)])
    return lax.bitcast_convert_type(stream, jnp.int64)
