"""Windows: weights for the elements of a frame."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.ops import PUBLIC, cast, concat, convert_to_tensor, cumsum, reverse, sqrt
from gradtape._src.ops.static import ints_of


def _length(op: str, window_length: Any, dtype: Any) -> tuple[int, dtypes.DType]:
    kind = dtypes.as_dtype(dtype)
    if not kind.is_floating:
        raise ValueError(f"{op}: dtype must be a floating point type. Found {kind!r}")
    if np.ndim(window_length) != 0:
        raise ValueError(f"{op}: the shape of window_length must have rank 0; got {window_length!r}")
    (n,) = ints_of(window_length)
    if n < 0:
        raise ValueError(f"{op}: window_length must not be negative; got {n}")
    return n, kind


def _tensor(values: np.ndarray, kind: dtypes.DType) -> Any:
    return cast(convert_to_tensor(values), kind)


def _raised_cosine(op: str, window_length: Any, periodic: Any, dtype: Any, a: float, b: float) -> Any:
    n, kind = _length(op, window_length, dtype)
    if n == 1:
        return _tensor(np.ones(1), kind)
    # A window of even length is periodic when its next value would be the first one again.
    period = n - 1 + (1 - n % 2) * bool(periodic)
    return _tensor(a - b * np.cos(2 * np.pi * np.arange(n) / max(period, 1)), kind)


def hann_window(
    window_length: Any, periodic: Any = True, dtype: Any = dtypes.float32, name: str | None = None
) -> Any:
    """The Hann window, a raised cosine that begins with 0.

    Args:
      periodic: True for spectra; False is symmetric, for filters. With odd lengths both are equal.
    """
    return _raised_cosine("hann_window", window_length, periodic, dtype, 0.5, 0.5)


def hamming_window(
    window_length: Any, periodic: Any = True, dtype: Any = dtypes.float32, name: str | None = None
) -> Any:
    """The Hamming window, a raised cosine that begins with 0.08."""
    return _raised_cosine("hamming_window", window_length, periodic, dtype, 0.54, 0.46)


def kaiser_window(
    window_length: Any, beta: Any = 12.0, dtype: Any = dtypes.float32, name: str | None = None
) -> Any:
    """The Kaiser window; the larger `beta`, the narrower."""
    n, kind = _length("kaiser_window", window_length, dtype)
    at = 2 * (np.arange(n) - (n - 1) / 2) / max(n - 1, 1)
    inside = np.sqrt(np.maximum(1 - at * at, 0))
    if not isinstance(beta, (_core.Tensor, _core.Variable)):
        return _tensor(np.i0(beta * inside) / np.i0(beta), kind)
    bessel = PUBLIC["math.bessel_i0"]
    beta = cast(beta, kind)
    return bessel(beta * inside.astype(kind.as_numpy_dtype)) / bessel(beta)


def kaiser_bessel_derived_window(
    window_length: Any, beta: Any = 12.0, dtype: Any = dtypes.float32, name: str | None = None
) -> Any:
    """A window of even length, derived from a Kaiser window; squares of elements half a length apart add up to 1."""
    n, kind = _length("kaiser_bessel_derived_window", window_length, dtype)
    half = n // 2
    fine = dtypes.float64 if kind is dtypes.float64 or not isinstance(beta, _core.Tensor) else kind
    sums = cumsum(kaiser_window(half + 1, beta, fine))
    first = cast(sqrt(sums[:-1] / sums[-1]), kind)
    return concat([first, reverse(first, [0])], 0)


def vorbis_window(window_length: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Any:
    """The window of the Vorbis codec; squares of elements half a length apart add up to 1."""
    n, kind = _length("vorbis_window", window_length, dtype)
    inner = np.sin(np.pi / max(n, 1) * (np.arange(n) + 0.5))
    return _tensor(np.sin(np.pi / 2 * inner**2), kind)
