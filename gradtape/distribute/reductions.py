"""Combines the values of replicas: sums and means, concatenation, and comparison.

Every reduction is done first over the replicas of this process, and then over the processes of a *group*. This is
the only module that uses groups; `OneProcess` is the group of a single process.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.control import collective
from gradtape._src.graph.effects import deferred
from gradtape._src.state.variable import VariableAggregation
from gradtape._src.tensors.conversion import as_tensor, densify
from gradtape._src.tensors.indexed_slices import IndexedSlices


class ReduceOp(enum.Enum):
    """How the values of replicas are combined."""

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation: VariableAggregation) -> ReduceOp:
        """The ReduceOp for a variable's aggregation."""
        ops = {VariableAggregation.SUM: ReduceOp.SUM, VariableAggregation.MEAN: ReduceOp.MEAN}
        if aggregation not in ops:
            raise ValueError(
                f"Could not convert from `tf.VariableAggregation` {aggregation} to`tf.distribute.ReduceOp`"
            )
        return ops[aggregation]


def as_reduce_op(value: Any) -> ReduceOp:
    """A ReduceOp, which may be given by its name."""
    return value if isinstance(value, ReduceOp) else ReduceOp(str(value).upper())


class OneProcess:
    """The group of a single process; see `control/collective.py` for groups."""

    rank = 0
    size = 1


_MOST_NODES = 200  # limit on the nodes compared while tracing; beyond it, values are compared at run time


def leaf(value: Any) -> Any:
    """A value that can be reduced: a tensor, or an IndexedSlices."""
    return value if isinstance(value, IndexedSlices) else as_tensor(value)


def words(value: Any) -> str:
    """A tensor in words: `float32[2,3]`. Rows of an IndexedSlices may differ between replicas."""
    shape = value.shape if isinstance(value, IndexedSlices) else value._dims
    return f"{value.dtype.name}[{','.join(map(str, shape))}]"


def reduced(op: ReduceOp, columns: Sequence[Sequence[Any]], group: Any) -> list:
    """The sum or mean of each column, one value per replica of this process; over all processes of the group."""
    count = group.size * len(columns[0]) if columns else 1
    local = [_local_sum(column) for column in columns]
    if group.size > 1 and _core.current_trace() is not None:
        # In a graph the row counts of other replicas are unknown, and sizes are fixed.
        local = [densify(x) for x in local]
    dense = [i for i, x in enumerate(local) if not isinstance(x, IndexedSlices)]
    if group.size > 1:
        for i, x in zip(dense, collective.all_reduce(group, [local[i] for i in dense]), strict=True):
            local[i] = x
        for i, x in enumerate(local):
            if isinstance(x, IndexedSlices):
                rows, indices = collective.all_gather(group, [x.values, x.indices], 0)
                local[i] = IndexedSlices(rows, indices, x._dense_shape)
    return local if op is ReduceOp.SUM else [_divided(x, count) for x in local]


def _local_sum(values: Sequence[Any]) -> Any:
    if len(values) == 1:
        return values[0]
    if not any(isinstance(x, IndexedSlices) for x in values):
        _want_one_shape(values)
        return ops.add_n(list(values))
    if not all(isinstance(x, IndexedSlices) for x in values):
        return ops.add_n([ops.convert_to_tensor(x) for x in values])
    rows = ops.concat([x.values for x in values], 0)
    return IndexedSlices(rows, ops.concat([x.indices for x in values], 0), values[0]._dense_shape)


def _want_one_shape(values: Sequence[Any]) -> None:
    first = values[0]
    for r, x in enumerate(values):
        if not x.shape.is_compatible_with(first.shape) or x.dtype != first.dtype:
            raise InvalidArgumentError(
                None,
                None,
                f"reduce: replicas give tensors of different kinds; expected {words(first)}, as in replica 0; got "
                f"{words(x)} in replica {r}. Hint: gather, or reduce over axis=0, where parts may have different sizes.",
            )


