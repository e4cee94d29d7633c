"""`python tools/fuzz [kind ...] --seed S --seconds T`: looks for failures; exit status 1 if there is one.

Each kind prints every failure with a command to reproduce it, and at the end one line: how many cases it ran and
how many failed. Without a kind all of them run, one after the other, each for `--seconds`.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])  # the repository, in place of this folder

KINDS = {
    "calls": "ops with hostile arguments",
    "api": "tapes, variables, functions, optimizers in any order, with callbacks that delete and mutate",
    "programs": "random programs: eager, compiled, as functions, in forward mode, must agree",
    "interrupts": "KeyboardInterrupt at every bytecode of the entry points",
    "memory": "ops and functions with little memory left",
    "threads": "threads that share variables, functions, optimizers, iterators",
    "files": "damaged and hostile files of every format",
}


def main(argv: list[str]) -> int:
    kinds = []
    while argv and not argv[0].startswith("-"):
        kinds.append(argv.pop(0))
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or "-h" in argv or "--help" in argv:
        print(__doc__, *(f"  {kind:12}{what}" for kind, what in KINDS.items()), sep="\n")
        return 2 if unknown else 0
    argv = ["--seed", "1", "--seconds", "100", *argv]
    return max([importlib.import_module(f"tools.fuzz.{kind}").main(argv) for kind in kinds or KINDS])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
