"""`tf.tpu`: TPUs of this process need no preparation; without one, these raise ValueError as in TensorFlow."""

from __future__ import annotations

from typing import Any

from gradtape._src.public import absent as _absent


def _resolver() -> Any:
    from gradtape.distribute.cluster import TPUClusterResolver

    return TPUClusterResolver()


class experimental:
    """`tf.tpu.experimental`."""

    @staticmethod
    def initialize_tpu_system(cluster_resolver: Any = None) -> Any:
        """The resolver: JAX prepares TPUs by itself. Raises ValueError if there are none."""
        return cluster_resolver or _resolver()

    @staticmethod
    def shutdown_tpu_system(cluster_resolver: Any = None) -> Any:
        """Does nothing. Raises ValueError if there are none."""
        return cluster_resolver or _resolver()


__getattr__, __dir__ = _absent.of("tpu")
