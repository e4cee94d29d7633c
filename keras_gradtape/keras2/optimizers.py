"""Optimizers of Keras 2: `lr=`, `decay=`, `minimize`, new variables, slots by name, scaled losses."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np
from keras.src import backend, optimizers
from keras.src.optimizers import base_optimizer, loss_scale_optimizer, optimizer
from keras.src.optimizers.muon import Muon

import gradtape as tf
from gradtape.backend import want_scale
from keras_gradtape.keras2.tracking import keras_variable
from keras_gradtape.src.optimizer import make_scale

Base = base_optimizer.BaseOptimizer
Scaling = loss_scale_optimizer.LossScaleOptimizer
# Keras 2's names of slots.
_SLOTS = {
    "m": "momentum",
    "v": "velocity",
    "rms": "velocity",
    "vhat": "velocity_hat",
    "mg": "average_gradient",
}


def install(keras: ModuleType) -> None:
    cls = optimizer.BackendOptimizer
    Base.__init__ = _accepting(Base.__init__)
    Base.variables = _called(Base.variables)
    Scaling.variables = _called(Scaling.variables)
    Scaling.__init__ = _scaling(Scaling.__init__)
    Scaling.apply_gradients = _apply_unscaled(Scaling.apply_gradients)
    for function in (
        minimize, compute_gradients, get_weights, get_slot, get_slot_names, _check_variables_are_known
    ):  # fmt: skip
        setattr(cls, function.__name__, function)
    cls._compute_gradients = compute_gradients
    cls.lr = property(_rate, _set_rate)
    cls._decayed_lr = _decayed_rate
    cls._name = property(lambda self: self.name)
    cls.weights = property(lambda self: self.variables)
    cls.iterations = property(Base.iterations.fget, _set_iterations)
    cls._get_current_learning_rate = _decayed(cls._get_current_learning_rate)
    Scaling.iterations = property(Scaling.iterations.fget, _set_iterations)
    Scaling.get_scaled_loss = get_scaled_loss
    Scaling.get_unscaled_gradients = get_unscaled_gradients
    Scaling.loss_scale = property(_loss_scale)
    optimizers.get = keras.optimizers.get = _get(optimizers.get)
    # Muon reads the path of a variable, which a `tf.Variable` does not have.
    by_path = Muon._should_use_adamw
    Muon._should_use_adamw = lambda self, variable: by_path(self, keras_variable(variable))


# ---- construction ---------------------------------------------------------------------------------


def _accepting(init: Any) -> Any:
    """Learning rates of all kinds, as `lr` too, and `decay`."""

    @functools.wraps(init)
    def __init__(self: Any, learning_rate: Any = None, *args: Any, **kwargs: Any) -> None:
        learning_rate = kwargs.pop("lr", learning_rate)
        decay = kwargs.pop("decay", None)
        want_scale("loss_scale_factor", kwargs.get("loss_scale_factor"))
        rate_variable = None
        if isinstance(learning_rate, (tf.Variable, backend.Variable)):
            rate_variable = keras_variable(learning_rate)
            learning_rate = float(rate_variable.numpy())
        elif isinstance(learning_rate, (int, np.generic, np.ndarray, tf.Tensor)):
            learning_rate = float(learning_rate)
        init(self, learning_rate, *args, **kwargs)
        if rate_variable is not None:
            self._untrack_variable(self._learning_rate)
            self._learning_rate = rate_variable
        if decay:
            self._decay = float(decay)

    return __init__


def _decayed(current: Any) -> Any:
    """Keras 2's `decay`: the rate is divided by `1 + decay * iterations`."""

    def rate(self: Any) -> Any:
        decay = self.__dict__.get("_decay")
        base_rate = current(self)
        return (
            base_rate
            if not decay
            else tf.convert_to_tensor(base_rate) / (1 + decay * tf.cast(self._iterations, tf.float32))
        )

    return rate


def _rate(self: Any) -> Any:
    """The rate before its decay."""
    rate = self._learning_rate
    return rate if isinstance(rate, backend.Variable) else self.learning_rate


def _decayed_rate(self: Any, var_dtype: Any = "float32") -> Any:
    """The rate of the next step."""
    return tf.cast(self._get_current_learning_rate(), var_dtype)


def _set_rate(self: Any, value: Any) -> None:
    self.learning_rate = value


def _set_iterations(self: Any, value: Any) -> None:
    if isinstance(value, (tf.Variable, backend.Variable)):
        self._iterations = keras_variable(value)
        self.__dict__.pop("_programs", None)
    else:
        self._iterations.assign(value)


def _get(get: Any) -> Any:
    @functools.wraps(get)
    def converted(identifier: Any) -> Any:
        """Also for an optimizer of `tf.optimizers`: one of Keras with the same options."""
        if isinstance(identifier, tf.optimizers.Optimizer):
            rate = identifier._learning_rate
            config = {k: v for k, v in identifier.get_config().items() if k not in ("learning_rate", "name")}
            return getattr(optimizers, type(identifier).__name__)(
                rate if callable(rate) and not isinstance(rate, tf.Variable) else float(rate), **config
            )
        return get(identifier)

    return converted


# ---- steps ----------------------------------------------------------------------------------------


def minimize(
    self: Any, loss: Any, var_list: Any, grad_loss: Any = None, name: str | None = None, tape: Any = None
) -> Any:
    """Differentiates the loss and takes one step.

    Args:
      loss: a function without arguments, or a tensor that `tape` recorded.
      var_list: the variables, or a function that returns them.
      grad_loss: the cotangent of the loss, 1 by default.
      tape: the tape of the loss, if that is a tensor.
    """
    return self.apply_gradients(self.compute_gradients(loss, var_list, grad_loss, tape))


