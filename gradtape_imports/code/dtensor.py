"""`tf.experimental.dtensor`, which is not supported: classes for `isinstance` only, which cannot be instantiated."""

from __future__ import annotations

from typing import Any

WORDS = "gradtape has no DTensor. Hint: keras.distribution shards models, tf.distribute shards batches."


class DVariable:
    """A variable on a mesh: there are none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"DVariable: {WORDS}")


class DTensorDataset:
    """A dataset on a mesh: there are none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"DTensorDataset: {WORDS}")


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module 'tf.experimental.dtensor' has no attribute {name!r}: {WORDS}")
