"""Regular expressions in the syntax of RE2, as patterns for Python's `re`.

RE2 has no look-around and no back-references; they are rejected here, too. Its classes (`[[:alpha:]]`, `\\pL`),
flags (`(?U)`) and anchors are translated. Differences remain: `re` uses backtracking, so that a pattern such as
`(a*)*b` can take exponential time, and single bytes cannot be matched (`\\C`).
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from typing import Any

from gradtape._src.base.errors import InvalidArgumentError
from gradtape.strings import scripts

# Bytes that are not UTF-8 become surrogates (PEP 383), which are in no class of RE2.
_STRAY = "\udc80-\udcff"
_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": "\\x00-\\x7f", "blank": "\\t ", "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ", "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_PERL = {"d": "0-9", "s": "\\t\\n\\f\\r ", "w": "0-9A-Za-z_"}
_PLAIN = {"a": "\\x07", "f": "\\f", "n": "\\n", "r": "\\r", "t": "\\t", "v": "\\v"}
_ANCHORS = {"A": r"\A", "z": r"\Z", "b": r"(?a:\b)", "B": r"(?a:\B)"}
_FLAGS = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
_NAMED = re.compile(r"\(\?P?<([A-Za-z_]\w*)>")
_REPEAT = re.compile(r"\{(\d+)(,?)(\d*)\}")


class _Wrong(ValueError):
    """An error message of RE2 about a pattern."""


@functools.lru_cache(256)
def compiled(pattern: bytes) -> re.Pattern[str]:
    """The Python pattern for a pattern of RE2.

    Raises:
      InvalidArgumentError: if it is not valid in RE2.
    """
    words = pattern.decode(errors="surrogateescape")
    try:
        return re.compile(_Reader(words).whole())
    except (_Wrong, re.error, RecursionError, OverflowError) as e:
        raise InvalidArgumentError(f"Invalid pattern: {words}, error: {e}") from None


class _Reader:
    """Translates a pattern of RE2 from left to right."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.at = pattern, 0
        self.flags = frozenset("")

    def whole(self) -> str:
        out = self.alternatives()
        if self.at < len(self.pattern):
            raise _Wrong(f"unexpected ): {self.pattern}")
        return out

    def alternatives(self) -> str:
        """Everything up to the end of a group, with the flags that are set there."""
        before, out, opened = self.flags, [], 0
        repeatable = False
        while self.at < len(self.pattern) and self.pattern[self.at] != ")":
            c = self.pattern[self.at]
            if c in "*+?" or (c == "{" and _REPEAT.match(self.pattern, self.at)):
                out.append(self.repetition(repeatable))
                repeatable = False
                continue
            if c == "|":
                self.at += 1
                # Flags set within a group hold to its end, also after a bar.
                out.append(")" * opened + "|" + ("(?i:" if "i" in self.flags else ""))
                opened = int("i" in self.flags)
                repeatable = False
                continue
            flags = _FLAGS.match(self.pattern, self.at)
            if flags and flags[3] == ")":
                self.at = flags.end()
                out.append(")" * opened)
                self.set_flags(flags)
                opened = int("i" in self.flags)
                out.append("(?i:" * opened + ("" if opened else "(?:)"))
                repeatable = False
                continue
            out.append(self.atom())
            repeatable = True
        self.flags = before
        return "".join(out) + ")" * opened

    def set_flags(self, match: re.Match[str]) -> None:
        if match[2] is None and not match[1] and match[3] == ")":
            raise _Wrong(f"missing argument to repetition operator: {match[0]}")
        self.flags = (self.flags | set(match[1])) - set(match[2] or "")

    def repetition(self, repeatable: bool) -> str:
        start, match = self.at, _REPEAT.match(self.pattern, self.at)
        self.at = match.end() if match else self.at + 1
        operator = self.pattern[start : self.at]
        if not repeatable:
            previous = self.pattern[max(start - 1, 0) : start]
            if previous and previous in "*+?}":
                raise _Wrong(f"bad repetition operator: {previous}{operator}")
            raise _Wrong(f"no argument for repetition operator: {operator}")
        if match and (int(match[1]) > 1000 or int(match[3] or 0) > 1000):
            raise _Wrong(f"bad repetition argument: {operator}")
        lazy = self.pattern[self.at : self.at + 1] == "?"
        self.at += lazy
        return operator + "?" * (lazy != ("U" in self.flags))

    def atom(self) -> str:
        c = self.pattern[self.at]
        if c == "(":
            return self.group()
        if c == "[":
            return self.character_class()
        if c == "\\":
            return self.escape()
        self.at += 1
        if c == ".":
            return f"[^{_STRAY}]" if "s" in self.flags else f"[^\\n{_STRAY}]"
        if c == "^":
            return r"(?:\A|(?<=\n))" if "m" in self.flags else r"\A"
        if c == "$":
            return r"(?=\n|\Z)" if "m" in self.flags else r"\Z"
        return re.escape(c)

    def group(self) -> str:
        start = self.at
        flags, named = _FLAGS.match(self.pattern, start), _NAMED.match(self.pattern, start)
        before = self.flags
        if flags:
            self.at = flags.end()
            self.set_flags(flags)
            on, off = "i" in self.flags - before, "i" in before - self.flags
            opening = "(?i:" if on else "(?-i:" if off else "(?:"
        elif named:
            self.at = named.end()
            opening = "("
        elif self.pattern.startswith("(?", start):
            raise _Wrong(f"invalid perl operator: {self.pattern[start : start + 3]}")
        else:
            self.at += 1
            opening = "("
        inside = self.alternatives()
        self.flags = before
        if self.at >= len(self.pattern):
            raise _Wrong(f"missing ): {self.pattern}")
        self.at += 1
        return f"{opening}{inside})"

    def escape(self) -> str:
        if self.pattern.startswith("\\Q", self.at):
            end = self.pattern.find("\\E", self.at + 2)
            quoted = self.pattern[self.at + 2 : end if end >= 0 else len(self.pattern)]
            self.at = end + 2 if end >= 0 else len(self.pattern)
            return "(?:" + re.escape(quoted) + ")" if len(quoted) != 1 else re.escape(quoted)
        c = self.pattern[self.at + 1 : self.at + 2]
        if c in _ANCHORS and c:
            self.at += 2
            return _ANCHORS[c]
        members, negated = self.escaped_class()
        return f"[^{members}{_STRAY}]" if negated else f"[{members}]"

    def escaped_class(self) -> tuple[str, bool]:
        """An escape as members of a class, and whether the class is negated."""
        start = self.at
        c = self.pattern[start + 1 : start + 2]
        self.at += 2
        if not c:
            raise _Wrong("trailing \\")
        if c.lower() in _PERL:
            return _PERL[c.lower()], c.isupper()
        if c in "pP":
            return self.property(c == "P")
        if c == "x":
            match = re.compile(r"\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{2})").match(self.pattern, self.at)
            if match and int(match[1] or match[2], 16) <= sys.maxunicode:
                self.at = match.end()
                return _member(chr(int(match[1] or match[2], 16))), False
        octal = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}").match(self.pattern, start + 1)
        if octal:
            self.at = octal.end()
            return _member(chr(int(octal[0], 8))), False
        if c in _PLAIN:
            return _PLAIN[c], False
        if ord(c) < 128 and not c.isalnum() and c != "_":
            return _member(c), False
        raise _Wrong(f"invalid escape sequence: {self.pattern[start : self.at]}")

    def property(self, negated: bool) -> tuple[str, bool]:
        match = re.compile(r"\{(\^?)(\w+)\}|(\w)").match(self.pattern, self.at)
        start, self.at = self.at - 2, match.end() if match else len(self.pattern)
        members = _property(match[2] or match[3]) if match else None
        if match is None or members is None:
            raise _Wrong(f"invalid character class range: {self.pattern[start : self.at]}")
        return members, negated != bool(match[1])

    def character_class(self) -> str:
        start = self.at
        self.at += 1
        negated = self.pattern[self.at : self.at + 1] == "^"
        self.at += negated
        out: list[str] = []
        first = True
        while first or self.pattern[self.at : self.at + 1] != "]":
            if self.at >= len(self.pattern):
                raise _Wrong(f"missing ]: {self.pattern[start:]}")
            out.append(self.class_member())
            first = False
        self.at += 1
        if not negated:
            return f"[{''.join(out)}]"
        return f"[^{''.join(out)}{_STRAY}]"

    def class_member(self) -> str:
        match = re.compile(r"\[:(\^?)(\w+):\]").match(self.pattern, self.at)
        if match:
            self.at = match.end()
            if match[2] not in _POSIX:
                raise _Wrong(f"invalid character class range: {match[0]}")
            return _others(_POSIX[match[2]]) if match[1] else _POSIX[match[2]]
        begin, alone = self.one_character()
        dash = self.pattern[self.at : self.at + 1] == "-" and self.pattern[self.at + 1 : self.at + 2] not in (
            "]",
            "",
        )
        if not alone or not dash:
            return begin
        start = self.at
        self.at += 1
        end, alone = self.one_character()
        if not alone or _code(begin) > _code(end):
            raise _Wrong(f"invalid character class range: {self.pattern[start - 1 : self.at]}")
        return f"{begin}-{end}"

    def one_character(self) -> tuple[str, bool]:
        """A member of a class, and whether it is a single character."""
        if self.pattern[self.at] != "\\":
            self.at += 1
            return _member(self.pattern[self.at - 1]), True
        perl = self.pattern[self.at + 1 : self.at + 2]
        members, negated = self.escaped_class()
        if negated:
            return _others(members), False
        return members, not (perl in "pP" or perl.lower() in _PERL)


