"""Numbers of 8 bits, which Keras quantizes layers with: float32 inside, rounded as the hardware would.

They only exist between two casts, which is all that Keras needs: there is no arithmetic on them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import gradtape as tf


class _Format(NamedTuple):
    dtype: tf.DType
    mantissa: int  # bits
    smallest: int  # exponent of the smallest normal number
    largest: float
    beyond: float  # replaces larger numbers


def _format(name: str, *numbers: Any) -> _Format:
    return _Format(tf.as_dtype(name), *numbers)


FORMATS = {
    "float8_e4m3fn": _format("float8_e4m3fn", 3, -6, 448.0, float("nan")),
    "float8_e5m2": _format("float8_e5m2", 2, -14, 57344.0, float("inf")),
}


class Float8:
    """The result of a cast to a type of 8 bits."""

    def __init__(self, x: Any, name: str) -> None:
        self.dtype = FORMATS[name].dtype
        self.value = rounded(tf.cast(x, tf.float32), name)

    @property
    def shape(self) -> Any:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    def numpy(self) -> np.ndarray:
        import ml_dtypes

        return self.value.numpy().astype(getattr(ml_dtypes, self.dtype.name))

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.numpy(), dtype=dtype)

    def __repr__(self) -> str:
        return f"Float8(shape={tuple(self.shape)}, dtype={self.dtype.name})"


def rounded(x: Any, name: str) -> Any:
    """The nearest numbers of a format, halves to even; the gradient passes as if nothing happened."""
    form = FORMATS[name]
    drop = 23 - form.mantissa
    bits = tf.bitcast(x, tf.int32)
    odd = tf.bitwise.bitwise_and(tf.bitwise.right_shift(bits, drop), 1)
    near = tf.bitwise.bitwise_and(bits + ((1 << (drop - 1)) - 1) + odd, -(1 << drop))
    near = tf.bitcast(near, tf.float32)
    # Below the normal numbers the spacing is constant.
    step = 2.0 ** (form.smallest - form.mantissa)
    near = tf.where(tf.abs(x) < 2.0**form.smallest, tf.round(x / step) * step, near)
    near = tf.where(tf.abs(near) > form.largest, tf.sign(x) * form.beyond, near)
    same = tf.equal(near, x)  # the difference would be NaN for infinities
    return x + tf.stop_gradient(tf.where(same, tf.zeros_like(x), near - x))
