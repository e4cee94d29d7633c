"""`tape.memory()`: the bytes a tape keeps alive, by op and by line of the user's program."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradtape._src.base.source import Line
from gradtape._src.debug.graph import Recorded, Table, recorded, table
from gradtape._src.tensors import above


class Kept(NamedTuple):
    """What the records of one op, or of one line, keep in memory."""

    bytes: int
    values: int
    records: int


class Memory:
    """Bytes kept alive by a tape. Each buffer counts once, for the oldest record that keeps it.

    `total` is what the records keep; `variables` is memory that they share with variables, which live anyway, and
    is not part of it. `by_op` maps names of ops, and `by_line` lines of the program (None if unknown), to
    `Kept(bytes, values, records)`, the largest first. Memory that a user's gradient function holds by itself is not
    known and not counted.
    """

    def __init__(self, records: list[Recorded]) -> None:
        self.records = sum(not r.is_source for r in records)
        shared = {v.place for r in records if r.what == "variable" for v in r.results}
        seen: set[int] = set()
        self.variables = 0
        ops: dict[str, list[int]] = {}
        lines: dict[Line | None, list[int]] = {}
        for r in records:
            if r.is_source:
                continue
            nbytes = values = 0
            for v in (*r.operands, *r.results):
                if not v.kept or v.place in seen:
                    continue
                seen.add(v.place)
                if v.place in shared:
                    self.variables += v.size
                else:
                    nbytes += v.size
                    values += 1
            for counts in (ops.setdefault(r.what, [0, 0, 0]), lines.setdefault(r.line, [0, 0, 0])):
                counts[0] += nbytes
                counts[1] += values
                counts[2] += 1
        self.by_op = {k: Kept(*c) for k, c in sorted(ops.items(), key=lambda item: -item[1][0])}
        self.by_line = {k: Kept(*c) for k, c in sorted(lines.items(), key=lambda item: -item[1][0])}

    @property
    def total(self) -> int:
        """All bytes that the records keep."""
        return sum(k.bytes for k in self.by_op.values())

    def _head(self) -> str:
        shared = f", and shares {size(self.variables)} with variables" if self.variables else ""
        return f"The tape keeps {size(self.total)} in {self.records} records{shared}."

    def _hint(self) -> str:
        unknown = self.by_line and all(line is None for line in self.by_line)
        return "By line of the program: run under `with tf.debug.lines():`." if unknown else ""

    def _tables(self) -> list[Table]:
        ops = [(name, k) for name, k in self.by_op.items()]
        lines = [(line.shown, k) for line, k in self.by_line.items() if line is not None]
        return [self._table(what, rows) for what, rows in (("op", ops), ("line", lines)) if rows]

    def __str__(self) -> str:
        tables = ["\n".join(table(rows, right)) for rows, right, _ in self._tables()]
        return "\n".join(part for part in (self._head(), "\n\n".join(tables), self._hint()) if part)

    __repr__ = __str__
    _repr_html_ = above.shown

    def _table(self, what: str, entries: list[tuple[str, Kept]]) -> Table:
        whole = max(self.total, 1)
        rows = [["kept", "share", "values", "records", what]]
        rows += [
            [size(k.bytes), f"{k.bytes / whole * 100:.1f} %", str(k.values), str(k.records), name]
            for name, k in entries
        ]
        return rows, "rrrrl", []


def size(count: int) -> str:
    """A number of bytes in a suitable unit."""
    for unit, factor in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} B"


def memory(tape: Any) -> Memory:
    """What `tape` keeps alive now."""
    return Memory(recorded(tape))
