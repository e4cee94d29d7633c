"""Regular expressions: regex_replace, regex_full_match."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from gradtape._src.base import dtypes
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.control.text_ops import elements, over, run, scalar, strings_of, tensor
from gradtape.strings.patterns import compiled

_STRAY = "surrogateescape"  # preserves bytes that are not UTF-8


def _scalar(value: Any, what: str, op: str, place: int) -> Any:
    x = strings_of(value, op, place)
    if x._dims:
        raise InvalidArgumentError(f"{what} must be scalar, but received {list(x._dims)} [Op:{op}]")
    return x


@one_call
def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Any:
    """Whether each whole string matches a pattern.

    Args:
      pattern: a regular expression in the syntax of RE2.

    Raises:
      InvalidArgumentError: if the pattern is invalid.

    >>> import gradtape as tf
    >>> tf.strings.regex_full_match(["TF lib", "lib TF"], ".*lib$").numpy()
    array([ True, False])
    """
    x, rule = strings_of(input, "RegexFullMatch"), _scalar(pattern, "Pattern", "RegexFullMatch", 1)

    def forward(x: Any, rule: Any) -> list:
        find = compiled(scalar(rule)).fullmatch
        matches = [find(s.decode(errors=_STRAY)) is not None for s in elements(x)]
        return [tensor(matches, x._dims, dtypes.bool)]

    return run("regex_full_match", forward, [x, rule], [(x._dims, dtypes.bool)])[0]


@one_call
def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Any:
    """Replaces matches of a pattern in each string.

    Args:
      pattern: a regular expression in the syntax of RE2.
      rewrite: the replacement; `\\\\1` to `\\\\9` are groups of the match, `\\\\0` is the whole match.
      replace_global: whether to replace all matches, or only the first one.

    >>> import gradtape as tf
    >>> tf.strings.regex_replace("Text with tags.<br /><b>contains html</b>", "<[^>]+>", " ").numpy()
    b'Text with tags.  contains html '
    """
    x, rule = strings_of(input, "RegexReplace"), _scalar(pattern, "Pattern", "RegexReplace", 1)
    new = _scalar(rewrite, "Rewrite", "RegexReplace", 2)

    def forward(x: Any, rule: Any, new: Any) -> list:
        function = _replacer(compiled(scalar(rule)), scalar(new), replace_global)
        return [tensor(over(function, elements(x), x._dims), x._dims)]

    return run("regex_replace", forward, [x, rule, new], [(x._dims, dtypes.string)])[0]


def _replacer(pattern: re.Pattern[str], rewrite: bytes, everywhere: bool) -> Callable[[bytes], bytes]:
    parts = re.findall(r"\\(.?)|([^\\]+)", rewrite.decode(errors=_STRAY), re.DOTALL)
    groups = [int(escaped) for escaped, plain in parts if not plain and escaped.isdigit()]
    if any(g > pattern.groups for g in groups):
        return lambda s: s  # as RE2 does
    # RE2 stops writing at an invalid escape.
    valid = [bool(plain) or escaped.isdigit() or escaped == "\\" for escaped, plain in parts]
    parts = parts[: valid.index(False)] if False in valid else parts

    def written(match: re.Match[str]) -> str:
        return "".join(
            plain or ("\\" if escaped == "\\" else match[int(escaped)] or "") for escaped, plain in parts
        )

    def replace(s: bytes) -> bytes:
        words, out = s.decode(errors=_STRAY), []
        at, last = 0, -1
        while at <= len(words) and (match := pattern.search(words, at)):
            if match.start() == match.end() == last:  # an empty match directly after a match
                out.append(words[at : at + 1])
                at += 1
                continue
            out += [words[at : match.start()], written(match)]
            at = last = match.end()
            if not everywhere:
                break
        return "".join([*out, words[at:]]).encode(errors=_STRAY)

    return replace
