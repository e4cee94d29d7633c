"""Layers of Keras 2: arguments that are gone, `training` by position, `input_shape`, `add_metric`."""

from __future__ import annotations

import functools
import inspect
import warnings
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from keras.src import metrics
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.layers.core import input_layer
from keras.src.layers.layer import Layer

import gradtape as tf
from gradtape.backend import current_trace, is_library, users_level, with_autograph
from keras_gradtape.keras2.losses import name_first

# Accepted by Keras 2, and meaningless now.
_GONE = frozenset(
    ("dynamic", "fused", "implementation", "experimental_autocast", "use_resource", "input_length")
)  # fmt: skip
# Options that changed the result of a layer; only their "off" value is accepted.
_OFF = frozenset(("virtual_batch_size", "adjustment", "time_major"))


def install(keras: ModuleType) -> None:
    Layer.__init__ = _accepting(Layer.__init__)
    Layer.__call__ = _by_position(Layer.__call__)
    Layer.__init_subclass__ = classmethod(_subclassed)
    Layer.add_weight = Layer.add_variable = name_first(Layer.add_weight)
    Layer.input_shape = property(lambda self: _shapes(self, "input"))
    Layer.output_shape = property(lambda self: _shapes(self, "output"))
    Layer.get_input_at = lambda self, node_index: _tensors_at(self, node_index, "input_tensors")
    Layer.get_output_at = lambda self, node_index: _tensors_at(self, node_index, "outputs")
    Layer.get_input_shape_at = lambda self, i: self.get_input_at(i).shape
    Layer.get_output_shape_at = lambda self, i: self.get_output_at(i).shape
    Layer.inbound_nodes = property(lambda self: self._inbound_nodes)
    Layer.outbound_nodes = property(lambda self: self._outbound_nodes)
    Layer.updates = property(lambda self: [])
    Layer.get_updates_for = lambda self, inputs: []
    Layer.get_losses_for = lambda self, inputs: self.losses
    Layer.dynamic = property(lambda self: False)
    Layer.add_metric = add_metric
    Layer.add_update = lambda self, updates, inputs=None: None
    Layer.apply = Layer.__call__
    Layer.reset_states = reset_states
    new_input = _input(input_layer.Input)
    for place in (keras, keras.layers):
        place.Input = new_input


# ---- construction ---------------------------------------------------------------------------------


_INPUT_SHAPE = (
    "Do not pass an `input_shape`/`input_dim` argument to a layer. When using Sequential models, prefer using an "
    "`Input(shape)` object as the first layer in the model instead."
)


def _accepting(init: Any) -> Any:
    # Keras inspects the parameter names of this function and of the one it wraps.
    @functools.wraps(init)
    def __init__(self: Any, **kwargs: Any) -> None:
        weights = kwargs.pop("weights", None)
        whole = kwargs.pop("batch_input_shape", None)
        if whole is not None:
            kwargs["input_shape"] = tuple(whole)[1:]
            self.__dict__["_batch_size_arg"] = whole[0]
        if isinstance(kwargs.get("input_shape"), int):
            kwargs["input_shape"] = (kwargs["input_shape"],)
        for name in _GONE & kwargs.keys():
            del kwargs[name]
        for name in _OFF & kwargs.keys():
            if kwargs.pop(name):
                raise ValueError(
                    f"{type(self).__name__}: Keras 3 has no `{name}`; expected it to be left out."
                    + (" Hint: transpose the input and the output." if name == "time_major" else "")
                )
        if isinstance(kwargs.get("dtype"), tf.DType):
            kwargs["dtype"] = kwargs["dtype"].name
        size, shape = kwargs.pop("input_dim", None), kwargs.pop("input_shape", None)
        init(self, **kwargs)
        if size is not None or shape is not None:  # Keras' own warning would name the line of `init` above
            self._input_shape_arg = shape if size is None else (size,)
            warnings.warn(_INPUT_SHAPE, stacklevel=users_level())
        if weights is not None:
            _set_when_built(self, weights)

    return __init__


