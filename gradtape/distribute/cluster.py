"""Several machines, as far as programs ask: descriptions of clusters, and clear refusals.

gradtape runs in one process. Strategies for clusters work where there is no cluster, as
TensorFlow's do; where one is described, they refuse, rather than let every machine train alone.
"""

from __future__ import annotations

import enum
import json
import math
import os
from typing import Any

from gradtape.distribute.strategy import Strategy
from gradtape.train.cluster import ClusterSpec

_ONE_PROCESS = "gradtape runs in one process on the CPU"


def refuse(
    what: str, instead: str = "tf.distribute.MirroredStrategy() has one replica"
) -> NotImplementedError:
    """The error of what would need other machines."""
    return NotImplementedError(f"{what}: {_ONE_PROCESS}. Hint: {instead}.")


# ---- resolvers ------------------------------------------------------------------------------------


class ClusterResolver:
    """Says which machines there are; the base of all resolvers."""

    task_type: str | None = None
    task_id: int | None = None
    rpc_layer: str | None = None
    environment = ""

    def cluster_spec(self) -> ClusterSpec:
        """The machines."""
        raise NotImplementedError("cluster_spec() must be implemented by a subclass of ClusterResolver.")

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The address of the first: none."""
        return ""

    def num_accelerators(self, *args: Any, **kwargs: Any) -> dict[str, int]:
        """The accelerators: none."""
        return {}


class SimpleClusterResolver(ClusterResolver):
    """A cluster as described."""

    def __init__(
        self,
        cluster_spec: ClusterSpec,
        master: str = "",
        task_type: str | None = None,
        task_id: int | None = None,
        environment: str = "",
        num_accelerators: dict[str, int] | None = None,
        rpc_layer: str | None = None,
    ) -> None:
        if not isinstance(cluster_spec, ClusterSpec):
            raise TypeError("cluster_spec must be a `tf.train.ClusterSpec`.")
        self._spec, self._master, self._accelerators = cluster_spec, master, num_accelerators
        self.task_type, self.task_id = task_type, task_id
        self.environment, self.rpc_layer = environment, rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        return self._spec

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        if task_type is not None and task_id is not None:
            return self._spec.task_address(task_type, task_id)
        return self._master

    def num_accelerators(self, *args: Any, **kwargs: Any) -> dict[str, int]:
        return dict(self._accelerators or {})


class TFConfigClusterResolver(ClusterResolver):
    """The cluster that the environment variable TF_CONFIG describes."""

    def __init__(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
    ) -> None:
        self._config = json.loads(os.environ.get("TF_CONFIG") or "{}")
        task = self._config.get("task", {})
        self.task_type = task.get("type") if task_type is None else task_type
        index = task.get("index") if task_id is None else task_id
        self.task_id = None if index is None else int(index)
        self.rpc_layer = self._config.get("rpc_layer") if rpc_layer is None else rpc_layer
        self.environment = self._config.get("environment", "") if environment is None else environment

    def cluster_spec(self) -> ClusterSpec:
        return ClusterSpec(self._config.get("cluster", {}))


class TPUClusterResolver(ClusterResolver):
    """Raises ValueError, as in TensorFlow on a machine without a TPU: there is none to connect to."""

    def __init__(self, tpu: str | None = None, *args: Any, **kwargs: Any) -> None:
        raise ValueError(f"Please provide a TPU Name to connect to: {_ONE_PROCESS}, there is no TPU.")

    @staticmethod
    def connect(tpu: str | None = None, *args: Any, **kwargs: Any) -> Any:
        """Raises ValueError: there is no TPU."""
        return TPUClusterResolver(tpu)


# ---- strategies -----------------------------------------------------------------------------------


def _machines(resolver: Any) -> int:
    spec = (TFConfigClusterResolver() if resolver is None else resolver).cluster_spec()
    return sum(spec.num_tasks(job) for job in spec.jobs if job != "evaluator")


class MultiWorkerMirroredStrategy(Strategy):
    """One replica where no cluster is described; otherwise refused."""

    def __init__(
        self, cluster_resolver: Any = None, communication_options: Any = None, **kwargs: Any
    ) -> None:
        super().__init__()
        n = _machines(cluster_resolver)
        if n > 1:
            raise refuse(f"MultiWorkerMirroredStrategy: TF_CONFIG (or the resolver) describes {n} machines")
        self.cluster_resolver = TFConfigClusterResolver() if cluster_resolver is None else cluster_resolver


class TPUStrategy(Strategy):
    """Raises ValueError, as in TensorFlow on a machine without a TPU."""

    def __init__(self, tpu_cluster_resolver: Any = None, *args: Any, **kwargs: Any) -> None:
        TPUClusterResolver()


class ParameterServerStrategy(Strategy):
    """Refused: it is for clusters."""

    def __init__(self, cluster_resolver: Any, variable_partitioner: Any = None) -> None:
        if not _machines(cluster_resolver):
            raise ValueError(
                "Cluster spec must be non-empty in `tf.distribute.cluster_resolver.ClusterResolver`."
            )
        raise refuse("ParameterServerStrategy")


class ClusterCoordinator:
    """Refused: it is for clusters."""

    def __init__(self, strategy: Any) -> None:
        raise refuse("ClusterCoordinator", "strategy.run(fn, args) calls a function in the one replica")


class Server:
    """Refused: nothing would connect to it."""

    def __init__(self, server_or_cluster_def: Any, *args: Any, **kwargs: Any) -> None:
        raise refuse("tf.distribute.Server")

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Any:
        """Refused."""
        raise refuse("tf.distribute.Server")


# ---- options, without an effect on one replica ------------------------------------------------------


class CommunicationImplementation(enum.Enum):
    """How machines would talk to each other."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


