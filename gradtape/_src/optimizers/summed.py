"""A step of an optimizer on one of several replicas: gradients are summed over all of them and applied once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def in_replica(
    replica: Any,
    grads: Sequence[Any],
    clip: Callable[[list], Sequence[Any]],
    apply: Callable[[list], None],
    aggregate: bool = True,
) -> None:
    """Takes the step of all replicas, once each of them has reached it.

    Args:
      replica: its context, from `base.replicas.current()`.
      grads: its gradients; None where a variable has none, on all replicas.
      clip: applied to the gradients before they are summed.
      apply: takes the step, given the sums.
      aggregate: False if the gradients are sums already, the same on all replicas.
    """
    present = [i for i, g in enumerate(grads) if g is not None]
    if not present:
        apply(list(grads))  # raises the error for no gradients
        return

    def once(strategy: Any, parts: list) -> None:
        pairs = [(g, None) for g in parts]
        sums = strategy.extended.batch_reduce_to("SUM" if aggregate else "MEAN", pairs)
        full = list(grads)
        for i, g in zip(present, sums, strict=True):
            full[i] = g
        apply(full)

    replica.merge_call(once, args=(list(clip([grads[i] for i in present])),))
