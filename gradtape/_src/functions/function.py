"""`function`: a Python function that runs as a graph.

The first call with arguments of a new kind traces the function: it runs once, on symbolic tensors, and
what it computes becomes a graph (`gradtape._src.graph`). Later calls run the graph's program. Python
code around the ops (prints, counters, appends) therefore runs while tracing only, as in
TensorFlow.
"""

from __future__ import annotations

import copy
import functools
import pickle
import sys
import types
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from gradtape import _core
from gradtape._src import engines
from gradtape._src.autograph.conversion import annotate, convert
from gradtape._src.base import composites, log, nest, replicas, settings
from gradtape._src.base.contexts import aside
from gradtape._src.base.errors import (
    NeedsConstants,
    NeedsVariable,
    OperatorNotAllowedInGraphError,
    UnimplementedError,
    Untraceable,
    more,
)
from gradtape._src.base.locks import Lock
from gradtape._src.base.source import line_of
from gradtape._src.functions.arguments import Contents, FunctionType, Given, Kinds, Parameters
from gradtape._src.functions.around import Bound, Eager, described, show_attributes, spec_of_symbol
from gradtape._src.functions.code import names_sizes_of_values
from gradtape._src.functions.concrete import ConcreteFunction, TracedFunction
from gradtape._src.functions.families import MOST_CALLS, Family, Retraces, Traces, is_known
from gradtape._src.graph.calls import Static, has_gaps
from gradtape._src.graph.ir import symbolic
from gradtape._src.graph.trace import Trace
from gradtape._src.state.variable import forget_values, variable_proxy
from gradtape._src.tensors import above, conversion

if TYPE_CHECKING:
    from gradtape._src.debug.programs import Profile
    from gradtape._src.engines import Engine
    from gradtape._src.functions.recorded import SizedFunction

_ONCE = (
    "tf.function only supports singleton tf.Variables created on the first call. Make sure the tf.Variable is only "
    "created once or created outside tf.function." + more("variables-in-functions")
)
# Names that `experimental_attributes` may have; they are for TensorFlow's devices and compilers, and have no effect.
_ATTRIBUTES = frozenset(
    (
        "_OutputsOnOpDevice", "_disable_acd", "_implements", "_noinline", "_tf_data_function", "api_implements",
        "api_preferred_device", "disable_summaries_at_runtime", "experimental_ints_on_device",
        "function_runs_at_most_once", "go_backwards", "runtime_constant_optimization", "time_major",
    )
)  # fmt: skip


# Cached in place of a trace where a trace is valid only for the variables it was made with.
_FOR_EACH_VARIABLE: Any = object()


