"""Made-up values: trial operands for calls whose result shapes depend on values.

One trial proves too little: `x[:n]` has four rows for many values of `n`. So a call is tried on values of
many kinds, and a size or rank that is not the same in all trials is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape._src.base import dtypes
from gradtape._src.tensors import conversion, text

# Integers, from the positions 0, 1, ..., the index of the operand, and a number of elements that the call may
# require.
# Integers: a function of 0, 1, ..., of the place of the operand among the others, and of a number that may be wanted.
_INTEGERS: tuple[Callable[[np.ndarray, int, int], Any], ...] = (
    lambda at, place, n: at + 1,
    lambda at, place, n: at,
    lambda at, place, n: at[::-1],
    lambda at, place, n: np.roll(at, 1),
    lambda at, place, n: at % 2,
    lambda at, place, n: 0 * at + place,
    lambda at, place, n: 0 * at + 2 * place,
    lambda at, place, n: 0 * at - 1,
    lambda at, place, n: 0 * at + 2,
    lambda at, place, n: 0 * at + min(n, _MOST),
    lambda at, place, n: np.where(at == 0, n, 1),
    lambda at, place, n: np.where(at == len(at) - 1, n, 1),
    lambda at, place, n: np.where(at == 0, n, 0),
    lambda at, place, n: np.where(at == len(at) - 1, n, 0),
)
_MOST = 4  # limit for integers that may be sizes: all elements are that large
# Floats, from the positions 0, 1, ...; the last repeats the same box in every four elements.
_FLOATS: tuple[Callable[[np.ndarray], Any], ...] = (
    lambda at: (at + 1) / max(len(at), 1),
    lambda at: 0 * at,
    lambda at: 3 * (at + 1) / max(len(at), 1),
    lambda at: -(at + 1) / max(len(at), 1),
    lambda at: at // 2 % 2,
)
STYLES = len(_INTEGERS)


def values(dims: tuple[int, ...], dtype: Any, style: int, place: int, count: int) -> Any:
    """A tensor of made-up values.

    Args:
      place: the index of the operand in the call.
    """
    at = np.arange(int(np.prod(dims)))
    if dtype is dtypes.string:
        return text.make(text.array((b"%d" % _INTEGERS[style](at, place, count)[i] for i in at), dims))
    if dtype.name == "bool":
        data: Any = (at > 0, at >= 0, at < 0, at == 0)[style % 4]
    elif dtype.is_integer:
        data = _INTEGERS[style](at, place, count if len(dims) < 2 else min(count, _MOST))
    else:
        data = _FLOATS[style % len(_FLOATS)](at)
    return conversion.convert(np.reshape(data, dims), dtype._code)
