"""Strategies with one replica: the program runs as it would without them, in one process, on the CPU.

A strategy for several devices is accepted and has one replica, as TensorFlow's have on a machine
with one device. One that would need other machines is refused.
"""

from __future__ import annotations

import contextlib
import enum
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import nest
from gradtape._src.state.variable import VariableAggregation
from gradtape._src.tensors import conversion
from gradtape._src.tensors.tensor import _DEVICE

_log = logging.getLogger("gradtape")


class ReduceOp(enum.Enum):
    """How the values of replicas become one."""

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation: VariableAggregation) -> ReduceOp:
        """The same as for variables."""
        known = {VariableAggregation.SUM: ReduceOp.SUM, VariableAggregation.MEAN: ReduceOp.MEAN}
        if aggregation not in known:
            raise ValueError(
                f"Could not convert from `tf.VariableAggregation` {aggregation} to`tf.distribute.ReduceOp`"
            )
        return known[aggregation]


def as_reduce_op(value: Any) -> ReduceOp:
    """A ReduceOp from itself or its name."""
    return value if isinstance(value, ReduceOp) else ReduceOp(str(value).upper())


# ---- where a program is ---------------------------------------------------------------------------


_place = _core.Setting(None)  # (strategy, replica context or None)


class _Program(threading.local):
    """The strategy that a thread has set for good."""

    strategy: Strategy | None = None


_program = _Program()


def _where() -> tuple[Strategy, ReplicaContext | None]:
    now = _place.now()
    if now is not None:
        return now
    if _program.strategy is not None:
        return _program.strategy, None
    return _default, ReplicaContext(_default)


class ReplicaContext:
    """What code that runs in a replica may ask: `tf.distribute.get_replica_context()`."""

    def __init__(self, strategy: Strategy, replica_id_in_sync_group: int = 0) -> None:
        self._strategy = strategy
        self._replica_id = replica_id_in_sync_group
        self._scopes: list[_core.Scope] = []

    @property
    def strategy(self) -> Strategy:
        """The strategy."""
        return self._strategy

    @property
    def replica_id_in_sync_group(self) -> Any:
        """The number of the replica: 0."""
        return conversion.convert(self._replica_id)

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas: 1."""
        return self._strategy.num_replicas_in_sync

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices of this replica."""
        return (_DEVICE,)

    def all_reduce(self, reduce_op: Any, value: Any, options: Any = None) -> Any:
        """The sum or mean over the one replica: `value` itself."""
        as_reduce_op(reduce_op)
        return nest.map_structure(ops.identity, value)

    def all_gather(self, value: Any, axis: int, options: Any = None) -> Any:
        """The values of all replicas in a row: `value` itself."""
        return nest.map_structure(ops.identity, value)

    def merge_call(self, merge_fn: Callable, args: tuple = (), kwargs: dict | None = None) -> Any:
        """`merge_fn(strategy, *args)`, outside of the replica."""
        with self._strategy._entered(None):
            return merge_fn(self._strategy, *args, **(kwargs or {}))

    def __enter__(self) -> ReplicaContext:
        self._scopes.append(_place.to((self._strategy, self)))
        self._scopes[-1].__enter__()
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self._scopes.pop().__exit__(*exc_info)


class InputContext:
    """What a function that makes a dataset is told."""

    def __init__(
        self, num_input_pipelines: int = 1, input_pipeline_id: int = 0, num_replicas_in_sync: int = 1
    ) -> None:
        self.num_input_pipelines = num_input_pipelines
        self.input_pipeline_id = input_pipeline_id
        self.num_replicas_in_sync = num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """The part of a batch that one replica gets."""
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(
                f"The `global_batch_size` {global_batch_size} is not divisible by `num_replicas_in_sync` "
                f"{self.num_replicas_in_sync} "
            )
        return global_batch_size // self.num_replicas_in_sync

    def __str__(self) -> str:
        return (
            f"tf.distribute.InputContext(input pipeline id {self.input_pipeline_id}, "
            f"total: {self.num_input_pipelines})"
        )


class ValueContext:
    """What a function that makes the value of a replica is told."""

    def __init__(self, replica_id_in_sync_group: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.replica_id_in_sync_group = replica_id_in_sync_group
        self.num_replicas_in_sync = num_replicas_in_sync


# ---- strategies -----------------------------------------------------------------------------------


class StrategyExtended:
    """What libraries ask of a strategy: `strategy.extended`."""

    def __init__(self, container_strategy: Strategy) -> None:
        self._strategy = container_strategy

    worker_devices = parameter_devices = (_DEVICE,)
    should_checkpoint = should_save_summary = True
    experimental_require_static_shapes = False

    def update(
        self, var: Any, fn: Callable, args: tuple = (), kwargs: dict | None = None, group: bool = True
    ) -> Any:
        """`fn(var, *args)`."""
        return fn(var, *args, **(kwargs or {}))

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any = None, options: Any = None) -> Any:
        """The sum or mean over the one replica: `value` itself."""
        as_reduce_op(reduce_op)
        return value

    def batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any, options: Any = None) -> list:
        """As `reduce_to`, for pairs of a value and its destination."""
        as_reduce_op(reduce_op)
        return [value for value, _ in value_destination_pairs]

    def broadcast_to(self, tensor: Any, destinations: Any = None) -> Any:
        """The tensor itself."""
        return tensor

    def call_for_each_replica(self, fn: Callable, args: tuple = (), kwargs: dict | None = None) -> Any:
        """As `Strategy.run`."""
        return self._strategy.run(fn, args, kwargs)

    def colocate_vars_with(self, colocate_with_variable: Any) -> Any:
        """A context that changes nothing."""
        return contextlib.nullcontext()

    def variable_created_in_scope(self, v: Any) -> bool:
        """True: every variable is on the one device."""
        return True

    def value_container(self, value: Any) -> Any:
        """The value itself."""
        return value

    def non_slot_devices(self, var_list: Any) -> tuple[str, ...]:
        """The device."""
        return (_DEVICE,)


