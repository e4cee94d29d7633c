"""A finished trace: a graph, and its captures.

Functions and the segments of recordings run it: on values as one program, which writes new values of
variables in place; under a tape as a graph that can be differentiated (`callable.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradtape import _core
from gradtape._src.graph.callable import GraphFunction
from gradtape._src.graph.trace import Trace


class Traced:
    """A function of tensors, traced for tensors of one kind.

    Args:
      trace: the graph that it wrote.
      outputs: tensors of the trace, or from outside.
      arguments: how many inputs of the trace are arguments; the others are variables and tensors from outside.
      proxies: the proxies of variables that are arguments.
    """

    def __init__(
        self,
        trace: Trace,
        outputs: Sequence[Any],
        arguments: int,
        name: str,
        proxies: Sequence[Any] = (),
    ) -> None:
        self.name = name
        self.proxies = proxies
        self.n_arguments = arguments
        self._n_outputs = len(outputs)
        self._assigned = tuple(trace.assigned.values())
        results = [*outputs, *(trace.state[key] for key in trace.assigned)]
        trace.outputs = [trace.value_of(t) for t in results]
        # After the line above, which may capture more values.
        self.externals = list(trace.externals)
        place = {id(e): arguments + i for i, e in enumerate(self.externals)}
        updates = [-1] * len(outputs) + [place.get(id(v), -1) for v in self._assigned]
        self.graph_function = GraphFunction(trace, name, updates if self._assigned else None, trace.engine)

    def operands(self, tensors: Sequence[Any], variables: Sequence[Any] = ()) -> list:
        """The inputs of the graph: the tensors, then the captures, with the variables of this call."""
        if not self.proxies:
            return [*tensors, *self.externals]
        return [*tensors, *self._in_place_of(self.externals, variables)]

    def _in_place_of(self, externals: Sequence[Any], variables: Sequence[Any]) -> list:
        given = {id(s): v for s, v in zip(self.proxies, variables, strict=True)}
        return [given.get(id(e), e) for e in externals]

    def run(self, tensors: Sequence[Any], variables: Sequence[Any] = ()) -> list:
        """The outputs for these arguments; variables have their new values afterwards."""
        operands = self.operands(tensors, variables)
        assigned = tuple(self._in_place_of(self._assigned, variables)) if self.proxies else self._assigned
        if not _core.is_recording() and _core.current_trace() is None:
            return self.graph_function.program.update(operands, assigned)
        outs = self.graph_function([e._read() if isinstance(e, _core.Variable) else e for e in operands])
        for variable, value in zip(assigned, outs[self._n_outputs :], strict=True):
            variable._set(value)
        return outs
