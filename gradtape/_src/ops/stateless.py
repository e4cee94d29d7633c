"""Stateless random functions: the same two seeds give the same numbers, whatever was drawn before."""

from __future__ import annotations

import math

import numpy as np

from gradtape._src.base import dtypes, errors
from gradtape._src.ops.casting import cast
from gradtape._src.ops.clipping import clip_by_value
from gradtape._src.ops.creation import convert_to_tensor, ones_like
from gradtape._src.ops.exponential import erfc
from gradtape._src.ops.indexed import gather
from gradtape._src.ops.join import stack
from gradtape._src.ops.movement import broadcast_to, identity
from gradtape._src.ops.random import (
    binomial_of,
    bits_of,
    categorical_op,
    gamma_of,
    gamma_parameters,
    normal_of,
    of_seed,
    random_permutation,
    random_poisson,
    random_uniform,
    samples_of,
    size_of,
    stateless_state,
    truncated_normal_of,
)
from gradtape._src.ops.selection import where
from gradtape._src.ops.special import ndtri
from gradtape._src.ops.static import array_of
from gradtape._src.ops.table import composite
from gradtape._src.tensors import random as _state
from gradtape._src.tensors.conversion import as_tensor

__all__ = ["stateless_normal"]


@composite("random.stateless_normal")
def stateless_normal(shape, seed, mean=0.0, stddev=1.0, dtype=dtypes.float32, name=None, alg="auto_select"):
    """As `normal`; the same two seeds always give the same numbers."""
    _state.want_philox(alg)
    return normal_of(of_seed(seed), shape, mean, stddev, dtype)


@composite("random.stateless_truncated_normal")
def stateless_truncated_normal(
    shape, seed, mean=0.0, stddev=1.0, dtype=dtypes.float32, name=None, alg="auto_select"
):
    """As `truncated_normal`; the same two seeds always give the same numbers."""
    _state.want_philox(alg)
    return truncated_normal_of(of_seed(seed), shape, mean, stddev, dtype)


@composite("random.stateless_categorical")
def stateless_categorical(logits, num_samples, seed, dtype=dtypes.int64, name=None):
    """As `categorical`; the same two seeds always give the same numbers."""
    return categorical_op(logits, stateless_state(seed), num_samples, dtype)


@composite("random.stateless_gamma")
def stateless_gamma(shape, seed, alpha, beta=None, dtype=dtypes.float32, name=None):
    """As `gamma`, for a `shape` that ends with the shape of the parameters; the same two seeds always give the
    same numbers."""
    alpha, beta = gamma_parameters(alpha, beta, dtype)
    dims, _ = size_of(shape)
    return gamma_of(of_seed(seed), samples_of(dims, alpha, "that of alpha"), alpha, beta)


@composite("random.stateless_poisson")
def stateless_poisson(shape, seed, lam, dtype=dtypes.int32, name=None):
    """As `poisson`, for rates that broadcast to `shape`; the same two seeds always give the same numbers."""
    lam = convert_to_tensor(lam, dtype_hint=dtypes.float32)
    dims, _ = size_of(shape)
    if tuple(dims[len(dims) - lam.ndim :]) != tuple(lam.shape):
        lam = broadcast_to(lam, dims)
    return random_poisson(lam, stateless_state(seed), samples_of(dims, lam, "that of lam"), dtype)


@composite("random.split random.experimental.stateless_split")
def split(seed, num=2, alg="auto_select"):
    """Derives `num` new seeds for stateless ops from one: an integer tensor `[num, 2]`."""
    _state.want_philox(alg)
    seed = convert_to_tensor(seed)
    return bits_of(of_seed(seed), [num, 2], seed.dtype)


@composite("random.fold_in random.experimental.stateless_fold_in")
def fold_in(seed, data, alg="auto_select"):
    """Derives a new seed for stateless ops from a seed and an integer."""
    _state.want_philox(alg)
    data = convert_to_tensor(data)
    return stack([bits_of(of_seed(seed), [], data.dtype), data])


@composite("random.stateless_binomial")
def stateless_binomial(shape, seed, counts, probs, output_dtype=dtypes.int32, name=None):
    """Samples from binomial distributions; `shape` ends with the common shape of `counts` and `probs`."""
    return binomial_of(lambda samples, parameters: stateless_state(seed), shape, counts, probs, output_dtype)