class Strategy:
    """A strategy with one replica; the base of all of them.

    >>> import gradtape as tf
    >>> strategy = tf.distribute.MirroredStrategy()
    >>> with strategy.scope():
    ...     v = tf.Variable(2.0)
    >>> per_replica = strategy.run(lambda x: x * v, args=(tf.constant(3.0),))
    >>> strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica, axis=None).numpy()
    np.float32(6.0)
    """

    def __init__(self, extended: Any = None) -> None:
        self._extended = extended if extended is not None else StrategyExtended(self)

    @property
    def extended(self) -> Any:
        """What libraries ask of it."""
        return self._extended

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas: 1."""
        return 1

    cluster_resolver: Any = None

    @contextlib.contextmanager
    def _entered(self, replica: ReplicaContext | None) -> Iterator[Strategy]:
        with _place.to((self, replica)):
            yield self

    def scope(self) -> Any:
        """Makes it the strategy of the code inside `with`.

        Raises:
          RuntimeError: if another strategy is.
        """
        if has_strategy() and get_strategy() is not self:
            raise RuntimeError(
                f"Mixing different tf.distribute.Strategy objects: {get_strategy()} is not {self}"
            )
        return self._entered(None)

    def run(self, fn: Callable, args: tuple = (), kwargs: dict | None = None, options: Any = None) -> Any:
        """Calls `fn` in the one replica."""
        with self._entered(ReplicaContext(self)):
            return fn(*args, **(kwargs or {}))

    experimental_run_v2 = run

    def reduce(self, reduce_op: Any, value: Any, axis: int | None) -> Any:
        """The sum or mean over replicas, and over an axis of the value unless that is None."""
        op = as_reduce_op(reduce_op)
        if axis is None:
            return nest.map_structure(ops.convert_to_tensor, value)
        over = ops.reduce_sum if op is ReduceOp.SUM else ops.reduce_mean
        return nest.map_structure(lambda x: over(x, axis=axis), value)

    def gather(self, value: Any, axis: int) -> Any:
        """The values of all replicas in a row: `value` itself."""
        return nest.map_structure(ops.convert_to_tensor, value)

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """The values of the replicas of this process, a tuple of one."""
        return (value,)

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """The dataset itself: one replica takes all of it."""
        return dataset

    def distribute_datasets_from_function(self, dataset_fn: Callable, options: Any = None) -> Any:
        """The dataset that `dataset_fn(InputContext())` makes."""
        return dataset_fn(InputContext())

    experimental_distribute_datasets_from_function = distribute_datasets_from_function

    def experimental_distribute_values_from_function(self, value_fn: Callable) -> Any:
        """The value that `value_fn(ValueContext())` makes."""
        return value_fn(ValueContext())

    def experimental_make_numpy_dataset(self, numpy_input: Any) -> Any:
        """A dataset of the rows of arrays."""
        from gradtape.data import Dataset  # type: ignore[import-not-found, unused-ignore]

        return Dataset.from_tensor_slices(numpy_input)

    def update_config_proto(self, config_proto: Any) -> Any:
        """The configuration, unchanged."""
        return config_proto


class _DefaultStrategy(Strategy):
    """What a program has that opened none."""


_default = _DefaultStrategy()


class MirroredStrategy(Strategy):
    """One replica, however many devices are named; variables are not copied."""

    def __init__(self, devices: Any = None, cross_device_ops: Any = None) -> None:
        super().__init__()
        self._devices = devices
        if devices is not None and len(list(devices)) > 1:
            _log.warning(
                "MirroredStrategy: %d devices are named; there is one replica, on the CPU.",
                len(list(devices)),
            )


class OneDeviceStrategy(Strategy):
    """One replica."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = device


class CentralStorageStrategy(Strategy):
    """One replica."""

    def __init__(self, compute_devices: Any = None, parameter_device: Any = None) -> None:
        super().__init__()


# ---- questions ------------------------------------------------------------------------------------


def get_strategy() -> Strategy:
    """The strategy whose scope is open; a default one with one replica if none is."""
    return _where()[0]


def has_strategy() -> bool:
    """Whether the scope of a strategy is open."""
    return get_strategy() is not _default


def get_replica_context() -> ReplicaContext | None:
    """The context of the replica that runs; None between replicas, in the scope of a strategy."""
    return _where()[1]


def in_cross_replica_context() -> bool:
    """Whether code runs in the scope of a strategy, but not in a replica."""
    return get_replica_context() is None


def experimental_set_strategy(strategy: Strategy | None) -> None:
    """Opens the scope of a strategy for the rest of the program; None closes it."""
    if _place.now() is not None:
        raise RuntimeError("Must not be called inside a `tf.distribute.Strategy` scope.")
    _program.strategy = strategy
