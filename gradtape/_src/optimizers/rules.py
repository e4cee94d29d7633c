"""The rules: what each optimizer does with one gradient.

A rule reads like its paper. `update(v, g, slots, lr, step)` gets the value of a variable, its gradient (of
the same type), the slots (tensors kept for the variable from step to step), the learning rate, and the number
of this step (1, 2, ...). It returns the new value, and sets new slots as attributes. `slots(v)` returns the
initial values of the slots by name. Everything else (clipping, decay, averages, sparse gradients, ...) is in
`base` and `step`.

All constructors also take the arguments of `Optimizer`, by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from gradtape._src.ops import (
    cast,
    clip,
    expand_dims,
    maximum,
    minimum,
    reduce_mean,
    select,
    sign,
    sqrt,
    square,
    sum_squares,
    zeros,
)
from gradtape._src.optimizers.base import Optimizer

if TYPE_CHECKING:
    from gradtape._src.optimizers.base import Common, CommonButDecay


class SGD(Optimizer):
    """Gradient descent, with momentum (Polyak 1964) or Nesterov's momentum (Sutskever et al. 2013).

    >>> import gradtape as tf
    >>> v = tf.Variable(1.0)
    >>> tf.optimizers.SGD(0.1).apply_gradients([(tf.constant(2.0), v)]).numpy()
    np.int64(1)
    >>> v.numpy()
    np.float32(0.8)
    """

    def __init__(
        self,
        learning_rate: Any = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(learning_rate, **common)
        if not isinstance(momentum, (int, float)) or not 0 <= momentum <= 1:
            raise ValueError(f"`momentum` must be a float between [0, 1]. Received: momentum={momentum}")
        self.momentum = momentum
        self.nesterov = nesterov

    @property
    def touches_rows_only(self) -> bool:
        return not self.momentum

    def slots(self, v: Any) -> dict[str, Any]:
        return {"momentum": 0} if self.momentum else {}

    def update(self, v: Any, g: Any, slots: Any, lr: Any, step: Any) -> Any:
        if not self.momentum:
            return v - lr * g
        slots.momentum = self.momentum * slots.momentum - lr * g
        return v + (self.momentum * slots.momentum - lr * g if self.nesterov else slots.momentum)


class Adam(Optimizer):
    """Adam (Kingma & Ba 2014); `amsgrad` keeps the largest second moment (Reddi et al. 2018).

    `epsilon` is the "epsilon hat" of the paper's section 2.1, as in TensorFlow.
    """

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7,
        amsgrad: bool = False, **common: Unpack[Common],
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, **common)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.amsgrad = amsgrad

    def slots(self, v: Any) -> dict[str, Any]:
        return {"momentum": 0, "velocity": 0, **({"velocity_hat": 0} if self.amsgrad else {})}

    def update(self, v: Any, g: Any, slots: Any, lr: Any, step: Any) -> Any:
        alpha = lr * sqrt(1 - self.beta_2**step) / (1 - self.beta_1**step)
        slots.momentum += (g - slots.momentum) * (1 - self.beta_1)
        slots.velocity += (square(g) - slots.velocity) * (1 - self.beta_2)
        second = slots.velocity
        if self.amsgrad:
            second = slots.velocity_hat = maximum(slots.velocity_hat, second)
        return v - alpha * slots.momentum / (sqrt(second) + self.epsilon)


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019)."""

    def __init__(
        self, learning_rate: Any = 0.001, weight_decay: float = 0.004, beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7, amsgrad: bool = False, **common: Unpack[CommonButDecay],
    ) -> None:  # fmt: skip
        if weight_decay is None:
            raise ValueError("Argument `weight_decay` must be a float. Received: weight_decay=None")
        super().__init__(learning_rate, beta_1, beta_2, epsilon, amsgrad, weight_decay=weight_decay, **common)


class RMSprop(Optimizer):
    """RMSprop (Hinton 2012); `centered` divides by the standard deviation instead of the root mean square."""

    def __init__(
        self, learning_rate: Any = 0.001, rho: float = 0.9, momentum: float = 0.0, epsilon: float = 1e-7,
        centered: bool = False, **common: Unpack[Common],
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, **common)
        self.rho = rho
        self.momentum = momentum
        self.epsilon = epsilon
        self.centered = centered

    def slots(self, v: Any) -> dict[str, Any]:
        names = {"velocity": True, "momentum": self.momentum > 0, "average_gradient": self.centered}
        return {name: 0 for name, used in names.items() if used}

    def update(self, v: Any, g: Any, slots: Any, lr: Any, step: Any) -> Any:
        slots.velocity = self.rho * slots.velocity + (1 - self.rho) * square(g)
        variance = slots.velocity
        if self.centered:
            slots.average_gradient = self.rho * slots.average_gradient + (1 - self.rho) * g
            variance = variance - square(slots.average_gradient)
        change = lr * g / sqrt(variance + self.epsilon)
        if self.momentum > 0:
            change = slots.momentum = self.momentum * slots.momentum + change
        return v - change


