"""`tf.train.ExponentialMovingAverage`: averages of variables over the steps of a training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import scopes
from gradtape._src.state.variable import Variable


class ExponentialMovingAverage:
    """Keeps an exponential moving average of each variable: `a -= (1 - decay) * (a - v)`.

    Args:
      decay: the weight of the old average.
      num_updates: the number of steps so far, a number or variable: early averages then decay
        faster, with `min(decay, (1 + n) / (10 + n))`.
      zero_debias: corrects the averages of tensors (not of variables) for their start at zero.
      name: the name of the averages.

    >>> import gradtape as tf
    >>> v = tf.Variable(0.0)
    >>> ema = tf.train.ExponentialMovingAverage(decay=0.75)
    >>> ema.apply([v])
    >>> _ = v.assign(4.0)
    >>> ema.apply([v])
    >>> ema.average(v).numpy()
    np.float32(1.0)
    """

    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._averages: dict[int, tuple[Any, Variable]] = {}  # by id of the variable

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    def _checkpoint_children(self) -> dict[str, Any]:
        return {"averages": [average for _, average in self._averages.values()]}

    def apply(self, var_list: Sequence[Any] | None = None) -> None:
        """Creates the averages of variables, which start with their values, or updates them.

        Raises:
          ValueError: if no variables are given.
          TypeError: if a variable is not of a floating type.
        """
        if var_list is None:
            raise ValueError(
                "ExponentialMovingAverage.apply: var_list is required, since there is no global list of variables; got None."
            )
        variables = list(var_list)
        for v in variables:
            if not isinstance(v, _core.Variable):
                raise TypeError(f"ExponentialMovingAverage: expected variables; got {v!r}.")
            if not v.dtype.is_floating:
                raise TypeError(f"The variables must be half, float, or double: {v.name}")
            if id(v) not in self._averages:
                with scopes.init_scope():
                    name = f"{v.name.removesuffix(':0')}/{self._name}"
                    self._averages[id(v)] = (v, Variable(v._peek(), trainable=False, name=name))
        decay = self._decay
        if self._num_updates is not None:
            n = ops.cast(self._num_updates, "float32")
            decay = ops.minimum(ops.cast(decay, "float32"), (1.0 + n) / (10.0 + n))
        for v in variables:
            average = self._averages[id(v)][1]
            average.assign_sub((average - v) * ops.cast(1.0 - decay, v.dtype))

    def average(self, var: Any) -> Variable | None:
        """The average of a variable; None if it has none."""
        entry = self._averages.get(id(var))
        return None if entry is None else entry[1]

    def average_name(self, var: Any) -> str:
        """The name of the average of a variable."""
        return f"{var.name.removesuffix(':0')}/{self._name}"

    def variables_to_restore(self, moving_avg_variables: Sequence[Any] | None = None) -> dict[str, Any]:
        """The variables that have averages, by the names of the averages."""
        names = {self.average_name(v): v for v, _ in self._averages.values()}
        for v in moving_avg_variables or ():
            names.setdefault(self.average_name(v), v)
        return names