class CommunicationOptions:
    """How much and how long machines would talk; without effect on one replica."""

    def __init__(
        self,
        bytes_per_pack: int = 0,
        timeout_seconds: float | None = None,
        implementation: CommunicationImplementation = CommunicationImplementation.AUTO,
    ) -> None:
        if bytes_per_pack < 0:
            raise ValueError(f"Argument `bytes_per_pack` must be >=0, Received {bytes_per_pack}.")
        self.bytes_per_pack, self.timeout_seconds = bytes_per_pack, timeout_seconds
        self.implementation = CommunicationImplementation(getattr(implementation, "value", implementation))


class CrossDeviceOps:
    """How values of several devices would become one; without effect on one replica."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass


class HierarchicalCopyAllReduce(CrossDeviceOps):
    """Without effect on one replica."""


class NcclAllReduce(CrossDeviceOps):
    """Without effect on one replica."""


class ReductionToOneDevice(CrossDeviceOps):
    """Without effect on one replica."""


class InputReplicationMode(enum.Enum):
    """Where datasets would be made."""

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


class _Options:
    """Options that are kept as attributes, without effect on one replica."""

    def __init__(self, **kwargs: Any) -> None:
        self.__dict__.update(kwargs)


class InputOptions(_Options):
    """How datasets would be distributed; without effect on one replica."""


class RunOptions(_Options):
    """How `Strategy.run` would run; without effect on one replica."""


# ---- partitioners: how variables would be cut into shards -------------------------------------------


class Partitioner:
    """Says into how many shards each axis of a variable would be cut; the base of the others."""

    def __call__(self, shape: Any, dtype: Any, axis: int = 0) -> list[int]:
        raise NotImplementedError

    @staticmethod
    def _only(shape: Any, axis: int, shards: int) -> list[int]:
        out = [1] * len(shape)
        out[axis] = shards
        return out


class FixedShardsPartitioner(Partitioner):
    """A fixed number of shards."""

    def __init__(self, num_shards: int) -> None:
        self._number = num_shards

    def __call__(self, shape: Any, dtype: Any, axis: int = 0) -> list[int]:
        return self._only(shape, axis, min(self._number, int(shape[axis])))


class MinSizePartitioner(Partitioner):
    """As many shards as have at least a given size."""

    def __init__(
        self, min_shard_bytes: int = 256 << 10, max_shards: int = 1, bytes_per_string: int = 16
    ) -> None:
        if min_shard_bytes < 1:
            raise ValueError(f"Argument `min_shard_bytes` must be positive. Received: {min_shard_bytes}")
        if max_shards < 1:
            raise ValueError(f"Argument `max_shards` must be positive. Received: {max_shards}")
        self._least, self._most, self._per_string = min_shard_bytes, max_shards, bytes_per_string

    def __call__(self, shape: Any, dtype: Any, axis: int = 0) -> list[int]:
        size = math.prod(int(d) for d in shape) * (dtype.size or self._per_string)
        return self._only(
            shape, axis, max(1, min(int(shape[axis]), self._most, math.ceil(size / self._least)))
        )


class MaxSizePartitioner(Partitioner):
    """As few shards as have at most a given size."""

    def __init__(
        self, max_shard_bytes: int, max_shards: int | None = None, bytes_per_string: int = 16
    ) -> None:
        if max_shard_bytes < 1:
            raise ValueError(f"Argument `max_shard_bytes` must be positive. Received {max_shard_bytes}")
        if max_shards and max_shards < 1:
            raise ValueError(f"Argument `max_shards` must be positive. Received {max_shards}")
        self._largest, self._most, self._per_string = max_shard_bytes, max_shards, bytes_per_string

    def __call__(self, shape: Any, dtype: Any, axis: int = 0) -> list[int]:
        n = int(shape[axis])
        row = math.prod(int(d) for i, d in enumerate(shape) if i != axis) * (dtype.size or self._per_string)
        rows = max(1, self._largest // row if row else n)
        shards = math.ceil(n / rows) if n else 1
        return self._only(shape, axis, max(1, min(shards, self._most or shards)))