class Adagrad(Optimizer):
    """Adagrad (Duchi et al. 2011)."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(learning_rate, **common)
        self.initial_accumulator_value = initial_accumulator_value
        self.epsilon = epsilon

    @property
    def touches_rows_only(self) -> bool:
        return True

    def slots(self, v: Any) -> dict[str, Any]:
        return {"accumulator": self.initial_accumulator_value}

    def update(self, v: Any, g: Any, slots: Any, lr: Any, step: Any) -> Any:
        slots.accumulator += square(g)
        return v - lr * g / sqrt(slots.accumulator + self.epsilon)


class Adadelta(Optimizer):
    """Adadelta (Zeiler 2012)."""

    def __init__(
        self, learning_rate: Any = 0.001, rho: float = 0.95, epsilon: float = 1e-7, **common: Unpack[Common]
    ) -> None:
        super().__init__(learning_rate, **common)
        self.rho = rho
        self.epsilon = epsilon

    def slots(self, v: Any) -> dict[str, Any]:
        return {"accumulated_grad": 0, "accumulated_delta_var": 0}

    def update(self, v: Any, g: Any, slots: Any, lr: Any, step: Any) -> Any:
        slots.accumulated_grad = self.rho * slots.accumulated_grad + (1 - self.rho) * square(g)
        change = (
            sqrt(slots.accumulated_delta_var + self.epsilon) / sqrt(slots.accumulated_grad + self.epsilon) * g
        )
        slots.accumulated_delta_var = self.rho * slots.accumulated_delta_var + (1 - self.rho) * square(change)
        return v - lr * change


class Adamax(Optimizer):
    """Adamax: Adam with the maximum norm (Kingma & Ba 2014, section 7.1)."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(learning_rate, **common)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon

    def slots(self, v: Any) -> dict[str, Any]:
        return {"momentum": 0, "norm": 0}

    def update(self, v: Any, g: Any, slots: Any, lr: Any, step: Any) -> Any:
        slots.momentum += (g - slots.momentum) * (1 - self.beta_1)
        slots.norm = maximum(self.beta_2 * slots.norm, abs(g))
        return v - lr / (1 - self.beta_1**step) * slots.momentum / (slots.norm + self.epsilon)


