"""The scripts of Unicode, with ICU's numbers, from the table `scripts.txt`, which is read on first use."""

from __future__ import annotations

import bisect
import functools
import itertools
from pathlib import Path

LAST = 0x10FFFF
_NAMES = (
    "Common 0 Inherited 1 Arabic 2 Armenian 3 Bengali 4 Bopomofo 5 Cherokee 6 Coptic 7 Cyrillic 8 Deseret 9 Devanagari 10 "
    "Ethiopic 11 Georgian 12 Gothic 13 Greek 14 Gujarati 15 Gurmukhi 16 Han 17 Hangul 18 Hebrew 19 Hiragana 20 Kannada 21 "
    "Katakana 22 Khmer 23 Lao 24 Latin 25 Malayalam 26 Mongolian 27 Myanmar 28 Ogham 29 Old_Italic 30 Oriya 31 Runic 32 "
    "Sinhala 33 Syriac 34 Tamil 35 Telugu 36 Thaana 37 Thai 38 Tibetan 39 Yi 41 Braille 46"
).split()
_BY_NAME = dict(zip(_NAMES[::2], map(int, _NAMES[1::2]), strict=True))


@functools.cache
def _table() -> tuple[list[int], list[int]]:
    """The first code points of runs of one script, and their scripts."""
    lines = (Path(__file__).parent / "scripts.txt").read_text().splitlines()
    pairs = [word.split(".") for line in lines if line[0] != "#" for word in line.split()]
    starts = [0, *itertools.accumulate(int(count, 16) for count, _ in pairs)]
    return starts[:-1], [int(code, 16) for _, code in pairs]


def script(code: int) -> int:
    """The script of a code point; -1 if it is invalid."""
    if not 0 <= code <= LAST:
        return -1
    starts, codes = _table()
    return codes[bisect.bisect_right(starts, code) - 1]


def spans(name: str) -> list[tuple[int, int]]:
    """The first and last code points of the runs of a script; empty if there is no script of this name."""
    number = _BY_NAME.get(name)
    starts, codes = _table()
    ends = [*starts[1:], LAST + 1]
    return [(a, b - 1) for a, b, code in zip(starts, ends, codes, strict=True) if code == number]
