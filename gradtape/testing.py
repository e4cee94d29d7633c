"""The contract of an op, as checks that run over any row of the op table.

`check_op(op)` checks what every op promises: values equal to its NumPy reference, shapes and types
as inferred, first and second derivatives equal to central differences, errors as declared. The
tests run it over the whole table; use it on your own ops.

>>> from gradtape import testing
>>> from gradtape._src.ops import tanh
>>> testing.check_op(tanh)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from typing import Any

from gradtape._src.contract import batching, behaviour, derivatives, facts, forward, held, primitive, xla
from gradtape._src.contract.compare import NUMERICAL, TOLERANCES
from gradtape._src.contract.derivatives import central_differences
from gradtape._src.ops.table import COMPLEX, FLOAT, Row
from gradtape._src.public import absent as _absent

_MOST_FAILURES = 8

CHECKS: dict[str, Callable[[Row], Iterator[str]]] = {
    "value": behaviour.values,
    "inferred": behaviour.inferred,
    "gradient": derivatives.gradient,
    "partial": derivatives.partial,
    "compiled": derivatives.compiled,
    "precision": derivatives.precision,
    "second_order": derivatives.second_order,
    "transpose": derivatives.transpose,
    "edges": derivatives.edges,
    "errors": behaviour.wrong_calls,
    "reads": behaviour.reads,
    "unchanged": behaviour.unchanged,
    "batching": batching.batching,
    "forward": forward.forward,
    "rows": forward.rows,
    "batched_gradient": forward.batched_gradient,
    "jvp": primitive.jvp,
    "linear": facts.linear,
    "pattern": facts.pattern,
    "simplify": facts.simplify,
    "programs": facts.programs,
    "by_rows": facts.by_rows,
    "in_place": facts.in_place,
    "strings": held.strings,
    "stored": held.stored,
    "xla": xla.lowered,
    "xla_types": xla.other_types,
}
"""The checks by name; each yields one line per failure."""

_OF_DERIVATIVES = (
    "gradient", "partial", "compiled", "precision", "second_order", "transpose", "reads", "forward", "rows",
    "batched_gradient", "jvp",
)  # fmt: skip
# The checks that differentiate a gradient, and those that do so with respect to its cotangent only.
_OF_SECOND_ORDER = ("compiled", "second_order", "rows")
_OF_TANGENTS = ("transpose", "forward")


class ContractError(AssertionError):
    """An op breaks the contract; the message has one line for each failure."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)


def check_op(op: Any, checks: Iterable[str] | None = None) -> None:
    """Raises ContractError if an op breaks the contract of its kind.

    Args:
      op: an op, or its row of the table.
      checks: names of `CHECKS`; by default all that apply to the row.
    """
    row = op if isinstance(op, Row) else op.row
    if not list(row.samples):
        raise ContractError(f"{row.name}: there are no samples to check it on; pass samples=[...].")
    failures: list[str] = []
    for name in checks_of(row) if checks is None else checks:
        for failure in CHECKS[name](row):
            failures.append(failure)
            if len(failures) == _MOST_FAILURES:
                raise ContractError("\n".join(failures))
    if failures:
        raise ContractError("\n".join(failures))


def checks_of(row: Row) -> list[str]:
    """The checks that apply to a row."""
    # A row may have no further derivative (igamma's with respect to its parameter): `gradient_samples=[]` declares that.
    skip = set() if row.differentiable and row.gradient_samples != [] else set(_OF_DERIVATIVES)
    if not row.edges:
        skip.add("edges")
    jvp = getattr(row.op, "jvp", None)
    if jvp is None:
        skip.add("jvp")
    if primitive.is_first_order(row):
        skip |= {*_OF_SECOND_ORDER, *(_OF_TANGENTS if jvp is None else ())}
    if not row.operands:
        skip |= {"inferred", "errors", "unchanged", "batching", "linear", "pattern"}
    if not row.dtypes & (FLOAT | COMPLEX):
        skip |= {"linear", "pattern"}
    if row.simplify is None:
        skip.add("simplify")
    if not (row.each_row or row.first or row.second or row.alias):
        skip.add("programs")
    if row.by_rows is None:
        skip.add("by_rows")
    if not row.in_place:
        skip.add("in_place")
    if not held.has_text(row):
        skip.add("strings")
    if not held.has_stored(row):
        skip.add("stored")
    if not row.xla or find_spec("jax") is None:
        skip |= {"xla", "xla_types"}
    return [name for name in CHECKS if name not in skip]


__all__ = [
    "CHECKS",
    "NUMERICAL",
    "TOLERANCES",
    "ContractError",
    "central_differences",
    "check_op",
    "checks_of",
]

__getattr__, __dir__ = _absent.of("testing")
