"""Exchanges between replicas as ops of a graph: all-reduce, all-gather, broadcast, and their transposes.

A collective is a callback of a program that passes its operands to a *group*: any object with `rank`, `size`,
`all_reduce(tensors)`, `all_gather(tensors)`, `broadcast(tensors, root)`. It may be a group of processes
(`distribute/groups.py`) or the threads of local replicas. The group is looked up when the op runs, not when
it is traced, so one program may serve several replicas.

Every collective is an effectful op: all replicas must run the same ones in the same order. Their gradients are
collectives of the cotangents: the transpose of an all-reduce is an all-reduce, that of a gather is the replica's own
part of the sum, that of a broadcast is the sum at the root. So a step and its exchanges are one program, also for
derivatives of higher order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base.calls import one_call
from gradtape._src.base.contexts import aside
from gradtape._src.base.dtypes import int64
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.control.control_ops import Control, Spec, spec_of
from gradtape._src.graph.ir import symbolic, written_to
from gradtape._src.tensors.conversion import convert, densify, read


class Collective(Control):
    """An exchange of all operands at once; as many results as operands."""

    exchanges = True
    lowering = ""  # the XLA lowering for replicas that are one graph; others communicate on the host

    @property
    def xla(self) -> str:  # type: ignore[override]
        """As in `Callback`."""
        return self.lowering if getattr(self.group, "is_axis", False) else ""

    def __init__(self, name: str, group: Any) -> None:
        super().__init__(name, [], effect=True)
        self.group = group
        self.rule: Callable[..., list] = (
            self._backward
        )  # one object, by which tapes recognise calls that they have seen

    def _exchange(self, *tensors: Any) -> Sequence[Any]:
        raise NotImplementedError

    def _execute(self, *tensors: Any) -> Sequence[Any]:
        # A group may return its own input or another replica's tensor, so each result gets a new tensor for tapes.
        return [t._detach() for t in self._exchange(*tensors)]

    def results(self, operands: Sequence[Any]) -> list[Spec]:
        """Shapes and types of the results."""
        return [spec_of(x) for x in operands]

    def transpose(self, operands: Sequence[Any]) -> Collective:
        """The op that maps cotangents of the results to those of the operands."""
        raise NotImplementedError

    def over_batch(self) -> Collective:
        """The op for operands with one more leading axis."""
        return self

    def apply(self, operands: Sequence[Any]) -> list:
        graph = written_to(operands) or _core.current_trace()
        if graph is None:
            with aside():
                return list(self.run(*operands))
        values = [graph.value_of(x) for x in operands]
        return [symbolic(v) for v in graph.add(self, values, (), self.results(operands))]

    def _recorded(self, operands: list, tracked: tuple[bool, ...]) -> list:
        outputs = self.apply(operands)
        _core.record(tuple(outputs), tuple(operands), self.transpose(operands).rule)
        return outputs

    def _backward(self, *gs: Any) -> list:
        """Gradients by this op, which is a transpose: one exchange of the cotangents that are not None."""
        present = [k for k, g in enumerate(gs) if g is not None and not isinstance(g, int)]
        out = list(gs)
        for k, g in zip(present, self([densify(gs[k]) for k in present]) if present else [], strict=True):
            out[k] = g
        return out

    def batch(self, operands: list, marks: list[bool], size: int) -> list:
        """The results over one more leading axis: one exchange of all rows."""
        rows = [
            x if m else ops.broadcast_to(x, [size, *x.shape]) for x, m in zip(operands, marks, strict=True)
        ]
        return self.over_batch()(rows)


class AllReduce(Collective):
    """The sum over all replicas, on all of them. It is its own transpose."""

    lowering = "collective.all_reduce"

    def __init__(self, group: Any) -> None:
        super().__init__("all_reduce", group)

    def _exchange(self, *tensors: Any) -> Sequence[Any]:
        return self.group.all_reduce(list(tensors))

    def transpose(self, operands: Sequence[Any]) -> Collective:
        return self


class AllGather(Collective):
    """The values of all replicas concatenated along an axis, on all of them."""

    lowering = "collective.all_gather"

    def __init__(self, group: Any, axis: int) -> None:
        super().__init__("all_gather", group)
        self.axis = axis

    def results(self, operands: Sequence[Any]) -> list[Spec]:
        return [(self._gathered(tuple(x.shape)), x.dtype._code) for x in operands]

    def _gathered(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        a = self.axis
        return (*shape[:a], shape[a] * self.group.size, *shape[a + 1 :])

    def apply(self, operands: Sequence[Any]) -> list:
        for x in operands:
            if not -x.ndim <= self.axis < x.ndim or self.axis < 0:
                raise InvalidArgumentError(
                    None, None, f"all_gather: axis {self.axis} is out of range for a tensor of rank {x.ndim}."
                )
        return super().apply(operands)

    def _exchange(self, *tensors: Any) -> Sequence[Any]:
        parts = self.group.all_gather(list(tensors))
        return [ops.concat(list(column), self.axis) for column in parts]

    def transpose(self, operands: Sequence[Any]) -> Collective:
        lengths = tuple(int(x.shape[self.axis]) for x in operands)
        return of(self.group, ReduceScatter, self.axis, lengths)

    def over_batch(self) -> Collective:
        return of(self.group, AllGather, self.axis + 1)


class ReduceScatter(Collective):
    """The sum over all replicas, of which each keeps its own part along an axis: the transpose of `AllGather`.

    Args:
      lengths: the length of the own part of each operand. Other replicas may have parts of other lengths.
    """

    lowering = "collective.reduce_scatter"

    def __init__(self, group: Any, axis: int, lengths: tuple[int, ...]) -> None:
        super().__init__("reduce_scatter", group)
        self.axis, self.lengths = axis, lengths

    def results(self, operands: Sequence[Any]) -> list[Spec]:
        a = self.axis
        return [
            ((*x.shape[:a], n, *x.shape[a + 1 :]), x.dtype._code)
            for x, n in zip(operands, self.lengths, strict=True)
        ]

    def _exchange(self, *tensors: Any) -> Sequence[Any]:
        (lengths,) = self.group.all_gather([convert(list(self.lengths), int64._code)])
        sums = self.group.all_reduce(list(tensors))
        before = sum((row.numpy() for row in lengths[: self.group.rank]), 0 * lengths[0].numpy())
        out = []
        for total, start, n in zip(sums, before.tolist(), self.lengths, strict=True):
            out.append(total[(*[slice(None)] * self.axis, slice(start, start + n))])
        return out

    def _backward(self, *gs: Any) -> list:
        # The lengths are those of all results; results without a cotangent have nothing to send.
        present = [k for k, g in enumerate(gs) if g is not None and not isinstance(g, int)]
        less = of(self.group, ReduceScatter, self.axis, tuple(self.lengths[k] for k in present))
        out = list(gs)
        for k, g in zip(present, less([densify(gs[k]) for k in present]) if present else [], strict=True):
            out[k] = g
        return out

    def transpose(self, operands: Sequence[Any]) -> Collective:
        return of(self.group, AllGather, self.axis)

    def over_batch(self) -> Collective:
        return of(self.group, ReduceScatter, self.axis + 1, self.lengths)


class Broadcast(Collective):
    """The values of one replica, on all of them."""

    lowering = "collective.broadcast"

    def __init__(self, group: Any, root: int) -> None:
        super().__init__("broadcast", group)
        self.root = root

    def _exchange(self, *tensors: Any) -> Sequence[Any]:
        return self.group.broadcast(list(tensors), self.root)

    def transpose(self, operands: Sequence[Any]) -> Collective:
        return of(self.group, ReduceTo, self.root)


class ReduceTo(Collective):
    """The sum over all replicas on one of them, zero on the others: the transpose of `Broadcast`."""

    lowering = "collective.reduce_to"

    def __init__(self, group: Any, root: int) -> None:
        super().__init__("reduce_to", group)
        self.root = root

    def _exchange(self, *tensors: Any) -> Sequence[Any]:
        sums = self.group.all_reduce(list(tensors))
        return sums if self.group.rank == self.root else [ops.zeros_like(x) for x in sums]

    def transpose(self, operands: Sequence[Any]) -> Collective:
        return of(self.group, Broadcast, self.root)


def of(group: Any, kind: type, *attributes: Any) -> Any:
    """The op of a kind over a group: always the same object, so that tapes and programs recognise it."""
    cache = vars(group).setdefault("_collectives", {})
    key = (kind, *attributes)
    op = cache.get(key)
    if op is None:
        op = cache.setdefault(key, kind(group, *attributes))
    return op


# ---- what strategies call -----------------------------------------------------------------------------


def _tensors(values: Sequence[Any]) -> list:
    return [densify(read(v)) for v in values]


@one_call
def all_reduce(group: Any, values: Sequence[Any], mean: bool = False) -> list:
    """The sums, or means, of values over the replicas of a group: one exchange for all of them.

    Args:
      group: see the top of this file.
      values: numeric tensors, of the same shapes and types on all replicas. Sparse gradients become dense.
      mean: divides by the number of replicas.

    Raises:
      UnavailableError, DeadlineExceededError: from groups of processes, if a process is gone or does not answer in time.
    """
    tensors = _tensors(values)
    if not tensors:
        return []
    sums = of(group, AllReduce)(tensors)
    return [_mean(x, group.size) for x in sums] if mean else sums


def _mean(x: Any, n: int) -> Any:
    return x * (1 / n) if x.dtype.is_floating or x.dtype.is_complex else ops.floordiv(x, n)


@one_call
def all_gather(group: Any, values: Sequence[Any], axis: int = 0) -> list:
    """The values of all replicas concatenated along an axis: one exchange for all of them.

    Sizes along `axis` may differ between replicas in eager code; a traced function uses its own size for all replicas.
    """
    tensors = _tensors(values)
    return of(group, AllGather, axis)(tensors) if tensors else []


@one_call
def broadcast(group: Any, values: Sequence[Any], root: int = 0) -> list:
    """The values of replica `root`: one exchange for all of them."""
    tensors = _tensors(values)
    return of(group, Broadcast, root)(tensors) if tensors else []
