"""Computes stacked values directly in the memory of the stack.

Values that an unrolled loop stacks at its end, such as the cotangents of all its steps, would be written twice: by
the step that computes them, and by the stack. Instead, the steps write to their parts of the stack's memory;
operands that no step can write there (an input, a constant) are copied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gradtape._src.base.dtypes import SIZES
from gradtape._src.graph.ir import Graph, Value
from gradtape._src.ops.table import TABLE

_LEAST = 1 << 16  # bytes of a stack: smaller ones stay in the cache
_ALIGNMENT = 64  # of the parts, as of all values


class Part(NamedTuple):
    """The place of a value inside another one."""

    of: Value
    offset: int  # bytes


def bytes_of(v: Value) -> int:
    return v.size * SIZES[v.dtype]


def join(
    graph: Graph, steps: list[Any], aliases: dict[Value, Value], copy: Callable[..., Any]
) -> tuple[list[Any], dict[Value, Part]]:
    """The steps without the stacks that other steps can write, and the values that are parts of these stacks.

    `copy(step, operand, result)` returns the step that copies an operand of a stack.
    """
    stack = TABLE["stack"].op
    if not any(s.what == "op" and s.object is stack for s in steps):
        return steps, {}
    maker = {v: s for s in steps for v in s.results}
    returned = {aliases.get(v, v) for v in graph.outputs}
    parts: dict[Value, Part] = {}
    new: list[Any] = []
    for step in steps:
        if step.what != "op" or step.object is not stack or step.attrs[0] != 0:
            new.append(step)
            continue
        (whole,) = step.results
        each = bytes_of(whole) // len(step.operands)
        if whole in returned or bytes_of(whole) < _LEAST or each % _ALIGNMENT:
            new.append(step)
            continue
        roots = [aliases.get(v, v) for v in step.operands]
        places = {
            v: Part(whole, k * each)
            for k, v in enumerate(roots)
            if v not in parts and v not in returned and v in maker and _writes(maker[v], v)
        }
        if 2 * len(places) < len(roots):
            new.append(step)
            continue
        parts.update(places)
        for k, v in enumerate(roots):
            if v not in places or places[v].offset != k * each:
                part = Value(graph, (1, *whole.shape[1:]), whole.dtype)
                parts[part] = Part(whole, k * each)
                new.append(copy(step, step.operands[k], part))
    return new, parts


def _writes(step: Any, v: Value) -> bool:
    """Whether a step writes a result to a given place, whatever its operands are."""
    if step.what != "op" or not step.object._shares:
        return step.what in ("op", "cluster")
    return all(bytes_of(v) > bytes_of(x) for x in step.operands)
