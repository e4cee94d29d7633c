"""Discrete cosine transforms of types I to IV along the last axis, computed with real Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape._src.base import dtypes
from gradtape._src.ops import (
    complex_,
    concat,
    convert_to_tensor,
    gather,
    imag,
    irfft_of,
    pad,
    real,
    reverse,
    rfft_of,
)


def _folding(n: int) -> np.ndarray:
    """The even indices, then the odd ones in reverse (Makhoul 1980)."""
    return np.concatenate([np.arange(0, n, 2), np.arange(1, n, 2)[::-1]]).astype(np.int32)


def _picked(x: Any, places: np.ndarray) -> Any:
    """Elements of the last axis; never its first, whose gradient would be sparse."""
    return gather(x, places, axis=-1) if len(x.shape) > 1 else gather(x[None], places, axis=1)[0]


def _turns(n: int, dtype: Any) -> np.ndarray:
    kind = np.complex128 if dtype is dtypes.float64 else np.complex64
    return np.exp(-0.5j * np.pi * np.arange(n // 2 + 1) / n).astype(kind)


def _backwards(x: Any) -> Any:
    return reverse(x, [len(x.shape) - 1])


def _type_1(x: Any) -> Any:
    """By the transform of the even extension."""
    return real(rfft_of(concat([x, _backwards(x[..., 1:-1])], -1)))


def _type_2(x: Any) -> Any:
    n = x.shape[-1]
    z = rfft_of(_picked(x, _folding(n)), 2.0) * _turns(n, x.dtype)
    return concat([real(z), -_backwards(imag(z)[..., 1 : (n + 1) // 2])], -1)


def _type_3(x: Any) -> Any:
    """The steps of type II in reverse."""
    n = x.shape[-1]
    half = n // 2 + 1
    mirrored = pad(_backwards(x[..., n - half + 1 :]), [[0, 0]] * (len(x.shape) - 1) + [[1, 0]])
    z = complex_(x[..., :half], -mirrored) * np.conj(_turns(n, x.dtype))
    return _picked(irfft_of(z, n), np.argsort(_folding(n)).astype(np.int32))


def _type_4(x: Any) -> Any:
    """The odd elements of type II of the signal padded with zeros to twice its length."""
    n = x.shape[-1]
    return _type_2(pad(x, [[0, 0]] * (len(x.shape) - 1) + [[0, n]]))[..., 1::2]


_TYPES = {1: _type_1, 2: _type_2, 3: _type_3, 4: _type_4}
_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


def _check(op: str, type: Any, n: Any, axis: Any, norm: Any) -> None:
    if axis != -1:
        raise NotImplementedError(f"{op}: axis must be -1. Got: {axis}")
    if n is not None and n < 1:
        raise ValueError(f"{op}: n should be a positive integer or None; got {n}")
    if type not in _TYPES:
        raise ValueError(f"{op}: Types I, II, III and IV (I)DCT are supported.")
    if norm not in (None, "ortho"):
        raise ValueError(f"{op}: Unknown normalization. Expected None or 'ortho', got: {norm}")
    if type == 1 and norm is not None:
        raise ValueError(f"{op}: Normalization is not supported for the Type-I DCT.")


def _transform(op: str, input: Any, type: int, n: int | None, norm: str | None) -> Any:
    x = convert_to_tensor(input)
    if x.dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(f"{op}: expected tf.float32 or tf.float64; got {x.dtype.name}{list(x.shape)}.")
    if len(x.shape) < 1:
        raise ValueError(f"{op}: Shape () must have rank at least 1")
    if n is not None:
        x = x[..., :n]
        if n > x.shape[-1]:
            x = pad(x, [[0, 0]] * (len(x.shape) - 1) + [[0, n - x.shape[-1]]])
    size = x.shape[-1]
    if type == 1 and size < 2:
        raise ValueError(f"{op}: Type-I DCT requires the dimension to be greater than one.")
    if size == 0:
        raise ValueError(f"{op}: the last axis is empty; got shape {list(x.shape)}")
    if norm is None:
        return _TYPES[type](x)
    weights = np.full(size, (2.0 * size) ** -0.5, x.dtype.as_numpy_dtype)
    if type == 4:
        return _type_4(x) * weights
    if type == 2:
        weights[0] = 0.5 * size**-0.5
        return _type_2(x) * weights
    weights[0] = size**-0.5
    return _type_3(x * weights)


def dct(
    input: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The discrete cosine transform along the last axis.

    Args:
      type: 1, 2, 3 or 4.
      n: the length of the transform: the signal is truncated or padded with zeros.
      norm: "ortho" makes types 2 to 4 orthogonal; None does not scale.
    """
    _check("dct", type, n, axis, norm)
    return _transform("dct", input, type, n, norm)


def idct(
    input: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The inverse of `dct`, up to a factor (`1 / (2 * n)`, type 1: `0.5 / (n - 1)`) unless `norm="ortho"`."""
    _check("idct", type, n, axis, norm)
    return _transform("idct", input, _INVERSE[type], n, norm)
