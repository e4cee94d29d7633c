"""The context of running code: in a strategy's scope, in a replica, or between replicas; and what replicas may call."""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.autograph.conversion import conv
from gradtape._src.base import nest
from gradtape._src.base.contexts import unrecorded
from gradtape._src.base.replicas import NeedsOthers
from gradtape._src.base.replicas import place as _place
from gradtape._src.base.scopes import creators
from gradtape._src.control import collective
from gradtape._src.tensors import conversion
from gradtape._src.tensors.indexed_slices import IndexedSlices
from gradtape._src.tensors.tensor import _DEVICE
from gradtape.distribute import reductions, values
from gradtape.distribute.reductions import ReduceOp, as_reduce_op
from gradtape.distribute.replicas import Run, Wish

if TYPE_CHECKING:
    from gradtape.distribute.strategy import Strategy

# TensorFlow's words.
CROSS_REPLICA = "Method requires being in cross-replica context, use get_replica_context().merge_call()"


class _Program(threading.local):
    """The strategy that a thread has set permanently."""

    strategy: Strategy | None = None
    creator: _core.Scope | None = None  # of its variables


_program = _Program()
_default: list[Strategy] = []  # the strategy of programs that open none


def _where() -> tuple[Strategy, ReplicaContext | None]:
    place = _place.now()
    if place is not None:
        return place
    if _program.strategy is not None:
        return _program.strategy, None
    return _default[0], ReplicaContext(_default[0])


