"""`function`: a Python function that runs as a graph.

The first call with arguments of a new kind traces the function: it runs once, on symbols, and
what it computes becomes a graph (`gradtape._src.graph`). Later calls run the graph's program. Python
code around the ops (prints, counters, appends) therefore runs while tracing only, as in
TensorFlow.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.autograph.conversion import annotate, convert
from gradtape._src.base import log, nest, settings
from gradtape._src.base.contexts import aside
from gradtape._src.base.errors import NeedsConstants, OperatorNotAllowedInGraphError, Untraceable, more
from gradtape._src.base.locks import Lock
from gradtape._src.base.shape import TensorSpec
from gradtape._src.base.source import line_of
from gradtape._src.functions.code import names_sizes_of_values
from gradtape._src.functions.concrete import ConcreteFunction
from gradtape._src.graph.calls import Static, join_shapes
from gradtape._src.graph.ir import symbolic
from gradtape._src.graph.trace import Trace
from gradtape._src.tensors import conversion
from gradtape._src.tensors.conversion import as_tensor
from gradtape._src.tensors.indexed_slices import IndexedSlices

if TYPE_CHECKING:
    from gradtape._src.debug.programs import Profile
    from gradtape._src.functions.recorded import RecordedFunction

_ONCE = (
    "tf.function only supports singleton tf.Variables created on the first call. Make sure the tf.Variable is only "
    "created once or created outside tf.function." + more("variables-in-functions")
)
_MOST_RETRACES = 5
_MOST_TRACES = 10_000  # of one function; the least recently used one is dropped
# Stands in the cache for calls that cannot be traced.
_EAGER: Any = object()


class Relaxation:
    """The trace of a function that reduces retracing, for arguments of one kind, and the shapes that it takes."""

    def __init__(self) -> None:
        self.statics: list[Static] | None = None  # that take all shapes so far
        self.trace: Any = None
        self.met = 0  # traces so far

    def accepts(self, shapes: Sequence[Static]) -> bool:
        """Whether the trace serves tensors of these shapes."""
        return self.trace is not None and self.joined(shapes) == self.statics

    def joined(self, shapes: Sequence[Static]) -> list[Static]:
        """The most precise shapes that take these and those so far."""
        if self.statics is None:
            return list(shapes)
        return [join_shapes((a, b)) for a, b in zip(self.statics, shapes, strict=True)]


class _Bound:
    """A method's function, kept with its object. Copies and pickles of the object leave it out."""

    __slots__ = ("owner", "function")

    def __init__(self, owner: Function, function: Function) -> None:
        self.owner = owner
        self.function = function

    def __deepcopy__(self, memo: dict) -> None:
        return None

    def __reduce__(self) -> tuple:
        return type(None), ()


