"""Reads protocol buffers in text form into nested dictionaries, so that they can be compared."""

from __future__ import annotations

import codecs
import re
from typing import Any

_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[{}<>\[\],;:]|[^\s{}<>\[\],;:"\']+|#[^\n]*')


def parse(text: str) -> dict[str, list[Any]]:
    """The fields of a message, each with the list of its values: numbers, bytes, names, or messages.

    Raises:
      ValueError: if the text is not a message.

    >>> from gradtape.io import proto_text
    >>> proto_text.parse("dim { size: 2 } name: 'a'")
    {'dim': [{'size': [2.0]}], 'name': [b'a']}
    """
    tokens = [t for t in _TOKENS.findall(text) if t[0] != "#" and t not in ",;"]
    message, rest = _message(tokens, 0)
    if rest != len(tokens):
        raise ValueError(f"not the text of a message: {tokens[rest]!r} ends nothing")
    return message


def _message(tokens: list[str], at: int) -> tuple[dict[str, list[Any]], int]:
    out: dict[str, list[Any]] = {}
    while at < len(tokens) and tokens[at] not in ("}", ">"):
        name, at = tokens[at], at + 1
        if at < len(tokens) and tokens[at] == ":":
            at += 1
        if at == len(tokens):
            raise ValueError(f"not the text of a message: {name!r} has no value")
        values = out.setdefault(name, [])
        if tokens[at] in ("{", "<"):
            inner, at = _message(tokens, at + 1)
            values.append(inner)
            at += 1
        elif tokens[at] == "[":
            end = tokens.index("]", at)
            values += map(_value, tokens[at + 1 : end])
            at = end + 1
        elif name == "size" and _value(tokens[at]) == 0:
            del out[name]  # the default value, which is not printed
            at += 1
        else:
            values.append(_value(tokens[at]))
            at += 1
            while at < len(tokens) and tokens[at][0] in "\"'" and isinstance(values[-1], bytes):
                values[-1] += _value(tokens[at])  # adjacent strings are concatenated
                at += 1
    return out, at


def _value(token: str) -> Any:
    if token[0] in "\"'":
        return codecs.escape_decode(token[1:-1].encode())[0]  # type: ignore[attr-defined]
    try:
        return float(token)
    except ValueError:
        return {"true": 1.0, "false": 0.0}.get(token, token)
