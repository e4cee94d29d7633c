"""Collectives on XLA: a graph that runs on several devices at once, and the exchanges between its replicas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec

if TYPE_CHECKING:
    from gradtape._src.engines.xla.translate import Run

REPLICA = "replica"  # the axis of devices


def replicated(op: Any, operands: list[Any], within: Run) -> Sequence[Any]:
    """Runs a graph on each device of a mesh: some operands have a row for each, the others are the same for all."""
    n, rows = op.count, op.rows
    stacked = [jnp.stack(operands[k * n : (k + 1) * n]) for k in range(rows)]
    shared = operands[rows * n :]
    run, size = within.inner(op.function.graph), len(op.function.graph.outputs)
    apart, alike = PartitionSpec(REPLICA), PartitionSpec()

    def replica(own: list[Any], shared: list[Any]) -> tuple[list[Any], list[Any], Any]:
        outputs, status = run([*(x[0] for x in own), *shared])
        status = jnp.zeros((), jnp.int32) if status is None else lax.pmax(status, REPLICA)
        return [x[None] for x in outputs[: op.results]], outputs[op.results :], status

    specs = ([apart] * op.results, [alike] * (size - op.results), alike)
    everywhere = jax.shard_map(
        replica, mesh=op.engine.mesh, in_specs=([apart] * rows, [alike] * len(shared)), out_specs=specs,
        check_vma=False,
    )  # fmt: skip
    own, common, status = everywhere(stacked, shared)
    within.note(status)
    return [*(x[r] for x in own for r in range(n)), *common]


def all_reduce(op: Any, operands: list[Any], within: Run) -> Sequence[Any]:
    """Sums over replicas."""
    return [_sum(x) for x in operands]


def _sum(x: Any) -> Any:
    return lax.psum(x.astype(jnp.int32), REPLICA) > 0 if x.dtype == jnp.bool_ else lax.psum(x, REPLICA)


def all_gather(op: Any, operands: list[Any], within: Run) -> Sequence[Any]:
    """The values of all replicas, concatenated."""
    return [lax.all_gather(x, REPLICA, axis=op.axis, tiled=True) for x in operands]


def reduce_scatter(op: Any, operands: list[Any], within: Run) -> Sequence[Any]:
    """Sums over replicas, of which each keeps its own part."""
    return [lax.psum_scatter(x, REPLICA, scatter_dimension=op.axis, tiled=True) for x in operands]


def broadcast(op: Any, operands: list[Any], within: Run) -> Sequence[Any]:
    """The values of one replica."""
    return [_sum(jnp.where(_is(op.root), x, jnp.zeros_like(x))) for x in operands]


def reduce_to(op: Any, operands: list[Any], within: Run) -> Sequence[Any]:
    """Sums over replicas on one of them, zero on the others."""
    return [jnp.where(_is(op.root), _sum(x), jnp.zeros_like(x)) for x in operands]


def _is(replica: int) -> Any:
    return lax.axis_index(REPLICA) == replica


def same(op: Any, operands: list[Any], within: Run) -> Sequence[Any]:
    """The operands; native code would raise if replicas have different ones."""
    for x in operands:
        value = x.astype(jnp.int32) if x.dtype == jnp.bool_ else x
        parts = (jnp.real(value), jnp.imag(value)) if jnp.iscomplexobj(value) else (value,)
        for part in parts:
            alike = lax.pmax(part, REPLICA) == lax.pmin(part, REPLICA)
            within.check(alike | jnp.isnan(part) if jnp.issubdtype(part.dtype, jnp.inexact) else alike)
    return operands
