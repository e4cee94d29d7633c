"""Functions that `tf.saved_model` stores without their Python code: as data, the library calls that they make.

A function is recorded (`graph/recording.py`): the library calls, in order, with their arguments; branches and loops
contain recordings. `Writer` converts that to JSON, `Reader` to a `tf.function` that makes the same calls. A call
names a row of the op table, a function of gradtape that recordings support, or one of `INTERNAL`; none of them
reads or writes files or calls code outside of gradtape.
"""

from __future__ import annotations

import collections
import importlib
import inspect
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import engines
from gradtape._src.base import nest
from gradtape._src.base.dtypes import BY_CODE, as_dtype
from gradtape._src.base.reading import expect
from gradtape._src.base.shape import TensorShape, TensorSpec
from gradtape._src.control import control, recorded_arrays, values
from gradtape._src.control.recorded import BranchCall, LoopCall
from gradtape._src.control.tensor_array import TensorArray
from gradtape._src.functions.function import Function
from gradtape._src.graph import recording
from gradtape._src.graph.calls import Call, Frame, Place, Recorded, leaves_of
from gradtape._src.graph.ir import Node
from gradtape._src.graph.recording import Part, Routine
from gradtape._src.graph.segments import make_calls
from gradtape._src.graph.trace import current_recording
from gradtape._src.ops.table import TABLE


def _make_array(elements: Any, dtype: Any, size: Any, dynamic_size: Any) -> Any:
    """The call by which a recording creates an array, also in another recording."""
    if current_recording() is None:
        return recorded_arrays.make_array(elements, dtype, size, dynamic_size)
    return TensorArray(dtype, size, dynamic_size, infer_shape=elements._infer, element_shape=elements.shape)


# Calls of recordings that are not library functions, by the functions that make them again.
INTERNAL: dict[str, Callable] = {
    "read": recording._read, "assign": recording._assign, "getitem": operator.getitem,
    "TensorArray": _make_array, **recorded_arrays.METHODS,
}  # fmt: skip
_NAME = re.compile(r"gradtape(\.[a-z_0-9]+)+:[A-Za-z_0-9]+\Z")


def _named(name: str) -> Any:
    """The function that a name in a file refers to; None if it must not be called."""
    kind, _, rest = name.partition(":")
    if kind == "row":
        return TABLE[rest].op if rest in TABLE else None
    if kind == "call":
        return INTERNAL.get(rest)
    if not _NAME.match(name) or kind.startswith("gradtape.io"):
        return None
    try:
        value = getattr(importlib.import_module(kind), rest, None)
    except ModuleNotFoundError:
        return None
    return value if isinstance(value, _core.Composite) else None


