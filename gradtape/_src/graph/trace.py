"""A trace: the run of a Python function on symbolic tensors that writes a graph.

Besides the graph it holds the captures: variables, which become inputs where they are read and
results where they are assigned, and tensors made before the trace, which become inputs so that a
tape outside can differentiate with respect to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gradtape import _core
from gradtape._src.base.contexts import aside
from gradtape._src.base.dtypes import DIFFERENTIABLE
from gradtape._src.base.errors import InaccessibleTensorError, Untraceable, locate
from gradtape._src.base.source import user_line
from gradtape._src.engines import NATIVE, Engine
from gradtape._src.graph.ir import Callback, Graph, Node, Value, symbolic
from gradtape._src.tensors import protocol
from gradtape._src.tensors.conversion import read


class Holdings:
    """The values of variables at this point of a trace, as tensors, by id of the variable.

    Symbolic tensors are stored as their `Value`s: a tensor hides its symbol from Python's garbage collector, so a trace
    that held its own tensors would never be freed.
    """

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[int, Any] = {}

    def get(self, key: int) -> Any:
        value = self._values.get(key)
        return symbolic(value) if isinstance(value, Value) else value

    def __getitem__(self, key: int) -> Any:
        return self.get(key)

    def __setitem__(self, key: int, tensor: Any) -> None:
        self._values[key] = tensor if tensor._symbol is None else tensor._symbol


class Reread(Callback):
    """A read of a variable after an assignment: the operands are the assigned value and the initial one.

    The result is the assigned value. A tape around the function sees the variable, as in eager mode: an assignment
    ends a value's history. Only a tape that follows assignments differentiates through them. Lowering removes this
    node.
    """

    passes_on = True

    def __init__(self) -> None:
        super().__init__("reread", lambda value, variable: [value._detach()])

    def __call__(self, operands: Sequence[Any], specs: Sequence[tuple]) -> list:
        if _core.assign_tracker() is not None:
            return [operands[0]]
        results = super().__call__(operands, specs)
        _core.record(tuple(results), (operands[1],), lambda g: [g])
        return results


REREAD = Reread()


class Trace(Graph):
    """A graph that is being written by a running function."""

    __slots__ = (
        "outer",
        "gradient_of",
        "externals",
        "state",
        "_first",
        "assigned",
        "_captured",
        "created",
        "start",
        "keeps_constants",
        "is_kept",
        "may_vary",
        "engine",
        "records",
        "_kept_constants",
        "arguments",
        "names",
    )

    def __init__(
        self,
        outer: Trace | None = None,
        keeps_constants: bool = False,
        is_kept: bool = False,
        engine: Engine = NATIVE,
        may_vary: bool = False,
    ) -> None:
        super().__init__()
        self.outer = outer
        self.line = None if outer is None else outer.line
        self.gradient_of: Any = None  # the code of the function whose gradient is traced: custom.py
        self.engine: Engine = engine if outer is None else outer.engine  # the engine that will run it
        # Whether it may run later, whatever variables hold then; so each of them must keep one shape.
        self.is_kept: bool = is_kept if outer is None else outer.is_kept
        # Whether it runs only while variables have the shapes that they have now.
        self.may_vary: bool = may_vary if outer is None else outer.may_vary
        # Whether each tensor created during the trace is a constant of the graph, so that `tf.gradients` finds it;
        # otherwise ops on such tensors only are computed at once.
        self.keeps_constants: bool = keeps_constants if outer is None else outer.keeps_constants
        self.records = False  # whether it records library calls: recording.py
        self._kept_constants: dict[int, Value] = {}
        self.externals: list[
            Any
        ] = []  # variables and tensors from outside, one per input after the arguments
        self.state = Holdings()
        self._first: dict[int, Value] = {}  # by id of a variable: its input
        self.assigned: dict[int, Any] = {}  # by id: the variable
        self._captured: dict[int, Value] = {}
        # Variables made during the trace, also in the branches and loops inside it.
        self.created: list[Any] = [] if outer is None else outer.created
        self.names: list[str] = []  # names of the first inputs
        # Values of the first inputs, for the initial values of variables; only while the function is traced.
        self.arguments: list[Any] = []
        self.start = _core.tensor_count()

    def add(
        self, op: Any, operands: Sequence[Value], attrs: tuple, specs: Sequence[tuple]
    ) -> tuple[Value, ...]:
        results = super().add(op, operands, attrs, specs)
        if self.line is None:
            self.nodes[-1].line = user_line()
        return results

    def run_on(self, engine: Engine) -> None:
        """Runs the whole program on `engine`, because a part of it requires this."""
        trace: Trace | None = self
        while trace is not None:
            trace.engine = engine
            trace = trace.outer

    # ---- variables (called by the core) -------------------------------------------------------

    def read(self, variable: Any) -> Any:
        """The symbolic value of the variable at this point of the function."""
        current = self.state.get(id(variable))
        if current is None:
            current = self.state[id(variable)] = symbolic(self._first_value(variable))
        if id(variable) in self.assigned and variable.dtype._code in DIFFERENTIABLE:
            before = self._first_value(variable)
            if before.shape == tuple(current.shape):
                values = [self.value_of(current), before]
                return symbolic(self.add(REREAD, values, (), [(before.shape, before.dtype)])[0])
        return current if current._symbol is not None else current._detach()

    def _first_value(self, variable: Any) -> Value:
        """The value of the variable before the function runs: an input."""
        value = self._first.get(id(variable))
        if value is None:
            if self.is_kept and not self.may_vary and not variable.shape.is_fully_defined():
                raise Untraceable(f"{variable.name} may have another shape in the next call")
            value = self.input(tuple(variable._value_shape), variable.dtype._code)
            self._first[id(variable)] = value
            self.externals.append(variable)
        return value

    def assign(self, variable: Any, tensor: Any) -> None:
        self.state[id(variable)] = tensor
        self.assigned[id(variable)] = variable

    def create(self, variable: Any, convert: Callable[[Any], Any], initial_value: Any) -> None:
        """Initializes a variable created during the trace at once, because it outlives the trace."""
        if isinstance(initial_value, _core.Tensor) and initial_value._symbol is not None:
            try:
                initial_value = self._known_now(initial_value)
            except KeyError:
                raise ValueError(
                    f"tf.Variable: Argument `initial_value` ({initial_value}) could not be lifted out of a `tf.function`: "
                    "it depends on the arguments of the traced function. Hint: make the variable outside of the function, "
                    "or pass a function without arguments as initial value."
                ) from None
        with aside():
            variable._set(convert(initial_value))
        root = self
        while root.outer is not None:
            root = root.outer
        root.created.append(variable)

    def _known_now(self, tensor: Any) -> Any:
        """The value that a tensor of the trace already has; KeyError if it has none."""
        from gradtape._src.graph.callable import GraphFunction, extract

        # The arguments that the trace is made for, and the values that it has captured, are known now.
        values = [*self.arguments, *self.externals]
        if self.outer is not None or len(values) != len(self.inputs):
            values = []
        graph = extract(self.nodes, self.inputs[: len(values)], [self.value_of(tensor)])
        with aside():
            return GraphFunction(graph).program.run([read(x) for x in values])[0]

    # ---- tensors ------------------------------------------------------------------------------

    def write_target(self) -> Graph:
        """Inside a branch or loop body, ops on tensors from outside are part of the branch."""
        current = _core.current_trace()
        return (
            current
            if isinstance(current, Trace) and current is not self and current._encloses(self)
            else self
        )

    def value_of(self, tensor: Any) -> Value:
        symbol = tensor._symbol
        if symbol is not None and symbol.graph is self:
            return symbol
        if symbol is None and tensor._born > self.start:
            return self.keep_constant(tensor) if self.keeps_constants else self.constant(tensor)
        if symbol is not None and not self._encloses(symbol.graph):
            raise InaccessibleTensorError(repr(tensor))
        return self.capture(tensor)

    def _encloses(self, graph: Graph) -> bool:
        trace = self.outer
        while trace is not None:
            if trace is graph:
                return True
            trace = trace.outer
        return False

    def symbol_for(self, tensor: Any) -> Any:
        """The symbolic tensor for a concrete one; called by the core."""
        return symbolic(self.keep_constant(tensor) if tensor._born > self.start else self.capture(tensor))

    def keep_constant(self, tensor: Any) -> Value:
        """A tensor created during the trace as a constant of the graph, with respect to which gradients exist."""
        value = self._kept_constants.get(id(tensor))
        if value is None:
            value = self._kept_constants[id(tensor)] = Value(
                self, tuple(tensor.shape), tensor.dtype._code, constant=tensor
            )
        return value

    def trace(self, op: Any, operands: tuple, results: tuple, attrs: tuple) -> None:
        current = _core.current_trace()
        if current is None:
            raise InaccessibleTensorError()
        Graph.trace(current, op, operands, results, attrs)

    def capture(self, tensor: Any) -> Value:
        """Captures a tensor: it becomes an input."""
        value = self._captured.get(id(tensor))
        if value is None:
            value = self._captured[id(tensor)] = self.input(tuple(tensor.shape), tensor.dtype._code)
            self.externals.append(tensor)
        return value


class made_again:
    """While a node of another graph or recording is made again: what is traced has its line, and errors name it."""

    __slots__ = ("_line", "_trace", "_before")

    def __init__(self, node: Node) -> None:
        self._line = node.line

    def __enter__(self) -> None:
        self._trace = trace = _core.current_trace()
        if isinstance(trace, Graph):
            self._before = trace.line
            if self._line is not None and self._line.number:
                trace.line = self._line

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(self._trace, Graph):
            self._trace.line = self._before
        elif error is not None:
            locate(error, self._line)


def is_tracing() -> bool:
    """Whether this thread is tracing a function."""
    return _core.current_trace() is not None


def current_recording() -> Any:
    """The recording (`recording.py`) that this thread is writing, or None."""
    trace = _core.current_trace()
    return trace if trace is not None and trace.records else None


if TYPE_CHECKING:

    def _promise(trace: Trace, value: Value) -> tuple[protocol.Trace, protocol.Symbol]:
        return trace, value


class NeverRun(Trace):
    """The trace of a world, for shapes and dependencies only.

    Args:
      sample, rank: the trial sizes and rank in place of unknown ones.
    """

    __slots__ = ("sample", "rank")

    def __init__(self, sample: int, rank: int) -> None:
        super().__init__()
        self.sample, self.rank = sample, rank


def _world() -> NeverRun | None:
    trace = _core.current_trace()
    while trace is not None and not isinstance(trace, NeverRun):
        trace = trace.outer
    return trace


def never_runs() -> bool:
    """Whether the current trace is for shapes only."""
    return _world() is not None


def shape_in_world(shape: Sequence[int | None] | None, name: str) -> tuple[int, ...]:
    """A shape whose sizes depend on values, while only shapes are inferred.

    Raises: Untraceable: if the current trace is to be run.
    """
    if shape is not None and None not in shape:
        return tuple(shape)  # type: ignore[arg-type]
    world = _world()
    if world is None:
        raise Untraceable(f"{name}: the shape of its result depends on values")
    return tuple(world.sample if d is None else d for d in ([None] * world.rank if shape is None else shape))
