"""The steps of a compiled function, and the time that each takes: `f.pretty()` and `f.profile()`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from gradtape._src.base.dtypes import BY_CODE
from gradtape._src.base.source import Line
from gradtape._src.debug.graph import Table, table
from gradtape._src.debug.plots import Plot, plot_profile
from gradtape._src.engines.native.lower import Step, lowered
from gradtape._src.graph.ir import Value
from gradtape._src.tensors import above
from gradtape._src.tensors.conversion import read


class Timed(NamedTuple):
    """One step of a program."""

    seconds: float
    what: str
    lines: tuple[Line, ...]


class Profile:
    """The times of a program's steps; printed with the longest first."""

    def __init__(self, name: str, steps: list[Timed]) -> None:
        self.name = name
        self.steps = steps

    @property
    def seconds(self) -> float:
        """The time of one run of the whole program."""
        return sum(s.seconds for s in self.steps)

    def by_line(self) -> dict[Line, float]:
        """Seconds for each line of the user's program; a step made of several lines counts for each in part."""
        times: dict[Line, float] = {}
        for s in self.steps:
            for line in s.lines:
                times[line] = times.get(line, 0.0) + s.seconds / len(s.lines)
        return dict(sorted(times.items(), key=lambda item: -item[1]))

    def _tables(self, most: int | None = None) -> list[Table]:
        """The steps, of which only the `most` longest have rows of their own, and the lines."""
        whole = max(self.seconds, 1e-30)

        def row(seconds: float, *words: str) -> list[str]:
            return [f"{seconds * 1e6:.1f} us", f"{seconds / whole * 100:.1f} %", *words]

        ranked = sorted(self.steps, key=lambda s: -s.seconds)
        steps = [row(s.seconds, s.what, ", ".join(map(str, s.lines))) for s in ranked[:most]]
        if others := ranked[len(steps) :]:
            steps.append(row(sum(s.seconds for s in others), f"{len(others)} others", ""))
        lines = [row(t, line.shown) for line, t in self.by_line().items()]
        return [
            ([["time", "share", "step", "line"], *steps], "rrll", []),
            ([["time", "share", "by line"], *lines], "rrl", []),
        ]

    def plot(self, file: str | Path | None = None) -> Plot | str:
        """A picture of the longest steps.

        Returns:
          The picture, which a notebook shows; or the path of `file`, if it is written there.
        """
        return plot_profile(self, file)

    def __str__(self) -> str:
        tables = ["\n".join(table(rows, right)) for rows, right, _ in self._tables()]
        return f"{self.name}: {self.seconds * 1e6:.1f} us in {len(self.steps)} steps\n" + "\n\n".join(tables)

    __repr__ = __str__
    _repr_html_ = above.shown


def _steps(concrete: Any) -> tuple[Any, list[Step], dict[Value, Value]]:
    function = concrete.graph_function
    graph, steps, aliases, *_ = lowered(function.graph, function.updates)
    return graph, steps, aliases


def _lines(step: Step) -> tuple[Line, ...]:
    return tuple(dict.fromkeys(n.line for n in step.nodes if n.line is not None))


def _kind(v: Value) -> str:
    return f"{BY_CODE[v.dtype].name}{list(v.shape)}"


def pretty(concrete: Any) -> str:
    """The steps of a program: what each computes, its operands, and the lines it comes from."""
    graph, steps, aliases = _steps(concrete)
    names: dict[Value, str] = {}

    def name(v: Value) -> str:
        while v in aliases:
            v = aliases[v]
        if v.constant is not None:
            return f"{v.constant.numpy()!s}" if v.size == 1 else f"constant {_kind(v)}"
        return names.setdefault(v, f"%{len(names)}")

    lines = [f"{concrete.name}({', '.join(f'{name(v)}: {_kind(v)}' for v in graph.inputs)})"]
    for step in steps:
        outs = ", ".join(f"{name(r)}: {_kind(r)}" for r in step.results)
        places = ", ".join(map(str, _lines(step)))
        if len(step.nodes) == 1:
            n = step.nodes[0]
            given = ", ".join(map(name, step.operands))
            attrs = "".join(f", {a}" for a in n.attrs)
            lines.append(f"  {outs} = {n.name}({given}{attrs})  # {places}")
            continue
        lines.append(f"  {outs} = one loop of {len(step.nodes)} operations  # {places}")
        for n in step.nodes:
            lines.append(f"      {name(n.results[0])} = {n.name}({', '.join(map(name, n.operands))})")
    lines.append(f"  return {', '.join(map(name, graph.outputs))}")
    return "\n".join(lines)


def profile(concrete: Any, operands: list, repeats: int) -> Profile:
    """Times the steps of a program on these operands. Variables keep their values."""
    _, steps, _ = _steps(concrete)
    function = concrete.graph_function
    inputs = [read(x) for x in operands]
    times = function.program.profile(inputs, repeats)
    return Profile(
        concrete.name,
        [Timed(t, what, _lines(step)) for (what, t), step in zip(times, steps, strict=True)],
    )