def _divided(x: Any, count: int) -> Any:
    if isinstance(x, IndexedSlices):
        return IndexedSlices(x.values / count, x.indices, x._dense_shape)
    return x / count


def gathered(values: Sequence[Any], axis: int, group: Any) -> Any:
    """The tensors of all replicas, concatenated."""
    local = values[0] if len(values) == 1 else ops.concat(list(values), axis)
    if group.size == 1:
        return local
    return collective.all_gather(group, [local], axis % len(local.shape))[0]


def starts(values: Sequence[Any], axis: int, group: Any) -> list[int]:
    """The offset of the tensor of each replica of this process in `gathered`."""
    sizes = [int(x.shape[axis]) for x in values]
    first = 0
    if group.size > 1:
        if _core.current_trace() is not None or any(x._symbol is not None for x in values):
            first = group.rank * sum(sizes)  # a graph has fixed sizes, equal in all processes
        else:
            every = collective.all_gather(group, [ops.constant([sum(sizes)])], 0)[0]
            first = int(np.sum(np.asarray(every)[: group.rank]))
    return [first + sum(sizes[:r]) for r in range(len(sizes))]


# ---- one value that all replicas share --------------------------------------------------------------


def one_of(values: Sequence[Any], what: str) -> Any:
    """The value that all replicas share: compared at run time, unless they are the same object.

    Raises:
      ValueError: if they differ; `what` is the message.
    """
    first = values[0]
    for r, x in enumerate(values[1:], 1):
        if not _is_same(first, x):
            want_same(first, x, r, what)
    return first


def _is_same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, IndexedSlices) and isinstance(b, IndexedSlices):
        return _is_same(a.values, b.values) and _is_same(a.indices, b.indices)
    if not (isinstance(a, _core.Tensor) and isinstance(b, _core.Tensor)):
        return False
    return (
        a._symbol is not None
        and b._symbol is not None
        and _is_computed_alike(a._symbol, b._symbol, [_MOST_NODES])
    )


def _is_computed_alike(a: Any, b: Any, left: list[int]) -> bool:
    """Whether two values of a graph are equal because they are computed in the same way from the same values."""
    if a is b:
        return True
    left[0] -= 1
    if left[0] < 0 or a.node is None or b.node is None:
        return False
    same = a.node.op is b.node.op and a.node.attrs == b.node.attrs
    if not same or getattr(a.node.op, "effect", False) or len(a.node.operands) != len(b.node.operands):
        return False
    if a.node.results.index(a) != b.node.results.index(b):
        return False
    return all(_is_computed_alike(x, y, left) for x, y in zip(a.node.operands, b.node.operands, strict=True))


@deferred
def want_same(first: Any, other: Any, replica: int, what: str) -> None:
    """Raises ValueError unless two replicas have equal values."""
    a, b = (np.asarray(ops.convert_to_tensor(x)) for x in (first, other))
    same = a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))
    if not same:
        raise ValueError(f"{what}; got {_shown(a)} in replica 0 and {_shown(b)} in replica {replica}.")


def _shown(x: np.ndarray) -> str:
    return str(x.tolist()) if x.size <= 4 else f"{np.array2string(x, threshold=4, edgeitems=2)}"


# ---- values that processes compute independently -------------------------------------------------------


def vouched(value: Any, group: Any, what: str) -> Any:
    """A value that every process computes, and that must be equal in all of them: they compare checksums."""
    if group.size > 1:
        for x in (value.values, value.indices) if isinstance(value, IndexedSlices) else (value,):
            _vouch(x, group, what)
    return value


def settle(group: Any) -> None:
    """Checks that processes have vouched for the same values, with the next exchange if there has been none since.

    Raises:
      ValueError: if they differ.
    """
    if group.size > 1:
        _settle(group)


def _vouch_now(value: Any, group: Any, what: str) -> None:
    group.vouch(value, what)


def _settle_now(group: Any) -> None:
    group.settle()


_vouch, _settle = deferred(_vouch_now, always=True), deferred(_settle_now, always=True)
