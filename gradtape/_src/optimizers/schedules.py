"""Learning rates that change with the step: `tf.optimizers.schedules`.

A schedule is called with the number of steps done so far, a number or an integer tensor, and returns the
learning rate. It is plain tensor arithmetic, so optimizers make it part of their program. Rates are computed
in float32 unless the first rate is a tensor of another type.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gradtape._src import ops

__all__ = [
    "CosineDecay", "CosineDecayRestarts", "ExponentialDecay", "InverseTimeDecay", "LearningRateSchedule",
    "PiecewiseConstantDecay", "PolynomialDecay", "deserialize", "serialize",
]  # fmt: skip


class LearningRateSchedule:
    """A learning rate as a function of the step; subclasses write `__call__(self, step)`."""

    # Whether optimizers may compute the rate inside their program: false for user-defined
    # classes, whose Python code must run at every step.
    _traceable = False

    def __call__(self, step: Any) -> Any:
        raise NotImplementedError(
            f"Learning rate schedule '{type(self).__name__}' must override `__call__(self, step)`."
        )

    def get_config(self) -> dict[str, Any]:
        """The constructor arguments that recreate the schedule; a custom schedule must define it."""
        raise NotImplementedError(
            f"Learning rate schedule '{type(self).__name__}' must override `get_config()` in order to "
            "be serializable."
        )

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> LearningRateSchedule:
        """The schedule that `get_config` described."""
        return cls(**config)


class _Schedule(LearningRateSchedule):
    """The base of gradtape's schedules: the arguments are the configuration."""

    def __init__(self, **config: Any) -> None:
        self._config = config
        self.__dict__.update(config)

    if TYPE_CHECKING:  # the arguments are attributes

        def __getattr__(self, name: str) -> Any: ...

    def __init_subclass__(cls) -> None:
        # A subclass of ours outside this file may do anything in its `__call__`.
        cls._traceable = cls.__module__ == __name__

    def get_config(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._config}

    def _start(self, step: Any) -> tuple[Any, Any]:
        """The first rate as a tensor, and the step in its type."""
        first = ops.convert_to_tensor(self.initial_learning_rate)
        if not first.dtype.is_floating:
            first = ops.cast(first, "float32")
        return first, ops.cast(step, first.dtype)


def _want_positive(name: str, value: Any) -> None:
    if value <= 0:
        raise ValueError(f"Argument `{name}` must be > 0. Received: {name}={value}")


class ExponentialDecay(_Schedule):
    """`initial_learning_rate * decay_rate ** (step / decay_steps)`; `staircase` drops the fraction.

    >>> import gradtape as tf
    >>> rate = tf.optimizers.schedules.ExponentialDecay(0.1, decay_steps=10, decay_rate=0.5)
    >>> float(rate(20))
    0.02500000037252903
    """

    def __init__(
        self, initial_learning_rate: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False,
        name: str | None = "ExponentialDecay",
    ) -> None:  # fmt: skip
        _want_positive("decay_steps", decay_steps)
        super().__init__(
            initial_learning_rate=initial_learning_rate, decay_steps=decay_steps, decay_rate=decay_rate,
            staircase=staircase, name=name,
        )  # fmt: skip

    def __call__(self, step: Any) -> Any:
        first, step = self._start(step)
        p = step / self.decay_steps
        return first * self.decay_rate ** (ops.floor(p) if self.staircase else p)


class InverseTimeDecay(_Schedule):
    """`initial_learning_rate / (1 + decay_rate * step / decay_steps)`; `staircase` drops the fraction."""

    def __init__(
        self, initial_learning_rate: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False,
        name: str | None = "InverseTimeDecay",
    ) -> None:  # fmt: skip
        _want_positive("decay_steps", decay_steps)
        super().__init__(
            initial_learning_rate=initial_learning_rate, decay_steps=decay_steps, decay_rate=decay_rate,
            staircase=staircase, name=name,
        )  # fmt: skip

    def __call__(self, step: Any) -> Any:
        first, step = self._start(step)
        p = step / self.decay_steps
        return first / (1 + self.decay_rate * (ops.floor(p) if self.staircase else p))


class PiecewiseConstantDecay(_Schedule):
    """`values[0]` up to and including step `boundaries[0]`, then `values[1]`, and so on.

    Raises:
      ValueError: unless there is one value more than boundaries.
    """

    def __init__(self, boundaries: Any, values: Any, name: str | None = "PiecewiseConstant") -> None:
        if len(boundaries) != len(values) - 1:
            raise ValueError(
                "The length of boundaries should be 1 less than the length of values. "
                f"Received: boundaries={boundaries} of length {len(boundaries)}, "
                f"and values={values} of length {len(values)}."
            )
        super().__init__(boundaries=boundaries, values=values, name=name)

    def __call__(self, step: Any) -> Any:
        step = ops.convert_to_tensor(step)
        rate = ops.convert_to_tensor(self.values[0])
        if not rate.dtype.is_floating:
            rate = ops.cast(rate, "float32")
        for boundary, value in zip(self.boundaries, self.values[1:], strict=True):
            rate = ops.select(step > ops.cast(boundary, step.dtype), ops.cast(value, rate.dtype), rate)
        return rate


