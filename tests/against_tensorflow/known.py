"""Where gradtape differs from TensorFlow in a call, and why: the list that `make parity` compares with.

The part of docs/differences.md about single functions is written from it (`python known.py`), and a test
holds them together. An entry that no call needs any more is a failure of `make parity`.
"""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).resolve().parents[2] / "docs" / "differences.md"
START, END = "<!-- written by tests/against_tensorflow/known.py: start -->", "<!-- end -->"


class Known(NamedTuple):
    """One difference.

    Attributes:
      functions: public names, or patterns of them.
      kinds: what differs: value, dtype, shape, class, gradient, second, error, accepted, refused, signature,
        "no gradient".
      words: a regular expression that the call and what was found have to match.
      theirs, here, why: the row of the table.
    """

    functions: str
    kinds: str
    words: str
    theirs: str
    here: str
    why: str

    def covers(self, function: str, kind: str, text: str) -> bool:
        return (
            kind in self.kinds.split()
            and any(fnmatch.fnmatchcase(function, p) for p in self.functions.split())
            and re.search(self.words, text) is not None
        )


DERIVATIVES = ()

TYPES = ()

ERRORS = ()

SECTIONS = {"Derivatives": DERIVATIVES, "Values and types": TYPES, "Errors": ERRORS}
KNOWN = tuple(k for section in SECTIONS.values() for k in section)


def _names(known: Known) -> str:
    return ", ".join(f"`{p}`" for p in known.functions.split()) if known.functions != "*" else "every function"


def section() -> str:
    """The part of the page."""
    lines = []
    for title, entries in SECTIONS.items():
        lines += [f"**{title}**", "", "| | TensorFlow 2.21 | gradtape | why |", "|---|---|---|---|"]
        lines += [f"| {_names(k)} | {k.theirs} | {k.here} | {k.why} |" for k in entries]
        lines += [""]
    return "\n".join(lines)


def page() -> str:
    """docs/differences.md with the part written anew."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{section()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print("docs/differences.md written")
