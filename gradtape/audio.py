"""`tf.audio`: 16-bit WAV files, as numbers between -1 and 1."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.control.text_ops import run, scalar, tensor
from gradtape._src.ops.static import array_of
from gradtape._src.public import absent as _absent
from gradtape.io.contents import text_of

_SCALE, _PCM = 32768, 1
_HEADER = struct.Struct("<HHIIHH")


class DecodeWav(NamedTuple):
    """What a WAV file holds: float32 `[samples, channels]`, and the sample rate."""

    audio: Any
    sample_rate: Any


@one_call
def decode_wav(
    contents: Any, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None
) -> Any:
    """The samples of a WAV file, between -1 and 1, and the sample rate.

    Args:
      contents: the bytes of the file.
      desired_channels: the number of channels to return; the last one is repeated if the file has fewer.
      desired_samples: the number of samples to return: truncated, or padded with zeros.

    Raises:
      InvalidArgumentError: if it is not a 16-bit WAV file.

    >>> import gradtape as tf
    >>> file = tf.audio.encode_wav([[0.0], [0.5]], 8000)
    >>> tf.audio.decode_wav(file).audio.numpy().tolist()
    [[0.0], [0.5]]
    """
    channels, samples = (int(n) if n > 0 else None for n in (desired_channels, desired_samples))

    def decode(contents: Any) -> list:
        audio, rate = _read(scalar(contents))
        if channels is not None:
            audio = audio[:, np.minimum(np.arange(channels), audio.shape[1] - 1)]
        if samples is not None:
            audio = np.pad(audio[:samples], ((0, max(samples - len(audio), 0)), (0, 0)))
        data = np.ascontiguousarray(audio.astype(np.float32) / _SCALE)
        return [_core.from_buffer(data, dtypes.float32._code), tensor([rate], (), dtypes.int32)]

    specs = [((samples, channels), dtypes.float32), ((), dtypes.int32)]
    return DecodeWav(*run("decode_wav", decode, [text_of(contents, "decode_wav")], specs))


def _read(data: bytes) -> tuple[np.ndarray, int]:
    """The samples of a file as integers, and the sample rate."""
    at = 0

    def take(count: int) -> bytes:
        nonlocal at
        if at + count > len(data):
            raise InvalidArgumentError("decode_wav: Data too short when trying to read string")
        at += count
        return data[at - count : at]

    def expect(word: bytes, message: str) -> None:
        tag = take(4)
        if tag != word:
            raise InvalidArgumentError(f"decode_wav: {message} {tag.decode(errors='replace')}")

    expect(b"RIFF", "Header mismatch: Expected RIFF but found")
    take(4)
    expect(b"WAVE", "Header mismatch: Expected WAVE but found")
    expect(b"fmt ", "Unexpected field")
    size = int.from_bytes(take(4), "little")
    if size not in (16, 18, 40):
        raise InvalidArgumentError(
            f"decode_wav: Bad format chunk size for WAV: Expected 16 or 18, but got {size}"
        )
    kind, channels, rate, _, _, bits = _HEADER.unpack(take(size)[:16])
    if kind != _PCM:
        raise InvalidArgumentError(f"decode_wav: Bad audio format for WAV: Expected 1 (PCM), but got {kind}")
    if bits != 16:
        raise InvalidArgumentError(f"decode_wav: Can only read 16-bit WAV files, but received {bits}")
    if not channels:
        raise InvalidArgumentError("decode_wav: a file without channels")
    while at < len(data):
        word, size = take(4), int.from_bytes(take(4), "little")
        if word == b"data":
            count = size // (2 * channels)
            return np.frombuffer(take(count * 2 * channels), "<i2").reshape(count, channels), rate
        take(size)
    raise InvalidArgumentError("decode_wav: there are no samples in the file")


@one_call
def encode_wav(audio: Any, sample_rate: Any, name: str | None = None) -> Any:
    """A 16-bit WAV file of `[samples, channels]`; values are clipped to -1 and 1."""
    x = ops.convert_to_tensor(audio, dtypes.float32)
    rate = ops.convert_to_tensor(sample_rate, dtypes.int32)
    if len(x._dims) != 2:
        raise InvalidArgumentError(f"encode_wav: audio must be 2-dimensional{list(x._dims)}")

    def encode(x: Any, rate: Any) -> list:
        channels, per_second = x._dims[1], scalar(rate)
        if per_second <= 0:
            raise InvalidArgumentError(f"encode_wav: sample_rate must be in (0, 2^32), got: {per_second}")
        data = np.clip(np.round(array_of(x) * _SCALE), -_SCALE, _SCALE - 1).astype("<i2").tobytes()
        head = _HEADER.pack(_PCM, channels, per_second, per_second * channels * 2, channels * 2, 16)
        parts = (b"WAVEfmt ", struct.pack("<I", 16), head, b"data", struct.pack("<I", len(data)), data)
        body = b"".join(parts)
        return [tensor([b"RIFF" + struct.pack("<I", len(body)) + body], ())]

    return run("encode_wav", encode, [x, rate], [((), dtypes.string)])[0]


__getattr__, __dir__ = _absent.of("audio")
