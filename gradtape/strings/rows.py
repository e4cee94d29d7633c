"""String functions of ragged tensors: joins, and formatting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape import ragged
from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.control.text_ops import elements, is_ragged, run, tensor
from gradtape.strings.numbers import as_string


def join(function: Callable, inputs: list, separator: Any) -> Any:
    """Joins tensors element by element; their rows must have the same lengths."""
    return ragged.map_flat_values(function, inputs, separator)


def reduce_join(
    function: Callable, segments: Callable, x: Any, axis: Any, keepdims: bool, separator: Any
) -> Any:
    """Joins the strings along some axes.

    Args:
      function, segments: `tf.strings.reduce_join` and `tf.strings.unsorted_segment_join`.
    """
    if axis is None:
        return function(x.flat_values, None, keepdims, separator)
    rank = x.shape.rank
    axes = sorted(int(a) + rank * (int(a) < 0) for a in np.ravel(axis))
    if any(not 0 <= a < rank for a in axes):
        raise ValueError(f"axis={axis} out of bounds: expected {-rank}<=axis<{rank}")
    for a in reversed(axes):
        x = _along(function, segments, x, a, keepdims, separator)
    return x


def _along(function: Callable, segments: Callable, x: Any, axis: int, keepdims: bool, separator: Any) -> Any:
    if not is_ragged(x):
        return function(x, axis, keepdims, separator)
    if axis > 1:
        return x.with_values(_along(function, segments, x.values, axis - 1, keepdims, separator))
    rows = x.value_rowids()
    if axis == 1:
        out = segments(x.values, rows, x.nrows(), separator)
    else:
        places = ops.range_(ops.shape(x.values, out_type=rows.dtype)[0]) - ops.gather(x.row_starts(), rows)
        longest = ops.reduce_max(x.row_lengths()) if x.row_lengths()._numel else 0
        out = segments(x.values, places, longest, separator)
    return ops.expand_dims(out, axis) if keepdims else out


# ---- in sentences -----------------------------------------------------------------------------------


def shown(x: Any, summarize: int) -> Any:
    """A ragged tensor as one string: `[[1, 2], [3]]`."""
    if summarize != -1 and summarize < 1:
        raise ValueError(f"Expected summarize to be -1 or a positive int, got {summarize!r}")
    values = x.flat_values
    words = values if values.dtype is dtypes.string else as_string(values)
    quoted = values.dtype is dtypes.string

    def forward(words: Any, *splits: Any) -> list:
        flat = [_quoted(w) if quoted else w for w in elements(words)]
        rows: list = flat
        for size in reversed(words._dims[1:]):
            rows = [_listed(rows[i : i + size], summarize) for i in range(0, len(rows), size)]
        for s in reversed(splits):
            ends = elements(s)
            rows = [_listed(rows[a:b], summarize) for a, b in zip(ends, ends[1:], strict=False)]
        return [tensor([_listed(rows, summarize)], ())]

    return run("ragged_to_string", forward, [words, *x.nested_row_splits], [((), dtypes.string)])[0]


def _quoted(word: bytes) -> bytes:
    return b"'" + word.replace(b"\\", b"\\\\").replace(b"'", b"\\'") + b"'"


def _listed(rows: list[bytes], summarize: int) -> bytes:
    if summarize != -1 and len(rows) > 2 * summarize:
        rows = [*rows[:summarize], b"...", *rows[-summarize:]]
    return b"[" + b", ".join(rows) + b"]"
