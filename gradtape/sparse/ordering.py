"""Positions of sparse tensors as numbers: their order, duplicates, and checks."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from gradtape._src.base.errors import InvalidArgumentError


def keys_of(places: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """A number for each position, in row-major order: its offset in the dense tensor, or its rank among all
    positions if offsets would overflow."""
    if prod(sizes) < 2**63:
        steps = np.array([prod(sizes[axis + 1 :]) for axis in range(len(sizes))], np.int64)
        return places @ steps
    return np.unique(places, axis=0, return_inverse=True)[1].reshape(-1)


def places_at(offsets: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """The positions at given offsets in a tensor of these sizes."""
    return (
        np.stack(np.unravel_index(offsets, tuple(sizes)), axis=-1)
        if sizes
        else np.zeros([len(offsets), 0], int)
    )


def order_of(places: np.ndarray, sizes: Sequence[int]) -> np.ndarray | None:
    """The permutation that sorts positions into row-major order; None if they are sorted."""
    keys = keys_of(places, sizes)
    return None if (keys[1:] >= keys[:-1]).all() else np.argsort(keys, kind="stable")


def union(places: Sequence[np.ndarray], sizes: Sequence[int]) -> tuple[np.ndarray, list[np.ndarray]]:
    """All positions of several tensors, sorted, and the indices of each tensor's positions among them."""
    together = np.concatenate(places)
    _, first, inverse = np.unique(keys_of(together, sizes), return_index=True, return_inverse=True)
    ends = np.cumsum([len(p) for p in places])
    return together[first], np.split(inverse.reshape(-1), ends[:-1])


def check_inside(op: str, places: np.ndarray, sizes: Sequence[int]) -> None:
    """Raises if positions are out of range."""
    outside = ((places < 0) | (places >= np.asarray(sizes, np.int64))).any(axis=1)
    if outside.any():
        at = int(outside.argmax())
        raise InvalidArgumentError(
            f"{op}: indices[{at}] = {_text(places[at])} is out of bounds: need 0 <= index < {_text(sizes)}"
        )


def check_order(op: str, places: np.ndarray, sizes: Sequence[int]) -> None:
    """Raises if positions are out of range, repeated, or not in row-major order."""
    check_inside(op, places, sizes)
    keys = keys_of(places, sizes)
    wrong = keys[1:] <= keys[:-1]
    if wrong.any():
        at = int(wrong.argmax()) + 1
        if keys[at] == keys[at - 1]:
            raise InvalidArgumentError(f"{op}: indices[{at}] = {_text(places[at])} is repeated")
        raise InvalidArgumentError(
            f"{op}: indices[{at}] = {_text(places[at])} is out of order. Many sparse ops require sorted indices. "
            "Hint: tf.sparse.reorder."
        )


def _text(numbers: Sequence[int] | np.ndarray) -> str:
    return "[" + ",".join(str(int(n)) for n in numbers) + "]"
