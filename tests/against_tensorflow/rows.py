"""The calls from the op table: every row's samples, edges and wrong inputs, by its public names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gradtape._src.contract.cases import Case, Unfit, allowed
from gradtape._src.ops.samples import Sample
from gradtape._src.ops.table import TABLE, Row
from gradtape.dtypes import DType

from .calling import Maker

# Derivatives are compared in these; others only round more.
_FIRST = ("float32", "float64", "complex64", "complex128")
_SECOND = ("float64", "complex128")


class Call(NamedTuple):
    """One call to compare: the function, the text of the call, and how it is compared."""

    function: str
    words: str
    dtype: str
    call: Callable[[Maker], Any]
    gradients: bool = True
    second: bool = True
    numbers: bool = True
    factor: float = 1.0


def find(lib: Any, name: str) -> Any:
    """The object of `lib` with a public name; raises AttributeError if there is none."""
    for part in name.split("."):
        lib = getattr(lib, part)
    return lib


def _of_library(lib: Any, value: Any) -> Any:
    """An attribute of a sample: a type of gradtape's becomes the library's own."""
    if isinstance(value, DType):
        return getattr(lib, value.name)
    return value


def _shown(case: Case) -> str:
    operands = []
    for array, dtype in zip(case.arrays, case.dtypes, strict=True):
        operands.append(repr(array) if dtype is None else f"{dtype.name}{list(array.shape)}")
    attrs = [f"{k}={v!r}" for k, v in case.sample.attrs.items()]
    return ", ".join(operands + attrs)


def _call(name: str, case: Case) -> Callable[[Maker], Any]:
    def call(make: Maker) -> Any:
        operands = [
            a if d is None else make.tensor(a, d.name) for a, d in zip(case.arrays, case.dtypes, strict=True)
        ]
        named = {k: _of_library(make.lib, v) for k, v in case.keywords(operands).items()}
        return find(make.lib, name)(**named)

    return call


def _of_row(row: Row, name: str, whole: bool) -> Iterator[Call]:
    def made(case: Case, what: str, gradients: bool = True) -> Call:
        dtype = case.dtype.name
        return Call(
            name, f"{what} tf.{name}({_shown(case)})", dtype, _call(name, case), gradients and dtype in _FIRST,
            dtype in _SECOND, factor=row.tolerance,
        )  # fmt: skip

    for dtype in allowed(row) if whole else allowed(row)[-1:]:
        for number, sample in enumerate(row.samples):
            try:
                case = Case(row, number, sample, dtype)
            except Unfit:
                continue
            yield made(case, f"sample {number}")
    if not whole:
        return
    types = allowed(row)
    by_name = {d.name: d for d in types}
    for number, (operands, _) in enumerate(row.edges):
        yield made(
            Case(row, number, Sample(operands, {}), by_name.get("float64", types[-1])), f"edge {number}"
        )
    for number, (sample, _, _) in enumerate(row.bad):
        case = Case(row, number, sample, by_name.get("float32", types[0]), strict=False)
        yield made(case, f"wrong {number}", gradients=False)


def calls(wanted: Callable[[str], bool]) -> Iterator[Call]:
    """The calls of all rows; of a row's names the first gets every sample, the others one element type."""
    for row in TABLE.values():
        for k, name in enumerate(row.names):
            if wanted(name):
                yield from _of_row(row, name, k == 0)
