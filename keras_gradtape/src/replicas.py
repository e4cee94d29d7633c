"""Keras in the replicas of a strategy: its variables, its settings, its losses, and how a batch becomes parts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from keras.src.backend.common import global_state

import gradtape as tf
from gradtape.backend import between_replicas, carriers, cut, settling

DistributedValues = tf.distribute.DistributedValues
_AGGREGATION = {
    "none": tf.VariableAggregation.NONE, "sum": tf.VariableAggregation.SUM, "mean": tf.VariableAggregation.MEAN,
    "only_first_replica": tf.VariableAggregation.ONLY_FIRST_REPLICA,
}  # fmt: skip
_SYNCHRONIZATION = {
    "none": tf.VariableSynchronization.NONE, "on_read": tf.VariableSynchronization.ON_READ,
    "on_write": tf.VariableSynchronization.ON_WRITE, "auto": tf.VariableSynchronization.AUTO,
}  # fmt: skip


def in_strategy(variable: Any, value: Any) -> Any:
    """The value of a Keras variable created in the scope of a strategy, or in one of its replicas."""
    # State of layers besides weights is settled after each run; state of optimizers is only changed by them,
    # between replicas.
    layers = (
        getattr(variable, "_is_of_layer", False)
        or global_state.get_global_attribute("adds_weight")
        or not tf.as_dtype(variable._dtype).is_floating
    )
    # The first replica that reaches a layer builds it; the others find it built.
    with between_replicas(), settling() if layers else contextlib.nullcontext():
        return tf.Variable(
            value,
            dtype=variable._dtype,
            trainable=variable.trainable,
            name=variable.name,
            aggregation=_AGGREGATION[variable.aggregation or "none"],
            synchronization=_SYNCHRONIZATION[variable.synchronization or "auto"],
        )


def _state() -> Callable[[], contextlib.AbstractContextManager]:
    """Keras' thread state: scopes, policies, calls in progress. Replicas start with a copy of it."""
    state = dict(vars(global_state.GLOBAL_STATE_TRACKER))

    @contextlib.contextmanager
    def enter() -> Iterator[None]:
        own = vars(global_state.GLOBAL_STATE_TRACKER)
        # Lists are stacks of scopes, of which each replica gets a copy.
        own.update({name: list(x) if type(x) is list else x for name, x in state.items()})
        yield

    return enter


carriers.append(_state)


# ---- losses ---------------------------------------------------------------------------------------


def many() -> bool:
    """Whether the strategy has several replicas."""
    return tf.distribute.get_strategy().num_replicas_in_sync > 1


def scale_loss_for_distribution(value: Any) -> Any:
    """The share of one replica in the mean of a loss over all replicas: steps add gradients up."""
    n = tf.distribute.get_strategy().num_replicas_in_sync
    return value if n == 1 else value * (1.0 / n)


def unscale_loss_for_distribution(value: Any) -> Any:
    """The inverse: the loss of one replica for display."""
    n = tf.distribute.get_strategy().num_replicas_in_sync
    return value if n == 1 else value * float(n)


# ---- steps ----------------------------------------------------------------------------------------


def in_replicas(strategy: Any, step: Callable, reduction: str) -> Callable:
    """A step of all replicas, from one that each of them runs on its part of a batch: see `parts_of`.

    Args:
      reduction: "mean" of the replicas' results, or "concat".
    """

    def mean(x: Any) -> Any:
        if not isinstance(x, DistributedValues):
            return x
        return tf.reduce_mean(tf.stack(x.values), axis=0)

    def concat(x: Any) -> Any:
        return tf.concat(x.values, axis=0) if isinstance(x, DistributedValues) else x

    def whole(data: Any) -> Any:
        outputs = strategy.run(step, args=(data,))
        return tf.nest.map_structure(mean if reduction == "mean" else concat, outputs)

    return whole


def whole_batch(data: Any) -> Any:
    """A batch with the parts of the first replica in place of those of all: as an example of its shapes."""
    return tf.nest.map_structure(lambda x: x.values[0] if isinstance(x, DistributedValues) else x, data)


def gathered(strategy: Any, outputs: Any) -> Any:
    """The predictions of all processes, in row order; not part of a graph, because parts may be uneven."""
    return outputs if strategy._group.size == 1 else strategy.gather(outputs, axis=0)


def parts_of(strategy: Any, data: Any) -> Any:
    """A batch cut into parts, unless it comes from a distributed dataset. Not in a graph, which may serve all sizes."""
    if any(isinstance(x, DistributedValues) for x in tf.nest.flatten(data)):
        return data
    return cut(strategy, tf.nest.map_structure(lambda x: x if x is None else tf.convert_to_tensor(x), data))
