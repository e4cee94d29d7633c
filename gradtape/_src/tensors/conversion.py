"""Values of any kind as tensors.

`as_tensor` is the function for tensor arguments. It calls `convert`, which the core also calls for operands of
types that it does not know; `tf.convert_to_tensor` adds TensorFlow's rules about types. `read` and `leaf_of` are
for values that may be variables: the value, and the object that tapes track.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes, errors
from gradtape._src.base.dimension import Dimension
from gradtape._src.base.shape import TensorShape
from gradtape._src.tensors import above, stored, text
from gradtape._src.tensors.indexed_slices import IndexedSlices

_INT32 = dtypes.int32._code


def as_tensor(value: Any, like: Any = None) -> _core.Tensor:
    """`value` as a tensor: a variable is read; numbers, lists and arrays take the type of `like`, if that is a tensor."""
    if isinstance(value, _core.Tensor):
        return value
    if isinstance(value, _core.Variable):
        return value._read()
    return convert(value, _dtype_code(like))


def as_tensors(x: Any, y: Any) -> tuple[_core.Tensor, _core.Tensor]:
    """Two operands converted to the same type, which either of them may determine."""
    x = as_tensor(x, y)
    return x, as_tensor(y, x)


def read(value: Any) -> Any:
    """The value of a variable; anything else unchanged."""
    return value._read() if isinstance(value, _core.Variable) else value


def leaf_of(value: Any) -> Any:
    """A value as a tape sees it: a tensor or variable, or the `tf.Variable` inside a Keras variable; None for the rest."""
    if isinstance(value, (_core.Tensor, _core.Variable)):
        return value
    inner = getattr(value, "_value", None)
    return inner if isinstance(inner, _core.Variable) else None


def densify(g: Any) -> _core.Tensor:
    """A sparse gradient as a tensor; a tensor unchanged."""
    return g._dense() if isinstance(g, IndexedSlices) else g if isinstance(g, _core.Tensor) else convert(g)


def dtype_code(value: Any) -> int:
    dtype = dtypes.as_dtype(value)
    if dtype._code < 0:
        hint = "keep such data in Python objects" if dtype.size == 0 else "use int8, with its scale beside it"
        raise TypeError(f"gradtape has no tensors of type {dtype.name}. Hint: {hint}.")
    return dtype._code


# ---- conversion ------


def convert(value: Any, code: int = -1) -> _core.Tensor:
    """Any value as a tensor; of type number `code` unless that is -1."""
    if isinstance(value, (_core.Tensor, _core.Variable)):
        requested = dtypes.BY_CODE[code].name
        raise ValueError(
            f"Tensor conversion requested dtype {requested} for Tensor with dtype {value.dtype.name}: "
            f"{value!r}. "
            f"Hint: tf.cast(x, tf.{requested})."
        )
    if isinstance(value, (list, tuple)):
        return _from_sequence(value, code)
    if text.looks_like_text(value):
        return _from_text(value, code)
    if hasattr(type(value), "__tf_tensor__"):
        return value.__tf_tensor__(None if code < 0 else dtypes.BY_CODE[code])
    if isinstance(value, TensorShape):
        return _from_shape(value, code)
    if isinstance(value, Dimension):
        return _from_array(value.value, code)
    return _from_array(value, code)


def _from_text(value: Any, code: int) -> _core.Tensor:
    if code in (-1, text.STRING):
        return text.convert(value)
    raise errors.ArgumentError(
        f"Cannot convert {_short(value)} to EagerTensor of dtype {dtypes.BY_CODE[code].name}."
    )


# Registered functions: (priority, class, function), in the order in which they are tried. The classes get them as
# `__tf_tensor__`, the method by which an object of any class converts itself to a tensor.
_registered: list[tuple[int, type, Callable]] = []


def register(base_type: Any, conversion_func: Callable, priority: int = 100) -> None:
    """Registers a function that converts values of a class to tensors wherever a tensor is expected.

    Args:
      base_type: a class, or a tuple of them; subclasses are included.
      conversion_func: `(value, dtype=None, name=None, as_ref=False)` returns a tensor, or NotImplemented to leave
        the value to the next function.
      priority: functions with smaller numbers are tried first.

    Raises:
      TypeError: if an argument is not a class or function, for numbers and arrays, and for C classes to which
      attributes cannot be added.

    >>> import gradtape as tf
    >>> class Angle:
    ...     def __init__(self, degrees): self.degrees = degrees
    >>> def convert(value, dtype=None, name=None, as_ref=False):
    ...     return tf.constant(value.degrees, dtype)
    >>> tf.register_tensor_conversion_function(Angle, convert)
    >>> float(tf.constant(1.0) + Angle(90.0))
    91.0
    """
    types = base_type if isinstance(base_type, tuple) else (base_type,)
    if not types or not all(isinstance(t, type) for t in types):
        raise TypeError(f"Argument `base_type` must be a type or a tuple of types. Obtained: {base_type!r}")
    if any(issubclass(t, (int, float, complex, np.generic, np.ndarray)) for t in types):
        raise TypeError("Cannot register conversions for Python numeric types and NumPy scalars and arrays.")
    if not callable(conversion_func):
        raise TypeError(f"Argument `conversion_func` must be callable. Received {conversion_func!r}.")
    _registered.extend((priority, t, conversion_func) for t in types)
    _registered.sort(key=lambda entry: entry[0])
    for t in types:
        t.__tf_tensor__ = _by_registered


def _by_registered(value: Any, dtype: Any = None, name: str | None = None) -> _core.Tensor:
    for _, kind, function in _registered:
        if not isinstance(value, kind):
            continue
        converted = function(value, dtype=dtype, name=name, as_ref=False)
        if converted is NotImplemented:
            continue
        converted = read(converted)
        if not isinstance(converted, _core.Tensor):
            raise RuntimeError(
                f"Conversion function {function!r} for type {kind} returned non-Tensor: {converted!r}"
            )
        if dtype is not None and converted.dtype is not dtype:
            raise RuntimeError(
                f"Conversion function {function!r} for type {kind} returned incompatible dtype: requested = "
                f"{dtype.name}, actual = {converted.dtype.name}"
            )
        return converted
    return _from_array(value, -1 if dtype is None else dtype._code)


def _from_shape(value: TensorShape, code: int) -> _core.Tensor:
    if not value.is_fully_defined():
        raise ValueError(f"Cannot convert a partially known TensorShape {value} to a Tensor.")
    if code >= 0 and dtypes.BY_CODE[code] not in (dtypes.int32, dtypes.int64):
        raise TypeError(
            f"Cannot convert TensorShape {value} to dtype {dtypes.BY_CODE[code]}. Allowed dtypes are tf.int32 and "
            "tf.int64."
        )
    return _from_array(value.as_list(), code if code >= 0 or value.rank else _INT32)


def _from_sequence(value: list | tuple, code: int) -> _core.Tensor:
    if not _holds_tensors(value):
        if text.looks_like_text(value):
            return _from_text(value, code)
        return _from_array(value, code)
    given = code >= 0
    if not given:
        code = next((_dtype_code(v) for v in _leaves(value) if _dtype_code(v) >= 0), code)
    return above.ops.stack([_element(v, code, given) for v in value], 0)


def _element(value: Any, code: int, given: bool) -> _core.Tensor:
    """An element of a list; a tensor is cast if a type was requested for the list."""
    value = read(value)
    if not isinstance(value, _core.Tensor):
        return convert(value, code)
    return above.ops.cast(value, dtypes.BY_CODE[code]) if given and value.dtype._code != code else value


def _leaves(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        for v in value:
            yield from _leaves(v)
    else:
        yield value


def _dtype_code(value: Any) -> int:
    return value.dtype._code if isinstance(value, (_core.Tensor, _core.Variable)) else -1


def _holds_tensors(value: list | tuple, depth: int = 0) -> bool:
    if depth > 32:
        raise ValueError("convert_to_tensor: lists are nested more than 32 deep (does one contain itself?)")
    return any(
        _holds_tensors(v, depth + 1)
        if isinstance(v, (list, tuple))
        else isinstance(v, (_core.Tensor, _core.Variable)) or hasattr(type(v), "__tf_tensor__")
        for v in value
    )


def _frozen(value: list | tuple) -> tuple:
    """Lists as tuples: NumPy crashes if converting an element changes the list that it is reading."""
    return tuple(_frozen(v) if isinstance(v, list) else v for v in value)


_NONE = (
    "Attempt to convert a value (None) with an unsupported type (<class 'NoneType'>) to a Tensor. Hint: a gradient "
    "that does not exist is None." + errors.more("none-gradients")
)


def _from_array(value: Any, code: int) -> _core.Tensor:
    if value is None:
        raise ValueError(_NONE)
    try:
        array = np.asarray(_frozen(value) if isinstance(value, list) else value)
    except ValueError as e:
        raise ValueError(
            f"convert_to_tensor: {_short(value)} is not rectangular; every row must have the same length. "
            "Hint: tf.ragged.constant(rows) takes rows of any length."
        ) from e
    plain = not _is_array(value)
    if plain and array.dtype == object and code >= 0 and code in dtypes.DIFFERENTIABLE:
        array = _large_integers_as_floats(array)
    if array.dtype.kind in "OUSVMm" and not dtypes.is_of_ml_dtypes(array.dtype):
        raise _unsupported(value, array)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if code >= 0:
        if plain or code == text.STRING:
            _check_fits(array, code, value)
        return _cast_array(array, code)
    if plain:
        array = _as_python_values(array, value)
    elif array.dtype.kind in "fc" and array.dtype.itemsize > 8 * (1 + array.dtype.kind.count("c")):
        raise ValueError(
            f"Failed to convert a NumPy array to a Tensor (Unsupported numpy type: {array.dtype})."
        )
    dtype = dtypes.from_numpy(array.dtype)
    if dtype._kind == "s":
        return stored.convert(array, dtype)
    if dtype is dtypes.bfloat16:
        array = array.view(np.uint16)
    return _dense(array, dtype._code)


def _large_integers_as_floats(array: np.ndarray) -> np.ndarray:
    """An array of Python numbers some of which no integer type holds, as float64; any other array as it is."""
    if not all(isinstance(v, (int, float)) for v in array.flat):
        return array
    try:
        return array.astype(np.float64)
    except OverflowError:
        return array


def _is_array(value: Any) -> bool:
    """Whether a value has an element type of its own: NumPy's arrays and numbers, and objects that convert to them,
    such as pandas'. Other buffers are sequences of Python numbers, as in TensorFlow."""
    return hasattr(value, "dtype") or hasattr(value, "__array__") or hasattr(value, "__array_interface__")


