"""The mel scale: weights that sum a spectrum over perceptual bands, and cepstral coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.ops import cast, convert_to_tensor
from gradtape.signal.cosine import dct


def _mel(hertz: Any) -> Any:
    """O'Shaughnessy's formula, as in HTK."""
    return 1127.0 * np.log1p(np.asarray(hertz) / 700.0)


def _number(value: Any) -> float:
    return float(value.numpy()) if isinstance(value, (_core.Tensor, _core.Variable)) else value


def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20,
    num_spectrogram_bins: Any = 129,
    sample_rate: Any = 8000,
    lower_edge_hertz: Any = 125.0,
    upper_edge_hertz: Any = 3800.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Any:
    """The matrix `[num_spectrogram_bins, num_mel_bins]` that converts a linear spectrogram to a mel spectrogram.

    Bands are triangles between the centres of their neighbours, evenly spaced on the mel scale.

    Args:
      num_spectrogram_bins: the number of bins between 0 and half the sample rate.
      lower_edge_hertz, upper_edge_hertz: the lowest and highest frequency of the bands.
    """
    op = "linear_to_mel_weight_matrix"
    kind = dtypes.as_dtype(dtype)
    rate, lower, upper = (_number(v) for v in (sample_rate, lower_edge_hertz, upper_edge_hertz))
    if num_mel_bins <= 0:
        raise ValueError(f"{op}: num_mel_bins must be positive. Got: {num_mel_bins}")
    if lower < 0:
        raise ValueError(f"{op}: lower_edge_hertz must be non-negative. Got: {lower}")
    if lower >= upper:
        raise ValueError(f"{op}: lower_edge_hertz {lower:.1f} >= upper_edge_hertz {upper:.1f}")
    if rate <= 0:
        raise ValueError(f"{op}: sample_rate must be positive. Got: {rate}")
    if upper > rate / 2:
        raise ValueError(
            f"{op}: upper_edge_hertz must not be larger than the Nyquist frequency (sample_rate / 2). Got "
            f"{upper} for sample_rate: {rate}"
        )
    if not kind.is_floating:
        raise ValueError(f"{op}: dtype must be a floating point type. Got: {kind!r}")
    bins = int(_number(num_spectrogram_bins))
    # The bin at frequency 0 belongs to no band.
    at = _mel(np.linspace(0.0, rate / 2, bins)[1:])[:, None]
    edges = np.linspace(_mel(lower), _mel(upper), num_mel_bins + 2)
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    rising, falling = (at - low) / (middle - low), (high - at) / (high - middle)
    weights = np.maximum(0.0, np.minimum(rising, falling))
    return cast(convert_to_tensor(np.pad(weights, [[1, 0], [0, 0]])), kind)


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Any:
    """Mel-frequency cepstral coefficients: the cosine transform of each logarithmic mel spectrum."""
    x = convert_to_tensor(log_mel_spectrograms)
    if len(x.shape) < 1 or x.shape[-1] == 0:
        raise ValueError(
            f"mfccs_from_log_mel_spectrograms: num_mel_bins must be positive. Got: shape {list(x.shape)}"
        )
    return dct(x) * (2.0 * x.shape[-1]) ** -0.5
