"""`rejection_resample`: leaves out elements so that classes have given frequencies.

Two pipelines over the same elements alternate at random: the original elements, and a version in which some are
left out by class. Drawing from the first as often as possible leaves out the fewest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.ops.random import uniform
from gradtape.data.dataset import Dataset
from gradtape.data.functions import arguments

_TINY = float(np.finfo(np.float32).tiny)
_SEEN_BEFORE = 10  # of each class, before the first is counted
_COUNTED_AT_ONCE = 32  # classes, between two estimates of how often they come


def rejection_resample(
    dataset: Any, class_func: Callable, target_dist: Any, initial_dist: Any, seed: Any
) -> Any:
    """`Dataset.rejection_resample`."""
    target = ops.cast(ops.convert_to_tensor(target_dist), dtypes.float32)
    originals = dataset.map(lambda *x: (class_func(*x), x[0] if len(x) == 1 else x))
    if initial_dist is None:
        initial = _estimated(dataset.map(class_func), target.shape[0])
    else:
        given = ops.cast(ops.convert_to_tensor(initial_dist), dtypes.float32)
        initial = Dataset.from_tensors(given).repeat()
        lowest = float(np.min(target.numpy() / given.numpy()))
        if lowest == 1:
            return originals

    def chances(frequencies: Any) -> Any:
        """For each class, the probability that an element is kept; and the probability of an original element."""
        ratio = target / (frequencies + _TINY)
        lowest = ops.reduce_min(ratio)
        return (ratio - lowest) / (ops.reduce_max(ratio) - lowest), lowest

    chosen = initial.map(chances)
    left_in = _left_in(dataset, chosen.map(lambda accepted, _: accepted), class_func, seed)
    if initial_dist is not None and lowest == 0:
        return left_in
    weights = chosen.map(lambda _, original: ops.stack([original, 1.0 - original]))
    return Dataset.sample_from_datasets([originals, left_in], weights, seed, stop_on_empty_dataset=True)


def _estimated(classes: Any, count: int) -> Any:
    """The frequency of each class, estimated from the elements so far: a distribution per element."""

    def counted(counts: Any, some: Any) -> Any:
        counts = counts + ops.reduce_sum(ops.one_hot(some, count, dtype=dtypes.int64), 0)
        frequencies = ops.cast(counts / ops.reduce_sum(counts), dtypes.float32)
        return counts, ops.tile(ops.expand_dims(frequencies, 0), [_COUNTED_AT_ONCE, 1])

    before = ops.fill([count], np.int64(_SEEN_BEFORE))
    return classes.batch(_COUNTED_AT_ONCE).scan(before, counted).unbatch()


def _left_in(dataset: Any, accepted: Any, class_func: Callable, seed: Any) -> Any:
    """Pairs of a class and an element, without the rejected ones."""

    def classified(chances: Any, element: Any) -> Any:
        its_class = class_func(*arguments(element))
        return its_class, ops.gather(chances, its_class), element

    def is_left_in(its_class: Any, chance: Any, element: Any) -> Any:
        return uniform([], dtype=chance.dtype, seed=seed) < chance

    paired = Dataset.zip((accepted, dataset)).map(classified).filter(is_left_in)
    return paired.map(lambda its_class, _, element: (its_class, element)).prefetch(3)