class Nadam(Optimizer):
    """Adam with Nesterov's momentum (Dozat 2015)."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(learning_rate, **common)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon

    def slots(self, v: Any) -> dict[str, Any]:
        return {"momentum": 0, "velocity": 0}

    def scalars(self) -> dict[str, float]:
        return {"u_product": 1.0}

    def _u(self, step: Any) -> Any:
        """The momentum of a step, which warms up towards beta_1."""
        return self.beta_1 * (1 - 0.5 * 0.96**step)

    def begin(self, scalars: Any, step: Any) -> None:
        scalars.u_product *= self._u(step)

    def update(self, v: Any, g: Any, slots: Any, lr: Any, step: Any) -> Any:
        # Rounded to the type of the variable first, so that 1 - beta is the same number everywhere.
        beta_1, beta_2 = cast(self.beta_1, v.dtype), cast(self.beta_2, v.dtype)
        u, u_next = self._u(step), self._u(step + 1)
        slots.momentum += (g - slots.momentum) * (1 - beta_1)
        slots.velocity += (square(g) - slots.velocity) * (1 - beta_2)
        first = u_next / (1 - slots.u_product * u_next) * slots.momentum + (1 - u) / (1 - slots.u_product) * g
        second = slots.velocity / (1 - beta_2**step)
        return v - lr * first / (sqrt(second) + self.epsilon)


class Ftrl(Optimizer):
    """Follow the regularized leader (McMahan et al. 2013), with shrinkage."""

    def __init__(
        self, learning_rate: Any = 0.001, learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0, l2_regularization_strength: float = 0.0,
        l2_shrinkage_regularization_strength: float = 0.0, beta: float = 0.0, **common: Unpack[Common],
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, **common)
        self.initial_accumulator_value = initial_accumulator_value
        self.l1_regularization_strength = l1_regularization_strength
        self.l2_regularization_strength = l2_regularization_strength
        self.l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength
        for name in (
            "initial_accumulator_value", "l1_regularization_strength", "l2_regularization_strength",
            "l2_shrinkage_regularization_strength",
        ):  # fmt: skip
            if getattr(self, name) < 0:
                raise ValueError(
                    f"`{name}` needs to be positive or zero. Received: {name}={getattr(self, name)}."
                )
        if learning_rate_power > 0:
            raise ValueError(
                "`learning_rate_power` needs to be negative or zero. Received: "
                f"learning_rate_power={learning_rate_power}."
            )
        self.learning_rate_power = learning_rate_power
        self.beta = beta

    def slots(self, v: Any) -> dict[str, Any]:
        return {"accumulator": self.initial_accumulator_value, "linear": 0}

    def update(self, v: Any, g: Any, slots: Any, lr: Any, step: Any) -> Any:
        l1, l2 = self.l1_regularization_strength, self.l2_regularization_strength + self.beta / (2 * lr)
        before = slots.accumulator**-self.learning_rate_power
        slots.accumulator += square(g)
        after = slots.accumulator**-self.learning_rate_power
        shrunk = g + 2 * self.l2_shrinkage_regularization_strength * v
        slots.linear += shrunk - (after - before) / lr * v
        return (clip(slots.linear, -l1, l1) - slots.linear) / (after / lr + 2 * l2)


class Lion(Optimizer):
    """Lion: the sign of an interpolated momentum (Chen et al. 2023)."""

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.99, **common: Unpack[Common]
    ) -> None:
        super().__init__(learning_rate, **common)
        if not 0 < beta_1 <= 1:
            raise ValueError(
                "Argument `beta_1` must be in the [0, 1] range. Otherwise, the optimizer degenerates to "
                "SignSGD. "
                f"Received: beta_1={beta_1}."
            )
        self.beta_1 = beta_1
        self.beta_2 = beta_2

    def slots(self, v: Any) -> dict[str, Any]:
        return {"momentum": 0}

    def update(self, v: Any, g: Any, slots: Any, lr: Any, step: Any) -> Any:
        direction = sign(self.beta_1 * slots.momentum + (1 - self.beta_1) * g)
        slots.momentum = self.beta_2 * slots.momentum + (1 - self.beta_2) * g
        return v - lr * direction


class Lamb(Optimizer):
    """Lamb: Adam's direction with the length of the weights (You et al. 2019)."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(learning_rate, **common)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon

    def slots(self, v: Any) -> dict[str, Any]:
        return {"momentum": 0, "velocity": 0}

    def update(self, v: Any, g: Any, slots: Any, lr: Any, step: Any) -> Any:
        slots.momentum += (g - slots.momentum) * (1 - self.beta_1)
        slots.velocity += (square(g) - slots.velocity) * (1 - self.beta_2)
        first = slots.momentum / (1 - self.beta_1**step)
        second = slots.velocity / (1 - self.beta_2**step)
        direction = first / (sqrt(second) + self.epsilon)
        weights, length = sqrt(sum_squares(v)), sqrt(sum_squares(direction))
        ratio = select(weights > 0, select(length > 0, weights / length, 1.0), 1.0)
        return v - ratio * lr * direction


class Adafactor(Optimizer):
    """Adafactor: second moments of matrices as an outer product (Shazeer & Stern 2018).

    Matrices (the last two axes of a variable) keep the means of their rows and columns only.
    """

    def __init__(
        self, learning_rate: Any = 0.001, beta_2_decay: float = -0.8, epsilon_1: float = 1e-30,
        epsilon_2: float = 1e-3,
        clip_threshold: float = 1.0, relative_step: bool = True, **common: Unpack[Common],
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, **common)
        self.beta_2_decay = beta_2_decay
        self.epsilon_1 = epsilon_1
        self.epsilon_2 = epsilon_2
        self.clip_threshold = clip_threshold
        self.relative_step = relative_step

    def slots(self, v: Any) -> dict[str, Any]:
        shape = tuple(v.shape)
        if len(shape) < 2:
            return {"velocity": 0}
        return {"r": zeros(shape[:-1], v.dtype), "c": zeros((*shape[:-2], shape[-1]), v.dtype)}

    def update(self, v: Any, g: Any, slots: Any, lr: Any, step: Any) -> Any:
        beta = 1 - step**self.beta_2_decay
        g2 = square(g) + self.epsilon_1
        if len(v.shape) < 2:
            second = slots.velocity = beta * slots.velocity + (1 - beta) * g2
        else:
            slots.r = beta * slots.r + (1 - beta) * reduce_mean(g2, -1)
            slots.c = beta * slots.c + (1 - beta) * reduce_mean(g2, -2)
            second = expand_dims(slots.r / reduce_mean(slots.r, -1, True), -1) * expand_dims(slots.c, -2)
        direction = g / sqrt(second)
        direction = direction / maximum(1.0, _rms(direction) / self.clip_threshold)
        alpha = maximum(self.epsilon_2, _rms(v)) * minimum(lr, 1 / sqrt(step))
        return v - alpha * direction


def _rms(x: Any) -> Any:
    return sqrt(reduce_mean(square(x)))
