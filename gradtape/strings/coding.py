"""Converts bytes to characters and back: encodings, and the treatment of invalid bytes.

Python's codecs do the work. Like ICU, they treat the longest part of a damaged character as one error.
"""

from __future__ import annotations

import codecs
from typing import Any

from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.control.text_ops import Bad, one_of

OUTPUTS = ("UTF-8", "UTF-16-BE", "UTF-32-BE")
ERRORS = ("strict", "replace", "ignore")
_LAST = 0x10FFFF
_CONTROLS = 32
# ICU has characters for all bytes of these encodings; Python's codecs leave gaps.
_WITH_GAPS = {"cp1252": "latin-1"}


def codec(encoding: Any, op: str) -> str:
    """Python's name for an encoding.

    Raises:
      InvalidArgumentError: if there is no encoding of this name.
    """
    word = encoding.decode() if isinstance(encoding, bytes) else encoding
    try:
        info = codecs.lookup(word.replace("UTF-16-", "utf-16").replace("UTF-32-", "utf-32"))
        if not info._is_text_encoding:
            raise LookupError
        return info.name
    except (LookupError, ValueError):
        raise InvalidArgumentError(
            f"Could not create converter for input encoding: {word} [Op:{op}]"
        ) from None


def check(errors: Any, replacement_char: int, op: str) -> str:
    """Checks the arguments for the treatment of errors."""
    policy = one_of(errors, ERRORS, "errors", op)
    if not 0 <= replacement_char <= _LAST:
        raise InvalidArgumentError(f"replacement_char out of unicode codepoint range [Op:{op}]")
    return policy


def _parts(s: bytes, codec: str) -> list[tuple[str | None, int]]:
    """The parts of a string, each with its position; None for invalid bytes."""
    out: list[tuple[str | None, int]] = []
    at = 0
    while at < len(s):
        try:
            out.append((s[at:].decode(codec), at))
            break
        except UnicodeDecodeError as e:
            if e.start:
                out.append((s[at : at + e.start].decode(codec), at))
            bad = s[at + e.start : at + e.end]
            # Half of a UTF-16 surrogate pair is one error, whatever follows it.
            size = 2 if codec == "utf-16-be" and len(bad) > 2 else 4 if codec == "utf-32-be" else len(bad)
            gap = _WITH_GAPS.get(codec)
            out.append((bad.decode(gap) if gap else None, at + e.start))
            at += e.start + min(size, len(s) - at - e.start)
    return out


def characters(
    s: bytes, codec: str, errors: str, replacement: int, controls: bool = False
) -> tuple[list[int], list[int]]:
    """The code points of a string, and the position of each.

    Raises:
      Bad: if there are invalid bytes, and `errors` is "strict".
    """
    codes: list[int] = []
    starts: list[int] = []
    for piece, at in _parts(s, codec):
        if piece is None:
            if errors == "strict":
                raise Bad(f"Invalid formatting on input string: byte {at} of {s[:40]!r} is no {codec}")
            if errors == "replace":
                codes.append(replacement)
                starts.append(at)
            continue
        for c in piece:
            codes.append(ord(c))
            starts.append(at)
            at += _width(c, codec)
    if controls:
        codes = [replacement if c < _CONTROLS else c for c in codes]
    return codes, starts


def _width(c: str, codec: str) -> int:
    if codec == "utf-8":
        return 1 if c < "\x80" else 2 if c < "\u0800" else 3 if c < "\U00010000" else 4
    return len(c.encode(_WITH_GAPS.get(codec, codec)))


def is_scalar(code: int) -> bool:
    """Whether a number is a code point that can be encoded."""
    return 0 <= code <= _LAST and not 0xD800 <= code < 0xE000


def encoded(codes: list[int], codec: str, errors: str, replacement: int) -> bytes:
    """A string from code points.

    Raises:
      Bad: if one is invalid, and `errors` is "strict".
    """
    out = []
    for k, code in enumerate(codes):
        if not is_scalar(code):
            if errors == "strict":
                raise Bad(
                    f"Code point is out of range for Unicode, or is a surrogate. Got {code}, number {k}"
                )
            if errors == "ignore":
                continue
            code = replacement
        out.append(chr(code))
    return "".join(out).encode(codec, "replace")