def _dense(array: np.ndarray, code: int) -> _core.Tensor:
    return _core.from_buffer(np.ascontiguousarray(array).reshape(array.shape), code)


def _as_python_values(array: np.ndarray, value: Any) -> np.ndarray:
    """Converts to the types that Python numbers have as tensors: int32 where they fit, complex128, and float32,
    unless the first element of a list has a float type of its own."""
    kind = array.dtype.kind
    if (
        kind == "f"
        and array.size
        and isinstance(value, (list, tuple))
        and all(map(_holds_integers, _leaves(value)))
    ):
        kind, array = "u", np.array(value, object)  # NumPy converts a mix of int64 and uint64 to float64
    if kind in "iu":
        if kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
            raise ValueError(
                f"convert_to_tensor: {_short(value)} holds an out-of-range integer; expected one that fits "
                "into int64"
            )
        small = np.iinfo(np.int32)
        fits = array.size == 0 or (array.min() >= small.min and array.max() <= small.max)
        return array.astype(np.int32 if fits else np.int64)
    if kind == "f":
        first: Any = next(_leaves(value), None) if isinstance(value, (list, tuple)) else None
        own = np.asarray(first if _is_array(first) else np.float32(0)).dtype
        standard = own.kind == "f" and own.itemsize <= 8
        with np.errstate(over="ignore"):
            made = array.astype(own.newbyteorder("=") if standard else np.float32, copy=False)
        lost = not _is_array(first) and (np.isinf(made) & np.isfinite(array)).any()
        if lost and _core.current_trace() is None:
            raise ValueError(
                f"Can't convert {_short(value)} to a Tensor: it holds a value out of range for float32, the type of "
                "Python numbers. Hint: tf.constant(x, tf.float64)."
            )
        return made
    return array.astype(np.complex128, copy=False) if kind == "c" else array


