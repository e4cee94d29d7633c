"""Clusters: resolvers, which list the machines, and options; errors for strategies that gradtape does not have.

`MultiWorkerMirroredStrategy` itself is in `workers`.
"""

from __future__ import annotations

import enum
import json
import math
import os
import re
from typing import Any

from gradtape._src.engines import placement
from gradtape.distribute.strategy import Strategy, local_devices
from gradtape.train.cluster import ClusterSpec


def refuse(what: str, why: str, instead: str) -> NotImplementedError:
    """The error for something that gradtape does not have."""
    return NotImplementedError(f"{what}: {why}. Hint: {instead}.")


# ---- resolvers ------------------------------------------------------------------------------------


class ClusterResolver:
    """Lists the machines of a cluster; the base of all resolvers."""

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
        """The address of the first machine: none."""
        return ""

    def num_accelerators(self, *args: Any, **kwargs: Any) -> dict[str, int]:
        """The accelerators: none."""
        return {}


class SimpleClusterResolver(ClusterResolver):
    """A cluster given by its description."""

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
    """The cluster that the environment variable TF_CONFIG describes.

    Raises:
      ValueError: if TF_CONFIG is not JSON, or not of the form
        `{"cluster": {"worker": ["host:port", ...]}, "task": {"type": "worker", "index": 0}}`.
    """

    def __init__(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
    ) -> None:
        self._config = _tf_config()
        task = self._config.get("task", {})
        self.task_type = task.get("type") if task_type is None else task_type
        index = task.get("index") if task_id is None else task_id
        self.task_id = None if index is None else _whole_number(index)
        self.rpc_layer = self._config.get("rpc_layer") if rpc_layer is None else rpc_layer
        self.environment = self._config.get("environment", "") if environment is None else environment

    def cluster_spec(self) -> ClusterSpec:
        return ClusterSpec(self._config.get("cluster", {}))

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The address of a task: by default of this one; empty without a cluster."""
        spec = self.cluster_spec()
        kind = self.task_type if task_type is None else task_type
        index = self.task_id if task_id is None else task_id
        return spec.task_address(kind, index) if spec and kind is not None and index is not None else ""


_FORM = '{"cluster": {"worker": ["host:port", ...]}, "task": {"type": "worker", "index": 0}}'


def _tf_config() -> dict:
    text = os.environ.get("TF_CONFIG") or "{}"
    try:
        config = json.loads(text)
    except ValueError as e:
        raise ValueError(f"TF_CONFIG: it is not JSON ({e}); expected {_FORM}; got {text[:200]!r}.") from None
    parts = (
        [config, *(config.get(k, {}) for k in ("cluster", "task"))] if isinstance(config, dict) else [None]
    )
    if not all(isinstance(part, dict) for part in parts):
        raise ValueError(f"TF_CONFIG: expected {_FORM}; got {text[:200]!r}.")
    return config


def _whole_number(index: Any) -> int:
    if isinstance(index, bool) or not re.fullmatch(r"\d+", str(index)):
        raise ValueError(f"TF_CONFIG: the index of the task must be a number; got {index!r}.")
    return int(index)


class SlurmClusterResolver(ClusterResolver):
    """The cluster of a job step started by Slurm: `srun python train.py`.

    Tasks are numbered as by Slurm, machine by machine; the port of a task is `port_base` plus its number on its machine.

    Args:
      jobs: names of jobs and their numbers of tasks, in the order of the tasks' numbers; all are workers by
        default.
      port_base: the port of the first task of each machine.
      tasks_per_node: the number of tasks on each machine; by default Slurm's.
      gpus_per_node, gpus_per_task, auto_set_gpu: accepted as in TensorFlow, without effect.

    Raises:
      RuntimeError: if the process was not started by srun.
      ValueError: if `jobs` do not have as many tasks as were started.
    """

    def __init__(
        self,
        jobs: dict[str, int] | None = None,
        port_base: int = 8888,
        gpus_per_node: int | None = None,
        gpus_per_task: int | None = None,
        tasks_per_node: Any = None,
        auto_set_gpu: bool = True,
        rpc_layer: str = "grpc",
    ) -> None:
        self._rank = int(_slurm("SLURM_PROCID"))
        self._count = int(_slurm("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"))
        self._hosts = hosts_of(_slurm("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"))
        self._per_host = self._tasks_per_host(tasks_per_node)
        self._port, self.rpc_layer = port_base, rpc_layer
        self._jobs = {"worker": self._count} if jobs is None else dict(jobs)
        if sum(self._jobs.values()) != self._count or sum(self._per_host) < self._count:
            raise ValueError(
                f"SlurmClusterResolver: jobs {self._jobs} on machines with {self._per_host} tasks do not fit; expected "
                f"{self._count} tasks, which srun has started."
            )
        self.task_type, self.task_id = self.get_task_info()

    def _tasks_per_host(self, given: Any) -> list[int]:
        if isinstance(given, int):
            return [given] * len(self._hosts)
        if given is None:
            text = os.environ.get("SLURM_STEP_TASKS_PER_NODE") or os.environ.get("SLURM_TASKS_PER_NODE")
            if text is None:
                return [-(-self._count // len(self._hosts))] * len(self._hosts)
            given = counts_of(text)
        return list(given)

    def cluster_spec(self) -> ClusterSpec:
        addresses = [
            f"{host}:{self._port + k}"
            for host, tasks in zip(self._hosts, self._per_host, strict=False)
            for k in range(tasks)
        ]
        cluster, at = {}, 0
        for job, count in self._jobs.items():
            cluster[job] = addresses[at : at + count]
            at += count
        return ClusterSpec(cluster)

    def get_task_info(self) -> tuple[str, int]:
        """The job of this process, and its index in the job."""
        at = 0
        for job, count in self._jobs.items():
            if self._rank < at + count:
                return job, self._rank - at
            at += count
        raise ValueError(f"SlurmClusterResolver: SLURM_PROCID is {self._rank}; expected less than {at}.")

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The address of a task; by default of this one."""
        own_type, own_id = self.get_task_info()
        kind, index = task_type or own_type, own_id if task_id is None else task_id
        return self.cluster_spec().task_address(kind, index)


