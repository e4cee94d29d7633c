"""Callbacks of graphs on XLA: barriers, branches, loops and their gradients.

The lowering of a callback takes the op, its operands, and the run that it is part of (`translate.Run`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gradtape._src.engines.xla.lowering import DTYPES
from gradtape._src.engines.xla.residuals import OVERFLOW, TOKENS, OneOf, Token
from gradtape._src.graph.simplify import simplify

if TYPE_CHECKING:
    from gradtape._src.engines.xla.translate import Run


def barrier(op: Any, operands: list[Any], within: Run) -> Sequence[Any]:
    """The operands, hidden from simplification."""
    return lax.optimization_barrier(tuple(operands))


# ---- branches -------------------------------------------------------------------------------------


def branches(op: Any, operands: list[Any], within: Run) -> Sequence[Any]:
    """Runs one of several graphs."""
    which, *given = operands
    count = len(op.functions)

    def mine(xs: list[Any], k: int) -> list[Any]:
        """The inputs of a branch; from residuals of another op, those that belong to this branch."""
        return [x.parts[k] if isinstance(x, OneOf) and len(x.parts) == count else x for x in xs]

    parts = [Part(within, f.graph, mine(given, k)) for k, f in enumerate(op.functions)]
    # Branches keep residuals at the same places. If these are tokens, they may differ.
    columns = list(zip(*(part.outputs for part in parts), strict=True))

    def alike(k: int, xs: list[Any]) -> tuple[list[Any], Any]:
        outputs, status = parts[k](mine(xs, k))
        return [
            OneOf(tuple(x if j == k else _zeros(model) for j, model in enumerate(column)))
            if any(isinstance(model, TOKENS) for model in column)
            else x
            for x, column in zip(outputs, columns, strict=True)
        ], status

    number = jnp.where((which >= 0) & (which < count), which, count - 1).astype(jnp.int32)
    outputs, status = lax.switch(number, [partial(alike, k) for k in range(count)], given)
    within.note(status if any(part.can_fail for part in parts) else None)
    return outputs


class Part:
    """A graph inside an op: `part(xs)` returns its outputs and its status, which is zero if nothing can go wrong."""

    def __init__(self, within: Run, graph: Any, xs: Sequence[Any]) -> None:
        self._run = within.inner(graph)
        self.outputs, status = jax.eval_shape(self._run, list(xs))  # their shapes and types
        self.can_fail = status is not None

    def __call__(self, xs: Sequence[Any]) -> tuple[list[Any], Any]:
        outputs, status = self._run(xs)
        return outputs, jnp.zeros((), jnp.int32) if status is None else status


def _zeros(model: Any) -> Any:
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), model)


# ---- loops ----------------------------------------------------------------------------------------


def loop(op: Any, operands: list[Any], within: Run) -> Sequence[Any]:
    """Runs a graph as long as its condition holds."""
    carry, _, _, _ = _iterate(op, operands, within, 0)
    return carry


def loop_with_residuals(op: Any, operands: list[Any], within: Run) -> Sequence[Any]:
    """The same, with the residuals of each iteration for its gradient."""
    most = most_iterations(op, operands)
    carry, go, count, rows = _iterate(op, operands, within, within.room if most is None else max(most, 1))
    if most is None:
        within.note(jnp.where(go, OVERFLOW, 0).astype(jnp.int32))
    return [*carry, Token(count, rows)]


def most_iterations(op: Any, operands: Sequence[Any]) -> int | None:
    """The largest number of iterations of a loop, if it counts to a known number; None otherwise."""
    cond, body = (simplify(f.graph, final=True) for f in (op.cond, op.body))
    bounds = []
    # A loop ends as soon as one of the conditions joined by "and" does not hold.
    todo = [cond.outputs[0]]
    while todo:
        node = todo.pop().node
        if node is None:
            continue
        if node.name == "logical_and":
            todo += node.operands
        elif node.name in ("less", "greater"):
            low, high = node.operands if node.name == "less" else node.operands[::-1]
            bounds.append(_count_to(low, high, cond, body, op.n, operands))
    return min((b for b in bounds if b is not None), default=None)


def _count_to(low: Any, high: Any, cond: Any, body: Any, n: int, operands: Sequence[Any]) -> int | None:
    """How long `low`, a loop variable that grows by a constant, is below `high`, which does not change."""
    place = cond.inputs.index(low) if low in cond.inputs else n
    if place >= n or isinstance(operands[place], jax.core.Tracer | Token):
        return None
    if high.constant is None:
        at = cond.inputs.index(high) if high in cond.inputs else 0
        limit = operands[at] if at >= n else None
    else:
        limit = high.constant.numpy()
    step = body.outputs[place].node
    if limit is None or isinstance(limit, jax.core.Tracer | Token) or step is None or step.name != "add":
        return None
    grows = [v.constant.numpy() for v in step.operands if v.constant is not None]
    if body.inputs[place] not in step.operands or len(grows) != 1 or np.ndim(limit) or not grows[0] > 0:
        return None
    if not np.issubdtype(np.asarray(limit).dtype, np.integer):
        return None
    return max(0, -((int(operands[place]) - int(limit)) // int(grows[0])))


def _iterate(op: Any, operands: list[Any], within: Run, room: int) -> tuple[list[Any], Any, Any, tuple]:
    """The results of a loop: its variables, whether it would go on, its number of iterations, and the residuals."""
    n = op.n
    start, constants = operands[:n], operands[n:]
    start = [x if isinstance(x, TOKENS) else jnp.asarray(x) for x in start]
    cond = Part(within, op.cond.graph, operands)
    step = Part(within, op.iteration.graph, operands)
    rows = [jax.tree.map(lambda x: jnp.zeros((room, *x.shape), x.dtype), r) for r in step.outputs[n + 1 :]]

    def goes_on(state: tuple) -> Any:
        _, go, count, _, _ = state
        return go & (count < room) if room else go

    def body(state: tuple) -> tuple:
        carry, _, count, rows, status = state
        outputs, more = step([*carry, *constants])
        rows = [
            jax.tree.map(lambda all, row: all.at[count].set(row), a, b)
            for a, b in zip(rows, outputs[n + 1 :], strict=True)
        ]
        return outputs[:n], outputs[n].reshape(()), count + 1, rows, status | more

    (first,), status = cond([*start, *constants])
    state = start, first.reshape(()), jnp.zeros((), jnp.int32), rows, status
    carry, go, count, rows, status = lax.while_loop(goes_on, body, state)
    within.note(status if cond.can_fail or step.can_fail else None)
    return carry, go, count, tuple(rows)


def loop_gradient(op: Any, operands: list[Any], within: Run) -> Sequence[Any]:
    """The iterations, last to first: cotangents of the variables, sums of those of the constants."""
    token, *rest = operands
    n, width = len(op.marks), len(op.state)
    given, cotangents = rest[:n], rest[n:]
    constants = [given[i] for i in op.constants]
    sums = [op.loop.inputs[i] for i in (*op.state[len(op.variables) :], *op.sparse)]
    values = [*map(jnp.asarray, cotangents), *(jnp.zeros(shape, DTYPES[dtype]) for shape, dtype in sums)]

    def row(k: Any) -> list[Any]:
        return [
            jax.tree.map(lambda all: lax.dynamic_index_in_dim(all, k, keepdims=False), r) for r in token.rows
        ]

    step = Part(within, op.back.graph, [*row(0), *values[:width], *constants])

    def body(state: tuple) -> tuple:
        k, values, status = state
        k = k - 1
        outputs, more = step([*row(k), *values[:width], *constants])
        # Sparse gradients: values, and the rows they belong to.
        parts = zip(values[width:], outputs[width::2], outputs[width + 1 :: 2], strict=True)
        return k, [*outputs[:width], *(total.at[at].add(part) for total, part, at in parts)], status | more

    state = token.count, values, jnp.zeros((), jnp.int32)
    _, values, status = lax.while_loop(lambda state: state[0] > 0, body, state)
    within.note(status if step.can_fail else None)
    return values


def rows(op: Any, operands: list[Any], within: Run) -> Sequence[Any]:
    """Runs a graph for each row of the marked operands."""
    marked = [x for x, m in zip(operands, op.marks, strict=True) if m]

    def given(row: Sequence[Any]) -> list[Any]:
        parts = iter(row)
        return [next(parts) if m else x for x, m in zip(operands, op.marks, strict=True)]

    step = Part(within, op.function.graph, given([jnp.asarray(x)[0] for x in marked]))
    outputs, status = lax.map(lambda row: step(given(row)), marked)
    within.note(lax.reduce(status, jnp.int32(0), lax.bitwise_or, (0,)) if step.can_fail else None)
    return outputs
