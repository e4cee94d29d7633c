"""User functions of datasets: traced as in TensorFlow, or run eagerly.

A function is traced once per kind of element, so that its Python code (prints, counters) runs once and its ops run
as one program. Functions that cannot be traced run eagerly, element by element: functions of datasets, and
functions whose results have shapes that depend on values.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from typing import Any

from gradtape import _core
from gradtape._src.autograph.conversion import convert
from gradtape._src.base import dtypes, nest
from gradtape._src.base.composites import map_parts
from gradtape._src.base.contexts import aside
from gradtape._src.base.errors import Untraceable
from gradtape._src.base.locks import Lock
from gradtape._src.base.shape import TensorSpec, unknown_shape
from gradtape._src.engines import NATIVE
from gradtape._src.functions.arguments import Given
from gradtape._src.functions.concrete import TracedFunction
from gradtape._src.functions.function import _ONCE, Function
from gradtape._src.graph.ir import Callback, Graph, symbolic
from gradtape._src.tensors import random as _random
from gradtape._src.tensors.composite import CompositeTensor
from gradtape.data import kinds
from gradtape.data.base import invalid
from gradtape.data.structure import (
    DatasetSpec,
    NoneTensorSpec,
    is_defined,
    is_plain,
    is_tensor,
    normalise,
    spec_of,
)

_debug = False


def set_debug(on: bool) -> None:
    """Makes all user functions of datasets run eagerly, for debuggers and prints."""
    global _debug
    _debug = on


def arguments(element: Any) -> tuple:
    """The arguments a function gets for an element: the parts of a tuple, or the element itself."""
    return element if type(element) is tuple else (element,)


class DataFunction:
    """A user function of elements.

    Args:
      function: the user's function.
      name: the method that it was passed to, for messages.
      finish: turns its result into an element.
      eager: whether it is never traced, for functions that return datasets.
    """

    def __init__(
        self,
        function: Callable,
        name: str,
        finish: Callable[[Any], Any] | None = None,
        eager: bool = False,
    ) -> None:
        if not callable(function):
            raise ValueError(
                f"Dataset.{name}: argument `func` must be a callable. Received func={function!r} (of type {type(function)})"
            )
        self.function = function
        self.name = name
        self._finish = finish or self._as_element
        self._eager = eager
        self._known: dict[tuple, TracedFunction | None] = {}  # None: runs eagerly
        self._statics: dict[str, Any] = {}
        self._lock = Lock()
        self.pure = False  # whether it has no side effects; known once it is traced
        # Every stage of a pipeline converts its function itself; the wrapper below is not user code.
        self._traced = Function(self._body, name=f"Dataset.{name}", autograph=False)

    def _as_element(self, result: Any) -> Any:
        try:
            element = normalise(tuple(result) if isinstance(result, list) else result)
        except (TypeError, ValueError) as e:
            raise TypeError(
                f"Unsupported return value from function passed to Dataset.{self.name}(): {result!r}. {e}"
            ) from e
        if all(part is None for part in nest.flatten(element)):
            raise invalid(
                f"Dataset.{self.name}: the function returned {result!r}; expected tensors. Hint: a `return`."
            )
        return element

    def _body(self, *args: Any) -> Any:
        copied = nest.map_structure(lambda x: x, args)  # a copy, because `(d, d.pop("label"))` is common
        result = self._finish(convert(self.function)(*copied))
        if not all(is_tensor(x) or isinstance(x, CompositeTensor) for x in nest.flatten(result)):
            raise Untraceable("it returns datasets or None")
        return result

    def _kind(self, flat: list) -> tuple | None:
        """The key of a call; None if it cannot be traced."""
        if self._eager or _debug or not all(map(is_tensor, flat)):
            return None
        return tuple([(t.dtype._code, t._dims) for t in flat])

    def _trace(self, kind: tuple, args: tuple) -> TracedFunction | None:
        with self._lock:
            if kind not in self._known:
                try:
                    # Random numbers drawn while tracing must not affect those of the program.
                    with aside(), _random.isolated(_random.isolated_seeds()):
                        concrete, created = self._traced._trace(Given(args, {}), NATIVE)
                        if created:
                            # The variables exist now: the trace that is kept only uses them.
                            concrete, created = self._traced._trace(Given(args, {}), NATIVE)
                        if created:
                            raise ValueError(_ONCE)
                except Untraceable:
                    concrete = None
                except Exception as e:
                    if not _is_ours(e):
                        raise
                    concrete = None
                self._known[kind] = concrete
                self.pure = all(map(_is_pure, self._known.values()))
            return self._known[kind]

    def __call__(self, *args: Any) -> Any:
        """The result for arguments with values, as an element."""
        flat = nest.flatten(args)
        kind = self._kind(flat)
        if kind is not None:
            try:
                concrete = self._known[kind]
            except KeyError:
                concrete = self._trace(kind, args)
            if concrete is not None:
                return concrete.call(flat)
        return self._finish(self.function(*args))

    def with_seeds(self, seeds: _random.Seeds) -> Callable:
        """The function with its own state of random numbers."""

        def call(*args: Any) -> Any:
            if self.pure:
                return self(*args)
            try:
                with _random.isolated(seeds):
                    return self(*args)
            except StopIteration as e:  # would end the iteration
                raise invalid(f"Function invocation produced OutOfRangeError: StopIteration: {e}") from e

        return call

    # ---- static shapes and types ------------------------------------------------------------------

    def concrete(self, specs: tuple) -> TracedFunction | None:
        """The trace for arguments of these specs, if they are known and it can be traced."""
        if self._eager or _debug or not is_plain(specs):
            return None
        kind = tuple([(s.dtype._code, tuple(s.shape)) for s in nest.flatten(specs)])
        if kind in self._known:
            return self._known[kind]
        return self._trace(kind, nest.map_structure(_placeholder, specs))

    def result(self, specs: tuple) -> Any:
        """The spec of the result for fully known specs; None if it depends on values."""
        concrete = self.concrete(specs)
        if concrete is None:
            return None
        output_specs = [
            TensorSpec(v.shape, dtypes.BY_CODE[v.dtype]) for v in concrete.graph_function.graph.outputs
        ]
        flat = concrete._unplaced(output_specs)
        structure = concrete._structure
        if structure is None:
            return flat[0]
        return map_parts(lambda parts: parts.spec, nest.pack_sequence_as(structure, flat))

    def result_of(self, specs: tuple) -> Any:
        """The spec of the result for specs with unknown sizes; None if it depends on values."""
        exact = self.result(specs) if is_defined(specs) else None
        return self._static(specs) if exact is None else exact

    def _static(self, specs: tuple) -> Any:
        """The spec of the result, from a trace for unknown sizes."""
        if (
            self._eager
            or _debug
            or any(isinstance(s, (DatasetSpec, NoneTensorSpec)) for s in nest.flatten(specs))
        ):
            return None
        key = repr(specs)
        if key not in self._statics:
            try:
                with aside(), _random.isolated(_random.isolated_seeds()):
                    concrete = self._traced.get_concrete_function(*specs)
                self._statics[key] = spec_of(concrete.structured_outputs)
            except Exception:  # raised when the function runs
                self._statics[key] = None
        return self._statics[key]

    def sketch(self, specs: tuple) -> Any:
        """The result of the function for symbols of these specs, and empty datasets; None if it needs more.

        Raises:
          TypeError: if it does not take such arguments, or returns something of a wrong type.
        """
        with contextlib.suppress(ValueError):
            inspect.signature(self.function).bind(*specs)
        if not all(isinstance(s, (TensorSpec, DatasetSpec)) for s in nest.flatten(specs)):
            return None
        graph = Graph()
        try:
            symbols = nest.map_structure(lambda s: _symbolic_argument(s, graph), specs)
            with aside(graph), _random.isolated(_random.isolated_seeds()):
                result = convert(self.function)(*symbols)
        except Exception:
            return None
        return self._finish(result)


def _symbolic_argument(spec: Any, graph: Graph) -> Any:
    if isinstance(spec, DatasetSpec):
        return kinds.ListDataset([], spec.element_spec)
    return symbolic(graph.input(tuple(spec.shape), spec.dtype._code))


def _is_ours(error: Exception) -> bool:
    """Whether an op of ours, not the user, needed the value of a symbol; then the function runs eagerly."""
    words = str(error)
    if "is not valid; expected" in words and "<tf.Tensor '" in words:
        return True  # a shape that depends on values
    if "ymbolic" not in words:
        return False
    trace, module = error.__traceback__, ""
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__", "")
        if name != "gradtape._src.tensors.tensor":  # conversions, which user code calls as well
            module = name
        trace = trace.tb_next
    return module.startswith("gradtape.") and module != __name__


def _is_pure(concrete: TracedFunction | None) -> bool:
    if concrete is None or concrete._assigned:
        return False
    variables = any(isinstance(e, _core.Variable) for e in concrete.externals)
    return not variables and not any(isinstance(n.op, Callback) for n in concrete.graph_function.graph.nodes)


def _placeholder(spec: TensorSpec) -> Any:
    return _core.symbolic(tuple(spec.shape), spec.dtype._code, None)


def spec_of_result(function: DataFunction, args: tuple) -> Any:
    """The spec of one result, with open sizes, because the next one may have others."""

    def opened(s: Any) -> Any:
        if isinstance(s, TensorSpec):
            return TensorSpec(unknown_shape(s.shape.rank), s.dtype)
        return s if isinstance(s, DatasetSpec) else s._with_tensor_ranks_only()

    with aside():
        return nest.map_structure(opened, spec_of(function(*args)))
