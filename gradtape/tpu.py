"""`tf.tpu`: there is no TPU, and what would need one raises ValueError, as TensorFlow does without one."""

from __future__ import annotations

from typing import Any


def _resolver() -> Any:
    from gradtape.distribute.cluster import TPUClusterResolver

    return TPUClusterResolver()


class experimental:
    """`tf.tpu.experimental`."""

    @staticmethod
    def initialize_tpu_system(cluster_resolver: Any = None) -> Any:
        """Raises ValueError."""
        return _resolver()

    @staticmethod
    def shutdown_tpu_system(cluster_resolver: Any = None) -> Any:
        """Raises ValueError."""
        return _resolver()
