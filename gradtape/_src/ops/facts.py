"""What a row declares about its op besides values and rules: the facts that graph passes rely on.

The kind of an op implies most of them; a row adds what its kind does not imply. Without any, an op counts as
nonlinear, dense and unable to reuse its operands' memory. The contract tests every fact on the row's samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

PATTERNS = ("aligned", "moves", "adds", "product", "nothing", "")


class Facts(NamedTuple):
    """The facts, as graph passes read them. Operands are positions in the signature, where a list of tensors is one."""

    linear: tuple[tuple[int, ...], ...] = ()
    """Sets of operands in which the op is jointly linear, over the real numbers: multiplying all operands of a set
    by a number multiplies the result by it. `"x+y"` (add) is one set, `"x y"` (mul) are two. Passes transpose linear
    ops, so an operand of the set that has no rule must be zero."""

    pattern: str = ""
    """Which elements of the operands an element of a result depends on:
    "aligned"  those at its own place, after broadcasting
    "moves"    at most one, whose value it has; without one it is zero
    "adds"     those that are summed in it, with a factor that all elements of an operand share; each
               element is part of at most one result
    "product"  a row of the first matrix and a column of the second; the first two attributes, if there
               are any, say whether the matrices are transposed
    "nothing"  none: it is zero
    ""         all of them"""

    simplify: Callable[[Any, list, tuple], Any] | None = None
    """`simplify(builder, operands, attributes)` gives a simpler value, or None (see `ops/rewriting.py`)."""

    fuses: bool = False
    """The op has a loop over a tile: it can be part of a cluster."""

    epilogue: str = ""
    """The native reduction that puts the op together from parts: it can end a cluster of element-wise ops."""

    each_row: str = ""
    """The native reduction of a row: over rows, the op can be in the middle of a cluster."""

    first: str = ""
    second: tuple[str, ...] = ()
    """Names of the op in kernels that run two element-wise ops in one loop (core/kernels/pairs.cpp): as the
    first, and as the second whose left or right operand is the result of the first."""

    in_place: tuple[int, ...] = ()
    """Operands whose memory the result may reuse, if it has their shape and type."""

    alias: bool = False
    """The result is the operand in another shape, and may be in the same memory."""

    by_rows: Callable[[list[tuple[int, ...]], tuple], tuple[bool, ...] | None] | None = None
    """`by_rows(shapes of the operands, attributes)`: for each operand whether row i of a result, along the first axis, needs
    row i of it only (True) or all of it (False); None if rows of results need other rows. The attributes say nothing
    about the number of rows."""

    xla: str = ""
    """The function that lowers the op to XLA (see `engines/xla/lowering.py`); without one the op runs on the host."""


def facts_of(
    kind: str,
    operands: Sequence[str],
    *,
    linear: str | None = None,
    pattern: str | None = None,
    simplify: Callable | None = None,
    fuses: bool = False,
    epilogue: str = "",
    each_row: str = "",
    first: str = "",
    second: str = "",
    in_place: str = "",
    alias: bool = False,
    by_rows: Callable | None = None,
    xla: str = "",
) -> Facts:
    """The facts of an op of this kind: those its row declares, and those the kind implies."""
    places = range(len(operands))

    def sets(text: str) -> tuple[tuple[int, ...], ...]:
        unknown = [name for name in text.replace("+", " ").split() if name not in operands]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no operand; expected one of {', '.join(operands)}")
        return tuple(tuple(operands.index(name) for name in word.split("+")) for word in text.split())

    if linear is not None:
        groups = sets(linear)
    elif kind == "movement":
        groups = (tuple(places),)
    else:
        groups = tuple((k,) for k in places) if kind == "contraction" else ()
    if pattern is None:
        pattern = {"elementwise": "aligned", "movement": "moves"}.get(kind, "")
    if pattern not in PATTERNS:
        raise ValueError(f"{pattern!r} is no pattern; expected one of {', '.join(map(repr, PATTERNS))}")
    if kind == "elementwise":
        fuses, over, by_rows = True, tuple(places), _rows_by_broadcasting
    else:
        over = tuple(k for (k,) in sets(in_place))
    return Facts(
        groups, pattern, simplify, fuses, epilogue, each_row or epilogue, first, tuple(second.split()), over, alias,
        by_rows, xla,
    )  # fmt: skip


def _rows_by_broadcasting(shapes: list[tuple[int, ...]], attrs: tuple) -> tuple[bool, ...] | None:
    rank = max(map(len, shapes))
    rows = max((s[0] for s in shapes if len(s) == rank), default=1) if rank else 1
    return tuple(len(s) == rank and s[0] == rows for s in shapes) if rows > 1 else None