def _holds_integers(value: Any) -> bool:
    return isinstance(value, int) or (_is_array(value) and np.asarray(value).dtype.kind in "iu")


def _check_fits(array: np.ndarray, code: int, value: Any) -> None:
    """Refuses to convert Python numbers to a type that cannot hold them. As in TensorFlow, integers wrap around in
    small types, and NumPy values are cast without a check."""
    dtype = dtypes.BY_CODE[code]
    kind = array.dtype.kind
    loses = (
        (kind in "fc" and not (dtype.is_floating or dtype.is_complex))
        or (kind == "c" and not dtype.is_complex)
        or (dtype.is_bool and kind != "b")
        or dtype is dtypes.string
    )
    if loses and array.size > 0:
        raise errors.ArgumentError(
            f"Cannot convert {_short(value)} to EagerTensor of dtype {dtype.name}. Hint: tf.cast the "
            "tensor, or the value."
        )
    if dtype.is_integer and dtype.size == 8 and kind in "iu" and array.size:
        limits = np.iinfo(dtype.as_numpy_dtype)
        if array.min() < limits.min or array.max() > limits.max:
            raise ValueError(
                "Can't convert Python sequence with out-of-range integer to Tensor of dtype "
                f"{dtype.name}: {_short(value)}"
            )


def _cast_array(array: np.ndarray, code: int) -> _core.Tensor:
    dtype = dtypes.BY_CODE[code]
    if dtype is dtypes.string:  # an empty list
        return text.make(np.empty(array.shape, object))
    if dtype._kind == "s":
        return stored.convert(array, dtype)
    if array.dtype.kind == "c" and not dtype.is_complex:
        array = array.real
    if dtype is dtypes.bfloat16:
        if array.dtype.name == "bfloat16":
            return _dense(array.view(np.uint16), code)
        return above.ops.cast(_cast_array(array, dtypes.float32._code), dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        return _dense(array.astype(dtype.as_numpy_dtype, copy=False), code)


def _short(value: Any) -> str:
    """`repr(value)`, cut off if it is long."""
    return reprlib.repr(value)


def _unsupported(value: Any, array: np.ndarray) -> Exception:
    if array.dtype.kind in "US":
        return ValueError("Can't convert Python sequence with mixed types to Tensor.")
    if isinstance(value, np.ndarray):
        return ValueError(
            f"Failed to convert a NumPy array to a Tensor (Unsupported object type: dtype {array.dtype}). "
            "Hint: array.astype(np.float32), if it holds numbers of one shape."
        )
    leaves = _leaves(value) if isinstance(value, (list, tuple)) else [value]
    leaf = next((v for v in leaves if not isinstance(v, (bool, int, float, complex, np.number))), value)
    if leaf is None:
        return ValueError(_NONE)
    if isinstance(leaf, (int, float, complex, np.number)):
        return ValueError(
            f"convert_to_tensor: {_short(leaf)} is out of range; expected an integer that fits into int64"
        )
    return ValueError(
        f"Attempt to convert a value ({_short(leaf)}) with an unsupported type ({type(leaf)}) to a Tensor."
    )
