"""Moving runs of consecutive rows; the rows of ragged tensors are such runs."""

from __future__ import annotations

import numpy as np

from gradtape._src.ops import batching
from gradtape._src.ops.samples import call, ints
from gradtape._src.ops.table import ALL, NUMBER, indexed

__all__: list[str] = []


def _numpy_runs(x, starts, lengths, places, size):
    out = np.zeros((size, *x.shape[1:]), x.dtype)
    for start, length, place in zip(starts, lengths, places, strict=True):
        out[place : place + length] += x[start : start + length]
    return out


def _runs(starts, lengths, places, dtype="int64"):
    return ints(starts, dtype), ints(lengths, dtype), ints(places, dtype)


_ARGS = "x starts:Index lengths:Index places:Index size:Int"
_NONE = np.zeros([0], int)
_APART = [
    call((6,), *_runs([0, 2, 2], [2, 0, 4], [1, 4, 4]), size=9),
    call((6,), *_runs([0, 3], [3, 3], [0, 3], "int32"), size=6),
    call((4, 2), *_runs([1, 3], [1, 1], [0, 3]), size=4),
    call((2, 3), *_runs(_NONE, _NONE, _NONE), size=3),
    call((0, 3), *_runs([0], [0], [2]), size=2),
    call((3, 0), *_runs([0], [2], [1]), size=3),
]
_BAD = [
    (call((3,), *_runs([2], [2], [0]), size=4), "InvalidArgumentError",
     "a run of 2 rows at starts[0] = 2 is not inside of 3 rows"),
    (call((3,), *_runs([0, -1], [1, 1], [0, 1]), size=4), "InvalidArgumentError",
     "a run of 1 rows at starts[1] = -1 is not inside of 3 rows"),
    (call((3,), *_runs([0], [3], [2]), size=4), "InvalidArgumentError",
     "a run of 3 rows at places[0] = 2 is not inside of 4 rows"),
    (call((3,), *_runs([0], [-1], [2]), size=4), "InvalidArgumentError", "a run of -1 rows"),
    (call((3,), *_runs([0], [1, 1], [2, 3]), size=4), "InvalidArgumentError",
     "starts, lengths and places must be vectors of one length"),
    (call((), *_runs([0], [1], [2]), size=4), "InvalidArgumentError", "x must have at least one dimension"),
    (call((3,), *_runs([0], [1], [0]), size=-1), "InvalidArgumentError", "size must be non-negative"),
]  # fmt: skip

take_runs = indexed(
    "take_runs", ALL, _ARGS, linear="x", pattern="moves", xla="runs.take_runs", batch=batching.runs("take_runs"),
    rule=(
        lambda g, x, starts, lengths, places, out, size: add_runs(g, places, lengths, starts, x.shape[0]), None, None, None,
    ),
    numpy=_numpy_runs,
    samples=[
        *_APART,
        call((6,), *_runs([4, 0, 3], [2, 4, 0], [0, 2, 6]), size=7),
        call((6, 2), *_runs([1, 1, 0], [3, 3, 1], [0, 4, 7]), size=8),
    ],
    bad=[
        *_BAD,
        (call((3,), *_runs([0, 1], [2, 1], [0, 1]), size=4), "InvalidArgumentError",
         "places[1] = 1 is before the end of the run before it, 2"),
    ],
    doc="`size` rows of zeros, with the runs `x[starts[i] : starts[i] + lengths[i]]` at `places[i]`, which do not overlap.",
)  # fmt: skip

add_runs = indexed(
    "add_runs", NUMBER, _ARGS, linear="x", pattern="adds", xla="runs.add_runs", batch=batching.runs("add_runs"),
    rule=(
        lambda g, x, starts, lengths, places, out, size: take_runs(g, places, lengths, starts, x.shape[0]), None, None, None,
    ),
    numpy=_numpy_runs,
    samples=[
        *_APART,
        call((7,), *_runs([0, 2, 3], [2, 1, 4], [1, 1, 0]), size=4),
        call((6, 2), *_runs([0, 3, 4], [3, 1, 2], [2, 0, 4]), size=7),
    ],
    bad=[
        *_BAD,
        (call((3,), *_runs([0, 1], [2, 1], [0, 1]), size=4), "InvalidArgumentError",
         "starts[1] = 1 is before the end of the run before it, 2"),
    ],
    doc="The transpose of take_runs: runs of `x`, which do not overlap, added to zeros at places that may overlap.",
)  # fmt: skip
