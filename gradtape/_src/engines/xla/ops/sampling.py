"""Random numbers by rejection on XLA: truncated normal, gamma, Poisson and binomial ones.

As natively (`core/ops/random.cpp`, `sampling.cpp`), each result has its own stretch of the stream, so that all can
try at once: a loop ends when the last one has accepted. The numbers are those of native code for the same stream.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from gradtape._src.engines.xla.ops.philox import Stream, box_muller, stream_of, to_double, to_float

_RESERVED = 256  # groups of random bits for one result
_WAITING = 42  # the same for binomial numbers with few successes


# ---- normal numbers between -2 and 2 ----


def truncated_normal(state: Any, shape: Any, dtype: Any, *, results: list[Any]) -> Any:
    """Standard normal numbers; those outside of (-2, 2) are drawn again."""
    wide = results[0].dtype == jnp.float64
    count, width = math.prod(results[0].shape), 2 if wide else 4
    groups = -(-count // width)
    streams = stream_of(state).skip(jnp.arange(groups) * (width * 64))
    slots = jnp.arange(width)

    def draw(number: Any) -> tuple[Any, ...]:
        b = streams.group(number)
        if wide:
            return box_muller(to_double(b[0], b[1]), to_double(b[2], b[3]))
        u = [to_float(x) for x in b]
        return *box_muller(u[0], u[1]), *box_muller(u[2], u[3])

    def fill(carry: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        number, filled, values = carry
        for x in draw(number):
            fits = jnp.abs(x) < 2
            chosen = fits[:, None] & (filled[:, None] == slots)  # nowhere once all slots are filled
            values, filled = jnp.where(chosen, x[:, None], values), filled + fits
        return number + 1, filled, values

    empty = jnp.zeros((groups, width), jnp.float64 if wide else jnp.float32)
    start = jnp.uint64(0), jnp.zeros(groups, jnp.int64), empty
    values = lax.while_loop(lambda carry: jnp.any(carry[1] < width), fill, start)[2]
    return values.reshape(-1)[:count].reshape(results[0].shape)


# ---- numbers of a stream, in pairs ----


class _Twos(NamedTuple):
    """Numbers that a group of bits yields in pairs: the second one is kept for the next use."""

    waiting: Any
    has: Any

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> _Twos:
        return cls(jnp.zeros(shape, jnp.float64), jnp.zeros(shape, bool))

    def take(
        self, make: Callable[..., tuple[Any, Any]], stream: Stream, group: Any, wanted: Any
    ) -> tuple[Any, _Twos, Any]:
        """The next number where one is wanted, the remaining numbers, and the group to draw from next."""
        first, second = make(*stream.group(group))
        new = wanted & ~self.has
        value = jnp.where(self.has, self.waiting, first)
        left = _Twos(jnp.where(new, second, self.waiting), new | (self.has & ~wanted))
        return value, left, group + new


def _uniforms(b0: Any, b1: Any, b2: Any, b3: Any) -> tuple[Any, Any]:
    return to_double(b2, b3), to_double(b0, b1)


def _normals(b0: Any, b1: Any, b2: Any, b3: Any) -> tuple[Any, Any]:
    sine, cosine = box_muller(to_double(b0, b1), to_double(b2, b3))
    return cosine, sine


def _until_done(step: Callable[..., tuple[Any, ...]], *start: Any) -> tuple[Any, ...]:
    """Repeats a step until its first value is True everywhere."""
    return lax.while_loop(lambda carry: ~jnp.all(carry[0]), lambda carry: step(*carry), start)


def _numbers(parameter: Any, shape: tuple[int, ...]) -> Any:
    """The index of each result: all samples of one parameter come first."""
    samples = math.prod(shape) // max(parameter.size, 1)
    number = jnp.arange(parameter.size) * samples + jnp.arange(samples)[:, None]
    return number.astype(jnp.uint64).reshape(shape)


def _groups(shape: tuple[int, ...]) -> Any:
    return jnp.zeros(shape, jnp.uint64)


# ---- gamma ----


def random_gamma(alpha: Any, state: Any, shape: Any, *, results: list[Any]) -> Any:
    """Marsaglia and Tsang's method; below 1, the sample for alpha + 1 times a power of a uniform number."""
    size = results[0].shape
    stream = stream_of(state).skip(_numbers(alpha, size) * _RESERVED)
    alpha = jnp.broadcast_to(alpha.astype(jnp.float64), size)
    below, valid, one = alpha < 1, (alpha > 0) & jnp.isfinite(alpha), alpha == 1
    d = alpha + jnp.where(below, 2 / 3, -1 / 3)
    c = 1 / 3 / jnp.sqrt(d)

    def attempt(
        done: Any, out: Any, group: Any, normals: _Twos, uniforms: _Twos
    ) -> tuple[Any, Any, Any, _Twos, _Twos]:
        x, normals, group = normals.take(_normals, stream, group, ~done)
        v = 1 + c * x
        tried = ~done & (v > 0)
        u, uniforms, group = uniforms.take(_uniforms, stream, group, tried)
        v = v * v * v
        surely = u < 1 - 0.0331 * (x * x) * (x * x)
        accepted = tried & (surely | (jnp.log(u) < 0.5 * x * x + d * (1 - v + jnp.log(v))))
        return done | accepted, jnp.where(accepted, d * v, out), group, normals, uniforms

    nothing = _Twos.none(size)
    start = ~valid | one, jnp.full(size, jnp.nan), _groups(size), nothing, nothing
    _, out, group, _, uniforms = _until_done(attempt, *start)
    u, _, _ = uniforms.take(_uniforms, stream, group, below)
    out = jnp.where(below, out * u ** (1 / alpha), out)
    first, _ = _uniforms(*stream.group())
    return jnp.where(one, -jnp.log1p(-first), out)


