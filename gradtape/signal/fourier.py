"""Discrete Fourier transforms in one to three dimensions, or over any axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops import cast, convert_to_tensor, fft_of, irfft_of, pad, rfft_of, roll, transpose
from gradtape._src.ops.static import axis_of, ints_of


def _as_complex(value: Any) -> Any:
    """Floats of a list become complex64; Python's complex numbers complex128, as everywhere."""
    if isinstance(value, (list, tuple)) and np.iscomplexobj(value):
        return convert_to_tensor(value)
    return convert_to_tensor(value, dtype_hint=dtypes.complex64)


def _complex(op: str, value: Any, rank: int) -> Any:
    x = _as_complex(value)
    if len(x.shape) < rank:
        raise InvalidArgumentError(f"{op}: Input must have rank of at least {rank} but got: {list(x.shape)}")
    return x


def _size(x: Any, axes: Sequence[int]) -> int:
    return prod(x.shape[a] for a in axes)


def _last(rank: int) -> list[int]:
    return list(range(-rank, 0))


def fft(input: Any, name: str | None = None) -> Any:
    """The discrete Fourier transform along the last axis.

    >>> import gradtape as tf
    >>> tf.signal.fft([1.0, 0.0, 0.0, 0.0]).numpy().tolist()
    [(1+0j), (1+0j), (1+0j), (1+0j)]
    """
    return fft_of(_complex("fft", input, 1), _last(1))


def fft2d(input: Any, name: str | None = None) -> Any:
    """The discrete Fourier transform over the last two axes."""
    return fft_of(_complex("fft2d", input, 2), _last(2))


def fft3d(input: Any, name: str | None = None) -> Any:
    """The discrete Fourier transform over the last three axes."""
    return fft_of(_complex("fft3d", input, 3), _last(3))


def _inverse(op: str, value: Any, rank: int) -> Any:
    x = _complex(op, value, rank)
    return fft_of(x, _last(rank), True, 1.0 / max(_size(x, _last(rank)), 1))


def ifft(input: Any, name: str | None = None) -> Any:
    """The inverse of `fft`."""
    return _inverse("ifft", input, 1)


def ifft2d(input: Any, name: str | None = None) -> Any:
    """The inverse of `fft2d`."""
    return _inverse("ifft2d", input, 2)


def ifft3d(input: Any, name: str | None = None) -> Any:
    """The inverse of `fft3d`."""
    return _inverse("ifft3d", input, 3)


# ---- real signals ----


def _fitted(x: Any, sizes: Sequence[int], axes: Sequence[int]) -> Any:
    """`x` padded with zeros or truncated at the end of some axes."""
    rank = len(x.shape)
    part = [slice(None)] * rank
    widths = [[0, 0] for _ in range(rank)]
    for a, n in zip(axes, sizes, strict=True):
        if n < x.shape[a]:
            part[a] = slice(n)
        widths[a] = [0, max(n - x.shape[a], 0)]
    if any(s.stop is not None for s in part):
        x = x[tuple(part)]
    return pad(x, widths) if any(w[1] for w in widths) else x


def _whole(half: int) -> int:
    """The default number of real values for a half transform of size `half`."""
    return 2 * max(half - 1, 0)


def _lengths(op: str, x: Any, fft_length: Any, rank: int) -> list[int]:
    lengths = ints_of(fft_length)
    if len(lengths) != rank:
        raise InvalidArgumentError(f"{op}: fft_length must have shape [{rank}]; got {lengths}")
    if any(n < (prod(x.shape) > 0) for n in lengths):  # empty stays empty
        raise InvalidArgumentError(
            f"{op}: fft_length must be positive; got {lengths} for shape {list(x.shape)}"
        )
    return lengths


def _real_forward(op: str, value: Any, fft_length: Any, axes: Sequence[int], scale: float = 1.0) -> Any:
    """Over `axes`, the last of which is the last axis of `value`."""
    x = convert_to_tensor(value, dtype_hint=dtypes.float32)
    if x.dtype not in (dtypes.float32, dtypes.float64):
        raise ValueError(
            f"{op}: RFFT requires tf.float32 or tf.float64 inputs, got: {x.dtype.name}{list(x.shape)}"
        )
    if len(x.shape) < len(axes):
        raise ValueError(f"{op}: Shape {x.shape} must have rank at least {len(axes)}")
    if fft_length is not None:
        x = _fitted(x, _lengths(op, x, fft_length, len(axes)), axes)
    out = rfft_of(x, scale)
    return fft_of(out, list(axes[:-1])) if len(axes) > 1 else out


