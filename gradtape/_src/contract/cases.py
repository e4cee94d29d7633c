"""Samples of a row as arrays and calls: the inputs of the checks.

A sample (`gradtape._src.ops.samples`) describes operands; a `Case` is a sample in one element type with random
values from a fixed seed, so that failures can be reproduced.
"""

from __future__ import annotations

import copy
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.dtypes import DType
from gradtape._src.ops.samples import At, Inside, Matrices, Sample
from gradtape._src.ops.table import Param, Row
from gradtape._src.tensors import stored, text

_RANGE = (-2.0, 2.0)
_LARGE = 1000  # the number of the first large sample
# Element types in which a reference computes: NumPy's half precision would add errors of its own.
_WIDE = {"float16": np.float64, "bfloat16": np.float64, "float32": np.float64, "complex64": np.complex128}
_WIDER = {
    dtypes.float16: dtypes.float64,
    dtypes.bfloat16: dtypes.float64,
    dtypes.float32: dtypes.float64,
    dtypes.complex64: dtypes.complex128,
}


class Unfit(Exception):
    """A sample that makes no sense in an element type, such as 0.5 as an integer."""


class Case:
    """One sample of a row in one element type, ready to be called.

    Attributes:
      arrays, dtypes, names: the operands, with lists flattened (`values[1]`).
    """

    def __init__(self, row: Row, number: int, sample: Sample, dtype: DType, strict: bool = True) -> None:
        self.row, self.number, self.sample, self.dtype = row, number, sample, dtype
        rng = np.random.default_rng([zlib.crc32(row.name.encode()), number])
        self.arrays: list[Any] = []
        self.dtypes: list[Any] = []  # None for operands that are not tensors
        self.names: list[str] = []
        self.params: list[Param] = []
        self.given: list[Any] = []  # the sample's description of each operand
        self._lists: list[tuple[Param, int | None]] = []
        for param, given in zip(row.operands, _given(row, sample), strict=False):
            is_list = param.kind == "Operands" and isinstance(given, (list, tuple))
            self._lists.append((param, len(given) if is_list else None))
            for i, one in enumerate(given if is_list else [given]):
                array, own = _operand(one, param, dtype, rng, strict)
                self.arrays.append(array)
                self.dtypes.append(own)
                self.names.append(f"{param.name}[{i}]" if is_list else param.name)
                self.params.append(param)
                self.given.append(one)

    @property
    def where(self) -> str:
        shapes = [str(np.shape(a)) for a in self.arrays]
        word = "shape" if len(shapes) == 1 else "shapes"
        types = {d.name: None for d in self.dtypes if d is not None}
        shown = f"{word} {', '.join(shapes)}; " if shapes else ""
        attrs = "".join(f"; {k}={v!r}" for k, v in self.sample.attrs.items())
        which = f"sample {self.number}" if self.number < _LARGE else f"large sample {self.number - _LARGE}"
        return f"{which} ({shown}{', '.join(types) or self.dtype.name}{attrs})"

    @property
    def finite(self) -> bool:
        return all(np.all(np.isfinite(a)) for a in self.arrays)

    def widened(self) -> Case:
        """The same numbers in double precision."""
        wide = copy.copy(self)
        wide.dtypes = [_WIDER.get(d, d) for d in self.dtypes]
        return wide

    def rng(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng([zlib.crc32(self.row.name.encode()), self.number, purpose])

    # ---- calls ------------------------------------------------------------------------------

    def tensors(self) -> list[Any]:
        return [a if d is None else tensor(a, d) for a, d in zip(self.arrays, self.dtypes, strict=True)]

    def symbols(self, probe: Any) -> list[Any]:
        return [
            _core.symbolic(a.shape, d._code, probe) for a, d in zip(self.arrays, self.dtypes, strict=True)
        ]

    def keywords(self, operands: list[Any]) -> dict[str, Any]:
        """The arguments of a call, by name, since operands need not come first in a signature."""
        left = list(operands)
        named: dict[str, Any] = {}
        for param, count in self._lists:
            if count is None:
                named[param.name] = left.pop(0)
            else:
                named[param.name], left = left[:count], left[count:]
        return named | self.sample.attrs

    def call(self, operands: list[Any]) -> tuple:
        """The results of the op, always as a tuple."""
        out = self.row.op(**self.keywords(operands))
        return tuple(out) if isinstance(out, (tuple, list)) else (out,)

    def reference(self) -> tuple:
        """The results of NumPy, in double precision."""
        wide = [
            a.astype(_WIDE.get(d.name, a.dtype)) if d is not None else a
            for a, d in zip(self.arrays, self.dtypes, strict=True)
        ]
        named = self.keywords(wide)
        operands = [named.pop(param.name) for param, _ in self._lists]
        with np.errstate(all="ignore"):
            out = self.row.numpy(*operands, **named)
        return tuple(np.asarray(o) for o in out) if self.row.many else (np.asarray(out),)


def cases(row: Row, types: list[DType], samples: Any = None, first: int = 0) -> Iterator[Case]:
    """Every sample of `row`, in each element type in which it makes sense."""
    for dtype in types:
        for number, sample in enumerate(row.samples if samples is None else samples, first):
            try:
                yield Case(row, number, sample, dtype)
            except Unfit:
                continue


def large_cases(row: Row, dtype: DType) -> Iterator[Case]:
    """Samples that exercise a kernel's vector loops and their remainders; not written in any row."""
    if row.kind == "elementwise":
        ranges = [_range_of(given) for given in row.samples[0].operands]
        rest = len(ranges) - 1
        shapes: list[list[tuple[int, ...]]] = [[(3, 347)] * (rest + 1)]
        if rest:
            shapes += [[(3, 347), *[(347,)] * rest], [(), *[(1041,)] * rest]]
        if None not in ranges:
            samples = [
                tuple(Inside(r[0], r[1], s) for r, s in zip(ranges, some, strict=True)) for some in shapes
            ]
            yield from cases(row, [dtype], [Sample(operands, {}) for operands in samples], _LARGE)
    elif row.kind == "reduction" and dtype.is_floating and any(p.name == "axis" for p in row.params):
        x = Inside(0.5, 1.5, (37, 129))
        yield from cases(row, [dtype], [Sample((x,), {"axis": axis}) for axis in (0, 1)], _LARGE)


def _range_of(given: Any) -> Any:
    """The limits of random numbers; None for given values."""
    if isinstance(given, Inside):
        return given.lo, given.hi
    return _RANGE if _is_shape(given) else None


def has_common_type(row: Row) -> bool:
    return any(p.kind in ("Operand", "Operands") for p in row.operands)


def allowed(row: Row) -> list[DType]:
    """The element types of a row; only float32 if no operand has the common type."""
    if not has_common_type(row):
        return [dtypes.float32]
    return [d for d in dtypes.BY_CODE if row.dtypes >> d._code & 1 and d._code not in dtypes.HELD]


def tensor(array: np.ndarray, dtype: DType) -> Any:
    """A tensor with a copy of `array`; bfloat16 values are passed as float32."""
    array = np.asarray(array)
    if dtype is dtypes.string:
        return text.make(
            text.array((b"%s" % str(v).encode() for v in array.reshape(-1).tolist()), array.shape)
        )
    if dtype._kind == "s":
        return stored.convert(array, dtype)
    if dtype is dtypes.bfloat16:
        array = (array.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    else:
        array = array.astype(dtype.as_numpy_dtype, copy=False)
    return _core.from_buffer(np.ascontiguousarray(array).reshape(array.shape), dtype._code)


def array_of(value: Any) -> np.ndarray:
    """The value of a tensor, in double precision if it is a float."""
    array = np.asarray(value.numpy())
    return array.astype(_WIDE.get(value.dtype.name, array.dtype))


def _given(row: Row, sample: Sample) -> tuple:
    """The operands of a sample, with those of a list packed: `call((2,), (3,))` is a list of two."""
    params = row.operands
    if len(params) == 1 and params[0].kind == "Operands":
        if len(sample.operands) == 1 and isinstance(sample.operands[0], list):
            return sample.operands
        return (list(sample.operands),)
    return sample.operands


def _is_shape(given: Any) -> bool:
    return (
        isinstance(given, tuple)
        and not isinstance(given, (At, Inside, Matrices))
        and all(type(d) is int for d in given)
    )


def _operand(given: Any, param: Param, dtype: DType, rng: Any, strict: bool) -> tuple[Any, DType | None]:
    """The value and element type of one operand; unless `strict`, anything but a description is used as it is."""
    wrong = not strict and isinstance(given, Inside)  # floats where other types belong, on purpose
    if _is_shape(given):
        given = Inside(*_RANGE, given)
    if isinstance(given, Inside):
        own = dtype if wrong else {"Index": dtypes.int32, "Condition": dtypes.bool}.get(param.kind, dtype)
        return _random(given, own, rng), own
    if isinstance(given, Matrices):
        return _random_matrices(given, dtype, rng), dtype
    if isinstance(given, At):
        own = dtype if given.dtype == "float" else dtypes.as_dtype(given.dtype)
        if strict and param.kind in ("Operand", "Operands"):
            own = dtype
        elif strict and param.kind == "Index" and dtype.size >= 8:
            own = dtypes.int64  # both index types are used
        return _cast(np.asarray(given.values), own), own
    if strict:
        raise TypeError(
            f"a sample of {param.name} is a shape, at(), ints(), bools() or inside(), not {given!r}"
        )
    return given, None


def _cast(values: np.ndarray, dtype: DType) -> np.ndarray:
    if dtype is dtypes.bfloat16:
        return _round_bfloat16(values.astype(np.float32))
    with np.errstate(all="ignore"):
        cast = values.astype(dtype.as_numpy_dtype)
    if not (dtype.is_floating or dtype.is_complex) and not np.array_equal(cast, values):
        raise Unfit
    return cast


def _round_bfloat16(x: np.ndarray) -> np.ndarray:
    """float32 numbers rounded to the 8-bit mantissa of bfloat16, ties to even."""
    bits = x.reshape(-1).view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(x), x, rounded.astype(np.uint32).view(np.float32).reshape(x.shape))


def _random(given: Inside, dtype: DType, rng: Any) -> np.ndarray:
    lo, hi, shape = given
    size = int(np.prod(shape))
    if dtype.is_bool:
        return np.asarray(rng.integers(0, 2, shape), bool)
    if dtype.is_integer:
        low, high = int(np.ceil(lo)), int(np.floor(hi))
        low = max(low, 0) if dtype.is_unsigned else low
        if low > high:
            raise Unfit
        return np.asarray(rng.integers(low, high + 1, shape), dtype.as_numpy_dtype)
    # One number in each of `size` equal parts of the range, so that no two are close.
    part = rng.permutation(size) + rng.uniform(0.2, 0.8, size)
    x = (lo + (hi - lo) * part / max(size, 1)).reshape(shape)
    if dtype.is_complex:
        x = x + 1j * rng.uniform(-1, 1, shape) * min(1.0, (hi - lo) / 2)
    return _cast(np.asarray(x), dtype)


def _random_matrices(given: Matrices, dtype: DType, rng: Any) -> np.ndarray:
    """Elements up to 1, and a dominant diagonal of distinct sizes, so that no eigenvalues are close."""
    *_, rows, columns = given.shape
    x = _random(Inside(-1, 1, given.shape), dtypes.complex128 if dtype.is_complex else dtypes.float64, rng)
    x += np.eye(rows, columns) * (1 + np.arange(columns)) * min(rows, columns)
    return _cast(x @ np.conj(np.swapaxes(x, -1, -2)) / max(columns, 1) if given.definite else x, dtype)