class ReplicaContext:
    """The interface of a strategy for code in a replica: `tf.distribute.get_replica_context()`.

    Args:
      strategy: the strategy.
      replica_id_in_sync_group: the number of the replica among all replicas of all processes.
      run: the call of `Strategy.run` that the replica is part of, if there are several replicas in this process.
      number: the index of the replica among those of this process.
    """

    def __init__(
        self, strategy: Strategy, replica_id_in_sync_group: int = 0, run: Run | None = None, number: int = 0
    ) -> None:
        self._strategy = strategy
        self._replica_id = replica_id_in_sync_group
        self._run, self._number = run, number
        self._scopes: list[_core.Scope] = []

    @property
    def strategy(self) -> Strategy:
        """The strategy."""
        return self._strategy

    @property
    def replica_id_in_sync_group(self) -> Any:
        """The number of the replica, a tensor: 0, 1, ..."""
        return conversion.as_tensor(self._replica_id)

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas."""
        return self._strategy.num_replicas_in_sync

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices of this replica."""
        devices = self._strategy.extended.worker_devices
        return (devices[self._number] if self._number < len(devices) else _DEVICE,)

    @property
    def variant(self) -> tuple:
        """The key that separates traces of functions: a graph contains the number of its replica."""
        return self._strategy, self._replica_id

    # ---- collective operations -----------------------------------------------------------------------

    def _meet(self, what: str, value: Any, fulfil: Callable[[list], list], apart: bool = False) -> Any:
        """This replica's result of `fulfil`, which is called once, between replicas, with the values of all of them."""
        if self._run is None:
            with self._strategy._entered(None):
                return fulfil([value])[0]
        if not apart:
            self._want_own_trace(what)
        return self._run.meet(self._number, Wish(what, value, fulfil, apart))

    def _want_own_trace(self, what: str) -> None:
        assert self._run is not None
        if _core.current_trace() is not self._run.trace:
            raise NeedsOthers(
                f"{what}: a replica cannot run collective operations in a loop, tf.map_fn and the like, nor in tf.cond "
                "under a tape, because another replica may take another branch. Hint: move the loop or condition outside "
                "of strategy.run, or compute both branches and choose with tf.where."
            )

    @property
    def may_branch(self) -> bool:
        """Whether replicas can trace a branch together: in a common graph, which no tape of this replica records."""
        run = self._run
        return run is not None and _core.current_trace() is run.trace and not self._own_tapes()

    def branch(self, choose: Callable, which: Any, functions: Sequence, join: Callable, name: str) -> list:
        """`control.branch(...)` for all replicas, which must take the same branch: `which` is compared at run time."""
        run = self._run
        assert run is not None

        def fulfil(given: list) -> list:
            what = f"{name}: replicas take different branches, one with collective operations; expected the same condition"
            chosen = reductions.one_of([g[0] for g in given], what)
            sizes: list[int] = []

            def way(j: int) -> list:
                outs = run.together([functions[j] for _, functions, _ in given])
                sizes[:] = [len(out) for out in outs]
                return [value for out in outs for value in out]

            def parts(flat: list) -> list[list]:
                starts = [sum(sizes[:r]) for r in range(len(sizes) + 1)]
                return [flat[a:b] for a, b in itertools.pairwise(starts)]

            def joined(results: list) -> list:
                of_replicas = zip(*map(parts, results), strict=True)
                return [x for g, own in zip(given, of_replicas, strict=True) for x in g[2](list(own))]

            ways = [functools.partial(way, j) for j in range(len(functions))]
            with self._strategy._entered(None), creators.to(self._strategy._creator):
                return parts(choose(chosen, ways, joined, name))

        return self._meet(f"{name} with {len(functions)} ways", (which, functions, join), fulfil)

    def _own_tapes(self) -> tuple:
        """The tapes opened in this replica."""
        outer = () if self._run is None else self._run.tapes
        return tuple(t for t in _core.recording_tapes() if not any(t is o for o in outer))

    @property
    def _is_apart(self) -> bool:
        """Whether this replica writes a separate graph: of a function that it called, or of a backward pass."""
        trace = _core.current_trace()
        if trace is not None and self._strategy._axis is not None:
            return True  # it represents all replicas
        if self._run is None or trace is None or trace is self._run.trace:
            return False
        outer: Any = trace
        while outer is not None and outer is not self._run.trace:
            outer = getattr(outer, "outer", None)
        return outer is None

    def all_reduce(self, reduce_op: Any, value: Any, options: Any = None) -> Any:
        """The sum or mean over all replicas, on each of them: of a tensor, an IndexedSlices, or a nest of them.

        Gradients flow through it: the gradient of a sum is the sum of the replicas' gradients.
        """
        op = as_reduce_op(reduce_op)
        flat = [reductions.leaf(x) for x in nest.flatten(value)]
        if self.num_replicas_in_sync == 1:
            return nest.pack_sequence_as(value, [_same(x) for x in flat])
        if self._is_apart:
            group = self._strategy._replica_group
            return nest.pack_sequence_as(value, collective.all_reduce(group, flat, op is ReduceOp.MEAN))

        def fulfil(rows: list) -> list:
            columns = list(zip(*rows, strict=True))
            with unrecorded() if self._run is None else contextlib.nullcontext():
                totals = reductions.reduced(op, columns, self._strategy._group)
            return [totals] * len(rows)

        what = f"all_reduce {op.value} of {', '.join(map(reductions.words, flat)) or 'nothing'}"
        totals = self._meet(what, flat, fulfil)
        outs = [
            self._linked(total, x, lambda g: [self.all_reduce(op, g)])
            for total, x in zip(totals, flat, strict=True)
        ]
        return nest.pack_sequence_as(value, outs)

    def all_gather(self, value: Any, axis: int, options: Any = None) -> Any:
        """The tensors of all replicas, concatenated, on each of them; sizes along `axis` may differ."""
        flat = [conversion.as_tensor(x) for x in nest.flatten(value)]
        if any(x.shape.rank == 0 for x in flat):
            raise ValueError(
                "all_gather: scalars cannot be concatenated; expected tensors with an axis. Hint: x[None]."
            )
        if self.num_replicas_in_sync == 1:
            return nest.pack_sequence_as(value, [_same(x) for x in flat])

        if self._is_apart:
            group = self._strategy._replica_group
            joined = [collective.all_gather(group, [x], axis % len(x.shape))[0] for x in flat]
            return nest.pack_sequence_as(value, joined)

        def fulfil(rows: list) -> list:
            columns, group = list(zip(*rows, strict=True)), self._strategy._group
            with unrecorded() if self._run is None else contextlib.nullcontext():
                joined = [reductions.gathered(column, axis, group) for column in columns]
                starts = [reductions.starts(column, axis, group) for column in columns]
            return [(joined, [s[r] for s in starts]) for r in range(len(rows))]

        what = f"all_gather along axis {axis} of {', '.join(x.dtype.name for x in flat)}"
        joined, starts = self._meet(what, flat, fulfil)

        def rule(x: Any, start: int) -> Callable:
            def own_part(g: Any) -> list:
                whole = self.all_reduce(ReduceOp.SUM, g)
                at = [slice(None)] * (axis % len(x.shape)) + [slice(start, start + x.shape[axis])]
                return [whole[tuple(at)]]

            return own_part

        outs = [
            self._linked(total, x, rule(x, start))
            for total, x, start in zip(joined, flat, starts, strict=True)
        ]
        return nest.pack_sequence_as(value, outs)

    def _linked(self, total: Any, x: Any, rule: Callable) -> Any:
        """`total` for this replica: its own tapes record it as computed from `x`; tapes outside have recorded the
        reduction."""
        outer = () if self._run is None else self._run.tapes
        inner = self._own_tapes()
        if isinstance(total, IndexedSlices):
            return IndexedSlices(total.values, total.indices, total._dense_shape)
        if outer:
            with _core.Scope(recording=False, tapes=outer):
                out = ops.identity(total)
        else:
            out = total._detach()
        if inner and not isinstance(x, IndexedSlices):
            with _core.Scope(recording=False, tapes=inner):
                _core.record((out,), (x,), rule)
        return out

    def merge_call(self, merge_fn: Callable, args: tuple = (), kwargs: dict | None = None) -> Any:
        """`merge_fn(strategy, *args)`, called once, between replicas; its arguments hold the values of all replicas."""
        name = getattr(merge_fn, "__name__", type(merge_fn).__name__)
        merge_fn = merge_fn if _core.current_trace() is None else conv(merge_fn)
        if self._run is None:
            with self._strategy._entered(None):
                return merge_fn(self._strategy, *args, **(kwargs or {}))

        def fulfil(given: list) -> list:
            all_args, all_kwargs = values.together(given, "merge_call")
            with self._strategy._entered(None), creators.to(self._strategy._creator):
                result = merge_fn(self._strategy, *all_args, **all_kwargs)
            return [values.of_replica(result, r) for r in range(len(given))]

        return self._meet(f"merge_call of {name}", (tuple(args), dict(kwargs or {})), fulfil)

    def __enter__(self) -> ReplicaContext:
        self._scopes.append(_place.to((self._strategy, self)))
        self._scopes[-1].__enter__()
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self._scopes.pop().__exit__(*exc_info)