def _slurm(*names: str) -> str:
    for name in names:
        if os.environ.get(name):
            return os.environ[name]
    raise RuntimeError(
        f"SlurmClusterResolver: {' and '.join(names)} {'is' if len(names) == 1 else 'are'} not set; expected a process that "
        "srun has started. Hint: srun python train.py."
    )


def hosts_of(text: str) -> list[str]:
    """The host names in a list of Slurm's.

    >>> hosts_of("n[1-2,07],gpu")
    ['n1', 'n2', 'n07', 'gpu']
    """
    names: list[str] = []
    for prefix, ranges, suffix in re.findall(r"([^,\[\]]*)(?:\[([^\]]*)\])?([^,\[\]]*)(?:,|$)", text):
        if not ranges:
            names += [prefix + suffix] if prefix + suffix else []
            continue
        for part in ranges.split(","):
            first, _, last = part.partition("-")
            width = len(first)
            names += [f"{prefix}{i:0{width}d}{suffix}" for i in range(int(first), int(last or first) + 1)]
    return names


def counts_of(text: str) -> list[int]:
    """The numbers in a list of Slurm's.

    >>> counts_of("2(x3),1")
    [2, 2, 2, 1]
    """
    groups = re.findall(r"(\d+)(?:\(x(\d+)\))?", text)
    return [int(n) for n, times in groups for _ in range(int(times or 1))]


class TPUClusterResolver(ClusterResolver):
    """The TPUs that JAX sees in this process.

    Raises:
      ValueError: if there are none, as in TensorFlow.
    """

    task_type, task_id = "worker", 0

    def __init__(self, tpu: str | None = None, *args: Any, **kwargs: Any) -> None:
        self._count = sum(a.kind == "TPU" for a in placement.accelerators())
        if not self._count:
            raise ValueError(
                "Please provide a TPU Name to connect to: there is no TPU here. Hint: TPUs are those that JAX sees, "
                'pip install "jax[tpu]".'
            )

    @staticmethod
    def connect(tpu: str | None = None, *args: Any, **kwargs: Any) -> Any:
        """The resolver: the TPUs of this process are connected already."""
        return TPUClusterResolver(tpu)

    def cluster_spec(self) -> ClusterSpec:
        """One process."""
        return ClusterSpec({})

    def num_accelerators(self, *args: Any, **kwargs: Any) -> dict[str, int]:
        """The number of TPUs."""
        return {"TPU": self._count}


