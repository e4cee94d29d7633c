"""One trace of a function: its inputs and outputs, and how it is called.

`ConcreteFunction` is the common base of traces. `TracedFunction` is the graph for arguments of known sizes;
`RecordedFunction` (recorded.py) serves all sizes.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradtape import _core
from gradtape._src import engines
from gradtape._src.base import composites, nest
from gradtape._src.base.shape import TensorShape, TensorSpec
from gradtape._src.functions import kinds
from gradtape._src.functions.arguments import FunctionType, Given
from gradtape._src.functions.kinds import Literal
from gradtape._src.graph.ir import symbolic
from gradtape._src.graph.operations import FuncGraph
from gradtape._src.graph.trace import Trace
from gradtape._src.graph.traced import Traced
from gradtape._src.state.variable_spec import VariableSpec
from gradtape._src.tensors import above

if TYPE_CHECKING:
    from gradtape._src.functions.function import Function


class ConcreteFunction:
    """One trace of a function, for arguments of one kind. Call it with such arguments.

    >>> import gradtape as tf
    >>> @tf.function
    ... def scaled(x, k=2):
    ...     return x * k
    >>> concrete = scaled.get_concrete_function(tf.TensorSpec([None]))
    >>> print(concrete.pretty_printed_signature(verbose=False))
    (x: TensorSpec(shape=(None,), dtype=tf.float32, name=None), k: Literal[2]) -> TensorSpec(shape=(None,), \
dtype=tf.float32, name=None)
    >>> concrete(tf.constant([1.0, 2.0])).numpy()
    array([2., 4.], dtype=float32)
    """

    name: str  # of the Python function

    def __init__(self, owner: Function, function_type: FunctionType) -> None:
        self.owner = owner
        self.name = owner.name
        self.function_type = function_type
        self.placeholders: Sequence[Any] = ()  # placeholders of arguments that are datasets or iterators
        self.proxies: Sequence[Any] = ()  # proxies of arguments that are variables

    # ---- what each kind of trace defines ----------------------------------------------------------

    def call(self, tensors: Sequence[Any], variables: Sequence[Any] = ()) -> Any:
        """Runs the trace on the tensors and variables among its arguments, in their order."""
        raise NotImplementedError

    def _arguments(self) -> list:
        """A symbolic tensor for each tensor among the arguments."""
        raise NotImplementedError

    def _results(self) -> tuple[Any, list]:
        """The structure of the result, and what is in it: symbolic tensors, None."""
        raise NotImplementedError

    @property
    def captured_inputs(self) -> list:
        """Tensors and variables that the function captures."""
        raise NotImplementedError

    @property
    def graph(self) -> Any:
        """What was traced, as operations."""
        raise NotImplementedError

    # ---- inputs and outputs -----------------------------------------------------------------------

    @property
    def inputs(self) -> list:
        """Symbolic tensors: those of the arguments, then those of the captures."""
        tensors, aliases = iter(self._arguments()), set()
        inside = []
        for _, kind in self.function_type.inputs:
            if isinstance(kind, TensorSpec):
                inside.append(next(tensors))
            elif isinstance(kind, VariableSpec) and kind.alias_id not in aliases:
                aliases.add(kind.alias_id)
                inside.append(without_value(self.proxies[len(aliases) - 1]))
        return [*inside, *map(without_value, self.captured_inputs)]

    @property
    def outputs(self) -> list:
        """Symbolic tensors, one for each tensor of the result."""
        return [x for x in self._results()[1] if x is not None]

    @property
    def structured_outputs(self) -> Any:
        """The result with symbolic tensors: lists, tuples and dicts of them."""
        structure, flat = self._results()
        if not nest.is_nested(structure):
            return flat[0]
        return composites.together(nest.pack_sequence_as(structure, flat))

    @property
    def output_shapes(self) -> Any:
        """The shapes of the results, in their structure."""
        outputs = composites.replaced(self.structured_outputs)
        return nest.map_structure(lambda x: TensorShape(None) if x is None else x.shape, outputs)

    @property
    def output_dtypes(self) -> Any:
        """The element types of the results, in their structure."""
        outputs = composites.replaced(self.structured_outputs)
        return nest.map_structure(lambda x: None if x is None else x.dtype, outputs)

    @property
    def structured_input_signature(self) -> tuple[tuple, dict]:
        """The arguments by position and by name: TensorSpecs, and the Python values that the trace is made for."""
        return self.function_type.structured()

    @property
    def variables(self) -> tuple:
        """The captured variables that the function reads or writes."""
        return tuple(e for e in self.captured_inputs if isinstance(e, _core.Variable))

    @property
    def trainable_variables(self) -> tuple:
        """Its trainable variables."""
        return tuple(v for v in self.variables if v.trainable)

    @functools.cached_property
    def captured_ids(self) -> frozenset[int]:
        """The ids of the captured variables, which the trace keeps alive."""
        return frozenset(map(id, self.variables))

    # ---- in words ---------------------------------------------------------------------------------

    def _result_text(self) -> str:
        return kinds.text(nest.map_structure(_result_kind, self.structured_outputs))

    def pretty_printed_signature(self, verbose: bool = True) -> str:
        """The signature in words: a line for each parameter, or all in one line."""
        if not verbose:
            return f"{self.function_type} -> {self._result_text()}"
        lines = ["Input Parameters:"]
        for p in self.function_type.parameters:
            lines.append(f"  {p.name} ({p.kind.name}): {kinds.text(p.annotation)}")
        if len(lines) == 1:
            lines.append("  None")
        lines += ["Output Type:", f"  {self._result_text()}", "Captures:"]
        for x in self.captured_inputs:
            spec = (VariableSpec if isinstance(x, _core.Variable) else TensorSpec)(x.shape, x.dtype)
            lines.append(f"  {id(x)}: {spec}")
        return "\n".join([*lines, *([] if self.captured_inputs else ["  None"])])

    def __str__(self) -> str:
        return f"ConcreteFunction {self.pretty_printed_signature()}"

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self.pretty_printed_signature(verbose=False)} at 0x{id(self):X}>"

    _repr_html_ = above.shown

    # ---- deployment -------------------------------------------------------------------------------

    def export(
        self,
        path: Any,
        shapes: dict[str, str] | None = None,
        platforms: Sequence[str] = ("cpu", "cuda", "tpu"),
        variables: str = "frozen",
        seed: int | None = None,
        max_iterations: int = 64,
        overwrite: bool = False,
        max_size: int = 65_536,
    ) -> None:
        """Writes the function to a folder, as StableHLO that runs with JAX and without gradtape.

        One program serves all sizes that the signature leaves open. It is compared with native code at several sizes
        before it is written; what cannot be right for all sizes is refused.

        Args:
          path: a folder that does not exist. `load.py` in it runs the function; `tf.export.load` does the same.
          shapes: names for unknown sizes, `{"x": "batch, 16*h, 3"}`: equal names are equal sizes. By default every size
            has a name of its own, `x_0`; if the function cannot be exported so, all first axes are named `batch`.
          platforms: the platforms to run on, out of "cpu", "cuda", "rocm" and "tpu".
          variables: "frozen", they become constants; or "inputs", for training steps: the program takes them and returns
            their new values, and `variables.npz` has the current ones.
          seed: the seed of random numbers in the function, which are then the same in each call. Without it, the caller
            may pass a seed.
          max_iterations: the limit for a loop that a tape in the function differentiates.
          overwrite: whether an existing folder is replaced.
          max_size: the largest value of unknown sizes. If the behaviour of the function changes below that, as of one
            that takes the first 50 rows, the limit is where it changes.

        Raises:
          ImportError: if JAX is not installed.
          AlreadyExistsError: if there is something at `path`.
          ValueError: if it assigns variables that would be frozen, or an argument is wrong.
          UnimplementedError: if an op in the function needs Python, or cannot be exported for all sizes; the message
            names it.
        """
        engines.need_jax("export")
        from gradtape._src.engines.xla.export import export

        export(self, path, shapes, platforms, variables, seed, max_iterations, overwrite, max_size)

    # ---- calls ------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the trace with arguments of its own kind, by position or by name.

        Python values that it was made for may be left out.

        Raises:
          TypeError: if the arguments do not fit.
          InvalidArgumentError: if a tensor has another element type.
        """
        leaves = self.function_type.leaves(self.name, args, kwargs, f" -> {self._result_text()}")
        tensors, sources = [], []
        variables: dict[int, Any] = {}
        for x, (name, kind) in zip(leaves, self.function_type.inputs, strict=True):
            if isinstance(kind, TensorSpec):
                tensors.append(x)
            elif isinstance(kind, VariableSpec):
                if variables.setdefault(kind.alias_id or 0, x) is not x:
                    raise TypeError(
                        f"{self.name}: {name} was the same variable as another argument when it was traced."
                    )
            else:
                sources.append(x)
        given = list(variables.values())
        if len({id(v) for v in given}) < len(given) or any(id(v) in self.captured_ids for v in given):
            raise TypeError(
                f"{self.name}: a variable is given for two of those that the function was traced with. Hint: call the "
                "tf.function itself, which is traced for that."
            )
        return self.call_with(tensors, given, sources)

    def add_to_graph(self, g: Any = None) -> None:
        """Nothing to do: traces are not registered with a graph."""

    add_gradient_functions_to_graph = add_to_graph

    def call_with(self, tensors: Sequence[Any], variables: Sequence[Any], sources: Sequence[Any]) -> Any:
        """Like `call`, with datasets and iterators among the arguments."""
        for placeholder, source in zip(self.placeholders, sources, strict=True):
            placeholder.bind(source)
        return self.call(tensors, variables)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            f"a concrete function of {self.name} can be neither pickled nor copied: it is a graph with the variables that "
            "it uses. Hint: the tf.function can."
        )


