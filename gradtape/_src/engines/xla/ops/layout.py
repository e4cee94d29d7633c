"""The sharding of a value over a mesh, as an op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jax import lax

if TYPE_CHECKING:
    from gradtape._src.engines.xla.translate import Run


def constrain(op: Any, operands: list[Any], within: Run) -> Sequence[Any]:
    """The operand, sharded over the devices as the op says."""
    return [lax.with_sharding_constraint(operands[0], op.layout)]
