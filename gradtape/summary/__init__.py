"""`tf.summary`: summaries of training, as event files for TensorBoard.

`encode` has the format, `writer` the files and the current writer, step and condition; the summaries themselves are
here. Inside a `tf.function` a summary is written each time the function runs, to the writer that was the default
while it was traced.
"""

from __future__ import annotations

import functools as _functools
import logging as _logging
import sys as _sys
import types as _types
from collections.abc import Callable as _Callable
from collections.abc import Iterator as _Iterator
from contextlib import contextmanager as _contextmanager
from typing import Any as _Any

import numpy as _np

from gradtape import _core
from gradtape._src.base import scopes
from gradtape._src.graph.effects import deferred as _deferred
from gradtape._src.public import absent as _absent
from gradtape._src.tensors import conversion, hooks
from gradtape.summary import encode as _encode
from gradtape.summary import writer as _writer
from gradtape.summary.writer import (
    SummaryWriter,
    create_file_writer,
    create_noop_writer,
    flush,
    record_if,
    should_record_summaries,
)

_log = _logging.getLogger("gradtape")


def _emit(name: str, data: _Any, step: _Any, summary: _Callable[[str, _Any], bytes]) -> _Any:
    """Writes a summary now, or each time the traced function runs; returns whether it is written."""
    writer = _writer.default_writer.get()
    if writer is None or isinstance(writer, _writer.NoopSummaryWriter):
        return conversion.convert(False)
    step = _writer.default_step.get() if step is None else step
    if step is None:
        raise ValueError(
            "No step set. Please specify one either through the `step` argument or through "
            "tf.summary.experimental.set_step()"
        )
    condition = _writer.condition_now()
    tag = scopes.current_scope() + name
    if _core.current_trace() is None:
        return conversion.convert(_write(writer, tag, data, step, condition, summary))
    _write_later(writer, tag, data, step, condition, summary)
    return conversion.convert(True)


def _write(writer: _Any, tag: str, data: _Any, step: _Any, condition: _Any, summary: _Callable) -> bool:
    if not condition:
        return False
    writer.write_event(int(step), summary(tag, data))
    return True


_write_later = _functools.partial(_deferred, always=True)(_write)


def _array(data: _Any) -> _np.ndarray:
    """Tensors and lists of them, numbers and arrays as an array."""
    if isinstance(data, (_core.Tensor, _core.Variable)):
        return _np.asarray(data)
    return _np.asarray(conversion.convert(data).numpy())


# ---- summaries ------------------------------------------------------------------------------------


def scalar(name: str, data: _Any, step: _Any = None, description: str | None = None) -> _Any:
    """Writes a number: a point of a curve.

    Args:
      name: the name of the curve, prefixed with the current name scopes.
      data: a number or scalar tensor.
      step: the point's position on the axis; the default step if None.
      description: a description of the curve, in Markdown.

    Returns:
      A bool tensor: False if there is no writer, or the condition of `record_if` does not hold.

    Raises:
      ValueError: if there is a writer but no step, or `data` is not a scalar.
    """

    def summary(tag: str, x: _Any) -> bytes:
        value = _array(x)
        if value.ndim:
            raise ValueError(f"Expected scalar shape, saw shape: {value.shape}.")
        about = _encode.metadata("scalars", _encode.SCALAR, description)
        return _encode.value(tag, _encode.array(value.astype(_np.float32)), about)

    return _emit(name, data, step, summary)


def histogram(
    name: str, data: _Any, step: _Any = None, buckets: int | None = None, description: str | None = None
) -> _Any:
    """Writes the distribution of the elements of a tensor; see `scalar`.

    Args:
      buckets: the number of intervals, 30 by default.
    """

    def summary(tag: str, x: _Any) -> bytes:
        about = _encode.metadata("histograms", _encode.TENSOR, description)
        return _encode.value(tag, _encode.array(_encode.histogram(_array(x), buckets)), about)

    return _emit(name, data, step, summary)


def image(
    name: str, data: _Any, step: _Any = None, max_outputs: _Any = 3, description: str | None = None
) -> _Any:
    """Writes pictures; see `scalar`.

    Args:
      data: `[number, height, width, channels]`, floats from 0 to 1 or bytes, with 1 to 4 channels.
      max_outputs: the largest number of pictures to write.
    """

    def summary(tag: str, x: _Any) -> bytes:
        from gradtape.io import png

        pixels = _array(x)
        if pixels.ndim != 4:
            raise ValueError(
                f"Tensor must have rank 4.  Received rank {pixels.ndim}, shape {pixels.shape}: summary.image takes "
                "[k, h, w, c]. Hint: tf.expand_dims(image, 0) for a single picture."
            )
        if pixels.shape[3] not in (1, 2, 3, 4):
            raise ValueError(f"summary.image: a picture has 1, 2, 3 or 4 channels; got {pixels.shape[3]}.")
        shown = _encode.as_uint8(pixels[: int(max_outputs)])
        size = [str(pixels.shape[2]), str(pixels.shape[1])]
        about = _encode.metadata("images", _encode.BLOBS, description)
        return _encode.value(tag, _encode.strings([*size, *map(png.encode, shown)], (2 + len(shown),)), about)

    return _emit(name, data, step, summary)


