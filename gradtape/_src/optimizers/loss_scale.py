"""`LossScaleOptimizer`: keeps small gradients from vanishing in float16.

The loss is multiplied by a large number before it is differentiated, and the gradients are divided by it
again. The number adapts: it halves when gradients overflow, and that step is skipped; it doubles after
`dynamic_growth_steps` steps without overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gradtape._src import ops
from gradtape._src.base import replicas
from gradtape._src.base.contexts import aside, unrecorded
from gradtape._src.functions.control_flow import cond
from gradtape._src.optimizers import step, summed
from gradtape._src.optimizers.base import Optimizer, _Variables
from gradtape._src.optimizers.serialization import deserialize, serialize
from gradtape._src.state.variable import Variable
from gradtape._src.tensors.conversion import as_tensor
from gradtape._src.tensors.indexed_slices import IndexedSlices


class LossScaleOptimizer:
    """Takes the steps of another optimizer, with a scaled loss.

    Args:
      inner_optimizer: the optimizer that updates the variables.
      initial_scale: the first scale of the loss.
      dynamic_growth_steps: after how many good steps the scale doubles.
      dynamic: whether the scale changes at all.
      name: a name.

    >>> import gradtape as tf
    >>> v = tf.Variable(2.0)
    >>> opt = tf.optimizers.LossScaleOptimizer(tf.optimizers.SGD(0.5), initial_scale=1024.0)
    >>> with tf.GradientTape() as tape:
    ...     loss = opt.scale_loss(v * v)
    >>> _ = opt.apply_gradients([(tape.gradient(loss, v), v)])
    >>> v.numpy()
    np.float32(0.0)
    """

    def __init__(
        self, inner_optimizer: Optimizer, initial_scale: float = 2.0**15, dynamic_growth_steps: int = 2000,
        dynamic: bool = True,
        name: str | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(inner_optimizer, Optimizer):
            raise TypeError(f"LossScaleOptimizer: expected an optimizer; got {inner_optimizer!r}.")
        step.want_scale("initial_scale", initial_scale)
        self.inner_optimizer = inner_optimizer
        self.initial_scale = float(initial_scale)
        self.dynamic_growth_steps = dynamic_growth_steps
        self.dynamic = dynamic
        self.name = name or "loss_scale_optimizer"
        with aside():
            self.dynamic_scale = Variable(np.float32(initial_scale), trainable=False, name="dynamic_scale")
            self.step_counter = Variable(np.int32(0), trainable=False, name="step_counter")
        self._unscaled = False

    def __getattr__(self, name: str) -> Any:
        if name == "inner_optimizer":  # not created yet
            raise AttributeError(name)
        return getattr(self.inner_optimizer, name)

    @property
    def loss_scale(self) -> Any:
        """The current scale of the loss."""
        return self.dynamic_scale

    @property
    def learning_rate(self) -> Any:
        """The learning rate of the inner optimizer."""
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, rate: Any) -> None:
        self.inner_optimizer.learning_rate = rate

    lr = learning_rate

    @property
    def variables(self) -> list[Variable]:
        """The state: scale, number of good steps since it changed, then the state of the inner optimizer."""
        return _Variables([self.dynamic_scale, self.step_counter, *self.inner_optimizer.variables])

    # ---- scaling ---------------------------------------------------------------------------

    def scale_loss(self, loss: Any) -> Any:
        """The loss times the scale."""
        loss = as_tensor(loss)
        return loss * ops.cast(self.dynamic_scale, loss.dtype)

    def get_scaled_loss(self, loss: Any) -> Any:
        """The same as `scale_loss`; for a function, a function that returns the scaled loss."""
        return (lambda: self.scale_loss(loss())) if callable(loss) else self.scale_loss(loss)

    def get_unscaled_gradients(self, grads: Iterable[Any]) -> list[Any]:
        """Gradients of a scaled loss, divided by the scale: `apply_gradients` then takes them as they are."""
        self._unscaled = True
        return self._divided(grads)

    def _divided(self, grads: Iterable[Any]) -> list[Any]:
        scale = self.dynamic_scale._read()
        return [None if g is None else step.mapped(lambda x: x / ops.cast(scale, x.dtype), g) for g in grads]

    # ---- steps -----------------------------------------------------------------------------

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], name: str | None = None, **_: Any
    ) -> Any:
        """Takes one step with the gradients of the scaled loss, or none if they are not finite.

        Returns:
          The variable that counts the steps of the inner optimizer.
        """
        grads, variables = step.unzip(grads_and_vars)
        self.apply(grads, variables)
        return self.inner_optimizer._iterations

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """The same as `apply_gradients`, with two lists."""
        replica = replicas.current()
        if replica is None:
            self._apply_once(grads, trainable_variables)
        else:
            summed.in_replica(
                replica, grads, lambda own: own, lambda sums: self._apply_once(sums, trainable_variables)
            )

    def _apply_once(self, grads: Any, trainable_variables: Any) -> None:
        unscaled, self._unscaled = self._unscaled, False
        inner = self.inner_optimizer
        if trainable_variables is None:
            trainable_variables = inner._known_variables(grads)
        grads, variables = inner._prepare(grads, trainable_variables)  # not inside a branch
        finite = _finite(grads)
        good, bad = self._step(grads, variables, unscaled), self._shrink
        if finite._symbol is None:
            (good if bool(finite) else bad)()
        else:
            cond(finite, good, bad)

    def _step(self, grads: Any, variables: Any, unscaled: bool) -> Callable[[], None]:
        def take() -> None:
            self.inner_optimizer.apply(grads if unscaled else self._divided(grads), variables)
            if self.dynamic:
                count = self.step_counter._read() + 1
                grown = ops.equal(count, self.dynamic_growth_steps)
                scale = self.dynamic_scale._read()
                self.dynamic_scale.assign(ops.select(grown, scale * 2.0, scale))
                self.step_counter.assign(ops.select(grown, 0, count))

        return take

    def _shrink(self) -> None:
        if self.dynamic:
            self.step_counter.assign(0)
            self.dynamic_scale.assign(ops.maximum(self.dynamic_scale._read() * 0.5, 1.0))

    def minimize(
        self, loss: Any, var_list: Any, grad_loss: Any = None, name: str | None = None, tape: Any = None
    ) -> Any:
        """Differentiates the scaled loss and takes one step; see `Optimizer.minimize`."""
        return self.apply_gradients(Optimizer.compute_gradients(self, loss, var_list, grad_loss, tape))  # type: ignore[arg-type]

    # ---- state -----------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """The arguments that recreate this optimizer."""
        return {
            "name": self.name,
            "inner_optimizer": serialize(self.inner_optimizer),
            "initial_scale": self.initial_scale,
            "dynamic_growth_steps": self.dynamic_growth_steps,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> LossScaleOptimizer:
        """An optimizer with this configuration."""
        inner = deserialize(config["inner_optimizer"], custom_objects)
        return cls(inner, **{k: v for k, v in config.items() if k != "inner_optimizer"})


def _finite(grads: Iterable[Any]) -> Any:
    """Whether all elements of all gradients are finite."""
    with unrecorded():
        values = [g.values if isinstance(g, IndexedSlices) else g for g in grads]
        return ops.reduce_all(ops.stack([ops.reduce_all(ops.is_finite(v)) for v in values]))
