"""Datasets of a strategy: batches cut into a part for each replica, also in several processes.

Both classes wrap an ordinary dataset (`parts`) whose elements are tuples of the replicas' parts: functions loop
over it, and iterators and checkpoints work on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradtape._src.base import errors, nest
from gradtape._src.base.type_spec import NoneTensorSpec
from gradtape.data.dataset import Dataset
from gradtape.data.iterator import Optional
from gradtape.data.options import AutoShardPolicy
from gradtape.distribute.parts import Cut, InStep, InTurns, Rebatched, of_files
from gradtape.distribute.values import PerReplicaSpec, together

# ---- creation --------------------------------------------------------------------------------------------


def distributed(strategy: Any, dataset: Any) -> Any:
    """`strategy.experimental_distribute_dataset(dataset)`."""
    if isinstance(dataset, DistributedDataset):
        raise TypeError(
            "experimental_distribute_dataset: the dataset is distributed already; expected a tf.data.Dataset."
        )
    if not isinstance(dataset, Dataset):
        raise TypeError(
            f"experimental_distribute_dataset: expected a tf.data.Dataset; got {type(dataset).__name__}. Hint: "
            "tf.data.Dataset.from_generator, or strategy.experimental_distribute_values_from_function."
        )
    n, total, group = strategy._local_replicas, strategy.num_replicas_in_sync, strategy._group
    policy = dataset.options().experimental_distribute.auto_shard_policy
    if group.size > 1 and policy == AutoShardPolicy.HINT:
        raise errors.UnimplementedError(
            None,
            None,
            "experimental_distribute_dataset: AutoShardPolicy.HINT is not there; expected AUTO, DATA, FILE or OFF. Hint: "
            "strategy.distribute_datasets_from_function, with dataset.shard(context.num_input_pipelines, "
            "context.input_pipeline_id).",
        )
    own = dataset if policy == AutoShardPolicy.OFF else None
    if group.size > 1 and policy in (AutoShardPolicy.FILE, AutoShardPolicy.AUTO):
        own = of_files(dataset, group.size, group.rank)
        if own is None and policy == AutoShardPolicy.FILE:
            raise errors.NotFoundError(
                None,
                None,
                "experimental_distribute_dataset: AutoShardPolicy.FILE needs a dataset that is read from at least as many "
                f"files as there are processes, {group.size}. Hint: AutoShardPolicy.DATA.",
            )
    if group.size > 1 and own is not None:
        # Its own files, or all data, in batches of the size of a replica's part of a full batch.
        batches: Any = Rebatched(own, total)
        batches = batches if n == 1 else InTurns(batches, n)
        batches = batches if policy == AutoShardPolicy.OFF else InStep(batches, group)
        return batches if n == 1 else DistributedDataset(strategy, batches)
    cut = Cut(dataset, total, range(group.rank * n, (group.rank + 1) * n))
    return cut if n == 1 else DistributedDataset(strategy, cut)


def cut(strategy: Any, batch: Any) -> Any:
    """A batch of tensors as values of replicas: this process's share, cut like batches of a dataset."""
    n, rank = strategy._local_replicas, strategy._group.rank
    whole = Cut(None, strategy.num_replicas_in_sync, range(rank * n, (rank + 1) * n))
    parts = whole.parts(batch)
    return parts if n == 1 else _joined(parts)


def in_turns(strategy: Any, dataset: Any) -> Any:
    """The result of `strategy.distribute_datasets_from_function`, from the dataset of this process."""
    if not isinstance(dataset, Dataset):
        raise ValueError(
            "distribute_datasets_from_function: the function must return a tf.data.Dataset; got "
            f"{type(dataset).__name__}."
        )
    n, group = strategy._local_replicas, strategy._group
    parts: Any = dataset if n == 1 else InTurns(dataset, n)
    parts = parts if group.size == 1 else InStep(parts, group)
    return parts if n == 1 else DistributedDataset(strategy, parts)


class DistributedDataset:
    """A dataset whose elements have a part for each replica: see `Strategy.experimental_distribute_dataset`.

    A `tf.function` may loop over it, or take it as an argument.
    """

    def __init__(self, strategy: Any, parts: Any) -> None:
        self._strategy, self._parts = strategy, parts

    @property
    def element_spec(self) -> Any:
        """The spec of the elements: a `PerReplicaSpec` for each tensor."""
        return _joined_spec(self._parts.element_spec)

    @property
    def cardinality(self) -> Any:
        """The number of elements."""
        return self._parts.cardinality()

    def __len__(self) -> int:
        return len(self._parts)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> DistributedIterator:
        return DistributedIterator(iter(self._parts))

    def _for_in_graph(self, go_on: Any, body: Any, *rest: Any) -> None:
        self._parts._for_in_graph(go_on, lambda parts: body(_joined(parts)), *rest)

    def _argument_key(self) -> tuple:
        return ("distributed", self._strategy, *self._parts._argument_key())

    @property
    def _type_spec(self) -> Any:
        return self._parts._type_spec

    def _placeholder(self) -> Any:
        return _DatasetArgument(self._strategy, self._parts._placeholder())


class DistributedIterator:
    """The iterator of a distributed dataset."""

    # A checkpoint saves how many elements were taken.
    _checkpoint_by_serializing = True

    def __init__(self, parts: Any) -> None:
        self._parts = parts

    @property
    def element_spec(self) -> Any:
        """The spec of the elements."""
        return _joined_spec(self._parts.element_spec)

    def __iter__(self) -> DistributedIterator:
        return self

    def __next__(self) -> Any:
        return _joined(next(self._parts))

    def get_next(self, name: str | None = None) -> Any:
        """The next element.

        Raises:
          OutOfRangeError: if there are no more elements.
        """
        return _joined(self._parts.get_next())

    def get_next_as_optional(self) -> Any:
        """The next element if there is one: it has `has_value()` and `get_value()`."""
        optional = self._parts.get_next_as_optional()
        if not bool(optional.has_value()):
            return Optional.empty(self.element_spec)
        return Optional(_joined(optional.get_value()))

    def serialize(self) -> str:
        """The number of elements taken."""
        return self._parts.serialize()

    def deserialize(self, string_value: str) -> None:
        """Continues after as many elements."""
        self._parts.deserialize(string_value)

    def _for_in_graph(self, go_on: Any, body: Any, *rest: Any) -> None:
        self._parts._for_in_graph(go_on, lambda parts: body(_joined(parts)), *rest)

    def _argument_key(self) -> tuple:
        return ("distributed", *self._parts._argument_key())

    @property
    def _type_spec(self) -> Any:
        return self._parts._type_spec

    def _placeholder(self) -> Any:
        return _IteratorArgument(self._parts._placeholder())


class _DatasetArgument(DistributedDataset):
    """The placeholder of a distributed dataset argument in a trace."""

    def bind(self, dataset: DistributedDataset) -> None:
        """Binds the dataset of this thread's call."""
        self._parts.bind(dataset._parts)


class _IteratorArgument(DistributedIterator):
    """The placeholder of a distributed iterator argument in a trace."""

    def bind(self, iterator: DistributedIterator) -> None:
        """Binds the iterator of this thread's call."""
        self._parts.bind(iterator._parts)


def _joined(parts: Sequence[Any]) -> Any:
    return together(parts, "dataset")


def _joined_spec(specs: Sequence[Any]) -> Any:
    def one(*of_replicas: Any) -> Any:
        first = of_replicas[0]
        return first if isinstance(first, NoneTensorSpec) else PerReplicaSpec(*of_replicas)

    return nest.map_structure(one, *specs)