def audio(
    name: str,
    data: _Any,
    sample_rate: int,
    step: _Any = None,
    max_outputs: _Any = 3,
    encoding: str | None = None,
    description: str | None = None,
) -> _Any:
    """Writes sounds; see `scalar`.

    Args:
      data: `[number, frames, channels]`, floats from -1 to 1.
      sample_rate: frames per second.
      max_outputs: the largest number of sounds to write.
      encoding: "wav".
    """
    if encoding not in (None, "wav"):
        raise ValueError(f"Unknown encoding: {encoding!r}")

    def summary(tag: str, x: _Any) -> bytes:
        sounds = _array(x)
        if sounds.ndim != 3:
            raise ValueError(f"Tensor must have rank 3.  Received rank {sounds.ndim}, shape {sounds.shape}")
        shown = [_encode.wav(s, int(sample_rate)) for s in sounds[: int(max_outputs)]]
        pairs = [part for sound in shown for part in (sound, b"")]  # each with an empty label
        about = _encode.metadata("audio", _encode.BLOBS, description, _encode.WAV)
        return _encode.value(tag, _encode.strings(pairs, (len(shown), 2)), about)

    return _emit(name, data, step, summary)


def text(name: str, data: _Any, step: _Any = None, description: str | None = None) -> _Any:
    """Writes text, in Markdown; see `scalar`.

    Args:
      data: a string, or a list or array of strings, which is shown as a table.
    """
    words = _np.asarray(data, dtype=object)
    for word in words.reshape(-1):
        if not isinstance(word, (str, bytes)):
            raise TypeError(
                f"summary.text: data must be strings; got {word!r} of type {type(word).__name__}."
            )

    def summary(tag: str, _: _Any) -> bytes:
        about = _encode.metadata("text", _encode.TENSOR, description)
        return _encode.value(tag, _encode.strings(words.reshape(-1), words.shape), about)

    return _emit(name, None, step, summary)


def write(tag: str, tensor: _Any, step: _Any = None, metadata: _Any = None, name: str | None = None) -> _Any:
    """Writes any tensor, for custom TensorBoard plugins.

    Args:
      tensor: a tensor, or a function that returns one, called if it is written.
      metadata: a message SummaryMetadata, as bytes or with `SerializeToString`.
    """
    if metadata is not None and not isinstance(metadata, bytes):
        metadata = metadata.SerializeToString()

    def summary(full: str, x: _Any) -> bytes:
        x = x() if callable(x) and not isinstance(x, (_core.Tensor, _core.Variable)) else x
        if isinstance(x, (str, bytes)) or (isinstance(x, _np.ndarray) and x.dtype.kind in "OSU"):
            words = _np.asarray(x, dtype=object)
            return _encode.value(full, _encode.strings(words.reshape(-1), words.shape), metadata or b"")
        return _encode.value(full, _encode.array(_array(x)), metadata or b"")

    if _core.current_trace() is not None and callable(tensor) and not isinstance(tensor, _core.Tensor):
        tensor = tensor()  # its computation is part of the traced function
    return _emit(tag, tensor, step, summary)


# ---- TensorFlow's graphs and profiles ---------------------------------------------------------------


def graph(graph_data: _Any) -> _Any:
    """Writes nothing, and says so: gradtape has no graphs in TensorFlow's format.

    Returns:
      False: nothing was written.
    """
    _log.warning("tf.summary.graph writes nothing: gradtape has no graphs in TensorFlow's format.")
    return conversion.convert(False)


def trace_on(graph: bool = True, profiler: bool = False, profiler_outdir: str | None = None) -> None:
    """Traces nothing, and says so. Hint: Python's profilers see every op."""
    _log.warning("tf.summary.trace_on traces nothing: there are no TensorFlow graphs or profiles here.")


def trace_export(name: str, step: _Any = None, profiler_outdir: str | None = None) -> None:
    """Writes nothing, and says so; see `trace_on`."""
    _log.warning("tf.summary.trace_export writes nothing: see tf.summary.trace_on.")


def trace_off() -> None:
    """Nothing to stop; see `trace_on`."""


# ---- tf.summary.experimental ------------------------------------------------------------------------


@_contextmanager
def _summary_scope(
    name: str | None, default_name: str = "summary", values: _Any = None
) -> _Iterator[tuple[str, str]]:
    """A name scope for a custom summary: yields its tag and the scope."""
    name = name or default_name
    tag = scopes.current_scope() + name
    with scopes.name_scope(name) as scope:
        yield tag, scope


def _write_raw_pb(tensor: _Any, step: _Any = None, name: str | None = None) -> _Any:
    """Writes a message Summary, given as bytes."""
    return _emit("", tensor, step, lambda _, data: bytes(data))


experimental = _types.ModuleType(
    "gradtape.summary.experimental", "TensorFlow's namespace `tf.summary.experimental`."
)
vars(experimental).update(
    get_step=_writer.get_step,
    set_step=_writer.set_step,
    summary_scope=_summary_scope,
    write_raw_pb=_write_raw_pb,
)
_sys.modules[experimental.__name__] = experimental

__getattr__, __dir__ = _absent.of("summary")