# ---- Poisson ----


def _highest(dtype: Any) -> float:
    """The largest number of a type that can be a sample."""
    if jnp.issubdtype(dtype, jnp.integer):
        return 2147483647.0 if dtype.itemsize == 4 else 9223372036854774784.0
    return 65504.0 if dtype == jnp.float16 else float(jnp.finfo(jnp.float32).max)


def random_poisson(rates: Any, state: Any, shape: Any, dtype: Any, *, results: list[Any]) -> Any:
    """Products of uniform numbers for small rates, transformed rejection for others."""
    size = results[0].shape
    stream = stream_of(state).skip(_numbers(rates, size) * _RESERVED)
    rate, highest = jnp.broadcast_to(rates.astype(jnp.float64), size), _highest(results[0].dtype)
    usual = (rate >= 0) & (rate <= highest)
    small = usual & (rate < 10)
    out = jnp.where(
        small, _by_products(rate, small, stream), _by_rejection(rate, usual & ~small, stream, highest)
    )
    out = jnp.where(rate > highest, highest, jnp.where(rate < 0, 0, out))
    return jnp.where(jnp.isfinite(rate) | (rate < 0), out, jnp.nan)


def _by_products(rate: Any, wanted: Any, stream: Stream) -> Any:
    """Knuth's method: how many uniform numbers can be multiplied before the product falls below exp(-rate)."""
    limit = jnp.exp(-rate)

    def attempt(done: Any, x: Any, product: Any, group: Any, uniforms: _Twos) -> tuple[Any, ...]:
        u, uniforms, group = uniforms.take(_uniforms, stream, group, ~done)
        product = product * u
        done = done | (product <= limit)
        return done, jnp.where(done, x, x + 1), product, group, uniforms

    size = rate.shape
    start = ~wanted, jnp.zeros(size), jnp.ones(size), _groups(size), _Twos.none(size)
    return _until_done(attempt, *start)[1]


