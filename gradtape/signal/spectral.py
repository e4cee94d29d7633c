"""Spectra of short frames of signals: the short-time Fourier transform and the modified discrete cosine
transform, and their inverses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape._src.base import dtypes
from gradtape._src.ops import concat, convert_to_tensor, reduce_sum, reshape, reverse, square, tile
from gradtape.signal.cosine import dct, idct
from gradtape.signal.fourier import irfft, rfft
from gradtape.signal.frames import crop_or_pad, frame, overlap_and_add, whole
from gradtape.signal.windows import hann_window, vorbis_window


def _power_of_two(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()


def _rank(op: str, x: Any, least: int) -> None:
    if len(x.shape) < least:
        raise ValueError(f"{op}: Shape {x.shape} must have rank at least {least}")


def stft(
    signals: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Callable | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Any:
    """The spectra of overlapping frames of real signals, `[..., frames, fft_length // 2 + 1]`.

    Args:
      fft_length: the length of each transform, by default the smallest power of two not less than `frame_length`.
      window_fn: called with `(frame_length, dtype=...)`; None: no window.
      pad_end: pad incomplete frames at the end with zeros, instead of dropping them.
    """
    x = convert_to_tensor(signals)
    _rank("stft", x, 1)
    length, step = whole("frame_length", frame_length), whole("frame_step", frame_step)
    size = _power_of_two(length) if fft_length is None else whole("fft_length", fft_length)
    frames = frame(x, length, step, pad_end=pad_end)
    if window_fn is not None:
        frames = frames * window_fn(length, dtype=x.dtype)
    return rfft(frames, [size])


def inverse_stft_window_fn(
    frame_step: Any, forward_window_fn: Callable = hann_window, name: str | None = None
) -> Callable:
    """The window with which `inverse_stft` inverts `stft` with `forward_window_fn`."""
    step = whole("frame_step", frame_step)

    def inverse_window(frame_length: Any, dtype: Any) -> Any:
        length = whole("frame_length", frame_length)
        window = forward_window_fn(length, dtype=dtype)
        overlaps = -(-length // step)
        # The sum of the squared windows of all frames that overlap a position.
        squares = reshape(crop_or_pad(square(window), overlaps * step), [overlaps, step])
        return window / tile(reduce_sum(squares, 0), [overlaps])[:length]

    return inverse_window


def inverse_stft(
    stfts: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Callable | None = hann_window,
    name: str | None = None,
) -> Any:
    """The signals whose short-time Fourier transforms are `stfts`.

    Exact only with the right window: `window_fn=inverse_stft_window_fn(frame_step, forward_window_fn)`.
    """
    x = convert_to_tensor(stfts)
    _rank("inverse_stft", x, 2)
    length, step = whole("frame_length", frame_length), whole("frame_step", frame_step)
    size = _power_of_two(length) if fft_length is None else whole("fft_length", fft_length)
    frames = crop_or_pad(irfft(x, [size]), length)
    if window_fn is not None:
        frames = frames * window_fn(length, dtype=x.dtype.real_dtype)
    return overlap_and_add(frames, step)


# ---- modified discrete cosine transform ----


def _window(length: int, window_fn: Callable | None, dtype: Any) -> Any:
    # Without a window, each of the two overlapping frames contributes half of the energy.
    return 0.5**0.5 if window_fn is None else window_fn(length, dtype=dtype)


def _quarter(op: str, frame_length: int) -> int:
    if frame_length % 4 or frame_length < 4:
        raise ValueError(f"{op}: The frame length must be a multiple of 4.")
    return frame_length // 4


def _backwards(x: Any) -> Any:
    return reverse(x, [len(x.shape) - 1])


def mdct(
    signals: Any,
    frame_length: Any,
    window_fn: Callable | None = vorbis_window,
    pad_end: bool = False,
    norm: str | None = None,
    name: str | None = None,
) -> Any:
    """The modified discrete cosine transform of frames that overlap by half, `[..., frames, frame_length // 2]`.

    Args:
      frame_length: a multiple of 4.
      window_fn: called with `(frame_length, dtype=...)`.
      norm: None or "ortho", as in `dct`.
    """
    x = convert_to_tensor(signals)
    _rank("mdct", x, 1)
    length = whole("frame_length", frame_length)
    q = _quarter("mdct", length)
    frames = frame(x, length, 2 * q, pad_end=pad_end) * _window(length, window_fn, x.dtype)
    a, b, c, d = (frames[..., i * q : (i + 1) * q] for i in range(4))
    return dct(concat([-_backwards(c) - d, a - _backwards(b)], -1), type=4, norm=norm)


def inverse_mdct(
    mdcts: Any, window_fn: Callable | None = vorbis_window, norm: str | None = None, name: str | None = None
) -> Any:
    """The inverse of `mdct` with the same window; the first and last half frame cannot be restored."""
    x = convert_to_tensor(mdcts)
    _rank("inverse_mdct", x, 2)
    half = x.shape[-1]
    q = _quarter("inverse_mdct", 2 * half)
    y = idct(x, type=4, norm=norm)
    if norm is None:
        y = y * (0.5 / half)
    left, right = y[..., :q], y[..., q:]
    frames = concat([right, -_backwards(right), -_backwards(left), -left], -1)
    kind = x.dtype if x.dtype.is_floating else dtypes.float32
    return overlap_and_add(frames * _window(2 * half, window_fn, kind), half)
