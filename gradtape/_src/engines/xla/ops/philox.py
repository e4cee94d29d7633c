"""Philox4x32-10 on XLA: the random bits of a stream, and uniform and normal numbers made from them.

A stream is an int64[3] (key, high and low half of the counter), as in `core/ops/philox.h`; the same stream has the
same bits on every engine. Normal numbers are the same except for the last digits of logarithms and sines.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

_LEAST = 1e-7  # of the uniform number whose logarithm is taken


class Stream(NamedTuple):
    """The source of groups of 128 random bits: a key, and a counter in two halves. Numbers or arrays of uint64."""

    key: Any
    high: Any
    low: Any

    def skip(self, groups: Any) -> Stream:
        """The stream from a later group on; an array of numbers gives as many streams."""
        low = self.low + jnp.asarray(groups).astype(jnp.uint64)
        return Stream(self.key, self.high + (low < self.low).astype(jnp.uint64), low)

    def group(self, number: Any = 0, unroll: bool = False) -> tuple[Any, Any, Any, Any]:
        """The bits of the group with that number, as four arrays of uint32.

        Unrolled, the rounds become part of the loop that uses the bits, which is faster if there is one such loop.
        Several loops would each compute the bits again, and be compiled with them.
        """
        at = self.skip(number)
        counter = jnp.broadcast_arrays(*_halves(at.low), *_halves(at.high))
        return lax.fori_loop(0, 10, _round, (*counter, *_halves(at.key)), unroll=unroll)[:4]


def _round(_: Any, words: tuple[Any, ...]) -> tuple[Any, ...]:
    c0, c1, c2, c3, k0, k1 = words
    low0, high0 = _halves(c0.astype(jnp.uint64) * jnp.uint64(0xD2511F53))
    low1, high1 = _halves(c2.astype(jnp.uint64) * jnp.uint64(0xCD9E8D57))
    turned = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
    return *turned, k0 + jnp.uint32(0x9E3779B9), k1 + jnp.uint32(0xBB67AE85)


def _halves(x: Any) -> tuple[Any, Any]:
    """The lower and the upper 32 bits."""
    return x.astype(jnp.uint32), (x >> 32).astype(jnp.uint32)


def stream_of(state: Any) -> Stream:
    """The stream that an int64[3] describes."""
    words = state.reshape(3).astype(jnp.uint64)
    return Stream(words[0], words[1], words[2])


# ---- bits ----


def words(state: Any, places: Any) -> Any:
    """The numbers of a stream at given positions, uint32.

    Each element computes its whole group and takes one word of it. This avoids a concatenation, so that XLA
    generates vector loops, and is several times faster than computing each group once.
    """
    group, k = stream_of(state).group(places >> 2, unroll=True), places & 3
    return jnp.where(k < 2, jnp.where(k == 0, group[0], group[1]), jnp.where(k == 2, group[2], group[3]))


def bits32(state: Any, shape: tuple[int, ...]) -> Any:
    """The first numbers of a stream, uint32."""
    return words(state, _numbers(shape))


def bits64(state: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The same in pairs: the first and the second number of each pair."""
    first = 2 * _numbers(shape)
    return words(state, first), words(state, first + 1)


def _numbers(shape: tuple[int, ...]) -> Any:
    """0, 1, 2, ... in the given shape."""
    return jnp.arange(math.prod(shape), dtype=jnp.uint64).reshape(shape)


# ---- numbers ----


def to_float(x: Any) -> Any:
    """float32 numbers in [0, 1): random bits become the mantissa of a number in [1, 2)."""
    return lax.bitcast_convert_type((x & jnp.uint32(0x7FFFFF)) | jnp.uint32(0x3F800000), jnp.float32) - 1


def to_double(x0: Any, x1: Any) -> Any:
    """float64 numbers in [0, 1) from two 32-bit ones."""
    high, low = (x0 & jnp.uint32(0xFFFFF)).astype(jnp.uint64), x1.astype(jnp.uint64)
    return lax.bitcast_convert_type(jnp.uint64(1023 << 52) | high << 32 | low, jnp.float64) - 1


def uniform(state: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Uniform numbers in [0, 1) with the precision of their type."""
    if dtype == jnp.float64:
        return to_double(*bits64(state, shape))
    bits = bits32(state, shape)
    if dtype == jnp.float32:
        return to_float(bits)
    one, mantissa = (0x3C00, 0x3FF) if dtype == jnp.float16 else (0x3F80, 0x7F)
    in_one_to_two = ((bits & jnp.uint32(mantissa)) | jnp.uint32(one)).astype(jnp.uint16)
    return lax.bitcast_convert_type(in_one_to_two, dtype).astype(jnp.float32) - 1


def box_muller(u: Any, v: Any) -> tuple[Any, Any]:
    """Two normal numbers from two uniform ones, rounded where TensorFlow rounds."""
    radius = jnp.sqrt(-2 * jnp.log(jnp.maximum(u, _LEAST)))
    angle = (2 * math.pi * v.astype(jnp.float64)).astype(u.dtype)
    return jnp.sin(angle) * radius, jnp.cos(angle) * radius


def normal(state: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Standard normal numbers; 16-bit ones are computed in float32."""
    i = _numbers(shape)
    first = i - (i & 1)  # the first number of the pair
    if dtype == jnp.float64:
        u, v = (to_double(words(state, 2 * k), words(state, 2 * k + 1)) for k in (first, first + 1))
    else:
        u, v = to_float(words(state, first)), to_float(words(state, first + 1))
    sine, cosine = box_muller(u, v)
    return jnp.where(i & 1 == 0, sine, cosine)