def _set_when_built(layer: Any, weights: Any) -> None:
    build = layer.build

    @functools.wraps(build)
    def build_and_set(*args: Any, **kwargs: Any) -> None:
        build(*args, **kwargs)
        layer.set_weights(weights)

    layer.build = build_and_set


def _input(make: Any) -> Any:
    @functools.wraps(make)
    def input_of(shape: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(shape, int):
            shape = (shape,)
        if kwargs.pop("type_spec", None) is not None:
            raise ValueError("Input: `type_spec` is not supported. Hint: pass `shape` and `dtype`.")
        if isinstance(kwargs.get("dtype"), tf.DType):
            kwargs["dtype"] = kwargs["dtype"].name
        return make(None if shape is None else tuple(shape), *args, **kwargs)

    return input_of


def _subclassed(cls: type, **kwargs: Any) -> None:
    """A user layer: its `call` may use `if` and `while` over tensors, in functions too."""
    super(Layer, cls).__init_subclass__(**kwargs)
    call = cls.__dict__.get("call")
    if type(call) is FunctionType and not is_library(cls.__module__):

        @functools.wraps(call)
        def traced_call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if current_trace() is None:
                return call(self, *args, **kwargs)
            return with_autograph(call)(self, *args, **kwargs)

        cls.call = traced_call  # type: ignore[attr-defined]


# ---- calls ----------------------------------------------------------------------------------------


def _by_position(call: Any) -> Any:
    """`layer(x, True)`: passes further positional arguments that are not tensors by name.

    Arrays in a list of inputs with tensors become tensors too.
    """

    @functools.wraps(call)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if args and type(args[0]) in (list, tuple) and not all(map(tf.is_tensor, args[0])):
            args = (type(args[0])(map(_as_tensor, args[0])), *args[1:])
        if len(args) > 1 and any(a is None or isinstance(a, (bool, int, float, str)) for a in args[1:]):
            names = list(inspect.signature(self.call).parameters)
            positional = [args[0]]
            for name, value in zip(names[1:], args[1:], strict=False):
                if isinstance(value, (tf.Tensor, tf.Variable, KerasTensor)) and len(positional) == len(
                    args[: names.index(name)]
                ):
                    positional.append(value)
                else:
                    kwargs[name] = value
            args = tuple(positional)
        return call(self, *args, **kwargs)

    return __call__


def _as_tensor(x: Any) -> Any:
    return tf.convert_to_tensor(x) if isinstance(x, np.ndarray) and x.dtype.kind in "biufc" else x


def add_metric(
    self: Any, value: Any, name: str | None = None, aggregation: str | None = None, **_: Any
) -> None:
    """Keeps the mean of a tensor, under a name, among the metrics of the layer."""
    if isinstance(value, KerasTensor):
        raise ValueError("add_metric: a symbolic input has no value. Hint: call it inside `call` of a layer.")
    name = name or "metric"
    metric = next((m for m in self._metrics if m.name == name), None)
    if metric is None:
        metric = metrics.Mean(name=name)
        self._tracker.unlock()
        self._tracker.add_to_store("metrics", metric)
    metric.update_state(value)


def reset_states(self: Any) -> None:
    """Forgets the state of recurrent layers, here and inside."""
    for layer in self._flatten_layers():
        if hasattr(type(layer), "reset_state"):
            layer.reset_state()


# ---- inputs and outputs of calls ------------------------------------------------------------------


def _shapes(layer: Any, which: str) -> Any:
    tensors = getattr(layer, which)  # raises for a layer that was not called on an input
    return tf.nest.map_structure(lambda x: tuple(x.shape), tensors)


def _tensors_at(layer: Any, node: int, which: str) -> Any:
    if not 0 <= node < len(layer._inbound_nodes):
        raise ValueError(
            f"{layer.name}: asked for call {node} on inputs of Keras; there were {len(layer._inbound_nodes)}."
        )
    tensors = list(getattr(layer._inbound_nodes[node], which))
    return tensors[0] if len(tensors) == 1 else tensors
