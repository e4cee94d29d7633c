"""A `tf.Variable`, or a `tf.Module`, in an attribute of a layer belongs to the layer, as in Keras 2.

Keras lists variables of its own class. For a `tf.Variable` it gets one that wraps it: tapes, optimizers and files
treat both as the same value. The attribute itself keeps the value that the program set.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from keras.src import backend
from keras.src.backend.common import standardize_dtype
from keras.src.layers.layer import Layer
from keras.src.utils import tracking

import gradtape as tf

Tracker = tracking.Tracker


def keras_variable(v: Any) -> Any:
    """The variable of Keras that holds a `tf.Variable`; always the same one."""
    if isinstance(v, backend.Variable):
        return v
    variable = v.__dict__.get("_keras_variable")
    if variable is None:
        variable = v.__dict__["_keras_variable"] = backend.Variable(0.0, trainable=v.trainable)
        path = v.name.partition(":")[0]
        variable._value, variable._path, variable._name = v, path, path.rpartition("/")[2]
        variable._shape, variable._ndim = tuple(v._value_shape), len(v._value_shape)
        variable._dtype = standardize_dtype(v.dtype)
        variable._autocast = False
        variable._constraint = v.constraint
    return variable


def install(keras: ModuleType) -> None:
    track = Tracker.track

    def track_all(self: Any, attr: Any) -> Any:
        if isinstance(attr, (tf.Variable, tf.Module)) and tracking.is_tracking_enabled():
            _add(self, attr)
            return attr
        return track(self, attr)

    def add_to_store(self: Any, store_name: str, value: Any) -> None:
        # Keras 3 refuses new state once a layer is built.
        self.config[store_name][1].append(value)
        self.stored_ids[store_name].add(id(value))

    Tracker.track = track_all
    Tracker.add_to_store = add_to_store
    for name in ("weights", "variables"):
        setattr(Layer, name, _with_modules(getattr(Layer, name), name))


def _add(tracker: Any, attr: Any) -> None:
    if isinstance(attr, tf.Module):
        modules = tracker.__dict__.setdefault("modules", [])
        if not any(m is attr for m in modules):
            modules.append(attr)
        return
    store = "trainable_variables" if attr.trainable else "non_trainable_variables"
    if store not in tracker.config:
        store = "variables"  # of a metric
    variable = keras_variable(attr)
    if store in tracker.config and not tracker.is_in_store(store, variable):
        tracker.add_to_store(store, variable)


def _with_modules(own: property, name: str) -> property:
    """The variables of a layer, followed by those of modules in its attributes, found on access."""

    def found(self: Any) -> list:
        variables = own.fget(self)  # type: ignore[misc]
        modules = self._tracker.__dict__.get("modules")
        if not modules:
            return variables
        seen = {id(v) for v in variables}
        for module in modules:
            for v in map(keras_variable, module.variables):
                if id(v) not in seen:
                    seen.add(id(v))
                    variables.append(v)
        return variables

    return property(found, doc=own.__doc__)
