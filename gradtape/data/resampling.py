"""`rejection_resample`: elements left out so that classes come as often as they should."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradtape.data.base import UNKNOWN, Run
from gradtape.data.dataset import Unary
from gradtape.data.functions import DataFunction, arguments
from gradtape.data.seeds import Draws, SeedGenerator
from gradtape.data.structure import spec_of


class _Resampled(Unary):
    """Pairs (class, element); a class that comes too often is left out now and then."""

    def __init__(
        self, source: Any, class_func: Callable, target_dist: Any, initial_dist: Any, seed: Any
    ) -> None:
        super().__init__(source)
        self._class = DataFunction(class_func, "rejection_resample")
        self._target = _distribution(target_dist, "target_dist")
        self._initial = None if initial_dist is None else _distribution(initial_dist, "initial_dist")
        if self._initial is not None and len(self._initial) != len(self._target):
            raise ValueError(
                f"rejection_resample: expected {len(self._target)} probabilities in initial_dist; got {len(self._initial)}."
            )
        self._seeds = SeedGenerator(seed, True, "rejection_resample")

    def _spec(self, look: bool = False) -> Any:
        spec = self._input._spec(look)
        if spec is None or not look:
            return None
        return spec_of(self._class(*arguments(self._input._first()))), spec

    def _likely(self) -> Any:
        return None

    def _kinds(self) -> list | None:
        return None

    def _size(self) -> int:
        return UNKNOWN

    def _elements(self, run: Run) -> Iterator[Any]:
        return self._chosen(self._input._iterate(run), Draws(self._seeds.next()))

    def _chosen(self, source: Iterator[Any], draw: Draws) -> Iterator[Any]:
        # Without a given distribution the classes are counted as they come, each seen once before.
        counts = np.ones(len(self._target))
        for element in source:
            found = self._class(*arguments(element))
            k = int(found)
            counts[k] += 1
            initial = counts / counts.sum() if self._initial is None else self._initial
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(self._target > 0, self._target / initial, 0)
            if draw() / 2**32 < ratio[k] / ratio.max():
                yield found, element


def _distribution(given: Any, what: str) -> np.ndarray:
    values = np.asarray(given.numpy() if hasattr(given, "numpy") else given, np.float64)
    if values.ndim != 1 or (values < 0).any() or values.sum() <= 0:
        raise ValueError(f"rejection_resample: {what} must be a list of probabilities; got {given!r}.")
    return values / values.sum()


def rejection_resample(
    dataset: Any, class_func: Callable, target_dist: Any, initial_dist: Any, seed: Any
) -> Any:
    """`Dataset.rejection_resample`."""
    return _Resampled(dataset, class_func, target_dist, initial_dist, seed)
