"""TensorFlow's view of a graph: operations with names and types, and the tensors between them.

`concrete.graph`, and `name`, `op` and `graph` of a symbolic tensor, show a trace this way. Types are those of TensorFlow
where TensorFlow has an equivalent op.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from gradtape._src.graph.ir import Graph, Node, Value, symbolic

# TensorFlow's types of ops whose names are not just ours with capitals.
_TYPES = {
    "add": "AddV2", "div": "RealDiv", "matmul": "MatMul", "concat": "ConcatV2", "gather": "GatherV2", "select": "SelectV2",
    "floordiv": "FloorDiv", "floormod": "FloorMod", "argmax": "ArgMax", "argmin": "ArgMin", "stack": "Pack",
    "unstack": "Unpack", "pad": "PadV2", "reverse": "ReverseV2", "top_k": "TopKV2", "index": "StridedSlice",
    "conv": "Conv2D", "band_part": "MatrixBandPart", "det": "MatrixDeterminant", "inv": "MatrixInverse", "eye": "Eye",
    "solve": "MatrixSolve", "triangular_solve": "MatrixTriangularSolve", "is_nan": "IsNan", "is_inf": "IsInf",
    "max_pool": "MaxPool", "avg_pool": "AvgPool", "sort": "Sort", "zeros_like": "ZerosLike", "erfinv": "Erfinv",
    "log1p": "Log1p", "expm1": "Expm1", "lgamma": "Lgamma", "fft": "FFT", "rfft": "RFFT", "irfft": "IRFFT",
    "getitem": "StridedSlice", "cond": "If", "if": "If", "while": "While", "while_loop": "While", "switch_case": "Case",
}  # fmt: skip
# Operators keep the name of the Python operator.
_OPERATORS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "div": "truediv",
    "pow": "pow",
    "floordiv": "floordiv",
}


def _type(node: Node) -> str:
    name = str(node.op.op_name)
    return _TYPES.get(name) or "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _named(graph: Graph) -> Iterator[tuple[str, str, Node | None, Sequence[Value]]]:
    """Name, type, node and results of each operation: inputs, then nodes in their order, after the constants
    they read."""
    counts: dict[str, int] = {}

    def unique(name: str) -> str:
        count = counts[name] = counts.get(name, -1) + 1
        return f"{name}_{count}" if count else name

    names = getattr(graph, "names", ())
    for k, value in enumerate(graph.inputs):
        yield unique(names[k] if k < len(names) else "captured"), "Placeholder", None, [value]
    constants: set[Value] = set()
    for node in graph.nodes:
        for value in node.operands:
            if value.constant is not None and value not in constants:
                constants.add(value)
                yield unique("Const"), "Const", None, [value]
        yield unique(_OPERATORS.get(node.name, _type(node))), _type(node), node, node.results


def name_of(value: Any) -> str:
    """The name of a value: that of its operation, and which result of it."""
    for name, _, _, results in _named(value.graph):
        for k, result in enumerate(results):
            if result is value:
                return f"{name}:{k}"
    return "Const:0" if value.constant is not None else "symbol:0"


class Operation:
    """One operation of a graph."""

    def __init__(
        self, graph: FuncGraph, name: str, kind: str, node: Node | None, results: Sequence[Value]
    ) -> None:
        self.graph = graph
        self.name = name
        self.type = kind
        self.device = ""
        self.control_inputs: list[Any] = []
        self._node, self._results = node, results

    @property
    def inputs(self) -> tuple:
        """The tensors that it reads."""
        return tuple(map(symbolic, self._node.operands)) if self._node is not None else ()

    @property
    def outputs(self) -> list:
        """The tensors that it makes."""
        return [symbolic(v) for v in self._results]

    def values(self) -> tuple:
        """The same as `outputs`."""
        return tuple(self.outputs)

    @property
    def node_def(self) -> Any:
        """Name, type and the names of the inputs."""
        names = [x.name for x in self.inputs]
        return SimpleNamespace(
            name=self.name, op=self.type, input=[n.removesuffix(":0") for n in names], attr={}, device=""
        )

    def __repr__(self) -> str:
        return f"<tf.Operation {self.name!r} type={self.type}>"


class FuncGraph:
    """What was traced, as operations.

    Args:
      graph: the trace or recording.
      concrete: the concrete function that it belongs to, once there is one.
    """

    building_function = True

    def __init__(self, graph: Graph | None = None, concrete: Any = None) -> None:
        if graph is None:
            raise TypeError(
                "gradtape has no explicit graphs. Hint: @tf.function makes one of a Python function."
            )
        self.traced = graph
        self._concrete = concrete

    @property
    def name(self) -> str:
        """The name of the function."""
        return "function" if self._concrete is None else str(self._concrete.name)

    @functools.cached_property
    def _operations(self) -> dict[str, Operation]:
        return {named[0]: Operation(self, *named) for named in _named(self.traced)}

    def get_operations(self) -> list[Operation]:
        """All operations, in their order."""
        return list(self._operations.values())

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation of this name.

        Raises:
          KeyError: if there is none.
        """
        if name not in self._operations:
            raise KeyError(f"The name {name!r} refers to an Operation not in the graph.")
        return self._operations[name]

    def get_tensor_by_name(self, name: str) -> Any:
        """The tensor of this name, `operation:number`.

        Raises:
          KeyError: if there is none.
        """
        operation, _, number = name.partition(":")
        outputs = self.get_operation_by_name(operation).outputs
        if not number.isdigit() or int(number) >= len(outputs):
            raise KeyError(f"The name {name!r} refers to a Tensor which does not exist.")
        return outputs[int(number)]

    def as_graph_def(self, from_version: Any = None, add_shapes: bool = False) -> Any:
        """Names, types and inputs of the operations: `graph_def.node`."""
        return SimpleNamespace(
            node=[operation.node_def for operation in self.get_operations()],
            library=SimpleNamespace(function=[]),
        )

    @property
    def external_captures(self) -> list:
        """The captured tensors and variables."""
        return list(self.captured_inputs)

    @property
    def internal_captures(self) -> list:
        """The placeholders of the captures inside the graph."""
        outside = self.captured_inputs
        return self.inputs[len(self.inputs) - len(outside) :]

    @property
    def captures(self) -> list[tuple]:
        """Pairs of a capture and its placeholder."""
        return list(zip(self.external_captures, self.internal_captures, strict=True))

    def __getattr__(self, name: str) -> Any:
        # Attributes of the concrete function: its inputs and outputs, variables, captured tensors, signature.
        if name not in _OF_FUNCTIONS or self._concrete is None:
            raise AttributeError(f"'FuncGraph' object has no attribute {name!r}")
        return getattr(self._concrete, name)

    def __repr__(self) -> str:
        return repr(self.traced)


_OF_FUNCTIONS = frozenset(
    (
        "inputs", "outputs", "variables", "trainable_variables", "structured_outputs", "structured_input_signature",
        "captured_inputs",
    )
)  # fmt: skip


def of_tensor(tensor: Any, name: str) -> Any:
    """`name`, `op`, `graph` or `value_index` of a symbolic tensor."""
    value = tensor._symbol
    if name == "graph":
        return FuncGraph(value.graph)
    full = name_of(value)
    operation, _, number = full.partition(":")
    if name == "op":
        return FuncGraph(value.graph)._operations.get(operation)
    return full if name == "name" else int(number)