def _member(c: str) -> str:
    """A character as a member of a class in Python's syntax."""
    return c if c.isalnum() or ord(c) > 127 else f"\\x{ord(c):02x}"


def _code(member: str) -> int:
    if len(member) == 1:
        return ord(member)
    return int(member[2:], 16) if member[1] == "x" else ord(member.encode().decode("unicode_escape"))


@functools.lru_cache(64)
def _others(members: str) -> str:
    """All other characters, as members of a class."""
    inside = re.compile(f"[{members}]")
    return _ranges(lambda c: not inside.match(c))


@functools.lru_cache(64)
def _property(name: str) -> str | None:
    """The characters of a category or script, as members of a class; None if the name is unknown."""
    if name == "Any":
        return "\\x00-\\U0010ffff"
    if re.fullmatch("[CLMNPSZ][a-z]?", name):
        return _ranges(lambda c: unicodedata.category(c).startswith(name)) or None
    spans = scripts.spans(name)
    if not spans:
        return None
    return "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in spans)


def _ranges(holds: Any) -> str:
    out, start = [], None
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and not 0xD800 <= code < 0xE000 and holds(chr(code))
        if inside and start is None:
            start = code
        elif not inside and start is not None:
            out.append(f"\\U{start:08x}-\\U{code - 1:08x}")
            start = None
    return "".join(out)
