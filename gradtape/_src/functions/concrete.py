"""One trace of a function: the graph for arguments of one kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradtape import _core
from gradtape._src.base import nest
from gradtape._src.base.shape import TensorSpec
from gradtape._src.graph.callable import GraphFunction
from gradtape._src.graph.trace import Trace
from gradtape._src.tensors.conversion import as_tensor
from gradtape._src.tensors.indexed_slices import IndexedSlices

if TYPE_CHECKING:
    from gradtape._src.functions.function import Function


class ConcreteFunction:
    """One trace of a function: a graph for arguments of one kind."""

    placeholders: Sequence[Any] = ()  # for arguments that are looked at when the graph runs: datasets

    def __init__(
        self, owner: Function, trace: Trace, structure: Any, flat_outputs: list, arguments: list
    ) -> None:
        self.owner = owner
        self.externals = list(trace.externals)
        self.n_arguments = len(arguments)
        self.specs = [TensorSpec(tuple(a.shape), a.dtype) for a in arguments]
        self._structure = structure
        outputs: list = []
        self._places: list = []  # of each flat result: ("tensor", k) or ("value", python object)
        for o in flat_outputs:
            if isinstance(o, IndexedSlices):
                self._places.append(("slices", len(outputs), o._dense_shape))
                outputs += [o.values, o.indices]
            elif o is None:
                self._places.append(("value", None))
            else:
                self._places.append(("tensor", len(outputs)))
                outputs.append(o)
        self._assigned = tuple(trace.assigned.values())  # their new values are the last outputs
        outputs += [trace.state[key] for key in trace.assigned]
        trace.outputs = [trace.value_of(t) for t in outputs]
        # Values that were first read in the line above are inputs too.
        self.externals = list(trace.externals)
        place = {id(e): self.n_arguments + i for i, e in enumerate(self.externals)}
        updates = [-1] * (len(outputs) - len(self._assigned)) + [place.get(id(v), -1) for v in self._assigned]
        self.graph_function = GraphFunction(trace, owner.name, updates if self._assigned else None)

    @property
    def graph(self) -> Any:
        """What was traced, in gradtape's own representation."""
        return self.graph_function.graph

    @property
    def variables(self) -> tuple:
        """The variables that the function reads or writes."""
        return tuple(e for e in self.externals if isinstance(e, _core.Variable))

    @property
    def trainable_variables(self) -> tuple:
        """Those of its variables that are trainable."""
        return tuple(v for v in self.variables if v.trainable)

    @property
    def captured_inputs(self) -> list:
        """Tensors and variables from outside that the function uses."""
        return list(self.externals)

    @property
    def structured_outputs(self) -> Any:
        """How the function returns its results: lists, tuples and dicts of them."""
        return self._structure

    @property
    def structured_input_signature(self) -> tuple:
        """TensorSpecs of the arguments, and of those given by name."""
        return tuple(self.specs), {}

    @property
    def name(self) -> str:
        """The name of the Python function."""
        return self.owner.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the trace with tensors of its own kind."""
        tensors = [
            a if isinstance(a, _core.Variable) else as_tensor(a)
            for a in nest.flatten((args, kwargs))
            if not isinstance(a, (bool, int, float, str, type(None))) or len(self.specs)
        ]
        if len(tensors) != self.n_arguments:
            raise TypeError(f"{self.name}: expected {self.n_arguments} tensors; got {len(tensors)}.")
        return self.call(tensors)

    def compare(self, tensors: list) -> None:
        """Raises InternalError where the program and eager mode differ."""
        from gradtape._src.graph.check import check

        check(self.graph_function, [*tensors, *self.externals])

    def call(self, tensors: list) -> Any:
        """Runs the trace on the tensors among its arguments, in their order."""
        if _core.is_recording():
            inputs = [*tensors, *(e._read() if isinstance(e, _core.Variable) else e for e in self.externals)]
            outs = self.graph_function(inputs)
            for variable, value in zip(self._assigned, outs[len(outs) - len(self._assigned) :], strict=True):
                variable._set(value)
        else:
            outs = self.graph_function.program.update([*tensors, *self.externals], self._assigned)
        places = self._places
        if len(places) == 1 and self._structure is None and places[0][0] == "tensor":
            return outs[places[0][1]]
        flat = [
            outs[p[1]]
            if p[0] == "tensor"
            else IndexedSlices(outs[p[1]], outs[p[1] + 1], p[2])
            if p[0] == "slices"
            else p[1]
            for p in places
        ]
        return flat[0] if self._structure is None else nest.pack_sequence_as(self._structure, flat)
