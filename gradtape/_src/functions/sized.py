"""Functions that are traced for each size, though their signature leaves sizes open.

A recording needs to know what shapes each call gives, which is found by trial. Where no trial fits (shapes that depend on
one another in ways that nobody thought of) a program that is right must not be refused: it is traced at the sizes that it
is called with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gradtape import _core
from gradtape._src.functions.concrete import ConcreteFunction, TracedFunction

if TYPE_CHECKING:
    from gradtape._src.functions.arguments import FunctionType
    from gradtape._src.functions.function import Function

_MOST_SIZES = 256  # the one used longest ago is let go of


class SizedFunction(ConcreteFunction):
    """A trace for each size."""

    def __init__(
        self,
        owner: Function,
        function_type: FunctionType,
        first: TracedFunction,
        trace: Callable[[Sequence[Any]], TracedFunction],
    ) -> None:
        super().__init__(owner, function_type)
        self.placeholders, self.stand_ins = first.placeholders, first.stand_ins
        self._first = first
        self._trace = trace
        self._traces = _core.Cache(_MOST_SIZES)

    def call(self, tensors: Sequence[Any], variables: Sequence[Any] = ()) -> Any:
        """Runs the trace for tensors of these sizes."""
        return self.trace_for(tensors).call(tensors, variables)

    def trace_for(self, tensors: Sequence[Any]) -> TracedFunction:
        """The trace for tensors of these sizes."""
        trace = self._traces.find(list(tensors))
        if trace is None:
            trace = self._trace(tensors)
            self.add(tensors, trace)
        return trace

    def add(self, tensors: Sequence[Any], trace: TracedFunction) -> None:
        """Keeps a trace for tensors of these sizes."""
        self._traces.add(list(tensors), trace)

    def program_for(self, tensors: Sequence[Any], variables: Sequence[Any] = ()) -> tuple[Any, list]:
        """The program for tensors of these sizes, and what it is given."""
        trace = self.trace_for(tensors)
        return trace, trace.operands(tensors, variables)

    @property
    def programs(self) -> list:
        """The programs that were made so far."""
        return self._traces.values()

    @property
    def graph(self) -> Any:
        """What was traced for the first sizes."""
        return self._first.graph

    @property
    def captured_inputs(self) -> list:
        """Tensors and variables from outside that the function uses."""
        return self._first.captured_inputs

    def _arguments(self) -> list:
        return self._first._arguments()

    def _results(self) -> tuple[Any, list]:
        return self._first._results()