class ReplicaGroup:
    """All replicas of a strategy as a group, with which the graph of one replica exchanges values when it runs."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy

    @property
    def size(self) -> int:
        """The number of replicas."""
        return self._strategy.num_replicas_in_sync

    @property
    def rank(self) -> int:
        """The number of the replica that is running."""
        return self._context("the number of a replica")._replica_id

    def _context(self, what: str) -> ReplicaContext:
        context = get_replica_context()
        if context is None or context.strategy is not self._strategy:
            raise RuntimeError(
                f"{what}: the function was traced in a replica, and has collective operations; expected to run in "
                "strategy.run. Hint: "
                "call the function that was decorated, which is traced for each place that it is called from."
            )
        return context

    def all_reduce(self, tensors: list) -> list:
        """The sums over all replicas."""
        return self._context("all_reduce").all_reduce(ReduceOp.SUM, tensors)

    def all_gather(self, tensors: list) -> list:
        """For each tensor, the tensors of all replicas."""

        def fulfil(rows: list) -> list:
            group, columns = self._strategy._group, [list(c) for c in zip(*rows, strict=True)]
            if group.size > 1:
                columns = [
                    [
                        part
                        for parts in zip(*(group.all_gather([x])[0] for x in c), strict=True)
                        for part in parts
                    ]
                    for c in columns
                ]
            return [columns] * len(rows)

        return self._context("all_gather")._meet(f"all_gather of {len(tensors)} tensors", tensors, fulfil)

    def broadcast(self, tensors: list, root: int = 0) -> list:
        """The tensors of replica `root`."""
        return [column[root] for column in self.all_gather(tensors)]


def _same(x: Any) -> Any:
    return x if isinstance(x, IndexedSlices) else ops.identity(x)


class InputContext:
    """The argument of functions that create datasets."""

    def __init__(
        self, num_input_pipelines: int = 1, input_pipeline_id: int = 0, num_replicas_in_sync: int = 1
    ) -> None:
        self.num_input_pipelines = num_input_pipelines
        self.input_pipeline_id = input_pipeline_id
        self.num_replicas_in_sync = num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """The batch size of one replica."""
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
    """The argument of functions that create the value of a replica."""

    def __init__(self, replica_id_in_sync_group: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.replica_id_in_sync_group = replica_id_in_sync_group
        self.num_replicas_in_sync = num_replicas_in_sync


# ---- the current context--------------------------------------------------------------------------------


def get_strategy() -> Strategy:
    """The strategy whose scope is open; otherwise a default one with one replica."""
    return _where()[0]


def has_strategy() -> bool:
    """Whether the scope of a strategy is open."""
    return get_strategy() is not _default[0]


def get_replica_context() -> ReplicaContext | None:
    """The context of the running replica; None between replicas, in the scope of a strategy."""
    return _where()[1]


def in_cross_replica_context() -> bool:
    """Whether code runs in the scope of a strategy, but not in a replica."""
    return get_replica_context() is None


def experimental_set_strategy(strategy: Strategy | None) -> None:
    """Opens the scope of a strategy for the rest of the program; None closes it."""
    if _place.now() is not None:
        raise RuntimeError("Must not be called inside a `tf.distribute.Strategy` scope.")
    if _program.creator is not None:
        _program.creator.__exit__(None, None, None)
        _program.creator = None
    _program.strategy = strategy
    if strategy is not None:
        _program.creator = creators.to(strategy._creator)
        _program.creator.__enter__()
