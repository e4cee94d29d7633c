"""With `debug.lines()` on: finds the op that cut the path from a source to a target."""

from __future__ import annotations

from typing import Any

from gradtape import _core
from gradtape._src.debug.explanation import (
    Explanation,
    ancestors,
    connected_by,
    depends_on,
    differentiable,
    name_of,
    own_rule,
)
from gradtape._src.debug.graph import recorded
from gradtape._src.debug.lines import Origin, Record

_INSTEAD = {
    "argmax": "tf.reduce_max gives the largest value itself; tf.nn.softmax is a smooth argmax.",
    "argmin": "tf.reduce_min gives the smallest value itself.",
    "round": "tf.grad_pass_through(tf.round)(x) passes the gradient straight through.",
    "floor": "tf.grad_pass_through(tf.floor)(x) passes the gradient straight through.",
    "ceil": "tf.grad_pass_through(tf.math.ceil)(x) passes the gradient straight through.",
    "cast": "cast to a floating type, or do not cast before the loss.",
} | dict.fromkeys(
    ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal"),
    "tf.sigmoid(k * (x - y)) is a smooth comparison; for a loss, take a cross-entropy instead of the accuracy.",
)


class Search:
    """Searches the record of everything that ran for the op that cut the path."""

    def __init__(self, tape: Any, target: Any, source: Any, name: str, record: Record) -> None:
        self.tape, self.target, self.source, self.name, self.record = tape, target, source, name, record

    def explanation(self, unwatched: Explanation | None) -> Explanation:
        """The explanation, from what ran."""
        path = self.path(self.target, self.source)
        if path is None:
            return self.detour() or self.apart()
        # From the source on: the first op whose result is not on the tape cut the path.
        for origin, tensor in reversed(path):
            if origin.what == "read" or self.tape._tracks(tensor):
                continue
            return self.broken_at(origin, tensor, unwatched)
        return self.closed(path) if unwatched is None else unwatched._replace(line=path[-1][0].line)

    def path(self, target: Any, source: Any) -> list[tuple[Origin, Any]] | None:
        """The shortest path of ops from the target back to the source, recorded by a tape or not."""
        target, source = self.record.same(target), self.record.same(source)
        seen = {id(target)}
        level: list[tuple[Any, tuple]] = [(target, ())]
        while level:
            following: list[tuple[Any, tuple]] = []
            for tensor, above in level:
                if tensor is source:
                    return list(_unrolled(above))
                origin = self.record.origins.get(id(tensor))
                if origin is None:
                    continue
                step = ((origin, tensor), above)
                for x in origin.operands:
                    if id(x) not in seen:
                        seen.add(id(x))
                        following.append((x, step))
            level = following
        return None

    def broken_at(self, origin: Origin, tensor: Any, unwatched: Explanation | None) -> Explanation:
        """The explanation for the op that cut the path."""
        if id(self.tape) not in origin.recording:
            return Explanation(
                "outside the context",
                f"{origin.what} ran while the tape was not recording, so it is not on the tape.",
                "move it inside `with tf.GradientTape() as tape:`, out of stop_recording; for second derivatives "
                "the inner tape.gradient must be called inside the outer context.",
                origin.line,
            )
        if unwatched is not None:
            return self.overwritten() or unwatched._replace(line=origin.line)
        if origin.what == "stop_gradient":
            return Explanation(
                "stop_gradient",
                "tf.stop_gradient makes its result a constant.",
                "take it out, if the gradient is wanted.",
                origin.line,
            )
        instead = _INSTEAD.get(
            origin.what,
            "use a smooth function in its place, or tf.custom_gradient to say what its gradient is.",
        )
        if not differentiable(tensor):
            text = f"{origin.what} gives {tensor.dtype.name}: integers and booleans have no derivative."
            return Explanation("no gradient", text, instead, origin.line)
        if not any(differentiable(x) for x in origin.operands):
            text = f"{origin.what} is given integers, which have no derivative."
            return Explanation("no gradient", text, "compute with floating numbers.", origin.line)
        if origin.op.row is not None and any(rule is not None for _, rule in origin.op.row.rules):
            return Explanation(
                "watched late",
                f"{origin.what} ran before the tape watched {self.name}.",
                "tape.watch(x) as the first line of the context.",
                origin.line,
            )
        return Explanation("no gradient", f"{origin.what} has no gradient.", instead, origin.line)

    def overwritten(self) -> Explanation | None:
        """For a source that is a tensor computed from a variable, as in `v = v - 0.1 * g`."""
        tensor, last = self.source, self.record.origins.get(id(self.source))
        origin = last
        while origin is not None and origin.what in ("add", "sub", "mul", "div"):
            tensor = next((x for x in origin.operands if x.shape == tensor.shape), None)
            origin = None if tensor is None else self.record.origins.get(id(tensor))
        if last is None or origin is None or origin.what != "read":
            return None
        return Explanation(
            "overwritten",
            f"The source is no variable but a tensor, the result of {last.what}, made of {name_of(origin.operands[0])}; "
            "a tape follows variables, and those tensors that it is told to watch.",
            "change the variable in place: v.assign(...), v.assign_add(...), v.assign_sub(...).",
            last.line,
        )

    def closed(self, path: list[tuple[Origin, Any]]) -> Explanation:
        """For a path whose ops are all on the tape: the gradient rule of one of them returned None."""
        calls = [step for step in path if step[0].what != "read"]
        origin, tensor = calls[-1]
        for above, (_, operand) in zip(calls, calls[1:], strict=False):
            if not connected_by(self.tape, self.target, operand):
                origin, tensor = above
                break
        number = _core.record_number(tensor)
        rule = next((r for r in recorded(self.tape) if r.number == number), None)
        if rule is not None and rule.owner is not None:
            return own_rule(rule, self.name)
        text = f"The gradient of {origin.what} gives None for the operand that depends on {self.name}."
        return Explanation("no gradient", text, "tf.custom_gradient can say what it is.", origin.line)

    def detour(self) -> Explanation | None:
        """For a path without ops: the value may have gone through a variable or NumPy."""
        for variable, tensor, line in reversed(self.record.assigned):
            if self.path(self.target, variable) is not None and self.path(tensor, self.source) is not None:
                return Explanation(
                    "assigned",
                    f"The value went through {name_of(variable)} by an assignment, which ends its history.",
                    "compute with the value itself, or use tf.GradientTape(track_assign=True).",
                    line,
                )
        for tensor, line in self.record.left:
            if self.path(tensor, self.source) is not None:
                # A target with a history of its own may have nothing to do with the value that was printed.
                sure = not self.tape._tracks(self.target)
                return Explanation(
                    "left for NumPy",
                    f"Values that depend on {self.name} went to NumPy (numpy(), float(), np.*), where no tape can follow."
                    + (
                        ""
                        if sure
                        else " No op leads to the target; if it was computed from them, this is why."
                    ),
                    "compute with tf.* ops between the source and the target.",
                    line,
                )
        return None

    def apart(self) -> Explanation:
        """For a target that does not depend on the source at all."""
        target_origin = self.record.origins.get(id(self.target))
        line = target_origin.line if target_origin is not None else None
        origin = self.record.origins.get(id(self.source))
        if origin is not None and any(self.path(self.target, x) is not None for x in origin.operands):
            return Explanation(
                "independent",
                f"The target was not computed from {self.name}, the result of {origin.what}, but from what that is made of.",
                "use the new tensor in the computation, or ask for the gradient with respect to the original.",
                origin.line,
            )
        if not self.tape._tracks(self.target):
            return Explanation(
                "constant",
                f"The target is a constant: nothing that it was made of depends on {self.name} or is watched.",
                "compute it from the source with tf.* ops, inside the context.",
                line,
            )
        by_number = {r.number: r for r in recorded(self.tape)}
        return Explanation(
            "independent",
            f"The target does not depend on {self.name}: no op between them."
            + depends_on(by_number, ancestors(by_number, _core.record_number(self.target))),
            'use it, or leave it out of the sources; unconnected_gradients="zero", if zeros are what is meant.',
            line,
        )


def _unrolled(steps: tuple) -> list[tuple[Origin, Any]]:
    """A linked list `(first, (second, (...)))`, which starts at the source, as a list that starts at the target."""
    out = []
    while steps:
        step, steps = steps
        out.append(step)
    return out[::-1]