def compute_gradients(
    self: Any, loss: Any, var_list: Any, grad_loss: Any = None, tape: Any = None
) -> list[tuple]:
    """The first half of `minimize`: pairs of gradients and variables."""
    if not callable(loss) and tape is None:
        raise ValueError(
            f"`tape` is required when a `Tensor` loss is passed. Received: loss={loss}, tape={tape}."
        )
    with tape or tf.GradientTape() as tape:
        value = self.scale_loss(loss() if callable(loss) else loss)
        variables = list(var_list() if callable(var_list) else var_list)
    return list(zip(tape.gradient(value, variables, grad_loss), variables, strict=True))


def _check_variables_are_known(self: Any, variables: Iterable[Any]) -> None:
    """Creates slots for variables that the optimizer sees for the first time."""
    indices = self._trainable_variables_indices
    new = [v for v in variables if self._var_key(v) not in indices]
    if not new:
        return
    old = list(self._trainable_variables)
    saved = {
        name: value
        for name, value in vars(self).items()
        if isinstance(value, backend.Variable) or (isinstance(value, list) and len(value) == len(old))
    }
    saved.pop("_trainable_variables", None)
    saved.pop("_variables", None)
    # Keras creates slots for a whole list. Existing ones are kept; duplicates are dropped.
    self._tracker.unlock()
    self.built = False
    with backend.name_scope(self.name, caller=self):
        self.build(old + new)
    self.built = True
    for name, before in saved.items():
        after = getattr(self, name)
        if after is before:
            continue
        twice = [after] if isinstance(after, backend.Variable) else after[: len(old)]
        for v in twice:
            if isinstance(v, backend.Variable):
                self._untrack_variable(v)
        restored = before if isinstance(after, backend.Variable) else [*before, *after[len(old) :]]
        self.__dict__[name] = restored


# ---- state ----------------------------------------------------------------------------------------


class Variables(list):
    """A list that old programs may call: `optimizer.variables()`."""

    def __call__(self) -> list:
        return self


def _called(variables: property) -> property:
    return property(lambda self: Variables(variables.fget(self)))  # type: ignore[misc]


def get_weights(self: Any) -> list[np.ndarray]:
    """The values of `variables`."""
    return [v.numpy() for v in self.variables]


def _slots(self: Any, var: Any) -> dict[str, Any]:
    """The slots of a variable by name: its entries in the lists that go along with the variables."""
    at, count = self._get_variable_index(var), len(self._trainable_variables)
    start = f"{getattr(var, 'path', var.name).replace('/', '_').replace(':', '_')}_"
    lists = [
        v
        for n, v in vars(self).items()
        if isinstance(v, list) and n not in ("_trainable_variables", "_variables")
    ]
    slots = [v[at] for v in lists if len(v) == count]
    return {v.name.removeprefix(start): v for v in slots if isinstance(v, backend.Variable)}


def get_slot(self: Any, var: Any, slot_name: str) -> Any:
    """The slot of a variable by name; Keras 2's names (`"m"`, `"v"`, `"rms"`) work too."""
    slots = _slots(self, var)
    return slots[slot_name if slot_name in slots else _SLOTS.get(slot_name, slot_name)]


def get_slot_names(self: Any) -> list[str]:
    """The names of the slots that variables have."""
    return sorted({name for v in self._trainable_variables for name in _slots(self, v)})


# ---- scaled losses --------------------------------------------------------------------------------


def _scaling(init: Any) -> Any:
    @functools.wraps(init)
    def __init__(self: Any, inner_optimizer: Any, *args: Any, **kwargs: Any) -> None:
        scale = kwargs.pop("loss_scale", "dynamic")
        if scale != "dynamic" and scale is not None:
            kwargs.update(initial_scale=float(scale), dynamic=False)
        if args and isinstance(args[0], (bool, str)):  # once (optimizer, dynamic, initial_scale, ...)
            kwargs["dynamic"], args = args[0] is not False, args[1:]
        if not kwargs.pop("dynamic", True):
            kwargs["dynamic_growth_steps"] = 2**31 - 1  # a fixed scale, which never grows
        want_scale("initial_scale", args[0] if args else kwargs.get("initial_scale"))
        init(self, inner_optimizer, *args, **{k: v for k, v in kwargs.items() if v is not None})

    return __init__


def _loss_scale(self: Any) -> Any:
    """The current scale of the loss."""
    make_scale(self)
    return self.dynamic_scale


def get_scaled_loss(self: Any, loss: Any) -> Any:
    """The loss times the scale; of a function, a function."""
    return (lambda: self.scale_loss(loss())) if callable(loss) else self.scale_loss(loss)


def get_unscaled_gradients(self: Any, grads: Iterable[Any]) -> list[Any]:
    """Gradients of a scaled loss, divided by the scale; `apply_gradients` then uses them unchanged."""
    self.__dict__["_unscaled"] = True
    scale = tf.convert_to_tensor(self.loss_scale)
    return [None if g is None else tf.convert_to_tensor(g) / tf.cast(scale, g.dtype) for g in grads]


def _apply_unscaled(apply_gradients: Any) -> Any:
    """Keras 3 divides by the scale in its step: what was divided already is multiplied back before.

    Scales are powers of two, so that no precision is lost.
    """

    @functools.wraps(apply_gradients)
    def apply(self: Any, grads_and_vars: Iterable[tuple], *args: Any, **kwargs: Any) -> Any:
        if self.__dict__.pop("_unscaled", False):
            scale = tf.convert_to_tensor(self.loss_scale)
            grads_and_vars = [
                (None if g is None else tf.convert_to_tensor(g) * tf.cast(scale, g.dtype), v)
                for g, v in grads_and_vars
            ]
        return apply_gradients(self, grads_and_vars, *args, **kwargs)

    return apply
