"""A trace: the run of a Python function on symbols that writes a graph.

Besides the graph it keeps what the function touched from outside: variables, which become
inputs where they are read and results where they are assigned, and tensors made before the
trace, which become inputs so that a tape outside can follow them.
"""

from __future__ import annotations

from typing import Any

from gradtape import _core
from gradtape.graph.ir import Graph, Value, symbolic


class Trace(Graph):
    """A graph that is being written by a running function."""

    __slots__ = ("outer", "externals", "state", "assigned", "_captured", "created", "start")

    def __init__(self, outer: Trace | None = None) -> None:
        super().__init__()
        self.outer = outer
        self.externals: list[Any] = []  # variables and tensors from outside, one per input behind the arguments
        self.state: dict[int, Any] = {}  # by id of the variable: the tensor it now holds
        self.assigned: dict[int, Any] = {}  # by id: the variable
        self._captured: dict[int, Value] = {}
        self.created: list[Any] = []  # variables made during the trace
        self.start = _core.tensor_count()

    # ---- variables (called by the core) -------------------------------------------------------

    def read(self, variable: Any) -> Any:
        """A tensor that stands for what the variable holds at this point of the function."""
        now = self.state.get(id(variable))
        if now is None:
            if variable in _Same(self.created):
                return variable._peek()
            value = self.input(tuple(variable._value_shape), variable.dtype._code)
            self.externals.append(variable)
            now = self.state[id(variable)] = symbolic(value)
        return _core.symbolic(tuple(now.shape), now.dtype._code, now._symbol) if now._symbol is not None else now._detach()

    def assign(self, variable: Any, tensor: Any) -> None:
        self.state[id(variable)] = tensor
        self.assigned[id(variable)] = variable

    # ---- tensors ------------------------------------------------------------------------------

    def value_of(self, tensor: Any) -> Value:
        symbol = tensor._symbol
        if symbol is not None and symbol.graph is self:
            return symbol
        if symbol is None and tensor._born > self.start:
            return self.constant(tensor)
        if symbol is not None and not self._encloses(symbol.graph):
            raise TypeError(
                f"{tensor!r} is out of scope and cannot be used here. It was made while another function was traced, and "
                "has no value. Hint: return it from that function."
            )
        return self.capture(tensor)

    def _encloses(self, graph: Graph) -> bool:
        trace = self.outer
        while trace is not None:
            if trace is graph:
                return True
            trace = trace.outer
        return False

    def capture(self, tensor: Any) -> Value:
        """A tensor from outside as an input."""
        known = self._captured.get(id(tensor))
        if known is None:
            known = self._captured[id(tensor)] = self.input(tuple(tensor.shape), tensor.dtype._code)
            self.externals.append(tensor)
        return known


class _Same:
    """Membership by identity: variables compare element by element."""

    def __init__(self, items: list) -> None:
        self.items = items

    def __contains__(self, item: Any) -> bool:
        return any(item is i for i in self.items)
