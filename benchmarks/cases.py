"""A benchmark case, and how a library is loaded for it.

Imported by every peer's process, as are the modules whose `case` function builds cases: they need nothing but the
standard library and NumPy.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

# The ways each library runs, as labels "library mode"; eager and compiled.
EAGER = ("gradtape eager", "tensorflow eager", "torch eager", "jax eager", "autograd numpy")
COMPILED = ("gradtape function", "tensorflow function", "tensorflow xla", "torch compile", "jax jit")


class Case:
    """Something to time: `run(n)` does it n times.

    `count` fixes n. `check` is what all libraries must agree on: numbers, or a function that gives them
    after the first call. `missing` says why there is nothing to time.
    """

    def __init__(
        self,
        run: Callable[[int], object] | None = None,
        count: int | None = None,
        check: Sequence[float] | Callable[[], Sequence[float]] | None = None,
        missing: str | None = None,
    ) -> None:
        self.run, self.count, self.check, self.missing = run, count, check, missing


def load(library: str, threads: int) -> Any:
    """The library's module, limited to the given number of threads."""
    module = importlib.import_module(library)
    if library == "torch":
        module.set_num_threads(threads)
    elif library == "tensorflow":
        module.config.threading.set_intra_op_parallelism_threads(threads)
        module.config.threading.set_inter_op_parallelism_threads(threads)
    return module


def repeat(call: Callable[[], object]) -> Callable[[int], None]:
    """A function of n that makes n calls."""

    def run(n: int) -> None:
        for _ in range(n):
            call()

    return run


def loop(expression: str, keep: bool, names: dict[str, Any]) -> Callable[[int], None]:
    """A function of n that evaluates `expression` n times, without a Python call around it.

    With `keep` all results live until the last one is made.
    """
    body = f"[{expression} for _ in range(n)]" if keep else f"for _ in range(n): {expression}"
    space = dict(names)
    exec(f"def run(n):\n    {body}", space)
    return space["run"]