class Function:
    """What `tf.function` returns. Call it like the Python function it was made of."""

    _exact_traces = 1  # of a function that reduces retracing, before sizes become unknown

    def __init__(
        self,
        python_function: Callable,
        name: str | None = None,
        input_signature: Any = None,
        autograph: bool = True,
        jit_compile: bool | None = None,
        reduce_retracing: bool = False,
        check: bool = False,
        **_: Any,
    ) -> None:
        self.python_function = python_function
        self.name = str(name or getattr(python_function, "__name__", "function"))
        self.input_signature = None if input_signature is None else tuple(input_signature)
        self.autograph = autograph
        self.jit_compile = jit_compile
        self.reduce_retracing = reduce_retracing
        self.check = check
        self._concrete = _core.Cache(_MOST_TRACES)
        self._relaxed = _core.Cache(_MOST_TRACES)  # by arguments without their shapes: a Relaxation
        # Whether a size may depend on values: then traces are recordings at once.
        self._needs_values = names_sizes_of_values(python_function)
        self._traces = 0
        self._made_variables = False
        self._lock = Lock()
        self._converted: Callable | None = None
        self._methods: dict[int, Any] = {}
        self._last_kinds: list[str] = []  # of the arguments that were traced last
        self._signature = inspect.signature(python_function) if self.input_signature is not None else None
        self._has_gaps = any(
            isinstance(s, TensorSpec) and not s.shape.is_fully_defined()
            for s in nest.flatten(self.input_signature or ())
        )
        functools.update_wrapper(self, python_function, updated=())

    # ---- methods ------------------------------------------------------------------------------

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bound to an object, a function has a cache of its own per object."""
        if instance is None:
            return self
        name = "__gradtape_function_" + self.name
        try:
            cache = instance.__dict__
        except AttributeError:
            return functools.partial(self, instance)
        bound = cache.get(name)
        if bound is None or bound.owner is not self:
            method = self.python_function.__get__(instance, owner)
            function = Function(
                method,
                self.name,
                self.input_signature,
                self.autograph,
                self.jit_compile,
                self.reduce_retracing,
                self.check,
            )
            bound = _Bound(self, function)
            object.__setattr__(instance, name, bound)
        return bound.function

    # ---- calls --------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if settings.functions_run_eagerly() or _core.current_trace() is not None:
            # Inside another trace a function is inlined.
            return self._python(*args, **kwargs)
        if self.input_signature is not None:
            args, kwargs = self._apply_signature(args, kwargs)
        key, tensors = self._key(args, kwargs)
        if self._has_gaps:
            key = self._declared_key(args, kwargs)
        concrete = self._concrete.find(key)
        if concrete is None:
            concrete, tensors = self._get(key, args, kwargs)
        if concrete is _EAGER:
            return nest.map_structure(_result, self._python(*args, **kwargs))
        if concrete.placeholders:
            given = [leaf for leaf in nest.flatten((args, kwargs)) if hasattr(leaf, "_placeholder")]
            for placeholder, leaf in zip(concrete.placeholders, given, strict=True):
                placeholder.bind(leaf)
        return concrete.call(tensors)

    def _key(self, args: tuple, kwargs: dict) -> tuple[Any, list]:
        """The key of a call, and its tensors. Tensors count by type and shape; see core/py/key.h."""
        if not kwargs and all(type(a) is _core.Tensor for a in args):
            return args, list(args)
        leaves = nest.flatten((args, kwargs))
        tensors = []
        parts: list = []
        for leaf in leaves:
            if isinstance(leaf, (np.ndarray, np.generic)):
                leaf = conversion.convert(leaf)
            if isinstance(leaf, _core.Tensor):
                tensors.append(leaf)
                parts.append(leaf)
            elif hasattr(leaf, "_placeholder"):
                parts.append(leaf._argument_key())
            else:
                parts.append(_lasting(leaf))
        if not kwargs and len(tensors) == len(args) == len(leaves):
            return tuple(parts), tensors  # arrays count as tensors
        return (_shape_of_nest((args, kwargs)), tuple(parts)), tensors

    def _get(self, key: Any, args: tuple, kwargs: dict) -> tuple[ConcreteFunction, list]:
        with self._lock:
            tensors = [
                as_tensor(t)
                for t in nest.flatten((args, kwargs))
                if isinstance(t, (_core.Tensor, np.ndarray, np.generic))
            ]
            concrete = self._concrete.find(key)
            if concrete is None:
                concrete = self._new(key, args, kwargs, tensors)
                self._concrete.add(key, concrete)
                if self.check and isinstance(concrete, ConcreteFunction):
                    concrete.compare(tensors)
            return concrete, tensors

    def _new(self, key: Any, args: tuple, kwargs: dict, tensors: list) -> Any:
        """The trace for arguments that were not met before."""
        statics: list[Static] = [t._dims for t in tensors]
        relaxation = None
        if self._has_gaps:
            statics = self._declared(args, tensors)
        elif self.reduce_retracing:
            relaxation = self._relaxation(key)
            if relaxation.accepts(statics):
                return relaxation.trace
            statics = relaxation.joined(statics)
        self._note_retrace(key)
        if relaxation is None:
            return self._traced(args, kwargs, statics)
        exact = relaxation.met < self._exact_traces
        trace = self._traced(args, kwargs, [t._dims for t in tensors] if exact else statics)
        relaxation.met += 1
        relaxation.statics = statics
        relaxation.trace = None if exact else trace
        return trace

    def _traced(self, args: tuple, kwargs: dict, statics: list[Static]) -> Any:
        """A graph for these sizes if they are all known, or else a recording; a mark if there can be neither."""
        known = all(s is not None and None not in s for s in statics)
        try:
            if not known or self._needs_values:
                return self._kept(lambda: self._record(args, kwargs, statics))
            try:
                return self._kept(lambda: self._trace(args, kwargs))
            except Untraceable as e:
                cause = e
            self._needs_values = True
            try:
                return self._kept(lambda: self._record(args, kwargs, statics))
            except OperatorNotAllowedInGraphError:
                raise cause from None  # Python itself needs a value
        except Untraceable as e:
            self._note_eager(e)
            self._made_variables = True
            return _EAGER

    def _kept(self, trace: Callable[[], tuple[Any, list]]) -> Any:
        """A trace that makes no variables: the first one may make some, and is made again with them."""
        concrete, created = trace()
        if created:
            if self._made_variables:
                raise ValueError(_ONCE)
            self._made_variables = True
            # The variables exist now: the trace to keep is one that only uses them.
            concrete, created = trace()
            if created:
                raise ValueError(_ONCE)
        self._made_variables = True
        return concrete

    def _relaxation(self, key: Any) -> Relaxation:
        """What is known of calls that differ from this one in the shapes of tensors only."""
        kinds = nest.map_structure(lambda x: x.dtype if isinstance(x, _core.Tensor) else x, key)
        relaxation = self._relaxed.find(kinds)
        if relaxation is None:
            relaxation = Relaxation()
            self._relaxed.add(kinds, relaxation)
        return relaxation

    def _note_eager(self, cause: Exception) -> None:
        """Logs why this function cannot be compiled: the original cause, without what Keras wrapped around it."""
        while isinstance(cause.__context__, Untraceable):
            cause = cause.__context__
        line = line_of(cause)
        why = f"{line}: {cause}" if line else str(cause)
        level = log.INFO if _EAGER in self._concrete.values() else log.WARNING
        log.log(level, "%s runs eagerly: %s.%s", self.name, why.rstrip("."), more("traced-values"))

    def _note_retrace(self, key: Any) -> None:
        kinds = _kinds(key)
        if self._last_kinds and len(self._concrete) < _MOST_RETRACES:
            log.info("%s: tracing again: %s", self.name, _difference(self._last_kinds, kinds))
        elif (
            len(self._concrete) == _MOST_RETRACES
            and self.input_signature is None
            and not self.reduce_retracing
        ):
            log.warning(
                "%s: %d calls triggered tf.function retracing; the last one because %s. Tracing is expensive. Hint: pass "
                "tensors instead of Python numbers, and keep their shapes the same.%s",
                self.name, _MOST_RETRACES, _difference(self._last_kinds, kinds), more("retracing"),
            )  # fmt: skip
        self._last_kinds = kinds

    def _trace(self, args: tuple, kwargs: dict, lifts: bool = False) -> tuple[ConcreteFunction, list]:
        self._traces += not lifts
        trace = Trace(lifts=lifts)
        symbols: list = []
        placeholders: list = []

        def symbol_of(leaf: Any) -> Any:
            if isinstance(leaf, (np.ndarray, np.generic)):
                leaf = conversion.convert(leaf)
            if hasattr(leaf, "_placeholder"):
                placeholders.append(leaf._placeholder())
                return placeholders[-1]
            if not isinstance(leaf, _core.Tensor):
                return leaf
            symbols.append(symbolic(trace.input(tuple(leaf.shape), leaf.dtype._code)))
            return symbols[-1]

        sym_args, sym_kwargs = nest.map_structure(symbol_of, (args, kwargs))
        try:
            with aside(trace):
                result = self._traceable()(*sym_args, **sym_kwargs)
                single = not nest.is_nested(result)
                flat = [_result(r) for r in nest.flatten(result)]
                concrete = ConcreteFunction(self, trace, None if single else result, flat, symbols)
            concrete.placeholders = placeholders
        except NeedsConstants:
            if lifts:
                raise
            concrete = None
        except Exception as e:
            annotate(e)
            raise
        return self._trace(args, kwargs, True) if concrete is None else (concrete, trace.created)

    def _record(self, args: tuple, kwargs: dict, statics: list[Static]) -> tuple[RecordedFunction, list]:
        """A recording for tensors of these shapes, and the variables that it made."""
        from gradtape._src.functions.recorded import RecordedFunction, Recording

        self._traces += 1
        recording = Recording()
        given = iter(statics)
        placeholders: list = []

        def symbol_of(leaf: Any) -> Any:
            if isinstance(leaf, (np.ndarray, np.generic)):
                leaf = conversion.convert(leaf)
            if hasattr(leaf, "_placeholder"):
                placeholders.append(leaf._placeholder())
                return placeholders[-1]
            if not isinstance(leaf, _core.Tensor):
                return leaf
            return recording.argument(next(given), leaf.dtype._code)

        sym_args, sym_kwargs = nest.map_structure(symbol_of, (args, kwargs))
        try:
            with aside(recording):
                result = self._traceable()(*sym_args, **sym_kwargs)
                flat = [_result(r) for r in nest.flatten(result)]
        except Exception as e:
            annotate(e)
            raise

        recorded = RecordedFunction(recording, result, flat)
        recorded.placeholders = placeholders
        return recorded, recording.created

    def _traceable(self) -> Callable:
        """The Python function with its control flow made traceable."""
        if self._converted is None:
            self._converted = convert(self.python_function) if self.autograph else self.python_function
        return self._converted

    def _python(self, *args: Any, **kwargs: Any) -> Any:
        function = self.python_function if _core.current_trace() is None else self._traceable()
        return function(*args, **kwargs)

    # ---- signatures -----------------------------------------------------------------------------

    def _apply_signature(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        assert self._signature is not None and self.input_signature is not None
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = list(bound.args)
        specs = self.input_signature
        if len(given) < len(specs):
            raise TypeError(
                f"{self.name}: input_signature has {len(specs)} entries, the call {len(given)} arguments."
            )
        out = []
        for spec, value in zip(specs, given, strict=False):
            out.append(self._fit_all(spec, value))
        return (*out, *given[len(specs) :]), bound.kwargs

    def _declared_key(self, args: tuple, kwargs: dict) -> Any:
        """What a call is recognised by where the signature leaves sizes open."""
        assert self.input_signature is not None
        return self._key((*self.input_signature, *args[len(self.input_signature) :]), kwargs)[0]

    def _declared(self, args: tuple, tensors: list) -> list[Static]:
        """The shapes of the tensors as the signature declares them."""
        specs = [s for s in nest.flatten(self.input_signature) if isinstance(s, TensorSpec)]
        shapes: list[Static] = [None if s.shape.rank is None else tuple(s.shape.as_list()) for s in specs]
        return [*shapes, *(t._dims for t in tensors[len(specs) :])]

    def _fit_all(self, spec: Any, value: Any) -> Any:
        """`value` with a tensor for each TensorSpec of `spec`."""
        if isinstance(spec, TensorSpec):
            return self._fit(spec, value)
        if isinstance(spec, dict):
            return {k: self._fit_all(spec[k], value[k]) for k in spec}
        return type(spec)(self._fit_all(s, v) for s, v in zip(spec, value, strict=True))

    def _fit(self, spec: Any, value: Any) -> Any:
        tensor = value if isinstance(value, _core.Tensor) else None
        if tensor is None:
            try:
                tensor = (
                    value._read()
                    if isinstance(value, _core.Variable)
                    else conversion.convert(value, spec.dtype._code)
                )
            except (TypeError, ValueError) as e:
                raise TypeError(f"Binding inputs to tf.function failed due to `{e}`. Expected {spec}.") from e
        if tensor.dtype != spec.dtype or not spec.shape.is_compatible_with(tensor.shape):
            have = TensorSpec(tuple(tensor.shape), tensor.dtype)
            raise TypeError(f"Binding inputs to tf.function failed due to `Can not cast {have} to {spec}`.")
        return tensor

    # ---- inspection -----------------------------------------------------------------------------

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The trace for these arguments: tensors, TensorSpecs, or Python values."""
        if self.input_signature is not None and not args and not kwargs:
            args = self.input_signature

        def example(leaf: Any) -> Any:
            if isinstance(leaf, TensorSpec):
                known = [] if leaf.shape.rank is None else leaf.shape.as_list()
                return ops.zeros([1 if d is None else d for d in known], leaf.dtype)
            return leaf

        declared = tuple(args), kwargs
        args, kwargs = nest.map_structure(example, declared)
        key = self._key(*declared)[0]
        with self._lock:
            concrete = self._concrete.find(key)
            if concrete is None:
                tensors = [
                    x
                    for x in nest.flatten(declared)
                    if isinstance(x, (_core.Tensor, np.ndarray, np.generic, TensorSpec))
                ]
                statics: list[Static] = [_static_shape(x) for x in tensors]
                if all(s is not None and None not in s for s in statics):
                    return self._get(self._key(args, kwargs)[0], args, kwargs)[0]
                concrete = self._traced(args, kwargs, statics)
                self._concrete.add(key, concrete)
            return concrete

    def experimental_get_tracing_count(self) -> int:
        """How many times the function was traced."""
        return self._traces

    @property
    def function_spec(self) -> Any:
        """The signature of the Python function."""
        return inspect.signature(self.python_function)

    def pretty(self, *args: Any, **kwargs: Any) -> str:
        """What the compiled function does, step by step, with the lines it comes from.

        >>> import gradtape as tf
        >>> f = tf.function(lambda x: tf.tanh(x) * 2.0 + 1.0)
        >>> print(f.pretty(tf.ones([3])).splitlines()[0])
        <lambda>(%0: float32[3])

        Without arguments: for all kinds of arguments it was called with.
        """
        from gradtape._src.debug.programs import pretty

        if not args and not kwargs and self._concrete:
            programs = [
                p
                for c in self._concrete.values()
                for p in ([c] if isinstance(c, ConcreteFunction) else getattr(c, "programs", ()))
            ]
            return "\n\n".join(map(pretty, programs))
        return pretty(self._compiled(args, kwargs)[0])

    def profile(self, *args: Any, repeats: int = 20, **kwargs: Any) -> Profile:
        """The time of each step of the compiled function on these arguments, and of each line of the program.

        Returns:
          A `Profile`: print it, or look at its `steps` and `by_line()`.
        """
        from gradtape._src.debug.programs import profile

        concrete, tensors = self._compiled(args, kwargs)
        return profile(concrete, tensors, repeats)

    def _compiled(self, args: tuple, kwargs: dict) -> tuple[ConcreteFunction, list]:
        if self.input_signature is not None:
            args, kwargs = self._apply_signature(args, kwargs)
        key, _ = self._key(args, kwargs)
        concrete, tensors = self._get(key, args, kwargs)
        if concrete is _EAGER:
            raise ValueError(f"{self.name} runs eagerly with such arguments: there is no program to look at.")
        if not isinstance(concrete, ConcreteFunction):
            concrete = concrete.program_for(tensors)
        return concrete, tensors

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """The kinds of arguments met so far, a paragraph for each trace."""
        return "\n\n".join(f"{self.name}({', '.join(map(str, c.specs))})" for c in self._concrete.values())


