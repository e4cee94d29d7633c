"""Families: the traces of a function for arguments that differ in the shapes of tensors only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradtape._src.base.shape import TensorShape
from gradtape._src.graph.calls import Static, join_shapes


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
        """The most specific of the general traces that take tensors of these shapes; None if there is none."""
        best: tuple[Sequence[Static], Any] | None = None
        for takes, trace in self._general:
            if _are_cases_of(statics, takes) and (best is None or _are_cases_of(takes, best[0])):
                best = takes, trace
        return None if best is None else best[1]

    def joined(self, statics: Sequence[Static]) -> list[Static]:
        """The most precise shapes that take these and those of all traces so far."""
        if self._joined is None:
            return list(statics)
        return [join_shapes((a, b)) for a, b in zip(self._joined, statics, strict=True)]

    def add(self, statics: list[Static], trace: Any) -> None:
        """Takes note of a trace."""
        self.met += 1
        self._joined = self.joined(statics)
        if not is_known(statics):
            self._general.append((statics, trace))


def is_known(statics: Sequence[Static]) -> bool:
    return all(s is not None and None not in s for s in statics)


def _are_cases_of(statics: Sequence[Static], others: Sequence[Static]) -> bool:
    """Whether tensors of these shapes are also of the others."""
    pairs = zip(statics, others, strict=True)
    return all(TensorShape(s).is_subtype_of(TensorShape(other)) for s, other in pairs)
