"""Static arguments of composites: values as arrays, sizes and axes as Python integers."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base.errors import ArgumentError, Untraceable
from gradtape._src.tensors import above

__all__: list[str] = []


def array_of(value: Any) -> np.ndarray:
    """The elements of `value`, for composites that need them in Python."""
    if isinstance(value, _core.Tensor) and value._symbol is not None:
        folded = above.static.folded(value)
        if folded is None:
            raise Untraceable("the shape of a result depends on values")
        return folded
    return value.numpy() if isinstance(value, (_core.Tensor, _core.Variable)) else np.asarray(value)


def ints_of(value: Any) -> list[int]:
    """The integers of a number, list, tensor or shape, in one list."""
    if isinstance(value, int):
        return [value]
    if not isinstance(value, (list, tuple)):
        value = np.reshape(array_of(value), -1).tolist()
    return [index(v) for v in value]


def axis_of(op: str, axis: Any, rank: int) -> int:
    """`axis` as a non-negative axis of a tensor of `rank` dimensions."""
    at = index(axis)
    if not -rank <= at < rank:
        raise ArgumentError(
            f"{op}: Argument `axis` = {at} not in range [{-rank}, {rank}): axis {at} is out of range; expected an axis in "
            f"[{-rank}, {rank}); got {at}."
        )
    return at % rank if rank else 0
