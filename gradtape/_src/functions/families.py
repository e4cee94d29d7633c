"""The traces of a function: by the engine that runs them, and in families of arguments that differ in shapes only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradtape import _core
from gradtape._src.base import log
from gradtape._src.base.errors import more
from gradtape._src.base.shape import TensorShape
from gradtape._src.engines import Engine
from gradtape._src.graph.calls import Static, join_shapes

_MOST_TRACES = 10_000  # of one function; the least recently used one is dropped
MOST_CALLS = 1024  # cached calls, which are found without looking at their arguments one by one


class Traces:
    """The traces of a function that run on one engine."""

    __slots__ = ("engine", "concrete", "families", "calls", "typed")

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.concrete = _core.Cache(_MOST_TRACES)  # by kinds of arguments and the shapes that they take
        self.families = _core.Cache(_MOST_TRACES)  # by arguments without their shapes
        self.calls = _core.Cache(MOST_CALLS)  # by arguments with their shapes: the trace that serves them
        self.typed: list[tuple] = []  # families with arguments that have tracing types of their own

    def general(self, given: Any) -> tuple:
        """The family of a call: its own, unless its tracing types are subtypes of those of another family."""
        return next((family for family in self.typed if given.is_case_of(family)), given.family)

    def family(self, key: tuple) -> Family:
        """The family of this key, which may be new."""
        family = self.families.find(key)
        if family is None:
            family = Family()
            self.families.add(key, family)
            if any(hasattr(part, "is_subtype_of") for part in key[1]):
                self.typed.append(key)
        return family


class Retraces:
    """Explains why a function is traced again, and warns once when that happens too often."""

    _MOST = 5

    def __init__(self, name: str) -> None:
        self._name = name
        self._last: list[str] = []  # the arguments that were traced last, in words

    def note(self, described: list[str], traces: int, may_warn: bool) -> None:
        """Called before a new trace, with its arguments in words and how many traces there are."""
        if self._last and traces < self._MOST:
            log.info("%s: tracing again: %s", self._name, _difference(self._last, described))
        elif traces == self._MOST and may_warn:
            log.warning(
                "%s: %d calls triggered tf.function retracing; the last one because %s. Tracing is expensive. Hint: pass "
                "tensors instead of Python numbers, and keep their shapes the same.%s",
                self._name, self._MOST, _difference(self._last, described), more("retracing"),
            )  # fmt: skip
        self._last = described


def _difference(before: list[str], after: list[str]) -> str:
    for i, (a, b) in enumerate(zip(before, after, strict=False)):
        if a != b:
            return f"argument {i}: {a} before, {b} now"
    return "the structure of the arguments changed"


class Family:
    """The traces of a function for arguments that differ in the shapes of tensors only."""

    def __init__(self) -> None:
        self.met = 0  # traces so far
        self.for_each_variable = False
        self._joined: list[Static] | None = None  # shapes that take all those so far
        self._general: list[
            tuple[list[Static], Any]
        ] = []  # traces for more than one size, and what they take

    def serving(self, statics: Sequence[Static]) -> Any:
        """The most specific of the general traces that accept tensors of these shapes; None if there is none."""
        best: tuple[Sequence[Static], Any] | None = None
        for takes, trace in self._general:
            if _are_cases_of(statics, takes) and (best is None or _are_cases_of(takes, best[0])):
                best = takes, trace
        return None if best is None else best[1]

    def joined(self, statics: Sequence[Static]) -> list[Static]:
        """The most specific shapes that accept these and those of all traces so far."""
        if self._joined is None:
            return list(statics)
        return [join_shapes((a, b)) for a, b in zip(self._joined, statics, strict=True)]

    def add(self, statics: list[Static], trace: Any) -> None:
        """Adds a trace."""
        self.met += 1
        self._joined = self.joined(statics)
        if not is_known(statics):
            self._general.append((statics, trace))


def is_known(statics: Sequence[Static]) -> bool:
    return all(s is not None and None not in s for s in statics)


def _are_cases_of(statics: Sequence[Static], others: Sequence[Static]) -> bool:
    """Whether the second shapes accept every tensor of the first ones."""
    pairs = zip(statics, others, strict=True)
    return all(TensorShape(s).is_subtype_of(TensorShape(other)) for s, other in pairs)
