"""`Variable`: a value that programs change and tapes watch.

`tf.Variable(...)` makes a `ResourceVariable`. Its native part (`core/py/variable_type.cpp`) holds the value, reads it
for the tape and changes it in place where nothing else holds it: `assign`, `assign_add`, `assign_sub`, `numpy`,
`shape`, `dtype`, `trainable` and all operators are there. `Variable` adds the rest: construction, repr and Python's
special methods; `scatters.py` has updates of parts of the value.

A subclass of `Variable` itself has no native part, as in TensorFlow: its objects are variables to
`isinstance`, and define `value` themselves, which is used wherever they serve as tensors.
"""

from __future__ import annotations

import abc
import enum
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import errors, scopes
from gradtape._src.base.contexts import unrecorded
from gradtape._src.base.shape import TensorShape
from gradtape._src.state.scatters import Scatters, tensor_of
from gradtape._src.tensors import above, conversion
from gradtape._src.tensors.tensor import Reference, device_of, numpy_text


class VariableSynchronization(enum.Enum):
    """When copies of a variable on several devices are synchronised."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How updates from several devices are combined."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3

    def __hash__(self) -> int:
        return hash(self.value)


class _VariableType(abc.ABCMeta):
    """Routes `Variable(...)` through the open `tf.variable_creator_scope`s.

    It derives from ABCMeta, as TensorFlow's does, so that a class may inherit from a variable and an abstract class.
    """

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__

    if not TYPE_CHECKING:  # to type checkers, arguments are those of `__init__`

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            if cls is not Variable:
                return type.__call__(cls, *args, **kwargs)
            if scopes.creators.now():
                kwargs = dict(_DEFAULTS, **dict(zip(_DEFAULTS, args, strict=False)), **kwargs)
                return scopes.create_variable(ResourceVariable, **kwargs)
            return type.__call__(ResourceVariable, *args, **kwargs)

    @property
    def __signature__(cls) -> inspect.Signature:
        """What `inspect.signature` returns for a class of variables: the arguments of `__init__`."""
        of = inspect.signature(cls.__init__)  # type: ignore[misc]
        return of.replace(parameters=list(of.parameters.values())[1:])


def _of_subclass(self: Any) -> Any:
    raise NotImplementedError(
        f"{type(self).__name__} has no value of its own: it is a subclass of tf.Variable, which is abstract. Hint: define "
        "value(), shape, dtype and what else is used of it, or let the class have a tf.Variable."
    )


def _abstract(name: str) -> Any:
    """The native attribute of this name, for a class without a native part: it raises an error that says so."""
    native = getattr(_core.Variable, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        _of_subclass(self)

    method.__name__, method.__doc__ = name, native.__doc__
    return method if callable(native) else property(method, doc=native.__doc__)


# Type checkers take every variable for one with a native part.
if TYPE_CHECKING:
    _Base = _core.Variable
    _Native: Any
else:
    _Base, _Native = object, _core.Variable


class Variable(Scatters, _Base, metaclass=_VariableType):
    """A tensor whose value can be changed; trainable ones are watched by every tape.

    >>> import gradtape as tf
    >>> v = tf.Variable([1.0, 2.0], name="w")
    >>> v.assign_add([1.0, 1.0])
    <tf.Variable 'w:0' shape=(2,) dtype=float32, numpy=array([2., 3.], dtype=float32)>
    >>> v[0].assign(5.0).numpy()
    array([5., 3.], dtype=float32)

    Args:
      initial_value: a tensor, array, number, list, other variable, or a function without
        arguments that returns one.
      trainable: whether tapes watch it by themselves; True unless said otherwise.
      name: its name, inside the open name scopes.
      dtype: the type of its elements; Python and NumPy values are converted to it.
      constraint: a function that optimizers apply to the value after an update.
      synchronization, aggregation: kept, without effect on one device.
      shape: a shape with unknown sizes (`[None, 3]`, `TensorShape(None)`) for a variable whose
        shape may change with an assignment.
      validate_shape, caching_device, variable_def, import_scope,
        experimental_enable_variable_lifting: accepted as in TensorFlow, without effect.

    Raises:
      ValueError: if there is no initial value, or it does not fit `dtype` or `shape`.
    """

    __slots__ = ()
    __array_priority__ = 100

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: Any = None,
        constraint: Callable | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        shape: Any = None,
        experimental_enable_variable_lifting: bool = True,
    ) -> None:
        if variable_def is not None:
            raise ValueError(
                "The variable_def and initial_value args to `tf.Variable` are mutually exclusive, but got both: "
                f"variable_def={variable_def!r},\ninitial_value={initial_value!r}. Hint: gradtape reads no VariableDefs."
            )
        if initial_value is None:
            if not isinstance(self, ResourceVariable):
                _of_subclass(self)
            raise ValueError(
                "The `initial_value` arg to `tf.Variable` must be specified except when you are not "
                "providing a "
                "`variable_def`. You provided neither. Hint: tf.Variable(tf.zeros(shape))."
            )
        if constraint is not None and not callable(constraint):
            raise ValueError(
                f"Argument `constraint` must be None or a callable. Got a {type(constraint)}: {constraint!r}"
            )
        if name is not None and not isinstance(name, str):
            raise ValueError(f"Variable: name for name_scope must be a string; got {name!r}.")
        if synchronization is not VariableSynchronization.AUTO:
            synchronization = _member(VariableSynchronization, synchronization, name)
            if trainable is None:
                trainable = synchronization is not VariableSynchronization.ON_READ
        if aggregation is not VariableAggregation.NONE:
            aggregation = _member(VariableAggregation, aggregation, name)
        trace = _core.current_trace()
        if trace is None:
            self._set(_initial(initial_value, dtype))
        else:
            trace.create(self, lambda value: _initial(value, dtype), initial_value)
        if shape is not None:
            self._declare(shape)
        self.trainable = True if trainable is None else trainable
        self._handle_name = f"{scopes.current_scope()}{'Variable' if name is None else name}:0"
        if constraint is not None:
            self._constraint = constraint
        if synchronization is not VariableSynchronization.AUTO:
            self._synchronization = synchronization
        if aggregation is not VariableAggregation.NONE:
            self._aggregation = aggregation

    # Kept in the instance only where they differ: most variables have none of them.
    _constraint: Callable | None = None
    is_proxy = False  # a proxy of an argument, without a value: see `variable_proxy`
    _synchronization = VariableSynchronization.AUTO
    _aggregation = VariableAggregation.NONE

    def _declare(self, shape: Any) -> None:
        declared = TensorShape(shape)
        if not declared.is_compatible_with(self._value_shape):
            raise ValueError(
                f"In this `tf.Variable` creation, the initial value's shape ({self._value_shape}) is not "
                "compatible with "
                f"the explicitly supplied `shape` argument ({shape})."
            )
        if not declared.is_fully_defined():
            self._declared = declared

    # ---- properties -------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name with its scopes, `"scope/name:0"`."""
        return self._handle_name

    @property
    def constraint(self) -> Callable | None:
        """The function that optimizers apply to the value after an update."""
        return self._constraint

    @property
    def synchronization(self) -> VariableSynchronization:
        """The mode that was given."""
        return self._synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        """The mode that was given."""
        return self._aggregation

    @property
    def ndim(self) -> int:
        """The number of dimensions of the value."""
        return len(self._value_shape)

    @property
    def device(self) -> str:
        """The name of the device that holds the value."""
        return device_of(self)

    @property
    def handle(self) -> Variable:
        """The variable itself: TensorFlow code uses it for a variable's resource."""
        return self

    @property
    def initializer(self) -> None:
        """None: variables are initialised when they are created."""
        return None

    @property
    def initial_value(self) -> Any:
        """Not kept."""
        raise RuntimeError("This property is not supported when eager execution is enabled.")

    @property
    def op(self) -> Any:
        """In a traced function, the op of its value; undefined otherwise, as in TensorFlow's eager mode."""
        return self.read_value().op

    @property
    def graph(self) -> Any:
        """Undefined, as in TensorFlow's eager mode."""
        raise AttributeError("Tensor.graph is undefined when eager execution is enabled.")

    @property
    def _shared_name(self) -> str:
        return self._handle_name[:-2]

    @property
    def _unique_id(self) -> str:
        return f"{self._shared_name}_{self._uid}"

    def get_shape(self) -> TensorShape:
        """The same as `shape`."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Makes unknown sizes of the shape known.

        Raises:
          ValueError: if the shape differs.
        """
        merged = self.shape.merge_with(shape)
        declared: Any = None if merged.is_fully_defined() else merged
        self._declared = declared

    def is_initialized(self, name: str | None = None) -> Any:
        """True: variables are initialised when they are created."""
        return conversion.convert(True)

    def ref(self) -> Reference:
        """A hashable reference to the variable, which itself is compared by value."""
        return Reference(self)

    experimental_ref = ref

    # ---- reading ------------------------------------------------------------------------------

    def value(self) -> _core.Tensor:
        """The current value as a new tensor: gradients reach the variable through it, and
        can be asked for with respect to it."""
        return _of_subclass(self)

    def read_value(self) -> _core.Tensor:
        """The same as `value`."""
        return self.value()

    def initialized_value(self) -> _core.Tensor:
        """The same as `value`."""
        return self.value()

    def read_value_no_copy(self) -> _core.Tensor:
        """The same as `value`."""
        return self.value()

    def eval(self, session: Any = None) -> Any:
        """Raises RuntimeError, as TensorFlow does in eager mode."""
        raise RuntimeError(
            "This operation is not supported when eager execution is enabled. Hint: variable.numpy()."
        )

    to_proto = eval

    def sparse_read(self, indices: Any, name: str | None = None) -> _core.Tensor:
        """The rows with these numbers; their gradient is an IndexedSlices."""
        return ops.gather(self, indices)

    def gather_nd(self, indices: Any, name: str | None = None) -> _core.Tensor:
        """The elements or slices at these coordinates."""
        return ops.gather_nd(self, indices)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self._read().__array__(dtype, copy)

    def __float__(self) -> float:
        return float(self._read())

    def __int__(self) -> int:
        return int(self._read())

    def __bool__(self) -> bool:
        return bool(self._read())

    def __complex__(self) -> complex:
        return complex(self._read())

    def __index__(self) -> int:
        return self._read().__index__()

    def __round__(self, ndigits: int | None = None) -> Any:
        return round(self._read(), ndigits)

    def __format__(self, spec: str) -> str:
        return format(self._read(), spec) if spec else repr(self)

    def __iter__(self) -> Iterator[_core.Tensor]:
        return iter(self._read())

    def __repr__(self) -> str:
        start = f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}"
        if self.is_proxy or _core.current_trace() is not None:
            return start + ">"
        return f"{start}, numpy={numpy_text(self._read(), True)}>"

    _repr_html_ = above.shown

    # Methods of the native part; classes without it may define them.

    if not TYPE_CHECKING:
        assign, assign_add, assign_sub = map(_abstract, ("assign", "assign_add", "assign_sub"))
        shape, dtype, trainable = map(_abstract, ("shape", "dtype", "trainable"))
        _set, _put, _scatter, _update = map(_abstract, ("_set", "_put", "_scatter", "_update"))
        _value_shape = property(lambda self: self.shape)
        _declared = None
        _uid = property(id)

        def __hash__(self) -> int:
            raise TypeError("Variable is unhashable. Instead, use variable.ref() as the key.")

        def numpy(self) -> Any:
            """The value as a NumPy array (a copy) or NumPy scalar."""
            return self._read().numpy()

        def _read(self) -> _core.Tensor:
            return conversion.as_tensor(self.value())

        _peek = _read

        def _touch(self) -> None:
            pass

        def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> _core.Tensor:
            t = self._read()
            return t if dtype is None or t.dtype is dtype else conversion.convert(t, dtype._code)

    # ---- changing -----------------------------------------------------------------------------

    def _check_shape(self, method: str, value: _core.Tensor) -> None:
        """Called by the core when a value has another shape than the present one."""
        if not value.shape.is_fully_defined() and self.shape.is_compatible_with(value.shape):
            # Checked when the recorded function runs.
            _core.current_trace().call(_want_shape, (self, method, value), {})
            return
        if method != "assign":
            mine, other = (list(s) for s in (self._value_shape, value.shape))
            raise errors.InvalidArgumentError(
                None,
                None,
                f"{method}: Cannot update variable with shape {mine} using a Tensor with shape {other}, "
                "shapes must be equal.",
            )
        if not self.shape.is_compatible_with(value.shape):
            raise ValueError(
                f"Cannot assign value to variable '{self._handle_name}': Shape mismatch. The variable shape "
                f"{self.shape}, and the "
                f"assigned value shape {value.shape} are incompatible."
            )

    def _incoming(self, value: Any) -> _core.Tensor:
        """`value` as a tensor of the variable's type; tapes are notified."""
        self._touch()
        return tensor_of(value, self.dtype._code)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError("'Variable' object does not support item assignment. Hint: v[key].assign(value).")

    # `//=`, `%=` and the like rebind the name to a tensor, as in TensorFlow.

    def __iadd__(self, other: Any) -> Any:
        raise _in_place("+", "variable.assign_add(value)")

    def __isub__(self, other: Any) -> Any:
        raise _in_place("-", "variable.assign_sub(value)")

    def __imul__(self, other: Any) -> Any:
        raise _in_place("*", "variable.assign(variable * value)")

    def __itruediv__(self, other: Any) -> Any:
        raise _in_place("/", "variable.assign(variable / value)")

    def __ipow__(self, other: Any) -> Any:
        raise _in_place("**", "variable.assign(variable ** value)")

    # ---- copies -------------------------------------------------------------------------------

    def __copy__(self) -> Variable:
        return self

    def __deepcopy__(self, memo: dict) -> Variable:
        copied = self._copy()
        memo[id(self)] = copied
        return copied

    def _copy(self) -> Variable:
        return rebuild(type(self), self._peek(), *self._state())

    def _state(self) -> tuple[Any, ...]:
        declared = None if self._declared is None else self._declared
        return (
            self._handle_name,
            self.trainable,
            declared,
            self._constraint,
            self._synchronization,
            self._aggregation,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild, (type(self), self._peek(), *self._state())


def _operator(name: str) -> Callable:
    def operator(self: Any, *args: Any) -> Any:
        return getattr(_core.Tensor, name)(self._read(), *args)

    operator.__name__ = name
    return operator


for _name in _core.Tensor.OVERLOADABLE_OPERATORS:
    setattr(Variable, _name, _operator(_name))


# The native part comes first: its methods take precedence, and Python calls them without a frame.
class ResourceVariable(_Native, Variable):
    """A variable with a value: what `tf.Variable(...)` makes."""

    # `trainable` cannot be set in TensorFlow, so programs that freeze variables set this private attribute.
    _trainable = _core.Variable.trainable

    def value(self) -> _core.Tensor:
        if not _core.is_recording():
            return self._read()
        return ops.identity(self._read())


# The arguments in TensorFlow's order, as `variable_creator_scope` passes them on.
_DEFAULTS: dict[str, Any] = {
    "initial_value": None, "trainable": None, "validate_shape": True, "caching_device": None, "name": None,
    "variable_def": None, "dtype": None, "import_scope": None, "constraint": None,
    "synchronization": VariableSynchronization.AUTO, "aggregation": VariableAggregation.NONE, "shape": None,
    "experimental_enable_variable_lifting": True,
}  # fmt: skip


def _member(kind: type[enum.Enum], value: Any, name: str | None) -> Any:
    """A member of `kind`, which may also be given by its number."""
    try:
        return kind(value)
    except ValueError:
        word = kind.__name__.removeprefix("Variable").lower()
        raise ValueError(f"Invalid variable {word} mode: {value} for variable: {name}") from None


def rebuild(
    cls: type[Variable],
    value: _core.Tensor,
    name: str,
    trainable: bool,
    declared: Any,
    constraint: Callable | None,
    synchronization: VariableSynchronization,
    aggregation: VariableAggregation,
) -> Variable:
    """A variable from its state, bypassing the constructor, which would add the open scope to the name."""
    cls = ResourceVariable if cls is Variable else cls
    v = cls.__new__(cls)
    v._set(value)
    v._handle_name, v.trainable, v._declared = name, trainable, declared
    v._constraint, v._synchronization, v._aggregation = constraint, synchronization, aggregation
    return v


def variable_proxy(variable: Variable) -> Variable:
    """The proxy of a variable that is an argument, inside a traced function.

    It has the value of the variable until `forget_values`, for initial values that are computed while tracing.
    """
    proxy: Any = ResourceVariable.__new__(ResourceVariable)
    proxy._set(variable._peek())
    proxy._handle_name, proxy.trainable, proxy._declared = (
        variable._handle_name,
        variable.trainable,
        variable._declared,
    )
    proxy.is_proxy = True
    for attribute in ("_constraint", "_synchronization", "_aggregation"):
        if attribute in vars(variable):
            setattr(proxy, attribute, vars(variable)[attribute])
    return proxy


def forget_values(proxies: Iterable[Any]) -> None:
    """Removes the values of proxies once the trace is done: reading one outside of a trace is an error."""
    for proxy in proxies:
        proxy._set(_core.symbolic(tuple(proxy._value_shape), proxy.dtype._code, None))


def _in_place(operator: str, instead: str) -> RuntimeError:
    return RuntimeError(
        f"`variable {operator}= value` with `tf.Variable`s is not supported. Use `{instead}` to modify the "
        "variable, or "
        f"`out = variable {operator} value` if you need to get a new output Tensor."
    )


def _initial(value: Any, dtype: Any) -> _core.Tensor:
    """The initial value of a variable; tapes do not record how it is computed."""
    code = -1 if dtype is None else conversion.dtype_code(dtype)
    with unrecorded():
        if callable(value) and not isinstance(value, (_core.Tensor, _core.Variable)):
            value = value()
        return tensor_of(value, code)


def _want_shape(variable: Variable, method: str, value: _core.Tensor) -> None:
    """Raises if a value does not fit; see `Variable._check_shape`."""
    if value._dims != tuple(variable._value_shape):
        variable._check_shape(method, value)
