"""Splits strings: split, bytes_split, ngrams. Results have one more axis, which is ragged."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gradtape
from gradtape._src.base import dtypes
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.room import want_room
from gradtape._src.control.text_ops import (
    bytes_of,
    elements,
    is_ragged,
    over,
    run,
    scalar,
    strings_of,
    tensor,
)

# Ragged and sparse tensors are imported on first use.
_tf: Any = gradtape


def pieces(
    name: str,
    function: Callable[..., Sequence[list]],
    input: Any,
    kinds: Sequence[dtypes.DType],
    op: str,
    attributes: Sequence[Any] = (),
) -> tuple:
    """The lists that a function returns for each string, as ragged tensors; as plain tensors for a single string.

    Args:
      kinds: the element types of the lists.
      attributes: scalar tensors, which are passed to the function before the string.
    """
    if is_ragged(input):
        inner = pieces(name, function, input.flat_values, kinds, op, attributes)
        return tuple(input.with_flat_values(x) for x in inner)
    x = strings_of(input, op)
    if len(x._dims) > 1:
        rows = _tf.RaggedTensor.from_tensor(x, ragged_rank=len(x._dims) - 1)
        return pieces(name, function, rows, kinds, op, attributes)

    def forward(x: Any, *given: Any) -> list:
        lists = over(functools.partial(function, *map(scalar, given)), elements(x), x._dims)
        splits = [0, *itertools.accumulate(len(parts[0]) for parts in lists)]
        flat = [list(itertools.chain.from_iterable(p[k] for p in lists)) for k in range(len(kinds))]
        values = [tensor(v, [len(v)], kind) for v, kind in zip(flat, kinds, strict=True)]
        return [tensor(splits, [len(splits)], dtypes.int64), *values]

    specs = [((x._numel + 1,), dtypes.int64), *(((None,), kind) for kind in kinds)]
    splits, *values = run(name, forward, [x, *attributes], specs)
    if not x._dims:
        return tuple(values)
    return tuple(_tf.RaggedTensor.from_row_splits(v, splits, validate=False) for v in values)


@one_call
def split(input: Any, sep: Any = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """Splits each string: adds an axis, which is ragged unless there is a single string.

    Args:
      sep: the separator; by default white space, any amount of which counts as one separator.
      maxsplit: the largest number of splits; -1 for no limit.

    >>> import gradtape as tf
    >>> tf.strings.split("hello world").numpy()
    array([b'hello', b'world'], dtype=object)
    >>> tf.strings.split(["hello world", "a b c"])
    <tf.RaggedTensor [[b'hello', b'world'], [b'a', b'b', b'c']]>
    """
    between = strings_of("" if sep is None else sep, "StringSplitV2", 1)
    if between._dims:
        raise InvalidArgumentError(
            f"sep must be a scalar, got shape: {list(between._dims)} [Op:StringSplitV2]"
        )

    def cut(sep: bytes, s: bytes) -> list[list[bytes]]:
        return [s.split(sep or None, maxsplit)]

    return pieces("string_split", cut, input, (dtypes.string,), "StringSplitV2", [between])[0]


@one_call
def bytes_split(input: Any, name: str | None = None) -> Any:
    """The bytes of each string: adds an axis, which is ragged unless there is a single string.

    >>> import gradtape as tf
    >>> tf.strings.bytes_split("hello").numpy()
    array([b'h', b'e', b'l', b'l', b'o'], dtype=object)
    """

    def cut(s: bytes) -> list[list[bytes]]:
        return [[s[i : i + 1] for i in range(len(s))]]

    return pieces("bytes_split", cut, input, (dtypes.string,), "StringSplit")[0]


# ---- windows over strings ---------------------------------------------------------------------------


def _padding(pad_values: Any, padding_width: int | None) -> tuple[bytes, bytes, int]:
    """The padding on the left and on the right, and how often; -1 for one less than the width."""
    left, right = pad_values if isinstance(pad_values, (list, tuple)) else (pad_values, pad_values)
    if pad_values is not None and not all(isinstance(p, (str, bytes)) for p in (left, right)):
        raise TypeError("pad_values must be a string, tuple of strings, or None.")
    if padding_width is not None and padding_width < 1:
        raise ValueError("padding_width must be greater than 0.")
    if padding_width is not None and pad_values is None:
        raise ValueError("pad_values must be provided if padding_width is set.")
    if pad_values is None:
        return b"", b"", 0
    return bytes_of(left), bytes_of(right), -1 if padding_width is None else padding_width


def _count(length: int, width: int, pad: int) -> int:
    most = width - 1
    return max(0, length + 2 * (most if pad < 0 else min(pad, most)) - width + 1)


@one_call
def ngrams(
    data: Any,
    ngram_width: Any,
    separator: Any = " ",
    pad_values: Any = None,
    padding_width: int | None = None,
    preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Any:
    """Joins neighbouring strings along the last axis, for all windows of a width.

    Args:
      ngram_width: the width, or several; windows of the first one come first.
      separator: inserted between the strings of a window.
      pad_values: a string added before and after each row, or a pair of them.
      padding_width: how often; one less than the width by default.
      preserve_short_sequences: whether a row that is too short for any window becomes one window.

    >>> import gradtape as tf
    >>> tf.strings.ngrams(["A", "B", "C", "D"], 2).numpy()
    array([b'A B', b'B C', b'C D'], dtype=object)
    """
    left, right, pad = _padding(pad_values, padding_width)
    widths = list(ngram_width) if isinstance(ngram_width, (list, tuple)) else [ngram_width]
    if any(w < 1 for w in widths):
        raise ValueError(f"All ngram_widths must be greater than 0. Got {ngram_width}")
    between = bytes_of(separator)

    def windows(row: list[bytes]) -> list[bytes]:
        out = []
        for width in widths:
            around = width - 1 if pad < 0 else min(pad, width - 1)
            count = _count(len(row), width, pad)
            want_room(count, width)
            padded = [left] * around + row + [right] * around
            out += [between.join(padded[i : i + width]) for i in range(count)]
        if preserve_short_sequences and not out and row:
            around = max(pad, 0)
            out.append(between.join([left] * around + row + [right] * around))
        return out

    if is_ragged(data):
        if data.ragged_rank > 1:
            args = (ngram_width, separator, pad_values, padding_width, preserve_short_sequences)
            return data.with_values(ngrams(data.values, *args))
        values = strings_of(data.values, "StringNGrams")
        return _ragged_windows(windows, values, data.row_splits)
    x = strings_of(data, "StringNGrams")
    if not x._dims:
        raise ValueError("Data must have rank>0")
    length = x._dims[-1]
    count = sum(_count(length, w, pad) for w in widths) or int(preserve_short_sequences and length > 0)
    shape = (*x._dims[:-1], count)

    def forward(x: Any) -> list:
        words = elements(x)
        rows = [words[i * length : (i + 1) * length] for i in range(int(np.prod(shape[:-1], dtype=int)))]
        return [tensor(itertools.chain.from_iterable(map(windows, rows)), shape)]

    return run("string_ngrams", forward, [x], [(shape, dtypes.string)])[0]


def _ragged_windows(windows: Callable[[list[bytes]], list[bytes]], values: Any, splits: Any) -> Any:
    def forward(values: Any, splits: Any) -> list:
        words, ends = elements(values), elements(splits)
        rows = [windows(words[a:b]) for a, b in itertools.pairwise(ends)]
        new = [0, *itertools.accumulate(map(len, rows))]
        flat = list(itertools.chain.from_iterable(rows))
        return [tensor(flat, [len(flat)]), tensor(new, [len(new)], splits.dtype)]

    specs = [((None,), dtypes.string), (splits._dims, splits.dtype)]
    out, new = run("string_ngrams", forward, [values, splits], specs)
    return _tf.RaggedTensor.from_row_splits(out, new, validate=False)
