"""The result of `tape.explain`, and the functions that find its parts."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradtape import _core
from gradtape._src.base.source import Line
from gradtape._src.debug.graph import Recorded, gradients
from gradtape._src.tensors import above


class Explanation(NamedTuple):
    """Why there is no gradient between a target and a source: a `cause` in a word or two, `text`, `fix`, and the
    `line`."""

    cause: str
    text: str
    fix: str
    line: Line | None = None

    @property
    def connected(self) -> bool:
        """Whether there is a gradient after all."""
        return self.cause == "connected"

    def __str__(self) -> str:
        where = f"\n  at {self.line.shown}" if self.line is not None else ""
        fix = f"\n  Fix: {self.fix}" if self.fix else ""
        return f"{self.text}{where}{fix}"

    def _repr_html_(self) -> str | None:
        return above.shown(self)


SWITCH = "to see the line, run it and ask under `with tf.debug.lines():`, or with GRADTAPE_LINES=1 in the environment."


def connected_by(tape: Any, target: Any, source: Any) -> bool:
    return gradients(tape, [target], [tape._source(source)])[0] is not None


def differentiable(x: Any) -> bool:
    return x.dtype.is_floating or x.dtype.is_complex


def name_of(x: Any) -> str:
    if isinstance(x, _core.Tensor):
        return f"a tensor of shape {tuple(x.shape)}"
    # Keras: "dense/kernel", where the name alone is "kernel".
    return f"the variable {getattr(x, 'path', None) or getattr(x, 'name', None)!r}"


def ancestors(records: dict[int, Recorded], last: int) -> list[int]:
    """The numbers of all records that record `last` depends on, including its own; the nearest first."""
    numbers = dict.fromkeys([last] if last in records else [])
    todo = list(numbers)
    for number in todo:  # the list grows in the loop
        for n, _ in records[number].origins:
            if n in records and n not in numbers:
                numbers[n] = None
                todo.append(n)
    return list(numbers)


def depends_on(records: dict[int, Recorded], before: list[int]) -> str:
    """A sentence that says what a target depends on."""
    sources = [records[n] for n in before if records[n].is_source]
    names = list(dict.fromkeys("a watched tensor" if r.owner is None else name_of(r.owner) for r in sources))
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f" The target depends on {', '.join(names[:4])}{more}." if names else ""


def own_rule(r: Recorded, name: str) -> Explanation:
    """A record whose gradient is a function: a user's, or that of a compiled function."""
    code = getattr(getattr(r.owner, "grad_fn", None), "__code__", None)
    if code is None:
        text = f"Inside a tf.function that ran on the tape, nothing with a gradient leads from {name} to the target."
        return Explanation(
            "no gradient", text, f"look there for an integer cast, stop_gradient, round, argmax; {SWITCH}"
        )
    return Explanation(
        "custom gradient",
        f"The gradient function of a tf.custom_gradient, {code.co_name}, returned None for {name}.",
        "return a gradient for each argument of the function.",
        Line(code.co_filename, code.co_firstlineno),
    )