def _by_rejection(rate: Any, wanted: Any, stream: Stream, highest: float) -> Any:
    """Hormann's PTRS (1993)."""
    log_rate, b = jnp.log(rate), 0.931 + 2.53 * jnp.sqrt(rate)
    a, inv_alpha = -0.059 + 0.02483 * b, 1.1239 + 1.1328 / (b - 3.4)

    def attempt(done: Any, out: Any, group: Any) -> tuple[Any, Any, Any]:
        u, v = _uniforms(*stream.group(group))
        u = u - 0.5
        us = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / us + b) * u + rate + 0.43)
        surely = (us >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
        possible = (k >= 0) & ((us >= 0.013) | (v <= us))
        bound = -rate + k * log_rate - lax.lgamma(k + 1)
        likely = jnp.log(v * inv_alpha / (a / (us * us) + b)) <= bound
        accepted = ~done & (k <= highest) & (surely | (possible & likely))
        return done | accepted, jnp.where(accepted, k, out), group + 1

    return _until_done(attempt, ~wanted, jnp.zeros(rate.shape), _groups(rate.shape))[1]


# ---- binomial ----

# The error of Stirling's formula for log(k!), k = 0, 1, ..., to the digits that TensorFlow has.
_TAILS = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
    0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


def _stirling_tail(k: Any) -> Any:
    q = (k + 1) * (k + 1)
    far = (1 / 12 - (1 / 360 - 1 / 1260 / q) / q) / (k + 1)
    return jnp.where(k <= 9, jnp.asarray(_TAILS)[jnp.clip(k, 0, 9).astype(jnp.int32)], far)


def random_binomial(
    counts: Any, probs: Any, state: Any, shape: Any, dtype: Any, *, results: list[Any]
) -> Any:
    """Waiting times for few successes, transformed rejection for many."""
    size = results[0].shape
    number, stream = _numbers(counts, size), stream_of(state)
    count, p = jnp.broadcast_to(counts, size), jnp.broadcast_to(probs, size)
    mirrored = p > 0.5
    q = jnp.where(mirrored, 1 - p, p)
    usual = (count > 0) & (p > 0) & (p < 1)
    many = usual & (count * q >= 10)
    n, q = count.astype(jnp.float64), q.astype(jnp.float64)
    few = _by_waiting(n, q, usual & ~many, stream.skip(number * _WAITING))
    k = jnp.where(many, _binomial_by_rejection(n, q, many, stream.skip(number * _RESERVED)), few)
    k = jnp.where(mirrored, n - k, k)
    unusual = jnp.where((count <= 0) | (p <= 0), 0, jnp.where(p >= 1, n, jnp.nan))
    return jnp.where(usual, k, unusual)


def _by_waiting(count: Any, p: Any, wanted: Any, stream: Stream) -> Any:
    """How many geometric waiting times fit into `count` trials."""
    log_failure = jnp.log1p(-p)

    def attempt(done: Any, successes: Any, trials: Any, group: Any, uniforms: _Twos) -> tuple[Any, ...]:
        u, uniforms, group = uniforms.take(_uniforms, stream, group, ~done)
        trials = trials + jnp.ceil(jnp.log(u) / log_failure)
        done = done | (trials > count)
        return done, jnp.where(done, successes, successes + 1), trials, group, uniforms

    size = count.shape
    start = ~wanted, jnp.zeros(size), jnp.zeros(size), _groups(size), _Twos.none(size)
    return _until_done(attempt, *start)[1]


def _binomial_by_rejection(count: Any, p: Any, wanted: Any, stream: Stream) -> Any:
    """Hormann's BTRS (1993)."""
    spread = jnp.sqrt(count * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    odds, alpha, mode = p / (1 - p), (2.83 + 5.1 / b) * spread, jnp.floor((count + 1) * p)
    log_mode = (mode + 0.5) * jnp.log((mode + 1) / (odds * (count - mode + 1)))
    tails = _stirling_tail(mode) + _stirling_tail(count - mode)

    def attempt(done: Any, out: Any, group: Any) -> tuple[Any, Any, Any]:
        u, v = _uniforms(*stream.group(group))
        u = u - 0.5
        us = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / us + b) * u + (count * p + 0.5))
        surely = (us >= 0.07) & (v <= 0.92 - 4.2 / b)
        bound = (
            log_mode
            + (count + 1) * jnp.log((count - mode + 1) / (count - k + 1))
            + (k + 0.5) * jnp.log(odds * (count - k + 1) / (k + 1))
            + (tails - _stirling_tail(k) - _stirling_tail(count - k))
        )
        likely = jnp.log(v * alpha / (a / (us * us) + b)) <= bound
        accepted = ~done & (surely | ((k >= 0) & (k <= count) & likely))
        return done | accepted, jnp.where(accepted, k, out), group + 1

    return _until_done(attempt, ~wanted, jnp.zeros(count.shape), _groups(count.shape))[1]
