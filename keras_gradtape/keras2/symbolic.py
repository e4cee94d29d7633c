"""TensorFlow's functions on the symbolic inputs of Keras: `tf.reduce_sum(keras.Input(...))`.

Keras 3 rejects this; in Keras 2 such a call became a layer of the model. Here it becomes an operation of the model,
named after the function, so that models can be copied and saved.

Once `tf.keras` has been used, public functions pass calls with a `KerasTensor` among their arguments to this module
(`take_calls`).
"""

from __future__ import annotations

from types import FunctionType, ModuleType
from typing import Any

from keras.src import tree
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.ops.operation import Operation
from keras.src.saving import register_keras_serializable
from keras.src.utils.naming import uniquify

import gradtape as tf
from gradtape.backend import PUBLIC, OneCall, op, take_calls

# Functions that take functions: these are called with tensors, whatever their closures contain.
_LEFT_ALONE = frozenset(
    ("function", "map_fn", "while_loop", "cond", "is_tensor", "nest.flatten", "keras.backend.function",
     "keras.backend.is_keras_tensor", "keras.backend.int_shape", "keras.backend.dtype", "keras.backend.ndim",
     "keras.backend.is_tensor", "keras.backend.symbolic", "keras.backend.backend", "keras.backend.floatx")
)  # fmt: skip


class IsSymbolic(TypeError):
    """An op was called on a Keras input, which has no value."""


@register_keras_serializable("gradtape")
class TFOperation(Operation):
    """A call of a TensorFlow function, as part of a model."""

    def __init__(self, function: str, name: str | None = None) -> None:
        super().__init__(name=name)
        self.function = function
        self._call = _function(function)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().compute_output_spec(*args, **kwargs)
        except (TypeError, ValueError):
            # Keras assumes that a product with a number is sparse; ops without support for sparse tensors get a
            # dense one.
            dense = tree.map_structure(_dense, (args, kwargs))
            return super().compute_output_spec(*dense[0], **dense[1])


def _dense(x: Any) -> Any:
    return KerasTensor(x.shape, x.dtype, name=x.name) if isinstance(x, KerasTensor) and x.sparse else x


_public: dict[str, Any] = {}  # functions that can be part of a model, by their saved names
_names: dict[int, str] = {}


def _function(name: str) -> Any:
    return op(name[3:]) if name.startswith("op:") else _public[name]


def _call_later(function: Any, args: tuple, kwargs: dict) -> Any:
    """A call as an operation of the model; called by public functions with symbolic inputs among their arguments."""
    name = _names.get(id(function)) or (hasattr(function, "op_name") and f"op:{function.op_name}")
    if not name or name in _LEFT_ALONE or name.startswith("random."):
        return NotImplemented
    return TFOperation(name, name=uniquify(f"tf.{name.removeprefix('op:')}"))(*args, **kwargs)


def _refuse(self: Any, *_: Any) -> Any:
    raise IsSymbolic(
        f"{self!r} is a symbolic input of Keras and has no value. Hint: put the computation into a layer "
        "(tf.keras.layers.Lambda, or a subclass of Layer)."
    )


def install(keras: ModuleType) -> None:
    KerasTensor.__tf_tensor__ = _refuse
    KerasTensor.__index__ = _refuse
    KerasTensor.get_shape = lambda self: tf.TensorShape(self.shape)
    take_calls(KerasTensor, _call_later)
    _public.update(PUBLIC)
    for space, part in (
        ("image", tf.image),
        ("keras.backend", keras.backend),
    ):
        _public.update(
            (f"{space}.{n}", f)
            for n, f in vars(part).items()
            if isinstance(f, (FunctionType, OneCall)) and n[0] != "_"
        )
    for name, function in _public.items():
        _names.setdefault(id(function), name)
        if type(function) is FunctionType and name not in _LEFT_ALONE:
            _teach(function)


# ---- functions of Keras' own module `backend` ---------------------------------------------------------


def _holds_symbols(values: Any, depth: int = 0) -> bool:
    for v in values:
        kind = type(v)
        if kind is KerasTensor or (kind in (list, tuple) and depth < 8 and _holds_symbols(v, depth + 1)):
            return True
    return False


def _looking(*args: Any, _asked: Any = None, **kwargs: Any) -> Any:
    inner, holds_symbols, function, call_later = _asked
    if holds_symbols(args) or (kwargs and holds_symbols(kwargs.values())):
        return call_later(function, args, kwargs)
    return inner(*args, **kwargs)


def _teach(function: FunctionType) -> None:
    """Makes a function look for symbols in its arguments. It stays the object that it is."""
    if "_asked" in (function.__kwdefaults__ or {}) or function.__code__.co_freevars:
        return
    inner = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    inner.__kwdefaults__ = function.__kwdefaults__
    inner.__doc__ = function.__doc__
    function.__wrapped__ = inner  # type: ignore[attr-defined]  # its signature is asked of this one
    function.__defaults__ = None
    function.__kwdefaults__ = {"_asked": (inner, _holds_symbols, function, _call_later)}
    function.__code__ = _looking.__code__
