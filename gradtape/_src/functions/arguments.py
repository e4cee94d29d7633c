"""Arguments: bound to the parameters of the Python function, and flattened into the inputs of a trace.

`Parameters` describes the Python function, `Given` one call, `FunctionType` the signature of a trace or an
`input_signature`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from inspect import Parameter
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import composites, nest
from gradtape._src.base.composites import Parts
from gradtape._src.base.errors import InaccessibleTensorError, InvalidArgumentError
from gradtape._src.base.shape import TensorSpec
from gradtape._src.functions import kinds
from gradtape._src.functions.kinds import Source
from gradtape._src.graph.calls import Static
from gradtape._src.state.variable import ResourceVariable
from gradtape._src.state.variable_spec import CastError, VariableSpec
from gradtape._src.tensors import conversion

_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def _unbound(why: Any, args: tuple, kwargs: dict, signature: Any) -> str:
    return (
        f"Binding inputs to tf.function failed due to `{why}`. Received args: {args} and kwargs: {kwargs} for signature: "
        f"{signature}."
    )


class Parameters:
    """The parameters of a Python function."""

    def __init__(self, function: Callable) -> None:
        try:
            self.signature = inspect.signature(function)
        except (TypeError, ValueError):  # a builtin without a signature
            rest = [Parameter("args", Parameter.VAR_POSITIONAL), Parameter("kwargs", Parameter.VAR_KEYWORD)]
            self.signature = inspect.Signature(rest)
        self.name = getattr(function, "__qualname__", "function")
        parameters = list(self.signature.parameters.values())
        self.names = [p.name for p in parameters if p.kind in _BY_POSITION]
        self.rest = next((p.name for p in parameters if p.kind is Parameter.VAR_POSITIONAL), None)
        self.defaults = {p.name: p.default for p in parameters if p.default is not Parameter.empty}
        self._simple = all(p.kind is Parameter.POSITIONAL_OR_KEYWORD for p in parameters)

    def all_names(self, count: int) -> list[str]:
        """The names of the first `count` positional arguments."""
        return [*self.names, *[str(self.rest)] * (count - len(self.names))][:count]

    def bound(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments in their order, with defaults, so that all ways to write a call give the same key.

        Raises:
          TypeError: if they do not fit.
        """
        if self._simple and len(args) <= len(self.names):
            rest = []
            taken = 0
            for name in self.names[len(args) :]:
                if name in kwargs:
                    rest.append(kwargs[name])
                    taken += 1
                elif name in self.defaults:
                    rest.append(self.defaults[name])
                else:
                    break
            else:
                if taken == len(kwargs):
                    return (*args, *rest), {}
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(_unbound(e, args, kwargs, self.signature)) from None
        bound.apply_defaults()
        return bound.args, bound.kwargs

    @staticmethod
    def arrays_as_tensors(args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments as a trace would see them, for a call that is not traced separately."""
        if not any(isinstance(x, (np.ndarray, np.generic)) for x in nest.flatten((args, kwargs))):
            return args, kwargs
        return nest.map_structure(_array_as_tensor, (args, kwargs))


def _array_as_tensor(x: Any) -> Any:
    return conversion.convert(x) if isinstance(x, (np.ndarray, np.generic)) else x


class Contents:
    """A snapshot of the arguments of a call, to detect that the Python function has modified them."""

    def __init__(self, parameters: Parameters, args: tuple, kwargs: dict) -> None:
        self._parameters = parameters
        self._arguments = [*zip(parameters.all_names(len(args)), args, strict=True), *kwargs.items()]
        self._held = self._look()

    def _look(self) -> list[tuple]:
        return [(_shape_of_nest(x), nest.flatten(x)) for _, x in self._arguments]

    def check(self) -> None:
        """Raises a ValueError if a list or dict was modified."""
        current = self._look()
        changed = [
            name
            for (name, _), (shape, old), (after, new) in zip(
                self._arguments, self._held, current, strict=True
            )
            if shape != after
            or len(old) != len(new)
            or any(a is not b for a, b in zip(old, new, strict=True))
        ]
        if changed:
            called = self._parameters
            raise ValueError(
                f"{called.name}{called.signature} should not modify its Python input arguments. Modifying a copy is "
                f"allowed. The following parameter(s) were modified: {', '.join(changed)}"
            )


class Given:
    """The arguments of one call, flattened: tensors, variables, datasets, and Python values.

    In the key, variables are compared by type and shape, and by which of them are the same object; those in `pinned`
    are compared by identity. Composite tensors are compared by spec; if `relaxed`, without the sizes in it.
    """

    __slots__ = ("structure", "leaves", "tensors", "statics", "variables", "_numbers", "sources", "family")

    def __init__(self, args: tuple, kwargs: dict, pinned: Sequence[Any] = (), relaxed: bool = False) -> None:
        flat = not kwargs and nest.are_plain(args)
        self.structure: tuple[tuple, dict] = args, kwargs
        leaves: Sequence[Any] = args if flat else nest.flatten(self.structure)
        specs: list = []
        if not flat and not nest.are_plain(leaves):
            self.structure = composites.apart(self.structure, specs=True)
            specs = nest.flatten(composites.map_parts(lambda parts: Parts.of(parts.spec), self.structure))
            if relaxed:
                self.structure = composites.relaxed(self.structure)
            leaves = nest.flatten(self.structure)
        self.tensors: list = []
        self.statics: list[Static] = []  # the shapes of the tensors
        self.variables: list = []  # each once
        self._numbers: dict[int, int] = {}  # by id: which of the variables
        self.sources: list = []  # datasets and iterators
        self.leaves = [self._leaf(x) for x in leaves]
        self._generalize(specs)
        shape = None if flat else _shape_of_nest(self.structure)
        ids = frozenset(map(id, pinned))
        self.family = shape, tuple([self._part(x, ids) for x in self.leaves])

    @property
    def key(self) -> tuple:
        """The cache key of a call. Calls that differ only in the shapes of tensors share the first item, `family`."""
        return self.family, tuple(self.statics)

    @property
    def has_values(self) -> bool:
        """Whether it is a real call, and not one described by TensorSpecs."""
        return not any(isinstance(x, TensorSpec) for x in nest.flatten(self.structure))

    def is_case_of(self, family: tuple) -> bool:
        """Whether traces of another family accept these arguments: custom tracing types may be subtypes."""
        shape, parts = family
        if shape != self.family[0] or len(parts) != len(self.family[1]):
            return False
        return all(
            mine == part or (hasattr(mine, "is_subtype_of") and mine.is_subtype_of(part))
            for mine, part in zip(self.family[1], parts, strict=True)
        )

    def _generalize(self, specs: list) -> None:
        """Makes sizes unknown that a spec leaves unknown, such as the number of values of a ragged tensor."""
        tensors = [s for x, s in zip(self.leaves, specs, strict=False) if isinstance(x, _core.Tensor)]
        for k, spec in enumerate(tensors):
            if isinstance(spec, TensorSpec) and None in (spec.shape._dims or ()):
                self.statics[k] = spec.shape._dims

    def _leaf(self, x: Any) -> Any:
        if type(x) is ResourceVariable:
            return x
        if type(x) is _core.Tensor:
            if x._symbol is not None:
                raise InaccessibleTensorError(repr(x))
            self.tensors.append(x)
            self.statics.append(x._dims)
            return x
        if isinstance(x, TensorSpec):
            static = None if x.shape.rank is None else tuple(x.shape)
            self.statics.append(static)
            x = _core.symbolic(tuple(d or 0 for d in static or ()), x.dtype._code, None)
            self.tensors.append(x)
            return x
        x = _array_as_tensor(x)
        if isinstance(x, _core.Tensor):
            self.tensors.append(x)
            self.statics.append(x._dims)
        return x._traced_example() if hasattr(x, "_traced_example") else x

    def _part(self, x: Any, pinned: frozenset[int]) -> Any:
        if isinstance(x, _core.Tensor):
            return "tensor", x.dtype._code
        if type(x) is ResourceVariable and id(x) not in pinned:
            k = self._numbers.setdefault(id(x), len(self.variables))
            if k == len(self.variables):
                self.variables.append(x)
            shape = x._value_shape if x._declared is None else x._declared
            return "variable", x.dtype._code, shape._dims, x.trainable, k
        if hasattr(x, "_placeholder"):
            self.sources.append(x)
            return x._argument_key()
        if hasattr(type(x), "__tf_tracing_type__"):
            return x.__tf_tracing_type__(None)
        return _lasting(x)

    def with_leaves(self, tensors: list, variables: list, sources: list) -> tuple[tuple, dict]:
        """The arguments with symbolic values in place of tensors, variables and datasets, as a trace sees them."""
        others = iter(tensors), iter(sources)

        def leaf(x: Any) -> Any:
            if isinstance(x, _core.Tensor):
                return next(others[0])
            number = self.number_of(x)
            if number is not None:
                return variables[number]
            return next(others[1]) if hasattr(x, "_placeholder") else x

        return composites.together(nest.pack_sequence_as(self.structure, [leaf(x) for x in self.leaves]))

    def names(self, parameters: Parameters) -> list[str]:
        """The name of each tensor: that of its spec, or of its parameter."""
        args, kwargs = self.structure
        leaves = iter(self.leaves)
        return [
            (given.name if isinstance(given, TensorSpec) else None) or name
            for name, x in (*zip(parameters.all_names(len(args)), args, strict=True), *sorted(kwargs.items()))
            for given, leaf in zip(nest.flatten(x), leaves, strict=False)
            if isinstance(leaf, _core.Tensor)
        ]

    def without_values(self) -> Given:
        """The same call without its tensors, so as not to keep them alive."""
        copy = Given.__new__(Given)
        copy.structure = nest.map_structure(lambda _: None, self.structure)
        copy.leaves = [
            _core.symbolic((), x.dtype._code, None) if isinstance(x, _core.Tensor) else x for x in self.leaves
        ]
        copy.tensors, copy.statics, copy.family = [], self.statics, self.family
        copy.variables, copy._numbers, copy.sources = self.variables, self._numbers, self.sources
        return copy

    def of_sizes(self, tensors: Sequence[Any]) -> Given:
        """The same call with tensors of the sizes of these."""
        copy = self.without_values()
        copy.tensors = list(tensors)
        return copy

    def number_of(self, variable: Any) -> int | None:
        """Which of the variables this is, if it is one of them."""
        return self._numbers.get(id(variable))

    def type_of(self, parameters: Parameters, statics: Sequence[Static]) -> FunctionType:
        """What a trace for these arguments takes, with tensors of such shapes."""
        shapes = iter(statics)
        specs = nest.flatten(self.structure)

        def kind(given: Any, x: Any) -> Any:
            if isinstance(x, _core.Tensor):
                return TensorSpec(
                    next(shapes), x.dtype, given.name if isinstance(given, TensorSpec) else None
                )
            number = self.number_of(x)
            if number is not None:
                return VariableSpec(x.shape, x.dtype, x.trainable, number)
            if hasattr(x, "_placeholder"):
                by_spec = hasattr(given, "_traced_example")
                return Source(None if by_spec else x._argument_key(), given if by_spec else x._type_spec)
            return kinds.of_python(x)

        leaves = (kind(given, x) for given, x in zip(specs, self.leaves, strict=True))
        args, kwargs = self.structure
        by_position = tuple([kinds.in_structure(a, leaves) for a in args])
        by_name = {name: kinds.in_structure(kwargs[name], leaves) for name in sorted(kwargs)}
        return FunctionType.of(parameters, by_position, {name: by_name[name] for name in kwargs})

    def described(self) -> list[str]:
        """The arguments in words, for messages about tracing again."""
        return [
            f"{x.dtype.name}{list(x._dims)}" if isinstance(x, _core.Tensor) else repr(x) for x in self.leaves
        ]


class Kinds:
    """The kinds of arguments that a function was traced for, and those of its calls inside other traces."""

    _MOST = 1024

    def __init__(self) -> None:
        self._traced: set = set()
        self._inlined: set = set()

    def trace(self, call: tuple[tuple, dict] | None) -> None:
        """Adds a trace; None stands for the only kind that an `input_signature` has."""
        if len(self._traced) < self._MOST:
            self._traced.add(_kind_of_call(call))

    def inline(self, call: tuple[tuple, dict] | None) -> None:
        """Adds a call made inside another trace."""
        if len(self._inlined) < self._MOST:
            self._inlined.add(_kind_of_call(call))

    @property
    def only_inlined(self) -> int:
        """How many kinds have no trace of their own."""
        return len(self._inlined - self._traced)


def _kind_of_call(call: tuple[tuple, dict] | None) -> Any:
    """Types and shapes of tensors, and Python values; other objects by id, because they must not be kept alive."""
    return _shape_of_nest(call or ()), tuple([_kind_of_leaf(x) for x in nest.flatten(call or ())])


def _kind_of_leaf(x: Any) -> Any:
    if isinstance(x, _core.Tensor):
        return x.dtype, x._dims
    if hasattr(x, "_argument_key"):
        return x._argument_key()
    return _lasting(x) if isinstance(x, (*kinds.PLAIN, slice, bytearray)) else ("object", id(x))


class FunctionType:
    """The parameters of a trace or of an `input_signature`, each with its kind."""

    def __init__(self, parameters: list[Parameter]) -> None:
        self.parameters = parameters  # the annotation of each is its kind
        self._signature = inspect.Signature(parameters)
        self._by_position = [p.name for p in parameters if p.kind is not Parameter.KEYWORD_ONLY]
        self._needed = [p.name for p in parameters if not _is_python(p.annotation)]
        self._defaults: dict[str, Any] = {}  # of parameters that are tensors

    @classmethod
    def of(cls, parameters: Parameters, args: tuple, kwargs: dict) -> FunctionType:
        """The type of a function whose arguments are of these kinds."""
        names = parameters.names[: len(args)]
        expanded = len(args) > len(names)  # `*args` was expanded to parameters without names
        names = [*names, *(f"{parameters.rest}_{i}" for i in range(len(args) - len(names)))]
        how = Parameter.POSITIONAL_ONLY if expanded else Parameter.POSITIONAL_OR_KEYWORD
        listed = [Parameter(n, how, annotation=k) for n, k in zip(names, args, strict=True)]
        listed += [Parameter(n, Parameter.KEYWORD_ONLY, annotation=k) for n, k in kwargs.items()]
        return cls(listed)

    @classmethod
    def of_signature(cls, parameters: Parameters, input_signature: tuple) -> FunctionType:
        """The type that an `input_signature` declares.

        Raises:
          TypeError: if it does not fit the Python function.
        """
        input_signature = composites.apart(input_signature, specs=True)
        specs = nest.flatten(input_signature)
        wrong = [s for s in specs if not isinstance(s, TensorSpec) and not hasattr(s, "_traced_example")]
        if wrong:
            raise TypeError(
                "input_signature must be a possibly nested sequence of TensorSpec objects, got invalid args "
                f"{wrong} with types {[type(w) for w in wrong]}."
            )
        given = list(nest.map_structure(_declared_leaf, input_signature))
        args, kwargs = [], {}
        for p in parameters.signature.parameters.values():
            if p.kind is Parameter.VAR_POSITIONAL:
                args += given
                given = []
            elif p.kind in _BY_POSITION and given:
                args.append(given.pop(0))
            elif p.kind is Parameter.VAR_KEYWORD:
                continue
            elif p.default is Parameter.empty:
                if p.kind is Parameter.KEYWORD_ONLY:
                    raise TypeError(
                        f"Since input_signature is defined, keyword-only parameter `{p.name}` must have a default value"
                    )
                raise TypeError(f"input_signature missing type constraint for {p.name}")
            elif p.kind is Parameter.KEYWORD_ONLY:
                kwargs[p.name] = nest.map_structure(kinds.of_python, p.default)
            else:
                args.append(nest.map_structure(kinds.of_python, p.default))
        if given:
            raise TypeError(f"input_signature contains {len(given)} extra type constraints.")
        declared = cls.of(parameters, tuple(args), kwargs)
        declared._defaults = parameters.defaults
        return declared

    # ---- contents -------------------------------------------------------------------------------

    @property
    def inputs(self) -> list[tuple[str, Any]]:
        """Names and kinds of what is given at each call (tensors, variables, datasets), in the order of a trace."""
        by_name = [p for p in self.parameters if p.kind is Parameter.KEYWORD_ONLY]
        by_position = self.parameters[: len(self.parameters) - len(by_name)]
        out = []
        for p in (*by_position, *sorted(by_name, key=lambda p: p.name)):
            leaves = nest.flatten(p.annotation), nest.flatten(kinds.named(p.annotation, p.name))
            for kind, spec in zip(*leaves, strict=True):
                if isinstance(kind, (TensorSpec, VariableSpec, Source)):
                    out.append((spec.name if isinstance(kind, TensorSpec) else p.name, kind))
        return out

    def structured(self) -> tuple[tuple, dict]:
        """The arguments by position and by name, as specs with names and as Python values."""
        return composites.map_parts(lambda parts: parts.spec, self._kinds(kinds.named))

    def _kinds(self, shown: Callable[[Any, str], Any] = lambda kind, _: kind) -> tuple[tuple, dict]:
        listed = [(p, shown(p.annotation, p.name)) for p in self.parameters]
        by_name = {p.name: k for p, k in listed if p.kind is Parameter.KEYWORD_ONLY}
        return tuple(k for p, k in listed if p.kind is not Parameter.KEYWORD_ONLY), by_name

    @functools.cached_property
    def statics(self) -> list[Static]:
        """The shapes of the tensors, in the order of a trace."""
        return Given(*self.example()).statics

    def example(self) -> tuple[tuple, dict]:
        """Arguments of these kinds: TensorSpecs, and Python values."""
        return nest.map_structure(lambda k: k if isinstance(k, TensorSpec) else k.value, self._kinds())

    def __str__(self) -> str:
        shown = [p.replace(annotation=_Shown(p.annotation)) for p in self.parameters]
        return str(inspect.Signature(shown))

    # ---- calls ----------------------------------------------------------------------------------

    def bound(self, args: tuple, kwargs: dict, result: str = "") -> tuple[tuple, dict]:
        """Arguments that fit, with tensors where this type has TensorSpecs. Python values may be left out.

        Raises:
          TypeError: if they do not fit.
        """
        try:
            self._check_none_missing(args, kwargs)
            if kwargs or len(args) > len(self._by_position):
                given = self._signature.bind_partial(*args, **kwargs).arguments
            else:
                given = dict(zip(self._by_position, args, strict=False))
            given = self._defaults | given
            values = {p.name: _fitted(p.annotation, given, p.name) for p in self.parameters}
        except TypeError as e:
            raise TypeError(_unbound(e, args, kwargs, f"{self}{result}")) from None
        by_name = {p.name: values.pop(p.name) for p in self.parameters if p.kind is Parameter.KEYWORD_ONLY}
        return tuple(values.values()), by_name

    def _check_none_missing(self, args: tuple, kwargs: dict) -> None:
        if len(args) > len(self._by_position):
            return  # too many
        given = {*self._by_position[: len(args)], *kwargs, *self._defaults}
        for name in self._needed:
            if name not in given:
                raise CastError(f"missing a required argument: {name!r}")

    def leaves(self, name: str, args: tuple, kwargs: dict, result: str) -> list:
        """The inputs that a call passes to a trace of this type: tensors, variables and datasets, in their order.

        As in TensorFlow, a call may also pass them flat, without their structure.

        Raises:
          TypeError: if they do not fit.
          InvalidArgumentError: if a tensor has another element type.
        """
        try:
            return _inputs_among(self.bound(args, kwargs, result), self._kinds())
        except TypeError as e:
            failed = e
        try:
            return self._one_by_one(name, self.inputs, args, kwargs)
        except CastError as e:
            words = f"{failed}\nFallback to flat signature also failed due to: {e}"
        raise TypeError(words) from None

    def _one_by_one(self, function: str, inputs: list[tuple[str, Any]], args: tuple, kwargs: dict) -> list:
        names = [name for name, _ in inputs]
        shown = f"{function}({', '.join(names)})"
        if not nest.are_plain(args):
            args = tuple(x for a in args for x in (Parts.of(a).parts if nest.is_composite(type(a)) else [a]))
        if len(args) > len(inputs):
            raise CastError(f"{shown} takes {len(inputs)} positional arguments, got {len(args)}.")
        rest = dict(kwargs)
        given = [*args, *(rest.pop(name) for name in names[len(args) :] if name in rest)]
        missing = [n for n in names[len(args) :] if n not in kwargs]
        if missing:
            raise CastError(f"{shown} missing required arguments: {', '.join(missing)}.")
        if rest:
            raise CastError(f"{shown} got unexpected keyword arguments: {', '.join(rest)}.")
        for i, ((_, kind), x) in enumerate(zip(inputs, given, strict=True)):
            if isinstance(kind, Source):
                continue
            if not isinstance(x, (_core.Tensor, _core.Variable)):
                raise CastError(
                    f"{shown}: expected argument #{i}(zero-based) to be a Tensor; got {type(x).__name__} ({x})."
                )
            if x.dtype is not kind.dtype or (isinstance(kind, VariableSpec) and isinstance(x, _core.Tensor)):
                expected = "variable" if isinstance(kind, VariableSpec) else "tensor"
                raise InvalidArgumentError(
                    None,
                    None,
                    f"cannot compute {function} as input #{i}(zero-based) was expected to be a {kind.dtype.name} "
                    f"{expected} but is a {x.dtype.name} tensor",
                )
        return [kinds.cast(kind, x) for (_, kind), x in zip(inputs, given, strict=True)]


def _declared_leaf(spec: Any) -> Any:
    return spec if isinstance(spec, TensorSpec) else Source(None, spec)


class _Shown:
    """A kind in a signature."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def __repr__(self) -> str:
        return kinds.text(self._kind)


def _fitted(kind: Any, given: dict, name: str) -> Any:
    """The argument for a parameter; an omitted Python value is that of the trace."""
    if name in given:
        return kinds.cast(kind, given[name])
    return nest.map_structure(lambda k: k.value, kind)


def _inputs_among(given: Any, kind: Any) -> list:
    """The leaves of arguments that are inputs of a trace."""
    leaves = zip(nest.flatten(given), nest.flatten(kind), strict=True)
    return [x for x, k in leaves if isinstance(k, (TensorSpec, VariableSpec, Source))]


def _is_python(kind: Any) -> bool:
    """Whether a kind consists of Python values alone."""
    return not any(isinstance(k, (TensorSpec, VariableSpec, Source)) for k in nest.flatten(kind))


def _lasting(leaf: Any) -> Any:
    """A Python argument as part of the key of a trace; a copy if it is mutable."""
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
    if isinstance(structure, Parts):
        return Parts, structure.spec
    return None
