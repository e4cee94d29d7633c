"""Checks of batching: an op over a new leading axis gives the same results as row by row."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradtape._src.base import dtypes, errors
from gradtape._src.batching.vectorize import vectorized
from gradtape._src.contract.cases import Case, allowed, cases, tensor
from gradtape._src.contract.compare import TOLERANCES, differences, each, tolerance
from gradtape._src.ops.table import Row

_SIZE = 3


def _other(array: np.ndarray) -> np.ndarray:
    """Another array that is valid wherever `array` is: its elements in another order."""
    return array.reshape(-1)[::-1].reshape(array.shape)


def other_operands(case: Case) -> list[np.ndarray]:
    """Other operands; indices that would be invalid in another order stay."""
    some = [_other(a) for a in case.arrays]
    try:
        case.call([tensor(a, d) for a, d in zip(some, case.dtypes, strict=True)])
    except errors.OpError:
        return [a if a.dtype.kind in "iu" else o for a, o in zip(case.arrays, some, strict=True)]
    return some


def _check(case: Case) -> Iterator[str]:
    n = len(case.arrays)
    others = other_operands(case)
    masks = [m for m in itertools.product((False, True), repeat=n) if any(m)] if n <= 3 else [(True,) * n]
    for mask in masks:
        stacks: list[Any] = [
            np.stack([a, a, o]) if m else a for a, o, m in zip(case.arrays, others, mask, strict=True)
        ]
        operands = [tensor(s, d) for s, d in zip(stacks, case.dtypes, strict=True)]
        fixed = [x for x, m in zip(operands, mask, strict=True) if not m]

        def one(rows: list, mask: tuple = mask, fixed: list = fixed) -> list:
            moving, still = iter(rows), iter(fixed)
            return list(case.call([next(moving) if m else next(still) for m in mask]))

        batched = [x for x, m in zip(operands, mask, strict=True) if m]
        expected = [one([x[i] for x in batched]) for i in range(_SIZE)]
        try:
            outs = vectorized(one, batched, _SIZE)
        except errors.Untraceable:
            return  # the shape of the result depends on values
        for k, out in enumerate(outs):
            limit = tolerance(TOLERANCES, out.dtype, *case.dtypes) * case.row.tolerance
            what = f"batched result {k} with {mask}"
            yield from differences(what, case, out.numpy(), np.stack([e[k].numpy() for e in expected]), limit)


def batching(row: Row) -> Iterator[str]:
    """Checks that every row of the table runs over a new axis, by a rule or a loop."""
    if row.shape_from_values is True:
        return
    types = allowed(row)
    dtype = dtypes.float64 if dtypes.float64 in types else types[-1]
    yield from each("batching", _check, cases(row, [dtype]))
