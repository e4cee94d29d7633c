"""`tf.compat`: names of other versions of TensorFlow, and small conversions between text and bytes.

`compat.v2` is gradtape itself; `compat.v1` is gradtape with the names that programs in eager mode still use from
version 1. Both are imported on first use.
"""

from __future__ import annotations

import importlib as _importlib
import numbers as _numbers
import os as _os
from typing import Any as _Any

import numpy as _np

from gradtape._src.base.dimension import Dimension as _Dimension
from gradtape._src.base.shape import dimension_value as _dimension_value
from gradtape._src.public import absent as _absent

bytes_or_text_types = (bytes, str)
integral_types = (_numbers.Integral, _np.integer)
real_types = (_numbers.Real, _np.integer, _np.floating)
complex_types = (_numbers.Complex, _np.number)


def as_bytes(bytes_or_text: _Any, encoding: str = "utf-8") -> bytes:
    """Text or bytes as bytes."""
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text)
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


def as_text(bytes_or_text: _Any, encoding: str = "utf-8") -> str:
    """Text or bytes as text."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text).decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


as_str = as_text


def as_str_any(value: _Any, encoding: str = "utf-8") -> str:
    """Anything as text; bytes are decoded."""
    return as_text(value, encoding) if isinstance(value, bytes) else str(value)


def path_to_str(path: _Any) -> str:
    """A path, or anything else, as text."""
    return as_str_any(_os.fspath(path) if isinstance(path, _os.PathLike) else path)


def dimension_value(dimension: _Any) -> int | None:
    """The size of a `tf.compat.v1.Dimension`; a number or None unchanged."""
    return _dimension_value(dimension)


def dimension_at_index(shape: _Any, index: int) -> _Dimension:
    """One dimension of a shape, unknown if the rank is."""
    return _Dimension(None if shape.rank is None else shape[index])


def forward_compatible(year: int, month: int, day: int) -> bool:
    """False: no future behaviour is used."""
    return False


def __getattr__(name: str) -> _Any:
    if name in ("v1", "v2"):
        return _importlib.import_module(f"{__name__}.{name}")
    return _absent.lookup_in("compat", name)


def __dir__() -> list[str]:
    return sorted({n for n in globals() if n[0] != "_" and n != "annotations"} | {"v1", "v2"})
