"""Lines of comma-separated values: decode_csv."""

from __future__ import annotations

from typing import Any

from gradtape._src.base import dtypes
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.reading import number_in
from gradtape._src.control.text_ops import bytes_of, elements, run, tensor
from gradtape._src.tensors.conversion import as_tensor
from gradtape.io.contents import texts_of

_QUOTE, _ENDS = ord('"'), (10, 13)
_KINDS = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.string)


@one_call
def decode_csv(
    records: Any,
    record_defaults: Any,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Any = None,
    name: str | None = None,
) -> list:
    """Lines of comma-separated values as a list of columns, each of the shape of `records`.

    Args:
      records: one line, or an array of lines.
      record_defaults: for each column a number, string, or list of one, which gives its type and replaces missing
        values; an empty tensor means that values must not be missing.
      field_delim: the delimiter between values.
      use_quote_delim: whether quotes group a value.
      na_value: also counts as a missing value.
      select_cols: the indices of the columns to take, in increasing order.

    Raises:
      InvalidArgumentError: if a line has too few fields, or a field is not a number; the message names it.

    >>> import gradtape as tf
    >>> price, name = tf.io.decode_csv(["1.5,apple", "2,pear"], [0.0, ""])
    >>> price.numpy(), name.numpy()
    (array([1.5, 2. ], dtype=float32), array([b'apple', b'pear'], dtype=object))
    """
    x, between = texts_of(records, "decode_csv"), bytes_of(field_delim)
    defaults = [_default_of(d, k) for k, d in enumerate(record_defaults)]
    chosen = None if select_cols is None else [int(c) for c in select_cols]
    if chosen is not None:
        if len(chosen) != len(defaults):
            raise ValueError(
                f"Length of select_cols and record_defaults do not match. select_cols: {chosen}, record_defaults: "
                f"{record_defaults}."
            )
        if any(a >= b for a, b in zip(chosen, chosen[1:], strict=False)):
            raise ValueError(f"select_cols is not strictly increasing. select_cols: {chosen}.")
        if chosen and chosen[0] < 0:
            raise ValueError(f"select_cols contains negative values. select_cols: {chosen}.")
    if len(between) != 1:
        raise InvalidArgumentError("field_delim should be only 1 char")
    places, missing = chosen or list(range(len(defaults))), bytes_of(na_value)

    def decode(x: Any, *defaults: Any) -> list:
        rows = []
        for i, line in enumerate(elements(x)):
            row = fields_of(line, between[0], use_quote_delim)
            if (chosen is None and len(row) != len(defaults)) or max(places, default=-1) >= len(row):
                raise InvalidArgumentError(f"Expect {len(defaults)} fields but have {len(row)} in record {i}")
            rows.append(row)
        out = []
        for k, (place, default) in enumerate(zip(places, defaults, strict=True)):
            fields = [row[place] for row in rows]
            values = _column(fields, k, default.dtype, elements(default), missing)
            out.append(tensor(values, x._dims, default.dtype))
        return out

    return run("decode_csv", decode, [x, *defaults], [(x._dims, d.dtype) for d in defaults])


def _default_of(value: Any, k: int) -> Any:
    """The default of a column as a tensor, which is empty if there is none."""
    if isinstance(value, dtypes.DType):
        return tensor([], [0], value)
    default = as_tensor(value)
    if default._numel > 1:
        raise InvalidArgumentError(
            f"There should only be 1 default per field but field {k} has {default._numel}"
        )
    if default.dtype not in _KINDS:
        raise InvalidArgumentError(
            f"Value for attr 'OUT_TYPE' of {default.dtype.name} is not in the list of allowed values: float, double, "
            "int32, int64, string"
        )
    return default


def fields_of(line: bytes, between: int, quotes: bool) -> list[bytes]:
    """The fields of a line.

    Raises:
      InvalidArgumentError: if there are quotes or line ends in wrong places.
    """
    out, at, end = [], 0, len(line)
    while at < end:
        if line[at] in _ENDS:
            at += 1
        elif quotes and line[at] == _QUOTE:
            field, at = _quoted(line, at + 1, between)
            out.append(field)
        else:
            stop = line.find(between, at)
            stop = end if stop < 0 else stop
            field = line[at:stop]
            if (quotes and _QUOTE in field) or any(e in field for e in _ENDS):
                raise InvalidArgumentError("Unquoted fields cannot have quotes/CRLFs inside")
            out.append(field)
            at = stop + 1
    if line and line[-1] == between:
        out.append(b"")
    return out


def _quoted(line: bytes, at: int, between: int) -> tuple[bytes, int]:
    """A field in quotes, and where the next one begins."""
    field, last = bytearray(), len(line) - 1
    while at < last and not (line[at] == _QUOTE and line[at + 1] == between):
        if line[at] != _QUOTE:
            field.append(line[at])
            at += 1
            continue
        if line[at + 1] != _QUOTE:
            raise InvalidArgumentError("Quote inside a string has to be escaped by another quote")
        field.append(_QUOTE)
        at += 2
    if at > last or line[at] != _QUOTE:
        raise InvalidArgumentError("Quoted field has to end with quote followed by delim or end")
    return bytes(field), at + 2


def _column(fields: list[bytes], k: int, dtype: Any, default: list, missing: bytes) -> list:
    values = []
    for i, field in enumerate(fields):
        if field in (b"", missing):
            if not default:
                raise InvalidArgumentError(f"Field {k} is required but missing in record {i}!")
            values.append(default[0])
        elif dtype is dtypes.string:
            values.append(field)
        else:
            values.append(number_in(field, dtype))
            if values[-1] is None:
                raise InvalidArgumentError(
                    f"Field {k} in record {i} is not a valid {dtype.name}: {field.decode(errors='replace')}"
                )
    return values
