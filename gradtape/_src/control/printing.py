"""`tf.print`: prints tensors as TensorFlow does, `[1 2 3]`, to a stream or a file; and gradtape's logger."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes, log
from gradtape._src.graph.effects import deferred
from gradtape._src.tensors import text
from gradtape._src.tensors.composite import CompositeTensor

if TYPE_CHECKING:
    import logging

_LEVELS = {"logging.info": log.INFO, "logging.warning": log.WARNING, "logging.error": log.ERROR}
# The levels of Python's logging and those of absl's.
_NUMBERS = {level: level for level in _LEVELS.values()} | {0: log.INFO, -1: log.WARNING, -2: log.ERROR}
_ALLOWED = frozenset(("output_stream", "summarize", "sep", "end", "name"))


def get_logger() -> logging.Logger:
    """The logger of gradtape's own messages, "gradtape".

    >>> import gradtape as tf
    >>> tf.get_logger().setLevel("ERROR")
    >>> tf.get_logger().setLevel("NOTSET")
    """
    import logging

    return logging.getLogger("gradtape")


@functools.partial(deferred, always=True)
def print_(*inputs: Any, **kwargs: Any) -> None:
    """Prints tensors, Python values and nests of them.

    Args:
      *inputs: what to print, with `sep` (a space) between.
      output_stream: `sys.stderr` (the default), `sys.stdout`, any object with `write`, "file://path"
        to append to a file, or a level of logging such as "logging.info", `logging.INFO` or absl's.
      summarize: how many elements to show at both ends of each axis; 3 by default, -1 for all.
      end: what to print last, a new line by default.

    Raises:
      ValueError: for another keyword or stream.

    >>> import sys
    >>> import gradtape as tf
    >>> tf.print("x =", tf.range(20), output_stream=sys.stdout)
    x = [0 1 2 ... 17 18 19]
    """
    unknown = set(kwargs) - _ALLOWED
    if unknown:
        raise ValueError(
            f"Unrecognized keyword arguments for tf.print: { {k: kwargs[k] for k in sorted(unknown)} }"
        )
    summarize = kwargs.get("summarize")
    most = 3 if summarize is None else int(summarize)
    sep = " " if kwargs.get("sep") is None else str(kwargs["sep"])
    end = "\n" if kwargs.get("end") is None else str(kwargs["end"])
    parts = [value if isinstance(value, str) else format_value(value, most) for value in inputs]
    _write(sep.join(parts) + end, kwargs.get("output_stream"))


def _write(text: str, stream: Any) -> None:
    if stream is None:
        stream = sys.stderr
    if hasattr(stream, "write"):
        stream.write(text)
        if hasattr(stream, "flush"):
            stream.flush()
    elif isinstance(stream, str) and stream.startswith("file://"):
        with open(stream[len("file://") :], "a", encoding="utf-8") as file:
            file.write(text)
    elif isinstance(stream, str) and stream in _LEVELS:
        log.log(_LEVELS[stream], "%s", text.rstrip("\n"))
    elif isinstance(stream, int) and stream in _NUMBERS:
        log.log(_NUMBERS[stream], "%s", text.rstrip("\n"))
    else:
        raise ValueError(
            f"Unsupported output stream, logging level, or file. {stream!r}. Supported streams are sys.stdout, "
            "sys.stderr, tf.logging.info, tf.logging.warning, tf.logging.error. File needs to be in the form of "
            "'file://<filepath>'."
        )


def format_value(value: Any, summarize: int = 3) -> str:
    """A tensor, a Python value or a nest of them as text."""
    if isinstance(value, _core.Variable):
        value = value._peek()
    if isinstance(value, _core.Tensor):
        return format_tensor(value, summarize).encode(errors="surrogateescape").decode(errors="replace")
    if isinstance(value, CompositeTensor):
        return value._printed(summarize, lambda x: format_value(x, summarize))
    if isinstance(value, dict):
        try:
            keys = sorted(value)
        except TypeError:
            keys = list(value)
        return "{" + ", ".join(f"{k!r}: {format_value(value[k], summarize)}" for k in keys) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(format_value(v, summarize) for v in value) + "]"
    if isinstance(value, tuple):
        inside = [format_value(v, summarize) for v in value]
        if hasattr(value, "_fields"):
            fields = zip(value._fields, inside, strict=True)
            return f"{type(value).__name__}({', '.join(f'{k}={v}' for k, v in fields)})"
        return f"({inside[0]},)" if len(inside) == 1 else f"({', '.join(inside)})"
    return repr(value)


def format_tensor(tensor: Any, summarize: int = 3) -> str:
    """A tensor in TensorFlow's form; strings are quoted, with surrogates for bytes that are not UTF-8."""
    if tensor.dtype is dtypes.string:
        words = text.array_of(tensor)
        shown = np.empty(words.size, object)
        shown[:] = [_quoted(w) for w in words.reshape(-1).tolist()]
        return format_array(shown.reshape(words.shape), summarize)
    return format_array(np.asarray(tensor.numpy()), summarize)


_ESCAPES = {ord('"'): b'\\"', ord("'"): b"\\'", ord("\\"): b"\\\\", 10: b"\\n", 13: b"\\r", 9: b"\\t"}


def _quoted(s: bytes) -> str:
    out = b"".join(_ESCAPES.get(b) or (bytes([b]) if b >= 32 else b"\\%03o" % b) for b in s)
    return f'"{out.decode(errors="surrogateescape")}"'


def format_array(array: np.ndarray, summarize: int = 3) -> str:
    """An array in TensorFlow's form: the shortest form of each number, long axes abbreviated."""
    return _rows(array, summarize if summarize >= 0 else array.size, 1)


def _rows(array: Any, most: int, indent: int) -> str:
    if isinstance(array, str):
        return array
    if array.ndim == 0:
        return _number(array[()])
    inside = [_rows(row, most, indent + 1) for row in array[:most]]
    if len(array) > 2 * most:
        inside.append("...")
    inside.extend(_rows(row, most, indent + 1) for row in array[max(most, len(array) - most) :])
    between = " " if array.ndim == 1 else "\n" * (array.ndim - 1) + " " * indent
    return "[" + between.join(inside) + "]"


def _number(x: Any) -> str:
    if isinstance(x, (np.bool_, bool)):
        return "1" if x else "0"
    if isinstance(x, np.complexfloating):
        return f"({_number(x.real)},{_number(x.imag)})"
    if isinstance(x, np.floating):
        # The shorter of two precisions, if it reads back as the same number.
        kind, digits = (float, (15, 17)) if isinstance(x, np.float64) else (np.float32, (6, 9))
        short = f"{float(x):.{digits[0]}g}"
        return short if kind(short) == kind(x) or x != x else f"{float(x):.{digits[1]}g}"
    return str(x)