def _real_inverse(
    op: str, value: Any, fft_length: Any, axes: Sequence[int], scale: float | None = None
) -> Any:
    x = _as_complex(value)
    if not x.dtype.is_complex:
        raise ValueError(
            f"{op}: IRFFT requires tf.complex64 or tf.complex128 inputs, got: {x.dtype.name}{list(x.shape)}"
        )
    if len(x.shape) < len(axes):
        raise ValueError(f"{op}: Shape {x.shape} must have rank at least {len(axes)}")
    if fft_length is None:
        fft_length = [*(x.shape[a] for a in axes[:-1]), _whole(x.shape[axes[-1]])]
    sizes = _lengths(op, x, fft_length, len(axes))
    x = _fitted(x, [*sizes[:-1], sizes[-1] // 2 + 1 if sizes[-1] else 0], axes)
    if len(axes) > 1:
        x = fft_of(x, list(axes[:-1]), True)
    return irfft_of(x, sizes[-1], 1.0 / max(prod(sizes), 1) if scale is None else scale)


def rfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Any:
    """The first half (`fft_length // 2 + 1` elements) of the Fourier transform of real numbers.

    Args:
      fft_length: a list with the length of the transform: the signal is truncated or padded with zeros.
    """
    return _real_forward("rfft", input_tensor, fft_length, _last(1))


def rfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Any:
    """The Fourier transform of real numbers over the last two axes; the first half along the last."""
    return _real_forward("rfft2d", input_tensor, fft_length, _last(2))


def rfft3d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Any:
    """The Fourier transform of real numbers over the last three axes; the first half along the last."""
    return _real_forward("rfft3d", input_tensor, fft_length, _last(3))


def irfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Any:
    """The inverse of `rfft`: real numbers from the first half of their Fourier transform.

    Args:
      fft_length: a list with the length of the result, by default `2 * (n - 1)`.
    """
    return _real_inverse("irfft", input_tensor, fft_length, _last(1))


def irfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Any:
    """The inverse of `rfft2d`."""
    return _real_inverse("irfft2d", input_tensor, fft_length, _last(2))


def irfft3d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Any:
    """The inverse of `rfft3d`."""
    return _real_inverse("irfft3d", input_tensor, fft_length, _last(3))


# ---- any axes ----


def _axes(op: str, x: Any, axes: Any, fft_length: Any) -> list[int]:
    rank = len(x.shape)
    if axes is None:
        count = rank if fft_length is None else len(ints_of(fft_length))
        if count > rank:
            raise InvalidArgumentError(
                f"{op}: fft_length has more elements than the tensor axes: {list(x.shape)}"
            )
        return list(range(rank - count, rank))
    out = [axis_of(op, a, rank) for a in ints_of(axes)]
    if len(set(out)) != len(out):
        raise InvalidArgumentError(f"{op}: axes must be different; got {out}")
    return out


def _scales(op: str, norm: Any, size: int) -> tuple[float, float]:
    """The factors of the forward and of the inverse transform."""
    size = max(size, 1)
    if norm in (None, "backward"):
        return 1.0, 1.0 / size
    if norm == "ortho":
        return size**-0.5, size**-0.5
    if norm == "forward":
        return 1.0 / size, 1.0
    raise ValueError(f"{op}: norm must be None, 'backward', 'ortho' or 'forward'; got {norm!r}")


def _complex_over(op: str, value: Any, fft_length: Any, axes: Any, norm: Any, inverse: bool) -> Any:
    x = _as_complex(value)
    if not x.dtype.is_complex:
        x = cast(x, dtypes.complex128 if x.dtype is dtypes.float64 else dtypes.complex64)
    over = _axes(op, x, axes, fft_length)
    if fft_length is not None:
        x = _fitted(x, _lengths(op, x, fft_length, len(over)), over)
    return fft_of(x, over, inverse, _scales(op, norm, _size(x, over))[inverse])


def fftnd(
    input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: Any = None, name: str | None = None
) -> Any:
    """The discrete Fourier transform over some axes, by default all.

    Args:
      fft_length: the lengths of the axes, which are truncated or padded with zeros.
      norm: "backward" (or None) to scale only the inverse, "forward" only this transform, "ortho" both.
    """
    return _complex_over("fftnd", input_tensor, fft_length, axes, norm, False)


def ifftnd(
    input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: Any = None, name: str | None = None
) -> Any:
    """The inverse of `fftnd`."""
    return _complex_over("ifftnd", input_tensor, fft_length, axes, norm, True)


def _to_end(x: _core.Tensor, over: list[int]) -> tuple[Any, list[int]]:
    """Moves the axes `over` to the end; returns also the permutation that moves them back."""
    rank = len(x.shape)
    perm = [*(a for a in range(rank) if a not in over), *over]
    if perm == list(range(rank)):
        return x, []
    return transpose(x, perm), [perm.index(a) for a in range(rank)]


def rfftnd(
    input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: Any = None, name: str | None = None
) -> Any:
    """The Fourier transform of real numbers over some axes, by default all; the first half along the last."""
    x = convert_to_tensor(input_tensor, dtype_hint=dtypes.float32)
    over = _axes("rfftnd", x, axes, fft_length)
    sizes = _lengths("rfftnd", x, [x.shape[a] for a in over] if fft_length is None else fft_length, len(over))
    x, back = _to_end(x, over)
    out = _real_forward("rfftnd", x, sizes, _last(len(over)), _scales("rfftnd", norm, prod(sizes))[0])
    return transpose(out, back) if back else out


def irfftnd(
    input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: Any = None, name: str | None = None
) -> Any:
    """The inverse of `rfftnd`."""
    x = _as_complex(input_tensor)
    over = _axes("irfftnd", x, axes, fft_length)
    if fft_length is None:
        sizes = [*(x.shape[a] for a in over[:-1]), _whole(x.shape[over[-1]])]
    else:
        sizes = _lengths("irfftnd", x, fft_length, len(over))
    x, back = _to_end(x, over)
    out = _real_inverse("irfftnd", x, sizes, _last(len(over)), _scales("irfftnd", norm, prod(sizes))[1])
    return transpose(out, back) if back else out


# ---- shifts of the zero frequency ----


def _shifted(x: Any, axes: Any, by: Any) -> Any:
    x = convert_to_tensor(x)
    rank = len(x.shape)
    over = list(range(rank)) if axes is None else [axis_of("fftshift", a, rank) for a in ints_of(axes)]
    return roll(x, [by(x.shape[a]) for a in over], over) if over else x


def fftshift(x: Any, axes: Any = None, name: str | None = None) -> Any:
    """Moves the zero frequency from the beginning to the middle of `axes`, by default all."""
    return _shifted(x, axes, lambda n: n // 2)


def ifftshift(x: Any, axes: Any = None, name: str | None = None) -> Any:
    """The inverse of `fftshift`; they differ for axes of odd length."""
    return _shifted(x, axes, lambda n: -(n // 2))
