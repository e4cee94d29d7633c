"""In which strategy and replica a thread runs, as far as the engine has to know: `gradtape/distribute` says so.

Optimizers add up gradients in a replica, functions have traces of their own for each replica, and variables that are
made on the way belong to the strategy.
"""

from __future__ import annotations

from typing import Any

from gradtape import _core

place = _core.Setting(None)  # (strategy, replica context or None between replicas); None: no strategy

# Zero while no run of several replicas is under way in this process: functions that are called then do not have to ask in
# which replica they are. Only a hint: an interrupt may leave it at another number.
runs = 0


class NeedsOthers(NotImplementedError):
    """A replica wants something done together with the others, in a part of a graph that is only its own.

    A branch is then traced for all replicas together (`control.branch`); elsewhere it is an error.
    """


def is_set() -> bool:
    """Whether the scope of a strategy is open."""
    return place.now() is not None


def current() -> Any:
    """The context of the replica that this thread runs in, if it is one of several; otherwise None."""
    now = place.now()
    if now is None or now[1] is None or now[0].num_replicas_in_sync == 1:
        return None
    return now[1]


def between() -> _core.Scope:
    """Code of a replica that runs as if between replicas: what it makes belongs to all of them."""
    now = place.now()
    return place.to(None if now is None else (now[0], None))
