"""Steps of Keras' optimizers, each as one native program.

Keras writes an update variable by variable, with about ten ops each. Here its code is traced once for a list of
variables and kinds of gradients; later steps run the program, which overwrites the old values with the new ones.
Inside a traced function the code runs unchanged and becomes part of that trace.

Values that Python computes in each step (a learning rate that is a function, a user-defined schedule) are computed
before the program and passed to it. Optimizers with a user-defined update run op by op, since their Python code may
do more than arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from keras.src import backend
from keras.src.backend.common.stateless_scope import in_stateless_scope
from keras.src.initializers import Constant
from keras.src.optimizers import adagrad, base_optimizer, optimizer, sgd
from keras.src.optimizers.loss_scale_optimizer import LossScaleOptimizer
from keras.src.optimizers.schedules.learning_rate_schedule import LearningRateSchedule

import gradtape as tf
from gradtape.backend import (
    Programs,
    Untraceable,
    aside,
    assign_tracker,
    between_replicas,
    current_replica,
    current_trace,
    flattened,
    held,
    one_call,
    present,
    set_all,
    step_in_replica,
    summed_rows,
    unzip,
)
from keras_gradtape.src.ops.core import convert_to_numpy, convert_to_tensor
from keras_gradtape.src.ops.numpy import multiply

IndexedSlices = tf.IndexedSlices
Base = base_optimizer.BaseOptimizer

# Methods that a subclass may define and still be traced; all others take part in a step.
_HARMLESS = frozenset(("build", "get_config", "from_config", "name", "variables"))


# ---- methods of Keras' optimizers ---------------------------------------------------------------


def apply_gradients(
    self: Any,
    grads_and_vars: Any,
    name: str | None = None,
    experimental_aggregate_gradients: bool = True,
    skip_gradients_aggregation: bool = False,
    **_: Any,
) -> Any:
    """Takes one step. In a replica of a strategy, gradients are added up over all replicas first.

    Keras 2's keywords tell whether they are sums already.
    """
    replica = current_replica()
    if replica is None:
        return _apply_pairs(self, grads_and_vars)
    grads, variables = unzip(grads_and_vars)
    _in_replica(
        self, replica, grads, variables, experimental_aggregate_gradients and not skip_gradients_aggregation
    )
    return self._iterations


@one_call
def _apply_pairs(self: Any, grads_and_vars: Any) -> Any:
    pairs = list(grads_and_vars)
    # The usual case in one native call: the same variables as in the last step.
    programs = self.__dict__.get("_programs")
    if programs is None or programs.last is None or not programs.last.step(pairs):
        grads, variables = unzip(pairs)
        take(self, grads, variables)
    return self._iterations


def apply(self: Any, grads: Sequence[Any], trainable_variables: Any = None) -> None:
    """Takes one step; by default over the variables it was built with."""
    replica = current_replica()
    if replica is None or not len(grads):
        _apply_grads(self, grads, trainable_variables)
    else:
        _in_replica(self, replica, grads, trainable_variables)


def _in_replica(
    self: Any, replica: Any, grads: Sequence[Any], variables: Any, aggregate: bool = True
) -> None:
    """The step of all replicas: each clips its own gradients, as on TensorFlow, and their sums are applied once."""
    clips = not self.gradient_accumulation_steps and (self.clipnorm or self.clipvalue or self.global_clipnorm)
    scale = self.loss_scale_factor or 1.0

    def clip(own: list) -> Sequence[Any]:
        if not clips:
            return own
        dense = [tf.convert_to_tensor(g) / scale for g in own]
        return [g * scale for g in Base._clip_gradients(self, dense)]

    def apply_sums(sums: list) -> None:
        if not clips:
            _apply_pairs(
                self, zip(sums, self._trainable_variables if variables is None else variables, strict=True)
            )
            return
        self.__dict__["_is_clipped"] = True
        try:
            _eagerly(self, *_checked(self, sums, variables))
        finally:
            del self.__dict__["_is_clipped"]

    step_in_replica(replica, grads, clip, apply_sums, aggregate)


def _clip_gradients(self: Any, grads: Any) -> Any:
    return grads if "_is_clipped" in self.__dict__ else Base._clip_gradients(self, grads)


@one_call
def _apply_grads(self: Any, grads: Sequence[Any], trainable_variables: Any = None) -> None:
    if not len(grads):
        return
    if _inline() or not _traceable(type(self)):
        _eagerly(self, *_checked(self, grads, trainable_variables))
        return
    programs = self.__dict__.get("_programs")
    last = None if programs is None or trainable_variables is None else programs.last
    if last is not None and last.step(list(zip(grads, trainable_variables, strict=False))):
        return
    take(self, grads, trainable_variables)


def _update_all(self: Any, grads: Sequence[Any], trainable_variables: Any, learning_rate: Any) -> None:
    for g, v in zip(grads, trainable_variables, strict=True):
        if isinstance(g, IndexedSlices):
            _update_rows(self, g, v, learning_rate)
        else:
            self.update_step(g, v, learning_rate)


def _current_rate(self: Any) -> Any:
    rate = self.__dict__.get("_rate_now")
    return Base._get_current_learning_rate(self) if rate is None else rate._read()


def _set_attribute(self: Any, name: str, value: Any) -> None:
    # Options are constants of the programs.
    if (name[0] != "_" or name == "_learning_rate") and name != "built":
        self.__dict__.pop("_programs", None)
    Base.__setattr__(self, name, value)


def _variable_key(self: Any, variable: Any) -> int:
    """A Keras variable and the `tf.Variable` it holds are one."""
    return id(variable._value) if isinstance(variable, backend.Variable) else id(variable)


def set_weights(self: Any, weights: Any) -> None:
    """Sets `variables` to the results of `get_weights`: all of them, or none."""
    if not self.built:
        Base.set_weights(self, weights)  # raises
    set_all(self._variables, list(weights))


def load_own_variables(self: Any, store: Any) -> None:
    """Takes the state out of a file of Keras: all of it, or none."""
    if len(store.keys()) != len(self.variables):
        Base.load_own_variables(self, store)  # warns
    else:
        set_all(self.variables, [store[str(i)] for i in range(len(self.variables))])


def make_scale(self: Any) -> None:
    """The state of a LossScaleOptimizer, from the first scaled loss on.

    Keras uses the initial scale until the optimizer is built, which happens later in the step; a traced function
    would keep that number for ever.
    """
    if "dynamic_scale" not in self.__dict__:
        with aside(), between_replicas(), backend.name_scope(self.name, caller=self):
            for name, dtype, value in (
                ("step_counter", "int", 0),
                ("dynamic_scale", "float32", self.initial_scale),
            ):
                self.__dict__[name] = self.add_variable(
                    shape=(), dtype=dtype, initializer=Constant(value), aggregation="none", name=name
                )


def _build_scaling(self: Any, var_list: Any) -> None:
    make_scale(self)
    self.inner_optimizer.build(var_list)
    optimizer.Optimizer.build(self, var_list)


def _scale_loss(self: Any, loss: Any) -> Any:
    if in_stateless_scope():
        return loss * (self.dynamic_scale if self.built else self.initial_scale)
    make_scale(self)
    return multiply(loss, self.dynamic_scale)


def install() -> None:
    """Gives these methods to the optimizers of the Keras that was imported."""
    cls = optimizer.BackendOptimizer
    cls.apply_gradients = apply_gradients
    cls.apply = apply
    cls._backend_update_step = _update_all
    cls._clip_gradients = _clip_gradients
    cls._get_current_learning_rate = _current_rate
    cls._var_key = _variable_key
    cls.set_weights = set_weights
    cls.load_own_variables = load_own_variables
    cls.__setattr__ = _set_attribute
    LossScaleOptimizer.build = _build_scaling
    LossScaleOptimizer.scale_loss = _scale_loss


# ---- a step ---------------------------------------------------------------------------------------


def _inline() -> bool:
    """Whether a step belongs to something larger: a traced function, or a tape that follows assignments."""
    return current_trace() is not None or assign_tracker() is not None or in_stateless_scope()


_TRACEABLE: dict[type, bool] = {}


def _traceable(cls: type) -> bool:
    cached = _TRACEABLE.get(cls)
    if cached is None:
        written = (c for c in cls.__mro__ if not c.__module__.startswith("keras.src.") and c is not object)
        own = {n for c in written for n in vars(c) if not n.startswith("__")}
        cached = _TRACEABLE[cls] = own <= _HARMLESS
    return cached


def take(self: Any, grads: Sequence[Any], variables: Any) -> None:
    """One step in eager mode, by a program where possible."""
    grads, variables = _checked(self, grads, variables)
    if _inline() or not _traceable(type(self)):
        self.apply(grads, variables)
        return
    programs = self.__dict__.get("_programs")
    if programs is None:
        programs = self.__dict__["_programs"] = Programs()
    rates = _python_rates(self)
    for owner in rates:
        _set_rate_now(owner)
    flat = flattened(grads)
    update = programs.find(variables, flat)
    if update is None:
        try:
            update = programs.make(lambda symbols: self.apply(symbols, variables), grads, variables)
        except (TypeError, ValueError, AttributeError, NotImplementedError, Untraceable):
            # It cannot be traced, for example because of a constraint in NumPy.
            update = False
            programs.keep(update, variables, flat)
    alone = not rates and len(flat) == len(grads)
    if not update or not programs.run(update, flat, alone):
        programs.last = None
        _eagerly(self, grads, variables)


def _checked(self: Any, grads: Sequence[Any], variables: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    """The gradients that are not None and their variables, with slots made. An error changes nothing."""
    if variables is None:
        if not self.built or len(grads) != len(self._trainable_variables):
            Base.apply(self, grads)  # raises
        variables = self._trainable_variables
    if in_stateless_scope():
        return grads, variables
    variables = list(variables)
    pairs = present(grads, variables)
    _build(self, variables)
    self._check_variables_are_known(variables)
    return pairs


def _build(self: Any, variables: Any) -> None:
    """Makes the state of an optimizer, once and at once, also while a function is traced."""
    if not self.built and variables is not None and not in_stateless_scope():
        with aside(), between_replicas(), backend.name_scope(self.name, caller=self):
            self.build(list(variables))
        self.built = True


def _eagerly(self: Any, grads: Sequence[Any], variables: Sequence[Any]) -> None:
    Base.apply(self, _dense_unless_rows(self, grads), variables)


# ---- learning rates that Python computes ----------------------------------------------------------


def _python_rates(self: Any) -> list[Any]:
    """Of this optimizer and the ones inside it, those whose rate is computed by a user's function."""
    inner = getattr(self, "inner_optimizer", None)
    optimizers = [] if inner is None else _python_rates(inner)
    rate = self._learning_rate
    if isinstance(rate, LearningRateSchedule):
        if not type(rate).__module__.startswith("keras.src."):
            optimizers.append(self)
    elif callable(rate) and not isinstance(rate, backend.Variable):
        optimizers.append(self)
    return optimizers


