"""The strategy and replica that a thread runs in, as far as the engine needs them; `gradtape/distribute` sets them.

Optimizers sum gradients over replicas, functions have separate traces for each replica, and variables created in a
strategy's scope belong to the strategy.
"""

from __future__ import annotations

from typing import Any

from gradtape import _core

place = _core.Setting(None)  # (strategy, replica context or None between replicas); None: no strategy

# Zero unless several replicas are running in this process; then calls of functions need not look up their replica.
# Only a hint: an interrupt may leave another number.
runs = 0


class NeedsOthers(NotImplementedError):
    """A replica needs a collective operation in a part of a graph that only this replica runs.

    A branch is then traced for all replicas together (`control.branch`); elsewhere it is an error.
    """


def is_set() -> bool:
    """Whether the scope of a strategy is open."""
    return place.now() is not None


def current() -> Any:
    """The context of this thread's replica, if it is one of several; otherwise None."""
    innermost = place.now()
    if innermost is None or innermost[1] is None or innermost[0].num_replicas_in_sync == 1:
        return None
    return innermost[1]


def between() -> _core.Scope:
    """A scope in which a replica's code runs as if between replicas: what it creates belongs to all of them."""
    innermost = place.now()
    return place.to(None if innermost is None else (innermost[0], None))
