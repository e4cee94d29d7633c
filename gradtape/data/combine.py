"""Combines several datasets: zip, concatenate, choose_from_datasets, sample_from_datasets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes, nest
from gradtape._src.base.shape import TensorSpec
from gradtape._src.ops.random import categorical_op, stateless_state
from gradtape.data.base import INFINITE, UNKNOWN, DatasetBase, Run, invalid
from gradtape.data.dataset import Dataset
from gradtape.data.failures import Failure, Guarded, Raising, flattened
from gradtape.data.rows import Table
from gradtape.data.sources import RowDataset, _RandomDataset
from gradtape.data.structure import common, packer, same_form


class _ZipDataset(Dataset):
    """Elements of several datasets side by side."""

    def __init__(self, datasets: Any) -> None:
        for part in nest.flatten_up_to(_outer(datasets), datasets):
            if isinstance(part, list):
                raise TypeError(
                    "Invalid input to `zip`. Inputs are expected to be (nested) structures of `tf.data.Dataset` objects. "
                    "Python `list` is not supported and you should use `tuple` instead."
                )
            if not isinstance(part, DatasetBase):
                raise TypeError(
                    "Invalid input to `zip`. Inputs are expected to be (nested) structures of `tf.data.Dataset` objects "
                    f"but encountered object of type {type(part)}."
                )
        super().__init__(*nest.flatten(datasets))
        self._structure = datasets
        self._all: Table | None = None
        if self._inputs and all(isinstance(d, RowDataset) for d in self._inputs):
            whole = self._packed([d._all.structure for d in self._inputs])
            columns = [c for d in self._inputs for c in d._all.columns]
            self._all = Table(columns, whole)

    def _packed(self, values: Sequence[Any]) -> Any:
        return packer(self._structure)(values)

    def _spec(self, look: bool = False) -> Any:
        specs = [d._spec(look) for d in self._inputs]
        return None if any(s is None for s in specs) else self._packed(specs)

    def _likely(self) -> Any:
        specs = [d._likely() for d in self._inputs]
        return None if any(s is None for s in specs) else self._packed(specs)

    def _kinds(self) -> list | None:
        kinds = [d._kinds() for d in self._inputs]
        if any(k is None for k in kinds):
            return None
        count = max(len(k) for k in kinds if k is not None)
        if count > 1:
            # Batch sizes of several inputs match if the short batches come last in all of them; otherwise nothing
            # is known.
            sizes = {d._size() for d in self._inputs}
            if len(sizes) > 1 or any(len(k) not in (1, count) for k in kinds if k is not None):
                return None
        columns = [k if len(k) == count else k * count for k in kinds if k is not None]
        return [self._packed(row) for row in zip(*columns, strict=True)]

    def _size(self) -> int:
        sizes = [d._size() for d in self._inputs]
        if UNKNOWN in sizes:
            return 0 if 0 in sizes else UNKNOWN
        finite = [s for s in sizes if s != INFINITE]
        return min(finite) if finite else INFINITE

    def _table(self) -> Table | None:
        return self._all

    def _chunks(self, run: Run) -> Iterator[Any]:
        count = self._size()
        return iter((range(count),) if count else ())

    def _at(self, index: int) -> Any:
        return self._packed([d._at(index) for d in self._inputs])

    def _elements(self, run: Run) -> Iterator[Any]:
        sources = [Guarded(d._iterate(run)) for d in self._inputs]
        flat = type(self._structure) is tuple and not any(map(nest.is_nested, self._structure))
        return map(tuple if flat else packer(self._structure), map(_whole, zip(*sources, strict=False)))


def _whole(parts: tuple) -> tuple:
    """Parts side by side; raises the error of a part that could not be made, after all were read."""
    failures = [part for part in parts if type(part) is Failure]
    if failures:
        raise next((f for f in failures if f.interrupts), failures[0]).error
    return parts


def _outer(datasets: Any) -> Any:
    """The structure of datasets, with lists as leaves."""
    if isinstance(datasets, list) or not nest.is_nested(datasets):
        return None
    kind = nest._kind(datasets)
    assert kind is not None
    return kind.rebuild(datasets, [_outer(child) for child in kind.children(datasets)])


def _merged(datasets: Sequence[Any], look: bool) -> Any:
    """The spec that covers the elements of all datasets; TypeError if their structures differ."""
    specs = [d._spec(look) for d in datasets]
    if any(s is None for s in specs):
        return None
    merged = specs[0]
    for other in specs[1:]:
        if not same_form(merged, other):
            raise TypeError(f"Incompatible dataset elements:\n  {merged} vs.   {other}")
        merged = common(merged, other)
    return merged


class Several(Dataset):
    """A dataset whose elements come from several others."""

    def __init__(self, datasets: Sequence[Any]) -> None:
        super().__init__(*datasets)
        _merged(datasets, False)

    def _sources(self) -> Sequence[Any]:
        return self._inputs

    def _spec(self, look: bool = False) -> Any:
        return _merged(self._sources(), look)

    def _kinds(self) -> list | None:
        kinds: list = []
        for dataset in self._sources():
            some = dataset._kinds()
            if some is None:
                return None
            kinds += [k for k in some if k not in kinds]
        return kinds

    def _likely(self) -> Any:
        return self._sources()[0]._likely()


class _ConcatenateDataset(Several):
    """One dataset after another."""

    def __init__(self, first: Any, second: Any) -> None:
        if not isinstance(second, DatasetBase):
            raise TypeError(f"Dataset.concatenate: expected a dataset; got {type(second)}.")
        super().__init__((first, second))

    def _size(self) -> int:
        a, b = (d._size() for d in self._inputs)
        if INFINITE in (a, b):
            return INFINITE
        return UNKNOWN if UNKNOWN in (a, b) else a + b

    def _at(self, index: int) -> Any:
        first, second = self._inputs
        return first._at(index) if index < first._size() else second._at(index - first._size())

    def _elements(self, run: Run) -> Iterator[Any]:
        first, second = self._inputs
        return chain(first._iterate(run), flattened(iter((second,)), lambda d: d._iterate(run)))


class _DirectedInterleaveDataset(Several):
    """Elements of several datasets, in the order given by a dataset of indices."""

    def __init__(self, selector: Any, datasets: Sequence[Any], stop_on_empty: bool) -> None:
        super().__init__(datasets)
        self._inputs = (selector, *datasets)
        self._stop = stop_on_empty

    def _sources(self) -> Sequence[Any]:
        return self._inputs[1:]

    def _size(self) -> int:
        chosen, *sizes = [d._size() for d in self._inputs]
        if chosen != INFINITE:
            return UNKNOWN
        # It is endless if all inputs are, or if one is that is never left.
        endless = all if self._stop else any
        return INFINITE if endless(s == INFINITE for s in sizes) else UNKNOWN

    def _elements(self, run: Run) -> Iterator[Any]:
        selector, *sources = [Guarded(d._iterate(run)) for d in self._inputs]
        return Raising(self._chosen(selector, sources))

    def _chosen(self, selector: Iterator[Any], sources: list) -> Iterator[Any]:
        active = len(sources)
        for choice in selector:
            if type(choice) is Failure:
                yield choice
                continue
            k = int(choice)
            if not 0 <= k < len(sources):
                raise invalid(f"Selector index out of range: {k} >= {len(sources)}")
            if sources[k] is None:
                continue
            for element in sources[k]:
                yield element
                break
            else:
                sources[k] = None  # type: ignore[call-overload]
                active -= 1
                if self._stop or not active:
                    return


def _want_datasets(datasets: Any) -> list:
    checked = list(datasets)
    if not checked:
        raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
    for d in checked:
        if not isinstance(d, DatasetBase):
            raise TypeError(f"Invalid `datasets`. Expected datasets; got {type(d)}.")
    return checked


def choose_from_datasets(datasets: Any, choice_dataset: Any, stop_on_empty_dataset: bool) -> Any:
    """`Dataset.choose_from_datasets`."""
    inputs = _want_datasets(datasets)
    spec = choice_dataset.element_spec
    if not (isinstance(spec, TensorSpec) and spec.dtype is dtypes.int64 and spec.shape.rank == 0):
        raise TypeError(
            "Invalid `choice_dataset`. Elements of `choice_dataset` must be scalar `tf.int64` tensors but are "
            f"{spec}."
        )
    return _DirectedInterleaveDataset(choice_dataset, inputs, stop_on_empty_dataset)


class _Choices(Dataset):
    """Indices of datasets, drawn with probabilities from another dataset, new ones for each index."""

    def __init__(self, weights: Any, seed: Any, rerandomize: bool | None) -> None:
        self._seeds = _RandomDataset(seed, rerandomize).batch(2)
        super().__init__(weights, self._seeds)

    def _spec(self, look: bool = False) -> Any:
        return TensorSpec((), dtypes.int64)

    def _size(self) -> int:
        return self._inputs[0]._size()

    def _elements(self, run: Run) -> Iterator[Any]:
        for weights, seed in zip(*(d._iterate(run) for d in self._inputs), strict=False):
            logits = ops.reshape(ops.log(weights), [1, -1])
            yield categorical_op(logits, stateless_state(seed), 1)


def sample_from_datasets(
    datasets: Any, weights: Any, seed: Any, stop_on_empty_dataset: bool, rerandomize: bool | None
) -> Any:
    """`Dataset.sample_from_datasets`."""
    inputs = _want_datasets(datasets)
    if isinstance(weights, DatasetBase):
        return _DirectedInterleaveDataset(_Choices(weights, seed, rerandomize), inputs, stop_on_empty_dataset)
    if weights is None:
        probabilities = ops.ones([len(inputs)])
    else:
        if isinstance(weights, _core.Tensor) and not weights.shape.is_compatible_with([len(inputs)]):
            raise ValueError(
                "Invalid `weights`. The shape of `weights` should be compatible with `[len(datasets)]` but is "
                f"{weights.shape}."
            )
        count = weights.shape[0] if isinstance(weights, _core.Tensor) else len(weights)
        if count != len(inputs):
            raise ValueError(
                "Invalid `weights`. `weights` should have the same length as `datasets` but got "
                f"`len(weights)={count}` vs. `len(datasets)={len(inputs)}`."
            )
        if not isinstance(weights, _core.Tensor):
            pairs = [(d, w) for d, w in zip(inputs, weights, strict=True) if w > 0] or [
                (inputs[0].take(0), 1.0)
            ]
            inputs, weights = [d for d, _ in pairs], [w for _, w in pairs]
        probabilities = ops.convert_to_tensor(weights)
        if not probabilities.dtype.is_floating:
            raise TypeError(
                f"Invalid `weights`. `weights` type must be either `tf.float32` or `tf.float64` but is "
                f"{probabilities.dtype}."
            )
    if len(inputs) == 1:
        return inputs[0]
    always = Dataset.from_tensors(probabilities).repeat()
    return _DirectedInterleaveDataset(_Choices(always, seed, rerandomize), inputs, stop_on_empty_dataset)
