"""NumPy references of the random ops: Philox4x32-10, and the distributions computed from its bits."""

from __future__ import annotations

import math

import numpy as np


def groups_of(state, groups):
    """The random bits of groups 0, 1, ... of a stream: uint32[groups, 4]."""
    key, high, low = (int(s) & 2**64 - 1 for s in np.asarray(state).tolist())
    number = [(high << 64) + low + g for g in range(groups)]
    counter = [np.array([n >> 32 * i & 0xFFFFFFFF for n in number], np.uint64) for i in range(4)]
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        p0, p1 = counter[0] * np.uint64(0xD2511F53), counter[2] * np.uint64(0xCD9E8D57)
        counter = [
            p1 >> half ^ counter[1] ^ np.uint64(k0),
            p1 & mask,
            p0 >> half ^ counter[3] ^ np.uint64(k1),
            p0 & mask,
        ]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(counter, 1).astype(np.uint32)


def _floats(drawn):
    return ((drawn & np.uint32(0x7FFFFF)) | np.uint32(0x3F800000)).view(np.float32).astype(float) - 1


def uniform(state, shape, dtype="float32"):
    size = math.prod(np.atleast_1d(shape).tolist())
    if dtype == "float64":
        b = groups_of(state, (size + 1) // 2).reshape(-1, 2).astype(np.uint64)
        x = ((b[:, 0] & np.uint64(0xFFFFF)) << np.uint64(32) | b[:, 1] | np.uint64(1023 << 52)).view(
            np.float64
        ) - 1
        return x[:size].reshape(shape)
    return _floats(groups_of(state, (size + 3) // 4).reshape(-1))[:size].reshape(shape)


def normal(state, shape, dtype="float32"):
    size = math.prod(np.atleast_1d(shape).tolist())
    wide = dtype == "float64"
    groups = (size + 1) // 2 if wide else (size + 3) // 4
    u = uniform(state, (groups if wide else 2 * groups, 2), dtype)
    radius = np.sqrt(-2 * np.log(np.maximum(u[:, 0], 1e-7)))
    angle = 2 * np.pi * u[:, 1]
    return np.stack([np.sin(angle) * radius, np.cos(angle) * radius], 1).reshape(-1)[:size].reshape(shape)


def truncated_normal(state, shape, dtype="float32"):
    size = math.prod(np.atleast_1d(shape).tolist())
    per_group = 2 if dtype == "float64" else 4
    out = []
    key, high, low = np.asarray(state).tolist()
    for g in range(-(-size // per_group)):
        some = normal((key, high, low + g * per_group * 64), (per_group * 16,), dtype)
        out.extend(some[np.abs(some) < 2][:per_group])
    return np.array(out[:size]).reshape(shape)


def bits(state, shape, dtype="int32"):
    size = math.prod(np.atleast_1d(shape).tolist())
    kind = np.dtype(dtype)
    b = groups_of(state, (size + 1) // 2 if kind.itemsize == 8 else (size + 3) // 4)
    unsigned = (
        b.reshape(-1)
        if kind.itemsize == 4
        else (b.astype(np.uint64)[:, ::2] | b.astype(np.uint64)[:, 1::2] << np.uint64(32)).reshape(-1)
    )
    return unsigned[:size].reshape(shape).view(kind)


def uniform_int(minval, maxval, state, shape, dtype):
    kind = np.dtype(dtype)
    drawn = bits(state, shape, "u" + kind.name.lstrip("u"))
    return (drawn % drawn.dtype.type(int(maxval) - int(minval))).astype(kind) + kind.type(minval)


def permutation(state, n):
    drawn = groups_of(state, n // 4 + 1).reshape(-1).tolist()
    p = list(range(n))
    for i in range(n - 1):
        k = i + drawn[i] % (n - i)
        p[i], p[k] = p[k], p[i]
    return np.array(p, np.int64)


def categorical(logits, state, num_samples, dtype="int64"):
    cdf = np.cumsum(np.exp(logits - logits.max(-1, keepdims=True)), -1)
    u = uniform(state, (len(logits), num_samples), "float64") * cdf[:, -1:]
    return np.array([np.searchsorted(c, x, "right") for c, x in zip(cdf, u, strict=True)], dtype)


def recorded(value):
    """A reference for rejection samplers: TensorFlow's results for the sample of the row."""
    return lambda *operands, shape, **attrs: np.broadcast_to(np.array(value), [*shape, *operands[0].shape])