class Function(_core.Quick):
    """What `tf.function` returns. Call it like the Python function that it wraps."""

    _exact_traces = 1  # of a function that reduces retracing, before sizes become unknown
    _repr_html_, __repr__ = above.shown, described

    def __init__(
        self,
        python_function: Callable,
        name: str | None = None,
        input_signature: Any = None,
        autograph: bool = True,
        jit_compile: bool | None = None,
        reduce_retracing: bool = False,
        check: bool = False,
    ) -> None:
        self.python_function = python_function
        self.name = str(name or getattr(python_function, "__name__", "function"))
        self.parameters = Parameters(python_function)
        self.input_signature = input_signature
        self._declared: FunctionType | None = None  # what the signature declares
        if input_signature is not None:
            if not isinstance(input_signature, (tuple, list)):
                raise TypeError(
                    f"input_signature must be either a tuple or a list, got {type(input_signature)}."
                )
            self.input_signature = tuple(input_signature)
            # The signature of an unbound method cannot be checked yet: `self` is missing.
            if self.parameters.names[:1] != ["self"]:
                self._declared = FunctionType.of_signature(self.parameters, self.input_signature)
        self.autograph = autograph
        self.jit_compile = jit_compile
        self.reduce_retracing = reduce_retracing
        self.check = check
        self._quick = _core.Cache(MOST_CALLS)  # by arguments: what runs the trace that serves them
        self._plain = Traces(engines.NATIVE)
        # Traces by the engine that runs them, and by the replica that they are made in.
        self._traces_of: dict[tuple[Engine, Any], Traces] = {(engines.NATIVE, None): self._plain}
        # Whether a size may depend on values: then traces are recordings at once.
        self._needs_values = names_sizes_of_values(python_function)
        self._traces = 0
        self._met = Kinds()
        self._made_variables = False
        self._lock = Lock()
        self._converted: Callable | None = None
        self._retraces = Retraces(self.name)
        functools.update_wrapper(self, python_function, updated=())
        show_attributes(self, python_function)

    def _options(self) -> dict[str, Any]:
        names = "name", "input_signature", "autograph", "jit_compile", "reduce_retracing", "check"
        return {name: getattr(self, name) for name in names}

    def _decorate(self, decorator: Callable[[Callable], Callable]) -> None:
        """Wraps the Python function in a decorator, as Sonnet's modules do with their methods.

        Raises:
          ValueError: if the function was called before.
        """
        if self._traces:
            raise ValueError("Functions cannot be decorated after they have been traced.")
        Function.__init__(self, decorator(self.python_function), **self._options())

    # ---- methods ------------------------------------------------------------------------------

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A bound function has its own cache of traces for each object."""
        if instance is None:
            return self
        name = "__gradtape_function_" + self.name
        try:
            cache = instance.__dict__
        except AttributeError:
            return functools.partial(self, instance)
        bound = cache.get(name)
        if bound is None or bound.owner is not self:
            function = Function(self.python_function.__get__(instance, owner), **self._options())
            bound = Bound(self, function)
            keep = type.__setattr__ if isinstance(instance, type) else object.__setattr__  # of a class method
            keep(instance, name, bound)
        return bound.function

    # ---- calls --------------------------------------------------------------------------------

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        """The slow path of a call. The core runs calls that are like an earlier one, with no tape, trace or watcher."""
        if settings.functions_run_eagerly() or _core.current_trace() is not None:
            # Inside another trace a function is inlined.
            if _core.current_trace() is not None:
                self._met.inline(None if self.input_signature else self.parameters.bound(args, kwargs))
            return self._python(*args, **kwargs)
        traces = self._traces_now()
        plain = not kwargs and all(type(a) is _core.Tensor for a in args)
        if plain:
            trace = traces.calls.find(args)
            if trace is not None:
                return trace.call(args)
        given, trace = self._trace_for(self._given(args, kwargs), traces)
        if type(trace) is Eager:
            args, kwargs = self.parameters.arrays_as_tensors(args, kwargs)
            result = composites.apart(self._python(*args, **kwargs))
            return composites.together(nest.map_structure(self._result, result))
        if plain and len(given.tensors) == len(args) and not (given.variables or given.sources):
            traces.calls.add(args, trace)
        if isinstance(trace, TracedFunction) and not given.sources and self._quick.takes(args, kwargs):
            trace.remember(self._quick, args, kwargs, given)
        return trace.call_with(given.tensors, given.variables, given.sources)

    def _traces_now(self) -> Traces:
        """The traces for the current engine and replica."""
        engine = engines.jit() if self.jit_compile else engines.current()
        replica = replicas.current() if replicas.runs else None
        if engine is engines.NATIVE and replica is None:
            return self._plain
        key = engine, None if replica is None else replica.variant
        traces = self._traces_of.get(key)
        return self._traces_of.setdefault(key, Traces(engine)) if traces is None else traces

    @property
    def _concrete(self) -> list:
        """All traces."""
        return [trace for traces in self._traces_of.values() for trace in traces.concrete.values()]

    def _given(self, args: tuple, kwargs: dict) -> Given:
        """The arguments of a call; with an `input_signature`, as it declares them."""
        if self.input_signature is None:
            return Given(*self.parameters.bound(args, kwargs), relaxed=self.reduce_retracing)
        declared = self._declared_type()
        given = Given(*declared.bound(args, kwargs))
        given.statics = declared.statics
        return given

    def _declared_type(self) -> FunctionType:
        if self._declared is None:
            self._declared = FunctionType.of_signature(self.parameters, self.input_signature)
        return self._declared

    def _trace_for(self, given: Given, traces: Traces) -> tuple[Given, Any]:
        """The trace that serves a call, and the call as that trace sees it."""
        pinned: list = []
        while True:
            key = given.key
            trace = traces.calls.find(key)
            if trace is None:
                trace = self._find(key, given, traces)
            if trace is _FOR_EACH_VARIABLE:
                shared = given.variables
            else:
                # An assignment to an argument must be visible to reads of the same variable as a capture.
                shared = [v for v in given.variables if id(v) in trace.captured_ids]
            if not shared:
                return given, trace
            pinned += shared
            given = Given(*given.structure, pinned=pinned)

    def _find(self, key: tuple, given: Given, traces: Traces) -> Any:
        with self._lock:
            given.family = traces.general(given)
            trace = traces.concrete.find(given.key)
            if trace is None:
                family = traces.family(given.family)
                trace = family.serving(given.statics) or self._new(given, family, traces)
            traces.calls.add(key, trace)
            return trace

    def _new(self, given: Given, family: Family, traces: Traces) -> Any:
        """A trace for arguments that no trace so far serves."""
        if family.for_each_variable:
            return _FOR_EACH_VARIABLE
        may_warn = self.input_signature is None and not self.reduce_retracing
        self._retraces.note(given.described(), len(self._concrete), may_warn)
        self._met.trace(None if self.input_signature else given.structure)
        statics = given.statics
        if self.reduce_retracing and family.met >= self._exact_traces:
            statics = family.joined(statics)
        try:
            trace = self._traced(given, statics, traces.engine)
        except NeedsVariable:
            family.for_each_variable = True
            return _FOR_EACH_VARIABLE
        family.add(statics, trace)
        traces.concrete.add((given.family, tuple(statics)), trace)
        if self.check and isinstance(trace, TracedFunction) and given.has_values:
            trace.compare(given.tensors, given.variables)
        return trace

    def _traced(self, given: Given, statics: list[Static], engine: Engine) -> Any:
        """A graph if all sizes are known, else a recording; `Eager` if the function can be neither."""
        sizes_known = is_known(statics) and not any(map(has_gaps, given.variables))
        try:
            if not sizes_known or self._needs_values:
                return self._kept(lambda: self._record(given, statics, engine))
            try:
                return self._kept(lambda: self._trace(given, engine))
            except Untraceable as e:
                cause = e
            self._needs_values = True
            try:
                return self._kept(lambda: self._record(given, statics, engine))
            except OperatorNotAllowedInGraphError:
                raise cause from None  # Python itself needs a value
        except Untraceable as e:
            self._made_variables = True
            return self._eager(e)

    def _kept(self, trace: Callable[[], tuple[Any, list]]) -> Any:
        """A trace that creates no variables. If the first trace creates some, the function is traced once
        more with them."""
        concrete, created = trace()
        if created:
            if self._made_variables:
                raise ValueError(_ONCE)
            self._made_variables = True
            # The variables exist now, so the second trace only uses them; that one is cached.
            concrete, created = trace()
            if created:
                raise ValueError(_ONCE)
        self._made_variables = True
        return concrete

    def _eager(self, cause: Exception) -> Eager:
        """Logs why this function cannot be compiled: the original cause, without what Keras wrapped around it."""
        while isinstance(cause.__context__, Untraceable):
            cause = cause.__context__
        line = line_of(cause)
        why = (f"{line}: {cause}" if line else str(cause)).rstrip(".")
        level = log.INFO if any(type(t) is Eager for t in self._concrete) else log.WARNING
        log.log(level, "%s runs eagerly: %s.%s", self.name, why, more("traced-values"))
        return Eager(why)

    def _type_of(self, given: Given, statics: Sequence[Static]) -> FunctionType:
        if self.input_signature is not None:
            return self._declared_type()
        return given.type_of(self.parameters, statics)

    def _trace(
        self, given: Given, engine: Engine, keep_constants: bool = False, may_vary: bool = False
    ) -> tuple[TracedFunction, list]:
        """A graph for tensors of the shapes that are given, and the variables that it made."""
        self._traces += not keep_constants
        trace = Trace(keeps_constants=keep_constants, is_kept=True, engine=engine, may_vary=may_vary)
        symbols = [symbolic(trace.input(t._dims, t.dtype._code)) for t in given.tensors]
        trace.names = given.names(self.parameters)
        if given.has_values:
            trace.arguments = list(given.tensors)
        proxies = [variable_proxy(v) for v in given.variables]
        placeholders = [s._placeholder() for s in given.sources]
        args, kwargs = given.with_leaves(symbols, proxies, placeholders)
        contents = Contents(self.parameters, args, kwargs)
        try:
            with aside(trace):
                result = composites.apart(self._traceable()(*args, **kwargs))
                contents.check()
                flat = [self._result(r) for r in nest.flatten(result)]
                structure = nest.map_structure(lambda _: None, result) if nest.is_nested(result) else None
                function_type = self._type_of(given, [t._dims for t in given.tensors])
                concrete = TracedFunction(self, function_type, trace, structure, flat, len(symbols), proxies)
            concrete.placeholders = placeholders
        except NeedsConstants:
            if keep_constants:
                raise
            concrete = None
        except Exception as e:
            annotate(e)
            raise
        finally:
            trace.arguments = []
            forget_values(proxies)
        return self._trace(given, engine, True, may_vary) if concrete is None else (concrete, trace.created)

    def _record(
        self, given: Given, statics: list[Static], engine: Engine, is_stored: bool = False
    ) -> tuple[Any, list]:
        """A recording for tensors of these shapes, and the variables that it made."""
        from gradtape._src.functions.recorded import RecordedFunction, Recording, SizedFunction

        self._traces += 1
        gaps = max((s.count(None) for s in statics if s), default=0)
        recording = Recording(gaps=gaps, engine=engine, is_stored=is_stored)
        recording.names = given.names(self.parameters)
        pairs = zip(statics, given.tensors, strict=True)
        symbols = [recording.argument(static, t.dtype._code) for static, t in pairs]
        proxies = [variable_proxy(v) for v in given.variables]
        placeholders = [s._placeholder() for s in given.sources]
        variables = [recording.variable(v) for v in proxies]
        args, kwargs = given.with_leaves(symbols, variables, placeholders)
        contents = Contents(self.parameters, args, kwargs)
        try:
            with aside(recording):
                result = composites.apart(self._traceable()(*args, **kwargs))
                contents.check()
                flat = [self._result(r) for r in nest.flatten(result)]
        except NeedsConstants:
            cause = UnimplementedError(
                None, None,
                f"tf.gradients with respect to a number computed in {self.name}, of unknown sizes. Hint: tf.GradientTape.",
            )  # fmt: skip
            if not given.has_values:
                raise cause from None
            return self._for_each_size(SizedFunction, given, statics, cause, recording)
        except Exception as e:
            annotate(e)
            if recording.refused is e and given.has_values and (recording.varies or not is_known(statics)):
                return self._for_each_size(SizedFunction, given, statics, e, recording)
            raise
        finally:
            forget_values((*proxies, *variables))
        recorded = RecordedFunction(self, self._type_of(given, statics), recording, result, flat, proxies)
        recorded.placeholders = placeholders
        return recorded, recording.created

    def _for_each_size(
        self, kind: type[SizedFunction], given: Given, statics: list[Static], cause: Exception, refused: Any
    ) -> tuple[SizedFunction, list]:
        """Traces for known sizes, where recording failed; raises `cause` if tracing fails too."""
        try:
            first, created = self._trace(given, refused.engine, may_vary=True)
        except Exception as e:
            if refused.varies and isinstance(e, Untraceable):
                raise  # run eagerly: perhaps only the sizes that were tried for variables are wrong
            raise cause from None
        if not is_known(statics):
            log.warning("%s is traced again for each size: %s", self.name, str(cause).splitlines()[0])
        sizeless, engine = given.without_values(), refused.engine

        def trace(tensors: Sequence[Any]) -> TracedFunction:
            with self._lock:
                return self._kept(lambda: self._trace(sizeless.of_sizes(tensors), engine, may_vary=True))

        sized = kind(self, self._type_of(given, statics), first, trace)
        sized.add(given.tensors, first)
        return sized, [*refused.created, *created]

    def _traceable(self) -> Callable:
        """The Python function with its control flow made traceable."""
        if self._converted is None:
            self._converted = convert(self.python_function) if self.autograph else self.python_function
        return self._converted

    def _result(self, value: Any) -> Any:
        """A result of the Python function: numbers become tensors."""
        try:
            return None if value is None else conversion.as_tensor(value)
        except (TypeError, ValueError) as e:
            raise TypeError(
                "To be compatible with tf.function, Python functions must return zero or more Tensors or ExtensionTypes or "
                f"None values; in compilation of {self.python_function}, found return value of type {type(value).__name__}, "
                "which is not a Tensor or ExtensionType."
            ) from e

    def _python(self, *args: Any, **kwargs: Any) -> Any:
        trace = _core.current_trace()
        if trace is None:
            return self.python_function(*args, **kwargs)
        if self.input_signature is not None:
            args, kwargs = self._declared_type().bound(args, kwargs)
        else:
            args, kwargs = self.parameters.arrays_as_tensors(args, kwargs)
        if self.jit_compile and isinstance(trace, Trace):
            trace.run_on(engines.jit())
        return self._traceable()(*args, **kwargs)

    # ---- inspection -----------------------------------------------------------------------------

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The trace for these arguments: tensors, TensorSpecs, or Python values.

        Raises:
          TypeError: if the function cannot be traced because Python needs a value.
        """
        if self.input_signature is not None and not args and not kwargs:
            args, kwargs = self._declared_type().example()
        inside = _core.current_trace() is not None
        if inside:  # the arguments may be symbolic tensors of another function
            args, kwargs = nest.map_structure(spec_of_symbol, (args, kwargs))
        with aside() if inside else nullcontext():
            _, trace = self._trace_for(self._given(args, kwargs), self._traces_now())
        if type(trace) is Eager and not inside:  # inside a trace it is only registered
            raise TypeError(
                f"get_concrete_function: {self.name} cannot be traced, so it runs eagerly and has no concrete function. "
                f"{trace.why}." + more("traced-values")
            )
        return trace

    def experimental_get_tracing_count(self) -> int:
        """How many times the function was traced; inlined calls count once for each kind of arguments."""
        return self._traces + self._met.only_inlined

    @property
    def function_spec(self) -> Any:
        """The signature of the Python function."""
        return self.parameters.signature

    @property
    def function_type(self) -> Any:
        """The parameters, with their kinds if there is an `input_signature`."""
        return self.parameters.signature if self.input_signature is None else self._declared_type()

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
                for c in self._concrete
                for p in ([c] if isinstance(c, TracedFunction) else getattr(c, "programs", ()))
            ]
            return "\n\n".join(map(pretty, programs))
        return pretty(self._compiled(args, kwargs)[0])

    def profile(self, *args: Any, repeats: int = 20, **kwargs: Any) -> Profile:
        """The time of each step of the compiled function on these arguments, and of each line of the program.

        Returns:
          A `Profile`: print it, or look at its `steps` and `by_line()`.
        """
        from gradtape._src.debug.programs import profile

        return profile(*self._compiled(args, kwargs), repeats)

    def _compiled(self, args: tuple, kwargs: dict) -> tuple[TracedFunction, list]:
        """The program for these arguments, and what it is given."""
        given, trace = self._trace_for(self._given(args, kwargs), self._traces_now())
        if type(trace) is Eager:
            raise ValueError(
                f"{self.name} runs eagerly with such arguments: there is no program to look at. {trace.why}."
            )
        if not isinstance(trace, TracedFunction):
            return trace.program_for(given.tensors, given.variables)
        return trace, trace.operands(given.tensors, given.variables)

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """The signatures of all traces, a paragraph or a line each."""
        traces = [t for t in self._concrete if isinstance(t, ConcreteFunction)]
        return ("\n\n" if verbose else "\n").join(t.pretty_printed_signature(verbose) for t in traces)

    # ---- copies and pickles -----------------------------------------------------------------------

    def __copy__(self) -> Function:
        return Function(self.python_function, **self._options())

    def __deepcopy__(self, memo: dict) -> Function:
        return Function(copy.deepcopy(self.python_function, memo), **self._options())

    def __reduce__(self) -> Any:
        """A function is pickled as Python pickles functions, by name, with its options and without its traces."""
        python = self.python_function
        if isinstance(python, types.MethodType):
            method = getattr(type(python.__self__), python.__name__, None)
            if isinstance(method, Function) and method.python_function is python.__func__:
                return getattr, (python.__self__, python.__name__)
        elif isinstance(python, types.FunctionType):
            named: Any = sys.modules.get(python.__module__)
            for name in python.__qualname__.split("."):
                named = getattr(named, name, None)
            if named is self:  # it was decorated
                return python.__qualname__
            if named is not python:
                raise pickle.PicklingError(
                    f"the tf.function {python.__module__}.{python.__qualname__} cannot be pickled: Python pickles a "
                    "function by its name, and this name does not lead to it. Hint: define it at the top of a module."
                )
        return _unpickled, (python, self._options())