class TracedFunction(ConcreteFunction, Traced):
    """A trace of known sizes: a graph, and its program."""

    def __init__(
        self,
        owner: Function,
        function_type: FunctionType,
        trace: Trace,
        structure: Any,
        flat_outputs: list,
        n_arguments: int,
        proxies: Sequence[Any] = (),
    ) -> None:
        ConcreteFunction.__init__(self, owner, function_type)
        self._structure = structure
        self._has_parts = composites.has_parts(structure)
        self._is_tensor = [o is not None for o in flat_outputs]
        outputs = [o for o in flat_outputs if o is not None]
        self._only_result = structure is None and len(outputs) == 1
        Traced.__init__(self, trace, outputs, n_arguments, owner.name, proxies)

    @property
    def gives_tensors(self) -> bool:
        """Whether the result is a nest of tensors and nothing else."""
        return all(self._is_tensor) and not self._has_parts

    @property
    def graph(self) -> Any:
        """What was traced, as operations."""
        return FuncGraph(self.graph_function.graph, self)

    @property
    def captured_inputs(self) -> list:
        """Tensors and variables that the function captures."""
        return [e for e in self.externals if not any(e is s for s in self.proxies)]

    def _arguments(self) -> list:
        return [symbolic(v) for v in self.graph_function.graph.inputs[: self.n_arguments]]

    def _results(self) -> tuple[Any, list]:
        return self._structure, self._unplaced([symbolic(v) for v in self.graph_function.graph.outputs])

    def _unplaced(self, outs: Sequence[Any]) -> list:
        """The flat results, from the outputs of the graph."""
        given = iter(outs)
        return [next(given) if is_tensor else None for is_tensor in self._is_tensor]

    def compare(self, tensors: Sequence[Any], variables: Sequence[Any] = ()) -> None:
        """Raises InternalError if the program and eager mode differ."""
        from gradtape._src.graph.check import check

        check(self.graph_function, self.operands(tensors, variables))

    def call(self, tensors: Sequence[Any], variables: Sequence[Any] = ()) -> Any:
        """Runs the trace on the tensors and variables among its arguments, in their order."""
        trace = _core.current_trace()
        if trace is None and not self.proxies and not _core.is_recording():
            outs = self.graph_function.program.update([*tensors, *self.externals], self._assigned)
        elif trace is not None and trace.records:
            return trace.call(self.call, (list(tensors), list(variables)), {})
        else:
            outs = self.run(tensors, variables)
        return outs[0] if self._only_result else self._packed(outs)

    def remember(self, cache: Any, args: tuple, kwargs: dict, given: Given) -> None:
        """Has the core run later calls with such arguments: tensors, variables, plain values.

        It cannot if what the trace takes is not among them as it is: defaults, and what was converted to the type that a
        signature declares.
        """
        tensors, variables = given.tensors, given.variables
        leaves = nest.flatten([args, [*kwargs.values()]])
        places: dict[int, list[int]] = {}
        for k, x in enumerate(leaves):
            places.setdefault(id(x), []).append(k)
        if len(tensors) != sum(isinstance(x, _core.Tensor) for x in leaves):
            return
        if any(id(x) not in places for x in (*tensors, *variables)):
            return
        if kwargs and any(len(places[id(t)]) > 1 for t in tensors):
            return  # one tensor by two names: in later calls it may be two
        in_place_of = functools.partial(self._in_place_of, variables=[places[id(v)][0] for v in variables])
        inputs = (*(places[id(t)].pop(0) for t in tensors), *in_place_of(self.externals))
        assigned = tuple(in_place_of(self._assigned))
        runner = _core.Runner(self.graph_function.program, inputs, assigned, self._result_in_core)
        cache.remember(args, kwargs, runner)

    @functools.cached_property
    def _result_in_core(self) -> Any:
        """What the core makes the result of: its structure with numbers of outputs, or else `_packed`."""
        if self._only_result:
            return 0
        numbers = None if self._has_parts else self._packed(range(len(self._is_tensor)))
        return numbers if numbers is not None and _is_simple(numbers) else self._packed

    def _packed(self, outs: Sequence[Any]) -> Any:
        """The result in its structure, from the outputs of the graph."""
        flat = self._unplaced(outs)
        if self._structure is None:
            return flat[0]
        packed = nest.pack_sequence_as(self._structure, flat)
        return composites.together(packed) if self._has_parts else packed


def _is_simple(structure: Any) -> bool:
    """Whether it consists of lists, tuples and dicts only, and not of classes derived from them."""
    if type(structure) is dict:
        structure = list(structure.values())
    elif type(structure) not in (list, tuple):
        return not nest.is_nested(structure)
    return all(map(_is_simple, structure))


def without_value(x: Any) -> Any:
    """A symbolic tensor of the shape and type of a tensor or variable."""
    dims = tuple(x._value_shape) if isinstance(x, _core.Variable) else x._dims
    return _core.symbolic(dims, x.dtype._code, None)


def _result_kind(x: Any) -> Any:
    if isinstance(x, _core.Tensor):
        return TensorSpec(x.shape, x.dtype)
    return x._type_spec if nest.is_composite(type(x)) else Literal(x)
