"""`tf.__operators__`, and operators for classes whose instances functions of TensorFlow take by a dispatcher."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradtape as tf


def add(x: Any, y: Any, name: str | None = None) -> Any:
    """`x + y`."""
    return x + y


def getitem(tensor: Any, slice_spec: Any, var: Any = None) -> Any:
    """`tensor[slice_spec]`; a list of indices means the same as a tuple."""
    return tensor[tuple(slice_spec) if isinstance(slice_spec, list) else slice_spec]


_TWO = {
    "add": add, "sub": tf.subtract, "mul": tf.multiply, "truediv": tf.truediv, "div": tf.truediv, "pow": tf.pow,
    "floordiv": tf.math.floordiv, "mod": tf.math.floormod, "matmul": tf.matmul,
}  # fmt: skip
_COMPARED = {"lt": tf.less, "le": tf.less_equal, "gt": tf.greater, "ge": tf.greater_equal}
# Of truth values, and of integers.
_BITS = {
    "and": (tf.logical_and, tf.bitwise.bitwise_and), "or": (tf.logical_or, tf.bitwise.bitwise_or),
    "xor": (tf.math.logical_xor, tf.bitwise.bitwise_xor),
}  # fmt: skip


def give_operators(cls: Any, call: Callable[[Any, tuple, dict], Any]) -> None:
    """Makes operators of a class calls of functions: `call(function, args, kwargs)`."""

    def operator(choose: Callable[[Any], Any], reverse: bool = False) -> Callable:
        def method(self: Any, *other: Any) -> Any:
            if reverse:  # a number is of the type of the tensor: layers make tensors of what they get first
                return call(choose(self), (tf.convert_to_tensor(other[0], self.dtype), self), {})
            return call(choose(self), (self, *other), {})

        return method

    def plain(function: Any) -> Callable[[Any], Any]:
        return lambda _: function

    def of_bits(functions: tuple) -> Callable[[Any], Any]:
        return lambda x: functions[x.dtype is not tf.bool]

    two = {name: plain(function) for name, function in _TWO.items()}
    bits = {name: of_bits(functions) for name, functions in _BITS.items()}
    one = {
        "abs": plain(tf.abs),
        "neg": plain(tf.negative),
        "invert": of_bits((tf.logical_not, tf.bitwise.invert)),
    }
    compared = {name: plain(function) for name, function in _COMPARED.items()}
    for name, choose in {**two, **bits, **one, **compared, "getitem": plain(getitem)}.items():
        setattr(cls, f"__{name}__", operator(choose))
    for name, choose in {**two, **bits}.items():
        setattr(cls, f"__r{name}__", operator(choose, reverse=True))
    equal, other = operator(plain(tf.equal)), operator(plain(tf.not_equal))
    cls.__eq__ = lambda self, y: y is not None and equal(self, y)
    cls.__ne__ = lambda self, y: y is None or other(self, y)