def _set_rate_now(self: Any) -> None:
    variable = self.__dict__.pop("_rate_now", None)
    rate = np.float32(convert_to_numpy(Base._get_current_learning_rate(self)))
    if variable is None:
        with aside():
            variable = tf.Variable(rate, trainable=False)
    else:
        variable.assign(rate)
    self.__dict__["_rate_now"] = variable


# ---- sparse gradients -----------------------------------------------------------------------------


def _rows_only(self: Any) -> bool:
    """Whether a gradient of zero changes nothing: then only the rows of a sparse one are looked at."""
    if self.clipnorm or self.clipvalue or self.global_clipnorm:
        return False
    if self.loss_scale_factor is not None or self.gradient_accumulation_steps:
        return False
    return (type(self) is sgd.SGD and not self.momentum) or type(self) is adagrad.Adagrad


def _dense_unless_rows(self: Any, grads: Sequence[Any]) -> Sequence[Any]:
    if not any(isinstance(g, IndexedSlices) for g in grads) or _rows_only(self):
        return grads
    return [tf.convert_to_tensor(g) if isinstance(g, IndexedSlices) else g for g in grads]


def _update_rows(self: Any, g: IndexedSlices, variable: Any, learning_rate: Any) -> None:
    """The update of SGD and Adagrad for some rows of a variable; rows that occur twice add up."""
    v = held(variable)
    g = IndexedSlices(tf.cast(g.values, v.dtype), g.indices, g._dense_shape)
    rate = tf.cast(convert_to_tensor(learning_rate), v.dtype)
    if type(self) is sgd.SGD:
        change = g.values * rate
    else:
        g = summed_rows(g)
        accumulator = self._accumulators[self._get_variable_index(variable)]._value
        squares = tf.square(g.values)
        total = tf.gather(accumulator._read(), g.indices) + squares
        accumulator.assign(
            tf.tensor_scatter_nd_add(accumulator._read(), tf.expand_dims(g.indices, -1), squares)
        )
        change = rate * g.values / tf.sqrt(total + self.epsilon)
    v.assign(tf.tensor_scatter_nd_sub(v._read(), tf.expand_dims(g.indices, -1), change))
