"""Strategies: replicas of a program on the devices of this process, and of the processes of a group.

A strategy has `_local_replicas`, one for each of its devices, which `replicas.Run` runs, and a `_group` of processes,
through which all reductions go (`reductions`). Together they are `num_replicas_in_sync` replicas.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradtape import _core, config
from gradtape._src import ops
from gradtape._src.autograph.conversion import conv
from gradtape._src.base import nest, settings
from gradtape._src.base.contexts import unrecorded
from gradtape._src.base.locks import Lock
from gradtape._src.base.replicas import place as _place
from gradtape._src.base.scopes import creators
from gradtape._src.control import collective
from gradtape._src.engines import placement
from gradtape._src.functions.function import Function
from gradtape._src.tensors.indexed_slices import IndexedSlices
from gradtape.distribute import contexts, inputs, reductions, spmd, values, variables
from gradtape.distribute.contexts import (
    CROSS_REPLICA,
    InputContext,
    ReplicaContext,
    ValueContext,
    experimental_set_strategy,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from gradtape.distribute.extended import StrategyExtended
from gradtape.distribute.reductions import OneProcess, ReduceOp, as_reduce_op
from gradtape.distribute.replicas import Run
from gradtape.distribute.values import DistributedValues

__all__ = [
    "CentralStorageStrategy", "InputContext", "MirroredStrategy", "OneDeviceStrategy", "ReduceOp", "ReplicaContext",
    "Strategy", "StrategyExtended", "ValueContext", "experimental_set_strategy", "get_replica_context", "get_strategy",
    "has_strategy", "in_cross_replica_context",
]  # fmt: skip


class Strategy:
    """Replicas of a program; the base of all strategies, with one replica unless a subclass names more devices.

    >>> import gradtape as tf
    >>> strategy = tf.distribute.MirroredStrategy()
    >>> with strategy.scope():
    ...     v = tf.Variable(2.0)
    >>> per_replica = strategy.run(lambda x: x * v, args=(tf.constant(3.0),))
    >>> strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica, axis=None).numpy()
    np.float32(6.0)
    """

    def __init__(self, extended: Any = None, devices: Sequence[str] = (), group: Any = None) -> None:
        self._devices = list(devices)
        self._processes: Any = OneProcess() if group is None else group
        self._replicas = contexts.ReplicaGroup(self)
        self._extended = extended if extended is not None else StrategyExtended(self)
        self._on_read: dict[int, Any] = {}  # weak references to variables with a value per replica
        self._creator = variables.creator(self)
        self._unsettled = False  # whether processes have set variables that are not compared yet
        self._lock = Lock()  # one run at a time, since variables hold the values of replicas in turn

    _should_use_with_coordinator = False  # read by Keras 2; there are no parameter servers

    @property
    def extended(self) -> Any:
        """The interface for libraries."""
        return self._extended

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas, in all processes."""
        return self._local_replicas * self._group.size

    @property
    def _axis(self) -> Any:
        """The replicas as a group, while one of them is traced for all; see `spmd`."""
        current = spmd.axis.now()
        return current[1] if current is not None and current[0] is self else None

    @property
    def _group(self) -> Any:
        """The group of processes for reductions; or of the replicas, while one of them represents all."""
        return self._axis or self._processes

    @property
    def _replica_group(self) -> Any:
        """All replicas as a group, for the graph of one of them."""
        return self._axis or self._replicas

    @property
    def _local_replicas(self) -> int:
        """The number of replicas in this process."""
        return 1 if self._axis else self._local_devices

    @property
    def _local_devices(self) -> int:
        """The number of devices of this process, one replica on each."""
        return len(self._devices) or 1

    cluster_resolver: Any = None
    _mirrors = True  # whether it creates strategy variables even with a single replica
    _runner: type[Run] = Run  # runs the replicas of this process

    def _entered(self, replica: ReplicaContext | None) -> _core.Scope:
        """A scope in which code runs in a replica, or between replicas."""
        return _place.to((self, replica))

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Strategy]:
        with _place.to((self, None)), creators.to(self._creator):
            yield self

    def scope(self) -> Any:
        """Makes this the strategy of the code inside `with`: variables created there belong to it.

        Raises:
          RuntimeError: if another strategy's scope is open, or in a replica.
        """
        if has_strategy() and get_strategy() is not self:
            raise RuntimeError(
                f"Mixing different tf.distribute.Strategy objects: {get_strategy()} is not {self}"
            )
        if has_strategy() and get_replica_context() is not None:
            raise RuntimeError(CROSS_REPLICA)
        return self._opened()

    def _want_cross_replica(self) -> None:
        if not has_strategy():
            return
        if get_strategy() is not self:
            raise RuntimeError(
                f"Mixing different tf.distribute.Strategy objects: {get_strategy()} is not {self}"
            )
        if get_replica_context() is not None:
            raise RuntimeError(CROSS_REPLICA)

    def _on_devices(self) -> Any:
        """A scope in which functions run on the strategy's devices, if these are accelerators."""
        if self._devices and "CPU" not in self._devices[0]:
            return placement.device(self._devices[0])
        return contextlib.nullcontext()

    # ---- running --------------------------------------------------------------------------------------

    def run(self, fn: Callable, args: tuple = (), kwargs: dict | None = None, options: Any = None) -> Any:
        """Calls `fn` once in each replica, with its part of distributed arguments; other arguments are passed to all.

        Returns:
          The result of `fn`, in which each tensor is replaced by the tensors of all replicas: a `DistributedValues`
          if this process has several replicas.

        Raises:
          RuntimeError: if it is called in a replica, or replicas request different collective operations.
          ValueError: if replicas return different structures.
        """
        self._want_cross_replica()
        args, kwargs = tuple(args), dict(kwargs or {})
        fn = fn if _core.current_trace() is None else conv(fn)
        # A subclass may add to its scope and rely on it: dm-sonnet's chooses how variables are synchronized.
        scope = self.scope() if type(self).scope is not Strategy.scope else contextlib.nullcontext()
        with self._on_devices(), scope:
            return self._run_there(fn, args, kwargs)

    experimental_run_v2 = run

    def _run_there(self, fn: Callable, args: tuple, kwargs: dict) -> Any:
        if self._local_replicas == 1:
            args, kwargs = values.of_replica((args, kwargs), 0)
            context = ReplicaContext(self, self._group.rank)
            with self._turns() as turns:
                turns(0)
                with self._entered(context), creators.to(self._creator):
                    return _finished(fn(*args, **kwargs))
        if (
            isinstance(fn, Function)
            and _core.current_trace() is None
            and not settings.functions_run_eagerly()
        ):
            # One graph for all replicas, with their collective operations.
            return self._joint(fn)(args, kwargs)
        return self._run(fn, args, kwargs)

    def _joint(self, fn: Function) -> Function:
        joints = fn.__dict__.setdefault("_joints", {})
        if self not in joints:
            joints[self] = Function(
                lambda args, kwargs: self._run(fn, args, kwargs),
                name=fn.name,
                autograph=False,
                reduce_retracing=fn.reduce_retracing,
            )
        return joints[self]

    def _run(self, fn: Callable, args: tuple, kwargs: dict) -> Any:
        n = self._local_replicas
        for x in nest.flatten((args, kwargs)):
            if isinstance(x, DistributedValues) and len(x.values) != n:
                raise ValueError(
                    f"strategy.run: an argument has {len(x.values)} values; expected one for each of {n} replicas."
                )

        engine = spmd.engine_for(self, (args, kwargs))
        if engine is not None:
            try:
                return spmd.run(self, fn, args, kwargs, engine)
            except spmd.Unfit as e:
                spmd.told(self, e)

        def work(r: int) -> Callable[[], Any]:
            def call() -> Any:
                own_args, own_kwargs = values.of_replica((args, kwargs), r)
                context = ReplicaContext(self, self._group.rank * n + r, run, r)
                with self._entered(context), creators.to(self._creator):
                    return _finished(fn(*own_args, **own_kwargs))

            return call

        with self._lock, self._turns() as turns:
            run = self._runner(n, turns)
            results = run([work(r) for r in range(n)])
        return values.together(results, "strategy.run")

    @contextlib.contextmanager
    def _turns(self) -> Iterator[_Turns]:
        """A run; afterwards variables have the values that are read between replicas."""
        turns = _Turns(self)
        try:
            yield turns
            self._bring_together(turns.end())
        except BaseException:
            # The graph of a function that failed is discarded; other processes do not know about the error.
            if _core.current_trace() is None and self._group.size == 1:
                self._bring_together(turns.end())
            raise
        self._settle()

    def _settle(self) -> None:
        """Lets processes compare the values that replicas have assigned without an aggregation."""
        if self._unsettled or _core.current_trace() is None:
            self._unsettled = False
            reductions.settle(self._group)

    def _bring_together(self, changed: set[int]) -> None:
        """Sets variables that are synchronized on read to the value that is read between replicas."""
        if not changed:
            return
        # In the order of creation, which is the same in all processes.
        changed_variables = [v for key, v in self._living() if key in changed]
        with unrecorded():
            totals = [v.aggregate() for v in changed_variables]
            summed = [i for i, v in enumerate(changed_variables) if v.how in (variables.SUM, variables.MEAN)]
            if self._group.size > 1:
                rest = [i for i in range(len(changed_variables)) if i not in summed]
                for places, exchange in ((summed, collective.all_reduce), (rest, collective.broadcast)):
                    for i, x in zip(places, exchange(self._group, [totals[i] for i in places]), strict=True):
                        totals[i] = x
            for v, total in zip(changed_variables, totals, strict=True):
                if v.how is variables.MEAN:
                    total = ops.cast(total / self.num_replicas_in_sync, v.dtype)
                v.settle(total)

    def _living(self) -> list[tuple[int, Any]]:
        """The variables that are synchronized on read, and their keys."""
        return [(key, v) for key, reference in list(self._on_read.items()) if (v := reference()) is not None]

    # ---- values of all replicas -----------------------------------------------------------------------

    def reduce(self, reduce_op: Any, value: Any, axis: int | None) -> Any:
        """The sum or mean over replicas, and over an axis of the value unless that is None.

        With an axis, the mean is over all elements, also if the replicas' parts have different sizes.

        Raises:
          RuntimeError: in a replica. Hint: `all_reduce`.
          ValueError: if a value that is not distributed is to be summed.
        """
        self._want_cross_replica()
        op = as_reduce_op(reduce_op)
        flat = nest.flatten(value)
        if axis is None:
            return nest.pack_sequence_as(value, self._reduced(op, flat))
        axes = tuple(axis) if isinstance(axis, (list, tuple)) else axis
        parts = [[ops.convert_to_tensor(p) for p in self._parts(x)] for x in flat]
        sums = [[ops.reduce_sum(p, axis=axes) for p in column] for column in parts]
        totals = reductions.reduced(ReduceOp.SUM, sums, self._group)
        if op is ReduceOp.MEAN:
            counts = [[_count(p, axes) for p in column] for column in parts]
            counts = reductions.reduced(ReduceOp.SUM, counts, self._group)
            totals = [ops.truediv(t, ops.cast(c, t.dtype)) for t, c in zip(totals, counts, strict=True)]
        return nest.pack_sequence_as(value, totals)

    def _parts(self, value: Any) -> tuple[Any, ...]:
        """The values of the replicas of this process; a plain value is used for each."""
        return value.values if isinstance(value, DistributedValues) else (value,) * self._local_replicas

    def _reduced(self, op: ReduceOp, flat: Sequence[Any]) -> list:
        """The sums or means of values over replicas, in one exchange."""
        if self.num_replicas_in_sync == 1:
            return [x if isinstance(x, IndexedSlices) else ops.convert_to_tensor(x) for x in flat]
        columns, places, out = [], [], list(flat)
        for i, x in enumerate(flat):
            plain = not isinstance(x, (DistributedValues, variables.DistributedVariable))
            if plain and self._local_replicas > 1:
                if op is ReduceOp.SUM and not (type(x) in (int, float) and x == 0):
                    raise ValueError(
                        f"A non-DistributedValues value {x} cannot be reduced with the given reduce op {op}."
                    )
                out[i] = x if isinstance(x, IndexedSlices) else ops.convert_to_tensor(x)
            else:
                columns.append([reductions.leaf(p) for p in self._parts(x)])
                places.append(i)
        for i, x in zip(places, reductions.reduced(op, columns, self._group), strict=True):
            out[i] = x
        return out

    def gather(self, value: Any, axis: int) -> Any:
        """The tensors of all replicas, concatenated along an axis."""
        self._want_cross_replica()

        def one(x: Any) -> Any:
            if not isinstance(x, DistributedValues) and self._group.size == 1:
                return ops.convert_to_tensor(x)
            parts = [ops.convert_to_tensor(p) for p in self._parts(x)]
            return reductions.gathered(parts, axis, self._group)

        return nest.map_structure(one, value)

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """The values of the replicas of this process, as a tuple."""
        if isinstance(value, DistributedValues):
            return value.values
        if nest.is_nested(value) and values.has_parts(value):
            return tuple(values.of_replica(value, r) for r in range(self._local_replicas))
        return (value,)

    unwrap = experimental_local_results

    # ---- data -------------------------------------------------------------------------------------------

    def _input_context(self) -> InputContext:
        return InputContext(self._group.size, self._group.rank, self.num_replicas_in_sync)

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """A dataset whose batches are cut into a part for each replica; the last one may be uneven.

        With several processes, each takes its share of every batch, or of the files: see `tf.data.Options`,
        `experimental_distribute.auto_shard_policy`.
        """
        if self.num_replicas_in_sync == 1:
            return dataset
        return inputs.distributed(self, dataset)

    def distribute_datasets_from_function(self, dataset_fn: Callable, options: Any = None) -> Any:
        """The dataset returned by `dataset_fn(InputContext)`: replicas take its batches in turn."""
        dataset = dataset_fn(self._input_context())
        return dataset if self.num_replicas_in_sync == 1 else inputs.in_turns(self, dataset)

    experimental_distribute_datasets_from_function = distribute_datasets_from_function

    def experimental_distribute_values_from_function(self, value_fn: Callable) -> Any:
        """The values returned by `value_fn(ValueContext)`, one for each replica."""
        n = self._local_replicas
        all_values = [
            value_fn(ValueContext(self._group.rank * n + r, self.num_replicas_in_sync)) for r in range(n)
        ]
        return all_values[0] if n == 1 else values.together(all_values, "value_fn")

    def experimental_make_numpy_dataset(self, numpy_input: Any) -> Any:
        """A dataset of the rows of arrays."""
        return inputs.Dataset.from_tensor_slices(numpy_input)

    def update_config_proto(self, config_proto: Any) -> Any:
        """The configuration, unchanged."""
        return config_proto


