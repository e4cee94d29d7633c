"""Variables of a strategy with several replicas.

A *mirrored* variable has one value, which all replicas read, since copies could drift apart. Values that replicas
assign are first combined, according to its `aggregation`, and assigned once. With `synchronization=ON_READ` each
replica has a separate value; between replicas, the variable reads as their sum, their mean, or the first of them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import replicas
from gradtape._src.base.contexts import aside, unrecorded
from gradtape._src.control import collective, replicated
from gradtape._src.graph.trace import Trace
from gradtape._src.state import scatters
from gradtape._src.state.variable import (
    ResourceVariable,
    Variable,
    VariableAggregation,
    VariableSynchronization,
    rebuild,
)
from gradtape._src.tensors.indexed_slices import IndexedSlices
from gradtape.distribute import reductions
from gradtape.distribute.reductions import ReduceOp

if TYPE_CHECKING:
    from gradtape.distribute.strategy import Strategy

NONE, SUM, MEAN, FIRST = (
    VariableAggregation.NONE, VariableAggregation.SUM, VariableAggregation.MEAN,
    VariableAggregation.ONLY_FIRST_REPLICA,
)  # fmt: skip


_settling = _core.Setting(False)


def creator(strategy: Strategy) -> Callable:
    """The variable creator that a strategy's scope adds to `tf.variable_creator_scope`."""

    def create(next_creator: Callable, **kwargs: Any) -> Any:
        context = replicas.current()
        if context is None or context.strategy is not strategy or context._run is None:
            return adopt(strategy, next_creator(**kwargs))
        name = kwargs.get("name") or "Variable"
        return context._meet(
            f"the making of variable {name!r}",
            kwargs,
            lambda given: [_made_once(strategy, next_creator, given)] * len(given),
            apart=True,
        )

    return create


def _made_once(strategy: Strategy, next_creator: Callable, given: Sequence[dict]) -> Any:
    """The single variable of all replicas; its initial value is that of replica 0."""
    with strategy._entered(None):
        return adopt(strategy, next_creator(**given[0]))


def adopt(strategy: Strategy, variable: Any) -> Any:
    """Registers a variable with the strategy."""
    variable._distribute_strategy = strategy
    if not strategy._mirrors or variable.__class__ is not ResourceVariable:
        return variable
    if strategy.num_replicas_in_sync == 1:
        variable.__class__ = DistributedVariable
        return variable
    if strategy._group.size > 1:
        with aside():
            variable._set(collective.broadcast(strategy._group, [variable._peek()])[0])
    if variable.synchronization is VariableSynchronization.ON_READ:
        return _with_copies(variable, SyncOnReadVariable)
    if _settling.now() and not variable.trainable and variable.aggregation is NONE:
        return _with_copies(variable, SettledVariable)
    variable.__class__ = MirroredVariable
    return variable


def settling() -> _core.Scope:
    """A scope: non-trainable variables created in it without an aggregation are settled after each run."""
    return _settling.to(True)


def _with_copies(variable: Any, kind: type[SyncOnReadVariable]) -> Any:
    variable.__class__ = kind
    variable._make_copies()
    return variable


class DistributedVariable(ResourceVariable):
    """A variable of a strategy with several replicas."""

    _distribute_strategy: Any

    @property
    def distribute_strategy(self) -> Any:
        """The strategy in whose scope it was made."""
        return self._distribute_strategy

    @property
    def values(self) -> tuple[Any, ...]:
        """The variables of the replicas of this process: only this one, if it has one value for all of them."""
        return (self,) * self._distribute_strategy._local_devices

    _values = values

    @property
    def _primary(self) -> Any:
        return self.values[0]

    def _replica(self) -> Any:
        """The context of the running replica, if it belongs to this strategy."""
        context = replicas.current()
        return context if context is not None and context.strategy is self._distribute_strategy else None

    def _copy(self) -> Variable:
        copied = rebuild(Variable, self._peek(), *self._state())
        return adopt(self._distribute_strategy, copied)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild, (Variable, self._peek(), *self._state())


