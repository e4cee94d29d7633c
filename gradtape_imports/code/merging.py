"""`tf.__internal__.distribute`: what optimizers and metrics of Keras 2 do between replicas."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import gradtape as tf


def strategy_supports_no_merge_call() -> bool:
    """Whether code may run separately in each replica: if there is no strategy."""
    return not tf.distribute.has_strategy()


def maybe_merge_call(fn: Callable, strategy: Any, *args: Any, **kwargs: Any) -> Any:
    """`fn(strategy, ...)`, once for all replicas."""
    if strategy_supports_no_merge_call():
        return fn(strategy, *args, **kwargs)
    replica = tf.distribute.get_replica_context()
    assert replica is not None
    return replica.merge_call(fn, args=args, kwargs=kwargs)


def variable_sync_on_read_context() -> contextlib.AbstractContextManager:
    """A block in which metrics are added up."""
    return contextlib.nullcontext()


class ShardedVariable:
    """A variable in parts on several servers: there are none here."""

    def __init__(self, variables: Any, name: str = "ShardedVariable") -> None:
        raise NotImplementedError("ShardedVariable: gradtape has no parameter servers.")