def _unpickled(python_function: Callable, options: dict[str, Any]) -> Function:
    return Function(python_function, **options)


def function(
    func: Callable | None = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: str | None = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: dict[str, Any] | None = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
    *,
    check: bool = False,
) -> Any:
    """Makes a Python function run as a graph; usable with and without arguments.

    Args:
      func: the function.
      input_signature: TensorSpecs, one per argument.
      autograph: whether `if`, `while`, `for` over tensors become part of the graph.
      jit_compile, experimental_compile: True: run it on XLA, which needs `pip install "gradtape[xla]"`. Without
        it, as with any other value, the function is compiled natively.
      reduce_retracing, experimental_relax_shapes: at the second size of an argument, trace once for all sizes.
      experimental_implements, experimental_autograph_options, experimental_attributes,
        experimental_follow_type_hints: accepted as in TensorFlow, without effect.
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
    for name in experimental_attributes or ():
        if name not in _ATTRIBUTES:
            raise ValueError(f"`{name}` is not supported by tf.function as an attribute.")

    def wrap(f: Callable) -> Function:
        if not callable(f):
            raise TypeError(f"{f!r} is not a callable object")
        return Function(
            f,
            input_signature=input_signature,
            autograph=autograph,
            jit_compile=jit_compile if experimental_compile is None else experimental_compile,
            reduce_retracing=bool(reduce_retracing or experimental_relax_shapes),
            check=check,
        )

    return wrap if func is None else wrap(func)