def _static_shape(x: Any) -> Static:
    """The shape of a tensor, an array, or a TensorSpec."""
    shape = getattr(x, "shape", ())
    rank = shape.rank if hasattr(shape, "rank") else len(shape)
    return None if rank is None else tuple(shape)


def _result(value: Any) -> Any:
    """A result of the traced function: Python numbers become tensors."""
    return value if value is None or isinstance(value, IndexedSlices) else as_tensor(value)


def _lasting(leaf: Any) -> Any:
    """A Python argument as part of the key of a trace; of what can change, a copy."""
    if type(leaf) is bool or (type(leaf) is float and leaf.is_integer()):
        return int(leaf)  # numbers compare by value, whatever their type, as in TensorFlow
    if isinstance(leaf, (set, frozenset)):
        return ("set", type(leaf), frozenset(leaf))
    if isinstance(leaf, slice):
        return ("slice", leaf.start, leaf.stop, leaf.step)
    return bytes(leaf) if isinstance(leaf, bytearray) else leaf


def _shape_of_nest(structure: Any) -> Any:
    """The structure of arguments as something hashable."""
    if isinstance(structure, dict):
        return ("dict", tuple((k, _shape_of_nest(structure[k])) for k in sorted(structure)))
    if isinstance(structure, (list, tuple)) and nest.is_nested(structure):
        return (type(structure), tuple(map(_shape_of_nest, structure)))
    return None


