"""Objects that `tf.saved_model.load` returns besides the module itself: signatures, and Keras models as modules."""

from __future__ import annotations

import inspect
from typing import Any

import gradtape as tf
from gradtape._src.functions.function import Function
from gradtape._src.state.module import Module


class LoadedModel(Module):
    """A Keras model read by `load`: call `signatures["serving_default"](inputs=x)`, or `model`."""

    def __init__(self, model: Any) -> None:
        super().__init__(name=None)
        self.model = model
        self.signatures: dict[str, Any] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As the model."""
        return self.model(*args, **kwargs)


class Restored(Module):
    """A module that was stored without its class, with its variables, modules and functions."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the module, if its `__call__` was a function with a signature, or was called before it was stored."""
        call = vars(self).get("__call__")
        if call is None:
            raise TypeError(f"{self.name}: the module was stored without a function that is its call.")
        return call(*args, **kwargs)


class Signature:
    """A stored function, called with keywords; its results have names."""

    def __init__(self, name: str, function: Any) -> None:
        if not isinstance(function, Function):
            raise ValueError(f"the signature {name!r} is not a function")
        self.name = name
        self._function = function
        self._names = [
            p
            for p in inspect.signature(function.python_function).parameters
            if p not in ("self", "args", "kwargs")
        ]

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return _named(self._function(*args, **kwargs))

    @property
    def structured_input_signature(self) -> tuple[tuple, dict[str, Any]]:
        """No positional arguments, and the specs of the others by name."""
        specs = zip(self._names, self._function.input_signature or (), strict=False)
        return (), {
            n: tf.nest.map_structure(lambda s, n=n: tf.TensorSpec(s.shape, s.dtype, n), x) for n, x in specs
        }

    @property
    def structured_outputs(self) -> dict[str, Any]:
        """The specs of the results by name."""
        results = _named(self._function.get_concrete_function().structured_outputs)
        return {n: tf.TensorSpec(x.shape, x.dtype, n) for n, x in results.items()}


def _named(out: Any) -> dict[str, Any]:
    if isinstance(out, dict):
        return out
    every = out if isinstance(out, (list, tuple)) else [out]
    return {f"output_{i}": x for i, x in enumerate(every)}
