"""The op `resample`: images times two band matrices, along their height and their width.

Every linear and separable operation is such a product: all resizing methods, blurring, averaging over windows. The
op takes the transposed matrices as operands, so its gradient is the op itself.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.ops.samples import At, Sample, at, call, ints
from gradtape._src.ops.table import opaque
from gradtape._src.tensors import conversion
from gradtape.image.filters import Band, bands, both_bands

_WIDE_FLOAT = 1 << dtypes.float32._code | 1 << dtypes.float64._code
_INT32 = dtypes.int32._code

# ---- the op -------------------------------------------------------------------------------------


def _dense(first, weights, width):
    matrix = np.zeros((len(weights), width))
    for line, place, some in zip(matrix, first, weights, strict=True):
        line[place : place + len(some)] += some
    return matrix


def _numpy_resample(x, places, rows, columns, back_places, back_rows, back_columns):
    height, width = x.shape[1:3]
    return np.einsum(
        "nhwc,oh,pw->nopc",
        x,
        _dense(places[: len(rows)], rows, height),
        _dense(places[len(rows) :], columns, width),
    )


def _batch(size, batched, operands, attrs):
    """The new axis is merged with that of the images."""
    x, *matrices = operands
    if any(batched[1:]):
        return None  # a loop
    shape = list(x.shape)
    out = resample(ops.reshape(x, [shape[0] * shape[1], *shape[2:]]), *matrices)
    return ops.reshape(out, [*shape[:2], *out.shape[1:]])


def _sample(method: str, antialias: bool, shape: tuple[int, ...], height: int, width: int) -> Sample:
    rows, columns = bands(method, antialias, shape[1], height), bands(method, antialias, shape[2], width)
    operands: list[At] = []
    for r, c in zip(rows, columns, strict=True):
        operands += [ints(np.append(r.first, c.first)), at(r.weights), at(c.weights)]
    return call(shape, *operands)


_X, _ONE = (1, 2, 2, 1), at([[1.0]])
_BACK = ints([0, 0]), _ONE, _ONE

resample: Any = opaque(
    "resample", _WIDE_FLOAT, "x places:Index rows columns back_places:Index back_rows back_columns",
    xla="image.resample",
    rule=(
        lambda g, x, places, rows, columns, back_places, back_rows, back_columns, out: resample(
            g, back_places, back_rows, back_columns, places, rows, columns
        ),
        None, None, None, None, None, None,
    ),
    linear="x",
    numpy=_numpy_resample, batch=_batch,
    samples=[
        _sample("bilinear", False, (2, 4, 5, 3), 3, 9), _sample("bilinear", True, (1, 7, 6, 1), 3, 2),
        _sample("bicubic", False, (1, 5, 4, 2), 8, 7), _sample("area", False, (1, 5, 6, 4), 3, 9),
        _sample("nearest", False, (1, 3, 4, 5), 6, 2), _sample("lanczos3", True, (2, 9, 8, 3), 4, 3),
        _sample("gaussian", False, (1, 3, 3, 77), 5, 5), _sample("bilinear", False, (0, 3, 3, 1), 2, 2),
        _sample("bilinear", False, (1, 1, 1, 3), 2, 3), _sample("bilinear", False, (1, 2, 2, 0), 3, 3),
    ],
    bad=[
        (call((2, 2, 2), ints([0, 0]), _ONE, _ONE, *_BACK), "InvalidArgumentError", "x must be images"),
        (call(_X, ints([0, 0]), at([1.0]), _ONE, *_BACK), "InvalidArgumentError", "[size, taps]"),
        (call(_X, ints([0]), _ONE, _ONE, *_BACK), "InvalidArgumentError", "places must have the shape [2]"),
        (call(_X, ints([2, 0]), _ONE, _ONE, *_BACK), "InvalidArgumentError", "places[0] = 2 is not in [0, 1]"),
        (
            call(_X, ints([1, 0, 0]), at([[1.0], [1.0]]), _ONE, *_BACK), "InvalidArgumentError",
            "must not go back",
        ),
    ],
    doc="Images `x` [batch, height, width, channels] times a band matrix along height and one along width.",
)  # fmt: skip

# ---- its matrices -------------------------------------------------------------------------------

Operands = tuple[Any, Any, Any, Any, Any, Any]


def operands_of(rows: tuple[Band, Band], columns: tuple[Band, Band], code: int) -> Operands:
    """Two matrices and their transposes as the operands of `resample`."""
    operands: list[Any] = []
    for r, c in zip(rows, columns, strict=True):
        operands += [conversion.convert(np.append(r.first, c.first), _INT32)]
        operands += [conversion.convert(r.weights, code), conversion.convert(c.weights, code)]
    return tuple(operands)  # type: ignore[return-value]


@functools.lru_cache(maxsize=128)
def _resizing(
    method: str, antialias: bool, shape: tuple[int, int], size: tuple[int, int], code: int
) -> Operands:
    rows, columns = (bands(method, antialias, n, m) for n, m in zip(shape, size, strict=True))
    return operands_of(rows, columns, code)


def resized(x: _core.Tensor, height: int, width: int, method: str, antialias: bool) -> _core.Tensor:
    """Float images [batch, height, width, channels] in another size."""
    _, h, w, _ = x.shape
    return resample(x, *_resizing(method, antialias, (h, w), (height, width), x.dtype._code))


Weights = tuple[float, ...]


@functools.lru_cache(maxsize=128)
def _windows(weights: tuple[Weights, Weights], step: int, shape: tuple[int, int], code: int) -> Operands:
    rows, columns = (
        both_bands(
            np.arange(0, n - len(w) + 1, step)[:, None] + np.arange(len(w)),
            np.broadcast_to(w, ((n - len(w)) // step + 1, len(w))),
            n,
        )
        for n, w in zip(shape, weights, strict=True)
    )
    return operands_of(rows, columns, code)


def filtered(x: _core.Tensor, rows: Weights, columns: Weights, step: int = 1) -> _core.Tensor:
    """Sums over windows of float images, weighted with `rows` along the height and `columns` along the width."""
    _, h, w, _ = x.shape
    return resample(x, *_windows((rows, columns), step, (h, w), x.dtype._code))
