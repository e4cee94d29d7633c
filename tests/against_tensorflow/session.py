"""The comparison itself: both libraries in one process, every call in both, and the table at the end."""

from __future__ import annotations

import collections
import logging
import time
import warnings
from collections.abc import Callable, Iterator

import tensorflow

import gradtape

from . import names, rows, written
from .calling import run
from .compare import compare
from .known import KNOWN
from .rows import Call, find

_SHOWN = 3  # differences of one kind and function
_CLASSES = "classes and their methods"


class Tally:
    """The differences found, by function."""

    def __init__(self, verbose: bool) -> None:
        self.verbose = verbose
        self.calls: collections.Counter[str] = collections.Counter()  # by function
        self.wider: collections.Counter[str] = collections.Counter()
        self.differing: collections.Counter[str] = collections.Counter()
        self.unknown = 0
        self.used: set[int] = set()
        self._shown: collections.Counter[tuple[str, str]] = collections.Counter()

    def note(self, function: str, kind: str, call: str, words: str) -> bool:
        """Records a difference; returns whether it counts as a failure."""
        if kind == "wider":
            if self.verbose:
                print(f"wider     {call}\n          {words}")
            return False
        text = f"{call} -> {words}"
        which = [k for k, known in enumerate(KNOWN) if known.covers(function, kind, text)]
        self.used.update(which)
        if not which:
            self.unknown += 1
            self._shown[function, kind] += 1
        if self.verbose or (not which and self._shown[function, kind] <= _SHOWN):
            print(f"{kind + (' (known)' if which else ''):9} {call}\n          {words}")
        return True


def _compare_call(call: Call, tally: Tally) -> None:
    ours, theirs = (
        run(lib, call.call, call.words, call.dtype, call.gradients, call.second)
        for lib in (gradtape, tensorflow)
    )
    found = list(compare(ours, theirs, call.factor, call.numbers))
    tally.calls[call.function] += 1
    tally.wider[call.function] += any(d.kind == "wider" for d in found)
    differs = [tally.note(call.function, d.kind, f"{call.words} [{call.dtype}]", d.words) for d in found]
    tally.differing[call.function] += any(differs)


def _all_calls(wanted: Callable[[str], bool]) -> Iterator[Call]:
    yield from rows.calls(lambda name: wanted(name) and names.has(tensorflow, name))
    yield from written.calls(wanted)


def _compare_signatures(wanted: Callable[[str], bool], tally: Tally) -> None:
    for space in names.SPACES:
        for name in names.to_compare(tensorflow, gradtape, space):
            if wanted(name):
                for words in names.signature_differences(find(gradtape, name), find(tensorflow, name)):
                    tally.differing[name] += tally.note(name, "signature", f"tf.{name}", words)


def _table(tally: Tally, wanted: Callable[[str], bool]) -> Iterator[str]:
    """A Markdown table of how many calls agree, by namespace."""
    yield "| | functions | agree | differ | only here | only there | calls | agree | more here | differ |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    total: collections.Counter[str] = collections.Counter()
    rest = set(tally.calls)
    for space in (*names.SPACES, _CLASSES):
        counts: collections.Counter[str] = collections.Counter()
        if space == _CLASSES:
            both = sorted(rest)
        else:
            both = [n for n in names.to_compare(tensorflow, gradtape, space) if wanted(n)]
            there = [n for n in names.theirs(tensorflow, space) if wanted(n)]
            counts["only there"] = sum(not names.has(gradtape, n) for n in there)
            counts["only here"] = sum(wanted(n) for n in names.only_here(tensorflow, space))
        rest.difference_update(both)
        for name in both:
            counts["functions"] += 1
            counts["agree"] += not tally.differing[name]
            counts["differ"] += bool(tally.differing[name])
            counts["calls"] += tally.calls[name]
            counts["wider"] += tally.wider[name]
            counts["calls differ"] += tally.differing[name]
        total += counts
        if counts:
            yield _line(space if space == _CLASSES else f"`tf.{space}`".replace(".`", "`"), counts)
    yield _line("all", total)


def _line(title: str, n: collections.Counter[str]) -> str:
    same = n["calls"] - n["wider"] - n["calls differ"]
    cells = [n[k] for k in ("functions", "agree", "differ", "only here", "only there", "calls")]
    return f"| {title} | {' | '.join(map(str, [*cells, same, n['wider'], n['calls differ']]))} |"


def _not_compared(tally: Tally, wanted: Callable[[str], bool]) -> list[str]:
    every = [n for space in names.SPACES for n in names.to_compare(tensorflow, gradtape, space)]
    return [n for n in every if wanted(n) and not tally.calls[n]]


def main(only: str, words: str, verbose: bool) -> int:
    """Runs the comparison, and returns the number of failures."""
    warnings.simplefilter("ignore")
    for name in ("tensorflow", "gradtape"):
        logging.getLogger(name).setLevel("ERROR")

    def wanted(name: str) -> bool:
        return name == only[1:] if only.startswith("=") else only in name

    start = time.time()
    tally = Tally(verbose)
    for call in _all_calls(wanted):
        if words in call.words:
            _compare_call(call, tally)
    if not words:
        _compare_signatures(wanted, tally)
    print()
    print("\n".join(_table(tally, wanted)))
    print(
        f"\n{sum(tally.calls.values())} calls in {time.time() - start:.0f} s, TensorFlow {tensorflow.__version__}"
    )
    failures = [f"{tally.unknown} differences that known.py does not have"] if tally.unknown else []
    missed = _not_compared(tally, wanted) if not words else []
    if missed:
        failures.append(f"functions that no call compares: {', '.join(missed)}")
    if not only and not words:
        for k, known in enumerate(KNOWN):
            if known.always and k not in tally.used:
                failures.append(
                    f"known.py: no call differs like this any more: {known.functions}: {known.theirs}"
                )
    print("\n".join(failures) or "no difference that is not known")
    return len(failures)
