"""The recorded graph of a tape as plain Python: one `Recorded` per node, with the values it keeps and its line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gradtape import _core
from gradtape._src.base.source import Line
from gradtape._src.debug.lines import lines_of_records


class Held(NamedTuple):
    """A value of a record: its type and shape, and the `place` and `size` of its buffer while it is kept."""

    tensor: Any
    place: int
    size: int

    @property
    def kept(self) -> bool:
        """Whether its elements are still in memory."""
        return self.place != 0

    @property
    def kind(self) -> str:
        """Type and shape, as in `float32[3,4]`."""
        return f"{self.tensor.dtype.name}[{','.join(map(str, self.tensor.shape))}]"


class Recorded(NamedTuple):
    """A recorded call, a variable, or a watched tensor."""

    number: int
    what: str  # the name of an op, "variable", "watched" or "custom gradient"
    name: str  # of a variable
    origins: tuple[tuple[int, int], ...]  # of each operand: a record or 0, and which of its results
    operands: tuple[Held, ...]
    results: tuple[Held, ...]
    owner: Any  # a variable, a gradient function, or None
    line: Line | None

    @property
    def is_source(self) -> bool:
        """Whether it is not the result of an op: a variable, or a watched tensor."""
        return self.what in ("variable", "watched")


def recorded(tape: Any) -> list[Recorded]:
    """The records on the tape, oldest first."""
    rows = tape._records()
    lines = lines_of_records()
    kinds = _kinds_of_leaves(rows)
    out = []
    for number, op, origins, operands, results, owner in rows:
        name = ""
        if op is not None:
            what = op.op_name
        elif isinstance(owner, _core.Variable):
            what, name = "variable", owner.name.removesuffix(":0")
        elif owner is not None:
            what = _gradient_function(owner)
        else:
            what = "watched"
            if number in kinds:
                results = (kinds[number],)
        out.append(
            Recorded(
                number, what, name, origins, tuple(Held(*v) for v in operands), tuple(Held(*v) for v in results),
                owner, lines.get(number),
            )
        )  # fmt: skip
    return out


def _kinds_of_leaves(rows: list) -> dict[int, tuple]:
    """The types and shapes of watched tensors, from the records that use them: leaves themselves have no shape."""
    kinds: dict[int, tuple] = {}
    for _, _, origins, operands, _, _ in rows:
        for (number, _), value in zip(origins, operands, strict=True):
            if number and (number not in kinds or not kinds[number][1]):
                kinds[number] = value
    return kinds


def _gradient_function(closure: Any) -> str:
    """The name of a gradient function: a compiled function is one record, whose gradient is a function of its graph."""
    return (
        "function"
        if getattr(closure, "__module__", "").startswith(
            ("gradtape._src.graph", "gradtape._src.control", "gradtape._src.batching")
        )
        else "custom gradient"
    )


def unseen() -> _core.Scope:
    """A scope in which neither tapes record nor watchers see the ops that run."""
    return _core.Scope(recording=False, watcher=None)


def gradients(tape: Any, targets: list, sources: list) -> list:
    """Gradients as tensors, without using up the tape; None where there is none."""
    with unseen(), tape._keeping_records(release=False):
        grads = tape._backward(targets, [None] * len(targets), sources)
        # The gradient is zero for rows of a table that were not gathered.
        return [g if g is None or isinstance(g, _core.Tensor) else g._dense() for g in grads]


def are_known(tensors: Iterable[Any]) -> bool:
    """Whether tensors have values: not while a function is traced."""
    return all(x is None or getattr(x, "_symbol", None) is None for x in tensors)


def numbers(value: Held) -> np.ndarray | None:
    """The elements of a kept value of real numbers; None if they are released or not real."""
    x = value.tensor
    if not value.kept or not (x.dtype.is_floating or x.dtype.is_integer):
        return None
    return elements(x)


def elements(x: Any) -> np.ndarray:
    """Elements as a NumPy array, without notifying watchers that values leave the tape."""
    with unseen():
        values = np.asarray(x.numpy())
    return (
        values if values.dtype.kind in "fciub" and values.dtype.itemsize != 2 else values.astype(np.float32)
    )


def uses(records: list[Recorded]) -> Iterator[tuple[int, int, int, int]]:
    """Edges: (record, which result, record that uses it, as which operand)."""
    for r in records:
        for i, (number, output) in enumerate(r.origins):
            if number:
                yield number, output, r.number, i


# Rows, the first of them the header; the alignment of the columns; and the numbers of rows, from 1, that show trouble.
Table = tuple[list[list[str]], str, list[int]]


def table(rows: list[list[str]], right: str) -> list[str]:
    """The lines of a table: the first row is the header; `right[i] == "r"` aligns column i to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            c.rjust(w) if side == "r" else c.ljust(w) for c, w, side in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]
