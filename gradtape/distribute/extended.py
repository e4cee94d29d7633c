"""`strategy.extended`: the interface of a strategy for libraries."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradtape._src.base import nest
from gradtape._src.tensors.tensor import _DEVICE
from gradtape.distribute import contexts, reductions
from gradtape.distribute.reductions import as_reduce_op
from gradtape.distribute.values import DistributedValues

if TYPE_CHECKING:
    from gradtape.distribute.strategy import Strategy


class StrategyExtended:
    """The interface of a strategy for libraries: `strategy.extended`."""

    def __init__(self, container_strategy: Strategy) -> None:
        self._strategy = container_strategy

    should_checkpoint = should_save_summary = True
    experimental_require_static_shapes = False
    experimental_between_graph = False
    _global_batch_size = True  # a dataset of Keras 2 has batches for all replicas

    def _in_multi_worker_mode(self) -> bool:
        """Whether there are other processes; packages use this name."""
        return self._strategy._group.size > 1

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The devices of the replicas of this process."""
        return tuple(self._strategy._devices) or (_DEVICE,)

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The devices of variables: those of the replicas."""
        return self.worker_devices

    def update(
        self, var: Any, fn: Callable, args: tuple = (), kwargs: dict | None = None, group: bool = True
    ) -> Any:
        """`fn(var, *args)`, once: a variable has one value for all replicas.

        Raises:
          ValueError: if replicas have different values among the arguments.
        """
        if contexts.get_replica_context() is not None and contexts.has_strategy():
            raise RuntimeError(contexts.CROSS_REPLICA)

        def one(x: Any) -> Any:
            if not isinstance(x, DistributedValues):
                return x
            what = f"extended.update of {getattr(var, 'name', var)!r}: replicas have different values; expected one. "
            return reductions.one_of(x.values, what + "Hint: strategy.extended.reduce_to first")

        with self._strategy._entered(None):
            return fn(
                var, *nest.map_structure(one, tuple(args)), **nest.map_structure(one, dict(kwargs or {}))
            )

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any = None, options: Any = None) -> Any:
        """The sum or mean of a value over replicas."""
        return self._strategy.reduce(reduce_op, value, axis=None)

    def batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any, options: Any = None) -> list:
        """The same as `reduce_to`, for pairs of a value and its destination, in one exchange."""
        op = as_reduce_op(reduce_op)
        return self._strategy._reduced(op, [value for value, _ in value_destination_pairs])

    def broadcast_to(self, tensor: Any, destinations: Any = None) -> Any:
        """The tensor: the replicas of a process share it."""
        return tensor

    def call_for_each_replica(self, fn: Callable, args: tuple = (), kwargs: dict | None = None) -> Any:
        """The same as `Strategy.run`."""
        return self._strategy.run(fn, args, kwargs)

    def colocate_vars_with(self, colocate_with_variable: Any) -> Any:
        """A context without effect."""
        return contextlib.nullcontext()

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether a variable was created in the scope of this strategy; true for the default one."""
        mine = getattr(v, "_distribute_strategy", None)
        return mine is self._strategy or (mine is None and self._strategy is contexts._default[0])

    def value_container(self, value: Any) -> Any:
        """The variable that a value belongs to: the value itself."""
        return value

    def non_slot_devices(self, var_list: Any) -> tuple[str, ...]:
        """The devices."""
        return self.worker_devices
