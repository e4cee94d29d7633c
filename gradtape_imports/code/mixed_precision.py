"""`tf.__internal__.train`: what Keras 2 says about mixed precision."""

from __future__ import annotations

_used = [False]


def is_mixed_precision_graph_rewrite_enabled() -> bool:
    """False: graphs are not rewritten to other types."""
    return False


def set_using_mixed_precision_policy(is_using: bool) -> None:
    """Notes that a policy is in use."""
    _used[0] = is_using
