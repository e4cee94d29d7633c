"""A trace that is finished: a graph, and what it reads and writes besides its arguments.

This is what functions and the segments of recordings run: on values as one program, which writes new values of
variables in place; under a tape as a graph that can be differentiated (`callable.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradtape import _core
from gradtape._src.graph.callable import GraphFunction
from gradtape._src.graph.trace import Trace


class Traced:
    """A function of tensors that was traced, for tensors of one kind.

    Args:
      trace: what was written while it ran.
      outputs: tensors, of the trace or from outside.
      arguments: how many inputs of the trace are arguments; the others are variables and tensors from outside.
    """

    def __init__(self, trace: Trace, outputs: Sequence[Any], arguments: int, name: str) -> None:
        self.name = name
        self.n_arguments = arguments
        self._n_outputs = len(outputs)
        self._assigned = tuple(trace.assigned.values())
        results = [*outputs, *(trace.state[key] for key in trace.assigned)]
        trace.outputs = [trace.value_of(t) for t in results]
        self.externals = list(
            trace.externals
        )  # after the line above, which may read values for the first time
        place = {id(e): arguments + i for i, e in enumerate(self.externals)}
        updates = [-1] * len(outputs) + [place.get(id(v), -1) for v in self._assigned]
        self.graph_function = GraphFunction(trace, name, updates if self._assigned else None)

    def run(self, tensors: Sequence[Any]) -> list:
        """The outputs for these arguments; variables have their new values afterwards."""
        if not _core.is_recording():
            return self.graph_function.program.update([*tensors, *self.externals], self._assigned)
        read = [e._read() if isinstance(e, _core.Variable) else e for e in self.externals]
        outs = self.graph_function([*tensors, *read])
        for variable, value in zip(self._assigned, outs[self._n_outputs :], strict=True):
            variable._set(value)
        return outs