# ---- strategies -----------------------------------------------------------------------------------


class TPUStrategy(Strategy):
    """One replica on each TPU of this process.

    Raises:
      ValueError: if there are none, as in TensorFlow.
    """

    def __init__(self, tpu_cluster_resolver: Any = None, *args: Any, **kwargs: Any) -> None:
        self.cluster_resolver = tpu_cluster_resolver or TPUClusterResolver()
        tpus = [a.name for a in placement.accelerators() if a.kind == "TPU"]
        super().__init__(devices=local_devices("TPUStrategy", tpus))


_NO_SERVERS = (
    "variables are not kept on servers: every worker has its own, and gradients are added up, which gives the same numbers "
    "however many workers there are"
)
_WORKERS = "tf.distribute.MultiWorkerMirroredStrategy trains on several machines"


class ParameterServerStrategy(Strategy):
    """Not supported: there are no parameter servers."""

    def __init__(self, cluster_resolver: Any, variable_partitioner: Any = None) -> None:
        if not cluster_resolver.cluster_spec():
            raise ValueError(
                "Cluster spec must be non-empty in `tf.distribute.cluster_resolver.ClusterResolver`."
            )
        raise refuse("ParameterServerStrategy", _NO_SERVERS, _WORKERS)


class RemoteValue:
    """The result type of a ClusterCoordinator; a name for `isinstance` only."""


class ClusterCoordinator:
    """Not supported: it distributes work to the workers of a ParameterServerStrategy."""

    def __init__(self, strategy: Any) -> None:
        raise refuse(
            "ClusterCoordinator", _NO_SERVERS, f"{_WORKERS}; strategy.run calls a function in replicas"
        )


class Server:
    """Not supported: workers of a MultiWorkerMirroredStrategy find each other without servers."""

    def __init__(self, server_or_cluster_def: Any, *args: Any, **kwargs: Any) -> None:
        raise refuse("tf.distribute.Server", _NO_SERVERS, f"{_WORKERS}, and needs no servers")

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Any:
        """Not supported."""
        raise refuse("tf.distribute.Server", _NO_SERVERS, f"{_WORKERS}, and needs no servers")


# ---- options ----------------------------------------------------------------------------------------


class CommunicationImplementation(enum.Enum):
    """How machines communicate; accepted, without effect."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


class CommunicationOptions:
    """How processes exchange values.

    Args:
      bytes_per_pack: accepted as in TensorFlow; all tensors of an exchange are sent in one buffer.
      timeout_seconds: how long to wait for other workers before a DeadlineExceededError says who is missing. By
        default GRADTAPE_COLLECTIVE_TIMEOUT, or 60.
      implementation: accepted as in TensorFlow; JAX chooses, or MPI.
    """

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
    """How values of several devices are combined; without effect on one replica."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass


class HierarchicalCopyAllReduce(CrossDeviceOps):
    """Without effect on one replica."""


class NcclAllReduce(CrossDeviceOps):
    """Without effect on one replica."""


class ReductionToOneDevice(CrossDeviceOps):
    """Without effect on one replica."""


class InputReplicationMode(enum.Enum):
    """Where datasets are created."""

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


class _Options:
    """Options stored as attributes, without effect on one replica."""

    def __init__(self, **kwargs: Any) -> None:
        self.__dict__.update(kwargs)


class InputOptions(_Options):
    """How datasets are distributed; without effect on one replica."""


class RunOptions(_Options):
    """How `Strategy.run` runs; without effect on one replica."""


# ---- partitioners: how variables are cut into shards ------------------------------------------------


class Partitioner:
    """Returns the number of shards along each axis of a variable; the base of the others."""

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
    """The largest number of shards of at least a given size."""

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
    """The smallest number of shards of at most a given size."""

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
