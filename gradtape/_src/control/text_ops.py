"""Ops on strings, written in Python: makes an op of tensors from a function of bytes.

Such an op is a node of its own (`graph.ir.Callback`): eager code runs it at once, and in a traced function it
is a step of the program. If sizes of its results depend on values, its specs say so, and a traced function is
a recording.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.graph.ir import Callback
from gradtape._src.graph.trace import shape_in_world
from gradtape._src.tensors import conversion, text
from gradtape._src.tensors.indexed_slices import IndexedSlices


class Bad(ValueError):
    """An error about one element; `each` adds which one."""


def typed(value: Any, dtype: dtypes.DType, op: str = "op", place: int = 0) -> Any:
    """An argument as a tensor of one type; numbers of another type are refused as in TensorFlow.

    Raises:
      TypeError: if it cannot be converted, or is a tensor of another type in a traced function.
      InvalidArgumentError: if it is a tensor of another type.
    """
    x = conversion.read(value)
    if not isinstance(x, _core.Tensor):
        return conversion.convert(x, dtype._code)
    if x.dtype is dtype:
        return x
    if _core.current_trace() is not None:
        raise TypeError(
            f"Input #{place} of '{op}' Op has type {x.dtype.name} that does not match expected type of {dtype.name}."
        )
    raise InvalidArgumentError(
        f"cannot compute {op} as input #{place}(zero-based) was expected to be a {dtype.name} tensor but is a "
        f"{x.dtype.name} tensor [Op:{op}]"
    )


def strings_of(value: Any, op: str = "op", place: int = 0) -> Any:
    """An argument as a tensor of strings."""
    return typed(value, dtypes.string, op, place)


def one_of(value: Any, allowed: Sequence[str], attribute: str, op: str) -> str:
    """An attribute that has one of a few values."""
    word = value.decode() if isinstance(value, bytes) else value
    if word in allowed:
        return word
    names = ", ".join(f'"{a}"' for a in allowed)
    raise InvalidArgumentError(
        f"Value for attr '{attribute}' of \"{word}\" is not in the list of allowed values: {names} [Op:{op}]"
    )


def bytes_of(value: str | bytes) -> bytes:
    """An attribute given by the user, such as a separator, as bytes."""
    return value.encode() if isinstance(value, str) else bytes(value)


def tensor(values: Iterable[Any], shape: Sequence[int], dtype: dtypes.DType = dtypes.string) -> Any:
    """A tensor from its elements in row-major order."""
    if dtype is dtypes.string:
        return text.make(text.array(values, shape))
    with np.errstate(over="ignore"):  # as in C, a number that is too large is infinite
        array = np.array(list(values), dtype.as_numpy_dtype).reshape(tuple(shape))
    return _core.from_buffer(array, dtype._code)


def run(
    name: str,
    function: Callable[..., Sequence[Any]],
    operands: Sequence[Any],
    specs: Sequence[tuple],
    effect: bool = False,
) -> list:
    """The results of a function of tensors.

    Args:
      specs: (shape, type) for each result; None for sizes, and shapes, that depend on values.
      effect: whether it runs even if nothing reads the results.
    """
    if any(shape is None or None in shape for shape, _ in specs):
        if _core.current_trace() is None:
            return list(function(*operands))
        specs = [(shape_in_world(shape, name), dtype) for shape, dtype in specs]
    return Callback(name, function, effect)(operands, [(tuple(s), d._code) for s, d in specs])


def each(
    name: str, function: Callable[..., Any], x: Any, dtype: dtypes.DType = dtypes.string, effect: bool = False
) -> Any:
    """Applies a function of one element to every element of a tensor.

    Raises:
      InvalidArgumentError: if it raises `Bad`; the message names the element.
    """

    def forward(x: Any) -> list:
        return [tensor(over(function, elements(x), x._dims), x._dims, dtype)]

    return run(name, forward, [x], [(x._dims, dtype)], effect)[0]


def over(function: Callable[[Any], Any], values: list, shape: Sequence[int]) -> list:
    """The results of a function of one element; an error names the position of the element that is `Bad`."""
    out = []
    for v in values:
        try:
            out.append(function(v))
        except Bad as e:
            place = [int(i) for i in np.unravel_index(len(out), tuple(shape))] if shape else []
            raise InvalidArgumentError(f"{e} (at position {place})" if place else str(e)) from None
    return out


def elements(x: Any) -> list:
    """The elements of a tensor as a list."""
    if x.dtype is dtypes.string:
        return text.array_of(x).reshape(-1).tolist()
    return x.numpy().reshape(-1).tolist() if x._dims else [x.numpy().item()]


def scalar(x: Any) -> Any:
    """The only element of a tensor."""
    (value,) = elements(x)
    return value


def is_ragged(value: Any) -> bool:
    """Whether it is a ragged tensor, a class that is defined in a layer above."""
    return hasattr(type(value), "with_flat_values")


def is_sparse(value: Any) -> bool:
    """Whether it is a sparse tensor."""
    return (
        not isinstance(value, IndexedSlices) and hasattr(value, "dense_shape") and hasattr(value, "indices")
    )
