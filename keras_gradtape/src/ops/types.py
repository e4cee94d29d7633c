"""Keras' promotion of types, with a short way for what is of one type already."""

from __future__ import annotations

import functools
from typing import Any

import gradtape as tf
from gradtape import _core
from keras.src.backend import config
from keras.src.backend.common import dtypes
from keras.src.backend.common.variables import KerasVariable

from keras_gradtape.src.ops.core import convert_to_tensor

INTEGERS = frozenset(("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"))


@functools.lru_cache(maxsize=4096)
def _result(*kinds: Any) -> str:
    return dtypes.result_type(*kinds)


def _kind(x: Any) -> Any:
    """What an operand says about the type of the result: Python numbers say little."""
    return type(x) if isinstance(x, (int, float)) else x.dtype.name


def operand(x: Any) -> Any:
    """An operand as a tensor, or a Python number, whose type depends on the others."""
    if isinstance(x, _core.Tensor) or type(x) in (int, float):
        return x
    return convert_to_tensor(x)


def together(x1: Any, x2: Any, *more: Any) -> tuple[Any, Any]:
    """Two operands of an op as tensors of their common type; `more` are types to take part."""
    if isinstance(x1, KerasVariable):
        x1 = convert_to_tensor(x1)
    if isinstance(x2, KerasVariable):
        x2 = convert_to_tensor(x2)
    if not more and isinstance(x1, _core.Tensor) and isinstance(x2, _core.Tensor) and x1.dtype is x2.dtype:
        return x1, x2
    x1, x2 = operand(x1), operand(x2)
    dtype = _result(_kind(x1), _kind(x2), *more)
    return convert_to_tensor(x1, dtype), convert_to_tensor(x2, dtype)


def common(*xs: Any, also: tuple = ()) -> list:
    """Any number of operands as tensors of their common type."""
    made = [operand(x) for x in xs]
    dtype = _result(*(_kind(x) for x in made), *also)
    return [convert_to_tensor(x, dtype) for x in made]


def floating(x: Any) -> Any:
    """An operand as numbers with a fraction: integers become the default type of floats."""
    x = convert_to_tensor(x)
    if x.dtype.is_floating or x.dtype.is_complex:
        return x
    return tf.cast(x, config.floatx() if x.dtype.name == "int64" else _result(x.dtype.name, float))


def countable(x: Any) -> Any:
    """An operand that can be added up: booleans become integers."""
    x = convert_to_tensor(x)
    return tf.cast(x, "int32") if x.dtype.is_bool else x


def result_type(*kinds: Any) -> str:
    """Keras' common type of types given by name or as Python's."""
    return _result(*kinds)