class _Turns:
    """Loads the value of the current replica into variables that are synchronized on read."""

    def __init__(self, strategy: Strategy) -> None:
        on_read = strategy._on_read
        for key in [key for key, reference in on_read.items() if reference() is None]:
            del on_read[key]
        self._variables = strategy._living()
        self._held = [v.held() for _, v in self._variables]
        self._changed: set[int] = set()
        self._replica = 0
        self._marks: list[Any] = []
        self._strategy, self._known = strategy, len(on_read)

    def __call__(self, replica: int | None) -> None:
        with unrecorded():
            if replica is None:
                for (key, v), mark in zip(self._variables, self._marks, strict=True):
                    if v.keep(self._replica, mark):
                        self._changed.add(key)
            if len(self._strategy._on_read) != self._known:
                self._add_new(replica)
            self._marks = [] if replica is None else [v.load_replica(replica) for _, v in self._variables]
            self._replica = self._replica if replica is None else replica

    def _add_new(self, replica: int | None) -> None:
        """Adds variables created in this run; in the turn of a replica, they hold its value now."""
        keys = {key for key, _ in self._variables}
        for key, v in self._strategy._living():
            if key not in keys:
                self._variables.append((key, v))
                self._held.append(None)
                self._changed.add(key)
                if replica is None:
                    v.keep(self._replica, None)
        self._known = len(self._strategy._on_read)

    def end(self) -> set[int]:
        """Returns the variables that replicas have changed; restores the others."""
        if self._marks:
            self(None)  # ends the turn of an interrupted replica
        with unrecorded():
            for (key, v), state in zip(self._variables, self._held, strict=True):
                if key not in self._changed:
                    v.put_back(state)
        return self._changed


