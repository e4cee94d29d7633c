"""`experimental_enable_numpy_behavior`: tensors and variables with NumPy's methods, operators and indices."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as tf
from gradtape import _core
from gradtape.tnp import algebra, arrays, elementwise, more, shapes

_FUNCTIONS = {n: v for part in (arrays, elementwise, shapes, algebra, more) for n, v in vars(part).items()}
_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide",
    "mod": "mod", "pow": "power", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
}  # fmt: skip
_COMPARISONS = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}  # fmt: skip


def _operator(function: Callable, native: Callable, is_reflected: bool) -> Callable:
    @functools.wraps(native)
    def method(self: Any, other: Any) -> Any:
        if other is None or isinstance(other, (str, bytes)):
            return native(self, other)
        same = isinstance(other, (_core.Tensor, _core.Variable)) and other.dtype is self.dtype
        if same and not self.dtype.is_bool and function is not algebra.matmul:
            return native(self, other)
        return function(other, self) if is_reflected else function(self, other)

    return method


def _is_array(key: Any) -> bool:
    return isinstance(key, list) or getattr(key, "ndim", 0) > 0


def _item(native: Callable) -> Callable:
    """`x[key]`, where a key may contain arrays and lists, as in NumPy."""

    @functools.wraps(native)
    def method(self: Any, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if not any(map(_is_array, parts)):
            return native(self, key)
        x = self._read() if isinstance(self, _core.Variable) else self
        symbolic = [i for i, p in enumerate(parts) if isinstance(p, _core.Tensor) and p._symbol is not None]
        if symbolic or not x.shape.is_fully_defined():
            return _gathered(x, parts, native)
        # NumPy computes the flat indices of the elements, in the order of the result.
        given = tuple(np.asarray(p) if isinstance(p, (_core.Tensor, _core.Variable)) else p for p in parts)
        numbers = np.arange(x._numel).reshape(tuple(x.shape))[given]
        return tf.gather(tf.reshape(x, [-1]), numbers)

    return method


def _rows(native: Callable, item: Callable) -> Callable:
    """`iter(x)`: Python's default would index until an IndexError, but tensors raise another error."""

    def method(self: Any) -> Any:
        native(self)  # raises for scalars and symbolic tensors
        return (item(self, i) for i in range(len(self)))

    return method


def _gathered(x: Any, parts: tuple, native: Callable) -> Any:
    """The same if sizes or indices are only known when a function runs; supports one array beside slices."""
    places = [i for i, p in enumerate(parts) if _is_array(p)]
    if len(places) > 1 or not all(isinstance(p, slice) or i in places for i, p in enumerate(parts)):
        raise NotImplementedError(
            "index: in a function of unknown sizes, one array beside slices can be an index. Hint: tf.gather_nd."
        )
    axis = places[0]
    index = tf.convert_to_tensor(parts[axis])
    rest = native(x, tuple(slice(None) if i == axis else p for i, p in enumerate(parts)))
    if index.dtype.is_bool:
        return tf.boolean_mask(rest, index, axis=axis)
    size = tf.cast(tf.shape(rest)[axis], index.dtype)
    return tf.gather(rest, tf.where(index < 0, index + size, index), axis=axis)


def experimental_enable_numpy_behavior(
    prefer_float32: bool = False, dtype_conversion_mode: str = "legacy"
) -> None:
    """Gives tensors NumPy's methods, operators and indices, for the whole program, permanently.

    Methods: `x.T`, `x.reshape`, `x.astype`, ... Operands of different types are promoted as in NumPy (int32 and
    float32 to float64); Python numbers take the type of the tensor if it can represent them. `x[[0, 2]]`, `x[:,
    mask]` and the like select elements.

    Args:
      prefer_float32: Python's floats become float32 instead of float64.
      dtype_conversion_mode: "legacy", the above; "off" leaves the operators as they are.

    Raises:
      NotImplementedError: for the modes "safe" and "all".
      ValueError: for any other.
    """
    if dtype_conversion_mode in ("safe", "all"):
        raise NotImplementedError(
            f"experimental_enable_numpy_behavior: gradtape has no weak types, which mode {dtype_conversion_mode!r} "
            "needs; expected 'legacy' or 'off'."
        )
    if dtype_conversion_mode not in ("legacy", "off"):
        raise ValueError(
            f"The provided promotion mode {dtype_conversion_mode} does not exist. Make sure the provided dtype "
            "conversion mode is one of: 'legacy', 'off'."
        )
    arrays.settings.prefer_float32 = prefer_float32
    methods: dict[str, Any] = {
        "T": property(shapes.transpose), "astype": arrays.array, "ravel": shapes.ravel, "clip": algebra.clip,
        "reshape": lambda self, *s: shapes.reshape(self, s[0] if len(s) == 1 else s),
        "transpose": lambda self, *p: shapes.transpose(self, (p if p and isinstance(p[0], int) else p and p[0]) or None),
        **{name: _FUNCTIONS[name] for name in ("mean", "max", "min", "sum")},
        "size": property(shapes.size), "tolist": lambda self: self.numpy().tolist(),
        "data": property(lambda self: self.numpy().data),
    }  # fmt: skip
    for name, method in methods.items():
        setattr(_core.Tensor, name, method)
    if dtype_conversion_mode == "legacy":
        for kind in (_core.Tensor, _core.Variable):
            _take_over(kind)


def _take_over(kind: Any) -> None:
    if hasattr(kind.__add__, "__wrapped__"):
        return  # done before
    for name, function in _BINARY.items():
        for prefix in ("", "r"):
            special = f"__{prefix}{name}__"
            setattr(kind, special, _operator(_FUNCTIONS[function], getattr(kind, special), prefix == "r"))
    for name, function in _COMPARISONS.items():
        special = f"__{name}__"
        setattr(kind, special, _operator(_FUNCTIONS[function], getattr(kind, special), False))
    if kind is not _core.Variable:  # a variable goes through the rows of its value
        kind.__iter__ = _rows(kind.__iter__, kind.__getitem__)
    kind.__getitem__ = _item(kind.__getitem__)
