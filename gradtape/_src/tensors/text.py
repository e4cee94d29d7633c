"""Tensors of strings: values that Python holds, as arrays of bytes objects.

A tensor of type `string` refers to a NumPy array (`core/py/device.h`); no kernel reads it. Ops that only move or
compare elements work nevertheless: the core passes them to `run`, which replaces strings by numbers (equal strings
by equal numbers), lets native code move the numbers, and replaces them by strings again. The rows of these ops have
`TEXT` among their types. Functions of strings (`tf.strings`) are ops written in Python.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes, errors
from gradtape._src.base.room import want_room
from gradtape._src.tensors import above

STRING = dtypes.string._code
_NUMBER = (
    dtypes.uint64._code
)  # strings are moved as this type, and results of it are strings (core/py/op_run.cpp)


def is_text(value: Any) -> bool:
    """Whether a value is a tensor of strings."""
    return isinstance(value, _core.Tensor) and value.dtype is dtypes.string


def make(array: np.ndarray) -> _core.Tensor:
    """The tensor of an array of bytes objects; the array becomes read-only."""
    array.flags.writeable = False
    return _core.from_device(array, array.shape, STRING)


def of_list(values: list[bytes]) -> _core.Tensor:
    """A vector of strings."""
    return make(array(values, (len(values),)))


def array_of(tensor: _core.Tensor) -> np.ndarray:
    """The bytes of a tensor of strings, as a read-only array."""
    (array,) = _core.device_arrays([tensor])
    if array is None:
        raise TypeError(f"Expected a tensor of strings with a value; got {tensor!r}.")
    return array


def array(values: Iterable[bytes], shape: Any) -> np.ndarray:
    """An array of bytes objects, from its elements in row-major order."""
    elements = list(values)
    out = np.empty(tuple(shape), object)
    out.reshape(-1)[:] = elements
    return out


def looks_like_text(value: Any) -> bool:
    """Whether a user's value is a string, an array of strings, or a list that starts with one."""
    depth = 0
    while isinstance(value, (list, tuple)) and value and depth < 32:
        value, depth = value[0], depth + 1
    if isinstance(value, (str, bytes)):
        return True
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "OUS":
        return False
    return value.dtype.kind != "O" or isinstance(next(iter(value.flat), None), (str, bytes))


def convert(value: Any) -> _core.Tensor:
    """Strings, or lists or arrays of them, as a tensor; str becomes UTF-8.

    Raises:
      ValueError: if there is anything else among them, or rows have different lengths.
    """
    return make(_array(value))


def _array(value: Any) -> np.ndarray:
    if isinstance(value, (str, bytes)):
        return array([_bytes(value)], ())
    if isinstance(value, np.ndarray):
        return array(map(_element, value.reshape(-1).tolist()), value.shape)
    leaves: list[bytes] = []
    shape = _collect(value, leaves)
    return array(leaves, shape)


def _bytes(value: str | bytes) -> bytes:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else bytes(value)


def _element(value: Any) -> bytes:
    if isinstance(value, (str, bytes)):
        return _bytes(value)
    raise ValueError(
        f"Failed to convert a NumPy array to a Tensor (Unsupported object type {type(value).__name__})."
    )


def _collect(value: Any, leaves: list[bytes]) -> tuple[int, ...]:
    """Appends the strings of a nested list to `leaves`, and returns its shape."""
    if isinstance(value, (str, bytes)):
        leaves.append(_bytes(value))
        return ()
    if isinstance(value, np.ndarray) and value.dtype.kind in "OUS":
        leaves.extend(map(_element, value.reshape(-1).tolist()))
        return value.shape
    if not isinstance(value, (list, tuple)):
        raise ValueError(
            f"Can't convert Python sequence with mixed types to Tensor: {value!r} of type {type(value).__name__} is "
            "among strings."
        )
    shapes = {_collect(v, leaves) for v in value}
    if len(shapes) > 1:
        raise ValueError("Can't convert non-rectangular Python sequence to Tensor.")
    return (len(value), *(shapes.pop() if shapes else ()))


# ---- ops ------------------------------------------------------------------------------------------


def run(op: Any, operands: tuple[_core.Tensor, ...], attrs: tuple) -> Any:
    """Runs an op of the core with some operands that are strings; called by the core."""
    if own := _OWN.get(op.op_name):
        return own(*operands, *attrs)
    if not any(map(is_text, operands)):
        raise errors.InvalidArgumentError(f"{op.op_name}: not defined for results of type string")
    numbers: dict[bytes, int] = {b"": 0}  # zeros that ops insert are empty strings

    def number(x: _core.Tensor) -> _core.Tensor:
        if x.dtype is not dtypes.string:
            return x
        words = array_of(x)
        codes = [numbers.setdefault(w, len(numbers)) for w in words.reshape(-1).tolist()]
        return _core.from_buffer(np.array(codes, np.uint64).reshape(words.shape), _NUMBER)

    results = _core.apply(op, [number(x) for x in operands], attrs)
    words = array(numbers, [len(numbers)])
    out = [
        make(_whole(words[np.asarray(r).astype(np.intp)])) if r.dtype._code == _NUMBER else r for r in results
    ]
    return tuple(out) if op.row.many else out[0]


def _joined(a: _core.Tensor, b: _core.Tensor) -> _core.Tensor:
    x, y = array_of(a), array_of(b)
    try:
        return make(_whole(x + y))
    except ValueError:
        raise errors.InvalidArgumentError(
            f"add: Incompatible shapes: {list(x.shape)} vs. {list(y.shape)}"
        ) from None


def _whole(value: Any) -> np.ndarray:
    """A NumPy result as an array: for arrays without axes NumPy returns the element itself."""
    return value if isinstance(value, np.ndarray) else array([value], ())


def _zeros(shape: tuple[int, ...], *_: Any) -> _core.Tensor:
    want_room(*shape)
    out = np.empty(shape, object)
    out[...] = b""
    return make(out)


def _cast(x: _core.Tensor, dtype: dtypes.DType, *_: Any) -> _core.Tensor:
    if x.dtype is dtype:
        return x
    raise errors.UnimplementedError(
        f"cast: Cast {x.dtype.name} to {dtype.name} is not supported. Hint: tf.strings.to_number, tf.strings.as_string."
    )


def _scattered(indices: _core.Tensor, updates: _core.Tensor, shape: tuple[int, ...]) -> _core.Tensor:
    """Scatters strings; those at the same position are joined."""
    words = array_of(updates)
    above.ops.scatter_nd(
        indices, np.zeros(words.shape, np.float32), shape
    )  # raises the errors of wrong shapes and indices
    places = np.asarray(indices)
    out = np.array(array_of(_zeros(shape)))
    parts = words.reshape(-1, *words.shape[places.ndim - 1 :])
    for place, part in zip(places.reshape(-1, places.shape[-1]).tolist(), parts, strict=True):
        out[tuple(place)] += part
    return make(out)


# Ops that do more than move elements: adding strings joins them.
_OWN: dict[str, Any] = {"add": _joined, "zeros": _zeros, "cast": _cast, "scatter_nd": _scattered}


def has_own(name: str) -> bool:
    """Whether an op on strings does anything besides moving elements."""
    return name in _OWN
