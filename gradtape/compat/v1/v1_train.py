"""`tf.compat.v1.train`: the optimizers of TensorFlow 1 in eager mode, its learning rate decays, the global step.

Other names are those of `tf.train`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as _np

import gradtape as _tf
from gradtape import optimizers as _optimizers
from gradtape._src.public import absent as _absent
from gradtape.optimizers import schedules as _schedules


class Optimizer(_optimizers.Optimizer):
    """An optimizer with the methods of TensorFlow 1; the base of those below."""

    GATE_NONE, GATE_OP, GATE_GRAPH = 0, 1, 2  # what may run at once in a graph: without meaning here

    def __init__(self, learning_rate: Any, name: str) -> None:
        super().__init__(learning_rate, name=name)

    def apply_gradients(  # type: ignore[override]
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None, **kwargs: Any
    ) -> Any:
        """Takes one step, and counts it in `global_step`."""
        out = super().apply_gradients(grads_and_vars)
        if global_step is not None:
            global_step.assign_add(1)
        return out

    def compute_gradients(  # type: ignore[override]
        self, loss: Any, var_list: Any = None, gate_gradients: Any = None, aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False, grad_loss: Any = None,
    ) -> list[tuple]:  # fmt: skip
        """Pairs of gradients and variables.

        Args:
          loss: a function without arguments.
          var_list: the variables; those the loss reads if None.
        """
        if not callable(loss):
            raise RuntimeError(
                "`loss` passed to Optimizer.compute_gradients should be a function when eager execution is enabled."
            )
        with _tf.GradientTape() as tape:
            value = loss()
        variables = list(tape.watched_variables() if var_list is None else var_list)
        return list(zip(tape.gradient(value, variables, grad_loss), variables, strict=True))

    def minimize(  # type: ignore[override]
        self, loss: Any, global_step: Any = None, var_list: Any = None, gate_gradients: Any = None,
        aggregation_method: Any = None, colocate_gradients_with_ops: bool = False, name: str | None = None,
        grad_loss: Any = None,
    ) -> Any:  # fmt: skip
        """Differentiates the loss and takes one step."""
        pairs = self.compute_gradients(loss, var_list, grad_loss=grad_loss)
        return self.apply_gradients(pairs, global_step)


class GradientDescentOptimizer(Optimizer):
    """`v -= lr * g`."""

    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent") -> None:
        super().__init__(learning_rate, name)

    def update(self, v: Any, g: Any, slots: Any, lr: Any, step: Any) -> Any:
        return v - lr * g


class MomentumOptimizer(Optimizer):
    """`a = momentum * a + g`, `v -= lr * a`; in `tf.optimizers.SGD`, `a` includes the learning rate."""

    def __init__(
        self, learning_rate: Any, momentum: float, use_locking: bool = False, name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, name)
        self.momentum, self.use_nesterov = momentum, use_nesterov

    def slots(self, v: Any) -> dict[str, Any]:
        return {"momentum": 0}

    def update(self, v: Any, g: Any, slots: Any, lr: Any, step: Any) -> Any:
        slots.momentum = self.momentum * slots.momentum + g
        return v - lr * (g + self.momentum * slots.momentum if self.use_nesterov else slots.momentum)


class AdamOptimizer(Optimizer):
    """Adam; `epsilon` is smaller than that of `tf.optimizers.Adam`."""

    def __init__(
        self, learning_rate: Any = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
        use_locking: bool = False, name: str = "Adam", use_own_namescope_for_non_slot_vars: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, name)
        self.beta_1, self.beta_2, self.epsilon, self.amsgrad = beta1, beta2, epsilon, False

    slots = _optimizers.Adam.slots
    update = _optimizers.Adam.update


class AdagradOptimizer(Optimizer):
    """Adagrad, without an epsilon."""

    def __init__(
        self, learning_rate: Any, initial_accumulator_value: float = 0.1, use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, name)
        if initial_accumulator_value <= 0.0:
            raise ValueError(f"initial_accumulator_value must be positive: {initial_accumulator_value}")
        self.initial_accumulator_value = initial_accumulator_value

    def slots(self, v: Any) -> dict[str, Any]:
        return {"accumulator": self.initial_accumulator_value}

    def update(self, v: Any, g: Any, slots: Any, lr: Any, step: Any) -> Any:
        slots.accumulator = slots.accumulator + g * g
        return v - lr * g * _tf.math.rsqrt(slots.accumulator)


class AdadeltaOptimizer(Optimizer):
    """Adadelta."""

    def __init__(
        self, learning_rate: Any = 0.001, rho: float = 0.95, epsilon: float = 1e-8, use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, name)
        self.rho, self.epsilon = rho, epsilon

    slots = _optimizers.Adadelta.slots
    update = _optimizers.Adadelta.update


class RMSPropOptimizer(Optimizer):
    """RMSProp, whose mean square starts at one."""

    def __init__(
        self, learning_rate: Any, decay: float = 0.9, momentum: float = 0.0, epsilon: float = 1e-10,
        use_locking: bool = False, centered: bool = False, name: str = "RMSProp",
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, name)
        self.rho, self.momentum, self.epsilon, self.centered = decay, momentum, epsilon, centered

    def slots(self, v: Any) -> dict[str, Any]:
        return {"rms": 1, "momentum": 0, **({"mean": 0} if self.centered else {})}

    def update(self, v: Any, g: Any, slots: Any, lr: Any, step: Any) -> Any:
        slots.rms = slots.rms + (g * g - slots.rms) * (1 - self.rho)
        below = slots.rms + self.epsilon
        if self.centered:
            slots.mean = slots.mean + (g - slots.mean) * (1 - self.rho)
            below = below - slots.mean * slots.mean
        slots.momentum = self.momentum * slots.momentum + lr * g * _tf.math.rsqrt(below)
        return v - slots.momentum


class FtrlOptimizer(Optimizer):
    """FTRL."""

    def __init__(
        self, learning_rate: Any, learning_rate_power: float = -0.5, initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0, l2_regularization_strength: float = 0.0,
        use_locking: bool = False, name: str = "Ftrl", accum_name: Any = None, linear_name: Any = None,
        l2_shrinkage_regularization_strength: float = 0.0, beta: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, name)
        self.learning_rate_power = learning_rate_power
        self.initial_accumulator_value = initial_accumulator_value
        self.l1_regularization_strength = l1_regularization_strength
        self.l2_regularization_strength = l2_regularization_strength
        self.l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength
        self.beta = beta

    slots = _optimizers.Ftrl.slots
    update = _optimizers.Ftrl.update


# ---- decays: functions that return the learning rate --- ---------------------------------------------


def exponential_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False,
    name: str | None = None,
) -> Callable[[], Any]:  # fmt: skip
    """`learning_rate * decay_rate ** (step / decay_steps)`, as a function without arguments."""
    return functools.partial(
        _schedules.ExponentialDecay(learning_rate, decay_steps, decay_rate, staircase), global_step
    )


def natural_exp_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False,
    name: str | None = None,
) -> Callable[[], Any]:  # fmt: skip
    """`learning_rate * exp(-decay_rate * step / decay_steps)`."""
    rate = float(_np.exp(-decay_rate))
    return exponential_decay(learning_rate, global_step, decay_steps, rate, staircase)


def inverse_time_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False,
    name: str | None = None,
) -> Callable[[], Any]:  # fmt: skip
    """`learning_rate / (1 + decay_rate * step / decay_steps)`."""
    return functools.partial(
        _schedules.InverseTimeDecay(learning_rate, decay_steps, decay_rate, staircase), global_step
    )


def polynomial_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, end_learning_rate: Any = 0.0001, power: float = 1.0,
    cycle: bool = False, name: str | None = None,
) -> Callable[[], Any]:  # fmt: skip
    """A polynomial from one learning rate to another."""
    return functools.partial(
        _schedules.PolynomialDecay(learning_rate, decay_steps, end_learning_rate, power, cycle), global_step
    )


def cosine_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, alpha: float = 0.0, name: str | None = None
) -> Callable[[], Any]:
    """Half a period of a cosine."""
    return functools.partial(_schedules.CosineDecay(learning_rate, decay_steps, alpha), global_step)


def piecewise_constant(x: Any, boundaries: Any, values: Any, name: str | None = None) -> Callable[[], Any]:
    """A constant learning rate per interval of steps."""
    return functools.partial(_schedules.PiecewiseConstantDecay(boundaries, values), x)


piecewise_constant_decay = piecewise_constant


# ---- the global step --------------------------------------------------------------------------------

_global_step: list[Any] = []


def get_global_step(graph: Any = None) -> Any:
    """The variable that counts steps; None before `get_or_create_global_step`."""
    return _global_step[0] if _global_step else None


def get_or_create_global_step(graph: Any = None) -> Any:
    """The variable that counts steps: an int64."""
    if not _global_step:
        with _tf.init_scope():
            _global_step.append(_tf.Variable(_np.int64(0), trainable=False, name="global_step"))
    return _global_step[0]


create_global_step = get_or_create_global_step


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """The number of steps so far."""
    return int(global_step_tensor)


def NewCheckpointReader(filepattern: Any) -> Any:
    """The same as `tf.train.load_checkpoint`."""
    return _tf.train.load_checkpoint(filepattern)


def __getattr__(name: str) -> Any:
    if _absent.is_known("compat.v1.train", name):
        return _absent.lookup_in("compat.v1.train", name)
    return getattr(_tf.train, name)


def __dir__() -> list[str]:
    return _absent.names_beside(globals(), "train")
