"""Basic string functions: join, length, lower, upper, strip, substr, format, and joins along axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError, OutOfRangeError, UnimplementedError
from gradtape._src.base.room import want_room
from gradtape._src.control.printing import format_tensor
from gradtape._src.control.text_ops import (
    bytes_of,
    each,
    elements,
    is_ragged,
    one_of,
    run,
    scalar,
    strings_of,
    tensor,
    typed,
)
from gradtape._src.ops.static import array_of, ints_of
from gradtape._src.tensors import conversion, text
from gradtape.strings import rows as ragged_rows

_UNITS = ("BYTE", "UTF8_CHAR")
_SPACE = b" \t\n\v\f\r"


# ---- one string at a time ---------------------------------------------------------------------------


def _starts(s: bytes) -> list[int]:
    """The positions at which UTF-8 characters begin: all bytes that are not continuation bytes."""
    return [i for i, b in enumerate(s) if b & 0xC0 != 0x80]


@one_call
def length(input: Any, unit: str = "BYTE", name: str | None = None) -> Any:
    """The length of each string, in bytes or in characters of UTF-8.

    >>> import gradtape as tf
    >>> tf.strings.length(["Hello", "é"], unit="UTF8_CHAR").numpy()
    array([5, 1], dtype=int32)
    """
    counted = one_of(unit, _UNITS, "unit", "StringLength")
    function = len if counted == "BYTE" else lambda s: sum(b & 0xC0 != 0x80 for b in s)
    return each("string_length", function, strings_of(input, "StringLength"), dtypes.int32)


def _encoding(encoding: Any, op: str) -> bool:
    """Whether strings are UTF-8, rather than plain bytes."""
    name_ = bytes_of(encoding).decode()
    if name_.lower() not in ("", "utf-8"):
        raise InvalidArgumentError(f"only utf-8 or '' (no encoding) is supported, received {name_} [Op:{op}]")
    return bool(name_)


@one_call
def lower(input: Any, encoding: str = "", name: str | None = None) -> Any:
    """Each string in lower case: its ASCII letters, or with `encoding="utf-8"` all letters.

    >>> import gradtape as tf
    >>> tf.strings.lower("CamelCase string and ALL CAPS").numpy()
    b'camelcase string and all caps'
    """
    utf = _encoding(encoding, "StringLower")
    function = (lambda s: s.decode(errors="replace").lower().encode()) if utf else bytes.lower
    return each("string_lower", function, strings_of(input, "StringLower"))


@one_call
def upper(input: Any, encoding: str = "", name: str | None = None) -> Any:
    """Each string in upper case: its ASCII letters, or with `encoding="utf-8"` all letters.

    >>> import gradtape as tf
    >>> tf.strings.upper("CamelCase").numpy()
    b'CAMELCASE'
    """
    utf = _encoding(encoding, "StringUpper")
    function = (lambda s: s.decode(errors="replace").upper().encode()) if utf else bytes.upper
    return each("string_upper", function, strings_of(input, "StringUpper"))


@one_call
def strip(input: Any, name: str | None = None) -> Any:
    """Each string without white space at either end.

    >>> import gradtape as tf
    >>> tf.strings.strip(["\\nTensorFlow", "  The python library  "]).numpy()
    array([b'TensorFlow', b'The python library'], dtype=object)
    """
    return each("string_strip", lambda s: s.strip(_SPACE), strings_of(input, "StringStrip"))


@one_call
def substr(input: Any, pos: Any, len: Any, unit: str = "BYTE", name: str | None = None) -> Any:
    """A part of each string; `input` and `pos` are broadcast against each other.

    Args:
      pos: where it begins; counted from the end if negative.
      len: its maximal length; of the shape of `pos`.
      unit: "BYTE", or "UTF8_CHAR" for characters.

    Raises:
      InvalidArgumentError: if a position is outside of its string; the message names the string.

    >>> import gradtape as tf
    >>> tf.strings.substr([b"Hello", b"World"], 1, 3).numpy()
    array([b'ell', b'orl'], dtype=object)
    """
    in_bytes = one_of(unit, _UNITS, "unit", "Substr") == "BYTE"
    x, at, count = strings_of(input, "Substr"), conversion.as_tensor(pos), conversion.as_tensor(len, pos)
    if at.dtype not in (dtypes.int32, dtypes.int64):
        raise InvalidArgumentError(
            f"Value for attr 'T' of {at.dtype.name} is not in the list of allowed values: int32, int64 [Op:Substr]"
        )
    count = typed(count, at.dtype, "Substr", 2)
    if at._dims != count._dims:
        raise InvalidArgumentError(
            f"pos and len should have the same shape, got: {list(at._dims)} vs. {list(count._dims)} [Op:Substr]"
        )
    try:
        shape = np.broadcast_shapes(x._dims, at._dims)
    except ValueError:
        raise InvalidArgumentError(
            f"Incompatible shapes: {list(x._dims)} vs. {list(at._dims)} [Op:Substr]"
        ) from None
    if at._dims not in ((), x._dims) and shape[2:]:
        raise UnimplementedError(
            f"Substr broadcast not implemented for {np.size(shape)} dimensions [Op:Substr]"
        )

    def forward(x: Any, at: Any, count: Any) -> list:
        parts = (text.array_of(x), array_of(at), array_of(count))
        words, begins, counts = (np.broadcast_to(p, shape).reshape(-1).tolist() for p in parts)
        cut = _bytes_from if in_bytes else _characters_from
        return [tensor(map(cut, words, begins, counts, range(words.__len__())), shape)]

    return run("substr", forward, [x, at, count], [(shape, dtypes.string)])[0]


def _bytes_from(s: bytes, at: int, count: int, place: int) -> bytes:
    if not -len(s) <= at <= len(s):
        raise InvalidArgumentError(f"pos {at} out of range for string {s!r} at index {place} [Op:Substr]")
    begin = at + len(s) if at < 0 else at
    return s[begin:] if count < 0 else s[begin : begin + count]


def _characters_from(s: bytes, at: int, count: int, place: int) -> bytes:
    starts = _starts(s)
    n = len(starts)
    if not -n <= at <= n:
        raise InvalidArgumentError(f"pos {at} out of range for string at index {place} [Op:Substr]")
    begin = at + n if at < 0 else at
    end = min(begin + max(count, 0), n)
    starts.append(len(s))
    return s[starts[begin] : starts[end]]


# ---- joining strings ------------------------------------------------------------------------------


@one_call
def join(inputs: Any, separator: Any = "", name: str | None = None) -> Any:
    """Joins tensors element by element; single strings are broadcast.

    >>> import gradtape as tf
    >>> tf.strings.join([["Tensor", "Array"], "Flow"], separator="-").numpy()
    array([b'Tensor-Flow', b'Array-Flow'], dtype=object)
    """
    if isinstance(inputs, (str, bytes)):
        raise TypeError(f"Expected list for 'inputs' argument to 'string_join' Op, not {inputs!r}.")
    if any(map(is_ragged, inputs)):
        return ragged_rows.join(join, list(inputs), separator)
    between = bytes_of(separator)
    xs = [strings_of(x, "StringJoin", i) for i, x in enumerate(inputs)]
    shape: tuple[int, ...] = next((x._dims for x in xs if x._dims), ())
    for x in xs:
        if x._dims not in ((), shape):
            raise InvalidArgumentError(
                f"Input shapes do not match: {list(shape)} vs. {list(x._dims)} [Op:StringJoin]"
            )

    def forward(*xs: Any) -> list:
        columns = [np.broadcast_to(text.array_of(x), shape).reshape(-1).tolist() for x in xs]
        rows = zip(*columns, strict=True) if columns else [()]
        return [tensor((between.join(row) for row in rows), shape)]

    return run("string_join", forward, xs, [(shape, dtypes.string)])[0]


@one_call
def reduce_join(
    inputs: Any, axis: Any = None, keepdims: bool = False, separator: Any = "", name: str | None = None
) -> Any:
    """Joins the strings along some axes.

    Args:
      axis: one or several, of which the first varies fastest; all of them by default.
      keepdims: whether to keep the axes, with length 1.

    >>> import gradtape as tf
    >>> tf.strings.reduce_join([["abc", "123"], ["def", "456"]], axis=-1, separator=" ").numpy()
    array([b'abc 123', b'def 456'], dtype=object)
    """
    if is_ragged(inputs):
        return ragged_rows.reduce_join(reduce_join, unsorted_segment_join, inputs, axis, keepdims, separator)
    x, between = strings_of(conversion.as_tensor(inputs), "ReduceJoin"), bytes_of(separator)
    rank = len(x._dims)
    given = list(range(rank))[::-1] if axis is None else _axes(axis)
    axes = [a + rank if a < 0 else a for a in given]
    for a, said in zip(axes, given, strict=True):
        if not 0 <= a < rank:
            raise OutOfRangeError(
                f"Invalid reduction dimension {said} for input with {rank} dimension(s) [Op:ReduceJoin]"
            )
    for k, a in enumerate(axes):
        if a in axes[:k]:
            raise InvalidArgumentError(f"Duplicate reduction dimension {a} [Op:ReduceJoin]")
    remaining = [a for a in range(rank) if a not in axes]
    shape = tuple(1 if a in axes else d for a, d in enumerate(x._dims) if keepdims or a in remaining)
    rows = int(np.prod([x._dims[a] for a in remaining], dtype=int))
    # Axes are joined one after the other; the first is innermost.
    order = [*remaining, *axes[::-1]]

    def forward(x: Any) -> list:
        words = text.array_of(x).transpose(order).reshape(rows, -1 if rows else 0).tolist()
        return [tensor(map(between.join, words), shape)]

    return run("reduce_join", forward, [x], [(shape, dtypes.string)])[0]


def _axes(axis: Any) -> list[int]:
    return [int(axis)] if isinstance(axis, (int, np.integer)) else [int(a) for a in np.ravel(ints_of(axis))]


@one_call
def unsorted_segment_join(
    inputs: Any, segment_ids: Any, num_segments: Any, separator: Any = "", name: str | None = None
) -> Any:
    """Joins the strings of each segment.

    >>> import gradtape as tf
    >>> tf.strings.unsorted_segment_join(["this", "a", "is"], [1, 0, 1], 2, ":").numpy()
    array([b'a', b'this:is'], dtype=object)
    """
    x, ids, between = (
        strings_of(inputs, "UnsortedSegmentJoin"),
        conversion.as_tensor(segment_ids),
        bytes_of(separator),
    )
    count = int(np.ravel(ints_of(num_segments))[0])
    depth = len(ids._dims)
    if count < 0:
        raise InvalidArgumentError(
            f"Number of segments must be non-negative but got {count} [Op:UnsortedSegmentJoin]"
        )
    if not depth:
        raise InvalidArgumentError("Segment_id cannot have rank 0 [Op:UnsortedSegmentJoin]")
    for k, (d, n) in enumerate(zip(ids._dims, (*x._dims, *[-1] * depth), strict=False)):
        if d != n:
            raise InvalidArgumentError(
                f"Segment dimension is {d} while input dimension is {n} in rank {k} [Op:UnsortedSegmentJoin]"
            )
    shape = (count, *x._dims[depth:])

    def forward(x: Any, ids: Any) -> list:
        width = int(np.prod(shape[1:], dtype=int))
        words = np.full(want_room(count, width), b"", object)
        parts: dict[int, list[bytes]] = {}
        rows = text.array_of(x).reshape(ids._numel, width)
        for k, (at, row) in enumerate(zip(elements(ids), rows.tolist(), strict=True)):
            if not 0 <= at < count:
                raise InvalidArgumentError(
                    "segment_ids are not allowed to exceed num_segments or to have negative values. "
                    f"Got {at} at position {k} [Op:UnsortedSegmentJoin]"
                )
            for column, word in enumerate(row):
                parts.setdefault(at * width + column, []).append(word)
        for at, words_of in parts.items():
            words[at] = between.join(words_of)
        return [text.make(words.reshape(shape))]

    return run("unsorted_segment_join", forward, [x, ids], [(shape, dtypes.string)])[0]


# ---- tensors in sentences ---------------------------------------------------------------------------


@one_call
def format(
    template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3, name: str | None = None
) -> Any:
    """A string with tensors inserted, in the format of `tf.print`.

    Args:
      template: a string with a placeholder for each tensor.
      inputs: a tensor, or a list of them.
      summarize: the number of elements to show at both ends of each axis; -1 for all.

    Raises:
      ValueError: if the numbers of tensors and placeholders differ.

    >>> import gradtape as tf
    >>> tf.strings.format("tensor: {}, suffix", tf.range(5)).numpy()
    b'tensor: [0 1 2 3 4], suffix'
    """
    if isinstance(inputs, (_core.Tensor, _core.Variable)) or is_ragged(inputs):
        inputs = [inputs]
    if template.count(placeholder) != len(inputs):
        raise ValueError(
            f"The template expects {template.count(placeholder)} tensors, but the inputs only has {len(inputs)}. Please "
            "ensure the number of placeholders in template matches inputs length."
        )
    parts = [bytes_of(p) for p in template.split(placeholder)]

    are_text = [is_ragged(x) for x in inputs]

    def forward(*xs: Any) -> list:
        words = [
            scalar(x) if is_text else format_tensor(x, summarize).encode(errors="surrogateescape")
            for x, is_text in zip(xs, are_text, strict=True)
        ]
        return [tensor([b"".join(p for pair in zip(parts, [*words, b""], strict=True) for p in pair)], ())]

    xs = [ragged_rows.shown(x, summarize) if is_ragged(x) else ops.convert_to_tensor(x) for x in inputs]
    return run("string_format", forward, xs, [((), dtypes.string)])[0]