def _finished(result: Any) -> Any:
    """The result of a replica, unless its code has not run yet."""
    if isinstance(result, (types.GeneratorType, types.CoroutineType)):
        kind = "a generator" if isinstance(result, types.GeneratorType) else "a coroutine"
        raise TypeError(
            f"strategy.run: the function is {kind}, whose code would run outside of the replicas; expected a function that "
            "returns its results."
        )
    return result


def _count(part: Any, axes: Any) -> Any:
    shape = part.shape
    count = 1
    for axis in axes if isinstance(axes, tuple) else (axes,):
        count *= int(shape[axis])
    return ops.constant(count, "int64")


class _DefaultStrategy(Strategy):
    """The strategy of programs that open none."""

    _mirrors = False


contexts._default.append(_DefaultStrategy())


def local_devices(op: str, devices: Any) -> list[str]:
    """The names of devices of this process: the given ones, or all of the best kind.

    Raises:
      ValueError: if there is no such device.
    """
    existing = [d.name for d in config.list_logical_devices()]
    if devices is None:
        return [name for name in existing if "GPU" in name] or [name for name in existing if "CPU" in name]
    names = []
    for device in [devices] if isinstance(devices, str) else list(devices):
        name = getattr(device, "name", device)
        last = str(name).rsplit("/", 1)[-1]
        full = "/device:" + last.removeprefix("device:").upper() if last else ""
        full = full if ":" in full.removeprefix("/device:") else f"{full}:0"
        if full not in existing:
            raise ValueError(
                f"{op}: there is no device {name!r}; expected some of {existing}. Hint: "
                "tf.config.set_logical_device_configuration(tf.config.list_physical_devices('CPU')[0], "
                "[tf.config.LogicalDeviceConfiguration()] * n) makes n logical devices of the CPU."
            )
        if full in names:
            raise ValueError(f"{op}: device {name!r} is given twice; expected each device once.")
        names.append(full)
    if not names:
        raise ValueError(f"{op}: there is no device; expected some of {existing}.")
    return names


class MirroredStrategy(Strategy):
    """One replica on each of several devices of this process; each variable has one value for all of them.

    Args:
      devices: their names; by default all GPUs, or else all logical devices of the CPU, of which there is one unless
        `tf.config.set_logical_device_configuration` adds more.
      cross_device_ops: accepted as in TensorFlow, without effect.

    >>> import gradtape as tf
    >>> tf.distribute.MirroredStrategy(["CPU:0"]).num_replicas_in_sync
    1
    """

    def __init__(self, devices: Any = None, cross_device_ops: Any = None) -> None:
        super().__init__(devices=local_devices("MirroredStrategy", devices))


class OneDeviceStrategy(Strategy):
    """One replica, on one device."""

    _mirrors = False

    def __init__(self, device: str) -> None:
        engine = placement.engine_of(device)
        super().__init__(devices=() if engine is None else local_devices("OneDeviceStrategy", device))
        self._device = device


class CentralStorageStrategy(Strategy):
    """The same as MirroredStrategy: a variable has one value for all replicas anyway."""

    def __init__(self, compute_devices: Any = None, parameter_device: Any = None) -> None:
        super().__init__(devices=local_devices("CentralStorageStrategy", compute_devices))