def _name_of(function: Any) -> str | None:
    """The inverse of `_named`."""
    function = _make_array if function is recorded_arrays.make_array else function
    if isinstance(function, _core.Op):
        name = f"row:{function.row.name}"
    else:
        own = (f"call:{key}" for key, f in INTERNAL.items() if f is function)
        name = next(own, f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', '')}")
    return name if _named(name) is function else None


def _recorded(function: Function, args: tuple, kwargs: dict) -> Any:
    """A recording for these arguments, even if their sizes are known; it does not count as a trace."""
    given, traces = function._given(args, kwargs), function._traces
    try:
        return function._record(given, given.statics, engines.NATIVE, is_stored=True)[0]
    finally:
        function._traces = traces


# ---- writing --------------------------------------------------------------------------------------


class Writer:
    """Describes functions; `encode(value, path)` describes values outside of recordings, `tensor` stores a value."""

    def __init__(self, encode: Callable[[Any, str], Any], tensor: Callable[[Any], str]) -> None:
        self._encode, self._tensor = encode, tensor
        self._constants: dict[int, tuple[Any, str]] = {}
        self._path = ""
        self._numbers: dict[Recorded, int] = {}

    def function(self, function: Function, path: str) -> dict[str, Any]:
        """All traces of a function, or its signature.

        Raises:
          ValueError: if the function does something that cannot be stored.
        """
        self._path = path
        if function.input_signature is not None:
            examples = [function._declared_type().example()]
        else:
            traces = [t for t in function._concrete if hasattr(t, "structured_input_signature")]
            examples = [t.structured_input_signature for t in traces]
        return {
            "name": function.name,
            "parameters": [n for n in function.parameters.names if n != "self"],
            "traces": [self._trace(function, args, kwargs) for args, kwargs in examples],
        }

    def _trace(self, function: Function, args: tuple, kwargs: dict) -> dict[str, Any]:
        concrete = _recorded(function, args, kwargs)
        if not hasattr(concrete, "recording") or concrete.proxies or concrete.placeholders:
            raise self._refused(
                "it has arguments that are variables or datasets, or sizes that no recording fits"
            )
        self._numbers = {}
        flat = concrete.recording.result
        result = flat[0] if concrete._single else nest.pack_sequence_as(concrete._structure, flat)
        arguments = {"args": self._value(tuple(args)), "kwargs": self._value(dict(kwargs))}
        return arguments | self._part(concrete.recording, result)

    def _part(self, part: Any, result: Any) -> dict[str, Any]:
        return {
            "inputs": [self._described(v) for v in part.inputs],
            "nodes": [self._node(n) for n in part.nodes],
            "result": self._value(result),
        }

    def _described(self, value: Any) -> list:
        number = self._numbers.setdefault(value, len(self._numbers))
        return [number, None if value.dtype < 0 else BY_CODE[value.dtype].name]

    def _node(self, node: Node) -> dict[str, Any]:
        call = node.op
        if type(call) is BranchCall:
            parts = [self._part(p, p.result) for p in call.parts]
            content = {"branch": [self._value(call.args[0]), parts, call.name]}
        elif type(call) is LoopCall:
            test, step = self._part(call.test, call.test.result), self._part(call.step, call.step.result)
            names = None if call.names is None else list(call.names)
            content = {"loop": [self._value(call.args[0]), names, test, step, call.iterates]}
        else:
            name = _name_of(call.function) if type(call) is Call else None
            if name is None:
                raise self._refused(f"it calls {call.op_name}")
            content = {"call": [name, self._value(call.args), self._value(call.kwargs)]}
        return content | {
            "results": [self._described(v) for v in node.results],
            "places": list(call.places),
        }

    def _value(self, value: Any) -> Any:
        """An argument or result of a call."""
        if type(value) is Place:
            return {"place": self._numbers[value.value]}
        if isinstance(value, slice):
            return {"slice": [self._value(v) for v in (value.start, value.stop, value.step)]}
        if value is Ellipsis or value is values.UNDEFINED:
            return {"special": "ellipsis" if value is Ellipsis else "undefined"}
        if isinstance(value, recorded_arrays.Elements):
            return {"elements": [self._value(value.shape), value._infer]}
        if isinstance(value, Routine):
            return {"routine": [self._routine(given, part) for part, given in value._parts.values()]}
        if isinstance(value, _core.Tensor):
            if id(value) not in self._constants:
                self._constants[id(value)] = value, self._tensor(value)
            return {"constant": self._constants[id(value)][1]}
        if isinstance(value, dict):
            return {"dict": [[self._value(k), self._value(v)] for k, v in value.items()]}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return {"named": [type(value).__name__, list(value._fields), [self._value(v) for v in value]]}
        if isinstance(value, (list, tuple)):
            return {type(value).__name__: [self._value(v) for v in value]}
        if isinstance(value, (np.dtype, type)):
            value = as_dtype(value)
        return self._encode(value, self._path)

    def _routine(self, given: list, part: Part) -> list:
        if not all(isinstance(x, _core.Tensor) for x in given):
            raise self._refused(
                "it gives a function to one of the library that is called with other things than tensors"
            )
        return [[[x.dtype.name, len(x._dims)] for x in given], self._part(part, part.result)]

    def _refused(self, why: str) -> ValueError:
        return ValueError(
            f"saved_model.save: {self._path} is a function that cannot be stored: {why}. Hint: a method of a tf.Module "
            "whose attributes are variables, tensors, numbers and modules is stored by name."
        )


# ---- reading --------------------------------------------------------------------------------------


class _Stored(Part):
    """A recording that was read: makes its calls one after the other in the current trace."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None)
        self.close()

    def replay(self, arguments: Any, outer: Frame | None = None) -> Frame:
        frame = Frame(outer)
        frame.update(zip(self.inputs, arguments, strict=True))
        make_calls(self.nodes, frame)
        return frame


def _stored_function(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("a stored function is called by its recording")


class _StoredRoutine(Routine):
    """A user function passed to a library function: recordings, by the tensors that it is called with."""

    def __init__(self, parts: list[tuple[list, _Stored]]) -> None:
        self.function = _stored_function
        self._stored = parts

    def parts(self) -> list:
        return [part for _, part in self._stored]

    def part_for(self, args: tuple, kwargs: dict) -> Part:
        tensors = [x for x in leaves_of((args, kwargs)) if isinstance(x, _core.Tensor)]
        kinds = [[x.dtype.name, len(x._dims)] for x in tensors]
        stored = next((part for key, part in self._stored if key == kinds), None)
        if stored is None:
            raise ValueError(f"a stored function is called with tensors of other kinds: {kinds}")
        return stored


class Reader:
    """Makes functions from the output of `Writer`; `decode` and `tensor` are the inverses of its arguments."""

    def __init__(self, decode: Callable[[Any], Any], tensor: Callable[[str], Any]) -> None:
        self._decode, self._tensor = decode, tensor
        self._constants: dict[str, Any] = {}
        self._known: dict[int, Recorded] = {}

    def function(self, content: dict[str, Any]) -> Function:
        """A `tf.function` that makes the stored calls."""
        traces = [self._trace(expect(t, dict)) for t in expect(content["traces"], list)]
        parameters = [expect(n, str) for n in content["parameters"]]
        return _function(expect(content["name"], str), parameters, traces)

    def _trace(self, content: dict[str, Any]) -> tuple[tuple, dict, _Stored]:
        self._known = {}
        args, kwargs = self._value(content["args"]), self._value(content["kwargs"])
        return expect(args, tuple), expect(kwargs, dict), self._part(content)

    def _part(self, content: dict[str, Any]) -> _Stored:
        part = _Stored()
        part.inputs.extend(self._new(part, v, None) for v in expect(content["inputs"], list))
        for stored in expect(content["nodes"], list):
            call = self._call(expect(stored, dict))
            node = Node(
                call,
                tuple(leaf.value for leaf in leaves_of((call.args, call.kwargs)) if type(leaf) is Place),
                (),
            )
            node.results = tuple(self._new(part, v, node) for v in expect(stored["results"], list))
            call.places = [expect(k, int) for k in stored["places"]]
            part.nodes.append(node)
        part._result = self._value(content["result"])
        return part

    def _new(self, part: _Stored, described: list, node: Node | None) -> Recorded:
        number, dtype = described
        code = -1 if dtype is None else as_dtype(expect(dtype, str))._code
        value = self._known[expect(number, int)] = Recorded(part, None, code, node)
        return value

    def _call(self, stored: dict[str, Any]) -> Call:
        if "branch" in stored:
            which, parts, name = stored["branch"]
            branches = [self._part(expect(p, dict)) for p in expect(parts, list)]
            return BranchCall(self._value(which), branches, expect(name, str), control.branch)  # type: ignore[arg-type]
        if "loop" in stored:
            init, names, test, step, iterates = stored["loop"]
            start = expect(self._value(init), list)
            listed = None if names is None else [expect(n, str) for n in names]
            return LoopCall(
                start,
                listed,
                self._part(expect(test, dict)),
                self._part(expect(step, dict)),
                expect(iterates, bool),
                control.loop,
            )
        name, args, kwargs = stored["call"]
        function = _named(expect(name, str))
        if function is None:
            raise ValueError(f"a function calls {name!r}")
        return Call(function, expect(self._value(args), tuple), expect(self._value(kwargs), dict))

    def _value(self, value: Any) -> Any:
        if isinstance(value, dict):
            ((kind, content),) = value.items()
            if kind in self.KINDS:
                return self.KINDS[kind](self, content)
        return self._decode(value)

    def _place(self, number: int) -> Place:
        return Place(self._known[expect(number, int)])

    def _slice(self, parts: list) -> slice:
        return slice(*map(self._value, parts))

    def _special(self, name: str) -> Any:
        return {"ellipsis": Ellipsis, "undefined": values.UNDEFINED}[name]

    def _elements(self, parts: list) -> Any:
        shape, infer = parts
        return recorded_arrays.Elements(expect(self._value(shape), TensorShape), expect(infer, bool))

    def _routine(self, parts: list) -> _StoredRoutine:
        return _StoredRoutine([(expect(key, list), self._part(expect(part, dict))) for key, part in parts])

    def _constant(self, key: str) -> Any:
        if key not in self._constants:
            self._constants[key] = self._tensor(key)
        return self._constants[key]

    def _dict(self, pairs: list) -> dict:
        return {self._value(k): self._value(v) for k, v in pairs}

    def _list(self, items: list) -> list:
        return [self._value(v) for v in expect(items, list)]

    def _tuple(self, items: list) -> tuple:
        return tuple(self._list(items))

    def _named_tuple(self, parts: list) -> Any:
        name, fields, items = parts
        return collections.namedtuple(expect(name, str), expect(fields, list))(*self._list(items))  # noqa: PYI024

    KINDS: dict[str, Callable[[Reader, Any], Any]] = {
        "place": _place, "slice": _slice, "special": _special, "elements": _elements, "routine": _routine,
        "constant": _constant, "dict": _dict, "list": _list, "tuple": _tuple, "named": _named_tuple,
    }  # fmt: skip


def _function(name: str, parameters: list[str], traces: list[tuple[tuple, dict, _Stored]]) -> Function:
    """One function with several traces."""

    def call(*args: Any, **kwargs: Any) -> Any:
        for specs, named, part in traces:
            tensors = _matching((specs, named), _bound(parameters, args, kwargs, specs, named))
            if tensors is not None:
                return part.run(tensors, Frame())
        options = "\n".join(f"  Option {k + 1}: {a}, {kw}" for k, (a, kw, _) in enumerate(traces))
        raise ValueError(
            f"Could not find matching concrete function to call loaded from the SavedModel. Got:\n  {args}, {kwargs}\n"
            f"Expected one of the following {len(traces)} option(s):\n{options}"
        )

    call.__name__ = call.__qualname__ = name
    signature = None
    if len(traces) == 1:
        args, kwargs, _ = traces[0]
        flat = nest.flatten(args)
        if not kwargs and all(isinstance(x, TensorSpec) for x in flat) and len(args) == len(parameters):
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            call.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in parameters])  # type: ignore[attr-defined]
            signature = args
    return Function(call, input_signature=signature, autograph=False)


def _bound(parameters: list[str], args: tuple, kwargs: dict, specs: tuple, named: dict) -> tuple[tuple, dict]:
    """The arguments in the form of a trace: positional as far as it has positions; omitted ones as when stored."""
    rest = dict(kwargs)
    bound = list(args)
    for k in range(len(bound), len(specs)):
        name = parameters[k] if k < len(parameters) else None
        bound.append(rest.pop(name) if name in rest else specs[k])
    return tuple(bound), {**{n: v for n, v in named.items() if n not in rest}, **rest}


def _matching(specs: Any, arguments: Any) -> list | None:
    """The tensors among the arguments of a call, if they match those of a trace."""
    try:
        nest.assert_same_structure(specs, arguments)
    except (TypeError, ValueError):
        return None
    tensors = []
    for spec, x in zip(nest.flatten(specs), nest.flatten(arguments), strict=True):
        if not isinstance(spec, TensorSpec):
            if type(x) is not type(spec) or x != spec:
                return None
            continue
        if isinstance(x, TensorSpec):
            return None
        try:
            t = (
                _core.to_tensor(x)
                if isinstance(x, (_core.Tensor, _core.Variable))
                else _core.to_tensor(x, spec.dtype._code)
            )
        except (TypeError, ValueError):
            return None
        if t.dtype is not spec.dtype or not spec.shape.is_compatible_with(t.shape):
            return None
        tensors.append(t)
    return tensors
