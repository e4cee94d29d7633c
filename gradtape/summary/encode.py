"""The format of summaries in event files: tensors, pictures, sounds, histograms as bytes.

Field numbers are those of TensorFlow's messages Event, Summary and TensorProto.
"""

from __future__ import annotations

import functools
import struct
from typing import Any

import numpy as np

from gradtape._src.base import dtypes
from gradtape.io import wire

SCALAR, TENSOR, BLOBS = 1, 2, 3  # TensorBoard's classes of data
_DEFAULT_BUCKETS = 30


def event(seconds: float, step: int, summary: bytes) -> bytes:
    """An event: a summary with its time and step."""
    return wire.double(1, seconds) + wire.varint(2, step) + wire.message(5, summary)


def first_event(seconds: float) -> bytes:
    """The first event of every event file."""
    return wire.double(1, seconds) + wire.text(3, "brain.Event:2")


def value(tag: str, tensor: bytes, metadata: bytes) -> bytes:
    """A summary of one value."""
    return wire.message(1, wire.text(1, tag) + wire.message(8, tensor) + wire.message(9, metadata))


@functools.lru_cache(256)
def metadata(plugin: str, kind: int, description: str | None, content: bytes = b"") -> bytes:
    """The metadata of a value, which name the TensorBoard page it is for."""
    page = wire.text(1, plugin) + (wire.message(2, content) if content else b"")
    words = wire.text(3, description) if description else b""
    return wire.message(1, page) + words + wire.varint(4, kind)


# The content that says how sounds are encoded: WAV, number 11.
WAV = wire.varint(2, 11)


def array(x: np.ndarray) -> bytes:
    """An array of numbers as a TensorProto."""
    enum = dtypes.from_numpy(x.dtype).as_datatype_enum
    return wire.varint(1, enum) + _shape(x.shape) + wire.message(4, np.ascontiguousarray(x).tobytes())


def strings(values: Any, shape: tuple[int, ...]) -> bytes:
    """Strings as a TensorProto."""
    every = b"".join(wire.text(8, v) for v in values)
    return wire.varint(1, dtypes.string.as_datatype_enum) + _shape(shape) + every


def _shape(shape: tuple[int, ...]) -> bytes:
    return wire.message(2, b"".join(wire.message(2, wire.varint(1, d)) for d in shape))


# ---- pictures and sounds --------------------------------------------------------------------------


def as_uint8(x: np.ndarray) -> np.ndarray:
    """The pixels of a picture as bytes: floats from 0 to 1, integers over their range, clipped."""
    if x.dtype == np.uint8:
        return x
    if x.dtype == np.bool_:
        return x.astype(np.uint8) * 255
    if x.dtype.kind == "f":
        return np.clip(np.nan_to_num(x.astype(np.float64)) * 255.5, 0, 255).astype(np.uint8)
    # Integers of a wider type lose their low bits, as in tf.image.convert_image_dtype.
    return np.clip(x // ((int(np.iinfo(x.dtype).max) + 1) // 256 or 1), 0, 255).astype(np.uint8)


def wav(samples: np.ndarray, rate: int) -> bytes:
    """A sound `[frames, channels]` from -1 to 1 as a WAV file of 16 bits."""
    channels = samples.shape[1]
    data = np.clip(np.round(samples.astype(np.float64) * 32768), -32768, 32767).astype("<i2").tobytes()
    form = struct.pack("<HHIIHH", 1, channels, rate, 2 * rate * channels, 2 * channels, 16)
    chunks = b"fmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


# ---- histograms -----------------------------------------------------------------------------------


def histogram(x: np.ndarray, buckets: int | None) -> np.ndarray:
    """The counts of values: rows (left edge, right edge, count), of equal width.

    Without values all is zero; if all values are equal, only the last bucket has a count.
    """
    count = _DEFAULT_BUCKETS if buckets is None else max(0, int(buckets))
    x = x.reshape(-1).astype(np.float64)
    if count == 0 or x.size == 0:
        return np.zeros((count, 3))
    low, high = x.min(), x.max()
    if not high > low:
        counts = np.zeros(count)
        counts[-1] = x.size
        return np.stack([np.full(count, high), np.full(count, high), counts], 1)
    edges = np.linspace(low, high, count + 1)
    with np.errstate(invalid="ignore"):
        places = np.minimum(np.nan_to_num((x - low) * (count / (high - low))), count - 1).astype(np.int64)
    return np.stack([edges[:-1], edges[1:], np.bincount(places, minlength=count)], 1)