class MirroredVariable(DistributedVariable):
    """One value for all replicas; values assigned by replicas are aggregated."""

    def _together(self, method: str, value: Any, apply: Callable[[Any], Any]) -> MirroredVariable:
        """Calls `apply` once, with the aggregated value of all replicas."""
        context = self._replica()
        if context is None:
            apply(value)
            return self
        value = scatters.tensor_of(value, self.dtype._code)
        if context._is_apart:
            apply(self._aggregated_apart(method, value, context))
            return self

        def fulfil(given: list) -> list:
            with context.strategy._entered(None), unrecorded():
                apply(self._aggregated(method, given))
            return [None] * len(given)

        context._meet(f"{method} of variable {self.name!r}", value, fulfil)
        return self

    def _aggregated(self, method: str, given: Sequence[Any]) -> Any:
        group, how = self._distribute_strategy._group, self.aggregation
        if how in (SUM, MEAN):
            return reductions.reduced(ReduceOp.from_variable_aggregation(how), [given], group)[0]
        if how is FIRST:
            return collective.broadcast(group, [given[0]])[0] if group.size > 1 else given[0]
        self._distribute_strategy._unsettled = True
        return reductions.vouched(
            reductions.one_of(given, self._differing(method)), group, self._differing(method)
        )

    def _aggregated_apart(self, method: str, value: Any, context: Any) -> Any:
        """The same in the graph of one replica, which meets the others when it runs."""
        group, how = context.strategy._replica_group, self.aggregation
        if how in (SUM, MEAN):
            return collective.all_reduce(group, [value], mean=how is MEAN)[0]
        if how is NONE and group is context.strategy._axis:
            return replicated.same(group, value, self._differing(method))
        first = collective.broadcast(group, [value])[0]
        if how is NONE:
            reductions.want_same(first, value, context._replica_id, self._differing(method))
        return first

    def _differing(self, method: str) -> str:
        return (
            f"{method}: replicas give variable {self.name!r} different values, and it has no aggregation"
            f"; expected one value, or tf.Variable(..., aggregation=tf.VariableAggregation.MEAN), SUM or "
            f"ONLY_FIRST_REPLICA"
        )

    def assign(
        self, value: Any, use_locking: bool | None = None, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Replaces the value; in a replica, together with the others."""
        done = self._together("assign", value, super().assign)
        return done if read_value else None

    def assign_add(
        self, delta: Any, use_locking: bool | None = None, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds to the value; in a replica, the values of all are aggregated and added once."""
        done = self._together("assign_add", delta, super().assign_add)
        return done if read_value else None

    def assign_sub(
        self, delta: Any, use_locking: bool | None = None, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts from the value; see `assign_add`."""
        done = self._together("assign_sub", delta, super().assign_sub)
        return done if read_value else None

    def _scattered(self, mode: int, delta: Any, method: str) -> Any:
        context = self._replica()
        if context is None or not isinstance(delta, IndexedSlices):
            return super()._scattered(mode, delta, method)
        self._want_scatter(mode, method)
        scatter = super()._scattered

        def fulfil(given: list) -> list:
            with context.strategy._entered(None), unrecorded():
                scatter(mode, self._aggregated(method, given), method)
            return [None] * len(given)

        context._meet(f"{method} of variable {self.name!r}", delta, fulfil)
        return self

    def _scatter_nd(self, mode: int, indices: Any, updates: Any) -> Any:
        context = self._replica()
        if context is None:
            return super()._scatter_nd(mode, indices, updates)
        self._want_scatter(scatters.UPDATE, "scatter_nd")
        scatter = super()._scatter_nd

        def fulfil(given: list) -> list:
            what = self._differing("scatter_nd")
            with context.strategy._entered(None), unrecorded():
                if self.aggregation is not FIRST:
                    reductions.one_of([i for i, _ in given], what)
                    reductions.one_of([u for _, u in given], what)
                scatter(mode, *given[0])
            return [None] * len(given)

        given = scatters.indices_of(indices), scatters.tensor_of(updates, self.dtype._code)
        context._meet(f"scatter_nd of variable {self.name!r}", given, fulfil)
        return self

    def _want_scatter(self, mode: int, method: str) -> None:
        if self.aggregation in (SUM, MEAN) and mode not in (scatters.ADD, scatters.SUB):
            raise NotImplementedError(
                f"{method}: the updates of replicas cannot be added up for variable {self.name!r}, whose aggregation is "
                f"{self.aggregation.name}. Hint: assign, or tf.VariableAggregation.ONLY_FIRST_REPLICA."
            )


def _plain_trace() -> Any:
    """The current trace, if it may outlive the present values of variables."""
    trace = _core.current_trace()
    return trace if isinstance(trace, Trace) and not trace.records else None


class SyncOnReadVariable(DistributedVariable):
    """A separate value in each replica; between replicas it reads as their sum, mean, or the first one.

    The variable itself holds the value that is read: `load_replica` sets it to the current replica's value, `keep`
    stores that value again, and `settle` sets it to the value that is read between replicas.
    """

    _copies: list[Variable]

    @property
    def values(self) -> tuple[Any, ...]:
        """The variables of the replicas of this process."""
        return tuple(self._copies)

    _values = values

    def _make_copies(self) -> None:
        n = self._distribute_strategy._local_devices
        with aside():
            self._copies = [
                rebuild(Variable, self._share(self._peek()), f"{self._shared_name}/replica_{r}:0", False, None,
                              None, self.synchronization, self.aggregation)
                for r in range(n)
            ]  # fmt: skip
        on_read = self._distribute_strategy._on_read
        on_read.pop(id(self), None)  # keys of deleted variables; the order is that of creation
        on_read[id(self)] = weakref.ref(self)

    def _share(self, value: Any) -> Any:
        """The value of each replica, such that the value between replicas is `value`."""
        if self.aggregation is not SUM:
            return value
        n = self._distribute_strategy.num_replicas_in_sync
        return (
            ops.cast(value / n, self.dtype) if self.dtype.is_floating or self.dtype.is_complex else value // n
        )

    def held(self) -> Any:
        """The state of the variable between replicas, for `put_back`."""
        trace = _plain_trace()
        return (
            self._peek() if trace is None else (trace.state._values.get(id(self)), id(self) in trace.assigned)
        )

    def put_back(self, state: Any) -> None:
        """Restores this state: no replica has changed the value."""
        trace = _plain_trace()
        if trace is None:
            self._set(state)
            return
        value, assigned = state
        trace.state._values.pop(id(self), None)
        if value is not None:
            trace.state._values[id(self)] = value
        if not assigned:
            trace.assigned.pop(id(self), None)

    def load_replica(self, r: int) -> Any:
        """Sets the variable to the value of a replica; returns the argument for `keep`."""
        trace = _plain_trace()
        if trace is None:
            self._set(self._copies[r]._read())
        else:
            trace.state[id(self)] = self._copies[r]._read()
        return self._mark()

    def keep(self, r: int, mark: Any) -> bool:
        """Stores the value of a replica; returns whether it has changed."""
        if mark is not None and self._mark() is mark:
            return False
        self._copies[r]._set(self._read())
        return True

    def _mark(self) -> Any:
        """An object that changes with every assignment; None in a recording, which does not tell."""
        trace = _core.current_trace()
        if trace is None:
            return self._peek()
        return trace.state._values.get(id(self)) if isinstance(trace, Trace) and not trace.records else None

    @property
    def how(self) -> VariableAggregation:
        """How the value between replicas is computed: SUM, MEAN, or the first value."""
        return self.aggregation

    def aggregate(self) -> Any:
        """This process's part of the value that is read between replicas; see `Strategy._bring_together`."""
        parts = [c._read() for c in self._copies]
        return ops.add_n(parts) if self.how in (SUM, MEAN) else parts[0]

    def settle(self, value: Any) -> None:
        """Sets the variable to the value that is read between replicas."""
        self._set(value)

    def assign(
        self, value: Any, use_locking: bool | None = None, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Replaces the value of the running replica; between replicas, of all, such that their sum is `value`."""
        super().assign(value)
        if self._replica() is None:
            with unrecorded():
                share = self._share(self._read())
                for c in self._copies:
                    c._set(share)
        return self if read_value else None

    def assign_add(
        self, delta: Any, use_locking: bool | None = None, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds to the value of the running replica; an error between replicas if the aggregation is a sum."""
        self._want_replica("assign_add")
        if self._replica() is None:
            return self.assign(
                self._read() + scatters.tensor_of(delta, self.dtype._code), read_value=read_value
            )
        super().assign_add(delta)
        return self if read_value else None

    def assign_sub(
        self, delta: Any, use_locking: bool | None = None, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts from the value of the running replica; see `assign_add`."""
        self._want_replica("assign_sub")
        if self._replica() is None:
            return self.assign(
                self._read() - scatters.tensor_of(delta, self.dtype._code), read_value=read_value
            )
        super().assign_sub(delta)
        return self if read_value else None

    def _want_replica(self, method: str) -> None:
        if self.aggregation is SUM and self._replica() is None:
            raise ValueError(
                f"SyncOnReadVariable does not support `{method}` in cross-replica context when aggregation is set to "
                f"`tf.VariableAggregation.SUM`: got variable {self.name!r}. Hint: assign, or {method} in a replica."
            )

    def _combine(self, mode: int, indices: Any, updates: Any, rows: bool) -> None:
        if self._replica() is None:
            raise NotImplementedError(
                f"scatter: variable {self.name!r} has a value in each replica; expected a call in a replica. Hint: assign."
            )
        super()._combine(mode, indices, updates, rows)


class SettledVariable(SyncOnReadVariable):
    """A separate value in each replica during a run, and one for all of them afterwards.

    For the state of Keras layers besides weights. Floats (moving averages) become the mean of the replicas' values;
    integers (seeds) must be equal on all of them. So replicas need not meet in the middle of a model.
    """

    @property
    def how(self) -> VariableAggregation:
        return MEAN if self.dtype.is_floating or self.dtype.is_complex else NONE

    def aggregate(self) -> Any:
        if self.how is MEAN:
            return super().aggregate()
        what = f"strategy.run: replicas leave different values in variable {self.name!r}; expected one"
        return reductions.one_of([c._read() for c in self._copies], what)

    def settle(self, value: Any) -> None:
        self._set(value)
        for c in self._copies:
            c._set(value)
