"""The seeds of shuffles and random datasets, by TensorFlow's rules: the same seed gives the same order."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape._src.base import dtypes
from gradtape._src.base.locks import Lock
from gradtape._src.ops.random import random_bits
from gradtape._src.tensors import random as _random
from gradtape.data.base import number

_BLOCK = 1024


def bits(seeds: tuple[int, int], skip: int, count: int) -> np.ndarray:
    """`count` random 32-bit numbers of a stream, after the first `skip`, as int64."""
    first = skip // 4
    total = skip - 4 * first + count
    numbers = random_bits(
        _random.stream(_random.signed(seeds[0]), _random.signed(seeds[1]), first), [total], dtypes.uint32
    )
    return numbers.numpy()[total - count :].astype(np.int64)


class Draws:
    """Random 32-bit numbers of a stream, one at a time."""

    def __init__(self, seeds: tuple[int, int]) -> None:
        self._seeds = seeds
        self._drawn = 0
        self._block: list[int] = []

    def __call__(self) -> int:
        if not self._block:
            self._block = bits(self._seeds, self._drawn, _BLOCK).tolist()[::-1]
            self._drawn += _BLOCK
        return self._block.pop()


class SeedGenerator:
    """Gives each iteration its seeds: new ones each time, or always the same.

    Args:
      seed: the op seed, or None.
      changes: whether they change.
    """

    def __init__(self, seed: Any, changes: bool, op: str) -> None:
        self._pair = _random.next_seeds(None if seed is None else number(seed, op, "seed"))
        self._changes = changes
        self._drawn = 0
        self._lock = Lock()

    def for_access(self) -> tuple[int, int]:
        """The seeds of the order for random access, which never changes. (A fixed order repeats the first.)"""
        return self._pair if self._changes else (self._pair[0], self._pair[0])

    def next(self) -> tuple[int, int]:
        """The seeds of a new iteration."""
        if not self._changes:
            return self._pair
        with self._lock:
            first, second = bits(self._pair, self._drawn, 2).tolist()
            self._drawn += 2
        return first, second

    @property
    def state(self) -> tuple[list[int], int]:
        """The source of its seeds, and how many were drawn."""
        return list(self._pair), self._drawn

    def restore(self, pair: tuple[int, int], drawn: int) -> None:
        """Continues from the state of another generator."""
        with self._lock:
            self._pair, self._drawn = pair, drawn