@composite("random.stateless_parameterized_truncated_normal")
def stateless_parameterized_truncated_normal(
    shape, seed, means=0.0, stddevs=1.0, minvals=-2.0, maxvals=2.0, name=None
):
    """Normal samples limited to [minvals, maxvals], differentiable with respect to all four parameters.

    Samples are quantiles of uniform numbers; TensorFlow uses rejection, so its samples are others.
    """
    parameters = [as_tensor(p) for p in (means, stddevs, minvals, maxvals)]
    dtype = next((p.dtype for p in parameters if p.dtype.is_floating), dtypes.float32)
    dims, _ = size_of(shape)
    common = np.broadcast_shapes(*(tuple(p.shape) for p in parameters))
    if tuple(np.broadcast_shapes(common, tuple(dims))) != tuple(dims):
        raise errors.InvalidArgumentError(
            f"stateless_parameterized_truncated_normal: the parameters must broadcast to `shape`; got {list(common)} and "
            f"{dims}."
        )
    mean, stddev, lo, hi = (cast(p, dtypes.float64) for p in parameters)
    a, b = (lo - mean) / stddev, (hi - mean) / stddev
    # Probabilities are accurate below the mean only, so bounds above it are mirrored.
    sign = where(a > 0, ones_like(a), -ones_like(a))
    low, high = (erfc(sign * x * math.sqrt(0.5)) / 2 for x in (a, b))
    u = random_uniform(stateless_state(seed), dims, dtypes.float64)
    x = -sign * ndtri(low + u * (high - low))
    return cast(mean + stddev * clip_by_value(x, a, b), dtype)


@composite("random.experimental.stateless_shuffle")
def stateless_shuffle(value, seed, alg="auto_select", name=None):
    """`value` with the slices along its first axis in an order that the seed determines."""
    _state.want_philox(alg)
    x = as_tensor(value)
    if x.ndim == 0 or x.shape[0] < 2:
        return identity(x)
    return gather(x, random_permutation(stateless_state(seed), x.shape[0]))


@composite("random.experimental.index_shuffle")
def index_shuffle(index, seed, max_index):
    """The position of `index` in a random permutation of 0, ..., `max_index` that the seed determines.

    The permutation is not stored: it is a block cipher (Simon, Beaulieu et al. 2013) of as few bits as needed,
    applied repeatedly until the result is in range.
    """
    seeds = np.asarray(array_of(as_tensor(seed)))
    return random_index_shuffle(index, np.insert(seeds, 0, 498247692, -1), max_index)


@composite("random_index_shuffle")
def random_index_shuffle(index, seed, max_index, rounds=4, name=None):
    """`tf.random.experimental.index_shuffle` with a seed of three numbers."""
    at, seeds, most = (np.asarray(array_of(as_tensor(v))) for v in (index, seed, max_index))
    if seeds.ndim not in (1, 2) or seeds.shape[-1] != 3:
        raise errors.InvalidArgumentError(
            f"index_shuffle: Seed must be a vector of size [3] or a matrix of size [n, 3]; got {list(seeds.shape)}."
        )
    count = max(at.size, most.size, seeds.size // 3)
    for name_, x in (("index", at), ("max_index", most), ("seed", seeds[..., 0])):
        if x.ndim and x.size != count:
            raise errors.InvalidArgumentError(
                f"index_shuffle: {name_} must be one, or as many as there are results, {count}; got {x.size}."
            )
    if np.any(at < 0) or np.any(at > most):  # the cipher would never end up in the range
        raise errors.InvalidArgumentError(
            f"index_shuffle: index must be from 0 to max_index; got {at.tolist()}, max_index {most.tolist()}."
        )
    rows = [np.broadcast_to(x, (count,)).tolist() for x in (at, most, *np.moveaxis(seeds, -1, 0))]
    out = [
        _simon_index(i, m, [k & 0xFFFFFFFF for k in keys], rounds) for i, m, *keys in zip(*rows, strict=True)
    ]
    scalar = at.ndim == most.ndim == 0 and seeds.ndim == 1
    return as_tensor(np.array(out, at.dtype).reshape(() if scalar else (count,)))


def _simon_index(index, most, key, rounds):
    if most == 0:
        return 0
    bits = math.ceil(math.log2(most))
    word = max(bits + bits % 2, 16) // 2
    mask = (1 << word) - 1

    def rotated(x, by):
        return (x << by | x >> (word - by)) & mask

    def mixed(x):
        return rotated(x, 1) & rotated(x, 8) ^ rotated(x, 2)

    keys, z = [k & mask for k in key], 0x7369F885192C0EF5
    for i in range(3, rounds):
        last = keys[i - 1]
        keys.append(
            (0xFFFFFFFC & mask) ^ (z & 1) ^ keys[i - 3] ^ rotated(last, word - 3) ^ rotated(last, word - 4)
        )
        z >>= 1
    while True:
        left, right = index >> word & mask, index & mask
        for first, second in zip(keys[::2], keys[1::2], strict=True):
            left ^= mixed(right) ^ first
            right ^= mixed(left) ^ second
        index = left << word | right
        if index <= most:
            return index
