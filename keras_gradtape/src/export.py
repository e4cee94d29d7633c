"""`model.export(path)` and `keras.export.ExportArchive`: StableHLO, which runs wherever there is JAX.

TensorFlow's SavedModel needs TensorFlow. Instead, each endpoint is written by `ConcreteFunction.export` to
`<path>/stablehlo/<endpoint>`; `tf.saved_model.load(path)` returns an object with the endpoints as methods, and
`load.py` in each folder runs it without gradtape.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from keras.src import layers, tree
from keras.src.export.export_utils import make_input_spec
from keras.src.utils import io_utils

import gradtape as tf
from gradtape.backend import Function, need_jax


class SavedModelExportArchive:
    """Endpoints that are written together."""

    def __init__(self) -> None:
        self._endpoints: dict[str, Any] = {}
        self._options: dict[str, dict] = {}
        need_jax("model.export")

    def track(self, resource: Any) -> None:
        """Checks that a layer or model is built; its variables are found where endpoints use them."""
        if not isinstance(resource, layers.Layer):
            raise ValueError(
                f"Invalid resource type. Expected a Keras `Layer` or `Model`. Received: resource={resource} of "
                f"type {type(resource)}"
            )
        if not resource.built:
            raise ValueError(
                "The layer provided has not yet been built. It must be built before export. Hint: call it once."
            )

    def add_endpoint(self, name: str, fn: Callable, input_signature: Any = None, **options: Any) -> Any:
        """Adds a function under a name.

        Args:
          fn: a function of tensors; a `tf.function` that was traced needs no signature.
          input_signature: `keras.InputSpec`s, `tf.TensorSpec`s or tensors, one for each argument.
          **options: options of `ConcreteFunction.export`: `platforms`, `shapes`, `variables`, `seed`.
        """
        if name in self._endpoints:
            raise ValueError(f"Endpoint name '{name}' is already taken.")
        options.pop("is_static", None)
        if options.pop("jax2tf_kwargs", None) is not None:
            raise ValueError("'jax2tf_kwargs' is not supported by the gradtape backend.")
        if input_signature is None:
            self._endpoints[name] = _only_trace(name, fn)
        else:
            specs = tree.map_structure(_tensor_spec, input_signature)
            function = fn if isinstance(fn, Function) else tf.function(fn, autograph=False)
            self._endpoints[name] = function.get_concrete_function(*specs)
        self._options[name] = options
        return self._endpoints[name]

    def track_and_add_endpoint(self, name: str, resource: Any, input_signature: Any, **options: Any) -> Any:
        """Adds the call of a layer or model, as it predicts."""
        self.track(resource)
        # A model called with `training=False` passes it to all of its layers.
        return self.add_endpoint(
            name, lambda *inputs: resource(*inputs, training=False), input_signature, **options
        )

    def add_variable_collection(self, name: str, variables: Any) -> None:
        """Not supported: variables are constants of the exported program."""
        raise NotImplementedError(
            'export: StableHLO has no collections of variables. Hint: add_endpoint(..., variables="inputs") makes inputs '
            "of them."
        )

    def write_out(self, filepath: Any, options: Any = None, verbose: bool = True) -> None:
        """Writes all endpoints to a folder."""
        if not self._endpoints:
            raise ValueError("No endpoints have been set yet. Call add_endpoint().")
        tf.export.write(os.fspath(filepath), self._endpoints, self._options)
        if verbose:
            io_utils.print_msg(
                f"Saved artifact at '{filepath}': StableHLO, for jax and for tf.saved_model.load of gradtape. Endpoints:\n"
                + "\n".join(
                    f"* '{n}': {c.pretty_printed_signature(False)}" for n, c in self._endpoints.items()
                )
            )


def _only_trace(name: str, fn: Any) -> Any:
    """The trace of a function that has one."""
    traces = fn._concrete if isinstance(fn, Function) else []
    if isinstance(fn, Function) and fn.input_signature is not None:
        return fn.get_concrete_function()
    if len(traces) != 1:
        raise ValueError(
            f"The endpoint '{name}' needs an `input_signature`: `fn` is no tf.function with exactly one trace; it has "
            f"{len(traces)}."
        )
    return traces[0]


def _tensor_spec(x: Any) -> tf.TensorSpec:
    if isinstance(x, tf.TensorSpec):
        return x
    spec = make_input_spec(x)
    made_up = spec.name is None or spec.name.startswith("keras_tensor")
    return tf.TensorSpec(spec.shape, spec.dtype, None if made_up else spec.name)
