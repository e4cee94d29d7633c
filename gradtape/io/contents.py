"""Bytes and paths as arguments and results of tf.io.

gradtape has no string tensors. Bytes travel as `Text` (see `gradtape/data/text.py`), which `.numpy()` gives
out as TensorFlow does; every function here also takes Python's own bytes, str and paths.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base.errors import InvalidArgumentError, Untraceable
from gradtape._src.tensors import text
from gradtape.data.text import Text, make


def not_in_trace(op: str) -> None:
    """Refuses to be traced: what a file holds is known only when it is read."""
    if _core.current_trace() is not None:
        raise Untraceable(f"{op} works on bytes, which have no place in a graph")


def as_text(value: Any) -> Text:
    """Strings of the user's, or text, as text."""
    if isinstance(value, Text):
        return value
    if isinstance(value, os.PathLike):
        return make(os.fspath(value))
    if isinstance(value, (bytearray, memoryview)):
        return make(bytes(value))
    if text.is_text(value):
        return Text(text.array_of(value))
    if isinstance(value, (_core.Tensor, _core.Variable)):
        raise ValueError(
            "Tensor conversion requested dtype string for Tensor with dtype "
            f"{value.dtype.name}{list(value.shape)}. Hint: this takes bytes, as tf.io.read_file gives them."
        )
    return make(value)


def bytes_of(value: Any, op: str) -> bytes:
    """The bytes of one string."""
    if isinstance(value, bytes):
        return value
    text = as_text(value)
    if text.ndim:
        raise InvalidArgumentError(
            f"{op}: contents must be scalar: one string of bytes; got shape {text.shape}."
        )
    return bytes(text)


def path_of(value: Any) -> str:
    """A path as Python has it."""
    if isinstance(value, str):
        return value
    return os.fsdecode(bytes_of(value, "path"))


def each(function: Callable[[bytes], Any], value: Any) -> Text:
    """A function of bytes, for every string of text."""
    array: Any = as_text(value)._array
    out = np.empty(array.shape, object)
    for place in np.ndindex(array.shape):
        out[place] = function(array[place])
    return Text(out)
