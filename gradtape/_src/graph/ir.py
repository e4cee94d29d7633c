"""The intermediate representation: values, nodes, graphs, and the tracer that writes them.

A graph is a list of nodes in an order in which they can run. A node applies a row of the op
table to values; values know their shape and type. Graphs are immutable once they
are written: a pass writes a new one.

A tensor of a trace is an ordinary Tensor without elements whose `_symbol` is its Value. Ops
called on it infer the shapes of their results natively and then call `Value.trace`, which adds
the node. So gradient rules, composites and user code are traced without special support.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base.dtypes import BY_CODE, HELD
from gradtape._src.base.errors import Untraceable
from gradtape._src.ops.facts import Facts
from gradtape._src.ops.table import TABLE


class Value:
    """One result of a node, an input, or a constant."""

    __slots__ = ("graph", "shape", "dtype", "node", "constant")

    def __init__(
        self, graph: Graph, shape: tuple[int, ...], dtype: int, node: Node | None = None, constant: Any = None
    ):
        self.graph = graph
        self.shape = shape
        self.dtype = dtype
        self.node = node
        self.constant = constant

    @property
    def size(self) -> int:
        return prod(self.shape)

    def trace(self, op: Any, operands: tuple, results: tuple, attrs: tuple) -> None:
        """Called by the core when an op is applied to this value."""
        self.graph.trace(op, operands, results, attrs)

    def __repr__(self) -> str:
        return f"{'const ' if self.constant is not None else ''}{self.dtype}{list(self.shape)}"


class Node:
    """One application of an op."""

    __slots__ = ("op", "operands", "results", "attrs", "line")

    def __init__(self, op: Any, operands: tuple[Value, ...], attrs: tuple):
        self.line: Any = None  # of the user's program, if known
        self.op = op
        self.operands = operands
        self.attrs = attrs
        self.results: tuple[Value, ...] = ()

    @property
    def name(self) -> str:
        return self.op.op_name

    @property
    def is_held(self) -> bool:
        """Whether it works on strings, or on types that are only stored, which no kernel reads."""
        return not HELD.isdisjoint([v.dtype for v in (*self.operands, *self.results)])

    def __repr__(self) -> str:
        return f"{', '.join(map(repr, self.results))} = {self.name}({', '.join(map(repr, self.operands))}, {self.attrs})"


class Callback:
    """An op of a graph that is Python code: control flow, printing, user functions.

    `run(*tensors)` returns the results as a list. With `effect` it runs even if nothing reads them.
    """

    row: Any = SimpleNamespace(kind="callback", native="", checked="", **Facts()._asdict())
    passes_on = False  # an identity on the first operands, with a custom gradient
    is_barrier = False  # the results are the operands, hidden from simplification
    exchanges = False  # communicates with other replicas, which must run the same ops in the same order
    runs_late = False  # belongs to the backward half of a derivative, though it needs no cotangent
    draws = False  # has no operands, and returns other values in each run: random streams
    xla = ""  # the function that lowers it to XLA, as in the facts of a row; without one it runs on the host

    def __init__(self, name: str, run: Any, effect: bool = False) -> None:
        self.op_name = name
        self.run = run
        self.effect = effect

    def graphs(self) -> Sequence[Graph]:
        """The graphs inside, for an engine that supports the op."""
        return ()

    def __call__(self, operands: Sequence[Any], specs: Sequence[tuple]) -> list:
        """Adds the op to the trace of its operands, or runs it when they are values."""
        trace = written_to(operands) or _core.current_trace()
        if trace is None:
            return list(self.run(*operands))
        results = trace.add(self, [trace.value_of(x) for x in operands], (), specs)
        return [symbolic(v) for v in results]


class Graph:
    """Inputs, nodes in order, and outputs."""

    is_pass = False  # whether it is the backward pass of a tape, which is compiled natively

    __slots__ = ("inputs", "nodes", "outputs", "random_ops", "simplified", "line", "_constants")

    def __init__(self) -> None:
        self.inputs: list[Value] = []
        self.nodes: list[Node] = []
        self.outputs: list[Value] = []
        self.line: Any = None  # of the node, of another graph or recording, that is being made again
        self.simplified = False  # it, or the graph that it is part of, has been simplified
        self.random_ops = 0  # how many there are; they are numbered, see gradtape/_src/tensors/random.py
        self._constants: dict[Any, Value] = {}

    # ---- writing ----------------------------------------------------------------------------

    def write_target(self) -> Graph:
        """The graph that ops on values of this one are written to."""
        return self

    def input(self, shape: tuple[int, ...], dtype: int) -> Value:
        value = Value(self, shape, dtype)
        self.inputs.append(value)
        return value

    def constant(self, tensor: Any) -> Value:
        """The value of a constant; the same tensor, or an equal number, gives the same value."""
        value = self._constants.get(id(tensor))
        if value is None and tensor._numel == 1:
            # Python numbers become a new tensor each time they are used.
            array = np.asarray(tensor)
            own = array.item() if array.dtype == object else array.tobytes()
            number = (tensor.dtype._code, tensor._dims, own)
            value = self._constants.get(number)
            if value is None:
                value = self._constants[number] = Value(self, number[1], number[0], constant=tensor)
        if value is None:
            # The value keeps the tensor alive, and with it the meaning of its id.
            value = self._constants[id(tensor)] = Value(
                self, tensor._dims, tensor.dtype._code, constant=tensor
            )
        return value

    def constant_symbol(self, tensor: Any) -> Any:
        """A symbolic tensor for a constant, so that ops on it are traced."""
        return symbolic(self.constant(tensor))

    def ones_like(self, tensor: Any) -> Any:
        """Ones, as a broadcast scalar, so that products with them are simplified away. Called by the core."""
        one = self.constant(_core.scalar(1.0, tensor.dtype._code))
        shape = tuple(tensor.shape)
        if shape:
            (one,) = self.add(TABLE["broadcast_to"].op, [one], (shape,), [(shape, one.dtype)])
        return symbolic(one)

    def add(
        self, op: Any, operands: Sequence[Value], attrs: tuple, specs: Sequence[tuple]
    ) -> tuple[Value, ...]:
        """Appends a node whose results have these (shape, dtype)s."""
        node = Node(op, tuple(operands), attrs)
        node.results = tuple([Value(self, shape, dtype, node) for shape, dtype in specs])
        node.line = self.line
        self.nodes.append(node)
        return node.results

    def trace(self, op: Any, operands: tuple, results: tuple, attrs: tuple) -> None:
        depends = op.row.shape_from_values
        if depends is True or (depends and depends(*attrs)):
            raise Untraceable(f"{op.op_name}: the shape of the result depends on values")
        values = [self.value_of(x) for x in operands]
        added = self.add(op, values, attrs, [(r._dims, r.dtype._code) for r in results])
        for tensor, value in zip(results, added, strict=True):
            tensor._symbol = value

    def value_of(self, tensor: Any) -> Value:
        symbol = tensor._symbol
        if symbol is None:
            return self.constant(tensor)
        if symbol.graph is not self:
            raise TypeError("a tensor of one trace was used in another")
        return symbol

    # ---- reading ----------------------------------------------------------------------------

    def uses(self) -> dict[Value, int]:
        """How often each value is read, by nodes and as an output."""
        count: dict[Value, int] = {}
        for node in self.nodes:
            for v in node.operands:
                count[v] = count.get(v, 0) + 1
        for v in self.outputs:
            count[v] = count.get(v, 0) + 1
        return count

    def __repr__(self) -> str:
        names: dict[Value, str] = {}

        def name(v: Value) -> str:
            if v not in names:
                names[v] = f"%{len(names)}"
            return names[v]

        def typed(v: Value) -> str:
            return f"{name(v)}: {BY_CODE[v.dtype].name}{list(v.shape)}"

        lines = [f"graph({', '.join(typed(v) for v in self.inputs)})"]
        for node in self.nodes:
            operands = ", ".join(
                name(v) if v.constant is None else f"const{list(v.shape)}" for v in node.operands
            )
            attrs = f" {node.attrs}" if node.attrs else ""
            lines.append(f"  {', '.join(typed(v) for v in node.results)} = {node.name}({operands}){attrs}")
        lines.append(f"  return {', '.join(map(name, self.outputs))}")
        return "\n".join(lines)


def written_to(operands: Sequence[Any]) -> Graph | None:
    """The graph that an op on these tensors is written to; None if they all have values."""
    return next((x._symbol.graph.write_target() for x in operands if x._symbol is not None), None)


def is_symbolic(x: Any) -> bool:
    """Whether `x` is a tensor without a value, or a variable that would be read as one."""
    if isinstance(x, _core.Variable):
        return _core.current_trace() is not None
    return isinstance(x, _core.Tensor) and x._symbol is not None


def symbolic(value: Value) -> Any:
    """The symbolic tensor of `value`."""
    return _core.symbolic(value.shape, value.dtype, value)


def verify(graph: Graph) -> None:
    """Raises AssertionError unless the graph is well formed: run after every pass in tests."""
    defined = set(graph.inputs)
    for node in graph.nodes:
        for v in node.operands:
            assert v.constant is not None or v in defined, f"{node}: an operand is not defined yet"
        for v in node.results:
            assert v.node is node and v not in defined, f"{node}: a result is defined twice"
            defined.add(v)
    for v in graph.outputs:
        assert v.constant is not None or v in defined, "an output is not defined"
