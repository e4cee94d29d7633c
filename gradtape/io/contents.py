"""Bytes and paths as arguments of tf.io: tensors of strings, or Python's own bytes, str and paths."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.control.text_ops import run, scalar, strings_of
from gradtape._src.tensors import conversion


def texts_of(value: Any, op: str, place: int = 0) -> Any:
    """An argument as a tensor of strings."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    elif isinstance(value, (bytearray, memoryview)):
        value = bytes(value)
    x = conversion.read(value)
    if isinstance(x, _core.Tensor) and x.dtype is not dtypes.string:
        raise ValueError(
            f"Tensor conversion requested dtype string for Tensor with dtype {x.dtype.name}{list(x.shape)}. Hint: {op} "
            "takes bytes, as tf.io.read_file returns them."
        )
    return strings_of(x, op, place)


def text_of(value: Any, op: str, place: int = 0) -> Any:
    """An argument that is one string, as a tensor."""
    x = texts_of(value, op, place)
    if x._dims:
        raise InvalidArgumentError(
            f"{op}: contents must be scalar: one string of bytes; got shape {list(x._dims)}."
        )
    return x


def of_bytes(
    op: str, function: Callable[..., Any], contents: Any, shape: Any, dtype: Any = dtypes.uint8
) -> Any:
    """Applies a function of bytes, which returns a tensor, to one string.

    Args:
      shape: the shape of the result; None for sizes that depend on the bytes.
    """
    x = text_of(contents, op)
    return run(op, lambda x: [function(scalar(x))], [x], [(shape, dtype)])[0]


def bytes_of(value: Any, op: str) -> bytes:
    """The bytes of one string that has a value."""
    return value if isinstance(value, bytes) else scalar(text_of(value, op))


def path_of(value: Any) -> str:
    """A path as a Python string."""
    return value if isinstance(value, str) else os.fsdecode(bytes_of(value, "path"))
