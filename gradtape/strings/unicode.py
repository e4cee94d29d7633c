"""Text as code points: unicode_decode, unicode_encode, unicode_split, unicode_transcode, unicode_script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape._src.base import dtypes
from gradtape._src.base.calls import one_call
from gradtape._src.control.text_ops import (
    each,
    elements,
    is_ragged,
    one_of,
    over,
    run,
    strings_of,
    tensor,
    typed,
)
from gradtape.strings import coding, scripts
from gradtape.strings.splitting import pieces

_UNKNOWN = 0xFFFD


def _decoder(
    encoding: Any, errors: Any, replacement_char: int, controls: bool, op: str
) -> Callable[[bytes], tuple[list[int], list[int]]]:
    codec, policy = coding.codec(encoding, op), coding.check(errors, replacement_char, op)
    return lambda s: coding.characters(s, codec, policy, replacement_char, controls)


def _decoding(name: str, op: str, offsets: bool, doc: str) -> Callable:
    def decoded(
        input: Any,
        input_encoding: str,
        errors: str = "replace",
        replacement_char: int = _UNKNOWN,
        replace_control_characters: bool = False,
        name: str | None = None,
    ) -> Any:
        decode = _decoder(input_encoding, errors, replacement_char, replace_control_characters, op)
        return _pieces(decoded.__name__, decode, input, dtypes.int32, offsets, op)

    return _named(decoded, name, doc)


def _pieces(name: str, function: Callable, input: Any, dtype: Any, offsets: bool, op: str) -> Any:
    """The parts of each string, and their positions if `offsets` is set."""
    if offsets:
        return pieces(name, function, input, (dtype, dtypes.int64), op)
    return pieces(name, lambda s: function(s)[:1], input, (dtype,), op)[0]


def _named(function: Callable, name: str, doc: str) -> Callable:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return one_call(function)


unicode_decode = _decoding(
    "unicode_decode",
    "UnicodeDecode",
    False,
    """The code points of each string: one more axis, which is ragged unless there is one string.

    Args:
      input_encoding: "UTF-8", "UTF-16-BE", or another that Python knows.
      errors: how to handle invalid bytes: "replace", "ignore", or "strict".
      replacement_char: the code point that replaces them.
      replace_control_characters: whether the code points below 32 are replaced as well.

    Raises:
      InvalidArgumentError: if there are such bytes, and `errors` is "strict".

    >>> import gradtape as tf
    >>> tf.strings.unicode_decode("héy", "UTF-8").numpy()
    array([104, 233, 121], dtype=int32)
    """,
)
unicode_decode_with_offsets = _decoding(
    "unicode_decode_with_offsets",
    "UnicodeDecodeWithOffsets",
    True,
    """As `unicode_decode`, and the position in bytes at which each character begins in its string.""",
)


def _splitter(
    encoding: Any, errors: Any, replacement_char: int
) -> Callable[[bytes], tuple[list[bytes], list[int]]]:
    decode = _decoder(encoding, errors, replacement_char, False, "UnicodeDecode")
    codec = coding.codec(
        one_of(encoding, coding.OUTPUTS, "output_encoding", "UnicodeEncode"), "UnicodeEncode"
    )

    def split(s: bytes) -> tuple[list[bytes], list[int]]:
        codes, starts = decode(s)
        return [coding.encoded([c], codec, errors, replacement_char) for c in codes], starts

    return split


def _splitting(name: str, op: str, offsets: bool, doc: str) -> Callable:
    def split(
        input: Any,
        input_encoding: str,
        errors: str = "replace",
        replacement_char: int = _UNKNOWN,
        name: str | None = None,
    ) -> Any:
        parts = _splitter(input_encoding, errors, replacement_char)
        return _pieces(split.__name__, parts, input, dtypes.string, offsets, op)

    return _named(split, name, doc)


unicode_split = _splitting(
    "unicode_split",
    "UnicodeDecode",
    False,
    """The characters of each string: one more axis, which is ragged unless there is one string.

    >>> import gradtape as tf
    >>> tf.strings.unicode_split("hé", "UTF-8").numpy()
    array([b'h', b'\\xc3\\xa9'], dtype=object)
    """,
)
unicode_split_with_offsets = _splitting(
    "unicode_split_with_offsets",
    "UnicodeDecodeWithOffsets",
    True,
    """As `unicode_split`, and the position in bytes at which each character begins in its string.""",
)


@one_call
def unicode_encode(
    input: Any,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = _UNKNOWN,
    name: str | None = None,
) -> Any:
    """The strings of code points along the last axis.

    Args:
      output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
      errors: how to handle numbers that are not code points: "replace", "ignore", or "strict".

    >>> import gradtape as tf
    >>> tf.strings.unicode_encode([104, 233], "UTF-8").numpy()
    b'h\\xc3\\xa9'
    """
    op = "UnicodeEncode"
    codec = coding.codec(one_of(output_encoding, coding.OUTPUTS, "output_encoding", op), op)
    policy = coding.check(errors, replacement_char, op)

    def encode(codes: list[int]) -> bytes:
        return coding.encoded(codes, codec, policy, replacement_char)

    if is_ragged(input):
        if input.ragged_rank > 1 or len(input.flat_values.shape) > 1:
            inner = unicode_encode(input.values, output_encoding, errors, replacement_char)
            return input.with_values(inner)
        values, splits = typed(input.values, dtypes.int32, op), input.row_splits
        shape = (splits._dims[0] - 1,)

        def rows(values: Any, splits: Any) -> list:
            codes, ends = elements(values), elements(splits)
            parts = [codes[a:b] for a, b in zip(ends, ends[1:], strict=False)]
            return [tensor(over(encode, parts, shape), shape)]

        return run("unicode_encode", rows, [values, splits], [(shape, dtypes.string)])[0]
    x = typed(input, dtypes.int32, op)
    if not x._dims:
        raise ValueError("input_tensor's rank must be at least 1.")

    def forward(x: Any) -> list:
        count = int(np.prod(x._dims[:-1], dtype=int))
        return [
            tensor(over(encode, x.numpy().reshape(count, x._dims[-1]).tolist(), x._dims[:-1]), x._dims[:-1])
        ]

    return run("unicode_encode", forward, [x], [(x._dims[:-1], dtypes.string)])[0]


@one_call
def unicode_transcode(
    input: Any,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = _UNKNOWN,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """Each string in another encoding.

    Args:
      output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".

    >>> import gradtape as tf
    >>> tf.strings.unicode_transcode("hé", "UTF-8", "UTF-16-BE").numpy()
    b'\\x00h\\x00\\xe9'
    """
    op = "UnicodeTranscode"
    codec = coding.codec(one_of(output_encoding, coding.OUTPUTS, "output_encoding", op), op)
    decode = _decoder(input_encoding, errors, replacement_char, replace_control_characters, op)
    return each(
        "unicode_transcode",
        lambda s: coding.encoded(decode(s)[0], codec, "replace", replacement_char),
        strings_of(input, op),
    )


@one_call
def unicode_script(input: Any, name: str | None = None) -> Any:
    """The script of each code point, as numbered by ICU; -1 for invalid code points.

    >>> import gradtape as tf
    >>> tf.strings.unicode_script([ord("a"), ord("Ж"), ord("1")]).numpy()
    array([25,  8,  0], dtype=int32)
    """
    x = typed(input, dtypes.int32, "UnicodeScript")
    return each("unicode_script", scripts.script, x, dtypes.int32)
