"""`tf.__internal__.train`: Keras 2's setting for mixed precision, and how it records the checkpoint that it wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradtape.train import files

_used = [False]


def is_mixed_precision_graph_rewrite_enabled() -> bool:
    """False: graphs are not rewritten to other types."""
    return False


def set_using_mixed_precision_policy(is_using: bool) -> None:
    """Notes that a policy is in use."""
    _used[0] = is_using


def update_checkpoint_state(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    **kwargs: Any,
) -> None:
    """Writes which checkpoint of a folder is the newest."""
    files.update_state(save_dir, model_checkpoint_path, all_model_checkpoint_paths, filename=latest_filename)
