"""Tensors of the types that are only stored and cast: 8-bit floats, a 4-bit float, integers of 4 and 2 bits.

Such a tensor refers to an array of its bits, one uint8 per element, as a tensor of strings refers to its bytes
(`core/py/device.h`). Ops that only move elements run on the bits (their rows have `STORED` among their types),
those that compare run on the values; casts are done here, by a table of the values of all bit patterns. There is no
arithmetic.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes, errors
from gradtape._src.base.dtypes import DType
from gradtape._src.tensors import above

_BITS = dtypes.uint8._code  # elements are moved as this type, and results of it converted back


class Float:
    """The format of a small float: a sign, an exponent, a mantissa; numbers with exponent 0 are subnormal.

    Args:
      exponent, mantissa: the number of bits of each.
      end: the bits, without the sign, of the first number that would be too large.
      beyond: the bits that replace numbers that are too large.
      has_negative_zero: if False, the bits of negative zero are the only NaN.
    """

    def __init__(
        self,
        exponent: int,
        mantissa: int,
        bias: int,
        end: int,
        beyond: int,
        nan: int,
        has_negative_zero: bool = True,
    ) -> None:
        self.exponent, self.mantissa, self.bias = exponent, mantissa, bias
        self.end, self.beyond, self.nan = end, beyond, nan
        self.has_negative_zero = has_negative_zero


_FLOATS = {
    "float8_e5m2": Float(
        5, 2, 15, 0x7C, 0x7C, 0x7E
    ),  # as in IEEE formats, numbers that are too large become infinity
    "float8_e4m3fn": Float(4, 3, 7, 0x7F, 0x7F, 0x7F),
    "float8_e4m3fnuz": Float(4, 3, 8, 0x80, 0x80, 0x80, False),
    "float8_e4m3b11fnuz": Float(4, 3, 11, 0x80, 0x80, 0x80, False),
    "float8_e5m2fnuz": Float(5, 2, 16, 0x80, 0x80, 0x80, False),
    "float4_e2m1fn": Float(2, 1, 1, 8, 7, 8),  # neither infinity nor NaN
}
_INTEGERS = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}


@cache
def _table(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    """The values of all bit patterns of a type, float32 or int8, and for floats the midpoints between neighbours."""
    if bits := _INTEGERS.get(dtype.name):
        at = np.arange(1 << bits, dtype=np.int8)
        return (at if dtype.is_unsigned else np.where(at >> (bits - 1), at - (1 << bits), at)), at
    form = _FLOATS[dtype.name]
    exponent, mantissa = np.divmod(np.arange(form.end + 1), 1 << form.mantissa)
    normal = exponent > 0
    whole = mantissa + (normal << form.mantissa)
    size = np.ldexp(whole.astype(np.float64), np.maximum(exponent, 1) - form.bias - form.mantissa)
    values = np.full(1 << (form.exponent + form.mantissa), np.nan)
    values[: form.end] = size[:-1]
    if form.beyond != form.nan and form.beyond == form.end:
        values[form.end] = np.inf
    negative = -values
    if not form.has_negative_zero:
        negative[0] = np.nan
    return np.concatenate([values, negative]).astype(np.float32), (size[1:] + size[:-1]) / 2


def _values(dtype: DType) -> np.ndarray:
    return _table(dtype)[0]


def _bits_of(array: np.ndarray, dtype: DType) -> np.ndarray:
    """The bits of the values nearest to those of a float64 array, ties to even; integers of an int64 array wrap."""
    if bits := _INTEGERS.get(dtype.name):
        return (array & ((1 << bits) - 1)).astype(np.uint8)
    form, halfway = _FLOATS[dtype.name], _table(dtype)[1]
    size = np.abs(array)
    at = np.searchsorted(halfway, size)
    is_half = (at < len(halfway)) & (halfway[np.minimum(at, len(halfway) - 1)] == size)
    at += is_half & (at % 2 == 1)
    at = np.where(np.isnan(array), form.nan, np.where(at >= form.end, form.beyond, at))
    signed = np.signbit(array)
    if not form.has_negative_zero:
        signed &= (at > 0) & (at != form.nan)
    return (at ^ (signed << (form.exponent + form.mantissa))).astype(np.uint8)


# ---- conversion ---------------------------------------------------------------------------------


def make(bits: np.ndarray, dtype: DType) -> _core.Tensor:
    """The tensor of an array of bits; the array becomes read-only."""
    bits.flags.writeable = False
    return _core.from_device(bits, bits.shape, dtype._code)


def of_bits(array: np.ndarray, dtype: DType) -> _core.Tensor:
    """The tensor of a copy of an array of bits, without the bits that the type does not have."""
    return make(np.asarray(array & np.uint8(len(_values(dtype)) - 1)), dtype)


def bits_of(tensor: _core.Tensor) -> np.ndarray:
    """The bits of a tensor of a stored type, as a read-only array."""
    (array,) = _core.device_arrays([tensor])
    if array is None:
        raise TypeError(f"Expected a tensor of type {tensor.dtype.name} with a value; got {tensor!r}.")
    return array


def values_of(tensor: _core.Tensor) -> np.ndarray:
    """The values of a tensor of a stored type, in float32 or int8."""
    return _values(tensor.dtype)[bits_of(tensor)]


def convert(array: np.ndarray, dtype: DType) -> _core.Tensor:
    """An array of numbers, or one of `ml_dtypes`, as a tensor of a stored type."""
    if dtypes.is_of_ml_dtypes(array.dtype):
        if dtypes.from_numpy(array.dtype) is dtype:
            return of_bits(np.ascontiguousarray(array).view(np.uint8).reshape(array.shape), dtype)
        array = array.astype(np.float32)
    array = array.real if array.dtype.kind == "c" else array
    with np.errstate(invalid="ignore"):  # infinity as an integer
        wide = array.astype(np.float64 if dtype.is_floating else np.int64)
    return make(np.asarray(_bits_of(wide, dtype)), dtype)


def shown(bits: np.ndarray, code: int) -> Any:
    """The result of `numpy()`, for the core: an array of `ml_dtypes`' type if it is installed, else of the values."""
    dtype = dtypes.BY_CODE[code]
    numpy_type = np.dtype(dtype.as_numpy_dtype)
    if dtypes.is_of_ml_dtypes(numpy_type):
        return bits.copy().view(numpy_type)[()]
    return _values(dtype)[bits].astype(numpy_type)[()]


