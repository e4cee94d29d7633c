"""`keras.ops.math`: segments, the largest elements, Fourier transforms, special functions.

Keras writes complex numbers as pairs of real tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradtape as tf
from gradtape.backend import array_of, one_call_each, op
from keras_gradtape.src.ops.core import convert_to_tensor
from keras_gradtape.src.ops.types import INTEGERS, Tensor, floating, floats

_select = op("select")

__all__ = [
    "cdist", "erf", "erfc", "erfinv", "extract_sequences", "fft", "fft2", "gammainc", "ifft2", "in_top_k", "irfft",
    "istft", "lgamma", "logdet", "logsumexp", "rfft", "rsqrt", "segment_max", "segment_min", "segment_prod",
    "segment_sum", "stft", "top_k",
]  # fmt: skip

# ---- segments -----------------------------------------------------------------------------------------
# A segment without rows has the neutral value: infinities for extrema, as in JAX.


def _segments(data: Any, segment_ids: Any, num_segments: int | None) -> tuple[Any, Any, int]:
    x, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
    if ids.dtype.name not in ("int32", "int64"):
        ids = tf.cast(ids, "int32")
    if num_segments is None:
        num_segments = int(array_of(ids).max(initial=-1)) + 1
    return x, ids, int(num_segments)


def _extreme(op: Callable, nothing: float, data: Any, segment_ids: Any, num_segments: int | None) -> Any:
    x, ids, count = _segments(data, segment_ids, num_segments)
    out = op(x, ids, count)
    if x.dtype.is_integer:
        return out
    rows = tf.math.unsorted_segment_sum(tf.ones_like(ids), ids, count)
    return _select(tf.reshape(rows > 0, [count, *[1] * (x.ndim - 1)]), out, nothing)


def segment_sum(data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False) -> Any:
    return tf.math.unsorted_segment_sum(*_segments(data, segment_ids, num_segments))


def segment_prod(data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False) -> Any:
    return tf.math.unsorted_segment_prod(*_segments(data, segment_ids, num_segments))


def segment_max(data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False) -> Any:
    return _extreme(tf.math.unsorted_segment_max, float("-inf"), data, segment_ids, num_segments)


def segment_min(data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False) -> Any:
    return _extreme(tf.math.unsorted_segment_min, float("inf"), data, segment_ids, num_segments)


# ---- order --------------------------------------------------------------------------------------------


def top_k(x: Any, k: int, sorted: bool = True) -> Any:
    return tf.math.top_k(convert_to_tensor(x), k, sorted)


def in_top_k(targets: Any, predictions: Any, k: int) -> Any:
    targets = convert_to_tensor(targets)
    if targets.dtype.name not in ("int32", "int64"):
        targets = tf.cast(targets, "int32")
    return tf.math.in_top_k(targets, convert_to_tensor(predictions), k)


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return tf.reduce_logsumexp(floating(x), axis, keepdims)


def cdist(x: Any, y: Any) -> Any:
    """The Euclidean distances of all rows of `x` from all rows of `y`."""
    x, y = floats(x, y)
    if x.ndim < 2 or y.ndim < 2:
        raise ValueError("`cdist` inputs must have rank >= 2")
    if x.shape[-1] != y.shape[-1]:
        raise ValueError("Last dimension of inputs to `cdist` must match")
    return tf.norm(tf.expand_dims(x, -2) - tf.expand_dims(y, -3), axis=-1)


# ---- Fourier transforms ---------------------------------------------------------------------------------


def extract_sequences(x: Any, sequence_length: int, sequence_stride: int) -> Any:
    return tf.signal.frame(convert_to_tensor(x), sequence_length, sequence_stride)


def _get_complex_tensor_from_tuple(x: Any) -> Any:
    """Keras calls it by this name."""
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise ValueError(f"Input `x` should be a tuple of two tensors - real and imaginary. Received: x={x}")
    real, imag = (convert_to_tensor(part) for part in x)
    if tuple(real.shape) != tuple(imag.shape):
        raise ValueError(
            "Input `x` should be a tuple of two tensors - real and imaginary. "
            "Both the real and imaginary parts should have the same shape. "
            f"Received: x[0].shape = {tuple(real.shape)}, x[1].shape = {tuple(imag.shape)}"
        )
    if not real.dtype.is_floating or not imag.dtype.is_floating:
        raise ValueError(f"At least one tensor in input `x` is not of type float. Received: x={x}.")
    return tf.complex(_wide(real), _wide(imag))


def _wide(x: Any) -> Any:
    """Complex numbers have parts of 32 or 64 bits."""
    x = floating(x)
    return x if x.dtype.name in ("float32", "float64") else tf.cast(x, "float32")


def _parts(z: Any) -> tuple[Any, Any]:
    return tf.math.real(z), tf.math.imag(z)


def fft(x: Any) -> tuple[Any, Any]:
    return _parts(tf.signal.fft(_get_complex_tensor_from_tuple(x)))


def fft2(x: Any) -> tuple[Any, Any]:
    return _parts(tf.signal.fft2d(_get_complex_tensor_from_tuple(x)))


def ifft2(x: Any) -> tuple[Any, Any]:
    return _parts(tf.signal.ifft2d(_get_complex_tensor_from_tuple(x)))


def rfft(x: Any, fft_length: int | None = None) -> tuple[Any, Any]:
    return _parts(tf.signal.rfft(_wide(x), None if fft_length is None else [fft_length]))


def irfft(x: Any, fft_length: int | None = None) -> Any:
    z = _get_complex_tensor_from_tuple(x)
    return tf.signal.irfft(z, None if fft_length is None else [fft_length])


def _window(window: Any, sequence_length: int, fft_length: int, dtype: Any) -> Any:
    """The window in the middle of a frame of `fft_length`."""
    if isinstance(window, str):
        if window not in ("hann", "hamming"):
            raise ValueError(
                'If a string is passed to `window`, it must be one of `"hann"`, `"hamming"`. '
                f"Received: window={window}"
            )
        make = tf.signal.hann_window if window == "hann" else tf.signal.hamming_window
        values = make(sequence_length, periodic=True, dtype=dtype)
    else:
        values = convert_to_tensor(window, dtype.name)
    if tuple(values.shape) != (sequence_length,):
        raise ValueError(
            "The shape of `window` must be equal to [sequence_length]. "
            f"Received: window shape={tuple(values.shape)}"
        )
    before = (fft_length - sequence_length) // 2
    return tf.pad(values, [(before, fft_length - sequence_length - before)])


def stft(
    x: Any,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    window: Any = "hann",
    center: bool = True,
) -> tuple[Any, Any]:
    x = convert_to_tensor(x)
    if x.dtype.name not in ("float32", "float64"):
        raise TypeError(
            f"Invalid input type. Expected `float32` or `float64`. Received: input type={x.dtype.name}"
        )
    if fft_length < sequence_length:
        raise ValueError(
            "`fft_length` must equal or larger than `sequence_length`. "
            f"Received: sequence_length={sequence_length}, fft_length={fft_length}"
        )
    if window is not None:
        values = _window(window, sequence_length, fft_length, x.dtype)
    if center:
        half = fft_length // 2
        x = tf.pad(x, [*[(0, 0)] * (x.ndim - 1), (half, half)], mode="REFLECT")
    frames = tf.signal.frame(x, fft_length, sequence_stride)
    return _parts(tf.signal.rfft(frames if window is None else frames * values, [fft_length]))


def istft(
    x: Any,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    length: int | None = None,
    window: Any = "hann",
    center: bool = True,
) -> Any:
    z = _get_complex_tensor_from_tuple(x)
    inverse = None
    if window is not None:
        values = _window(window, sequence_length, fft_length, z.dtype.real_dtype)
        inverse = tf.signal.inverse_stft_window_fn(sequence_stride, lambda _, dtype: values)
    out = tf.signal.inverse_stft(z, fft_length, sequence_stride, fft_length, inverse)
    start = fft_length // 2 if center else 0
    if length is not None:
        return out[..., start : start + length]
    return out[..., start : out.shape[-1] - start]


# ---- special functions ----------------------------------------------------------------------------------


def _of_floats(name: str, op: Callable) -> Callable:
    def function(x: Any) -> Any:
        if type(x) is Tensor and x.dtype.is_floating:
            return op(x)
        return op(floating(x))

    function.__name__ = function.__qualname__ = name
    return function


rsqrt = _of_floats("rsqrt", tf.math.rsqrt)
erf = _of_floats("erf", tf.math.erf)
erfc = _of_floats("erfc", tf.math.erfc)
erfinv = _of_floats("erfinv", tf.math.erfinv)
lgamma = _of_floats("lgamma", tf.math.lgamma)


def gammainc(x1: Any, x2: Any) -> Any:
    """The regularised lower incomplete gamma function, which Keras has from 3.16 on."""
    return tf.math.igamma(*floats(x1, x2))


def logdet(x: Any) -> Any:
    """The logarithm of the size of the determinant."""
    x = convert_to_tensor(x)
    return tf.linalg.slogdet(floating(x) if x.dtype.name in INTEGERS else x)[1]


one_call_each(globals())
