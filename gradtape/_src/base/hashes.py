"""Hash functions of bytes, with TensorFlow's values, so that stored models find their buckets.

`fingerprint` is FarmHash's Fingerprint64, `keyed` SipHash-2-4, `murmur` MurmurHash64A, each written from its
published description.
"""

from __future__ import annotations

import struct

_MASK = (1 << 64) - 1

# ---- FarmHash ---------------------------------------------------------------------------------------

_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_words = struct.Struct("<8Q").unpack_from
_word = struct.Struct("<Q").unpack_from
_half = struct.Struct("<I").unpack_from


def _rotated(x: int, by: int) -> int:
    """The 64 bits of `x`, rotated to the right."""
    x &= _MASK
    return (x >> by | x << (64 - by)) & _MASK


def _mixed(x: int) -> int:
    return x ^ (x >> 47)


def _combined(u: int, v: int, mul: int) -> int:
    """Combines two words into one."""
    u &= _MASK
    v &= _MASK
    a = _mixed((u ^ v) * mul & _MASK)
    return _mixed((v ^ a) * mul & _MASK) * mul & _MASK


def _short(s: bytes, n: int) -> int:
    if n >= 8:
        mul = _K2 + n * 2
        a, b = _word(s)[0] + _K2, _word(s, n - 8)[0]
        return _combined(_rotated(b, 37) * mul + a, (_rotated(a, 25) + b) * mul, mul)
    if n >= 4:
        return _combined(n + (_half(s)[0] << 3), _half(s, n - 4)[0], _K2 + n * 2)
    if n:
        y, z = s[0] + (s[n >> 1] << 8), n + (s[-1] << 2)
        return _mixed((y * _K2 ^ z * _K0) & _MASK) * _K2 & _MASK
    return _K2


def _middle(s: bytes, n: int) -> int:
    """Strings of 17 to 64 bytes."""
    mul = _K2 + n * 2
    a, b = _word(s)[0] * (_K1 if n <= 32 else _K2) & _MASK, _word(s, 8)[0]
    c, d = _word(s, n - 8)[0] * mul & _MASK, _word(s, n - 16)[0] * _K2
    y, second = _rotated(a + b, 43) + _rotated(c, 30) + d, a + _rotated(b + _K2, 18) + c
    z = _combined(y, second, mul)
    if n <= 32:
        return z
    e, f = _word(s, 16)[0] * mul & _MASK, _word(s, 24)[0]
    g, h = (y + _word(s, n - 32)[0]) * mul & _MASK, (z + _word(s, n - 24)[0]) * mul
    return _combined(_rotated(e + f, 43) + _rotated(g, 30) + h, e + _rotated(f + a, 18) + g, mul)


def _weak(w: int, x: int, y: int, z: int, a: int, b: int) -> tuple[int, int]:
    """Combines four words and two seeds into two words."""
    a += w
    b = _rotated(b + a + z, 21)
    c = a
    a += x + y
    return (a + z) & _MASK, (b + _rotated(a, 44) + c) & _MASK


def fingerprint(s: bytes) -> int:
    """FarmHash's Fingerprint64."""
    n = len(s)
    if n <= 16:
        return _short(s, n)
    if n <= 64:
        return _middle(s, n)
    x, y = 81, (81 * _K1 + 113) & _MASK
    z = _mixed((y * _K2 + 113) & _MASK) * _K2
    v, w = (0, 0), (0, 0)
    x = x * _K2 + _word(s)[0]

    def step(at: int, mul: int, nine: int) -> None:
        nonlocal x, y, z, v, w
        a, b, c, d, e, f, g, h = _words(s, at)
        x = _rotated(x + y + v[0] + b, 37) * mul
        y = _rotated(y + v[1] + g, 42) * mul
        x = (x ^ w[1] * nine) & _MASK
        y += v[0] * nine + f
        z = _rotated(z + w[0], 33) * mul
        v = _weak(a, b, c, d, v[1] * mul, x + w[0])
        w = _weak(e, f, g, h, z + w[1], y + c)
        x, y, z = z & _MASK, y & _MASK, x

    end = (n - 1) // 64 * 64
    for at in range(0, end, 64):
        step(at, _K1, 1)
    mul = _K1 + ((z & 0xFF) << 1)
    first = w[0] + ((n - 1) & 63)
    v = (v[0] + first, v[1])
    w = (first + v[0], w[1])
    step(n - 64, mul, 9)
    return _combined(_combined(v[0], w[0], mul) + _mixed(y) * _K0 + z, _combined(v[1], w[1], mul) + x, mul)


# ---- SipHash and MurmurHash -----------------------------------------------------------------------


def keyed(s: bytes, key: tuple[int, int]) -> int:
    """SipHash-2-4."""
    k0, k1 = key[0] & _MASK, key[1] & _MASK
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rounds(count: int) -> None:
        a, b, c, d = v
        for _ in range(count):
            a, c = (a + b) & _MASK, (c + d) & _MASK
            b, d = _rotated(b, 51) ^ a, _rotated(d, 48) ^ c
            a, c = (_rotated(a, 32) + d) & _MASK, (c + b) & _MASK
            b, d = _rotated(b, 47) ^ c, _rotated(d, 43) ^ a
            c = _rotated(c, 32)
        v[:] = a, b, c, d

    padded = s + bytes(-(len(s) + 1) % 8) + bytes([len(s) & 255])
    for (m,) in struct.iter_unpack("<Q", padded):
        v[3] ^= m
        rounds(2)
        v[0] ^= m
    v[2] ^= 255
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def murmur(s: bytes) -> int:
    """MurmurHash64A, with TensorFlow's seed."""
    m, n = 0xC6A4A7935BD1E995, len(s)
    h = 0xDECAFCAFFE ^ n * m & _MASK
    for (k,) in struct.iter_unpack("<Q", s[: n // 8 * 8]):
        k = _mixed(k * m & _MASK) * m & _MASK
        h = (h ^ k) * m & _MASK
    if n % 8:
        h = (h ^ int.from_bytes(s[n // 8 * 8 :], "little")) * m & _MASK
    return _mixed(_mixed(h) * m & _MASK)


# ---- buckets ----------------------------------------------------------------------------------------
