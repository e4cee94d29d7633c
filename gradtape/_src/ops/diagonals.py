"""Diagonals and bands of matrices: tf.linalg.diag, diag_part, set_diag, band_part, tensor_diag."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops.comparison import select
from gradtape._src.ops.indexed import gather
from gradtape._src.ops.movement import padded, reshape
from gradtape._src.ops.samples import call
from gradtape._src.ops.static import ints_of
from gradtape._src.ops.table import ANY, composite, movement
from gradtape._src.tensors.conversion import as_tensor

__all__ = [
    "band_part",
    "diag",
    "diag_part",
    "matrix_diag",
    "matrix_diag_part",
    "set_diag",
    "tensor_diag",
    "tensor_diag_part",
]


def _numpy_diag(x, k):
    n, size = x.shape[-1], x.shape[-1] + abs(k)
    out = np.zeros((*x.shape[:-1], size, size), x.dtype)
    i = np.arange(n)
    out[..., i + max(-k, 0), i + max(k, 0)] = x
    return out


def _place_diagonal(g, x, out, k):
    """Zeros with a diagonal put back into the matrix that it was taken from."""
    rows, cols = x.shape[-2:]
    n = g.shape[-1]
    top, left = max(-k, 0), max(k, 0)
    widths = [0, 0] * (x.ndim - 2) + [top, rows - n - top, left, cols - n - left]
    return padded(matrix_diag(g, 0), 0, widths)


matrix_diag = movement(
    "matrix_diag", ANY, "diagonal k:Int", xla="diagonals.matrix_diag",
    batch="leading",
    transpose=lambda g, x, out, k: matrix_diag_part(g, k),
    numpy=_numpy_diag,
    samples=[call((3,), k=0), call((2, 2), k=1), call((2, 3), k=-2), call((0,), k=0)],
    bad=[(call((), k=0), "InvalidArgumentError", "diagonal must be at least 1-dim, received shape: []")],
    doc="Square matrices with the last axis of `diagonal` on their diagonal k, and zeros elsewhere.",
)  # fmt: skip

matrix_diag_part = movement(
    "matrix_diag_part", ANY, "input k:Int", transpose=_place_diagonal, xla="diagonals.matrix_diag_part",
    batch="leading",
    numpy=lambda x, k: np.diagonal(x, k, -2, -1),
    samples=[
        call((3, 3), k=0), call((2, 3), k=1), call((2, 3), k=2), call((2, 3, 2), k=-1), call((0, 2, 2), k=0),
        call((0, 0), k=0),
    ],
    bad=[
        (call((3,), k=0), "InvalidArgumentError", "input must be at least 2-dim"),
        (call((2, 3), k=3), "InvalidArgumentError", "diag index is out of bound: 3"),
    ],
    doc="Diagonal k of the matrices in `input`.",
)  # fmt: skip


def _numpy_band(x, num_lower, num_upper):
    rows, cols = x.shape[-2:]
    i, j = np.arange(rows)[:, None], np.arange(cols)
    in_band = ((num_lower < 0) | (i - j <= num_lower)) & ((num_upper < 0) | (j - i <= num_upper))
    return np.where(in_band, x, np.zeros((), x.dtype))


band_part = movement(
    "band_part", ANY, "input num_lower:Int num_upper:Int", xla="diagonals.band_part",
    batch="leading",
    transpose=lambda g, x, out, lower, upper: band_part(g, lower, upper),
    numpy=_numpy_band,
    samples=[
        call((3, 3), num_lower=0, num_upper=-1), call((3, 4), num_lower=1, num_upper=0),
        call((2, 2, 3), num_lower=-1, num_upper=-1),
        call((0, 3), num_lower=0, num_upper=0),
    ],
    bad=[(call((3,), num_lower=0, num_upper=0), "InvalidArgumentError", "must be at least 2-dim")],
    names="linalg.band_part",
    doc="`input` with zeros outside the band of `num_lower` subdiagonals and `num_upper` "
        "superdiagonals of each matrix; -1 keeps all of them.",
)  # fmt: skip

# ---- several diagonals at once ----


def _limits(op: str, k: Any) -> tuple[int, int]:
    limits = ints_of(k)
    if len(limits) == 2 and limits[0] > limits[1]:
        raise InvalidArgumentError(
            f"{op}: lower_diag_index must not be larger than upper_diag_index: {limits[0]} > {limits[1]}"
        )
    if len(limits) not in (1, 2):
        raise InvalidArgumentError(
            f"{op}: k must be one number, or the lowest and highest diagonal; got {k!r}."
        )
    return limits[0], limits[-1]


def _length(rows: int, cols: int, d: int) -> int:
    return max(min(rows + min(d, 0), cols - max(d, 0)), 0)


_ALIGNMENTS = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")


def _places(rows: int, cols: int, lo: int, hi: int, align: str) -> np.ndarray:
    """For each element of the diagonals hi..lo, one per row, its flat index in the matrix; -1 for padding."""
    if align not in _ALIGNMENTS:
        allowed = ", ".join(f'"{a}"' for a in _ALIGNMENTS)
        raise InvalidArgumentError(
            f"diag: Value for attr 'align' of \"{align}\" is not in the list of allowed values: {allowed}"
        )
    above, below = (side == "LEFT" for side in align.split("_"))
    longest = max(_length(rows, cols, d) for d in range(lo, hi + 1))
    places = np.full((hi - lo + 1, longest), -1)
    for row, d in enumerate(range(hi, lo - 1, -1)):
        n = _length(rows, cols, d)
        left = (d >= 0 and above) or (d <= 0 and below)
        start = 0 if left else longest - n
        places[row, start : start + n] = max(-d, 0) * cols + max(d, 0) + np.arange(n) * (cols + 1)
    return places


def _inverse(places: np.ndarray, size: int) -> np.ndarray:
    """For each element of the matrix, its flat index among the diagonals; -1 outside of them."""
    back = np.full(size, -1)
    flat = places.reshape(-1)
    back[flat[flat >= 0]] = np.flatnonzero(flat >= 0)
    return back


def _take(x: Any, places: np.ndarray, otherwise: Any) -> Any:
    """Gathers elements of the last axis; `otherwise` where the index is -1."""
    if x.dtype.is_bool and isinstance(otherwise, int):
        otherwise = bool(otherwise)
    if x.shape[-1] == 0:
        places = np.full_like(places, -1)
        x = padded(x, 0, [0, 0] * (x.ndim - 1) + [0, 1])
    out = gather(x, np.maximum(places, 0), axis=-1)
    return out if places.min(initial=0) >= 0 else select(places >= 0, out, otherwise)


@composite("linalg.diag")
def diag(
    diagonal: Any,
    name: str = "diag",
    k: Any = 0,
    num_rows: int = -1,
    num_cols: int = -1,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Any:
    """Matrices with the given diagonals.

    Args:
      diagonal: one diagonal along the last axis, or several along the last two, the highest first.
      k: the diagonal (0 is the main one, 1 the one above it), or the lowest and the highest one.
      num_rows, num_cols: the size of the matrices; -1 for the smallest that fits.
      padding_value: the value outside of the diagonals.
      align: the alignment of shorter diagonals, for superdiagonals and subdiagonals, e.g. "RIGHT_LEFT".
    """
    x = as_tensor(diagonal)
    if (
        isinstance(k, int)
        and num_rows == -1
        and num_cols == -1
        and isinstance(padding_value, int)
        and padding_value == 0
        and align in _ALIGNMENTS
    ):
        return matrix_diag(x, k)
    lo, hi = _limits("diag", k)
    count = hi - lo + 1
    if x.ndim < (1 if count == 1 else 2) or (count > 1 and x.shape[-2] != count):
        raise InvalidArgumentError(
            f"diag: diagonal must hold {count} diagonals for k = {k}; got shape {x.shape}."
        )
    longest = x.shape[-1]
    least_rows, least_cols = longest - min(hi, 0), longest + max(lo, 0)
    num_rows, num_cols = (ints_of(n)[0] for n in (num_rows, num_cols))
    if num_rows == num_cols == -1:
        num_rows = num_cols = max(least_rows, least_cols)
    rows = least_rows if num_rows == -1 else num_rows
    cols = least_cols if num_cols == -1 else num_cols
    if rows < least_rows or cols < least_cols or (rows != least_rows and cols != least_cols):
        raise InvalidArgumentError(
            "diag: The number of rows or columns is not consistent with the specified diagonals; expected "
            "at least "
            f"{least_rows} rows and {least_cols} columns, one of them exactly; got {rows} and {cols}."
        )
    batch = list(x.shape)[: -1 if count == 1 else -2]
    back = _inverse(_places(rows, cols, lo, hi, align), rows * cols)
    return reshape(_take(reshape(x, [*batch, count * longest]), back, padding_value), [*batch, rows, cols])


@composite("linalg.diag_part")
def diag_part(
    input: Any, name: str = "diag_part", k: Any = 0, padding_value: Any = 0, align: str = "RIGHT_LEFT"
) -> Any:
    """Diagonals of matrices: one along the last axis, or several along the last two, the highest first.

    Args:
      k: the diagonal (0 is the main one, 1 the one above it), or the lowest and the highest one.
      padding_value: fills up the shorter diagonals, on the side that `align` leaves free.
    """
    x = as_tensor(input)
    if isinstance(k, int):
        return matrix_diag_part(x, k)
    lo, hi = _limits("diag_part", k)
    rows, cols = _matrix("diag_part", x, lo, hi)
    places = _places(rows, cols, lo, hi, align)
    batch = list(x.shape)[:-2]
    return _take(reshape(x, [*batch, rows * cols]), places[0] if lo == hi else places, padding_value)


def _matrix(op: str, x: Any, lo: int, hi: int) -> tuple[int, int]:
    if x.ndim < 2:
        raise InvalidArgumentError(f"{op}: input must be at least 2-dim, received shape: {list(x.shape)}")
    rows, cols = x.shape[-2:]
    for d in (lo, hi):
        if d and not -rows < d < cols:
            raise InvalidArgumentError(
                f"{op}: diagonal index is out of bound: {d}. It must be between {1 - rows} and {cols - 1}"
            )
    return rows, cols


@composite("linalg.set_diag")
def set_diag(input: Any, diagonal: Any, name: str = "set_diag", k: Any = 0, align: str = "RIGHT_LEFT") -> Any:
    """`input` with the diagonals of its matrices replaced by `diagonal`. Arguments as in `diag_part`."""
    x = as_tensor(input)
    lo, hi = _limits("set_diag", k)
    rows, cols = _matrix("set_diag", x, lo, hi)
    places = _places(rows, cols, lo, hi, align)
    batch = list(x.shape)[:-2]
    new = as_tensor(diagonal, x)
    if new.ndim == 0:
        raise InvalidArgumentError("set_diag: diagonal must be at least 1-dim, received shape: []")
    expected = [*batch, *(places.shape if lo != hi else places.shape[1:])]
    if list(new.shape) != expected:
        raise InvalidArgumentError(
            f"set_diag: diagonal does not fit the matrices; expected shape {expected} for k = {k}; got "
            f"{list(new.shape)}."
        )
    back = _inverse(places, rows * cols)
    placed = reshape(_take(reshape(new, [*batch, places.size]), back, 0), [*batch, rows, cols])
    return select((back >= 0).reshape(rows, cols), placed, x)


@composite("linalg.tensor_diag")
def tensor_diag(diagonal: Any, name: str | None = None) -> Any:
    """A tensor of twice the rank, with `diagonal` where the two halves of the index are equal."""
    x = as_tensor(diagonal)
    if x.ndim == 0:
        raise InvalidArgumentError("tensor_diag: Input must be at least rank 1, got 0")
    return reshape(matrix_diag(reshape(x, [-1]), 0), [*x.shape, *x.shape])


@composite("linalg.tensor_diag_part")
def tensor_diag_part(input: Any, name: str | None = None) -> Any:
    """The elements of `input` where the two halves of the index are equal."""
    x = as_tensor(input)
    half = x.ndim // 2
    shape = list(x.shape)
    if x.ndim % 2 or x.ndim == 0:
        raise InvalidArgumentError(
            f"tensor_diag_part: The rank of the tensor should be even and positive, got shape {shape}"
        )
    for i in range(half):
        if shape[i] != shape[half + i]:
            raise InvalidArgumentError(
                f"tensor_diag_part: Invalid shape {shape}: dimensions {i} and {half + i} do not match."
            )
    size = int(np.prod(shape[:half]))
    return reshape(matrix_diag_part(reshape(x, [size, size]), 0), shape[:half])
