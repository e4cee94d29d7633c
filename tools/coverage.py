"""Writes docs/coverage.md: which names of TensorFlow work, which are accepted without effect, which are missing.

`make coverage` runs it. The names are those found in 690 real files that use GradientTape
(tools/symbols.csv: name, category, number of files that use it, whether TensorFlow 2.21 itself lacks it).
Whether a name exists is looked up in gradtape itself. Which names have no effect, or always raise, cannot be looked
up: gradtape/_src/doctor/effects.py lists them.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any, NamedTuple

from gradtape._src.doctor.effects import REFUSALS, STUBS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "coverage.md"
SYMBOLS = ROOT / "tools" / "symbols.csv"

WORKS, STUB, REFUSED, MISSING = "works", "accepted", "refused", "missing"

GROUPS = {
    "core": "Tensors, operations, derivatives",
    "data": "tf.data",
    "io/image/str": "Files, images, strings",
    "infra": "Checkpoints, summaries, devices, debugging",
    "v1/internal": "TensorFlow 1, internals",
    "keras-core": "Keras: layers, models, optimizers, losses",
    "keras-periph": "Keras: applications, data sets, utilities",
}


class Symbol(NamedTuple):
    """A name, its category, the number of files that use it, and its status."""

    name: str
    category: str
    files: int
    absent: bool
    status: str
    words: str


def look(tf: Any, name: str) -> tuple[str, str]:
    """The status of a name, and what the page says about it."""
    if not name.startswith("tf."):
        return REFUSED, "an internal module of TensorFlow"
    value = tf
    for part in name.split(".")[1:]:
        try:
            value = getattr(value, part)
        except AttributeError as e:
            words = str(e).partition(f"{part!r}: ")[2]
            return (REFUSED, words) if words else (MISSING, "")
    if name in STUBS:
        return STUB, STUBS[name]
    if name in REFUSALS:
        return REFUSED, REFUSALS[name]
    return WORKS, ""


def symbols(tf: Any) -> list[Symbol]:
    """All names of the list, with their status."""
    with open(SYMBOLS, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    out = []
    for row in rows:
        status, words = look(tf, row["symbol"])
        if row["absent"] and status == WORKS:
            status = MISSING  # only a module of ours has this name
        out.append(
            Symbol(row["symbol"], row["category"], int(row["files"]), bool(row["absent"]), status, words)
        )
    return out


def _share(every: list[Symbol], status: str) -> str:
    """The share of uses in the files that are of names with this status."""
    total = sum(s.files for s in every)
    return f"{100 * sum(s.files for s in every if s.status == status) / total:.1f} %"


def _table(every: list[Symbol], categories: list[str]) -> list[str]:
    lines = [
        "| | names | work | accepted | refused | missing | uses that work |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for category in categories:
        those = [s for s in every if s.category == category]
        counts = [sum(s.status == status for s in those) for status in (WORKS, STUB, REFUSED, MISSING)]
        lines.append(
            f"| {GROUPS[category]} | {len(those)} | {' | '.join(map(str, counts))} | {_share(those, WORKS)} |"
        )
    return lines


def _listed(every: list[Symbol], status: str) -> list[str]:
    """Names with a status by category; names with the same explanation share a line."""
    lines = []
    for category, title in GROUPS.items():
        if category.startswith("keras"):
            continue
        groups: dict[str, list[str]] = {}
        for s in every:
            if s.category == category and s.status == status:
                note = " (not in TensorFlow 2.21 either)" if s.absent else ""
                groups.setdefault(s.words, []).append(f"`{s.name}`{note}")
        if groups:
            lines += ["", f"**{title}**", ""]
            lines += [
                f"- {', '.join(names)}" + (f": {words}" if words else "") for words, names in groups.items()
            ]
    return lines or ["", "None."]


def page(tf: Any) -> str:
    """The page."""
    every = symbols(tf)
    ours = [c for c in GROUPS if not c.startswith("keras")]
    keras = [c for c in GROUPS if c.startswith("keras")]
    lines = [
        "# Coverage",
        "",
        f"How many of the {len(every)} names of TensorFlow that occur in 690 real files with a `GradientTape` gradtape",
        "supports. `make coverage` writes this page from gradtape itself.",
        "",
        "- **work**: as in TensorFlow, except for the [differences](differences.md).",
        "- **accepted**: can be used so that programs run, but without TensorFlow's effect; listed below.",
        "- **refused**: raise an error that says why and what to use instead; listed below.",
        "- **missing**: raise a plain `AttributeError`.",
        "",
        "The last column counts uses instead of names: each name weighs as much as the number of files that use it.",
        "",
        *_table(every, ours),
        "",
        "## Keras",
        "",
        *_table(every, keras),
        "",
        "## Accepted, without TensorFlow's effect",
        *_listed(every, STUB),
        "",
        "## Refused",
        *_listed(every, REFUSED),
        "",
        "## Missing",
        *_listed(every, MISSING),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    import gradtape

    PAGE.write_text(page(gradtape), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} written")