# ---- ops ------------------------------------------------------------------------------------------


def run(op: Any, operands: tuple[_core.Tensor, ...], attrs: tuple) -> Any:
    """An op of the core with operands or a result of a stored type."""
    if own := _OWN.get(op.op_name):
        return own(*operands, *attrs)
    dtype = next((x.dtype for x in operands if x.dtype._kind == "s"), None)
    if dtype is None:
        return _made(op, operands, attrs)
    by_value = op.op_name in _COMPARE

    def number(x: _core.Tensor) -> _core.Tensor:
        if x.dtype is not dtype:
            return x
        return _plain(x) if by_value else _core.from_buffer(bits_of(x), _BITS)

    code = dtypes.from_numpy(_values(dtype).dtype)._code if by_value else _BITS

    def back(x: _core.Tensor) -> _core.Tensor:
        if x.dtype._code != code:
            return x
        return _cast(x, dtype) if by_value else make(np.array(x), dtype)

    results = [back(x) for x in _core.apply(op, [number(x) for x in operands], attrs)]
    return tuple(results) if op.row.many else results[0]


_COMPARE = ("equal", "not_equal", "unique")  # zeros of both signs are equal, and NaN is not


def _plain(x: _core.Tensor) -> _core.Tensor:
    values = values_of(x)
    return _core.from_buffer(np.asarray(values), dtypes.from_numpy(values.dtype)._code)


def _cast(x: _core.Tensor, dtype: DType, *_: Any) -> _core.Tensor:
    if x.dtype is dtype:
        return x
    if dtypes.string in (x.dtype, dtype):
        raise errors.UnimplementedError(f"cast: Cast {x.dtype.name} to {dtype.name} is not supported.")
    if x.dtype._kind == "s":
        x = _plain(x)
        if dtype.is_integer and x.dtype.is_floating:
            x = _whole(x, dtype)
    if dtype._kind != "s":
        return above.ops.cast(x, dtype)
    return convert(np.array(above.ops.cast(x, dtypes.float64 if dtype.is_floating else dtypes.int64)), dtype)


def _whole(x: _core.Tensor, dtype: DType) -> _core.Tensor:
    """Numbers truncated to int64: they wrap around in smaller types, and NaN and infinity become what processors
    make of them, the smallest integer of 32 or 64 bits."""
    array = np.asarray(x)
    neither = np.iinfo(np.int64 if dtype.size == 8 else np.int32).min
    whole = np.where(np.isfinite(array), array, 0).astype(np.int64)
    return _core.from_buffer(np.where(np.isfinite(array), whole, neither), dtypes.int64._code)


def _made(op: Any, operands: tuple, attrs: tuple) -> _core.Tensor:
    """The result of an op that creates a tensor of a given type, such as zeros."""
    dtype = next(a for a in attrs if isinstance(a, DType) and a._kind == "s")
    if op.op_name not in _MAKE:
        raise errors.ArgumentError(
            f"{op.op_name}: not defined for {dtype.name}, which is not in the list of allowed values: it is only stored "
            "and cast. Hint: tf.cast the result."
        )
    wide = dtypes.from_numpy(_values(dtype).dtype)
    (x,) = _core.apply(op, list(operands), tuple(wide if a is dtype else a for a in attrs))
    return _cast(x, dtype)


_MAKE = ("zeros", "ones", "eye")


def _refused(*operands: Any) -> Any:
    raise errors.NotFoundError(
        "scatter_nd: there is no sum of elements of a type that is only stored. Hint: tf.cast them to float32, or use "
        "tf.tensor_scatter_nd_update."
    )


_OWN: dict[str, Any] = {"cast": _cast, "scatter_nd": _refused}


def has_own(name: str) -> bool:
    """Whether an op on stored types does anything besides moving their bits or comparing them."""
    return name in _OWN