class PolynomialDecay(_Schedule):
    """From the first to the last rate along `(1 - step / decay_steps) ** power`.

    With `cycle`, once the end is passed it moves to the next multiple of `decay_steps`.
    """

    def __init__(
        self, initial_learning_rate: Any, decay_steps: Any, end_learning_rate: Any = 0.0001,
        power: float = 1.0,
        cycle: bool = False, name: str | None = "PolynomialDecay",
    ) -> None:  # fmt: skip
        _want_positive("decay_steps", decay_steps)
        super().__init__(
            initial_learning_rate=initial_learning_rate, decay_steps=decay_steps,
            end_learning_rate=end_learning_rate, power=power, cycle=cycle, name=name,
        )  # fmt: skip

    def __call__(self, step: Any) -> Any:
        first, step = self._start(step)
        if self.cycle:
            end = self.decay_steps * ops.maximum(ops.ceil(step / self.decay_steps), 1)
        else:
            end = ops.cast(self.decay_steps, first.dtype)
            step = ops.minimum(step, end)
        return (first - self.end_learning_rate) * (1 - step / end) ** self.power + self.end_learning_rate


class CosineDecay(_Schedule):
    """Half a cosine from the first rate down to `alpha` times it, after an optional warmup.

    With `warmup_target` the rate first grows linearly from `initial_learning_rate` to the target
    over `warmup_steps`, and decays from there (Loshchilov & Hutter 2016, Goyal et al. 2017).
    """

    def __init__(
        self, initial_learning_rate: Any, decay_steps: Any, alpha: float = 0.0,
        name: str | None = "CosineDecay",
        warmup_target: Any = None, warmup_steps: Any = 0,
    ) -> None:  # fmt: skip
        _want_positive("decay_steps", decay_steps)
        super().__init__(
            initial_learning_rate=initial_learning_rate, decay_steps=decay_steps, alpha=alpha, name=name,
            warmup_target=warmup_target, warmup_steps=warmup_steps,
        )  # fmt: skip

    def __call__(self, step: Any) -> Any:
        first, step = self._start(step)
        if self.warmup_target is None:
            return self._decayed(first, step)
        target, warm = ops.cast(self.warmup_target, first.dtype), self.warmup_steps
        decayed = self._decayed(target, step - warm)
        if not warm:
            return decayed
        return ops.select(step < warm, first + (target - first) * (step / warm), decayed)

    def _decayed(self, top: Any, step: Any) -> Any:
        p = ops.minimum(step, self.decay_steps) / self.decay_steps
        return top * ((1 - self.alpha) * (0.5 * (1 + ops.cos(math.pi * p))) + self.alpha)


class CosineDecayRestarts(_Schedule):
    """Cosine decay that starts again and again (SGDR, Loshchilov & Hutter 2016).

    Period i is `first_decay_steps * t_mul ** i` steps long and starts at
    `initial_learning_rate * m_mul ** i`.
    """

    def __init__(
        self, initial_learning_rate: Any, first_decay_steps: Any, t_mul: float = 2.0, m_mul: float = 1.0,
        alpha: float = 0.0, name: str | None = "SGDRDecay",
    ) -> None:  # fmt: skip
        _want_positive("first_decay_steps", first_decay_steps)
        super().__init__(
            initial_learning_rate=initial_learning_rate, first_decay_steps=first_decay_steps, t_mul=t_mul,
            m_mul=m_mul, alpha=alpha, name=name,
        )  # fmt: skip

    def __call__(self, step: Any) -> Any:
        first, step = self._start(step)
        p, t = step / self.first_decay_steps, float(self.t_mul)
        if t == 1:
            i = ops.floor(p)
            p = p - i
        else:
            # The periods are a geometric series: i restarts have taken (1 - t**i) / (1 - t) of the first.
            i = ops.floor(ops.log(1 - p * (1 - t)) / math.log(t))
            p = (p - (1 - t**i) / (1 - t)) / t**i
        cosine = 0.5 * float(self.m_mul) ** i * (1 + ops.cos(math.pi * p))
        return first * ((1 - self.alpha) * cosine + self.alpha)


# ---- as text ---------------------------------------------------------------------------------


def serialize(learning_rate_schedule: LearningRateSchedule) -> dict[str, Any]:
    """A dictionary from which `deserialize` recreates the schedule."""
    return {
        "module": "keras.optimizers.schedules", "class_name": type(learning_rate_schedule).__name__,
        "config": learning_rate_schedule.get_config(), "registered_name": None,
    }  # fmt: skip


def deserialize(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> LearningRateSchedule:
    """The schedule that a dictionary describes.

    Raises:
      ValueError: if there is no schedule of that name.
    """
    name = config["class_name"]
    cls = (custom_objects or {}).get(name) or (globals().get(name) if name in __all__ else None)
    if cls is None:
        raise ValueError(
            f"Unknown decay: '{name}'. Expected one of {__all__[:-2]}, or an entry of `custom_objects`."
        )
    return cls.from_config(dict(config["config"]))
