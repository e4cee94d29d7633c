"""Common parts of the functions of `keras.ops.image`: their arguments, and the order of axes.

Most are computed as `[batch, height, width, channels]`, in floats of 32 bits or more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from keras.src.backend.config import standardize_data_format

import gradtape as tf
from keras_gradtape.src.ops.core import convert_to_tensor

__all__ = ["Layout", "channels_axis", "converted", "exact", "want_one_of", "want_rank", "wide"]


def want_rank(images: Any) -> None:
    if len(images.shape) not in (3, 4):
        raise ValueError(
            "Invalid images rank: expected rank 3 (single image) or rank 4 (batch of images). "
            f"Received input with shape: images.shape={tuple(images.shape)}"
        )


def want_one_of(name: str, given: Any, allowed: Iterable[str]) -> None:
    if given not in allowed:
        raise ValueError(
            f"Invalid value for argument `{name}`. Expected of one {tuple(allowed)}. Received: {name}={given}"
        )


def converted(images: Any) -> Any:
    """Images as a tensor, one or a batch."""
    x = convert_to_tensor(images)
    want_rank(x)
    return x


def channels_axis(data_format: str | None) -> int:
    return -1 if standardize_data_format(data_format) == "channels_last" else -3


def wide(x: Any) -> Any:
    """Numbers as floats that can be computed with: 16 bits become 32."""
    return x if x.dtype is tf.float32 or x.dtype is tf.float64 else tf.cast(x, tf.float32)


def exact(x: Any) -> Any:
    """Numbers as floats that hold each of them: integers of 32 bits and more need 64."""
    return tf.cast(x, tf.float64) if x.dtype.is_integer and x.dtype.size >= 4 else wide(x)


class Layout:
    """One image or a batch, channels first or last: converts to the internal order and back."""

    def __init__(self, images: Any, data_format: str | None) -> None:
        self._single = images.ndim == 3
        self._first = standardize_data_format(data_format) == "channels_first"

    def last(self, x: Any) -> Any:
        """The images as `[batch, height, width, channels]`."""
        if self._single:
            x = tf.expand_dims(x, 0)
        return tf.transpose(x, [0, 2, 3, 1]) if self._first else x

    def planes(self, x: Any) -> Any:
        """The images as `[channels, batch, height, width]`."""
        if self._single:
            x = tf.expand_dims(x, 0)
        return tf.transpose(x, [1, 0, 2, 3] if self._first else [3, 0, 1, 2])

    def from_planes(self, x: Any) -> Any:
        x = tf.transpose(x, [1, 0, 2, 3] if self._first else [1, 2, 3, 0])
        return tf.squeeze(x, [0]) if self._single else x

    def back(self, x: Any) -> Any:
        """A result in the order in which the images came; axes after the fourth stay there."""
        if self._first:
            x = tf.transpose(x, [0, 3, 1, 2, *range(4, x.ndim)])
        return tf.squeeze(x, [0]) if self._single else x
