"""Numbers as strings and back: as_string, to_number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape._src.base import dtypes
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.reading import number_in
from gradtape._src.control.text_ops import Bad, bytes_of, each, strings_of
from gradtape._src.tensors import conversion

# ---- as strings -------------------------------------------------------------------------------------


@one_call
def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Any:
    """Each element as a string.

    Args:
      precision: digits after the decimal point, for floats; six by default.
      scientific: floats with an exponent.
      shortest: floats with or without an exponent, whichever is shorter.
      width: pad to this many characters.
      fill: the padding, "0" or " "; "-" pads with spaces on the right, "+" adds a sign to positive numbers.

    >>> import gradtape as tf
    >>> tf.strings.as_string([3.1415926, 2.72]).numpy()
    array([b'3.141593', b'2.720000'], dtype=object)
    >>> tf.strings.as_string(7, width=3, fill="0").numpy()
    b'007'
    """
    x = conversion.as_tensor(input)
    return each("as_string", _formatter(x.dtype, precision, scientific, shortest, width, fill), x)


def _formatter(
    dtype: Any, precision: int, scientific: bool, shortest: bool, width: int, fill: Any
) -> Callable[[Any], bytes]:
    mark, fractions = bytes_of(fill).decode(), dtype.is_floating or dtype.is_complex
    if len(mark) > 1:
        raise InvalidArgumentError("Fill string must be one or fewer characters [Op:AsString]")
    if mark not in ("", " ", "+", "-", "0", "#"):
        raise InvalidArgumentError(f'Fill argument not supported: "{mark}" [Op:AsString]')
    if not fractions and (scientific or shortest):
        raise InvalidArgumentError(
            f"scientific and shortest format not supported for datatype {dtype.name} [Op:AsString]"
        )
    if scientific and shortest:
        raise InvalidArgumentError("Cannot select both scientific and shortest notation [Op:AsString]")
    if not fractions and precision >= 0 and dtype is not dtypes.string:
        raise InvalidArgumentError(f"precision not supported for datatype {dtype.name} [Op:AsString]")
    pad = f"%{mark}{width if width >= 0 else ''}"
    if dtype is dtypes.string:
        left = mark == "-"
        return lambda s: s.ljust(max(width, 0)) if left else s.rjust(max(width, 0))
    if dtype is dtypes.bool:
        return lambda b: b"true" if b else b"false"
    if not fractions:
        return lambda n: (pad + "d").__mod__(int(n)).encode()
    number = (
        f"{pad}{f'.{precision}' if precision >= 0 else ''}{'e' if scientific else 'g' if shortest else 'f'}"
    )
    if dtype.is_complex:
        return lambda z: f"({number % z.real},{number % z.imag})".encode()
    return lambda x: (number % float(x)).encode()


# ---- from strings -----------------------------------------------------------------------------------

_TARGETS = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64)


@one_call
def to_number(input: Any, out_type: Any = dtypes.float32, name: str | None = None) -> Any:
    """Each string as a number.

    Args:
      out_type: float32, float64, int32, int64, uint32 or uint64.

    Raises:
      InvalidArgumentError: if a string is not a number of this type; the message names it.

    >>> import gradtape as tf
    >>> tf.strings.to_number(["1.5", "2"]).numpy()
    array([1.5, 2. ], dtype=float32)
    """
    dtype = dtypes.as_dtype(out_type)
    if dtype not in _TARGETS:
        raise InvalidArgumentError(
            f"Value for attr 'out_type' of {dtype.name} is not in the list of allowed values: float, double, int32, "
            "int64, uint32, uint64 [Op:StringToNumber]"
        )

    def number(field: bytes) -> Any:
        value = number_in(field, dtype)
        if value is None:
            raise Bad(
                f"StringToNumberOp could not correctly convert string: {field.decode(errors='replace')}"
            )
        return value

    return each("to_number", number, strings_of(input, "StringToNumber"), dtype)