def _kinds(key: Any) -> list[str]:
    """Descriptions of the arguments of a call, for messages about retracing."""
    structured = len(key) == 2 and isinstance(key[0], tuple) and isinstance(key[0][0], type)
    return [
        f"{part.dtype.name}{list(part._dims)}" if isinstance(part, _core.Tensor) else repr(part)
        for part in (key[1] if structured else key)
    ]


def _difference(before: list[str], after: list[str]) -> str:
    for i, (a, b) in enumerate(zip(before, after, strict=False)):
        if a != b:
            return f"argument {i}: {a} before, {b} now"
    return "the structure of the arguments changed"


def function(func: Callable | None = None, **options: Any) -> Any:
    """Makes a Python function run as a graph; usable with and without arguments.

    Args:
      func: the function.
      input_signature: TensorSpecs, one per argument.
      autograph: whether `if`, `while`, `for` over tensors become part of the graph.
      jit_compile: accepted; programs are compiled natively in any case.
      reduce_retracing: trace for any size once a second one comes, not for each.
      check: compare the program of each new trace, and of its gradient, with its ops run one by one,
        and raise an error that names the first op whose result differs.

    Example:
      >>> import gradtape as tf
      >>> @tf.function
      ... def f(x):
      ...     return x * x + 1.0
      >>> f(tf.constant(3.0)).numpy()
      np.float32(10.0)
    """
    supported = {"input_signature", "autograph", "jit_compile", "reduce_retracing", "check"}
    chosen = {k: v for k, v in options.items() if k in supported}
    if options.get("experimental_relax_shapes"):
        chosen["reduce_retracing"] = True

    def wrap(f: Callable) -> Function:
        if not callable(f):
            raise TypeError(f"{f!r} is not a callable object")
        return Function(f, **chosen)

    return wrap if func is None else wrap(func)
