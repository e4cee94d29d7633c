"""Arithmetic on XLA where jax.numpy's function differs from ours: quotients, remainders, powers, bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

_WHOLE = 64  # complex powers with integer exponents up to this are products


def _is_float(x: Any) -> bool:
    return bool(jnp.issubdtype(x.dtype, jnp.floating))


def squared_difference(x: Any, y: Any) -> Any:
    """`(x - y)²`; of complex numbers `|x - y|²`."""
    d = x - y
    return jnp.real(d) ** 2 + jnp.imag(d) ** 2 if jnp.iscomplexobj(d) else d * d


def clip(x: Any, low: Any, high: Any) -> Any:
    """`x` in [low, high]; `low` if that is empty, and no bound where one is NaN."""
    below = jnp.where(x > high, high, x)
    return jnp.where(below < low, low, below)


def fma(x: Any, y: Any, z: Any) -> Any:
    """`x * y + z`."""
    return x * y + z


def div_no_nan(x: Any, y: Any) -> Any:
    """`x / y`, and 0 where `y` is 0."""
    return jnp.where(y == 0, 0, x / y)


def mul_no_nan(x: Any, y: Any) -> Any:
    """`x * y`, and 0 where `y` is 0."""
    return jnp.where(y == 0, 0, x * y)


# ---- division with remainder ----


def divisor(x: Any, *, check: Callable[[Any], None]) -> Any:
    """`x` without zeros. Where there is a zero, the result is not used, so it is replaced by 1."""
    check(x != 0)
    return jnp.where(x == 0, 1, x)


def exponent(x: Any, *, check: Callable[[Any], None]) -> Any:
    """`x` without negative numbers."""
    check(x >= 0)
    return x


def truncatediv(x: Any, y: Any) -> Any:
    """`x / y`, rounded towards zero."""
    return jnp.trunc(x / y) if _is_float(x) else lax.div(*jnp.broadcast_arrays(x, y))


def truncatemod(x: Any, y: Any) -> Any:
    """The remainder of `truncatediv`."""
    return lax.rem(*jnp.broadcast_arrays(x, y))


def floordiv(x: Any, y: Any) -> Any:
    """`x / y`, rounded down."""
    if _is_float(x):
        return jnp.floor(x / y)
    one_more = (truncatemod(x, y) != 0) & ((x < 0) != (y < 0))
    return truncatediv(x, y) - one_more.astype(x.dtype)


def floormod(x: Any, y: Any) -> Any:
    """The remainder of `floordiv`."""
    rest = truncatemod(x, y)
    return jnp.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)


# ---- powers ----


def power(x: Any, y: Any, *, check: Callable[[Any], None]) -> Any:
    """`x ** y`."""
    if _is_float(x):
        return jnp.power(x, y)
    if jnp.iscomplexobj(x):
        return _complex_power(x, y)
    if jnp.issubdtype(y.dtype, jnp.signedinteger):
        check(y >= 0)
        y = jnp.maximum(y, 0)
    return _product(x, y, bits=8 * y.dtype.itemsize)


def _product(x: Any, count: Any, bits: int) -> Any:
    """`x` times itself, `count` factors, by squaring."""

    def step(_: Any, state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        out, factor, left = state
        return jnp.where(left & 1 == 1, out * factor, out), factor * factor, left >> 1

    x, count = jnp.broadcast_arrays(x, count)
    return lax.fori_loop(0, bits, step, (jnp.ones_like(x), x, count))[0]


def _complex_power(x: Any, y: Any) -> Any:
    """Integer exponents by products, which is exact where exp(y log(x)) is not."""
    p = jnp.real(y)
    whole = (jnp.imag(y) == 0) & (p == jnp.round(p)) & (jnp.abs(p) <= _WHOLE)
    count = jnp.where(whole, jnp.abs(p), 0).astype(jnp.int32)
    product = _product(x, count, bits=_WHOLE.bit_length())
    product = jnp.where(p < 0, 1 / product, product)
    other = jnp.where((x == 0) & (p > 0), 0, jnp.power(x, y))
    return jnp.where(whole, product, other)
