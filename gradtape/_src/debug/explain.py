"""Why is it None? The path from a source to a target, or the op that cut it.

An explanation always contains what the tape knows, and what the source code of its `with` block shows
(`written.py`). The op and the line at fault are certain only with a record of everything that ran, which
`debug.lines()` switches on: such ops are not on the tape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradtape import _core
from gradtape._src.debug import written
from gradtape._src.debug.explanation import (
    SWITCH,
    Explanation,
    ancestors,
    connected_by,
    depends_on,
    differentiable,
    name_of,
    own_rule,
)
from gradtape._src.debug.graph import Recorded, recorded, uses
from gradtape._src.debug.lines import record
from gradtape._src.debug.search import Search

_WATCH = (
    "tape.watch(x) inside the context, before x is used; or make it a tf.Variable, and change that by "
    "v.assign_sub(...): `v = v - ...` makes a tensor of it."
)


def explain(tape: Any, target: Any, source: Any) -> Explanation:
    """Why the gradient of `target` with respect to `source` on `tape` is None; or that there is one.

    `tape.explain(target, source)` is the same.
    """
    name = name_of(source)
    target, source = tape._end(target, "target"), tape._end(source, "source")
    lines = record()
    for what, x in (("target", target), ("source", source)):
        if not differentiable(x):
            origin = None if lines is None else lines.origins.get(id(x))
            return Explanation(
                "integer",
                f"The {what}, {name_of(x)}, is of type {x.dtype.name}: only floating numbers have derivatives.",
                "make it floating: tf.cast(x, tf.float32), or tf.constant(3.0) instead of tf.constant(3).",
                origin.line if origin else None,
            )
    if tape._stage == "used" and not tape._persistent and lines is None:
        return _after_use(tape, target, source, name)
    if connected_by(tape, target, source):
        return Explanation("connected", f"The target depends on {name}: there is a gradient.", "")
    unwatched = _unwatched(tape, source, name)
    if lines is None:
        return unwatched or written.explanation(tape, _from_tape(tape, target, source, name), target)
    return Search(tape, target, source, name, lines).explanation(unwatched)


def _never_watched(name: str) -> Explanation:
    text = f"The source, {name}, was never watched: a tape follows tensors only if it is told to."
    return Explanation("never watched", text, _WATCH)


def _unwatched(tape: Any, source: Any, name: str) -> Explanation | None:
    """For a source that the tape has not recorded at all."""
    if tape._tracks(tape._source(source)):
        return None
    if not isinstance(source, _core.Variable):
        return _never_watched(name)
    if not source.trainable:
        return Explanation(
            "not trainable",
            f"T{name[1:]} is not trainable, so the tape does not watch it by itself.",
            "tape.watch(variable) inside the context, or make it with trainable=True.",
        )
    if not tape._watch_accessed:
        return Explanation(
            "never watched",
            f"The tape was made with watch_accessed_variables=False, and {name} was not watched.",
            "tape.watch(variable) as the first line of the context.",
        )
    return None


# ---- what the tape knows ------------------------------------------------------------------------


def _after_use(tape: Any, target: Any, source: Any, name: str) -> Explanation:
    """After the records are released: whether the source was watched is still known."""
    variable = isinstance(source, _core.Variable)
    if variable and not any(v is source for v in tape._variables()):
        text = f"The tape did not see {name}: no op inside its context read it."
        said = Explanation("never read", text, "use it inside of the context.")
        return _unwatched(tape, source, name) or written.explanation(tape, said, target)
    if not variable and not _core.record_number(source):
        return _never_watched(name)
    said = Explanation(
        "used up",
        "The tape was used by gradient and has let go of its records.",
        "explain first, or make the tape persistent, or run under `with tf.debug.lines():`, where tapes keep them.",
    )
    return written.explanation(tape, said, target)


def _from_tape(tape: Any, target: Any, source: Any, name: str) -> Explanation:
    """Without lines: how far the records go from the source, and what the target depends on."""
    records = recorded(tape)
    by_number = {r.number: r for r in records}
    start, last = _number(source, records), _core.record_number(target)
    before = ancestors(by_number, last)
    if start in before:
        own = [by_number[n] for n in before if by_number[n].owner is not None and not by_number[n].is_source]
        if own:
            return own_rule(own[-1], name)
    if not tape._tracks(source):
        text = f"The tape did not see {name}: no op inside its context read it."
    elif ends := _ends(records, start):
        shown = " and ".join(f"{r.what} ({', '.join(v.kind for v in r.results)})" for r in ends[:3])
        text = f"From {name} the tape has recorded ops up to {shown}, and none from there to the target."
    else:
        text = f"The tape holds no op with a gradient that computes with {name}."
    if not tape._tracks(target):
        text += " The target is not on the tape: it is a constant to it."
    else:
        text += depends_on(by_number, before)
    if not tape._tracks(source):
        return Explanation("never read", text, f"use it there, and not before or in stop_recording; {SWITCH}")
    fix = "look there for numpy(), float(), an integer cast, assign, round, argmax, or code outside the context; "
    return Explanation("unknown", text, fix + SWITCH)


def _number(x: Any, records: list[Recorded]) -> int:
    if isinstance(x, _core.Variable):
        return next((r.number for r in records if r.owner is x), 0)
    return _core.record_number(x)


def _ends(records: list[Recorded], start: int) -> list[Recorded]:
    """The records that depend on `start` and are not used by any other record."""
    reached, used = {start}, set()
    for before, _, after, _ in uses(records):  # oldest first
        if before in reached:
            reached.add(after)
            used.add(before)
    return [r for r in records if r.number in reached and r.number not in used and r.number != start]


# ---- for optimizers -------------------------------------------------------------------------------


def missing(variables: Sequence[Any]) -> str:
    """Why these variables have no gradient, for the messages of an optimizer, which has no tape.

    With lines on, the last tape that computed a gradient explains it.
    """
    lines = record()
    if lines is None or lines.asked is None:
        return f"Hint: tape.explain(loss, variable) says why; {SWITCH}"
    tape, target = lines.asked
    return "".join(f"\nFor {name_of(v)}: {explain(tape, target, v)}" for v in variables[:3])
