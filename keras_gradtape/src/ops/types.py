"""Keras' type promotion, with a shortcut for operands that already have one type.

The rules are Keras' own: those of JAX, with 32 bits by default. 64-bit types are preserved: JAX disables them by
default, but tapes in double precision are common.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from keras.src.backend import config
from keras.src.backend.common import dtypes

import gradtape as tf
from keras_gradtape.src.ops.core import convert_to_tensor, dtype_of

__all__ = [
    "INTEGERS", "UNSIGNED", "Tensor", "common", "countable", "dtype_of", "floating", "floats", "numbers", "operand",
    "result_type", "together",
]  # fmt: skip

Tensor = tf.Tensor

INTEGERS = frozenset(("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"))
UNSIGNED = frozenset(("uint8", "uint16", "uint32", "uint64"))

getattr(dtypes, "BIT64_TO_BIT32_DTYPE", {}).update(float64="float64", complex128="complex128")


@functools.lru_cache(maxsize=4096)
def _result(floatx: str, kinds: tuple) -> str:
    result = dtypes.result_type(*kinds)
    for wide, narrow in (("int64", "int32"), ("uint64", "uint32")):
        if result == narrow and wide in kinds:
            return wide
    return result


def result_type(*kinds: Any) -> str:
    """Keras' common type of types given by name or as Python's."""
    return _result(config.floatx(), kinds)


def _kind(x: Any) -> Any:
    """The contribution of an operand to the type of the result: Python numbers are weakly typed."""
    if type(x) is Tensor:
        return x.dtype.name
    if type(x) is int:
        return int
    return float if isinstance(x, float) else x.dtype.name


def operand(x: Any) -> Any:
    """An operand as a tensor, or a number, whose type depends on the others."""
    if type(x) is Tensor or type(x) in (int, float, np.float64):
        return x
    return convert_to_tensor(x)


def together(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Two operands of an op as tensors of their common type."""
    if type(x1) is not Tensor:
        x1 = operand(x1)
    if type(x2) is not Tensor:
        x2 = operand(x2)
    if type(x1) is Tensor and type(x2) is Tensor and x1.dtype is x2.dtype:
        return x1, x2
    dtype = result_type(_kind(x1), _kind(x2))
    return convert_to_tensor(x1, dtype), convert_to_tensor(x2, dtype)


def floats(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Two operands as tensors of their common type, which is a float type."""
    if type(x1) is not Tensor:
        x1 = operand(x1)
    if type(x2) is not Tensor:
        x2 = operand(x2)
    if type(x1) is Tensor and type(x2) is Tensor and x1.dtype is x2.dtype and x1.dtype.is_floating:
        return x1, x2
    dtype = result_type(_kind(x1), _kind(x2), float)
    return convert_to_tensor(x1, dtype), convert_to_tensor(x2, dtype)


def numbers(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Two operands as tensors of their common type, which is a number type."""
    x1, x2 = together(x1, x2)
    return (tf.cast(x1, tf.int32), tf.cast(x2, tf.int32)) if x1.dtype.is_bool else (x1, x2)


def common(*xs: Any, also: tuple = ()) -> list:
    """Any number of operands as tensors of their common type; the types `also` take part."""
    if not also and xs and all(type(x) is Tensor and x.dtype is xs[0].dtype for x in xs):
        return list(xs)
    operands = [operand(x) for x in xs]
    dtype = result_type(*[_kind(x) for x in operands], *also)
    return [convert_to_tensor(x, dtype) for x in operands]


def floating(x: Any) -> Any:
    """An operand as numbers with a fraction: integers become the default type of floats."""
    x = convert_to_tensor(x)
    if x.dtype.is_floating or x.dtype.is_complex:
        return x
    return tf.cast(x, config.floatx() if x.dtype.name == "int64" else result_type(x.dtype.name, float))


def countable(x: Any) -> Any:
    """An operand that can be added up: booleans become integers."""
    x = convert_to_tensor(x)
    return tf.cast(x, tf.int32) if x.dtype.is_bool else x
