"""Why is it None? The way from a source to a target, or the place where it broke."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradtape import _core
from gradtape.debug.lines import Made, Record, record
from gradtape.source import Line


class Explanation(NamedTuple):
    """What stands between a target and a source."""

    cause: str
    text: str
    fix: str
    line: Line | None = None

    @property
    def connected(self) -> bool:
        return self.cause == "connected"

    def __str__(self) -> str:
        where = f"\n  at {self.line}: {self.line.text}" if self.line is not None else ""
        fix = f"\n  Fix: {self.fix}" if self.fix else ""
        return f"{self.text}{where}{fix}"


_SWITCH = "To see the line, run it again under `with tf.debug.lines():` or with GRADTAPE_LINES=1 in the environment."


def explain(tape: Any, target: Any, source: Any) -> Explanation:
    """Why the gradient of `target` by `source` on `tape` is None, or that it is not."""
    name = _name(source)
    if tape._state == "used" and not tape._persistent and record() is None:
        return Explanation(
            "used up",
            "The tape was used by gradient and has let go of its records.",
            "explain first, or make the tape persistent, or run under `with tf.debug.lines():`, where tapes keep them.",
        )
    if _connected(tape, target, source):
        return Explanation("connected", f"The target depends on {name}: there is a gradient.", "")
    for what, x in (("target", target), ("source", source)):
        if not (x.dtype.is_floating or x.dtype.is_complex):
            return Explanation(
                "integer",
                f"The {what}, {_name(x)}, is of type {x.dtype.name}: only floating numbers have derivatives.",
                "make it floating: tf.cast(x, tf.float32), or tf.constant(3.0) instead of tf.constant(3).",
            )
    now = record()
    unwatched = _unwatched(tape, source, now)
    if now is None:
        if unwatched is not None:
            return unwatched
        return Explanation(
            "unknown",
            f"No recorded op leads from {name} to the target: an op without a gradient, a value that went through "
            "NumPy, an assignment, or an op outside the tape's context is in the way, or there is no way at all.",
            _SWITCH,
        )
    return _from_record(tape, target, source, now, unwatched)


def _connected(tape: Any, target: Any, source: Any) -> bool:
    with tape._kept(release=False):
        return tape._backward([target], [None], [tape._source(source)])[0] is not None


def _name(x: Any) -> str:
    if isinstance(x, _core.Variable):
        return f"the variable {x.name!r}"
    return f"a tensor of shape {tuple(x.shape)}"


def _unwatched(tape: Any, source: Any, now: Record | None) -> Explanation | None:
    """The tape never heard of the source."""
    if tape._tracks(tape._source(source)):
        return None
    if isinstance(source, _core.Variable):
        if not source.trainable:
            return Explanation(
                "not trainable",
                f"{_name(source).capitalize()} is not trainable, so the tape does not watch it by itself.",
                "tape.watch(variable) inside the context, or make it with trainable=True.",
            )
        if not tape._watch_accessed:
            return Explanation(
                "never watched",
                "The tape was made with watch_accessed_variables=False, and the variable was not watched.",
                "tape.watch(variable) as the first line of the context.",
            )
        return None
    return Explanation(
        "never watched",
        f"The source, {_name(source)}, was never watched: a tape follows tensors only if it is told to.",
        "tape.watch(x) inside the context, before x is used; or make it a tf.Variable.",
    )


# ---- with lines -----------------------------------------------------------------------------------


def _from_record(
    tape: Any, target: Any, source: Any, now: Record, unwatched: Explanation | None
) -> Explanation:
    path = _path(target, source, now)
    if path is None:
        return _no_way(tape, target, source, now)
    # From the source on: the first op whose result the tape does not know is where it broke.
    for made, tensor in reversed(path):
        if made.what == "read" or tape._tracks(tensor):
            continue
        if id(tape) not in made.recording:
            return Explanation(
                "outside the context",
                f"{made.what} ran while the tape was not recording, so it is not on the tape.",
                "move it inside `with tf.GradientTape() as tape:` (for second derivatives the inner gradient call, too).",
                made.line,
            )
        if unwatched is not None:
            return unwatched._replace(line=made.line)
        if made.what == "stop_gradient":
            return Explanation(
                "stop_gradient",
                "tf.stop_gradient makes its result a constant.",
                "take it out, if the gradient is wanted.",
                made.line,
            )
        if not (tensor.dtype.is_floating or tensor.dtype.is_complex):
            return Explanation(
                "no gradient",
                f"{made.what} gives {tensor.dtype.name}: integers and booleans have no derivative.",
                _instead(made.what),
                made.line,
            )
        if not any(x.dtype.is_floating or x.dtype.is_complex for x in made.operands):
            return Explanation(
                "no gradient",
                f"{made.what} is given integers, which have no derivative.",
                "compute with floating numbers.",
                made.line,
            )
        return Explanation("no gradient", f"{made.what} has no gradient.", _instead(made.what), made.line)
    return unwatched or Explanation(
        "no gradient",
        "Every op on the way is on the tape; a gradient function of its own returned None.",
        "look at the custom_gradient, or the op's operand without a gradient.",
        path[0][0].line,
    )


def _instead(op: str) -> str:
    return {
        "argmax": "tf.reduce_max gives the largest value itself; softmax is a smooth argmax.",
        "argmin": "tf.reduce_min gives the smallest value itself.",
        "round": "tf.grad_pass_through(tf.round)(x) passes the gradient straight through.",
        "floor": "tf.grad_pass_through(tf.floor)(x) passes the gradient straight through.",
        "cast": "cast to a floating type, or do not cast before the loss.",
    }.get(op, "use a smooth function in its place, or tf.custom_gradient to say what its gradient is.")


def _path(target: Any, source: Any, now: Record) -> list[tuple[Made, Any]] | None:
    """The ops from the target back to the source, recorded by a tape or not: the shortest way."""
    seen = {id(target): None}
    level: list[tuple[Any, tuple]] = [(target, ())]
    while level:
        following: list[tuple[Any, tuple]] = []
        for tensor, above in level:
            if tensor is source:
                return list(above)
            made = now.made.get(id(tensor))
            if made is None:
                continue
            here = (*above, (made, tensor))
            for x in made.operands:
                if x is source:
                    return list(here)
                if id(x) not in seen:
                    seen[id(x)] = None
                    following.append((x, here))
        level = following
    return None


def _no_way(tape: Any, target: Any, source: Any, now: Record) -> Explanation:
    """No op leads from the source to the target: values may have taken a way around."""
    for variable, tensor, line in reversed(now.assigned):
        if _path(target, variable, now) is not None and _path(tensor, source, now) is not None:
            return Explanation(
                "assigned",
                f"The value went through {_name(variable)} by an assignment, which ends its history.",
                "compute with the value itself, or use tf.GradientTape(track_assign=True).",
                line,
            )
    for tensor, line in now.left:
        if tensor is source or _path(tensor, source, now) is not None:
            return Explanation(
                "left for NumPy",
                "Values that depend on the source went to NumPy (numpy(), float(), np.*), where no tape can follow.",
                "compute with tf.* ops between the source and the target.",
                line,
            )
    made = now.made.get(id(target))
    return Explanation(
        "independent",
        "The target does not depend on the source: no op between them.",
        'unconnected_gradients="zero", if zeros are what is meant.',
        made.line if made is not None else None,
    )
